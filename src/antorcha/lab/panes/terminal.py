"""The terminal: what the program prints, and a line for what it asks."""

from __future__ import annotations

import json
from typing import Any

from nicegui import ui

from antorcha.inspector.theme import MONO
from antorcha.lab.panes.base import Pane
from antorcha.lab.screen import USUAL, WIDEST, columns
from antorcha.lab.theme import DARK, LIGHT, LINES, TYPE_SIZES

# The page's own grounds and inks; all colours are readable on them (WCAG AA).
THEMES: dict[bool, dict[str, str]] = {
    False: {
        "background": LIGHT["bg"],
        "foreground": LIGHT["fg"],
        "cursor": LIGHT["bg"],
        "red": LIGHT["bad"],
        "green": LIGHT["good"],
        "yellow": "#7a5600",
        "blue": LIGHT["negative"],
        "magenta": LIGHT["nan"],
        "cyan": "#0b6b7d",
        "white": LIGHT["muted"],
        "brightBlack": LIGHT["muted"],
        "selectionBackground": LIGHT["soft"],
    },
    True: {
        "background": DARK["bg"],
        "foreground": DARK["fg"],
        "cursor": DARK["bg"],
        "red": DARK["bad"],
        "green": DARK["good"],
        "yellow": "#ffcb6b",
        "blue": DARK["negative"],
        "magenta": DARK["nan"],
        "cyan": "#6fd3e3",
        "white": DARK["fg"],
        "brightBlack": DARK["muted"],
        "selectionBackground": DARK["soft"],
    },
}
"""The terminal's colours, by whether the page is dark."""

# Tells how many columns and rows there is room for, now and whenever that changes; lets Tab lead on
# (a terminal keeps it for programs that read keys); and speaks of itself in the page's words.
# The last line stays in view until somebody scrolls: a browser also moves the view by itself, when
# what it shows grows shorter for a moment, and xterm takes that for a person's hand.
_MEASURE = """
const component = getElement(%(id)d);
const terminal = component.terminal;
const box = getHtmlElement(%(id)d).parentElement;
terminal.attachCustomKeyEventHandler(event => event.key !== "Tab");
terminal.textarea?.setAttribute("aria-label", %(label)s);
let told = "", waiting = null;
function measure() {
  waiting = null;
  const room = component.fit_addon.proposeDimensions();
  if (!room || !(room.cols > 1) || !(room.rows > 1) || !box.offsetParent) return;
  const now = [room.cols, room.rows];
  if (String(now) === told) return;
  told = String(now);
  emitEvent("lab-terminal-%(id)d", now);
}
let scrolling = false;
const is_below = () => terminal.buffer.active.viewportY >= terminal.buffer.active.baseY;
function keep() {
  if (is_below()) scrolling = false;
  else if (!scrolling) terminal.scrollToBottom();
}
terminal.follow = () => { scrolling = false; terminal.scrollToBottom(); };
for (const by of ["wheel", "touchmove", "pointerdown", "keydown"])
  box.addEventListener(by, () => { scrolling = true; }, {capture: true, passive: true});
terminal.onWriteParsed(keep);
box.querySelector(".xterm-viewport").addEventListener("scroll", () => setTimeout(keep));
new ResizeObserver(() => { waiting ??= setTimeout(measure, 120); }).observe(box);
"""


class Terminal(Pane):
    """Output and input of the program.

    The terminal has as many columns as there is room for, and never less than 80, nor than its
    longest line: what does not fit is scrolled to, and no line is broken in the middle of a number.
    """

    watches = ("prompt", "state", "cleared", "run")

    def build(self) -> None:
        words = self.words
        self._read = 0  # up to here the screen's text is shown
        self._cleared = self.session.versions["cleared"]
        self._room = (0, 0)  # columns and rows that can be seen; (0, 0): the browser has not said
        self._shape = (0, 0)  # columns and rows of the terminal
        self._longest = USUAL
        self._line_open = ""  # the last line, which may go on
        self._runs = self.session.versions["run"]  # that have begun
        with ui.element("div").classes("lab-bar"):
            ui.label(words("terminal")).classes("lab-title").props('role="heading" aria-level="2"')
            self._state = ui.label().classes("lab-state").props('aria-live="polite"')
            ui.element("div").classes("lab-gap")
            self.view.maximiser("below")
        options: dict[str, Any] = {
            "convertEol": True,
            "disableStdin": True,
            "cursorBlink": False,
            "screenReaderMode": True,
            "scrollback": 5000,
            "fontSize": TYPE_SIZES["code"],
            "lineHeight": LINES["title"],  # less cuts underscores off
            "fontFamily": MONO,
            "theme": THEMES[self.view.dark],
        }
        with ui.element("div").classes("lab-terminal"):
            self.xterm = ui.xterm(options).props(f'aria-label="{words("terminal")}"')
        ui.on(f"lab-terminal-{self.xterm.id}", self._measured)
        script = _MEASURE % {"id": self.xterm.id, "label": json.dumps(words("terminal"))}
        ui.timer(0.1, lambda: ui.run_javascript(script), once=True)
        with ui.element("form").classes("lab-ask").on("submit.prevent", self._send) as self._ask:
            self._line = ui.input(words("input")).props("dense outlined").classes("lab-input")
            send = ui.button(words("send"), color=None, on_click=self._send)
            send.props("no-caps dense outline")
        self._ask.set_visibility(False)

    def set_dark(self, dark: bool) -> None:
        """Follow the page's theme."""
        options = json.dumps({"theme": THEMES[dark]})
        terminal = f"getElement({self.xterm.id})?.terminal"
        ui.run_javascript(f"const shown = {terminal}; if (shown) shown.options = {options}")

    def _measured(self, event: Any) -> None:
        """The browser says how much room there is."""
        given = event.args if isinstance(event.args, list) else []
        if len(given) != 2 or not all(isinstance(n, int) and 1 < n < 2000 for n in given):
            return
        before, self._room = self._room, (given[0], given[1])
        self.session.size = (max(given[0], USUAL), given[1])
        self._fit()
        if before[0] != given[0]:  # the lab's own lines are broken elsewhere
            self._show_all()

    def _fit(self) -> None:
        shape = (max(self._room[0], self._longest), self._room[1])
        if shape != self._shape:
            self._shape = shape
            self.xterm.run_terminal_method("resize", *shape)

    def _show_all(self) -> None:
        """Show the text from its beginning, on an empty terminal."""
        self._read, self._longest, self._line_open = 0, USUAL, ""
        self._show_new("\x1bc")
        self._fit()

    def _show_new(self, before: str = "") -> None:
        """Show what is not shown yet, after `before`: in one piece, or the terminal blinks."""
        end = self.session.screen.end
        text = ""
        if end != self._read:
            text = self.session.screen.since(self._read, self.words, self._room[0])
            self._longest = max(self._longest, columns(self._line_open + text))
            self._line_open = (self._line_open + text).rpartition("\n")[2][:WIDEST]
            self._fit()
            self._read = end
        if before or text:
            self.xterm.write(before + text)

    def refresh(self) -> None:
        super().refresh()
        if self.session.has_spoken:
            self.view.speaks()
        if self._room[0]:
            self._show_new()

    def update(self) -> None:
        session = self.session
        if self._cleared != session.versions["cleared"]:
            self._cleared = session.versions["cleared"]
            if self._room[0]:
                self._show_all()
        self._ask.set_visibility(session.prompt is not None)
        if session.prompt is not None:
            self._line.run_method("focus")
        if self._runs != session.versions["run"]:
            self._runs = session.versions["run"]
            if self._room[0]:
                self.xterm.run_terminal_method("follow")
        self._state.set_text("" if session.state == "ready" else self.words(session.state))

    def _send(self) -> None:
        if self.session.prompt is not None:
            self.session.answer(self._line.value or "")
            self._line.set_value("")
