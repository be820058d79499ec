"""Products by tiles: a block computes a tile of results, a thread a few rows and columns of it.

Tiles of both factors go through shared memory, depth by depth, two of each: while one pair is
multiplied, the next is on its way in registers. A factor is read along the side on which its
neighbours lie together, in pieces of 16 bytes where it lies in such. The lanes of a warp are 4 x 8:
the pieces of shared memory that they read at a time are in different banks, or are the same.
"""

from __future__ import annotations

from typing import Any

from antorcha.devices.gpu.product_frame import (
    add_product,
    block_place,
    element_at,
    factor_place,
    finish,
    load_number,
    locate,
    nothing,
    word,
)
from antorcha.lang.native import i64, inline, insert, native, ptr, select, static, vec, void
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    load_whole,
    resident_blocks,
    shared,
    store_whole,
    thread,
)

LANES = (4, 8)  # of a warp, along the rows and columns of its results


def piece_of(P: Any, operand: Any) -> int:
    """How many of a factor's elements are read at once: 16 bytes, or one."""
    ty, vector = P.types[operand.number], int(P.cut.vector)
    together = operand.whole or operand.pieces
    return vector if together and ty is P.C and ty.size * vector == 16 else 1


def pieces_along(P: Any, operand: Any, across: int) -> int:
    """The pieces of a tile that are neighbours where the factor's elements are."""
    return int(P.cut.depth if operand.by_depth else across) // piece_of(P, operand)


@inline
def piece_place(P, operand, across, u):
    """Where this thread's piece number u begins in a tile: beside, and along the depth."""
    t = P.I(thread())
    along = static(pieces_along(P, operand, across))
    line = t // along + static(u * (P.threads // along))
    inner = t % along * static(piece_of(P, operand))
    if operand.by_depth:
        return line, inner
    return inner, line


@inline
def tile_sides(P, words, operand, across, first, limit):
    """The rows (or columns) of a factor where this thread's pieces begin, located; how many there
    are from there on. Past the last one the last is read again: nobody stores those results."""
    along = static(pieces_along(P, operand, across))
    count = static(across * along // P.threads if operand.by_depth else 1)
    own = [first + piece_place(P, operand, across, u)[0] for u in static(range(count))]
    located = [locate(P, words, operand.outer, min(x, limit - 1)) for x in own]
    return located, limit - own[0]


@inline
def read_piece(P, place, at, few, aligned):
    """A piece, of which ``few`` elements are there; zeros for the others."""
    vector = static(P.cut.vector)
    x = [[P.C(0)] for e in static(range(vector))]
    if aligned & (few >= vector):
        loaded = load_whole(place + at, vector)
        for e in static(range(vector)):
            x[e][0] = loaded[e]
    else:
        for e in static(range(vector)):
            if few > e:
                x[e][0] = place[at + e]
    return x


@inline
def read_tile(P, words, operand, place, across, sides, at, hi):
    """This thread's pieces of a factor's tile from depth ``at`` on; zeros from ``hi`` on."""
    count = static(across * P.cut.depth // piece_of(P, operand) // P.threads)
    return [
        read_one(P, words, operand, place, across, sides, at, hi, u) for u in static(range(count))
    ]


@inline
def read_one(P, words, operand, place, across, sides, at, hi, u):
    """This thread's piece number u."""
    located, there = sides
    d = at + piece_place(P, operand, across, u)[1]
    side = located[u if operand.by_depth else 0]
    depth = locate(P, words, operand.depth, d)
    if piece_of(P, operand) == 1:
        return [load_number(P, words, operand, place, side, depth, d < hi)]
    few = hi - d if operand.by_depth else select(d < hi, there, P.I(0))
    at, exists = element_at(P, words, operand, side, depth)
    if operand.spatial:
        few = select(exists, few, P.I(0))
    return read_piece(P, place, at, few, i64(place) % 16 == 0)


@inline
def keep_tile(P, operand, room, across, pitch, stage, pieces):
    """Writes what was read to a stage of shared memory, one depth after another."""
    piece = static(piece_of(P, operand))
    for u in static(range(len(pieces))):
        beside, depth = piece_place(P, operand, across, u)
        at = stage * static(P.cut.depth * pitch) + depth * static(pitch) + beside
        if static(piece > 1 and not operand.by_depth):
            whole = vec[P.C, piece](P.C(0))
            for e in static(range(piece)):
                whole = insert(whole, e, pieces[u][e][0])
            store_whole(room[0] + at, whole)
        else:
            for e in static(range(piece)):
                for c in static(range(P.planes)):
                    room[c][at + static(e * pitch)] = pieces[u][e][c]


@inline
def own_numbers(P, room, base, groups, lanes):
    """This thread's numbers of a depth: groups of neighbours, the lanes' of one apart."""
    vector = static(P.cut.vector)
    loaded = [
        [
            load_whole(room[c] + (base + static(g * lanes * vector)), vector)
            for c in static(range(P.planes))
        ]
        for g in static(range(groups))
    ]
    return [
        [loaded[i // vector][c][i % vector] for c in static(range(P.planes))]
        for i in static(range(groups * vector))
    ]


@inline
def multiply_tiles(P, left, right, pitches, stage, own, totals):
    """Adds the products of the tiles in a stage to this thread's sums: while those of a depth are
    added, the next depth's numbers are on their way."""
    depth = static(P.cut.depth)
    vector = static(P.cut.vector)
    row, column = own
    groups_a = static(len(totals) // vector)
    groups_b = static(len(totals[0]) // vector)
    at_a = stage * static(depth * pitches[0]) + row
    at_b = stage * static(depth * pitches[1]) + column
    xs = own_numbers(P, left, at_a, groups_a, static(LANES[0]))
    ys = own_numbers(P, right, at_b, groups_b, static(LANES[1]))
    for d in static(range(depth)):
        then = static(min(d + 1, depth - 1))
        xs_then = own_numbers(P, left, at_a + static(then * pitches[0]), groups_a, static(LANES[0]))
        ys_then = own_numbers(
            P, right, at_b + static(then * pitches[1]), groups_b, static(LANES[1])
        )
        for i in static(range(len(xs))):
            for j in static(range(len(ys))):
                totals[i][j] = add_product(P, totals[i][j], xs[i], ys[j])
        xs, ys = xs_then, ys_then


@inline
def own_places(P, first, count, lanes):
    """The rows or columns of this thread's sums, the first of which is given."""
    vector = static(P.cut.vector)
    return [first + static(i // vector * lanes * vector + i % vector) for i in static(range(count))]


@native
def product_tiles(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    depth = static(P.cut.depth)
    high = static(rows // P.cut.warps[0])
    wide = static(columns // P.cut.warps[1])
    pitches = static((rows + P.cut.vector, columns + P.cut.vector))
    if P.cut.together:
        resident_blocks(static(P.cut.together))
    left = [shared(P.C, static(2 * depth * pitches[0])) for c in static(range(P.planes))]
    right = [shared(P.C, static(2 * depth * pitches[1])) for c in static(range(P.planes))]
    z, part, top, side, lo, hi = block_place(P, words)
    a, b = factor_place(P, words, P.a, "a", z), factor_place(P, words, P.b, "b", z)
    sides_a = tile_sides(P, words, P.a, rows, top, word(P, words, "m"))
    sides_b = tile_sides(P, words, P.b, columns, side, word(P, words, "n"))
    warp, lane = P.I(thread()) // WARP, P.I(thread()) % WARP
    row = warp // static(P.cut.warps[1]) * high + lane // static(LANES[1]) * static(P.cut.vector)
    column = warp % static(P.cut.warps[1]) * wide + lane % static(LANES[1]) * static(P.cut.vector)
    totals = [
        [nothing(P) for j in static(range(wide // LANES[1]))]
        for i in static(range(high // LANES[0]))
    ]
    stage = P.I(0)
    if lo < hi:
        xs = read_tile(P, words, P.a, a, rows, sides_a, lo, hi)
        ys = read_tile(P, words, P.b, b, columns, sides_b, lo, hi)
        keep_tile(P, P.a, left, rows, pitches[0], stage, xs)
        keep_tile(P, P.b, right, columns, pitches[1], stage, ys)
    barrier()
    at = lo
    while at < hi:
        then = at + depth
        xs = read_tile(P, words, P.a, a, rows, sides_a, then, hi)
        ys = read_tile(P, words, P.b, b, columns, sides_b, then, hi)
        multiply_tiles(P, left, right, pitches, stage, [row, column], totals)
        stage = 1 - stage
        keep_tile(P, P.a, left, rows, pitches[0], stage, xs)
        keep_tile(P, P.b, right, columns, pitches[1], stage, ys)
        barrier()
        at = then
    own_rows = own_places(P, top + row, static(len(totals)), static(LANES[0]))
    own_columns = own_places(P, side + column, static(len(totals[0])), static(LANES[1]))
    run = static(P.cut.vector if P.planes == 1 and not P.of_bool else 1)
    finish(P, words, z, part, own_rows, own_columns, totals, True, run)
