"""Arrange on a GPU: elements elsewhere in ways that no layout says.

A thread moves ``EACH`` elements; neighbouring threads write neighbouring ones. Where the input's
fastest dim is not the output's, a block moves a tile through shared memory instead, which it reads
along the one and writes along the other. Elements are moved by their size alone; those of 16 bytes
are two of 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.emit import WORDS
from antorcha.devices.gpu.frame import (
    THREADS,
    GridPlan,
    GridStep,
    blocks_for,
    dim_words,
    index_type,
    nested,
    offsets_of,
    position,
    position_columns,
)
from antorcha.lang.kernels import Arrange
from antorcha.lang.native import i64, inline, native, ptr, static, void
from antorcha.lang.native.grid import barrier, block, device_pointer, shared, thread
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

EACH = 4  # elements of a thread
TILE = 32  # rows and columns of a tile
LEAST = 8  # a dim's size from which tiles are worth while


class ArrangeGrid:
    """What a kernel that moves words of type ``T`` is compiled for. ``triangle``: "lower", "upper"
    or "", where all elements are kept."""

    head = 2  # words: the output's address, the input's
    threads = THREADS

    def __init__(self, T: Ty, index: Ty, dims: int, triangle: str) -> None:
        self.T, self.I, self.dims, self.triangle = T, index, dims, triangle
        self.columns = 4 if triangle else 2

    def __native_key__(self) -> str:
        return f"{self.T.name}|{self.I}|{self.dims}|{self.triangle}|{self.threads}"


@inline
def is_kept(P, at, diagonal):
    """Is the element of these offsets in the triangle?"""
    if P.triangle == "lower":
        return at[3] - at[2] <= diagonal
    if P.triangle == "upper":
        return at[3] - at[2] >= diagonal
    return True


@native
def arrange_grid(words: ptr[i64], *, P) -> void:
    """Words: the number of elements, where the first is in the input, the diagonal; the dims: size,
    strides of output and input and, of a triangle, positions in rows and columns."""
    first = position(P, EACH)
    n, start, diagonal = [P.I(words[P.head + k]) for k in static(range(3))]
    out, x = [device_pointer(P.T, words[k]) for k in static(range(2))]
    values = [P.T(0) for u in static(range(EACH))]
    to = [P.I(0) for u in static(range(EACH))]
    for u in static(range(EACH)):
        i = first + static(u * P.threads)
        if i < n:
            at = offsets_of(P, words, static(P.head + 3), P.dims, P.columns, i)
            to[u] = at[0]
            if is_kept(P, at, diagonal):
                values[u] = x[start + at[1]]
    for u in static(range(EACH)):
        if first + static(u * P.threads) < n:
            out[to[u]] = values[u]


@native
def transpose_grid(words: ptr[i64], *, P) -> void:
    """A block moves a tile. Words: where the first element is in the input; of the dim along which
    outputs follow one another and of that along which inputs do: size, tiles, strides of output and
    input; the other dims."""
    start = P.I(words[P.head])
    size, tiles, out_step, in_step = [
        [P.I(words[static(P.head + 1 + 4 * d + k)]) for d in static(range(2))]
        for k in static(range(4))
    ]
    out, x = [device_pointer(P.T, words[k]) for k in static(range(2))]
    tile = shared(P.T, static(TILE * (TILE + 1)))
    rows = static(P.threads // TILE)
    left = P.I(block())
    low = [P.I(0), P.I(0)]
    for d in static(range(2)):
        low[d] = left % tiles[d] * TILE
        left = left // tiles[d]
    at = offsets_of(P, words, static(P.head + 9), P.dims, 2, left)
    lane, row = P.I(thread()) % TILE, P.I(thread()) // TILE
    for r in static(range(0, TILE, rows)):
        a, b = low[0] + (row + r), low[1] + lane
        if a < size[0] and b < size[1]:
            tile[(row + r) * (TILE + 1) + lane] = x[start + at[1] + a * in_step[0] + b * in_step[1]]
    barrier()
    for r in static(range(0, TILE, rows)):
        a, b = low[0] + lane, low[1] + (row + r)
        if a < size[0] and b < size[1]:
            out[at[0] + a * out_step[0] + b * out_step[1]] = tile[lane * (TILE + 1) + (row + r)]


# ------------------------------------------------------------------------------------ planning
def plan_arrange(what: Arrange, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    (out,), (input,) = outs, ins
    if not out.numel:
        return GridPlan(())
    read, start = list(input.strides), 0
    for d in what.backwards:
        start += (input.shape[d] - 1) * read[d]
        read[d] = -read[d]
    read = [read[d] for d in what.order]
    if what.triangle:
        last = (out.ndim - 2, out.ndim - 1)
        place = position_columns(out.shape, last)
        reach = out.shape[-1] + out.shape[-2]
        diagonal = max(-reach, min(what.diagonal, reach))
        return _moved(out, out.shape, [out.strides, read, *place], 0, what.triangle, diagonal)
    return copy_by_strides(out, read, start)


def copy_by_strides(out: Layout, read: Sequence[int], start: int = 0) -> GridPlan:
    """The plan of a copy from element ``start`` on of an operand with these strides."""
    tiled = _tiled(out, read, start)
    return tiled or _moved(out, out.shape, [out.strides, read], start)


def transposing_copy(out: Layout, read: Sequence[int]) -> GridPlan | None:
    """The plan of a copy from an operand with these strides, where that is one by tiles."""
    return _tiled(out, read, 0)


def _moved(
    out: Layout, shape: Sequence[int], columns: list[Any], start: int, triangle: str = "",
    diagonal: int = 0,
) -> GridPlan:  # fmt: skip
    """The plan by elements."""
    itemsize = out.itemsize
    if itemsize == 16:
        shape, start, itemsize = [*shape, 2], 2 * start, 8
        columns = [[*[2 * s for s in c], 1] if k < 2 else [*c, 0] for k, c in enumerate(columns)]
    sizes, columns = nested(shape, columns)
    numel = math.prod(sizes)
    template = ArrangeGrid(
        WORDS[itemsize], index_type((), _reach(sizes, columns)), len(sizes), triangle
    )
    words = (numel, start, diagonal, *dim_words(sizes, columns))
    return GridPlan((
        GridStep(arrange_grid, {"P": template}, blocks_for(numel, THREADS * EACH), THREADS, (0, 1),
                 words),
    ))  # fmt: skip


def _reach(sizes: Sequence[int], columns: Sequence[Sequence[int]]) -> int:
    """More than any number of an element, or offset."""
    spans = [
        sum([(n - 1) * abs(s) for n, s in zip(sizes, column, strict=True)]) for column in columns
    ]
    return max(math.prod(sizes), *spans)


def _tiled(out: Layout, read: Sequence[int], start: int) -> GridPlan | None:
    """The plan by tiles; None where both sides are fastest along one dim, or a dim is short."""
    if out.itemsize not in WORDS or not out.numel:
        return None
    sizes, (to, of) = nested(out.shape, [out.strides, read])
    if len(sizes) < 2:
        return None
    a, b = [min(range(len(sizes)), key=lambda d: abs(column[d])) for column in (to, of)]
    if a == b or to[a] != 1 or abs(of[b]) != 1 or min(sizes[a], sizes[b]) < LEAST:
        return None
    pair, rest = [], [d for d in range(len(sizes)) if d not in (a, b)]
    for d in (a, b):
        pair += [sizes[d], -(-sizes[d] // TILE), to[d], of[d]]
    outer = [sizes[d] for d in rest]
    count = math.prod(outer) * pair[1] * pair[5]
    template = ArrangeGrid(
        WORDS[out.itemsize], index_type((), _reach(sizes, (to, of))), len(rest), ""
    )
    words = (start, *pair, *dim_words(outer, [[c[d] for d in rest] for c in (to, of)]))
    return GridPlan((
        GridStep(transpose_grid, {"P": template}, blocks_for(count, 1), THREADS, (0, 1), words),
    ))  # fmt: skip
