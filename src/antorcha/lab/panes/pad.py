"""A pad to draw on, with the mouse, a finger or the keys; the model reads it on every move."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from nicegui import background_tasks, ui

from antorcha.lab.panes.base import View, trusted
from antorcha.lab.panes.flow import DrawingFlow
from antorcha.lab.panes.model_picture import ModelPicture, shown

SIDE = 1000  # units on a side of the pad
POINTS = 2000  # that a drawing may have
RESTING = 0.08  # seconds without a move after which the layers are drawn

_SCRIPT = """
const given = %s, SIDE = given.side, STEP = 40, NS = "http://www.w3.org/2000/svg";
const all = getHtmlElement(given.id);
const make = (name, values, parent) => {
  const found = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(values)) found.setAttribute(key, value);
  parent.append(found);
  return found;
};
const board = make("svg", {viewBox: `0 0 ${SIDE} ${SIDE}`, class: "lab-pad-board"}, all);
const cursor = make("circle", {r: 26, class: "lab-pad-cursor"}, board);
const strokes = [];
let line = null, pen = [SIDE / 2, SIDE / 4], isDown = false, drawing = null;
const limit = value => Math.min(Math.max(Math.round(value), 0), SIDE);
const count = () => strokes.reduce((sum, each) => sum + each.length, 0);
function tell() { emitEvent("lab-pad-" + given.id, strokes); }
function show() {
  line?.setAttribute("points", strokes.at(-1).map(each => each.join(",")).join(" "));
  cursor.setAttribute("cx", pen[0]);
  cursor.setAttribute("cy", pen[1]);
  cursor.classList.toggle("lab-pad-down", isDown);
}
function begin(point) {
  strokes.push([point]);
  line = make("polyline", {class: "lab-pad-line"}, board);
  board.append(cursor);
  add(point);
}
function add(point) {
  const last = strokes.at(-1);
  if (count() < given.points && (last.length < 2 || last.at(-1).join() !== point.join()))
    last.push(point);
  pen = point;
  show();
}
function undo() {
  isDown = false;
  if (!strokes.length) return;
  strokes.pop();
  board.querySelectorAll("polyline").item(strokes.length)?.remove();
  line = null;
  show();
  tell();
}
function wipe() { while (strokes.length > 1) { strokes.pop(); line?.remove();
  line = board.querySelectorAll("polyline").item(strokes.length - 1); }
  undo(); }
function at(event) {
  const box = board.getBoundingClientRect();
  return [limit((event.clientX - box.left) / box.width * SIDE),
    limit((event.clientY - box.top) / box.height * SIDE)];
}
board.addEventListener("pointerdown", event => {
  if (event.button || drawing !== null) return;
  event.preventDefault();
  all.focus({preventScroll: true});
  all.classList.remove("lab-pad-keys");
  board.setPointerCapture(event.pointerId);
  drawing = event.pointerId;
  isDown = false;
  begin(at(event));
  tell();
});
board.addEventListener("pointermove", event => {
  if (event.pointerId !== drawing) return;
  const every = event.getCoalescedEvents?.() ?? [];
  for (const each of every.length ? every : [event]) add(at(each));
  tell();
});
for (const name of ["pointerup", "pointercancel"])
  board.addEventListener(name, event => { if (event.pointerId === drawing) drawing = null; });
const MOVES = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
all.addEventListener("keydown", event => {
  const move = MOVES[event.key], step = event.shiftKey ? STEP / 4 : STEP;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (move) {
    const next = [limit(pen[0] + move[0] * step), limit(pen[1] + move[1] * step)];
    if (isDown) { add(next); tell(); } else { pen = next; show(); }
  } else if (event.key === " ") {
    isDown = !isDown;
    if (isDown) { begin(pen); tell(); } else show();
  } else if (event.key === "Backspace") undo();
  else if (event.key === "Delete") wipe();
  else return;
  all.classList.add("lab-pad-keys");
  event.preventDefault();
});
const tools = all.parentElement;
tools.querySelector(".lab-pad-undo").addEventListener("click", undo);
tools.querySelector(".lab-pad-wipe").addEventListener("click", wipe);
show();
"""


class PadPicture(ModelPicture):
    """The pad, what the model reads, and what its layers make of it."""

    kind = "pad"

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._drawing: list[list[list[float]]] = []
        self._flow = DrawingFlow(view)
        self._rest: asyncio.Task[None] | None = None

    def build(self) -> None:
        words = self.words
        with ui.element("div").classes("lab-pad-all"):
            with ui.element("div").classes("lab-pad-left"):
                pad = ui.element("div").classes("lab-pad")
                hint = words("pad_hint")
                pad.props(f'tabindex="0" role="application" aria-label="{words("pad")}. {hint}"')
                with ui.element("div").classes("lab-pad-tools"):
                    self._tool("undo", "pad_undo", "lab-pad-undo")
                    self._tool("delete_outline", "pad_clear", "lab-pad-wipe")
            with ui.element("div").classes("lab-pad-right"):
                self._said = ui.label().classes("lab-pad-said").props('aria-live="polite"')
                self.picture = trusted(classes="lab-pad-read")
        ui.label(words("pad_hint")).classes("lab-caption")
        self._layers = ui.switch(words("pad_layers"), value=True, on_change=self._draw_layers)
        self._layers.props("dense")
        with ui.element("div") as self._below:
            self._flow.build()
        ui.on(f"lab-pad-{pad.id}", self._moved)
        given = json.dumps({"id": pad.id, "side": SIDE, "points": POINTS})
        ui.timer(0.1, lambda: ui.run_javascript(_SCRIPT % given), once=True)

    def _tool(self, icon: str, key: str, class_: str) -> None:
        button = ui.button(icon=icon, color=None).classes(class_)
        label = self.words(key)
        button.props(f'flat dense round aria-label="{label}" title="{label}"')

    def show(self, name: str, others: dict[str, list[str]]) -> None:
        super().show(name, others)
        self._draw_layers()

    def request(self) -> dict[str, Any]:
        return {"drawing": self._drawing}

    def take(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        self._said.set_text(answer.get("said", ""))
        self.picture.set_content(shown(answer, self.words, request["name"]))

    def _moved(self, event: Any) -> None:
        """Something was drawn, or taken back."""
        self._drawing = event.args if isinstance(event.args, list) else []
        self.ask()
        if self._rest is not None:
            self._rest.cancel()
        self._rest = background_tasks.create(self._at_rest())

    async def _at_rest(self) -> None:
        await asyncio.sleep(RESTING)
        self._draw_layers()

    def _draw_layers(self) -> None:
        is_shown = bool(self._layers.value and self._drawing and self.name in
                        self.others.get("flow", []))  # fmt: skip
        self._below.set_visibility(is_shown)
        if is_shown:
            self._flow.drawing = self._drawing
            self._flow.show(self.name, self.others)
