"""Values as drawings: heat maps with the exact number on each cell, and the histogram.

A map of many cells is a picture: browsers take long for so many rectangles. Its colours follow the
theme all the same: for each colour a PNG says how much of it there is where, and is the mask of a
rectangle in that colour.
"""

from __future__ import annotations

import base64
import json
import math
import zlib

from antorcha.core.lazy import Array, np
from antorcha.inspector.forms import escaped
from antorcha.inspector.numbers import compact, rounded
from antorcha.inspector.tensor import svg
from antorcha.inspector.tensor.grids import LINE, Grid, HeatMap
from antorcha.inspector.tensor.images import png
from antorcha.inspector.tensor.values import Histogram
from antorcha.inspector.tensor.words import WordTable

WIDTH = 320.0
PAINTED = 200  # cells of a map that are rectangles; of more it is a picture
_LETTER = 6.1
_NUMBERED = 8  # up to so many columns, cells are wide and show their numbers
_STRONGEST = 0.55  # opacity below a number, which must stay readable

STYLE = (
    ".ant-inspect .heat{shape-rendering:crispEdges}"
    ".ant-inspect .ruled .heat{stroke:var(--ant-line);stroke-width:.5}"
    ".ant-inspect .dots{image-rendering:pixelated}"
    ".ant-inspect .frame{fill:none;stroke:var(--ant-line)}"
    ".ant-inspect .p{fill:var(--ant-positive)}.ant-inspect .n{fill:var(--ant-negative)}"
    ".ant-inspect .x{fill:var(--ant-nan)}"
    ".ant-inspect svg .number{font-size:10px;text-anchor:middle;pointer-events:none}"
    ".ant-inspect svg .tick{font-size:9px;fill:var(--ant-muted)}"
    ".ant-inspect .bar{fill:var(--ant-negative);fill-opacity:.8}"
    ".ant-inspect .axis{stroke:var(--ant-line)}"
)


class _ColourScale:
    """From a value to a colour: orange above zero and blue below it, the stronger the farther; of
    values of one sign, from the nearest to zero to the farthest."""

    def __init__(self, extent: tuple[float, float] | None, strongest: float) -> None:
        low, high = extent or (0.0, 0.0)
        self.least = 0.0
        self.most = max(abs(low), abs(high))
        if low > 0 or high < 0:
            self.least = min(abs(low), abs(high))
        self.strongest = strongest

    def paint(self, value: float) -> dict[str, object]:
        """The attributes of a cell of that value."""
        colour, opacity = self.mix(value)
        return {"class_": f"heat {colour}", "fill_opacity": opacity}

    def mix(self, value: float) -> tuple[str, float]:
        """The colour for that value (p, n or x), and how strong it is."""
        if not math.isfinite(value):
            share = 1.0 if math.isnan(value) else 0.6
            return "x", share * self.strongest
        if value == 0 or self.most == 0:
            return "p", 0.0
        span = self.most / 2 - self.least / 2  # (halves: a difference may overflow)
        share = (abs(value) / 2 - self.least / 2) / span if span else 1.0
        faint = 0.08 if self.least else 0.0
        share = faint + (1 - faint) * min(max(share, 0.0), 1.0)
        return "p" if value > 0 else "n", round(share * self.strongest, 3)


def draw_heat(heat: HeatMap, words: WordTable) -> str:
    """The matrices, each a drawing, and what the colours mean."""
    maps = [_draw_grid(grid, heat, words) for grid in heat.grids]
    legend = _legend(heat.extent) if heat.extent is not None else ""
    return svg.tag("div", "".join(maps), class_="ant-maps") + legend


def _draw_grid(grid: Grid, heat: HeatMap, words: WordTable) -> str:
    board = _MatrixBoard(grid)
    scale = _ColourScale(heat.extent, _STRONGEST if board.numbered else 1.0)
    if board.rows * board.columns > PAINTED:
        pieces = _masks(grid, board, scale)
        pieces += [_numbers(grid, k, board) for k in range(board.rows)]
    else:
        pieces = [_line(grid, k, board, scale) for k in range(board.rows)]
    pieces += _column_labels(grid, board) if grid.rows else []
    pieces.append(svg.tag("rect", x=board.left, y=board.top, width=board.columns * board.width,
                          height=board.rows * board.height, class_="frame"))  # fmt: skip
    size = board.left + board.columns * board.width + 1, board.top + board.rows * board.height + 1
    ruled = "ruled" if board.numbered else ""
    label = words("heat label")
    picture = svg.drawing("".join(pieces), *size, label, ruled, data_map=_where(grid, board))
    if not grid.prefix:
        return picture
    caption = svg.tag(
        "figcaption", escaped(f"[{', '.join(map(str, grid.prefix))}]"), class_="muted"
    )
    return svg.tag("figure", caption + picture)


def _where(grid: Grid, board: _MatrixBoard) -> str:
    """Where the cells are, and which elements they show, for a script that lights them: left, top,
    width and height of the first cell; the indices of matrix, rows and columns; cells in a line of
    a vector."""
    box = [round(each, 3) for each in (board.left, board.top, board.width, board.height)]
    known = {"box": box, "prefix": grid.prefix, "rows": grid.rows, "columns": grid.columns}
    return json.dumps({**known, "line": 0 if grid.rows else LINE}, separators=(",", ":"))


class _MatrixBoard:
    """Where the cells of a matrix are, and how large. Few columns are wide, with numbers."""

    def __init__(self, grid: Grid) -> None:
        self.rows = len(grid.texts)
        self.columns = max([len(line) for line in grid.texts], default=0)
        is_complex = any([text.endswith("j") for line in grid.texts for text in line])
        self.numbered = self.columns <= (_NUMBERED // 2 if is_complex else _NUMBERED)
        labels = [len(_row_label(grid, k)) for k in range(self.rows)]
        self.left = 4 + 6 * max(labels, default=0)
        self.top = 12 if grid.rows else 0
        widest = (72.0 if is_complex else 44.0) if self.numbered else 18.0
        self.width = min((WIDTH - self.left) / max(self.columns, 1), widest)
        self.height = 22.0 if self.numbered else self.width


def _line(grid: Grid, k: int, board: _MatrixBoard, scale: _ColourScale) -> str:
    """One row: its cells, its index and its numbers."""
    y, width, height = board.top + k * board.height, board.width, board.height
    pieces = []
    for j, (said, level) in enumerate(zip(grid.texts[k], grid.levels[k], strict=True)):
        x, index = board.left + j * width, _index(grid, k, j)
        title = f"{index}: {said}" if index else said
        pieces.append(svg.titled("rect", title, x=x, y=y, width=width, height=height,
                                 **scale.paint(level)))  # fmt: skip
    return "".join([*pieces, _numbers(grid, k, board)])


def _numbers(grid: Grid, k: int, board: _MatrixBoard) -> str:
    """What is written of one row: its index, and its numbers where cells are wide."""
    y, width, height = board.top + k * board.height, board.width, board.height
    pieces = []
    if _has_label(k, board.rows, board.numbered):
        pieces.append(svg.text(_row_label(grid, k), board.left - 3, y + height / 2 + 3,
                               class_="tick", text_anchor="end"))  # fmt: skip
    for j, said in enumerate(grid.texts[k] if board.numbered else ()):
        number = compact(said, int((width - 2) / _LETTER))
        x = board.left + (j + 0.5) * width
        pieces.append(svg.text(number, x, y + height / 2 + 3.5, class_="number mono"))
    return "".join(pieces)


def _masks(grid: Grid, board: _MatrixBoard, scale: _ColourScale) -> list[str]:
    """All cells, as a rectangle of each colour below a mask of how strong it is in which cell."""
    planes = {colour: np.zeros((board.rows, board.columns, 1), np.uint8) for colour in "pnx"}
    for k, line in enumerate(grid.levels):
        for j, level in enumerate(line):
            colour, opacity = scale.mix(level)
            planes[colour][k, j] = round(255 * opacity)
    place = {"x": board.left, "y": board.top, "width": board.columns * board.width,
             "height": board.rows * board.height}  # fmt: skip
    return [dots(plane, place, class_=colour) for colour, plane in planes.items() if plane.any()]


def dots(plane: Array, place: dict[str, float], **look: str) -> str:
    """A rectangle of that `look`, as strong in each cell as `plane` says (bytes), as SVG."""
    data = png(plane.reshape(*plane.shape[:2], 1))
    kind = "".join(look.values())[-9:].strip(")")
    name = f"ant-{kind}{len(data)}-{zlib.crc32(data):x}-{place['width']:.0f}"
    source = f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
    image = svg.tag("image", href=source, class_="dots", preserveAspectRatio="none", **place)
    mask = svg.tag("mask", image, id=name, maskUnits="userSpaceOnUse", **place)
    return mask + svg.tag("rect", mask=f"url(#{name})", **look, **place)


def _column_labels(grid: Grid, board: _MatrixBoard) -> list[str]:
    pieces, right = [], board.left + board.columns * board.width
    for j in range(board.columns):
        if _has_label(j, board.columns, board.numbered):
            label, middle = str(grid.columns[j]), board.left + (j + 0.5) * board.width
            middle = min(middle, right - 2.7 * len(label))  # kept inside of the drawing
            pieces.append(svg.text(label, middle, 9, class_="tick", text_anchor="middle"))
    return pieces


def _has_label(k: int, count: int, numbered: bool) -> bool:
    """Are there so few rows that each has its number? Else the first, the last, and every fifth."""
    return numbered or count <= 8 or k in (0, count - 1) or (k % 5 == 0 and k < count - 3)


def _row_label(grid: Grid, k: int) -> str:
    if grid.rows:
        return str(grid.rows[k])
    return str(grid.columns[k * LINE]) if len(grid.texts) > 1 else ""


def _index(grid: Grid, k: int, j: int) -> str:
    """The element's index as it is written; "" for a 0-dim tensor."""
    last = [grid.rows[k], grid.columns[j]] if grid.rows else []
    if not grid.rows and grid.columns:
        last = [grid.columns[k * LINE + j]]
    index = [*grid.prefix, *last]
    return str(index) if index else ""


def _legend(extent: tuple[float, float]) -> str:
    """A strip of the colours from the lowest value to the highest."""
    low, high = extent
    scale, count = _ColourScale(extent, 1.0), 24
    values = [low * (1 - k / (count - 1)) + high * (k / (count - 1)) for k in range(count)]
    if low == high:
        return ""
    cells = [svg.tag("rect", x=70 + 6 * k, y=2, width=6, height=9, **scale.paint(v))
             for k, v in enumerate(values)]  # fmt: skip
    ends = svg.text(rounded(low, 4), 66, 10, class_="tick", text_anchor="end") + svg.text(
        rounded(high, 4), 74 + 6 * count, 10, class_="tick"
    )
    return svg.drawing("".join(cells) + ends, 290, 13, f"{rounded(low, 4)} - {rounded(high, 4)}")


_HIGH, _BASE, _TALLEST = 84.0, 68.0, 60.0  # the histogram's height, its axis, its tallest bar


def draw_histogram(histogram: Histogram, words: WordTable) -> str:
    """Bars, with how many values each stands for when it is pointed at."""
    counts = histogram.counts
    most, width = max(max(counts), 1), WIDTH / len(counts)
    pieces = []
    for k, count in enumerate(counts):
        # The whole column can be pointed at, also above a low bar.
        pieces.append(svg.titled("rect", _bin(histogram, k, words), x=k * width, y=4, width=width,
                                 height=_BASE - 4, fill="transparent"))  # fmt: skip
        tall, bar = max(_TALLEST * count / most, 1.5), min(width - 2, 60.0)
        if count:
            pieces.append(svg.tag("rect", x=k * width + (width - bar) / 2, y=_BASE - tall,
                                  width=bar, height=tall, class_="bar",
                                  pointer_events="none"))  # fmt: skip
    pieces.append(svg.tag("path", d=f"M0,{_BASE:g}H{WIDTH:g}", class_="axis"))
    pieces += _whole_numbers(histogram) if histogram.integral else _ends(histogram)
    label = words("histogram label", low=rounded(histogram.low, 4), high=rounded(histogram.high, 4))
    return svg.drawing("".join(pieces), WIDTH, _HIGH, label)


def _tick(label: str, x: float, anchor: str) -> str:
    return svg.text(label, x, _BASE + 11, class_="tick", text_anchor=anchor)


def _whole_numbers(histogram: Histogram) -> list[str]:
    """Each bar's number, or as many as there is room for."""
    count, width = len(histogram.counts), WIDTH / len(histogram.counts)
    widest = 6 * max([len(str(int(histogram.low) + k)) for k in (0, count - 1)])
    every = max(math.ceil(widest / width), 1)
    return [_tick(str(int(histogram.low) + k), min((k + 0.5) * width, WIDTH - widest / 2), "middle")
            for k in range(0, count, every)]  # fmt: skip


def _ends(histogram: Histogram) -> list[str]:
    """The lowest and the highest value, and where zero is."""
    low, high = histogram.low, histogram.high
    if len(histogram.counts) == 1:
        return [_tick(rounded(low, 4), WIDTH / 2, "middle")]
    found = [_tick(rounded(low, 4), 0, "start"), _tick(rounded(high, 4), WIDTH, "end")]
    if low < 0 < high:
        zero = WIDTH * (-low / 2) / (high / 2 - low / 2)
        dashes = svg.tag("path", d=f"M{zero:.4g},2V{_BASE:g}", class_="axis",
                         stroke_dasharray="2 2")  # fmt: skip
        found.append(dashes + (_tick("0", zero, "middle") if 60 < zero < WIDTH - 60 else ""))
    return found


def _bin(histogram: Histogram, k: int, words: WordTable) -> str:
    low, high, count = histogram.low, histogram.high, len(histogram.counts)
    if histogram.integral:
        return words("bin one", low=int(low) + k, count=histogram.counts[k])
    edges = [low * (1 - j / count) + high * (j / count) for j in (k, k + 1)]
    return words("bin", low=rounded(edges[0]), high=rounded(edges[1]), count=histogram.counts[k])
