"""The storage as a drawing: a row of cells, broken into lines, with the way the view takes.

Above the cells an arrow for each dim says how far its stride leads. In each cell that the view
reads stands its number in the view's order, and below them hops lead from each to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from antorcha.inspector import svg
from antorcha.inspector.facts import TensorFacts
from antorcha.inspector.memory import Cell, Gap, MemoryPicture, Step
from antorcha.inspector.numbers import compact, grouped
from antorcha.inspector.words import Words

WIDTH = 320.0
_INDEX, _CELL, _HOPS = 13, 34, 17  # heights: numbers above, the cell, hops below
_LINE = _INDEX + _CELL + _HOPS
_ARROW = 15  # height of one arrow above the first line
_LETTER = 6.1  # width of a letter of the cells' text

STYLE = (
    ".ant .cell{fill:var(--ant-bg);stroke:var(--ant-line)}"
    ".ant .read{fill:var(--ant-soft);stroke:var(--ant-accent)}"
    ".ant svg .value{font-size:10px;text-anchor:middle}"
    ".ant svg .at{font-size:8.5px;text-anchor:middle;fill:var(--ant-muted)}"
    ".ant svg .order{font-size:9px;text-anchor:middle;fill:var(--ant-accent);font-weight:700}"
    ".ant .hop{fill:none;stroke:var(--ant-accent);stroke-width:1;opacity:.75}"
    ".ant .arrow{fill:none;stroke:var(--ant-negative);stroke-width:1.3}"
    ".ant .tip{fill:var(--ant-negative)}"
    ".ant svg .dim{font-size:10px;fill:var(--ant-negative)}"
)


def draw(facts: TensorFacts, drawn: MemoryPicture, words: Words) -> str:
    """The drawing as SVG."""
    slots: list[Cell | Gap] = []
    for part in drawn.parts:
        slots += [part] if isinstance(part, Gap) else part
    board = _Board(per_line(drawn), _steps(drawn, slots))
    pieces = []
    places: dict[int, int] = {}  # of a cell's position the slot
    for k, slot in enumerate(slots):
        if isinstance(slot, Gap):
            pieces.append(_gap(slot, k, board, words))
        else:
            places[slot.position] = k
            pieces.append(_cell(slot, k, board, facts, words))
    pieces += [_hop(a, b, board) for a, b in _path(slots)]
    for level, step in enumerate(board.steps):
        pieces.append(_arrow(step, places[drawn.first], places[step.target], level, board, words))
    lines = math.ceil(len(slots) / board.per_line)
    label = words("memory label", name=facts.name or words("this tensor"))
    return svg.drawing("".join(pieces), WIDTH, board.top + lines * _LINE, label, "ant-memory")


def per_line(drawn: MemoryPicture) -> int:
    """Cells in a line: so many that a stride of the tensor leads to the line below, if one can."""
    if not drawn.whole:
        return 8
    strides = [step.stride for step in drawn.steps if 3 <= step.stride <= 10]
    if strides and drawn.cells > 10:
        return max(strides) * (10 // max(strides))
    return max(drawn.cells, 5) if drawn.cells <= 10 else 8


def _steps(drawn: MemoryPicture, slots: list[Cell | Gap]) -> list[Step]:
    """The strides that can be drawn: both ends are there. The longest is the highest."""
    shown = {slot.position for slot in slots if isinstance(slot, Cell)}
    found = [s for s in drawn.steps if s.stride and {drawn.first, s.target} <= shown]
    return sorted(found, key=lambda step: step.stride)


@dataclass
class _Board:
    """Where slots are."""

    per_line: int
    steps: list[Step]

    @property
    def cell(self) -> float:
        return WIDTH / self.per_line

    @property
    def top(self) -> int:
        return 6 + _ARROW * len(self.steps)

    def corner(self, slot: int) -> tuple[float, float]:
        """The upper left corner of a slot's cell."""
        line, column = divmod(slot, self.per_line)
        return column * self.cell, self.top + line * _LINE + _INDEX

    def middle(self, slot: int) -> tuple[float, float]:
        """The middle of its upper edge."""
        x, y = self.corner(slot)
        return x + self.cell / 2, y


def _cell(cell: Cell, slot: int, board: _Board, facts: TensorFacts, words: Words) -> str:
    (x, y), (middle, _) = board.corner(slot), board.middle(slot)
    is_read = cell.order is not None
    letters = int((board.cell - 3) / _LETTER)
    pieces = [
        svg.titled("rect", _says(cell, facts, words), x=x + 0.75, y=y, width=board.cell - 1.5,
                   height=_CELL, rx=2, class_="read" if is_read else "cell"),
        svg.text(compact(str(cell.position), letters), middle, y - 3, class_="at mono"),
    ]  # fmt: skip
    if cell.value:
        low = y + (14 if is_read else 20)
        value = compact(cell.value, letters)
        pieces.append(svg.text(value, middle, low, class_="value mono", pointer_events="none"))
    if is_read:
        number = compact(str(cell.order), letters)
        pieces.append(svg.text(number, middle, y + 28, class_="order", pointer_events="none"))
    return "".join(pieces)


def _says(cell: Cell, facts: TensorFacts, words: Words) -> str:
    """What a cell says when it is pointed at."""
    name = facts.name or words("this tensor")
    said = words("cell title", cell=cell.position)
    said += f": {cell.value}" if cell.value else ""
    if cell.index is None:
        return f"{said}; {words('not read', name=name)}"
    said += f"; {words('read as', index=list(cell.index), order=cell.order)}"
    return said + (words("read times", times=cell.readers) if cell.readers > 1 else "")


def _gap(gap: Gap, slot: int, board: _Board, words: Words) -> str:
    middle, y = board.middle(slot)
    count = compact(str(gap.count), int(board.cell / _LETTER))
    says = words("not shown", count=grouped(gap.count))
    dots = svg.text("⋯", middle, y + 18, class_="value muted")
    number = svg.text(count, middle, y + 28, class_="at")
    return svg.tag("g", svg.tag("title", says) + dots + number)


def _path(slots: list[Cell | Gap]) -> list[tuple[int, int]]:
    """Slots that follow each other in the view's order."""
    orders = {slot.order: k for k, slot in enumerate(slots)
              if isinstance(slot, Cell) and slot.order is not None}  # fmt: skip
    return [(orders[n], orders[n + 1]) for n in sorted(orders) if n + 1 in orders]


def _hop(a: int, b: int, board: _Board) -> str:
    """From one cell to the next below them; only within a line: elsewhere the numbers tell it."""
    if a // board.per_line != b // board.per_line:
        return ""
    (x1, y), (x2, _) = board.middle(a), board.middle(b)
    low = y + _CELL + 1
    depth = 4 + 2 * min(abs(a - b), 9)  # (the curve comes half as deep)
    ends = f"M{x1:g},{low:g}C{x1:g},{low + depth:g} {x2:g},{low + depth:g} {x2:g},{low:g}"
    return svg.tag("path", d=ends, class_="hop")


def _arrow(step: Step, a: int, b: int, level: int, board: _Board, words: Words) -> str:
    """From the first cell to the next along a dim, over the cells or down to another line."""
    (x1, y1), (x2, y2) = board.middle(a), board.middle(b)
    top = board.top - 2 - _ARROW * level
    y1, y2 = y1 - _INDEX + 1, y2 - _INDEX + 1
    if a // board.per_line == b // board.per_line and y1 == board.top + 1:
        way = f"M{x1:g},{y1:g}V{top - 4:g}H{x2:g}V{y2 - 3:g}"
    else:  # down between the lines
        way = f"M{x1:g},{y1:g}V{top - 4:g}H{x2 - 6:g}V{y2 - 3:g}H{x2:g}"
    tip = f"M{x2 - 3:g},{y2 - 4:g}h6l-3,5z"
    said = words("step", dim=step.dim, stride=grouped(step.stride))
    at = min(max(x1, x2) + 4, WIDTH - 62)
    label = svg.text(said, at, top - 1, class_="dim")
    return svg.tag("path", d=way, class_="arrow") + svg.tag("path", d=tip, class_="tip") + label
