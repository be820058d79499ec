"""The grip of a number in the editor: dragged, or moved with the arrow keys.

It stands above the number under the pointer or the caret, and is a slider to those who hear the
page. Whole numbers go by 1, others by their last digit, rates (``lr``, ``eps``, ``1e-3``) from one
round number to the next, ten to a factor of ten. While it moves, the text in the editor changes,
and the server is told so (events ``begin``, ``move``, ``end``). A whole drag is one step of undo.
"""

from __future__ import annotations

import json

# Numbers: where they are, and what they are some steps away.
_NUMBERS = r"""
const MANTISSAS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
const RATE = /^(?:.*_)?(?:lr|eps|rate|tol|decay|learning_rate)$/i;
const NUMBER = /^(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
function numberAt(state, pos) {
  for (const side of [-1, 1]) {
    const node = CM.syntaxTree(state).resolveInner(pos, side);
    let {from, to} = node;
    if (node.name !== "Number" || !NUMBER.test(state.sliceDoc(from, to))) continue;
    const sign = state.sliceDoc(Math.max(from - 1, 0), from);
    if (node.parent?.name === "UnaryExpression" && sign === "-") from -= 1;
    const before = state.sliceDoc(state.doc.lineAt(from).from, from);
    const name = /(\w+)\s*(?::\s*\w+\s*)?=\s*$/.exec(before)?.[1] ?? "";
    const isRate = /e/i.test(state.sliceDoc(from, to)) || RATE.test(name);
    return {from, to, isRate};
  }
  return null;
}
function stepped(text, isRate, steps) {
  const clean = text.replaceAll("_", ""), value = Number(clean);
  if (!steps || !Number.isFinite(value)) return text;
  if (isRate && value !== 0) return byFactors(clean, value, steps);
  if (/e/i.test(clean)) return text;
  const digits = (clean.split(".")[1] ?? "").length;
  const unit = 10 ** digits, moved = Math.round(value * unit) + steps;
  if (!Number.isSafeInteger(moved)) return text;
  let found = (moved / unit).toFixed(digits);
  if (text.includes("_")) found = found.replace(/\B(?=(\d{3})+(?!\d))/g, "_");
  return clean.endsWith(".") ? found + "." : found;
}
function byFactors(text, value, steps) {
  const size = Math.abs(value);
  let power = Math.floor(Math.log10(size) + 1e-12), mantissa = size / 10 ** power;
  let place = MANTISSAS.findLastIndex(each => each <= mantissa * (1 + 1e-9));
  const isRound = Math.abs(MANTISSAS[place] - mantissa) < 1e-9 * mantissa;
  place += 10 * power + steps + (steps < 0 && !isRound ? 1 : 0);
  place = Math.min(Math.max(place, -120), 90);
  power = Math.floor(place / 10);
  mantissa = MANTISSAS[place - 10 * power];
  const sign = value < 0 ? "-" : "";
  const written = /^(.*)(e)([+-]?)(\d+)$/i.exec(text);
  if (written || power < -4) {
    const [letter, digits] = written ? [written[2], written[4].length] : ["e", 1];
    return sign + mantissa + letter + (power < 0 ? "-" : "") +
      String(Math.abs(power)).padStart(digits, "0");
  }
  const least = text.includes(".") ? 1 : 0;
  const needed = Math.max(-power, 0) + (Number.isInteger(mantissa) ? 0 : 1) - (power > 0 ? 1 : 0);
  return sign + (mantissa * 10 ** power).toFixed(Math.max(least, needed));
}
"""

# A drag: the text changes without history, which gets one step at the end, from before to now.
_DRAG = r"""
const silent = CM.Transaction.addToHistory.of(false);
const tell = what => emitEvent("lab-grip-" + given.editor, what);
class Drag {
  constructor(view, at) {
    this.view = view;
    this.at = {...at};
    this.before = this.now = view.state.sliceDoc(at.from, at.to);
    this.steps = 0;
    this.begun = false;
  }
  write(text, ...annotations) {
    const {from, to} = this.at;
    this.at.to = from + text.length;
    this.own = true;
    this.view.dispatch({changes: {from, to, insert: text}, annotations});
    this.own = false;
    this.now = text;
  }
  step(steps) {
    this.steps = steps;
    const text = stepped(this.before, this.at.isRate, steps);
    if (text === this.now) return;
    if (!this.begun) tell("begin");
    this.begun = true;
    this.write(text, silent);
    tell("move");
  }
  end(cancelled) {
    if (!this.begun) return;
    if (cancelled) this.step(0);
    const now = this.now;
    if (now !== this.before) {
      component.emitting = false;  // the server has the text
      this.write(this.before, silent);
      this.write(now, CM.isolateHistory.of("full"), CM.Transaction.userEvent.of("move.number"));
      component.emitting = true;
    }
    tell("end");
  }
}
"""

_GRIP = r"""
const PIXELS = 8;  // of a drag that are a step
const KEYS = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10};
class Grip {
  constructor(view) {
    this.view = view;
    this.at = this.under = this.drag = null;
    const dom = this.dom = document.createElement("div");
    dom.className = "lab-grip";
    dom.hidden = true;
    dom.tabIndex = 0;
    dom.textContent = "◂ ▸";
    for (const [name, value] of [["role", "slider"], ["aria-label", given.label],
      ["title", given.hint]]) dom.setAttribute(name, value);
    view.dom.append(dom);
    const on = (where, events) => {
      for (const [name, work] of Object.entries(events)) where.addEventListener(name, work);
    };
    on(view.scrollDOM, {
      mousemove: event => this.point(view.posAtCoords({x: event.clientX, y: event.clientY})),
      mouseleave: () => this.point(null),
      scroll: () => this.place(),
    });
    on(dom, {
      mouseenter: () => clearTimeout(this.leaving),
      mouseleave: () => this.point(null),
      pointerdown: event => this.take(event),
      pointermove: event => this.pull(event),
      pointerup: event => this.release(event),
      pointercancel: event => this.release(event),
      keydown: event => this.press(event),
      blur: () => { this.end(); this.choose(); },
    });
  }
  point(pos) {
    const found = pos === null ? null : numberAt(this.view.state, pos);
    clearTimeout(this.leaving);
    if (found) { this.under = found; this.choose(); }
    else if (this.under) this.leaving = setTimeout(() => this.leave(), 400);
  }
  leave() {
    this.under = null;
    this.choose();
  }
  update(update) {
    if (update.docChanged && !this.drag?.own) {
      this.drag = null;
      this.under = null;
    }
    if (update.docChanged || update.selectionSet || update.focusChanged || update.geometryChanged)
      queueMicrotask(() => this.choose());
  }
  choose() {
    if (this.drag) return;
    const {state} = this.view, isHere = this.view.hasFocus;
    if (this.dom === document.activeElement && this.at)
      this.at = numberAt(state, Math.min(this.at.from + 1, state.doc.length));
    else this.at = this.under ?? (isHere ? numberAt(state, state.selection.main.head) : null);
    this.place();
  }
  place() {
    if (this.drag?.pulled) return;
    this.view.requestMeasure({
      key: this,
      read: view => {
        const at = this.drag?.at ?? this.at;
        const [left, right] = at ? [view.coordsAtPos(at.from, 1), view.coordsAtPos(at.to, -1)] : [];
        if (!left || !right) return null;
        const all = view.dom.getBoundingClientRect(), box = view.scrollDOM.getBoundingClientRect();
        const middle = (left.left + right.right) / 2;
        if (middle < box.left || middle > box.right || left.top < box.top - 4 ||
          left.bottom > box.bottom + 4) return null;
        const size = matchMedia("(pointer: coarse)").matches ? [58, 32] : [36, 17];
        const above = left.top - all.top - size[1];
        return [Math.max(middle - all.left - size[0] / 2, 0),
          above < 0 ? left.bottom - all.top : above, view.state.sliceDoc(at.from, at.to)];
      },
      write: found => {
        this.dom.hidden = !found;
        if (!found) return;
        this.dom.style.left = found[0] + "px";
        this.dom.style.top = found[1] + "px";
        this.dom.setAttribute("aria-valuenow", Number(found[2].replaceAll("_", "")));
        this.dom.setAttribute("aria-valuetext", found[2]);
      },
    });
  }
  // ---- by pointer
  take(event) {
    if (!this.at || event.button) return;
    event.preventDefault();
    this.end();
    this.dom.setPointerCapture(event.pointerId);
    this.dom.classList.add("lab-grip-moved");
    this.drag = new Drag(this.view, this.at);
    this.drag.pulled = event.clientX;
  }
  pull(event) {
    if (!this.drag?.pulled || !this.dom.hasPointerCapture(event.pointerId)) return;
    this.wanted = Math.trunc((event.clientX - this.drag.pulled) / PIXELS);
    this.frame ??= requestAnimationFrame(() => this.follow());
  }
  follow() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    if (this.drag && this.wanted !== undefined) this.drag.step(this.wanted);
  }
  release(event) {
    if (!this.drag?.pulled) return;
    this.follow();
    this.dom.classList.remove("lab-grip-moved");
    this.end();
    this.choose();
  }
  // ---- by keys
  press(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) emitEvent("lab-run");
    else if (event.key === "Escape" && this.drag) this.end(true);
    else if (event.key === "Enter" || event.key === "Escape") { this.end(); this.view.focus(); }
    else if (!(event.key in KEYS)) return;
    else this.nudge(KEYS[event.key]);
    event.preventDefault();
    event.stopPropagation();
  }
  nudge(steps) {
    if (!this.at) return false;
    this.drag ??= new Drag(this.view, this.at);
    this.drag.step(this.drag.steps + steps);
    this.place();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => { this.end(); this.choose(); }, 700);
    return true;
  }
  end(cancelled) {
    clearTimeout(this.resting);
    const drag = this.drag;
    this.wanted = undefined;
    drag?.end(cancelled);
    this.drag = null;
    if (drag) this.at = {...this.at, ...drag.at};
    this.under = null;
  }
  destroy() { this.dom.remove(); }
}
const plugin = CM.ViewPlugin.fromClass(Grip);
const nudge = steps => view => {
  const grip = view.plugin(plugin);
  grip.under = null;
  if (!grip.drag) grip.at = numberAt(view.state, view.state.selection.main.head);
  return grip.nudge(steps);
};
view.dispatch({effects: CM.StateEffect.appendConfig.of([plugin, CM.Prec.high(CM.keymap.of([
  {key: "Ctrl-ArrowUp", run: nudge(1)}, {key: "Ctrl-ArrowDown", run: nudge(-1)},
]))])});
"""


def script(editor: int, label: str, hint: str) -> str:
    """JavaScript that adds the grip to the editor of that element number."""
    values = {"editor": editor, "label": label, "hint": hint}
    return f"""
const given = {json.dumps(values)};
const CM = await import("nicegui-codemirror");
const component = getElement(given.editor);
const view = component.editor || await component.editorPromise;
{_NUMBERS}{_DRAG}{_GRIP}"""
