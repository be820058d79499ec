"""How the parts lie on a wide page: lines between them that are dragged, one of them in full.

The sizes are custom properties of the element that holds the parts, in percent, which the grid in
``style.css`` reads; dragging changes them in the browser, and the lab remembers them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from nicegui import ui

from antorcha.lab.words import LabWords
from antorcha.lab.workplace import Workplace

PARTS = ("lesson", "edit", "below", "inside")


class Split(NamedTuple):
    """A line: does it lie between columns (else between rows)? And the share, in percent, of what
    is left of it or above: usually, at least, at most."""

    columns: bool
    usual: float
    least: float
    most: float


SPLITS = {
    "lesson": Split(True, 38, 18, 70),  # the lesson | the rest
    "rows": Split(False, 48, 12, 85),  # the editor / what is below
    "low": Split(True, 50, 15, 85),  # the terminal | what is inside
}

QUIET = 70.0  # the editor's share while the terminal has no text

# Of a line that is dragged, or moved with the arrow keys: the share changes at once, and the lab is
# told when it is done. A double click gives the usual share.
_DRAG = """
const main = getHtmlElement(%(main)d);
for (const bar of main.querySelectorAll(".lab-split")) {
  const {name, columns, usual, least, most} = JSON.parse(bar.dataset.split);
  const now = () => parseFloat(getComputedStyle(main).getPropertyValue("--lab-" + name));
  const set = (share) => {
    share = Math.min(Math.max(share, least), most);
    main.style.setProperty("--lab-" + name, share.toFixed(1));
    bar.setAttribute("aria-valuenow", Math.round(share));
  };
  const tell = () => emitEvent("lab-split", [name, now()]);
  const at = (event) => {
    const all = main.getBoundingClientRect();
    if (!columns) return (event.clientY - all.top) / all.height * 100;
    const left = name === "low" && main.classList.contains("lab-with-lesson")
      ? all.left + all.width * parseFloat(getComputedStyle(main).getPropertyValue("--lab-lesson"))
        / 100 : all.left;
    return (event.clientX - left) / (all.right - left) * 100;
  };
  bar.addEventListener("pointerdown", event => {
    bar.setPointerCapture(event.pointerId);
    bar.classList.add("lab-dragged");
    event.preventDefault();
    bar.focus({preventScroll: true});
  });
  bar.addEventListener("pointermove", event => {
    if (bar.hasPointerCapture(event.pointerId)) set(at(event));
  });
  const end = (event) => {
    if (!bar.classList.contains("lab-dragged")) return;
    bar.classList.remove("lab-dragged");
    tell();
  };
  bar.addEventListener("pointerup", end);
  bar.addEventListener("pointercancel", end);
  bar.addEventListener("dblclick", () => { set(usual); tell(); });
  bar.addEventListener("keydown", event => {
    const step = {ArrowLeft: -2, ArrowUp: -2, ArrowRight: 2, ArrowDown: 2}[event.key];
    if (step === undefined) return;
    event.preventDefault();
    set(now() + step);
    tell();
  });
}
"""


class PageLayout:
    """The parts of one page, as they lie now.

    Args:
        workplace: remembers it.
        words: of the page.
        with_lesson: is there a lesson beside the editor?
        is_quiet: has the terminal no text yet? It is low then, unless somebody dragged its line.
    """

    def __init__(
        self, workplace: Workplace, words: LabWords, with_lesson: bool, *, is_quiet: bool = False
    ) -> None:
        self.workplace = workplace
        self.words = words
        self.with_lesson = with_lesson
        self.place = "lesson" if with_lesson else "code"  # that shows on a narrow page
        kept = workplace.memory.get("layout")
        kept = kept if isinstance(kept, dict) else {}
        self.shares = {name: _share(name, kept.get(name)) for name in SPLITS}
        self.is_quiet = is_quiet and "rows" not in kept
        if self.is_quiet:
            self.shares["rows"] = QUIET
        full = kept.get("full")
        self.full = full if full in PARTS and (with_lesson or full != "lesson") else ""
        self._buttons: dict[str, ui.button] = {}
        self._bars: dict[str, ui.element] = {}

    def main(self) -> ui.element:
        """The element that holds all parts."""
        shares = [f"--lab-{name}: {share:g}" for name, share in self.shares.items()]
        self._main = ui.element("div").classes(self._classes()).style("; ".join(shares))
        return self._main

    def lines(self) -> None:
        """Make the lines between the parts."""
        for name, split in SPLITS.items():
            if name == "lesson" and not self.with_lesson:
                continue
            kind = "columns" if split.columns else "rows"
            said = self.words(f"split_{name}")
            bar = ui.element("div").classes(f"lab-split lab-split-{kind} lab-split-{name}")
            bar._props["data-split"] = json.dumps({"name": name, **split._asdict()})
            self._bars[name] = bar
            bar.props(
                f'role="separator" tabindex="0" aria-valuenow="{self.shares[name]:.0f}" '
                f'aria-valuemin="{split.least}" aria-valuemax="{split.most}" '
                f'aria-orientation="{"vertical" if split.columns else "horizontal"}" '
                f'aria-label="{said}" title="{self.words("split_hint")}"'
            )
        ui.on("lab-split", self._moved)
        ui.timer(0.1, lambda: ui.run_javascript(_DRAG % {"main": self._main.id}), once=True)

    def maximiser(self, part: str) -> None:
        """The button that shows one part in full, or all of them again."""
        button = ui.button(color=None, on_click=lambda: self.maximise(part))
        button.props("flat dense round size=sm").classes("lab-maximise")
        self._buttons[part] = button
        self._show_button(part)

    def maximise(self, part: str) -> None:
        """Show that part in full; all of them if it is already, or for ""."""
        self.full = "" if part == self.full else part
        self.workplace.remember(layout={"full": self.full})
        self._main.classes(replace=self._classes())
        for name in self._buttons:
            self._show_button(name)

    def go(self, place: str) -> None:
        """Show that place on a narrow page."""
        self.place = place
        self._main.classes(replace=self._classes())

    def speak(self) -> None:
        """The terminal has text: give it room."""
        if not self.is_quiet:
            return
        self.is_quiet = False
        if self.shares["rows"] == QUIET:
            self._set_share("rows", SPLITS["rows"].usual)
            self._bars["rows"].props(f'aria-valuenow="{self.shares["rows"]:.0f}"')
        self._main.classes(replace=self._classes())

    def uncover(self, *parts: str) -> None:
        """Let one of these parts be seen, if another one is shown in full."""
        if self.full and self.full not in parts:
            self.maximise("")

    def _classes(self) -> str:
        kind = "lab-with-lesson" if self.with_lesson else "lab-alone"
        full = f" lab-full lab-full-{self.full}" if self.full else ""
        quiet = " lab-quiet" if self.is_quiet else ""
        return f"lab-main {kind} lab-show-{self.place}{full}{quiet}"

    def _show_button(self, part: str) -> None:
        is_full = part == self.full
        said = self.words("restore" if is_full else "maximise")
        button = self._buttons[part]
        button.set_icon("close_fullscreen" if is_full else "open_in_full")
        button.props(f'aria-label="{said}" title="{said}" aria-pressed="{str(is_full).lower()}"')

    def _moved(self, event: Any) -> None:
        name, share = event.args if isinstance(event.args, list) else ("", 0)
        if name in SPLITS:
            self._set_share(name, _share(name, share))
            self.workplace.remember(layout={name: self.shares[name]})

    def _set_share(self, name: str, share: float) -> None:
        self.shares[name] = share
        self._main.style(f"--lab-{name}: {share:g}")


def _share(name: str, kept: Any) -> float:
    """A share that was remembered, if it is one; else the usual one."""
    split = SPLITS[name]
    if isinstance(kept, bool) or not isinstance(kept, (int, float)) or kept != kept:
        return split.usual
    return min(max(float(kept), split.least), split.most)
