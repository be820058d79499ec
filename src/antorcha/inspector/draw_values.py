"""Values as drawings: heat maps with the exact number on each cell, and the histogram."""

from __future__ import annotations

import math
from html import escape

from antorcha.inspector import svg
from antorcha.inspector.grids import LINE, Grid, HeatMap
from antorcha.inspector.numbers import compact, rounded
from antorcha.inspector.values import Histogram
from antorcha.inspector.words import Words

WIDTH = 320.0
_LETTER = 6.1
_NUMBERED = 8  # up to so many columns, cells are wide and show their numbers
_STRONGEST = 0.55  # opacity below a number, which must stay readable

STYLE = (
    ".ant .heat{shape-rendering:crispEdges}"
    ".ant .ruled .heat{stroke:var(--ant-line);stroke-width:.5}"
    ".ant .p{fill:var(--ant-positive)}.ant .n{fill:var(--ant-negative)}"
    ".ant .x{fill:var(--ant-nan)}"
    ".ant svg .number{font-size:10px;text-anchor:middle;pointer-events:none}"
    ".ant svg .tick{font-size:9px;fill:var(--ant-muted)}"
    ".ant .bar{fill:var(--ant-negative);fill-opacity:.8}"
    ".ant .axis{stroke:var(--ant-line)}"
)


class _Scale:
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
        if not math.isfinite(value):
            share = 1.0 if math.isnan(value) else 0.6
            return {"class_": "heat x", "fill_opacity": share * self.strongest}
        if value == 0 or self.most == 0:
            return {"class_": "heat p", "fill_opacity": 0.0}
        span = self.most / 2 - self.least / 2  # (halves: a difference may overflow)
        share = (abs(value) / 2 - self.least / 2) / span if span else 1.0
        faint = 0.08 if self.least else 0.0
        share = faint + (1 - faint) * min(max(share, 0.0), 1.0)
        return {"class_": f"heat {'p' if value > 0 else 'n'}",
                "fill_opacity": round(share * self.strongest, 3)}  # fmt: skip


def draw_heat(heat: HeatMap, words: Words) -> str:
    """The matrices, each a drawing, and what the colours mean."""
    maps = [_draw_grid(grid, heat, words) for grid in heat.grids]
    legend = _legend(heat.extent) if heat.extent is not None else ""
    return svg.tag("div", "".join(maps), class_="ant-maps") + legend


def _draw_grid(grid: Grid, heat: HeatMap, words: Words) -> str:
    columns = max([len(line) for line in grid.texts], default=0)
    is_vector = not grid.rows
    numbered = columns <= _NUMBERED
    gutter = 4 + 6 * max([len(_row_label(grid, k)) for k in range(len(grid.texts))], default=0)
    top = 0 if is_vector else 12
    width = min((WIDTH - gutter) / max(columns, 1), 44.0 if numbered else 18.0)
    height = 22.0 if numbered else width
    scale = _Scale(heat.extent, _STRONGEST if numbered else 1.0)
    pieces = []
    for k, (texts, levels) in enumerate(zip(grid.texts, grid.levels, strict=True)):
        y = top + k * height
        if _has_label(k, len(grid.texts), numbered):
            label = _row_label(grid, k)
            pieces.append(svg.text(label, gutter - 3, y + height / 2 + 3, class_="tick",
                                   text_anchor="end"))  # fmt: skip
        for j, (said, level) in enumerate(zip(texts, levels, strict=True)):
            x = gutter + j * width
            title = f"{_index(grid, k, j)}: {said}" if _index(grid, k, j) else said
            pieces.append(svg.titled("rect", title, x=x, y=y, width=width, height=height,
                                     **scale.paint(level)))  # fmt: skip
            if numbered:
                number = compact(said, int((width - 2) / _LETTER))
                pieces.append(svg.text(number, x + width / 2, y + height / 2 + 3.5,
                                       class_="number mono"))  # fmt: skip
    if not is_vector:
        for j in range(columns):
            if _has_label(j, columns, numbered):
                middle = gutter + (j + 0.5) * width
                pieces.append(svg.text(str(grid.columns[j]), middle, 9, class_="tick",
                                       text_anchor="middle"))  # fmt: skip
    size = gutter + columns * width + 1, top + len(grid.texts) * height + 1
    ruled = "ruled" if numbered else ""
    picture = svg.drawing("".join(pieces), *size, words("heat label"), ruled)
    if not grid.prefix:
        return picture
    caption = svg.tag("figcaption", escape(f"[{', '.join(map(str, grid.prefix))}]"), class_="muted")
    return svg.tag("figure", caption + picture)


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
    if not grid.rows and grid.columns != (0,):
        last = [grid.columns[k * LINE + j]]
    index = [*grid.prefix, *last]
    return str(index) if index else ""


def _legend(extent: tuple[float, float]) -> str:
    """A strip of the colours from the lowest value to the highest."""
    low, high = extent
    scale, count = _Scale(extent, 1.0), 24
    values = [low * (1 - k / (count - 1)) + high * (k / (count - 1)) for k in range(count)]
    if low == high:
        return ""
    cells = [svg.tag("rect", x=70 + 6 * k, y=2, width=6, height=9, **scale.paint(v))
             for k, v in enumerate(values)]  # fmt: skip
    ends = svg.text(rounded(low, 4), 66, 10, class_="tick", text_anchor="end") + svg.text(
        rounded(high, 4), 74 + 6 * count, 10, class_="tick"
    )
    return svg.drawing("".join(cells) + ends, 290, 13, f"{rounded(low, 4)} - {rounded(high, 4)}")


def draw_histogram(histogram: Histogram, words: Words) -> str:
    """Bars, with how many values each stands for when it is pointed at."""
    low, high, counts = histogram.low, histogram.high, histogram.counts
    height, base, tallest = 84.0, 68.0, max(max(histogram.counts), 1)
    width = WIDTH / len(counts)
    pieces = []
    for k, count in enumerate(counts):
        tall = max(60 * count / tallest, 1.5) if count else 0
        # The whole column can be pointed at, also above a low bar.
        pieces.append(svg.titled("rect", _bin(histogram, k, words), x=k * width, y=4, width=width,
                                 height=base - 4, fill="transparent"))  # fmt: skip
        if tall:
            bar = min(width - 2, 60.0)
            pieces.append(svg.tag("rect", x=k * width + (width - bar) / 2, y=base - tall, width=bar,
                                  height=tall, class_="bar", pointer_events="none"))  # fmt: skip
    pieces.append(svg.tag("path", d=f"M0,{base:g}H{WIDTH:g}", class_="axis"))
    ends = rounded(low, 4), rounded(high, 4)
    if histogram.integral:
        every = -(-len(counts) // 10)
        pieces += [svg.text(str(int(low) + k), (k + 0.5) * width, base + 11, class_="tick",
                            text_anchor="middle")
                   for k in range(0, len(counts), every)]  # fmt: skip
    else:
        pieces.append(svg.text(ends[0], 0, base + 11, class_="tick"))
        if len(counts) > 1:
            pieces.append(svg.text(ends[1], WIDTH, base + 11, class_="tick", text_anchor="end"))
        if low < 0 < high:
            zero = WIDTH * (-low / 2) / (high / 2 - low / 2)
            pieces.append(svg.tag("path", d=f"M{zero:.4g},2V{base:g}", class_="axis",
                                  stroke_dasharray="2 2"))  # fmt: skip
            if 60 < zero < WIDTH - 60:
                pieces.append(svg.text("0", zero, base + 11, class_="tick", text_anchor="middle"))
    label = words("histogram label", low=ends[0], high=ends[1])
    return svg.drawing("".join(pieces), WIDTH, height, label)


def _bin(histogram: Histogram, k: int, words: Words) -> str:
    low, high, count = histogram.low, histogram.high, len(histogram.counts)
    if histogram.integral:
        return words("bin one", low=int(low) + k, count=histogram.counts[k])
    edges = [low * (1 - j / count) + high * (j / count) for j in (k, k + 1)]
    return words("bin", low=rounded(edges[0]), high=rounded(edges[1]), count=histogram.counts[k])
