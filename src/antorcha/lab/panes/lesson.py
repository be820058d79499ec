"""The lesson's text: its words, cells with what they print, drawings, questions, the challenge;
above it, what it contains."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from nicegui import background_tasks, ui

from antorcha.lab.lesson import Cell, Challenge, Inspect, Lesson, LessonView, Quiz, Text
from antorcha.lab.panes import quiz
from antorcha.lab.panes.base import Pane, TrustedHtml, View, trusted
from antorcha.lab.panes.cell import CellPane
from antorcha.lab.words import LabWords


class LessonText(Pane):
    """A lesson, from its title to the way on."""

    def __init__(self, view: View, lesson: Lesson) -> None:
        super().__init__(view)
        self.lesson = lesson
        self.following = view.workplace.following(lesson)
        self._parts: list[Pane] = []
        self._drawings: list[TrustedHtml] = []

    def build(self) -> None:
        lesson = self.lesson
        self._bar()
        with (
            ui.element("div").classes("lab-reader").props('tabindex="0"'),
            ui.element("article").classes("lab-text").props(f'lang="{lesson.lang}"'),
        ):
            ui.label(lesson.title).classes("lab-h1").props('role="heading" aria-level="1"')
            ui.label(self.words("minutes", lesson.minutes)).classes("lab-minutes")
            for part in lesson.parts:
                self._part(part)
            if self.following is not None:
                target = f"/lesson/{self.following.slug}?lang={self.words.lang}"
                ui.link(self.words("next", self.following.title), target).classes("lab-next")
        if self._drawings:
            background_tasks.create(self._draw())

    # ---- what it contains -----------------------------------------------------------------------

    def _bar(self) -> None:
        words = self.words
        with ui.element("div").classes("lab-bar lab-lesson-bar"):
            button = ui.button(words("contents"), icon="toc", color=None)
            button.props("flat dense no-caps").classes("lab-contents")
            with button, ui.menu().classes("lab-menu"), ui.list().props("dense"):
                for level, title, where in _contents(self.lesson, words):
                    item = ui.menu_item(title, on_click=lambda where=where: self._scroll_to(where))
                    item.classes(f"lab-contents-{level}")
            ui.element("div").classes("lab-gap")
            self._progress = ui.label().classes("lab-saved")
            self._known: object = None  # the workplace's memory, as it shows
            self.view.maximiser("lesson")

    def _scroll_to(self, where: tuple[str, int]) -> None:
        """Show a part: the so-many-eth of what a selector finds."""
        selector, number = where
        ui.run_javascript(
            f"const part = document.querySelectorAll({json.dumps(selector)})[{number}];"
            "part?.scrollIntoView({block: 'start'})"
        )

    def refresh(self) -> None:
        for part in self._parts:
            part.refresh()
        workplace = self.view.workplace
        if workplace.memory is not self._known:
            self._known = workplace.memory
            self._progress.set_text(workplace.progress(self.lesson, self.words))

    def _part(self, part: object) -> None:
        if isinstance(part, Text):
            ui.markdown(part.markdown)
        elif isinstance(part, Cell):
            number = sum(isinstance(each, CellPane) for each in self._parts) + 1
            self._add(CellPane(self.view, self.lesson, part, number))
        elif isinstance(part, Inspect):
            self._drawings.append(trusted(classes="lab-drawing"))
        elif isinstance(part, LessonView):
            self._view(part)
        elif isinstance(part, Quiz):
            number = sum(isinstance(each, quiz.QuizPane) for each in self._parts) + 1
            self._add(quiz.QuizPane(self.view, self.lesson, part, number))
        elif isinstance(part, Challenge):
            self._add(quiz.ChallengePane(self.view, self.lesson, part))

    def _view(self, part: LessonView) -> None:
        """What a picture of the learner's model shows, and the button that opens it."""
        with ui.element("div").classes("lab-card"):
            ui.label(self.words(f"view_says_{part.kind}"))
            button = ui.button(
                self.words("view_open"), icon="auto_awesome", color=None,
                on_click=lambda: self._picture(part),
            )  # fmt: skip
            button.props("no-caps dense outline")

    def _picture(self, part: LessonView) -> None:
        self.view.picture = f"{part.kind} {part.name}".strip()
        self.view.show("inside")
        self.view.show("model")

    def _add(self, pane: Pane) -> None:
        self._parts.append(pane)
        pane.build()

    async def _draw(self) -> None:
        """Have the child run the lesson's cells and draw the tensors that it shows."""
        steps = []
        for part in self.lesson.parts:
            if isinstance(part, Cell):
                steps.append({"code": part.code})
            elif isinstance(part, Inspect):
                steps.append({"inspect": part.expression})
        pictures = await self.session.drawings(steps, self.words.lang)
        for element, picture in zip(self._drawings, pictures):
            element.set_content(picture)


def _contents(lesson: Lesson, words: LabWords) -> Iterator[tuple[int, str, tuple[str, int]]]:
    """What can be gone to: level, title, and where it is on the page."""
    headings = quizzes = 0
    for part in lesson.parts:
        if isinstance(part, Text):
            for title in headings_of(part.markdown):
                yield 1, title, (".lab-text > .nicegui-markdown h2", headings)
                headings += 1
        elif isinstance(part, Quiz):
            yield 2, words("question", quizzes + 1), (".lab-text .lab-quiz", quizzes)
            quizzes += 1
        elif isinstance(part, Challenge):
            yield 1, words("challenge", part.title), (".lab-text .lab-challenge", 0)


def headings_of(markdown: str) -> list[str]:
    """The titles of second level in Markdown, as text.

    >>> headings_of("## The `x` of *y*\\n```\\n## no\\n```\\n### deeper\\n## Two ##")
    ['The x of y', 'Two']
    """
    found, fenced = [], False
    for line in markdown.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif line.startswith("## ") and not fenced:
            found.append(re.sub(r"[`*]", "", line[3:].strip().rstrip("#").strip()))
    return found
