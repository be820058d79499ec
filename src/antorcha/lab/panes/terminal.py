"""The terminal: what the program prints, and a line for what it asks."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from antorcha.lab.panes.base import Pane

# Dark in both themes, as terminals are; the colours are readable on it (WCAG AA).
THEME = {
    "background": "#11151c",
    "foreground": "#e6e9ef",
    "cursor": "#11151c",
    "red": "#ff8a80",
    "green": "#69d58c",
    "yellow": "#ffcb6b",
    "blue": "#82b1ff",
    "magenta": "#e58af2",
    "cyan": "#6fd3e3",
    "selectionBackground": "#3a4453",
}


class Terminal(Pane):
    """Output and input of the program."""

    watches = ("prompt", "state", "cleared")

    def build(self) -> None:
        words = self.words
        self._read = 0  # up to here the screen's text is shown
        self._cleared = self.session.versions["cleared"]
        self._state_shown = ""
        with ui.element("div").classes("lab-bar"):
            ui.label(words("terminal")).classes("lab-title").props('role="heading" aria-level="2"')
            self._state = ui.label().classes("lab-state").props('aria-live="polite"')
        options: dict[str, Any] = {
            "convertEol": True,
            "disableStdin": True,
            "cursorBlink": False,
            "screenReaderMode": True,
            "scrollback": 5000,
            "fontSize": 13,
            "fontFamily": "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
            "theme": THEME,
        }
        with ui.element("div").classes("lab-terminal"):
            self.xterm = ui.xterm(options).props(f'aria-label="{words("terminal")}"')
            ui.timer(0.1, self._let_tab_pass, once=True)
            ui.element("q-resize-observer").on("resize", lambda: self.xterm.fit(), throttle=0.2)
        with ui.element("form").classes("lab-ask").on("submit.prevent", self._send) as self._ask:
            self._line = ui.input(words("input")).props("dense outlined").classes("lab-input")
            ui.button(words("send"), on_click=self._send).props("no-caps dense unelevated")
        self._ask.set_visibility(False)

    def _let_tab_pass(self) -> None:
        """Tab leads on from the terminal, which would keep it for programs that read keys."""
        ui.run_javascript(
            f"getElement({self.xterm.id}).terminal"
            ".attachCustomKeyEventHandler(event => event.key !== 'Tab')"
        )

    def refresh(self) -> None:
        super().refresh()
        end = self.session.screen.end
        if end != self._read:
            self.xterm.write(self.session.screen.since(self._read))
            self._read = end

    def update(self) -> None:
        session = self.session
        if self._cleared != session.versions["cleared"]:
            self._cleared = session.versions["cleared"]
            self.xterm.run_terminal_method("reset")
        self._ask.set_visibility(session.prompt is not None)
        if session.prompt is not None:
            self._line.run_method("focus")
        self._state.set_text("" if session.state == "ready" else self.words(session.state))

    def _send(self) -> None:
        if self.session.prompt is not None:
            self.session.answer(self._line.value or "")
            self._line.set_value("")
