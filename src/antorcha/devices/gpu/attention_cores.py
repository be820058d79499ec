"""Attention of halves by tensor cores: a block takes some queries of a head, through all keys.

T. Dao, "FlashAttention-2", 2023: queries are fragments in registers, and so are the scores of a
tile of keys, which become weights in their places and meet the values as left factors. Softmax is
taken as the tiles come: what was added up is scaled down whenever a row's maximum grows. The next
tile's keys and values are copied while the hardware multiplies. Exponentials are those of 2, of
scores by a scale that is not negative: the queries' signs change where it is.
"""

from __future__ import annotations

import math
from typing import Any

from antorcha.devices.gpu.attention_frame import (
    AttentionCode,
    add_rows,
    as_lefts,
    beginning,
    fetch_rows,
    no_sums,
    place_of,
    product_by_rows,
    row_fragments,
    source_of,
    store_rows,
    word,
)
from antorcha.devices.math.logarithm import log
from antorcha.lang.native import (
    bitcast,
    f32,
    f64,
    fma,
    i64,
    inline,
    native,
    ptr,
    select,
    static,
    u32,
    void,
)
from antorcha.lang.native.approximate import exp2_near
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    block,
    resident_blocks,
    shared,
    swap_lanes,
    thread,
)
from antorcha.lang.native.tensor_cores import commit_copies, wait_copies

OUT, QUERY, KEY, VALUE = range(4)
SUM = 1  # the sums' place among the operands where they are asked for
CORE_WORDS = ("heads", "queries", "keys", "features", "width", "tiles", "scale", "signs")
LN_2 = math.log(2)
QUAD = (1, 2)  # lanes that share rows of fragments differ in these bits


class ForwardCode(AttentionCode):
    """The code of attention of queries, keys and values."""

    def __init__(self, *args: Any) -> None:
        first = len(args[0])
        super().__init__(*args, sources=(first, first + 1, first + 2), own=CORE_WORDS)


@inline
def hide(P, scores, row, begin, limit):
    """-inf for keys from ``limit`` on, and those behind a query where none looks ahead."""
    lane = P.I(thread()) % WARP
    for a in static(range(P.atoms)):
        for n in static(range(P.columns // 8)):
            for k in static(range(4)):
                place = begin + static(n * 8 + k % 2) + lane % 4 * 2
                seen = place < limit
                if P.causal:
                    seen = seen & (place <= row + static(a * 16 + k // 2 * 8) + lane // 4)
                scores[a][n][k] = select(seen, scores[a][n][k], f32(float("-inf")))


@inline
def weigh(P, scores, scale, tops, totals, sums):
    """Turns scores into weights, and scales what was added up. ``tops`` are scaled maxima."""
    low = f32(float("-inf"))
    for a in static(range(P.atoms)):
        for h in static(range(2)):
            top = low
            for n in static(range(P.columns // 8)):
                top = max(top, max(scores[a][n][2 * h], scores[a][n][2 * h + 1]))
            for mask in static(QUAD):
                top = max(top, swap_lanes(top, mask))
            top = max(tops[a][h], top * scale)
            base = select(top == low, f32(0), top)
            shrink = exp2_near(tops[a][h] - base)
            tops[a][h] = top
            total = totals[a][h] * shrink
            for n in static(range(P.columns // 8)):
                for k in static((2 * h, 2 * h + 1)):
                    weight = exp2_near(fma(scores[a][n][k], scale, -base))
                    scores[a][n][k] = weight
                    total = total + weight
            totals[a][h] = total
            for n in static(range(P.wide // 8)):
                for k in static((2 * h, 2 * h + 1)):
                    sums[a][n][k] = sums[a][n][k] * shrink


@inline
def finish_rows(P, words, head, row, queries, tops, totals, sums):
    """Divides by the sums of the weights, whose logarithms are written where they are asked for."""
    lane = P.I(thread()) % WARP
    for a in static(range(P.atoms)):
        for h in static(range(2)):
            total = totals[a][h]
            for mask in static(QUAD):
                total = total + swap_lanes(total, mask)
            if P.nout == 2:
                place = beginning(place_of(P, words, SUM, head))
                own = row + static(a * 16 + h * 8) + lane // 4
                if lane % 4 == 0 and own < queries:
                    top = select(total == f32(0), f32(0), tops[a][h])
                    step = word(P, words, static(f"column{SUM}"))
                    place[own * step] = fma(top, LN_2, log(total))
            if P.causal:  # a query that sees nothing finds zeros
                total = select(total == f32(0), f32(1), total)
            share = f32(1) / total
            for n in static(range(P.wide // 8)):
                for k in static((2 * h, 2 * h + 1)):
                    sums[a][n][k] = sums[a][n][k] * share


@inline
def copy_tile(P, words, keys, values, keys_room, values_room, stage, begin, limit):
    """Begins to copy a tile of keys and of values to a stage."""
    each = static(P.planes * P.tile_size(P.depth))
    other = static(P.planes * P.tile_size(P.wide))
    key = static(P.nout - 1 + KEY)
    value = static(P.nout - 1 + VALUE)
    fetch_rows(
        P, words, key, keys_room + stage * each, P.depth, keys, begin, limit,
        word(P, words, "features"),
    )  # fmt: skip
    fetch_rows(
        P, words, value, values_room + stage * other, P.wide, values, begin, limit,
        word(P, words, "width"),
    )  # fmt: skip
    commit_copies()


@inline
def attend(
    P, words, keys_room, values_room, stage, lefts, row, begin, limit, tops, totals, sums
):  # fmt: skip
    """Adds what this warp's queries find among a tile of keys."""
    scale = f32(bitcast(f64, words[static(P.word["scale"])]))
    room = keys_room + stage * static(P.planes * P.tile_size(P.depth))
    scores = product_by_rows(P, lefts, room, P.depth)
    end = begin + static(P.columns)
    if P.causal:
        if end > limit or end > row + 1:
            hide(P, scores, row, begin, limit)
    else:
        if end > limit:
            hide(P, scores, row, begin, limit)
    weigh(P, scores, scale, tops, totals, sums)
    room = values_room + stage * static(P.planes * P.tile_size(P.wide))
    add_rows(P, as_lefts(P, scores), room, P.wide, sums)


@native
def attention_cores(words: ptr[i64], *, P) -> void:
    """Words: those of ``CORE_WORDS``, each operand's last strides, then the heads' dims."""
    if P.columns == 32:  # (else some registers may go to memory, for a block more)
        resident_blocks(3)
    keys_room = shared(P.T, static(2 * P.planes * P.tile_size(P.depth)))
    values_room = shared(P.T, static(2 * P.planes * P.tile_size(P.wide)))
    heads, queries = word(P, words, "heads"), word(P, words, "queries")
    b = P.I(block())
    tile = word(P, words, "tiles") - 1 - b // heads  # (the longest first, where they differ)
    head = b % heads
    first = tile * static(P.rows)
    row = first + P.I(thread()) // WARP * static(P.atoms * 16)
    limit = word(P, words, "keys")
    query = static(P.nout - 1 + QUERY)
    key = static(P.nout - 1 + KEY)
    value = static(P.nout - 1 + VALUE)
    keys = source_of(P, words, key, P.depth, limit, head)
    values = source_of(P, words, value, P.wide, limit, head)
    if P.causal:
        limit = min(limit, first + static(P.rows))
    copy_tile(P, words, keys, values, keys_room, values_room, P.I(0), P.I(0), limit)
    lefts = row_fragments(
        P, words, query, source_of(P, words, query, P.depth, queries, head),
        P.depth, row, queries, word(P, words, "features"),
    )  # fmt: skip
    signs = u32(words[static(P.word["signs"])])
    for a in static(range(P.atoms)):
        for c in static(range(P.depth // 16)):
            for p in static(range(P.planes)):
                for k in static(range(4)):
                    lefts[a][c][p][k] = lefts[a][c][p][k] ^ signs
    tops = [[f32(float("-inf"))] * 2 for a in static(range(P.atoms))]
    totals = [[f32(0)] * 2 for a in static(range(P.atoms))]
    sums = no_sums(P, P.wide)
    stage = P.I(0)
    begin = P.I(0)
    while begin < limit:
        wait_copies(0)
        barrier()
        copy_tile(
            P, words, keys, values, keys_room, values_room, 1 - stage,
            begin + static(P.columns), limit,
        )  # fmt: skip
        if P.causal:
            if begin < row + static(P.atoms * 16):  # (else no query of this warp looks there)
                attend(
                    P, words, keys_room, values_room, stage, lefts, row, begin, limit, tops,
                    totals, sums,
                )  # fmt: skip
        else:
            attend(
                P, words, keys_room, values_room, stage, lefts, row, begin, limit, tops, totals,
                sums,
            )  # fmt: skip
        stage = 1 - stage
        begin = begin + static(P.columns)
    finish_rows(P, words, head, row, queries, tops, totals, sums)
    store_rows(
        P,
        words,
        OUT,
        place_of(P, words, OUT, head),
        P.wide,
        row,
        queries,
        word(P, words, "width"),
        sums,
    )
