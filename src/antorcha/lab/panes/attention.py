"""Attention in the page: a layer's heads, one at a time, and whom each token looks at."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from antorcha.lab.panes.model_picture import ModelPicture

# The token under the pointer, or with the focus, lights whom it looks at; so does a row of the
# square. What it looks at is said below the tokens.
_SCRIPT = """
const all = getHtmlElement(%d);
let shown = null;
function look(picture, token) {
  const tokens = [...picture.querySelectorAll("[data-token]")];
  const shares = JSON.parse(picture.dataset.shares), most = Math.max(...shares.flat());
  const row = token === null ? null : shares[token];
  tokens.forEach((each, k) => {
    each.style.setProperty("--share", row ? row[k] / most : 0);
    each.classList.toggle("lab-token-looks", k === token);
  });
  const line = picture.querySelector(".lab-square-row"), told = picture.querySelector(".lab-told");
  line.style.display = row ? "block" : "none";
  line.style.top = 100 * token / tokens.length + "%%";
  line.style.height = 100 / tokens.length + "%%";
  if (row) told.textContent = tokens[token].dataset.told;
  shown = token;
}
function rowAt(picture, event) {
  const square = picture.querySelector(".lab-square svg").getBoundingClientRect();
  const share = (event.clientY - square.top) / square.height;
  const count = picture.querySelectorAll("[data-token]").length;
  return share >= 0 && share < 1 ? Math.floor(share * count) : null;
}
function point(event) {
  const picture = event.target.closest?.(".lab-attention");
  if (!picture) return;
  const token = event.target.closest("[data-token]");
  if (token) look(picture, +token.dataset.token);
  else if (event.target.closest(".lab-square")) look(picture, rowAt(picture, event));
}
for (const name of ["pointermove", "pointerdown", "focusin"]) all.addEventListener(name, point);
const KEYS = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
all.addEventListener("keydown", event => {
  const step = KEYS[event.key], token = event.target.closest("[data-token]");
  if (!step || !token) return;
  event.preventDefault();
  (step > 0 ? token.nextElementSibling : token.previousElementSibling)?.focus();
});
new MutationObserver(() => {
  const picture = all.querySelector(".lab-attention");
  const count = picture?.querySelectorAll("[data-token]").length ?? 0;
  if (picture && shown !== null && shown < count) look(picture, shown);
}).observe(all, {childList: true});
"""


class AttentionPicture(ModelPicture):
    """Tokens, heads, and the square of shares."""

    kind = "attention"

    def build(self) -> None:
        words = self.words
        with ui.element("div").classes("lab-model-bar") as self._controls:
            self._layer = ui.select({}, label=words("attention_layers"), on_change=self._changed)
            self._head = ui.select({}, label=words("attention_heads"), on_change=self._changed)
            for each in (self._layer, self._head):
                each.props("dense outlined options-dense").classes("lab-input")
        self._filling = False
        super().build()
        script = _SCRIPT % self.picture.id
        ui.timer(0.1, lambda: ui.run_javascript(script), once=True)

    def request(self) -> dict[str, Any]:
        return {"layer": int(self._layer.value or 0), "head": int(self._head.value or 0)}

    def take(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        super().take(request, answer)
        layers, heads = answer.get("layers", 1), answer.get("heads", 1)
        words = self.words
        self._filling = True
        self._layer.set_options({k: words("attention_layer", k) for k in range(layers)},
                                value=answer.get("layer", 0))  # fmt: skip
        self._head.set_options({k: words("attention_head", k) for k in range(heads)},
                               value=answer.get("head", 0))  # fmt: skip
        self._filling = False
        self._layer.set_visibility(layers > 1)
        self._head.set_visibility(heads > 1)
        self._controls.set_visibility(layers > 1 or heads > 1)

    def _changed(self) -> None:
        if not self._filling and self.name:
            self.ask()
