"""The values in rows and columns, for the heat map: all of a small tensor, some of a large one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from antorcha.core.lazy import Array, np
from antorcha.inspector.numbers import exact
from antorcha.inspector.reading import Elements

LINE = 16  # elements of a vector in one row of its map


@dataclass(frozen=True)
class Grid:
    """One matrix of values.

    ``prefix`` is the index of the matrix in the leading dims. ``rows`` and ``columns`` are the
    indices shown; a number has neither, a vector has ``rows`` () and its elements one after the
    other, ``LINE`` in a row. ``texts`` are exact; ``levels`` the same as floats for colours (a
    complex number's magnitude).
    """

    prefix: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    texts: tuple[tuple[str, ...], ...]
    levels: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class HeatMap:
    """Some matrices of a tensor, and of how many they are. ``steps`` are those of rows and columns:
    above 1 not every one is shown. ``extent``: of all that is shown, the finite low and high."""

    grids: tuple[Grid, ...]
    of: int
    steps: tuple[int, ...]
    extent: tuple[float, float] | None


def heat_map(elements: Elements, cells: int = 1024, grids: int = 4) -> HeatMap:
    """At most so many cells, in at most so many matrices: the first ones."""
    layout = elements.layout
    lead, last = layout.shape[:-2], layout.shape[-2:]
    of = math.prod(lead)
    shown = min(of, grids)
    steps = _steps(last, cells // max(shown, 1), layout.ndim == 1)
    found = []
    for k in range(shown if layout.numel else 0):
        prefix = tuple([int(i) for i in np.unravel_index(k, lead)]) if lead else ()
        ones = (1,) * len(lead)
        at = prefix + (0,) * len(last)
        counts = [n - i for n, i in zip(lead, prefix, strict=True)]
        block = elements.thinned((*[max(n, 1) for n in counts], *steps), at)
        found.append(_grid(block.reshape(block.shape[len(ones) :]), prefix, steps))
    finite: list[float] = [x for g in found for row in g.levels for x in row if math.isfinite(x)]
    if layout.dtype.kind in "iub":
        finite = [int(x) for x in finite]
    return HeatMap(tuple(found), of, steps, (min(finite), max(finite)) if finite else None)


def shortened(heat: HeatMap, cells: int = 160) -> HeatMap:
    """The first matrix alone, thinned to about so many cells."""
    if not heat.grids or (len(heat.grids) == 1 and _count(heat.grids[0]) <= cells):
        return heat
    grid = heat.grids[0]
    k = math.ceil(math.sqrt(_count(grid) / cells)) if grid.rows else 1
    thin = Grid(
        grid.prefix, grid.rows[::k], grid.columns[::k],
        tuple([line[::k] for line in grid.texts[::k]]),
        tuple([line[::k] for line in grid.levels[::k]]),
    )  # fmt: skip
    return HeatMap((thin,), heat.of, tuple([step * k for step in heat.steps]), heat.extent)


def _count(grid: Grid) -> int:
    return sum([len(line) for line in grid.texts])


def _steps(last: Sequence[int], cells: int, vector: bool) -> tuple[int, ...]:
    """Of rows and columns every how many are shown."""
    if not last:
        return ()
    if vector:
        return (-(-last[0] // min(cells, 8 * LINE)) if last[0] else 1,)
    side = math.isqrt(cells)
    rows = min(last[0], side) or 1
    columns = min(last[1], max(cells // rows, 1), 32) or 1
    rows = min(last[0], cells // columns, 32) or 1
    return max(-(-last[0] // rows), 1), max(-(-last[1] // columns), 1)


def _grid(block: Array, prefix: tuple[int, ...], steps: tuple[int, ...]) -> Grid:
    places = [tuple(range(0, n * k, k)) for n, k in zip(block.shape, steps, strict=True)]
    rows = places[0] if block.ndim == 2 else ()
    columns = places[-1] if places else ()
    lines = block if block.ndim == 2 else block.reshape(1, -1)
    if block.ndim == 1:
        flat = block.reshape(-1)
        pieces = [flat[k : k + LINE] for k in range(0, flat.size, LINE)]
    else:
        pieces = list(lines)
    texts = tuple([tuple([exact(value) for value in piece]) for piece in pieces])
    with np.errstate(all="ignore"):
        levels = tuple([tuple(_levels(piece)) for piece in pieces])
    return Grid(prefix, rows, columns, texts, levels)


def _levels(piece: Array) -> list[float]:
    real = np.abs(piece) if piece.dtype.kind == "c" else piece
    found: list[float] = real.astype(np.float64).tolist()
    return found
