"""Arrays as sheets: what a layer makes of one example, its channels beside each other.

A sheet is drawn by opacity, orange above zero and blue below it, as the inspector's heat maps are;
all sheets of an array are one picture, with a button over each.
"""

from __future__ import annotations

from antorcha.core.lazy import Array, np
from antorcha.inspector.tensor import draw_values, svg

SIDE = 64  # cells of a sheet on a side, at most
SHEETS = 16  # that are shown of an array
LINE = 32  # cells of a vector in one line
_COLOURS = ("positive", "negative", "nan")


def as_sheets(values: Array) -> Array:
    """An array as sheets (sheets, rows, columns), of a batch the first example; a vector is one
    sheet, broken into lines."""
    values = np.asarray(values).astype(np.float64)
    while values.ndim > 3 or (values.ndim > 1 and values.shape[0] == 1 and values.ndim != 3):
        values = values[0]
    if values.ndim == 3 and values.shape[0] == 1 and values.shape[1] > 1:
        return values
    if values.ndim < 2 or values.shape[:2] == (1, 1):
        return _lines(values.reshape(-1))[None]
    return values if values.ndim == 3 else values[None]


def _lines(vector: Array) -> Array:
    if vector.size <= LINE:
        return vector[None]
    rows = -(-vector.size // LINE)
    filled = np.zeros(rows * LINE)
    filled[: vector.size] = vector
    return filled.reshape(rows, LINE)


def draw(
    sheets: Array,
    label: str,
    *,
    width: float = 300.0,
    per_line: int = 8,
    most: int = SHEETS,
    extent: float | None = None,
    cell: float = 14.0,
) -> tuple[str, list[tuple[float, float, float, float]]]:
    """The picture as SVG, and where each sheet is in it (left, top, width, height, in percent).

    Args:
        sheets: as `as_sheets` gives them.
        label: for those who hear the page.
        width: of the picture, at most.
        per_line: sheets beside each other, at most.
        most: sheets that are drawn.
        extent: the value that has the full colour; the largest, if it is not given.
        cell: the width of a cell, at most.
    """
    shown = sheets[:most, :: -(-sheets.shape[1] // SIDE), :: -(-sheets.shape[2] // SIDE)]
    count, rows, columns = shown.shape
    beside = min(count, per_line)
    below = -(-count // beside)
    gap = 0 if count == 1 else max(round(columns / 12), 1)
    cells = np.zeros((below * (rows + gap) - gap, beside * (columns + gap) - gap))
    paper = np.zeros(cells.shape, bool)
    places = []
    for k, sheet in enumerate(shown):
        top, left = (rows + gap) * (k // beside), (columns + gap) * (k % beside)
        cells[top : top + rows, left : left + columns] = sheet
        paper[top : top + rows, left : left + columns] = True
        places.append((left, top))
    cell = min(width / cells.shape[1], cell)
    high, wide = cells.shape[0] * cell, cells.shape[1] * cell
    pieces = [
        svg.tag("rect", x=left * cell, y=top * cell, width=columns * cell, height=rows * cell,
                style="fill:var(--ant-panel);stroke:var(--ant-line);stroke-width:0.6")
        for left, top in places
    ]  # fmt: skip
    area = {"x": 0.0, "y": 0.0, "width": wide, "height": high}
    for colour, strength in zip(_COLOURS, _strengths(cells, extent)):
        if strength.any():
            pieces.append(draw_values.dots(strength, area, style=f"fill:var(--ant-{colour})"))
    picture = svg.drawing("".join(pieces), wide, high, label)
    unit = 100 / cells.shape[1], 100 / cells.shape[0]
    found = [
        (left * unit[0], top * unit[1], columns * unit[0], rows * unit[1]) for left, top in places
    ]
    return picture, found


def _strengths(cells: Array, extent: float | None) -> list[Array]:
    """How strong each colour is in each cell, as bytes: above zero, below, no number."""
    finite = np.isfinite(cells)
    known = np.where(finite, cells, 0.0)
    most = float(np.abs(known).max()) if extent is None else extent
    share = np.clip(known / most, -1, 1) if most > 0 else known * 0
    levels = np.maximum(share, 0), np.maximum(-share, 0), ~finite
    return [np.rint(255 * level).astype(np.uint8) for level in levels]
