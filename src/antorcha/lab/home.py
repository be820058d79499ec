"""Home: the goal of the course on top, then where to go on, answers to redo, and the map."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nicegui import background_tasks, context, ui

from antorcha.lab import goal
from antorcha.lab.appearance import Appearance, page_header
from antorcha.lab.lesson import Lesson, Quiz
from antorcha.lab.panes.base import View
from antorcha.lab.panes.pad import PadPicture
from antorcha.lab.panes.quiz import QuizPane
from antorcha.lab.words import LabWords
from antorcha.lab.workplace import Workplace

REDONE = 6  # questions shown at once that were answered wrongly


class GoalPad(PadPicture):
    """The pad alone: of what the layers make of a drawing, the lessons tell."""

    def build(self) -> None:
        super().build()
        self._layers.set_visibility(False)


class HomePage:
    """One browser tab's look at the course as a whole.

    Args:
        workplace: where it is taken.
        words: in which words.
    """

    def __init__(self, workplace: Workplace, words: LabWords) -> None:
        self.workplace = workplace
        self.words = words
        self.lessons = workplace.lessons(words.lang)
        self.project = goal.project(workplace, words.lang)
        self.session = goal.session(workplace)
        self.view = View(workplace, self.session, words)

    def build(self) -> None:
        """Make the page."""
        words = self.words
        ui.page_title(f"{words('home')} · antorcha")
        appearance = Appearance(self.workplace, words, self._follow)
        ui.label(words("offline")).classes("lab-offline").props('role="alert"')
        with page_header():
            ui.label("antorcha lab").classes("lab-brand")
            ui.element("div").classes("lab-gap")
            appearance.keys()
        with ui.element("div").classes("lab-home") as self._main:
            if self.project is not None:
                self._goal(self.project)
            else:
                self._way_on()
            self._redo()
            self._map()
            self._files()
        self.session.viewers += 1
        context.client.on_delete(self._left)
        if self.project is not None:
            background_tasks.create(self._learn(self.project))

    def _follow(self, dark: bool) -> None:
        self._main.props(f'data-theme="{"dark" if dark else "light"}"')

    def _left(self) -> None:
        self.session.viewers -= 1
        self.session.left = time.monotonic()

    def _heading(self, key: str) -> None:
        ui.label(self.words(key)).classes("lab-home-title").props('role="heading" aria-level="2"')

    # ---- the goal -------------------------------------------------------------------------------

    def _goal(self, project: Lesson) -> None:
        words = self.words
        with ui.element("section").classes("lab-goal").props(f'aria-label="{words("goal")}"'):
            with ui.element("div").classes("lab-goal-told"):
                title = ui.label(words("goal")).classes("lab-h1")
                title.props('role="heading" aria-level="1"')
                ui.label(words("goal_says")).classes("lab-goal-says")
                self._way_on()
                with ui.element("ol").classes("lab-stages"):
                    for number, (key, slug) in enumerate(goal.STAGES.items(), 1):
                        self._stage(number, key, slug, project)
            with ui.element("div").classes("lab-goal-shown"):
                self._state = ui.label(words("goal_wait")).classes("lab-goal-state")
                self._state.props('aria-live="polite"')
                self._pad = GoalPad(self.view)
                self._pad.build()

    def _stage(self, number: int, key: str, slug: str, project: Lesson) -> None:
        """One stage of the `project`: its name, and after which lesson it can be built."""
        words = self.words
        done = number <= self.workplace.reached(project.slug)
        before = next((each for each in self.lessons if each.slug == slug), None)
        is_open = before is not None and self.workplace.is_done(before)
        with ui.element("li").classes("lab-stage" + (" lab-stage-done" if done else "")):
            target = f"/lesson/{project.slug}?lang={words.lang}"
            ui.link(words(key), target)
            if done:
                said = f"✓ {words('done')}"
            elif is_open or before is None:
                said = words("stage_open")
            else:
                said = words("stage_after", before.title)
            ui.label(said).classes("lab-entry-more")

    async def _learn(self, project: Lesson) -> None:
        """Have the finished network ready; it learns in a moment, in a process of its own."""
        is_ready = await goal.learn(self.session, project)
        self._state.set_text(self.words("goal_ready" if is_ready else "goal_failed"))
        if is_ready:
            self._pad.show(goal.MODEL, {})

    # ---- where to go on -------------------------------------------------------------------------

    def _way_on(self) -> None:
        words, lessons = self.words, self.lessons
        left = [each for each in lessons if not self.workplace.is_done(each)]
        told = words("course_left", len(lessons) - len(left), len(lessons),
                     words.span(sum([each.minutes for each in left])))  # fmt: skip
        here = self.workplace.here
        following = next((each for each in left if each.slug == here), next(iter(left), None))
        with ui.element("section").classes("lab-way-on"):
            if following is not None:
                number = lessons.index(following) + 1
                key = "go_on" if self.workplace.was_opened(following.slug) else "go_begin"
                button = ui.button(
                    words(key, number, following.title), icon="arrow_forward",
                    on_click=lambda: ui.navigate.to(self._path(following)),
                )  # fmt: skip
                button.props("no-caps unelevated").classes("lab-go")
            with ui.element("div").classes("lab-way-told"):
                ui.label(told).classes("lab-entry-more")
                share = (len(lessons) - len(left)) / max(len(lessons), 1)
                bar = ui.linear_progress(share, show_value=False, size="4px")
                bar.classes("lab-progress").props(f'aria-label="{told}"')

    def _path(self, lesson: Lesson) -> str:
        return f"/lesson/{lesson.slug}?lang={self.words.lang}"

    # ---- answers to redo ------------------------------------------------------------------------

    def _wrong(self) -> Iterator[tuple[Lesson, int, Quiz]]:
        """The questions that were answered wrongly, and of which lesson, with their numbers."""
        for lesson in self.lessons:
            answers = self.workplace.answers(lesson.slug)
            for number, quiz in enumerate(lesson.quizzes, 1):
                chosen = answers.get(str(number))
                given = quiz.options[chosen : chosen + 1] if isinstance(chosen, int) else ()
                if given and not given[0].right:
                    yield lesson, number, quiz

    def _redo(self) -> None:
        wrong = list(self._wrong())
        if not wrong:
            return
        with ui.element("section").classes("lab-redo"):
            self._heading("redo")
            ui.label(self.words("redo_says", len(wrong))).classes("lab-entry-more")
            for lesson, number, quiz in wrong[:REDONE]:
                with ui.element("div").classes("lab-redo-one lab-text"):
                    ui.link(lesson.title, self._path(lesson))
                    QuizPane(self.view, lesson, quiz, number, fresh=True).build()

    # ---- the map --------------------------------------------------------------------------------

    def _map(self) -> None:
        words = self.words
        with ui.element("section"):
            self._heading("course")
            with ui.element("ol").classes("lab-map"):
                for number, lesson in enumerate(self.lessons, 1):
                    self._entry(number, lesson)
            ui.label(words("about")).classes("lab-about")

    def _entry(self, number: int, lesson: Lesson) -> None:
        words, workplace = self.words, self.workplace
        is_here = lesson.slug == workplace.here
        told = [words("minutes", lesson.minutes), workplace.progress(lesson, words)]
        told = [words("here")] * is_here + [each for each in told if each]
        with ui.element("li"), ui.link(target=self._path(lesson)).classes("lab-map-one") as entry:
            ui.label(f"{number}. {lesson.title}").classes("lab-entry-name")
            ui.label(" · ".join(told)).classes("lab-entry-more")
        if is_here:
            entry.props('aria-current="step"').classes("lab-map-here")
        if workplace.is_done(lesson):
            entry.classes("lab-entry-done")

    def _files(self) -> None:
        names = self.workplace.programs()
        if not names:
            return
        with ui.element("section"):
            self._heading("files")
            with ui.element("ul").classes("lab-home-files"):
                for name in names:
                    with ui.element("li"):
                        ui.link(name, f"/file/{name}?lang={self.words.lang}")
