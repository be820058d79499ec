"""Products of halves by tensor cores: a warp multiplies 16 x 8 x 16 at a time, adding up in f32.

Tiles of both factors lie in shared memory as they lie in the device's: along the depth or along the
other side, in rows of whole pieces of 16 bytes and one more, so that the eight rows of a matrix are
in different banks. Pieces are copied by the hardware while earlier tiles are multiplied. A factor
whose pieces do not lie in one piece, or do not begin at a multiple of 16 bytes, is copied element
by element.
"""

from __future__ import annotations

from typing import Any

from antorcha.devices.gpu.product_fragments import store_fragments
from antorcha.devices.gpu.product_frame import (
    block_place,
    element_at,
    factor_place,
    locate,
    word,
)
from antorcha.devices.gpu.product_stage import multiply_stage, pitch_of, tile_size, warp_part
from antorcha.lang.native import i32, i64, inline, native, ptr, select, static, void
from antorcha.lang.native.grid import WARP, barrier, dynamic_shared, resident_blocks, shared, thread
from antorcha.lang.native.tensor_cores import (
    commit_copies,
    copy_piece,
    wait_copies,
)

PIECE = 8  # halves of 16 bytes
EVERY_GPU = 48 << 10  # bytes of shared memory that a block may have


def is_plain(operand: Any) -> bool:
    """Do whole pieces lie one step apart along the depth?"""
    return bool(operand.whole and operand.depth.dims <= 1)


def inner_pieces(P: Any, operand: Any, across: int) -> int:
    """The pieces of a row of a tile in shared memory."""
    return int(P.cut.depth if operand.by_depth else across) // PIECE


@inline
def own_pieces(P, words, operand, across, first, limit):
    """Where this thread's pieces of a tile begin in the factor, at depth 0, and how many elements
    of each there are along the side that the factor lies along."""
    inner = static(inner_pieces(P, operand, across))
    count = static(across * P.cut.depth // PIECE // P.threads)
    places = [P.I(0) for u in static(range(count))]
    counts = [P.I(PIECE) for u in static(range(count))]
    if is_plain(operand):
        for u in static(range(count)):
            piece = P.I(thread()) + static(u * P.threads)
            line, column = piece // inner, piece % inner * PIECE
            if operand.by_depth:
                # (rows beyond the last give results that nobody stores)
                row = min(first + line, limit - 1)
                places[u] = locate(P, words, operand.outer, row)[0] + column
            else:
                counts[u] = max(min(limit - first - column, P.I(PIECE)), P.I(0))
                places[u] = locate(P, words, operand.depth, line)[0] + first + column
    return places, counts


def dynamic_bytes(P: Any) -> int:
    """The bytes of shared memory, where they are more than every GPU gives."""
    both = tile_size(P, P.a, P.cut.rows) + tile_size(P, P.b, P.cut.columns)
    nbytes = 2 * int(P.cut.stages) * both
    return nbytes if nbytes > EVERY_GPU else 0


@inline
def fetch_tile(P, words, operand, room, stage, place, pieces, across, first, limit, at, hi):
    """Begins to copy the tile from row (or column) ``first`` and depth ``at`` on to a stage; zeros
    from ``limit`` and ``hi`` on."""
    if is_plain(operand):
        if i64(place) % 16 == 0:
            fetch_plain(P, words, operand, room, stage, place, pieces, across, at, hi)
        else:
            fetch_slowly(P, words, operand, room, stage, place, across, first, limit, at, hi)
    else:
        fetch_each(P, words, operand, room, stage, place, across, first, limit, at, hi)


@inline
def fetch_plain(P, words, operand, room, stage, place, pieces, across, at, hi):
    """Begins to copy a tile of whole pieces."""
    inner = static(inner_pieces(P, operand, across))
    pitch = static(pitch_of(P, operand, across))
    places, counts = pieces
    to = room + stage * static(tile_size(P, operand, across))
    source = place + locate(P, words, operand.depth, at)[0]
    for u in static(range(len(places))):
        piece = P.I(thread()) + static(u * P.threads)
        line, column = piece // inner, piece % inner * PIECE
        if operand.by_depth:
            few = max(min(hi - at - column, P.I(PIECE)), P.I(0))
        else:
            few = select(at + line < hi, counts[u], P.I(0))
        copy_piece(to + (line * pitch + column), source + places[u], i32(few * 2))


@inline
def fetch_slowly(P, words, operand, room, stage, place, across, first, limit, at, hi):
    """Copies a tile of pieces that begin at any address, one element after another."""
    T = static(P.types[operand.number])
    inner = static(inner_pieces(P, operand, across) * PIECE)
    to = room + stage * static(tile_size(P, operand, across))
    each = P.I(thread())
    while each < static(across * P.cut.depth):
        line, column = each // inner, each % inner
        outer, depth = first + line, at + column
        if not operand.by_depth:
            outer, depth = first + column, at + line
        x = T(0)
        if outer < limit and depth < hi:
            there = locate(P, words, operand.outer, outer)[0]
            x = place[there + locate(P, words, operand.depth, depth)[0]]
        to[line * static(pitch_of(P, operand, across)) + column] = x
        each = each + P.threads


@inline
def fetch_each(P, words, operand, room, stage, place, across, first, limit, at, hi):
    """Copies a tile whose elements lie in any way."""
    t = P.I(thread())
    inner = static(inner_pieces(P, operand, across))
    pitch = static(pitch_of(P, operand, across))
    start = stage * static(tile_size(P, operand, across))
    for u in static(range(across * P.cut.depth // PIECE // P.threads)):
        piece = t + static(u * P.threads)
        line = piece // inner
        column = piece % inner * PIECE
        to = room + (start + line * pitch + column)
        if operand.by_depth:
            few = select(first + line < limit, hi - at - column, P.I(0))
            outer = first + line
            depth = at + column
        else:
            few = select(at + line < hi, limit - first - column, P.I(0))
            outer = first + column
            depth = at + line
        if operand.whole:
            if i64(place) % 16 == 0:
                copy_whole(P, words, operand, to, place, outer, depth, few)
            else:
                copy_each(P, words, operand, to, place, outer, depth, few)
        else:
            copy_each(P, words, operand, to, place, outer, depth, few)


@inline
def copy_whole(P, words, operand, to, place, outer, depth, few):
    """Begins to copy a piece, of which ``few`` elements are there."""
    count = max(min(few, P.I(PIECE)), P.I(0))
    at = locate(P, words, operand.outer, outer)[0] + locate(P, words, operand.depth, depth)[0]
    copy_piece(to, place + select(count > 0, at, P.I(0)), i32(count * 2))


@inline
def copy_each(P, words, operand, to, place, outer, depth, few):
    """Copies a piece, of which ``few`` elements are there, one after another."""
    T = static(P.types[operand.number])
    fixed = locate(P, words, operand.outer if operand.by_depth else operand.depth,
                   outer if operand.by_depth else depth)  # fmt: skip
    for e in static(range(PIECE)):
        inside = few > e
        if operand.by_depth:
            moved = locate(P, words, operand.depth, depth + e)
            at, exists = element_at(P, words, operand, fixed, moved)
        else:
            moved = locate(P, words, operand.outer, outer + e)
            at, exists = element_at(P, words, operand, moved, fixed)
        if operand.spatial:
            inside = inside & exists
        to[e] = select(inside, place[select(inside, at, P.I(0))], T(0))


@native
def product_cores(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    depth = static(P.cut.depth)
    stages = static(P.cut.stages)
    T = static(P.types[P.a.number])
    if rows == 128 and is_plain(P.a) and is_plain(P.b):
        resident_blocks(2)
    size_a = static(stages * tile_size(P, P.a, rows))
    size_b = static(stages * tile_size(P, P.b, columns))
    if dynamic_bytes(P):
        left = dynamic_shared(T, static(size_a + size_b))
        right = left + size_a
    else:
        left, right = shared(T, size_a), shared(T, size_b)
    z, part, top, side, lo, hi = block_place(P, words)
    m, n = word(P, words, "m"), word(P, words, "n")
    a, b = factor_place(P, words, P.a, "a", z), factor_place(P, words, P.b, "b", z)
    row, column, totals = warp_part(P)
    from_a = own_pieces(P, words, P.a, rows, top, m)
    from_b = own_pieces(P, words, P.b, columns, side, n)
    for s in static(range(stages - 1)):
        ahead = lo + static(s * depth)
        fetch_tile(P, words, P.a, left, P.I(s), a, from_a, rows, top, m, ahead, hi)
        fetch_tile(P, words, P.b, right, P.I(s), b, from_b, columns, side, n, ahead, hi)
        commit_copies()
    at = lo
    stage = P.I(0)
    while at < hi:
        wait_copies(static(stages - 2))
        barrier()
        free = select(stage == 0, P.I(stages - 1), stage - 1)
        ahead = at + static((stages - 1) * depth)
        fetch_tile(P, words, P.a, left, free, a, from_a, rows, top, m, ahead, hi)
        fetch_tile(P, words, P.b, right, free, b, from_b, columns, side, n, ahead, hi)
        commit_copies()
        multiply_stage(P, left, right, stage, row, column, totals)
        stage = select(stage == static(stages - 1), P.I(0), stage + 1)
        at = at + depth
    lane = P.I(thread()) % WARP
    for i in static(range(len(totals))):
        sums = [totals[i][j // 4][j % 4] for j in static(range(4 * len(totals[0])))]
        down = top + row + lane // 4 + static(16 * i)
        store_fragments(P, words, z, part, down, side + column, sums)
