"""Results of products by tensor cores: a thread's sums, as the hardware deals them out, to memory.

A thread has pairs of neighbouring columns: of row r, then of another row (r + 8, as the hardware
reads them; r + 1, as a kernel may read them itself), then the same 8 columns on.
"""

from __future__ import annotations

from antorcha.devices.gpu.product_frame import (
    factor_place,
    finish,
    locate,
    result_of,
    store_result,
    store_run,
    sum_place,
    sums_place,
    word,
)
from antorcha.lang.native import (
    bitcast,
    i64,
    inline,
    insert,
    ptr,
    select,
    static,
    u16,
    u32,
    vec,
)
from antorcha.lang.native.grid import store_whole, swap_lanes, thread
from antorcha.lang.native.tensor_cores import pack_halves

AT_ONCE = 8  # groups of 8 columns whose results are computed before one is stored


@inline
def store_fragments(P, words, z, part, row, side, totals, apart=8):
    """Stores a thread's sums: pairs of columns of two rows, which are ``apart``; 8 columns on."""
    whole = static(P.out.whole and P.out.by_depth and P.types[0].half and not P.split)
    quad = P.I(thread()) % 4
    if whole:
        store_fours(P, words, z, row, side, quad, totals)
    elif static(apart == 1 and not P.out.by_depth):
        store_down(P, words, z, part, row, side + quad * 2, totals)
    else:
        store_each(P, words, z, part, row, row + apart, side + quad * 2, totals)


@inline
def store_each(P, words, z, part, row, other, column, totals):
    run = static(2 if P.out.by_depth else 1)
    for j in static(range(len(totals) // 4)):
        pairs = [[[totals[static(j * 4 + i * 2 + c)]] for c in static(range(2))]
                 for i in static(range(2))]  # fmt: skip
        columns = [column + static(j * 8 + c) for c in static(range(2))]
        finish(P, words, z, part, [row, other], columns, pairs, True, run)


@inline
def store_down(P, words, z, part, row, side, totals):
    """Stores sums of two rows that are neighbours, of results whose columns lie together."""
    m, n = word(P, words, "m"), word(P, words, "n")
    for j in static(range(len(totals) // 2)):
        column = side + static(j // 2 * 8 + j % 2)
        sums = [[totals[static(j // 2 * 4 + i * 2 + j % 2)]] for i in static(range(2))]
        if row < m and column < n:
            if P.split:
                at = sums_place(P, words) + sum_place(P, words, z, part, row, column)
                if m % 2 == 0:
                    store_run(P, P.C, at, [x[0] for x in sums])
                else:
                    at[0] = sums[0][0]
                    if row + 1 < m:
                        at[1] = sums[1][0]
            else:
                store_pair(P, words, z, row, column, sums)


@inline
def store_pair(P, words, z, row, column, sums):
    """Stores the results of two rows of a column, the second if it is there."""
    place = factor_place(P, words, P.out, "out", z)
    across = locate(P, words, P.out.depth, column)[0]
    down = [locate(P, words, P.out.outer, row + i)[0] for i in static(range(2))]
    if static(P.out.pieces) and i64(place) % 16 == 0:
        both = [result_of(P, words, z, row + i, column, sums[i])[0] for i in static(range(2))]
        store_run(P, P.types[0], place + (down[0] + across), both)
    else:
        for i in static(range(2)):
            if row + i < word(P, words, "m"):
                result = result_of(P, words, z, row + i, column, sums[i])
                store_result(P, place, down[i] + across, result)


@inline
def store_fours(P, words, z, row, side, quad, totals):
    """Lanes that are neighbours exchange pairs, so that each stores four columns in one piece."""
    place = factor_place(P, words, P.out, "out", z)
    aligned = i64(place) % 8 == 0
    m, n = word(P, words, "m"), word(P, words, "n")
    odd = quad % 2 == 1
    down = [locate(P, words, P.out.outer, row + static(8 * i))[0] for i in static(range(2))]
    for first in static(range(0, len(totals) // 4, AT_ONCE)):
        last = static(min(first + AT_ONCE, len(totals) // 4))
        # (they are computed before one is stored: what is added is loaded at once)
        pairs = [
            [packed(P, words, z, row + static(8 * i), side + static(8 * j) + quad * 2, m, n,
                    [totals[static(j * 4 + i * 2)], totals[static(j * 4 + i * 2 + 1)]])
             for j in static(range(first, last))]
            for i in static(range(2))
        ]  # fmt: skip
        for i in static(range(2)):
            for j in static(range(0, last - first, 2)):
                low, high = pairs[i][j], pairs[i][static(j + 1)]
                other = swap_lanes(select(odd, low, high), 1)
                low, high = select(odd, other, low), select(odd, high, other)
                column = side + static((first + j) * 8) + select(odd, quad * 2 + 6, quad * 2)
                if row + static(8 * i) < m:
                    store_four(P, place + (down[i] + column), aligned, n - column, low, high)


@inline
def store_four(P, place, aligned, few, low, high):
    """Stores four results, of which ``few`` are there."""
    if aligned and few >= 4:
        both = insert(insert(vec[u32, 2](u32(0)), 0, low), 1, high)
        store_whole(ptr[u32](place), both)
    else:
        for c in static(range(4)):
            if few > c:
                bits = (low if c < 2 else high) >> static(c % 2 * 16)
                place[c] = bitcast(P.types[0], u16(bits & 0xFFFF))


@inline
def packed(P, words, z, row, column, m, n, sums):
    """Two results that are neighbours, as 32 bits."""
    for c in static(range(2)):
        if P.bias is None:
            sums[c] = result_of(P, words, z, row, column, [sums[c]])[0]
        else:  # (beyond the edge anything may be added)
            down, across = min(row, m - 1), min(column + c, n - 1)
            sums[c] = result_of(P, words, z, down, across, [sums[c]])[0]
    return pack_halves(P.types[0], sums[0], sums[1])
