"""A cell of a lesson: its code, what it prints, and what a run of the lesson up to it changes."""

from __future__ import annotations

from typing import Any

from nicegui import background_tasks, ui

from antorcha.inspector.forms import escaped
from antorcha.lab import curves
from antorcha.lab.lesson import Cell, Lesson
from antorcha.lab.panes.base import Pane, View, press, trusted
from antorcha.lab.panes.inspector import WHICH, row_html, told

FEW = 8  # tensors told of below a cell


class CellPane(Pane):
    """One cell of a lesson.

    Args:
        view: the page.
        lesson: which one.
        part: the cell.
        number: which of the lesson's cells, from 1.
    """

    def __init__(self, view: View, lesson: Lesson, part: Cell, number: int) -> None:
        super().__init__(view)
        self.lesson = lesson
        self.part = part
        self.number = number
        self._runs = False
        self._count = 0  # which run of cells the rows are of
        self._rows: list[dict[str, Any]] = []
        self._open: int | None = None  # which of the rows

    def build(self) -> None:
        with ui.element("div").classes("lab-cell") as self._box:
            ui.markdown(f"```python\n{self.part.code}\n```")
            with ui.element("div").classes("lab-cell-keys"):
                self._run_key = self._key("cell_run", "play_arrow", press(self._press))
                self._run_key.classes("lab-cell-run")
                self._key("try_it", "input", self._try).classes("lab-try")
            if self._is_hidden:
                self._ask()
            with ui.element("div").classes("lab-cell-result").props('aria-live="polite"'):
                self._said = ui.label().classes("lab-cell-said")
                self._output = ui.label((self.part.output or "").rstrip("\n"))
                self._output.classes("lab-output")
                self._error = ui.label().classes("lab-output lab-cell-error")
            with ui.element("div").classes("lab-cell-tensors") as self._changed:
                self._caption = ui.label(self.words("cell_changed")).classes("lab-caption")
                self._list = trusted(classes="lab-cell-rows")
                self._detail = trusted(classes="lab-cell-detail")
                self._curve = trusted(classes="lab-cell-curves")
            self._list.on("click", self._pressed, js_handler=WHICH)
        self._error.set_visibility(False)
        self._changed.set_visibility(False)
        self._show_said()

    def _key(self, word: str, icon: str, work: Any) -> ui.button:
        label = self.words(word)
        button = ui.button(icon=icon, color=None, on_click=work)
        return button.props(f'flat dense round size="sm" aria-label="{label}" title="{label}"')

    # ---- what it will print ---------------------------------------------------------------------

    @property
    def _is_hidden(self) -> bool:
        """Has the learner still to say what it prints?"""
        said = self.view.workplace.prediction(self.lesson.slug, self.number)
        return self.part.predict and not said

    def _ask(self) -> None:
        words = self.words
        with ui.element("form").classes("lab-predict") as self._form:
            self._line = ui.textarea(words("predict"), placeholder=words("predict_hint"))
            self._line.props("dense outlined autogrow rows=1").classes("lab-input")
            self._line.on("keydown.enter.exact.prevent", self._say)
            say = ui.button(words("predict_say"), color=None, on_click=self._say)
            say.props("no-caps dense outline")
        self._form.on("submit.prevent", self._say)

    def _say(self) -> None:
        said = (self._line.value or "").strip()
        if not said:
            self._line.run_method("focus")
            return
        self.view.workplace.predict(self.lesson.slug, self.number, said)
        self._form.set_visibility(False)
        self._show_said()

    def _show_said(self) -> None:
        """Show the output, once it may be seen, and above it what was said."""
        said = self.view.workplace.prediction(self.lesson.slug, self.number)
        self._output.set_visibility(bool(self._output.text) and not self._is_hidden)
        self._said.set_visibility(self.part.predict and bool(said))
        if self.part.predict and said:
            right = is_same(said, self.part.output or "")
            self._said.classes(remove="lab-right lab-wrong")
            self._said.classes("lab-right" if right else "lab-wrong")
            one_line = " / ".join(said.splitlines())
            key = "predict_right" if right else "predict_wrong"
            self._said.set_text(self.words(key, one_line))

    # ---- running --------------------------------------------------------------------------------

    async def _press(self) -> None:
        if self._runs:
            await self.session.stop()
        elif self._is_hidden:
            self._line.run_method("focus")
        elif self.session.busy:
            with self._box:
                ui.notify(self.words("cell_busy"), type="info")
        else:
            await self._run()

    async def _run(self) -> None:
        codes = [cell.code for cell in self.lesson.cells[: self.number]]
        self._set_running(True)
        try:
            result = await self.session.run_cells(codes, self.lesson.file)
        finally:
            self._set_running(False)
        if result is not None:
            self._show(result)

    def _set_running(self, runs: bool) -> None:
        self._runs = runs
        label = self.words("stop" if runs else "cell_run")
        self._run_key.set_icon("stop" if runs else "play_arrow")
        self._run_key.props(f'aria-label="{label}" title="{label}"')

    def _show(self, result: dict[str, Any]) -> None:
        """Show what the run gave, in the place of what the lesson says that it gives."""
        ended = result["ended"]
        self._output.set_text(result.get("printed", "").rstrip("\n"))
        self._output.classes("lab-output-run")
        self._output.set_visibility(bool(self._output.text))
        text = result.get("text", "") if ended != "ok" else ""
        if ended not in ("ok", "error"):
            text = self.words.ending(result).removeprefix("> ")
        self._error.set_text(text.rstrip("\n"))
        self._error.set_visibility(bool(text))
        self._rows, self._open = result.get("rows", []), None
        self._count = result.get("count", 0)
        self._show_rows()
        losses = result.get("losses", {})
        self._show_losses(dict(list(losses.items())[-len(curves.LINES) :]))
        self._caption.set_visibility(bool(self._rows))
        self._changed.set_visibility(bool(self._rows or losses))

    def _show_rows(self) -> None:
        shown = [
            row_html(self.words, number, row, opened=number == self._open)
            for number, row in enumerate(self._rows[:FEW])
        ]
        more = len(self._rows) - FEW
        if more > 0:
            shown.append(f'<p class="lab-caption">{escaped(self.words("cell_more", more))}</p>')
        self._list.set_content("".join(shown))
        if self._open is None:
            self._detail.set_content("")

    def _show_losses(self, losses: dict[str, Any]) -> None:
        picture, label = curves.losses_told(losses, self.words)
        caption = f'<p class="lab-caption">{escaped(label)}</p>' if losses else ""
        self._curve.set_content(picture + caption)

    def _pressed(self, event: Any) -> None:
        number = int(event.args) if str(event.args).isdecimal() else FEW
        if number >= min(len(self._rows), FEW):
            return
        self._open = None if number == self._open else number
        self._show_rows()
        if self._open is not None:
            background_tasks.create(self._look(number, self._rows[number]["name"]))

    async def _look(self, number: int, name: str) -> None:
        look = self.session.child.look
        answer = await look("cell", f"{self._count} {name}", self.words.lang)
        if number == self._open:
            self._detail.set_content(told(answer, self.words, name))

    # ---- into the editor ------------------------------------------------------------------------

    def _try(self) -> None:
        """Put the cell into the editor, after those before it that are not there yet."""
        session = self.session
        session.open(0)
        text = session.file.text
        for cell in self.lesson.cells[: self.number]:
            if cell.code.strip() not in text:
                text = text.rstrip("\n") + "\n\n" + cell.code.strip("\n") + "\n"
        session.edit(text.lstrip("\n"))
        self.view.show("code")


def is_same(said: str, printed: str) -> bool:
    """Is that what was printed? Blanks and capitals do not count.

    >>> is_same("true  False", "True False"), is_same("True", "True False")
    (True, False)
    """
    return said.lower().split() == printed.lower().split()
