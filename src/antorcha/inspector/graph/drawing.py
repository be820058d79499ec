"""Draws a graph: boxes placed level by level, the innermost groups first, as one SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from antorcha.inspector import theme
from antorcha.inspector.forms import escaped, shape_text
from antorcha.inspector.graph.layered import Edge, EdgeLine, GraphBox, Placed, place
from antorcha.inspector.graph.nest import TOP, Item, Nest
from antorcha.inspector.graph.text import (
    Lines,
    folded_lines,
    group_lines,
    leaf_lines,
    leaf_title,
    operation_lines,
    operation_title,
)

_NARROW = 330.0  # a column of a page
_PAD, _HEAD = 12.0, 26.0  # around what is in a group, and above it for its title
_NAME, _SMALL = 7.9, 7.0  # width of a character: of a name, of the rest
_LEAVES = 12  # of one operation that are drawn one by one


@dataclass
class _PlacedGroup:
    """What stands inside of one group, placed."""

    placed: Placed
    items: list[tuple[Item, GraphBox, Lines, str]]  # with the text and the title of each
    title: str = ""
    ports: dict[Item, float] = field(default_factory=dict)  # x from the middle


def draw(
    nest: Nest, opened: set[int], limit: int, top: int = TOP, heading: Sequence[str] = (),
    styled: bool = True,
) -> str:  # fmt: skip
    """The group `top` (by itself the whole graph) as an SVG, the groups in `opened` open. A level
    of more than `limit` boxes is drawn without its middle, which becomes one box. Not `styled`, it
    needs STYLE around it."""
    levels: dict[int, _PlacedGroup] = {}
    wanted = [serial for serial in opened if top in _above(nest, serial) and serial != top]
    for serial in sorted(wanted, key=lambda s: -nest.groups[s].depth):
        levels[serial] = _lay_out(nest, serial, levels, limit, alone=False)
    levels[top] = _lay_out(nest, top, levels, limit, alone=True)
    if any(item[0] == "fold" for level in levels.values() for item, *_ in level.items):
        heading = [*heading, nest.facts.say("crowded")]
    return _svg(levels, top, heading, styled)


def _above(nest: Nest, serial: int) -> list[int]:
    """A group and those around it."""
    found = [serial]
    while serial != TOP:
        serial = nest.groups[serial].parent
        found.append(serial)
    return found


# ------------------------------------------------------------------------------------------ places
def _lay_out(
    nest: Nest, serial: int, levels: dict[int, _PlacedGroup], limit: int, alone: bool
) -> _PlacedGroup:  # fmt: skip
    group = nest.groups[serial]
    folded = _folded(nest, serial, limit)
    many: dict[Item, list[Item]] = {}
    for item, fold in folded.items():
        many.setdefault(fold, []).append(item)
    items: dict[Item, int] = {}
    boxes: list[GraphBox] = []
    texts: list[tuple[Lines, str]] = []

    def number(item: Item) -> int:
        item = folded.get(item, item)
        if item not in items:
            items[item] = len(boxes)
            lines, title = _texts(nest, item, many.get(item, []), alone)
            texts.append((lines, title))
            inner = levels.get(item[1]) if item[0] == "group" else None
            boxes.append(_box(item, lines, inner))
        return items[item]

    for item in group.items:
        number(item)
    edges: dict[Any, Edge] = {}
    for tail, head, value in group.links:
        a, b = number(tail), number(head)
        if a == b:
            continue
        leave = _port(levels, tail, ("out", value))
        arrive = _port(levels, head, ("in", value))
        exit_ = value if leave is not None else value[2] if tail[0] == "operation" else None
        edges.setdefault((a, b, exit_, arrive), Edge(a, b, exit_, leave or 0.0, arrive))
    placed = place(boxes, list(edges.values()))
    result = [(item, boxes[k], *texts[k]) for item, k in items.items()]
    ports = {
        item: boxes[k].x - placed.width / 2 for item, k in items.items() if item[0] in ("in", "out")
    }
    kind = "" if group.title == group.kind else f" {group.kind}"
    return _PlacedGroup(placed, result, f"{group.title}{kind}" if serial != TOP else "", ports)


def _port(levels: dict[int, _PlacedGroup], item: Item, port: Item) -> float | None:
    """Where on an open group's border a value passes."""
    level = levels.get(item[1]) if item[0] == "group" else None
    return None if level is None else level.ports.get(port)


def _folded(nest: Nest, serial: int, limit: int) -> dict[Item, Item]:
    """The items of a level that are not drawn by themselves, each with the box that stands for it.

    Of the many leaves of one operation there is a box; and where there is too much altogether the
    middle in time is a box. (What runs in one stretch of time can be one box: no edge leads out of
    it and back.)
    """
    group = nest.groups[serial]
    uses: dict[Item, set[Item]] = {}
    for tail, head, _ in group.links:
        if tail[0] == "leaf":
            uses.setdefault(tail, set()).add(head)
    folded: dict[Item, Item] = {}
    of_one: dict[Item, list[Item]] = {}
    for leaf, heads in uses.items():
        if len(heads) == 1:
            of_one.setdefault(next(iter(heads)), []).append(leaf)
    for head, leaves in of_one.items():
        if len(leaves) > _LEAVES:
            folded.update(dict.fromkeys(leaves[_LEAVES // 2 :], ("fold", head)))
    timed = [item for item in group.items if item[0] != "leaf"]
    if len(group.items) - len(folded) <= limit:
        return folded
    timed.sort(key=lambda item: item[1] if item[0] == "operation" else nest.groups[item[1]].first)
    shown = max(4, limit * len(timed) // len(group.items))
    middle = timed[shown // 3 : len(timed) - (shown - shown // 3)]
    folded.update(dict.fromkeys(middle, ("fold", "middle")))
    for leaf, heads in uses.items():
        if all(folded.get(head) == ("fold", "middle") for head in heads):
            folded[leaf] = ("fold", "middle")
    return folded


def _texts(nest: Nest, item: Item, many: list[Item], alone: bool) -> tuple[Lines, str]:
    """The text of an item's box, and its title; `many` is what it stands for."""
    facts = nest.facts
    kind, what = item[0], item[1]
    if kind == "operation":
        op = facts.operations[what]
        return operation_lines(op, facts.say), operation_title(op, facts.say)
    if kind == "leaf":
        return leaf_lines(facts.leaves[what]), leaf_title(facts.leaves[what], facts.say)
    if kind == "group":
        group = nest.groups[what]
        count = facts.say.count("operation", group.operations)
        title = f"{group.path or group.title} {group.kind}, {count}"
        return group_lines(group, facts), title
    if kind == "fold":
        names = [facts.operations[k].name for k in _operations_in(nest, many)]
        leaves = sum(each[0] == "leaf" for each in many)
        return folded_lines(names, facts.say, leaves), facts.say("folded")
    return (_port_lines(nest, kind, what), "") if alone else ([], "")


def _operations_in(nest: Nest, items: list[Item]) -> list[int]:
    groups = {item[1] for item in items if item[0] == "group"}
    found = [item[1] for item in items if item[0] == "operation"]
    if groups:
        found += [k for k, chain in enumerate(nest.chains) if groups.intersection(chain)]
    return found


def _port_lines(nest: Nest, kind: str, value: Any) -> Lines:
    """Where a group that is drawn by itself gets a value from, or gives one to."""
    what, index, result = value
    if what == "leaf":
        leaf = nest.facts.leaves[index]
        return [("dim", f"{leaf.name} {shape_text(leaf.shape)}")]
    made = nest.facts.operations[index].results[result]
    names = f"{', '.join(made.names)} " if made.names else ""
    way = "from outside" if kind == "in" else "to outside"
    return [("dim", nest.facts.say(way, what=f"{names}{shape_text(made.shape)}"))]


def _box(item: Item, lines: Lines, inner: _PlacedGroup | None) -> GraphBox:
    if inner is not None:
        width = max(inner.placed.width, len(inner.title) * _NAME) + 2 * _PAD
        return GraphBox(width, inner.placed.height + _HEAD + _PAD)
    pinned = {"in": "top", "out": "bottom"}.get(item[0], "")
    if not lines:
        return GraphBox(1.0, 0.0, pinned)
    widest = max([len(text) * (_NAME if style == "name" else _SMALL) for style, text in lines])
    return GraphBox(widest + 18, 9.0 + 16.0 * len(lines), pinned)


# --------------------------------------------------------------------------------------------- SVG
def _svg(levels: dict[int, _PlacedGroup], top: int, heading: Sequence[str], styled: bool) -> str:
    level = levels[top]
    label = escaped(heading[0] if heading else "autograd graph")
    # A small graph is not to be made wide by the words above it: narrow pages cut them off.
    across = max(level.placed.width, _NARROW)
    words = [
        (piece, "plain" if n == 0 else "dim")
        for n, line in enumerate(heading)
        for piece in textwrap.wrap(line, int(across / _SMALL))
    ]
    head = 8.0 + 18.0 * len(words)
    width = max([level.placed.width, *[len(text) * _SMALL for text, _ in words]]) + 2 * _PAD
    height = level.placed.height + head + 2 * _PAD
    out: list[str] = []
    for n, (text, style) in enumerate(words):
        out.append(f'<text class="{style}" x="{_PAD}" y="{18 * n + 20}">{escaped(text)}</text>')
    left = (width - level.placed.width) / 2
    titles: list[str] = []  # over the lines
    waiting = [(top, left, head + _PAD)]
    while waiting:
        serial, dx, dy = waiting.pop()
        level = levels[serial]
        out += [_line(line, dx, dy) for line in level.placed.lines]
        if serial != top:
            out += [_through(item, box, dx, dy) for item, box, *_ in level.items]
        for item, box, lines, title in level.items:
            x, y = box.x - box.width / 2 + dx, box.y + dy
            inner = levels.get(item[1]) if item[0] == "group" else None
            if inner is None:
                out.append(_drawn(item, box, lines, title, x, y))
            else:
                out.append(_frame(box, title, x, y))
                titles.append(_frame_title(inner.title, x, y))
                room = (box.width - inner.placed.width) / 2
                waiting.append((item[1], x + room, y + _HEAD))
    style = theme.style(STYLE) if styled else ""
    return (
        '<svg class="ant ant-graph" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="{label}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f'{style}<rect class="back" width="100%" height="100%" rx="6"/>'
        f"{''.join(out + titles)}</svg>"
    )


def _line(line: EdgeLine, dx: float, dy: float) -> str:
    x0, x1 = line.x0 + dx, line.x1 + dx
    y0, bend0, bend1, y1 = line.y0 + dy, line.bend0 + dy, line.bend1 + dy, line.y1 + dy
    middle = (bend0 + bend1) / 2
    tip = 5.0 if line.arrow else 0.0
    path = f"M{x0:.1f} {y0:.1f}V{bend0:.1f}"
    if abs(x0 - x1) < 0.5:
        path += f"V{y1 - tip:.1f}"
    else:
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {bend1 - tip:.1f}"
        path += f"V{y1 - tip:.1f}" if y1 > bend1 else ""
    arrow = f'<path class="tip" d="M{x1:.1f} {y1:.1f}l-4 -7h8z"/>' if line.arrow else ""
    return f'<path class="edge" d="{path}"/>{arrow}'


def _through(port: Item, box: GraphBox, dx: float, dy: float) -> str:
    """From a group's border to a port in it."""
    if port[0] not in ("in", "out"):
        return ""
    way = -_HEAD if port[0] == "in" else _PAD
    return f'<path class="edge" d="M{box.x + dx:.1f} {box.y + dy:.1f}v{way}"/>'


def _drawn(item: Item, box: GraphBox, lines: Lines, title: str, x: float, y: float) -> str:
    if not lines:
        return ""
    out = [f'<g class="{item[0]}">']
    if title:
        out.append(f"<title>{escaped(title)}</title>")
    if item[0] not in ("in", "out"):
        round_ = 10 if item[0] == "leaf" else 4
        rect = (
            f'x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="{round_}"/>'
        )
        out.append(f'<rect class="under" {rect}<rect {rect}')  # (the colour is not opaque)
    for n, (style, text) in enumerate(lines):
        at = f'x="{x + box.width / 2:.1f}" y="{y + 17 + 16 * n:.1f}"'
        out.append(f'<text class="{style} mid" {at}>{escaped(text)}</text>')
    return "".join(out) + "</g>"


def _frame(box: GraphBox, tip: str, x: float, y: float) -> str:
    return (
        f'<g class="frame"><title>{escaped(tip)}</title><rect x="{x:.1f}" y="{y:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="8"/></g>'
    )


def _frame_title(title: str, x: float, y: float) -> str:
    return f'<text class="name over" x="{x + 10:.1f}" y="{y + 17:.1f}">{escaped(title)}</text>'


STYLE = (
    ".ant svg.ant-graph,svg.ant-graph{max-width:none;margin:0 auto;height:auto}"
    f".ant-graph text{{font:11.5px {theme.MONO};fill:var(--ant-fg)}}"
    ".ant-graph text.name{font-size:13px;font-weight:600}"
    ".ant-graph text.dim{fill:var(--ant-muted)}.ant-graph text.good{fill:var(--ant-good)}"
    ".ant-graph text.bad{fill:var(--ant-bad);font-weight:600}"
    ".ant-graph text.mid{text-anchor:middle}.ant-graph rect{stroke-width:1.2}"
    ".ant-graph .back{fill:var(--ant-bg)}"
    ".ant-graph .edge{fill:none;stroke:var(--ant-muted);stroke-width:1.2}"
    ".ant-graph .tip{fill:var(--ant-muted)}"
    ".ant-graph g rect.under{fill:var(--ant-bg);fill-opacity:1;stroke:none}"
    ".ant-graph .operation rect{fill:var(--ant-negative);stroke:var(--ant-negative)}"
    ".ant-graph .leaf rect{fill:var(--ant-good);stroke:var(--ant-good)}"
    ".ant-graph .group rect{fill:var(--ant-nan);stroke:var(--ant-nan);stroke-width:2}"
    ".ant-graph .frame rect{fill:var(--ant-nan);stroke:var(--ant-nan);stroke-dasharray:5 3}"
    ".ant-graph .fold rect{fill:var(--ant-accent);stroke:var(--ant-accent);stroke-dasharray:2 3}"
    ".ant-graph g rect{fill-opacity:.12;stroke-opacity:.75}.ant-graph .frame rect{fill-opacity:.03}"
    ".ant-graph text.over{stroke:var(--ant-bg);stroke-width:4;paint-order:stroke}"
)
"""The rules of these pictures, besides the theme's."""
