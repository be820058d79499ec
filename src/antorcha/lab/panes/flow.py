"""The layers of a model: shapes, what they make of an example, and their weights on a click."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from antorcha.lab.panes.base import PromptSlider, View
from antorcha.lab.panes.model_picture import ModelPicture

DRAWING, RANDOM = "~", "?"  # as the child calls the pad's drawing, and an input that is made up

# Clicks say which layer and sheet; arrow keys lead along the sheets of a layer. A new picture takes
# the place of the one that had the focus: the focus goes to the same button in it.
SCRIPT = """
const all = getHtmlElement(%d);
const KEYS = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
let held = null;
const key = each => each && `[data-layer="${each.dataset.layer}"]` +
  (each.dataset.sheet ? `[data-sheet="${each.dataset.sheet}"]` : ":not([data-sheet])");
all.addEventListener("click", event => {
  const each = event.target.closest("[data-layer]");
  if (each) emitEvent("lab-flow-%d", [+each.dataset.layer, +(each.dataset.sheet ?? -1)]);
});
all.addEventListener("keydown", event => {
  const step = KEYS[event.key], each = event.target.closest("[data-layer]");
  if (!step || !each) return;
  event.preventDefault();
  const every = [...each.closest("li").querySelectorAll("[data-layer]")];
  every[every.indexOf(each) + step]?.focus();
});
all.addEventListener("focusin", event => held = key(event.target.closest("[data-layer]")));
document.addEventListener("focusin", event => { if (!all.contains(event.target)) held = null; });
new MutationObserver(() => {
  if (held && document.activeElement === document.body)
    all.querySelector(held)?.focus({preventScroll: true});
}).observe(all, {childList: true, subtree: true});
"""


class LayersPicture(ModelPicture):
    """Layers with weights that open on a click."""

    kind = "flow"

    def build(self) -> None:
        self._opened = -1, -1  # the layer whose weights are shown, and the sheet
        super().build()
        ui.on(f"lab-flow-{self.picture.id}", self._pressed)
        script = SCRIPT % (self.picture.id, self.picture.id)
        ui.timer(0.1, lambda: ui.run_javascript(script), once=True)

    def show(self, name: str, others: dict[str, list[str]]) -> None:
        if name != self.name:
            self._opened = -1, -1
        super().show(name, others)

    def request(self) -> dict[str, Any]:
        layer, sheet = self._opened
        return {"layer": layer, "sheet": sheet}

    def _pressed(self, event: Any) -> None:
        """A layer or one of its sheets was clicked: open its weights, or close them."""
        pressed = int(event.args[0]), int(event.args[1])
        is_open = pressed == self._opened or (pressed[1] < 0 and pressed[0] == self._opened[0])
        self._opened = (-1, -1) if is_open else pressed
        self.ask()


class FlowPicture(LayersPicture):
    """The layers with an example of the program's as their input."""

    def build(self) -> None:
        words = self.words
        with ui.element("div").classes("lab-example") as self._controls:
            self._input = ui.select({}, label=words("flow_of"), on_change=self._changed)
            self._input.props("dense outlined options-dense").classes("lab-input")
            self._slider = PromptSlider(min=0, max=1, step=1, value=0, on_change=self._changed)
            self._slider.props(f'aria-label="{words("flow_example")}"')
            self._label = ui.label().classes("lab-example-is").props('aria-live="polite"')
        self._filling = False
        super().build()

    def request(self) -> dict[str, Any]:
        chosen = {"input": self._input.value or "", "index": int(self._slider.value or 0)}
        return {**super().request(), **chosen}

    def take(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        super().take(request, answer)
        if "inputs" not in answer:
            return
        inputs, last, label = answer["inputs"], answer["count"] - 1, answer["label"]
        self._filling = True
        options = {each: self.words("flow_random") if each == RANDOM else each for each in inputs}
        self._input.set_options(options, value=answer["input"])
        self._slider.props(f"max={max(last, 1)}")
        self._filling = False
        self._input.set_visibility(len(inputs) > 1 or inputs == [RANDOM])
        self._slider.set_visibility(last > 0)
        self._label.set_visibility(last > 0)
        self._label.set_text(self.words("flow_example_is", request["index"], label or "–"))
        self._controls.set_visibility(last > 0 or len(inputs) > 1 or inputs == [RANDOM])

    def _changed(self) -> None:
        if not self._filling and self.name:
            self.ask()


class DrawingFlow(LayersPicture):
    """The layers with the pad's drawing as their input."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self.drawing: list[list[list[float]]] = []

    def request(self) -> dict[str, Any]:
        return {**super().request(), "input": DRAWING, "drawing": self.drawing}
