"""Products of a few rows, and the sum of what the parts of a depth gave.

A block computes few rows of some columns. Where the right factor's columns lie in one piece, a warp
takes a column, its lanes neighbours along the depth (dots). Else a thread takes a column, and the
lanes of a warp are neighbouring columns; ``slices`` threads share its depth (columns).
"""

from __future__ import annotations

from antorcha.devices.gpu.frame import position
from antorcha.devices.gpu.product_frame import (
    add_product,
    added,
    block_place,
    divided,
    factor_place,
    finish,
    load_number,
    locate,
    nothing,
    sums_place,
    word,
)
from antorcha.lang.native import i64, inline, native, ptr, static, void
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    resident_blocks,
    shared,
    swap_lanes,
    thread,
)

AHEAD = 4  # loads of a thread on their way at once


@inline
def few_rows(P, words, z, top, column, first, step, hi):
    """The sums of a block's rows at a column, over the depths first, first + step, ... below hi."""
    count = static(P.cut.rows)
    m, n = word(P, words, "m"), word(P, words, "n")
    a, b = factor_place(P, words, P.a, "a", z), factor_place(P, words, P.b, "b", z)
    rows = [locate(P, words, P.a.outer, min(top + r, m - 1)) for r in static(range(count))]
    across = locate(P, words, P.b.outer, min(column, n - 1))
    totals = [[nothing(P)] for r in static(range(count))]
    at = first
    while at < hi:
        places = [at + static(u) * step for u in static(range(AHEAD))]
        ys = [
            load_number(P, words, P.b, b, across, locate(P, words, P.b.depth, d), d < hi)
            for d in places
        ]
        for u in static(range(AHEAD)):
            depth = locate(P, words, P.a.depth, places[u])
            for r in static(range(count)):
                x = load_number(P, words, P.a, a, rows[r], depth, places[u] < hi)
                totals[r][0] = add_product(P, totals[r][0], x, ys[u])
        at = at + static(AHEAD) * step
    return totals


@native
def product_dots(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    if P.C.size == 8 or P.planes == 2:
        resident_blocks(3)
    z, part, top, side, lo, hi = block_place(P, words)
    t = P.I(thread())
    lane, column = t % WARP, side + t // WARP
    totals = few_rows(P, words, z, top, column, lo + lane, P.I(WARP), hi)
    for mask in static((16, 8, 4, 2, 1)):
        for r in static(range(P.cut.rows)):
            other = [swap_lanes(totals[r][0][c], mask) for c in static(range(P.planes))]
            totals[r][0] = added(P, totals[r][0], other)
    rows = [top + r for r in static(range(P.cut.rows))]
    finish(P, words, z, part, rows, [column], totals, lane == 0)


@native
def product_columns(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    if P.C.size == 8 or P.planes == 2:  # (else some registers may go to memory, for a block more)
        resident_blocks(3)
    z, part, top, side, lo, hi = block_place(P, words)
    t = P.I(thread())
    wide = static(P.cut.columns)
    slices = static(P.cut.slices)
    own, share = t % wide, t // wide
    totals = few_rows(P, words, z, top, side + own, lo + share, P.I(slices), hi)
    if slices > 1:
        room = [shared(P.C, static(P.threads)) for c in static(range(P.planes))]
        for r in static(range(P.cut.rows)):
            for c in static(range(P.planes)):
                room[c][t] = totals[r][0][c]
            barrier()
            if share == 0:
                for s in static(range(1, slices)):
                    other = [room[c][static(s * wide) + own] for c in static(range(P.planes))]
                    totals[r][0] = added(P, totals[r][0], other)
            barrier()
    rows = [top + r for r in static(range(P.cut.rows))]
    finish(P, words, z, part, rows, [side + own], totals, share == 0)


@native
def product_join(words: ptr[i64], *, P) -> void:
    """Adds the parts' sums up, a thread for each result. Words: those of ``OWN_WORDS``, then the
    operands' axes."""
    m, n = word(P, words, "m"), word(P, words, "n")
    count = word(P, words, "batch") * m * n
    i = position(P, 1)
    inside = i < count
    i = min(i, count - 1)
    stored = sums_place(P, words)
    total = nothing(P)
    at = i
    for _part in range(word(P, words, "parts")):
        one = [stored[at * static(P.planes) + c] for c in static(range(P.planes))]
        total = added(P, total, one)
        at = at + count
    if P.out.by_depth:
        rest, column = divided(P, i, n)
        z, row = divided(P, rest, m)
    else:
        rest, row = divided(P, i, m)
        z, column = divided(P, rest, n)
    finish(P, words, z, P.I(0), [row], [column], [[total]], inside)
