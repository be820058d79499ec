"""Questions and the challenge: answers with their reasons, steps with hints and checks."""

from __future__ import annotations

import re

from nicegui import ui

from antorcha.inspector.forms import escaped
from antorcha.lab.lesson import Challenge, Lesson, Quiz
from antorcha.lab.panes.base import Pane, View, press, trusted


class QuizPane(Pane):
    """One question of a lesson; a `fresh` one shows no answer given before."""

    def __init__(
        self, view: View, lesson: Lesson, part: Quiz, number: int, *, fresh: bool = False
    ) -> None:
        super().__init__(view)
        self.lesson = lesson
        self.part = part
        self.number = number
        self._fresh = fresh

    def build(self) -> None:
        with ui.element("section").classes("lab-quiz"):
            title = ui.label(self.words("question", self.number))
            title.classes("lab-quiz-title").props('role="heading" aria-level="3"')
            ui.markdown(self.part.question)
            with ui.element("div").classes("lab-options"):
                self._options = [self._option(index) for index in range(len(self.part.options))]
            self._why = ui.element("div").classes("lab-reason").props('aria-live="polite"')
        chosen = self.view.workplace.answers(self.lesson.slug).get(str(self.number))
        self._show(chosen if isinstance(chosen, int) and not self._fresh else None)

    def _option(self, index: int) -> ui.button:
        button = ui.button(color=None, on_click=lambda: self._choose(index))
        button.props('flat no-caps align="left"').classes("lab-option")
        with button:
            ui.markdown(self.part.options[index].text)
        return button

    def _choose(self, index: int) -> None:
        self.view.workplace.answer(self.lesson.slug, self.number, index)
        self._show(index)

    def _show(self, chosen: int | None) -> None:
        for index, (button, option) in enumerate(zip(self._options, self.part.options)):
            button.classes(remove="lab-right lab-wrong")
            if index == chosen:
                button.classes("lab-right" if option.right else "lab-wrong")
            button.props(f'aria-pressed="{str(index == chosen).lower()}"')
        self._why.clear()
        if chosen is not None and chosen < len(self.part.options):
            option = self.part.options[chosen]
            with self._why:
                word = self.words("right" if option.right else "wrong")
                ui.markdown(f"**{word}** {option.why}")


class ChallengePane(Pane):
    """The lesson's challenge: its steps, checked in the child after the learner's code ran."""

    watches = ("verdicts", "state")

    def __init__(self, view: View, lesson: Lesson, part: Challenge) -> None:
        super().__init__(view)
        self.lesson = lesson
        self.part = part
        self._hints = [0] * len(part.steps)

    def build(self) -> None:
        words = self.words
        with ui.element("section").classes("lab-challenge"):
            title = ui.label(words("challenge", self.part.title))
            title.classes("lab-quiz-title").props('role="heading" aria-level="3"')
            ui.markdown(self.part.intro)
            self._begin = ui.button(words("begin"), icon="edit", color=None, on_click=self._open)
            self._begin.props("no-caps dense outline")
            self._said = []
            for number, step in enumerate(self.part.steps, 1):
                with ui.element("div").classes("lab-step"):
                    ui.label(words("challenge_step", number)).classes("lab-step-title")
                    ui.markdown(step.ask)
                    said = trusted(classes="lab-verdict").props('aria-live="polite"')
                    self._said.append(said)
                    self._help(number - 1)
            self._check = ui.button(
                words("check"), icon="task_alt", color=None, on_click=press(self._run)
            )
            self._check.props("no-caps dense outline").classes("lab-check")
            self._passed = ui.label(words("passed")).classes("lab-passed")

    def _open(self) -> None:
        self.session.begin_challenge(self.lesson)
        self.view.show("code")

    async def _run(self) -> None:
        await self.session.check(self.lesson)

    def _help(self, index: int) -> None:
        """The buttons that give a step's hints one by one, and then a solution."""
        step, words = self.part.steps[index], self.words
        box = ui.element("div").classes("lab-hints")

        def more() -> None:
            given = self._hints[index]
            self._hints[index] += 1
            with box:
                if given < len(step.hints):
                    ui.markdown(step.hints[given])
                else:
                    ui.markdown(f"```python\n{step.solution}\n```")
            left = len(step.hints) - given - 1
            button.set_text(words("hint_more" if left > 0 else "solution"))
            button.set_visibility(left >= 0)

        first = "hint" if step.hints else "solution"
        button = ui.button(words(first), icon="lightbulb", color=None, on_click=more)
        button.props("flat no-caps dense").classes("lab-hint")

    def update(self) -> None:
        verdicts = self.session.verdicts
        for index, label in enumerate(self._said):
            verdict = verdicts[index] if index < len(verdicts) else None
            if verdict is not None and verdict.get("lang", self.lesson.lang) != self.lesson.lang:
                # It was checked in a page of another language.
                verdict = {"ok": True, "message": self.words("right")} if verdict["ok"] else None
            label.set_content("" if verdict is None else with_code(verdict["message"]))
            label.classes(remove="lab-right lab-wrong")
            if verdict is not None:
                label.classes("lab-right" if verdict["ok"] else "lab-wrong")
        right = sum([verdict["ok"] for verdict in verdicts])
        self.view.workplace.reach(self.lesson.slug, right)
        passed = len(verdicts) == len(self.part.steps) and all(v["ok"] for v in verdicts)
        if passed and not self.view.workplace.passed(self.lesson.slug):
            self.view.workplace.pass_challenge(self.lesson.slug)
        self._passed.set_visibility(passed)
        self._check.set_enabled(not self.session.busy)


def with_code(text: str) -> str:
    """A check's words as HTML: what stands between backticks is code, and the rest is text.

    >>> with_code("`F_new` is <b>not</b> there")
    '<code>F_new</code> is &lt;b&gt;not&lt;/b&gt; there'
    """
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escaped(text))
