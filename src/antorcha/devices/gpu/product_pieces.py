"""Products by tensor cores of factors in pieces of 16 bytes: of halves, and of f32 as TF32.

A piece is there as a whole or not at all, be it found by a window: then images whose channels lie
together are such a factor. The hardware copies pieces to shared memory, tile by tile, while earlier
tiles are multiplied; there they lie in rows of some pieces and a little more, so that what a warp
reads at a time is in different banks. What a thread copies of a tile has the same places beside in
all tiles: they are located before the first.
"""

from __future__ import annotations

from typing import Any

from antorcha.devices.gpu.product_frame import (
    block_place,
    divided,
    element_at,
    factor_place,
    finish,
    locate,
    word,
)
from antorcha.devices.gpu.product_stage import (
    multiply_stage,
    piece_of,
    pitch_of,
    tile_size,
    warp_part,
)
from antorcha.lang.native import (
    i32,
    i64,
    inline,
    native,
    ptr,
    select,
    static,
    void,
)
from antorcha.lang.native.grid import WARP, barrier, dynamic_shared, resident_blocks, thread
from antorcha.lang.native.tensor_cores import (
    commit_copies,
    copy_piece,
    wait_copies,
)


def shared_bytes(P: Any) -> int:
    """The shared memory that a block needs."""
    tiles = tile_size(P, P.a, P.cut.rows) + tile_size(P, P.b, P.cut.columns)
    return int(P.cut.stages * tiles * P.types[P.a.number].size)


def shared_bytes_at_most(cut: Any, itemsize: int) -> int:
    """The most that a block may need, however the factors lie."""
    every = cut.rows + cut.columns
    tiles = max(every * (cut.depth + 16 // itemsize), cut.depth * (every + 16))
    return int(cut.stages * tiles * itemsize)


def pieces_along(P: Any, operand: Any, across: int) -> int:
    """The pieces of a row of a tile."""
    return int(P.cut.depth if operand.by_depth else across) // piece_of(P, operand)


def pieces_each(P: Any, operand: Any, across: int) -> int:
    """The pieces of a tile that a thread copies."""
    lines = across if operand.by_depth else int(P.cut.depth)
    return lines * pieces_along(P, operand, across) // int(P.threads)


@inline
def piece_place(P, operand, across, u):
    """The row of this thread's piece number u in a tile, and where in it the piece begins."""
    t = P.I(thread())
    along = static(pieces_along(P, operand, across))
    piece = static(piece_of(P, operand))
    if P.threads % along == 0:  # (then its pieces lie below each other)
        return t // along + static(u * (P.threads // along)), t % along * piece
    line, column = divided(P, t + static(u * P.threads), along)
    return line, column * piece


@inline
def tile_sides(P, words, operand, across, first, limit):
    """The rows (or columns) of a factor where this thread's pieces begin, located. Past the last
    one the last is copied again: nobody stores those results."""
    count = static(pieces_each(P, operand, across))
    if operand.by_depth:
        own = [
            min(first + piece_place(P, operand, across, u)[0], limit - 1)
            for u in static(range(count))
        ]
    else:
        last = limit - static(piece_of(P, operand))
        own = [
            min(first + piece_place(P, operand, across, u)[1], last) for u in static(range(count))
        ]
    return [locate(P, words, operand.outer, x) for x in own]


@inline
def piece_source(P, words, operand, side, d, hi):
    """Where the piece at depth d begins that lies beside at ``side``, and whether it is there."""
    depth = locate(P, words, operand.depth, d)
    where, exists = element_at(P, words, operand, side, depth)
    there = d < hi
    if operand.spatial:
        there = there & exists
    return select(there, where, P.I(0)), there


@inline
def fetch_tile(P, words, operand, room, stage, place, across, sides, at, hi):
    """Begins to copy this thread's pieces of the tile from depth ``at`` on to a stage; zeros from
    ``hi`` on."""
    T = static(P.types[operand.number])
    pitch = static(pitch_of(P, operand, across))
    start = stage * static(tile_size(P, operand, across))
    count = static(pieces_each(P, operand, across))
    if i64(place) % 16 == 0:
        for u in static(range(count)):
            line, column = piece_place(P, operand, across, u)
            d = at + (column if operand.by_depth else line)
            where, there = piece_source(P, words, operand, sides[u], d, hi)
            to = room + (start + line * pitch + column)
            nbytes = select(there, i32(16), i32(0))
            copy_piece(to, place + where, nbytes, static(operand.spatial > 0))
    else:
        for u in static(range(count)):
            line, column = piece_place(P, operand, across, u)
            d = at + (column if operand.by_depth else line)
            where, there = piece_source(P, words, operand, sides[u], d, hi)
            to = room + (start + line * pitch + column)
            # (a loop that is run is not merged with the other branch)
            for e in range(static(piece_of(P, operand))):
                to[e] = select(there, place[select(there, where + P.I(e), P.I(0))], T(0))


@native
def product_pieces(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    depth = static(P.cut.depth)
    stages = static(P.cut.stages)
    T = static(P.types[P.a.number])
    if P.cut.together:
        resident_blocks(static(P.cut.together))
    left = dynamic_shared(T, static(shared_bytes(P) // T.size))
    right = left + static(stages * tile_size(P, P.a, rows))
    z, part, top, side, lo, hi = block_place(P, words)
    a, b = factor_place(P, words, P.a, "a", z), factor_place(P, words, P.b, "b", z)
    sides_a = tile_sides(P, words, P.a, rows, top, word(P, words, "m"))
    sides_b = tile_sides(P, words, P.b, columns, side, word(P, words, "n"))
    row, column, totals = warp_part(P)
    for s in static(range(stages - 1)):
        ahead = lo + static(s * depth)
        fetch_tile(P, words, P.a, left, P.I(s), a, rows, sides_a, ahead, hi)
        fetch_tile(P, words, P.b, right, P.I(s), b, columns, sides_b, ahead, hi)
        commit_copies()
    at = lo
    stage = P.I(0)
    while at < hi:
        wait_copies(static(stages - 2))
        barrier()
        free = select(stage == 0, P.I(stages - 1), stage - 1)
        ahead = at + static((stages - 1) * depth)
        fetch_tile(P, words, P.a, left, free, a, rows, sides_a, ahead, hi)
        fetch_tile(P, words, P.b, right, free, b, columns, sides_b, ahead, hi)
        commit_copies()
        multiply_stage(P, left, right, stage, row, column, totals)
        stage = select(stage == static(stages - 1), P.I(0), stage + 1)
        at = at + depth
    lane = P.I(thread()) % WARP
    own_rows = [top + row + lane // 4 + static(8 * i) for i in static(range(2 * len(totals)))]
    own_columns = [
        side + column + lane % 4 * 2 + static(j // 2 * 8 + j % 2)
        for j in static(range(2 * len(totals[0])))
    ]
    sums = [
        [[totals[i // 2][j // 2][i % 2 * 2 + j % 2]] for j in static(range(2 * len(totals[0])))]
        for i in static(range(2 * len(totals)))
    ]
    finish(P, words, z, part, own_rows, own_columns, sums, True, 2)
