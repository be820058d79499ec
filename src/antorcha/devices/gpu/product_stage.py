"""A stage of a product by tensor cores: tiles in shared memory, and what a warp makes of them.

Rows of a tile, along the depth or along the other side, have some pieces of 16 bytes and one more,
so that what a warp reads at a time is in different banks. Factors are halves, or f32 read as TF32.
"""

from __future__ import annotations

from typing import Any

from antorcha.lang.native import bitcast, f32, inline, static
from antorcha.lang.native.grid import WARP, thread
from antorcha.lang.native.tensor_cores import load_matrices, mma, to_tf32


def piece_of(P: Any, operand: Any) -> int:
    """The elements of a piece."""
    return 16 // int(P.types[operand.number].size)


def pitch_of(P: Any, operand: Any, across: int) -> int:
    """From row to row of a tile in shared memory: of depths, or of what is beside."""
    return int(P.cut.depth) + piece_of(P, operand) if operand.by_depth else across + 8


def tile_size(P: Any, operand: Any, across: int) -> int:
    """The elements of a tile in shared memory."""
    lines = across if operand.by_depth else int(P.cut.depth)
    return lines * pitch_of(P, operand, across)


@inline
def warp_part(P):
    """Where a warp's part of a tile begins, and its sums, all 0."""
    high = static(P.cut.rows // P.cut.warps[0])
    wide = static(P.cut.columns // P.cut.warps[1])
    warp = P.I(thread()) // WARP
    row = warp // static(P.cut.warps[1]) * high
    column = warp % static(P.cut.warps[1]) * wide
    totals = [[[f32(0)] * 4 for j in static(range(wide // 8))] for i in static(range(high // 16))]
    return row, column, totals


@inline
def as_read(P, operand, fragment):
    """The words of a fragment as the tensor cores are to read them."""
    if P.types[operand.number] is not f32:
        return fragment
    return [to_tf32(bitcast(f32, w)) for w in fragment]


@inline
def left_fragment(P, room, start, row, depth):
    """A warp's 16 rows of the left tile, two pieces of the depth."""
    lane = P.I(thread()) % WARP
    piece = static(piece_of(P, P.a))
    pitch = static(pitch_of(P, P.a, P.cut.rows))
    if P.a.by_depth:
        at = (row + lane % 16) * pitch + depth + lane // 16 * piece
        return as_read(P, P.a, load_matrices(room + (start + at)))
    if piece == 8:
        at = (depth + lane % 8 + lane // 16 * 8) * pitch + row + lane // 8 % 2 * 8
        return load_matrices(room + (start + at), True)
    at = start + (depth + lane % 4) * pitch + row + lane // 4
    return [to_tf32(room[at + static(w // 2 * 4 * pitch + w % 2 * 8)]) for w in static(range(4))]


@inline
def right_fragment(P, room, start, column, depth):
    """A warp's 8 columns of the right tile, two pieces of the depth, and the next 8 columns."""
    lane = P.I(thread()) % WARP
    piece = static(piece_of(P, P.b))
    pitch = static(pitch_of(P, P.b, P.cut.columns))
    if P.b.by_depth:
        at = (column + lane % 8 + lane // 16 * 8) * pitch + depth + lane // 8 % 2 * piece
        return as_read(P, P.b, load_matrices(room + (start + at)))
    if piece == 8:
        at = (depth + lane % 8 + lane // 8 % 2 * 8) * pitch + column + lane // 16 * 8
        return load_matrices(room + (start + at), True)
    at = start + (depth + lane % 4) * pitch + column + lane // 4
    return [to_tf32(room[at + static(w % 2 * 4 * pitch + w // 2 * 8)]) for w in static(range(4))]


@inline
def multiply_stage(P, left, right, stage, row, column, totals):
    """Adds the products of a warp's parts of the tiles in a stage."""
    T = static(P.types[P.a.number])
    first_a = stage * static(tile_size(P, P.a, P.cut.rows))
    first_b = stage * static(tile_size(P, P.b, P.cut.columns))
    for d in static(range(0, P.cut.depth, 2 * piece_of(P, P.a))):
        xs = [
            left_fragment(P, left, first_a, row + static(i * 16), d)
            for i in static(range(len(totals)))
        ]
        for j in static(range(0, len(totals[0]), 2)):
            y = right_fragment(P, right, first_b, column + static(j * 8), d)
            for i in static(range(len(totals))):
                one = mma(T, xs[i], [y[0], y[1]], totals[i][j])
                other = mma(T, xs[i], [y[2], y[3]], totals[i][j + 1])
                for c in static(range(4)):
                    totals[i][j][c] = one[c]
                    totals[i][j + 1][c] = other[c]
