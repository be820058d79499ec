"""Hovering lights: the element under the pointer, in the memory and in the values alike.

A drawing of a tensor says where its elements lie (strides and offset), its map of values which
elements it shows, its memory which cells. Pointing at any of them lights all that is the same cell
of the memory: of a broadcast tensor that are several elements. With keys: Tab leads to a map, the
arrow keys from element to element.
"""

from __future__ import annotations

import json

from antorcha.lab.words import LabWords

_SCRIPT = """
const NS = "http://www.w3.org/2000/svg", WHERE = ".ant-inspect[data-strides]", MOST = 8;
let root = null, shown = null;
const numbers = text => text ? text.split(",").map(Number) : [];
const fill = (text, values) => text.replace(/{(\\d)}/g, (_, k) => values[k]);
function read(svg) {
  const map = JSON.parse(svg.dataset.map), count = map.columns.length;
  map.across = map.line ? Math.min(map.line, Math.max(count, 1)) : count;
  map.down = map.line ? Math.ceil(Math.max(count, 1) / map.line) : map.rows.length;
  map.index = (k, j) => {
    if (!map.line) return [...map.prefix, map.rows[k], map.columns[j]];
    if (!count) return k || j ? null : [...map.prefix];
    const at = map.columns[k * map.line + j];
    return at === undefined ? null : [...map.prefix, at];
  };
  return map;
}
function cellOf(within, index) {
  const strides = numbers(within.dataset.strides);
  return index.reduce((sum, each, d) => sum + each * strides[d], +within.dataset.offset);
}
function clear() {
  if (!root) return;
  for (const each of root.querySelectorAll(".lab-lit-cell, .lab-lit-said")) each.remove();
  for (const each of root.querySelectorAll(".lab-lit")) each.classList.remove("lab-lit");
  root = shown = null;
}
function light(within, cell, index, near) {
  const what = cell + ":" + index;
  if (within === root && what === shown) return;
  clear();
  root = within;
  shown = what;
  for (const each of root.querySelectorAll(`[data-cell="${cell}"]`)) each.classList.add("lab-lit");
  const same = [];
  for (const svg of root.querySelectorAll("svg[data-map]")) {
    const map = read(svg), [left, top, width, height] = map.box;
    for (let k = 0; k < map.down; k++) for (let j = 0; j < map.across; j++) {
      const at = map.index(k, j);
      if (!at || cellOf(root, at) !== cell) continue;
      same.push(at);
      const rect = document.createElementNS(NS, "rect");
      const place = {x: left + j * width, y: top + k * height, width, height};
      for (const [name, value] of Object.entries(place)) rect.setAttribute(name, value);
      const isHere = String(at) === String(index);
      rect.setAttribute("class", "lab-lit-cell" + (isHere ? " lab-lit-here" : ""));
      svg.append(rect);
    }
  }
  const list = same.slice(0, MOST).map(each => "[" + each.join(", ") + "]").join(" ");
  const said = document.createElement("p");
  said.className = "lab-lit-said";
  said.setAttribute("aria-live", "polite");
  said.textContent = index ? fill(given.element, [index.join(", "), cell])
    : same.length ? fill(given.cell, [list + (same.length > MOST ? " …" : ""), cell])
    : fill(given.free, [cell]);
  near.closest("svg").after(said);
}
function at(event, svg) {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal, map = read(svg);
  const x = (event.clientX - box.left) / box.width * view.width - map.box[0];
  const y = (event.clientY - box.top) / box.height * view.height - map.box[1];
  const j = Math.floor(x / map.box[2]), k = Math.floor(y / map.box[3]);
  return j >= 0 && k >= 0 && j < map.across && k < map.down ? map.index(k, j) : null;
}
function point(event) {
  const within = event.target.closest?.(WHERE);
  const cell = within && event.target.closest("[data-cell]");
  const svg = within && event.target.closest("svg[data-map]");
  const index = svg && at(event, svg);
  if (cell) light(within, +cell.dataset.cell, null, cell);
  else if (index) light(within, cellOf(within, index), index, svg);
  else if (!document.activeElement?.matches("svg[data-map]")) clear();
}
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);
const KEYS = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]};
const places = new WeakMap();
function go(svg, move) {
  const map = read(svg), [k, j] = places.get(svg) ?? [0, 0];
  const next = [Math.min(Math.max(k + move[0], 0), map.down - 1),
    Math.min(Math.max(j + move[1], 0), map.across - 1)];
  const index = map.index(...next);
  if (!index) return;
  places.set(svg, next);
  const within = svg.closest(WHERE);
  light(within, cellOf(within, index), index, svg);
}
document.addEventListener("focusin", event => {
  if (event.target.matches?.(WHERE + " svg[data-map]")) go(event.target, [0, 0]);
});
document.addEventListener("focusout", event => {
  if (event.target.matches?.(WHERE + " svg[data-map]")) clear();
});
document.addEventListener("keydown", event => {
  if (!(event.key in KEYS) || !event.target.matches?.(WHERE + " svg[data-map]")) return;
  event.preventDefault();
  go(event.target, KEYS[event.key]);
});
let asked = 0;
new MutationObserver(() => {
  asked ||= requestAnimationFrame(() => {
    asked = 0;
    for (const svg of document.querySelectorAll(WHERE + " svg[data-map]:not([tabindex])"))
      svg.setAttribute("tabindex", "0");
  });
}).observe(document.body, {childList: true, subtree: true});
"""


def script(words: LabWords) -> str:
    """JavaScript that lights what is pointed at, on the whole page."""
    given = {
        "element": words("lit_element", "{0}", "{1}"),
        "cell": words("lit_cell", "{0}", "{1}"),
        "free": words("lit_free", "{0}"),
    }
    return f"const given = {json.dumps(given)};\n{_SCRIPT}"
