"""Attention on a GPU: a block takes some queries of a head, and goes through the keys once.

The scores of a tile of keys stay in registers; softmax is taken as they come ("online": M. Milakov,
N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao et al., "FlashAttention",
2022): what was added up so far is scaled down whenever a row's maximum grows. The weights pass
through shared memory, where they meet tiles of the values. The threads of a block are a square of
``SIDE`` by ``SIDE``: those of a row of it share queries, those of a column keys, or features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.attention_plan import MOST_FEATURES, plan_cores, takes_cores
from antorcha.devices.gpu.frame import (
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    load_element,
    offsets_of,
    operand_place,
    store_element,
)
from antorcha.devices.math.exponential import exp
from antorcha.lang.kernels import Attention
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
    void,
)
from antorcha.lang.native.grid import (
    barrier,
    block,
    load_whole,
    shared,
    swap_lanes,
    thread,
)
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

SIDE = 16  # threads along a side of a block; also features, or keys, of a tile in shared memory
UNROLLED = 4  # steps of the inner loops in a row
OUT, QUERY, KEY, VALUE = range(4)
OWN_WORDS = (
    "queries", "keys", "features", "width", "tiles", "slices", "scale", "out_row", "out_column",
    "query_row", "query_column", "key_row", "key_column", "value_row", "value_column",
)  # fmt: skip
SHARES = (8, 4, 2, 1)  # lanes of a warp that share queries differ in these bits


class AttentionGrid(GridTemplate):
    """What a kernel is compiled for. ``each``: queries of a thread, and keys; ``groups`` times as
    many features of the values."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, causal: bool, groups: int,
        dims: int,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.C = f64 if self.types[0] is f64 else f32
        self.each = 16 // self.C.size
        self.causal, self.groups, self.dims = causal, groups, dims
        self.threads = SIDE * SIDE
        self.rows = SIDE * self.each  # queries, and keys, of a block's tile
        self.wide = self.rows * groups
        self.word = {name: self.head + k for k, name in enumerate(OWN_WORDS)}
        self.dim_words = self.head + len(OWN_WORDS)

    def __native_key__(self) -> str:
        return f"{self.operands_key()}|{self.causal}|{self.groups}|{self.dims}"


@inline
def word(P, words, name):
    return P.I(words[static(P.word[name])])


@inline
def read_lines(P, words, k, place, room, first, limit, at, features, row, column):
    """Features ``at`` and on of a block's queries (or keys) from ``first`` on, to shared memory,
    one feature after another; zeros where there are none."""
    t = P.I(thread())
    feature = at + t % SIDE
    for u in static(range(P.each)):
        own = t // SIDE + static(u * SIDE)
        inside = (first + own < limit) & (feature < features)
        offset = (first + own) * row + feature * column
        x = P.C(load_element(P, words, k, place, select(inside, offset, P.I(0))))
        room[t % SIDE * static(P.rows + P.each) + own] = select(inside, x, P.C(0))


@inline
def read_values(P, words, place, room, first, limit, side, width):
    """A tile of values from key ``first`` and feature ``side`` on; zeros where there are none."""
    t = P.I(thread())
    row, column = word(P, words, "value_row"), word(P, words, "value_column")
    for u in static(range(P.wide // SIDE)):
        at = t + static(u * P.threads)
        key = at // static(P.wide)
        feature = at % static(P.wide)
        inside = (first + key < limit) & (side + feature < width)
        offset = (first + key) * row + (side + feature) * column
        x = P.C(load_element(P, words, VALUE, place, select(inside, offset, P.I(0))))
        room[key * static(P.wide + P.each) + feature] = select(inside, x, P.C(0))


@inline
def scores_of(P, words, query, key, left, right, first, begin, limit):
    """This thread's scores: its queries by its keys."""
    t = P.I(thread())
    down, across = t // SIDE, t % SIDE
    queries, features = word(P, words, "queries"), word(P, words, "features")
    scores = [[P.C(0) for j in static(range(P.each))] for i in static(range(P.each))]
    pitch = static(P.rows + P.each)
    at = P.I(0)
    while at < features:
        read_lines(
            P, words, QUERY, query, left, first, queries, at, features,
            word(P, words, "query_row"), word(P, words, "query_column"),
        )  # fmt: skip
        read_lines(
            P, words, KEY, key, right, begin, limit, at, features, word(P, words, "key_row"),
            word(P, words, "key_column"),
        )  # fmt: skip
        barrier()
        for few in range(0, SIDE, UNROLLED):
            for u in static(range(UNROLLED)):
                line = (P.I(few) + u) * pitch
                x = load_whole(left + (line + down * P.each), P.each)
                y = load_whole(right + (line + across * P.each), P.each)
                for i in static(range(P.each)):
                    for j in static(range(P.each)):
                        scores[i][j] = fma(x[i], y[j], scores[i][j])
        barrier()
        at = at + SIDE
    return scores


@inline
def weigh(P, words, scores, tops, totals, sums, weights, first, begin, limit):
    """Turns scores into weights, in shared memory key after key, and scales what was added up."""
    t = P.I(thread())
    down, across = t // SIDE, t % SIDE
    low = P.C(float("-inf"))
    scale = P.C(bitcast(f64, words[static(P.word["scale"])]))
    for i in static(range(P.each)):
        query = first + down * P.each + i
        top = tops[i]
        for j in static(range(P.each)):
            place = begin + across * P.each + j
            seen = place < limit
            if P.causal:
                seen = seen & (place <= query)
            scores[i][j] = select(seen, scores[i][j] * scale, low)
            top = max(top, scores[i][j])
        for mask in static(SHARES):
            top = max(top, swap_lanes(top, mask))
        base = select(top == low, P.C(0), top)
        shrink = exp(tops[i] - base)
        tops[i] = top
        totals[i] = totals[i] * shrink
        for j in static(range(P.each)):
            weight = exp(scores[i][j] - base)
            totals[i] = totals[i] + weight
            at = (across * P.each + j) * static(P.rows + P.each) + down * P.each + i
            weights[at] = weight
        for j in static(range(P.each * P.groups)):
            sums[i][j] = sums[i][j] * shrink


@inline
def add_values(P, words, value, weights, room, sums, begin, limit, side):
    """Adds the values of a tile of keys, by their weights."""
    width = word(P, words, "width")
    for chunk in range(0, static(P.rows), SIDE):
        first = P.I(chunk)
        read_values(P, words, value, room, begin + first, limit, side, width)
        barrier()
        for few in range(0, SIDE, UNROLLED):
            for u in static(range(UNROLLED)):
                add_key(P, weights, room, sums, first, P.I(few) + u)
        barrier()


@inline
def add_key(P, weights, room, sums, first, k):
    """Adds the values of a tile's key number k, which is number first + k of its weights."""
    t = P.I(thread())
    down, across = t // SIDE, t % SIDE
    x = load_whole(weights + ((first + k) * static(P.rows + P.each) + down * P.each), P.each)
    for g in static(range(P.groups)):
        start = k * static(P.wide + P.each) + static(g * P.rows)
        y = load_whole(room + (start + across * P.each), P.each)
        for i in static(range(P.each)):
            for j in static(range(P.each)):
                to = static(g * P.each + j)
                sums[i][to] = fma(x[i], y[j], sums[i][to])


@inline
def store_means(P, words, out, totals, sums, first, side):
    """What was added up, over the sum of the weights."""
    t = P.I(thread())
    down, across = t // SIDE, t % SIDE
    queries, width = word(P, words, "queries"), word(P, words, "width")
    row, column = word(P, words, "out_row"), word(P, words, "out_column")
    for i in static(range(P.each)):
        total = totals[i]
        for mask in static(SHARES):
            total = total + swap_lanes(total, mask)
        if P.causal:  # a query that sees nothing finds zeros
            total = select(total == P.C(0), P.C(1), total)
        query = first + down * P.each + i
        for j in static(range(P.each * P.groups)):
            feature = side + static(j // P.each * P.rows + j % P.each) + across * P.each
            if query < queries and feature < width:
                store_element(P, OUT, out, query * row + feature * column, sums[i][j] / total)


@native
def attention_grid(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then each dim of the heads, its size and strides."""
    pitch = static(P.rows + P.each)
    left, right = shared(P.C, static(SIDE * pitch)), shared(P.C, static(SIDE * pitch))
    weights = shared(P.C, static(P.rows * pitch))
    room = shared(P.C, static(SIDE * (P.wide + P.each)))
    tiles, slices = word(P, words, "tiles"), word(P, words, "slices")
    b = P.I(block())
    head = b // (tiles * slices)
    rest = b - head * (tiles * slices)
    tile = tiles - 1 - rest // slices  # (the longest first, where they differ)
    first = tile * static(P.rows)
    side = rest % slices * static(P.wide)
    at = offsets_of(P, words, P.dim_words, P.dims, 4, head)
    places = [operand_place(P, words, k) + at[k] for k in static(range(4))]
    limit = word(P, words, "keys")
    if P.causal:
        limit = min(limit, first + static(P.rows))
    tops = [P.C(float("-inf")) for i in static(range(P.each))]
    totals = [P.C(0) for i in static(range(P.each))]
    sums = [[P.C(0) for j in static(range(P.each * P.groups))] for i in static(range(P.each))]
    begin = P.I(0)
    while begin < limit:
        scores = scores_of(P, words, places[QUERY], places[KEY], left, right, first, begin, limit)
        weigh(P, words, scores, tops, totals, sums, weights, first, begin, limit)
        add_values(P, words, places[VALUE], weights, room, sums, begin, limit, side)
        begin = begin + static(P.rows)
    store_means(P, words, places[OUT], totals, sums, first, side)


# ------------------------------------------------------------------------------------ planning
_templates: dict[Any, AttentionGrid] = {}


def plan_attention(what: Attention, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    out, (query, key, value) = outs[0], ins
    if any(o.dtype.kind != "f" for o in (out, *ins)):
        raise Unsupported(f"attention of {query.dtype}")
    if not out.numel:
        return GridPlan(())
    if takes_cores(out, ins, MOST_FEATURES):
        return plan_cores(what, outs, ins)
    if len(outs) > 1:
        raise Unsupported(f"the sums of attention of {query.dtype} to {query.shape[-1]} features")
    *heads, queries, features = query.shape
    keys, width = value.shape[-2:]
    operands = (out, query, key, value)
    sizes, columns = collapse(heads, [each.strides[:-2] for each in operands])
    each = 2 if out.dtype.itemsize == 8 else 4
    groups = 1 if width <= SIDE * each else 2
    index = index_type(operands, out.numel)
    dims = len(sizes)
    template = kept(
        _templates, (tuple([o.dtype for o in operands]), index, what.causal, groups, dims),
        lambda _: AttentionGrid(outs, ins, index, what.causal, groups, dims), MOST_KEPT,
    )  # fmt: skip
    tiles, slices = -(-queries // template.rows), -(-width // template.wide)
    scale = int(np.array([what.scale], np.float64).view(np.int64)[0])
    words = (
        queries, keys, features, width, tiles, slices, scale,
        *[s for o in operands for s in o.strides[-2:]], *dim_words(sizes, columns),
    )  # fmt: skip
    blocks = blocks_for(math.prod(heads) * tiles * slices, 1)
    step = GridStep(attention_grid, {"P": template}, blocks, template.threads, (0, 1, 2, 3), words)
    return GridPlan((step,))
