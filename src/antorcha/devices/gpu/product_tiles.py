"""Products by tiles: a block computes a tile of results, a thread a few rows and columns of it.

Tiles of both factors go through shared memory, depth by depth, two of each: while one pair is
multiplied, the next is on its way in registers. A factor is read along the side on which its
neighbours lie together.
"""

from __future__ import annotations

from antorcha.devices.gpu.product_frame import (
    add_product,
    block_place,
    factor_place,
    finish,
    load_number,
    locate,
    nothing,
    word,
)
from antorcha.lang.native import i64, inline, native, ptr, static, void
from antorcha.lang.native.grid import barrier, load_whole, shared, thread


@inline
def tile_sides(P, words, operand, across, first, limit):
    """The rows (or columns) of a factor that this thread reads, located: all of a tile's that are
    a step apart, or the one whose depths it reads."""
    t = P.I(thread())
    if operand.by_depth:
        step = static(P.threads // P.cut.depth)
        own = [first + t // static(P.cut.depth) + static(u * step)
               for u in static(range(across // step))]  # fmt: skip
    else:
        own = [first + t % static(across)]
    located = [locate(P, words, operand.outer, min(x, limit - 1)) for x in own]
    return located, [x < limit for x in own]


@inline
def read_tile(P, words, operand, place, across, sides, at, hi):
    """This thread's elements of a factor's tile from depth ``at`` on; zeros from ``hi`` on."""
    t = P.I(thread())
    located, inside = sides
    if operand.by_depth:
        d = at + t % static(P.cut.depth)
        depth = locate(P, words, operand.depth, d)
        return [
            load_number(P, words, operand, place, located[u], depth, inside[u] & (d < hi))
            for u in static(range(len(located)))
        ]
    step = static(P.threads // across)
    first = at + t // static(across)
    return [
        load_number(
            P, words, operand, place, located[0],
            locate(P, words, operand.depth, first + static(u * step)),
            inside[0] & (first + static(u * step) < hi),
        )
        for u in static(range(P.cut.depth // step))
    ]  # fmt: skip


@inline
def keep_tile(P, operand, room, across, pitch, stage, values):
    """Writes what was read to a stage of shared memory, one depth after another."""
    t = P.I(thread())
    size = static(P.cut.depth * pitch)
    for u in static(range(len(values))):
        if operand.by_depth:
            step = static(P.threads // P.cut.depth)
            at = t % static(P.cut.depth) * static(pitch) + t // static(P.cut.depth) + u * step
        else:
            step = static(P.threads // across)
            at = (t // static(across) + static(u * step)) * static(pitch) + t % static(across)
        for c in static(range(P.planes)):
            room[c][stage * size + at] = values[u][c]


@inline
def own_lanes(P, room, pitch, across, base, lane):
    """This thread's numbers of a depth: groups of neighbours, a tile's side of threads apart."""
    vector = static(P.cut.vector)
    group = static(P.cut.side * P.cut.vector)
    loaded = [
        [
            load_whole(room[c] + (base + static(g * group) + lane * vector), vector)
            for c in static(range(P.planes))
        ]
        for g in static(range(across // group))
    ]
    return [
        [loaded[i // vector][c][i % vector] for c in static(range(P.planes))]
        for i in static(range(across // P.cut.side))
    ]


@inline
def multiply_tiles(P, left, right, stage, totals):
    """Adds the products of the tiles in a stage to this thread's sums."""
    t = P.I(thread())
    pitch_a = static(P.cut.rows + P.cut.vector)
    pitch_b = static(P.cut.columns + P.cut.vector)
    down, across = t // static(P.cut.side), t % static(P.cut.side)
    for d in static(range(P.cut.depth)):
        base_a = stage * static(P.cut.depth * pitch_a) + static(d * pitch_a)
        base_b = stage * static(P.cut.depth * pitch_b) + static(d * pitch_b)
        xs = own_lanes(P, left, pitch_a, static(P.cut.rows), base_a, down)
        ys = own_lanes(P, right, pitch_b, static(P.cut.columns), base_b, across)
        for i in static(range(len(xs))):
            for j in static(range(len(ys))):
                totals[i][j] = add_product(P, totals[i][j], xs[i], ys[j])


@inline
def own_places(P, first, across, lane):
    """The rows or columns of this thread's sums."""
    vector = static(P.cut.vector)
    group = static(P.cut.side * P.cut.vector)
    return [
        first + static(i // vector * group + i % vector) + lane * vector
        for i in static(range(across // P.cut.side))
    ]


@native
def product_tiles(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    depth = static(P.cut.depth)
    pitch_a = static(rows + P.cut.vector)
    pitch_b = static(columns + P.cut.vector)
    left = [shared(P.C, static(2 * depth * pitch_a)) for c in static(range(P.planes))]
    right = [shared(P.C, static(2 * depth * pitch_b)) for c in static(range(P.planes))]
    z, part, top, side, lo, hi = block_place(P, words)
    a, b = factor_place(P, words, P.a, "a", z), factor_place(P, words, P.b, "b", z)
    sides_a = tile_sides(P, words, P.a, rows, top, word(P, words, "m"))
    sides_b = tile_sides(P, words, P.b, columns, side, word(P, words, "n"))
    each = static(P.cut.rows // P.cut.side)
    totals = [[nothing(P) for j in static(range(each))] for i in static(range(each))]
    stage = P.I(0)
    if lo < hi:
        xs = read_tile(P, words, P.a, a, rows, sides_a, lo, hi)
        ys = read_tile(P, words, P.b, b, columns, sides_b, lo, hi)
        keep_tile(P, P.a, left, rows, pitch_a, stage, xs)
        keep_tile(P, P.b, right, columns, pitch_b, stage, ys)
    barrier()
    at = lo
    while at < hi:
        then = at + depth
        xs = read_tile(P, words, P.a, a, rows, sides_a, then, hi)
        ys = read_tile(P, words, P.b, b, columns, sides_b, then, hi)
        multiply_tiles(P, left, right, stage, totals)
        stage = 1 - stage
        keep_tile(P, P.a, left, rows, pitch_a, stage, xs)
        keep_tile(P, P.b, right, columns, pitch_b, stage, ys)
        barrier()
        at = then
    t = P.I(thread())
    own_rows = own_places(P, top, rows, t // static(P.cut.side))
    own_columns = own_places(P, side, columns, t % static(P.cut.side))
    finish(P, words, z, part, own_rows, own_columns, totals, True)
