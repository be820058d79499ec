"""The storage as a drawing: a row of cells, broken into lines, with the way the view takes.

Above the cells an arrow for each dim says how far its stride leads; dims that lead to the same cell
share one. In each cell that the view reads stands its number in the view's order, and below them
hops lead from each to the next.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from antorcha.inspector.numbers import compact, ending, grouped
from antorcha.inspector.tensor import svg
from antorcha.inspector.tensor.facts import TensorFacts
from antorcha.inspector.tensor.memory import Gap, MemoryCell, MemoryPicture
from antorcha.inspector.tensor.words import WordTable

WIDTH = 320.0
_INDEX, _CELL, _HOPS = 13, 34, 17  # heights: numbers above, the cell, hops below
_LINE = _INDEX + _CELL + _HOPS
_ARROW = 16  # height of one arrow above the first line
_MARK = 18  # height of a mark above another line
_FLAG = 11  # and of each further label above it
_LETTER = 6.1  # width of a letter of the cells' text
_DIGIT = 6.4  # width of a digit of the order
_HALF = 2.9  # half of that of a letter of an arrow's label

STYLE = (
    ".ant-inspect .cell{fill:var(--ant-bg);stroke:var(--ant-line)}"
    ".ant-inspect .read{fill:var(--ant-soft);stroke:var(--ant-accent)}"
    ".ant-inspect svg .value{font-size:10px;text-anchor:middle}"
    ".ant-inspect svg .at{font-size:8.5px;text-anchor:middle;fill:var(--ant-muted)}"
    ".ant-inspect svg .order{font-size:9px;text-anchor:middle;fill:var(--ant-accent);"
    "font-weight:700}"
    ".ant-inspect .hop{fill:none;stroke:var(--ant-accent);stroke-width:1;opacity:.75}"
    ".ant-inspect .arrow{fill:none;stroke:var(--ant-negative);stroke-width:1.3}"
    ".ant-inspect .tip{fill:var(--ant-negative)}"
    ".ant-inspect svg .dim{font-size:10px;text-anchor:middle;fill:var(--ant-negative);"
    "stroke:var(--ant-panel);stroke-width:3px;paint-order:stroke}"
)


def draw(facts: TensorFacts, drawn: MemoryPicture, words: WordTable) -> str:
    """The drawing as SVG."""
    slots: list[MemoryCell | Gap] = []
    for part in drawn.parts:
        slots += [part] if isinstance(part, Gap) else part
    most = 5 if facts.dtype.startswith("complex") else 10
    board = _Board(slots, per_line(drawn, most), drawn)
    pieces = [
        svg.tag("path", d=_hop(a, b, board), class_="hop") for a, b in _path(slots, board.per_line)
    ]
    for k, slot in enumerate(slots):
        if isinstance(slot, Gap):
            pieces.append(_gap(slot, k, board, words))
        else:
            pieces.append(_cell(slot, k, board, facts, words))
    shown = [_arrow(way, level, board, words) for level, way in enumerate(board.over)]
    shown += [_mark(way, board, words) for way in board.below]
    pieces += [path for path, _ in shown] + [said for _, said in shown]  # words lie on all lines
    label = words("memory label", name=facts.name or words("this tensor"))
    return svg.drawing("".join(pieces), WIDTH, board.height, label, "ant-memory")


def per_line(drawn: MemoryPicture, most: int) -> int:
    """Cells in a line: so many that a stride of the tensor leads to the line below, if one can."""
    usual = min(8, most)
    if not drawn.whole:
        return usual
    strides = [step.stride for step in drawn.steps if 3 <= step.stride <= most]
    if strides and drawn.cells > most:
        return max(strides) * (most // max(strides))
    return max(drawn.cells, 5) if drawn.cells <= most else usual


class _Way(NamedTuple):
    """Where one more along a dim leads, or along several dims of the same stride."""

    dims: tuple[int, ...]
    stride: int
    target: int

    def says(self, words: WordTable) -> str:
        key = "step" if len(self.dims) == 1 else "steps"
        return words(key, dim=", ".join(map(str, self.dims)), stride=grouped(self.stride))


def _ways(drawn: MemoryPicture) -> list[_Way]:
    """The shortest first."""
    steps = sorted(drawn.steps, key=lambda step: (step.stride, step.dim))
    groups = [list(group) for _, group in groupby(steps, key=lambda step: step.stride)]
    return [_Way(tuple([s.dim for s in g]), g[0].stride, g[0].target) for g in groups]


class _Board:
    """Where slots are. ``over``: strides that lead to a cell in the line of the first cell, the
    shortest first; ``below``: those that lead to another line, which has room for marks above."""

    def __init__(self, slots: list[MemoryCell | Gap], per_line: int, drawn: MemoryPicture) -> None:
        self.per_line, self.cell = per_line, WIDTH / per_line
        self.slots = {s.position: k for k, s in enumerate(slots) if isinstance(s, MemoryCell)}
        self.first = self.slots.get(drawn.first, -1)
        ways = [w for w in _ways(drawn) if w.target in self.slots and self.first >= 0]
        line = self.first // per_line
        self.over = [w for w in ways if self.slots[w.target] // per_line == line]
        self.below = [w for w in ways if w not in self.over]
        self.flags: dict[_Way, int] = {}  # of marks above one line, the rightmost is the lowest
        marked: dict[int, int] = {}
        for way in reversed(self.below):
            at = self.slots[way.target] // per_line
            self.flags[way] = marked[at] = marked.get(at, -1) + 1
        self.tops: list[float] = []
        self.height = 2.0
        for k in range(-(-len(slots) // per_line)):
            self.height += _ARROW * len(self.over) + 3 if k == line and self.over else 0
            self.height += _MARK + _FLAG * marked[k] if k in marked else 0
            self.tops.append(self.height)
            self.height += _LINE

    def middle(self, slot: int) -> tuple[float, float]:
        """The middle of a cell's upper edge."""
        line, column = divmod(slot, self.per_line)
        return (column + 0.5) * self.cell, self.tops[line] + _INDEX


def _cell(cell: MemoryCell, slot: int, board: _Board, facts: TensorFacts, words: WordTable) -> str:
    middle, y = board.middle(slot)
    is_read = cell.order is not None
    letters, left = int((board.cell - 6) / _LETTER), middle - board.cell / 2 + 0.75
    pieces = [
        svg.titled("rect", _says(cell, facts, words), x=left, y=y, width=board.cell - 1.5,
                   height=_CELL, rx=2, class_="read" if is_read else "cell",
                   data_cell=cell.position),
    ]  # fmt: skip
    position = str(cell.position)
    if len(position) <= letters:
        pieces.append(svg.text(position, middle, y - 3, class_="at mono"))
    elif slot % board.per_line == 0 or cell.position - 1 not in board.slots:  # over its neighbours
        pieces.append(svg.text(position, left, y - 3, class_="at mono", style="text-anchor:start"))
    if cell.value:
        low = y + (14 if is_read else 20)
        value = compact(cell.value, letters)
        pieces.append(svg.text(value, middle, low, class_="value mono", pointer_events="none"))
    if cell.order is not None:
        number = ending(cell.order, int((board.cell - 4) / _DIGIT))
        pieces.append(svg.text(number, middle, y + 28, class_="order", pointer_events="none"))
    return "".join(pieces)


def _says(cell: MemoryCell, facts: TensorFacts, words: WordTable) -> str:
    """What a cell says when it is pointed at."""
    name = facts.name or words("this tensor")
    said = words("cell title", cell=cell.position)
    said += f": {cell.value}" if cell.value else ""
    if cell.index is None:
        return f"{said}; {words('not read', name=name)}" if cell.readers == 0 else said
    said += f"; {words('read as', index=list(cell.index), order=cell.order)}"
    return said + (words("read times", times=cell.readers) if (cell.readers or 0) > 1 else "")


def _gap(gap: Gap, slot: int, board: _Board, words: WordTable) -> str:
    middle, y = board.middle(slot)
    count = compact(str(gap.count), int(board.cell / _LETTER))
    says = words("not shown", count=grouped(gap.count))
    dots = svg.text("⋯", middle, y + 18, class_="value muted")
    number = svg.text(count, middle, y + 28, class_="at")
    return svg.tag("g", svg.tag("title", says) + dots + number)


def _path(slots: list[MemoryCell | Gap], per_line: int) -> list[tuple[int, int]]:
    """Slots of a line that follow each other in the view's order (from one line to another the
    numbers tell it)."""
    orders = {slot.order: k for k, slot in enumerate(slots)
              if isinstance(slot, MemoryCell) and slot.order is not None}  # fmt: skip
    pairs = [(orders[n], orders[n + 1]) for n in sorted(orders) if n + 1 in orders]
    return [(a, b) for a, b in pairs if a // per_line == b // per_line]


def _hop(a: int, b: int, board: _Board) -> str:
    """From one cell to the next, below them."""
    (x1, y), (x2, _) = board.middle(a), board.middle(b)
    low = y + _CELL + 1
    depth = 4 + 2 * min(abs(a - b), 9)  # (the curve comes half as deep)
    return f"M{x1:g},{low:g}C{x1:g},{low + depth:g} {x2:g},{low + depth:g} {x2:g},{low:g}"


def _arrow(way: _Way, level: int, board: _Board, words: WordTable) -> tuple[str, str]:
    """Over the cells, from the first one to the next along a dim: the lines, and the words."""
    (x1, y), (x2, _) = board.middle(board.first), board.middle(board.slots[way.target])
    if not way.stride:  # back to where it begins
        x1, x2 = x1 - 7, x2 + 7
    y -= _INDEX - 1
    top = y - 6 - _ARROW * level
    path = svg.tag("path", d=f"M{x1:g},{y:g}V{top:g}H{x2:g}V{y - 3:g}", class_="arrow")
    said = way.says(words)
    wide = 2 * _HALF * len(said)
    if x2 - x1 >= wide:
        label = svg.text(said, (x1 + x2) / 2, top - 3, class_="dim")
    elif x2 + 5 + wide < WIDTH:  # no room above the arrow: at its right
        label = svg.text(said, x2 + 5, top + 3, class_="dim", style="text-anchor:start")
    else:
        label = svg.text(said, x1 - 5, top + 3, class_="dim", style="text-anchor:end")
    return path + _tip(x2, y), label


def _mark(way: _Way, board: _Board, words: WordTable) -> tuple[str, str]:
    """Over a cell in another line, that a stride leads there; of several each on its own level."""
    x, y = board.middle(board.slots[way.target])
    y -= _INDEX - 1
    said = way.says(words)
    low = y - 7 - _FLAG * board.flags[way]
    path = svg.tag("path", d=f"M{x:g},{low + 2:g}V{y - 3:g}", class_="arrow") + _tip(x, y)
    half = _HALF * len(said)  # kept inside of the drawing
    return path, svg.text(said, min(max(x, half), WIDTH - half), low, class_="dim")


def _tip(x: float, y: float) -> str:
    return svg.tag("path", d=f"M{x - 3:g},{y - 4:g}h6l-3,5z", class_="tip")
