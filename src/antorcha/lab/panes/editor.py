"""The editor: the program's text, its files, the buttons, and where the error is."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

from nicegui import background_tasks, context, ui

from antorcha.lab import complete, draft, grip, marks, palette, phrases
from antorcha.lab.panes.base import ANSWER, Pane, press


class Editor(Pane):
    """Editor and toolbar."""

    watches = ("text", "state", "result", "saved", "hints", "moving")

    def build(self) -> None:
        words = self.words
        with ui.element("div").classes("lab-bar"):
            self._tabs = (
                ui.element("div")
                .classes("lab-files")
                .props(f'role="tablist" aria-label="{words("files")}"')
            )
            self._saved = ui.label().classes("lab-saved").props('aria-live="polite"')
            ui.element("div").classes("lab-gap")
            self._run = self._button("run", "play_arrow", self._start).classes("lab-run")
            self._stop = self._button("stop", "stop", self.session.stop)
            self._resets()
            self._hints = ui.button(icon="straighten", color=None, on_click=self._turn_hints)
            self._hints.props(
                f'flat dense round size=sm aria-label="{words("hints")}" title="{words("hints")}"'
            ).classes("lab-hints-key")
            self.view.maximiser("edit")
        self._problem = ui.element("div").classes("lab-problem").props('role="alert"')
        with ui.element("div").classes("lab-hinted") as self._around:
            self.editor = ui.codemirror(
                self.session.file.text,
                language="Python",
                theme=theme_of(self.view.dark),
                on_change=self._typed,
                keymap={
                    "Mod-Enter": press(self._start),
                    "Mod-s": self.session.save,
                    "F2": self._turn_hints,
                },
            ).classes("lab-editor")
        self._moved = ui.label().classes("lab-moved").props('aria-live="polite"')
        ui.on(f"lab-grip-{self.editor.id}", self._grip)
        self._shown = self.session.active
        self._marked: tuple[int, ...] = ()  # of what the marks are that the editor shows
        self._is_underlined = self._is_faded = False
        self._tips: dict[int, str] = {}  # of lines, as the editor has them
        self._revealed = self.session.versions["result"]
        self._show_hints()
        self._draft: draft.Draft | None = None  # typed without connection, and not what we have
        self._parted: str | None = None  # the text when the connection was lost
        context.client.on_disconnect(self._part)
        context.client.on_connect(self._meet)
        name = words("editor", self.session.file.name)
        ui.timer(0.1, lambda: self._complete(name), once=True)

    def _button(self, key: str, icon: str, work: Any) -> ui.button:
        color = "primary" if key == "run" else None
        button = ui.button(self.words(key), icon=icon, color=color, on_click=press(work))
        button.props(f'no-caps dense unelevated aria-label="{self.words(key)}"')
        button.props(f'title="{self.words(key + "_hint")}"')
        return button.classes("lab-button")

    def _resets(self) -> None:
        """The button that begins again, and its menu: with the process, or with the text."""
        words = self.words
        button = ui.button(words("reset"), icon="restart_alt", color=None)
        button.props(f'no-caps dense unelevated aria-label="{words("reset")}"')
        button.props(f'title="{words("reset_hint")}"')
        button.classes("lab-button")
        with button, ui.menu().classes("lab-resets") as menu:
            self._reset_entry("reset_process", "reset_process_hint", press(self._clear))
            self._reset_entry("reset_text", "reset_text_hint", self._begin_again)
            self._back = self._reset_entry("reset_back", "reset_back_hint", self._take_back)
        menu.on_value_change(lambda: self._back.set_visibility(bool(self.session.file.aside())))

    def _reset_entry(self, key: str, hint: str, work: Any) -> ui.menu_item:
        with ui.menu_item(on_click=work) as item, ui.element("div").classes("lab-entry"):
            ui.label(self.words(key)).classes("lab-entry-name")
            ui.label(self.words(hint)).classes("lab-entry-more")
        return item

    def _begin_again(self) -> None:
        self._say_kept(self.session.begin_again())

    def _take_back(self) -> None:
        self._say_kept(self.session.take_back())

    def _say_kept(self, name: str) -> None:
        if name:
            ui.notify(self.words("kept_as", name), type="positive")

    async def _complete(self, label: str) -> None:
        ui.run_javascript(await asyncio.to_thread(complete.script, self.editor.id, label))
        ui.run_javascript(palette.script(self.editor.id))
        ui.run_javascript(phrases.script(self.editor.id, self.words.lang))
        ui.run_javascript(grip.script(self.editor.id, self.words("grip"), self.words("grip_hint")))
        with contextlib.suppress(TimeoutError):
            answer = await ui.run_javascript(draft.script(self.editor.id), timeout=ANSWER)
            self._take_draft(draft.read(answer))

    def _take_draft(self, found: draft.Draft | None) -> None:
        """Go on with what was typed without connection; ask, if the file is another by now."""
        if found is None:
            return
        if not self.session.open_named(found.name, self.view.lesson):
            return
        if self.session.file.text == found.base:
            self.session.edit(found.text)
        elif self.session.file.text != found.text:
            self._draft = found
            self._show_problem()

    def _part(self) -> None:
        self._parted = self.session.file.text

    async def _meet(self) -> None:
        """There is a connection again. The editor sends changes, not texts, and some may be lost on
        the way: whatever we have made of them, the right text is the one in the browser."""
        base, now, name = self._parted, self.session.file.text, self.session.file.name
        self._parted = None
        if base is None:
            return
        with contextlib.suppress(TimeoutError):
            text = await ui.run_javascript(draft.whole_text(self.editor.id), timeout=ANSWER)
            if isinstance(text, str) and name == self.session.file.name:
                # `now` is older than all that this page has to say: others wrote it, if it is new
                found = draft.Draft(name, self.session.file.text if now == base else base, text)
                self._take_draft(found)

    def _settle(self, text: str | None) -> None:
        """Answer the question: this text, or (None) the one that is there."""
        self._draft = None
        if text is not None:
            self.session.edit(text)
        self._show_problem()

    async def _start(self) -> None:
        await self.session.run()

    async def _clear(self) -> None:
        await self.session.reset()

    def _typed(self, event: Any) -> None:
        if self._shown == self.session.active:
            self.session.edit(event.value or "")

    def _grip(self, event: Any) -> None:
        """A number is taken hold of, moved, or let go."""
        moving = self.session.moving
        if event.args == "begin":
            moving.begin()
        elif event.args == "move":
            moving.move()
        elif event.args == "end":
            background_tasks.create(moving.end())

    def set_dark(self, dark: bool) -> None:
        """Follow the page's theme."""
        self.editor.set_theme(theme_of(dark))

    # ---- showing --------------------------------------------------------------------------------

    def update(self) -> None:
        session = self.session
        self._shown = session.active
        if self.editor.value != session.file.text:
            self.editor.set_value(session.file.text)
        self._mark()
        self._run.set_enabled(not session.busy)
        self._stop.set_enabled(session.busy)
        self._moved.set_text(session.moving.problem)
        self._moved.set_visibility(bool(session.moving.problem))
        self._saved.set_text(self.words("saved" if session.file.is_saved else "unsaved"))
        self._show_tabs()
        self._show_problem()

    def _mark(self) -> None:
        """Underline the last run's error, and write the shapes beside their lines. What is typed
        moves the marks along, and shapes of another text fade.

        By calling the editor's own method: setting the element's property would also send the text
        as the server knows it, and take back what is being typed at that moment.
        """
        session = self.session
        is_stale = session.hinted != session.file.text
        if is_stale and session.moving.is_live:  # in a moment they are those of this text
            return
        self._fade(is_stale)
        of = session.versions["result"], session.versions["hints"], session.active
        if of == self._marked:
            return
        is_other = self._marked[2:] != of[2:]
        self._marked = of
        place = session.place
        if is_stale and place is None and not (is_other or self._is_underlined):
            return
        self._is_underlined = place is not None
        hints = [] if is_stale else beside(session.file.text, session.hints)
        self._mark_error(place, hints)

    def _fade(self, is_stale: bool) -> None:
        """Shapes of another text fade. The browser sets the attribute by itself: a class that
        changes here makes it render the whole page anew, before it shows what a run printed."""
        if is_stale != self._is_faded:
            self._is_faded = is_stale
            around, wanted = f"getHtmlElement({self._around.id})", json.dumps(is_stale)
            ui.run_javascript(f'{around}?.toggleAttribute("data-stale", {wanted})')

    def _mark_error(self, place: dict[str, int] | None, hints: list[dict[str, Any]]) -> None:
        found = hints
        tips: dict[int, str] = {}
        if place is not None:
            begin, end = span(self.session.file.text, place)
            if begin < end:
                found.append({"kind": "mark", "from": begin, "to": end, "class": "lab-error"})
            found.append({"kind": "line", "line": place["line"], "class": "lab-error-line"})
            result = self.session.result
            tips = {place["line"]: result.get("message") or self.words.death(result)}
        ui.run_javascript(marks.script(self.editor.id, found))
        if tips or self._tips:
            self.editor.run_method("setLineTooltips", tips)
        self._tips = tips
        if place is not None and self._revealed != self.session.versions["result"]:
            self.editor.reveal_line(place["line"])
        self._revealed = self.session.versions["result"]

    def _turn_hints(self) -> None:
        workplace = self.view.workplace
        workplace.remember(hints=workplace.memory.get("hints") is False)
        self._show_hints()

    def _show_hints(self) -> None:
        shown = self.view.workplace.memory.get("hints") is not False
        self._around.classes(**{"remove" if shown else "add": "lab-hints-hidden"})
        self._hints.props(f'aria-pressed="{str(shown).lower()}"')

    def _show_tabs(self) -> None:
        wanted = [(file.name, index == self.session.active)
                  for index, file in enumerate(self.session.files)]  # fmt: skip
        if getattr(self, "_tabs_shown", None) == wanted:
            return
        self._tabs_shown = wanted
        self._tabs.clear()
        with self._tabs:
            for index, (name, active) in enumerate(wanted):
                tab = ui.button(
                    name, color=None, on_click=lambda index=index: self.session.open(index)
                )
                tab.props(f'flat dense no-caps role="tab" aria-selected="{str(active).lower()}"')
                tab.classes("lab-file" + (" lab-file-active" if active else ""))

    def _show_problem(self) -> None:
        problem = self.session.problem
        shown: Any = self._draft if problem is None else (problem.kind, problem.path)
        if getattr(self, "_problem_shown", None) == shown:
            return
        self._problem_shown = shown
        self._problem.clear()
        words = self.words
        if problem is None:
            if self._draft is not None:
                text = self._draft.text
                with self._problem:
                    ui.label(words("draft", self._draft.name))
                    self._choice("keep_mine_draft", lambda: self._settle(text))
                    self._choice("take_theirs", lambda: self._settle(None))
            return
        with self._problem:
            ui.label(words(f"problem_{problem.kind}", problem.path, problem.detail))
            if problem.kind == "changed":
                self._choice("keep_mine", lambda: self.session.save(anyway=True))
                self._choice("take_theirs", self.session.reread)
            else:
                self._choice("save_again", self.session.save)
                folder = ui.input(words("folder"), value=str(Path.home())).classes("lab-input")
                self._choice("save_to", lambda: self._move(folder.value))

    def _choice(self, key: str, work: Any) -> None:
        ui.button(self.words(key), color=None, on_click=work).props("no-caps dense outline")

    def _move(self, folder: str) -> None:
        problem = self.view.workplace.move(Path(folder).expanduser().absolute())
        if problem is not None:
            said = self.words(f"problem_{problem.kind}", problem.path, problem.detail)
            ui.notify(said, type="negative", multi_line=True)


def theme_of(dark: bool) -> Any:
    """The editor's colours."""
    return "vscodeDark" if dark else "vscodeLight"


def beside(text: str, hints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the editor writes after lines: an attribute, which the style sheet shows. What stands
    in the page as text, browsers take for typed when a selection of all is typed over.

    >>> beside("a = 1\\nb = 2", [{"line": 2, "text": "3×2"}, {"line": 3, "text": "gone"}])
    [{'kind': 'line', 'line': 2, 'class': 'lab-shaped', 'attributes': {'data-shape': '3×2'}}]
    """
    lines = text.count("\n") + 1
    return [
        {"kind": "line", "line": hint["line"], "class": "lab-shaped",
         "attributes": {"data-shape": hint["text"]}}
        for hint in hints if 0 < hint["line"] <= lines
    ]  # fmt: skip


def span(text: str, place: dict[str, int]) -> tuple[int, int]:
    """From lines and columns to positions in the text; what lies outside of it is cut off.

    >>> span("a = 1\\nb = a @ c\\n", {"line": 2, "column": 4, "end_line": 2, "end_column": 9})
    (10, 15)
    """
    begins = [0]
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))

    def position(line: int, column: int) -> int:
        line = min(max(line, 1), len(begins))
        return min(begins[line - 1] + column, len(text))

    begin = position(place["line"], place["column"])
    end = position(place["end_line"], place["end_column"])
    if place["end_line"] > place["line"]:  # of a statement of many lines, the first
        end = min(end, text.find("\n", begin) if "\n" in text[begin:] else len(text))
    return begin, max(begin, end)
