"""The gradient of attention of halves by tensor cores.

T. Dao, "FlashAttention-2", 2023. With weights P = exp(scale Q K^T - sums), G the gradient of the
result O, and D the sums along rows of G O, dS = P (G V^T - D), and dQ = scale dS K, dK = scale
dS^T Q, dV = P^T G. The weights are computed again, a tile at a time: for dQ by blocks of queries
that go through the keys, for dK and dV by blocks of keys that go through the queries, so that no
two blocks add to the same result. The latter's tiles are transposed, for their rows are keys, and
serve as left factors as they are.
"""

from __future__ import annotations

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
from antorcha.devices.gpu.frame import load_element
from antorcha.lang.native import (
    bitcast,
    bool_,
    f32,
    f64,
    fma,
    i64,
    inline,
    insert,
    native,
    ptr,
    select,
    static,
    vec,
    void,
)
from antorcha.lang.native.approximate import exp2_near
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    block,
    device_pointer,
    load_whole,
    shared,
    store_whole,
    swap_lanes,
    thread,
)
from antorcha.lang.native.tensor_cores import commit_copies, wait_copies

QUERY_GRADIENT, KEY_GRADIENT, VALUE_GRADIENT, QUERY, KEY, VALUE, OUT, SUM, GRAD = range(9)
SOURCES = (QUERY, KEY, VALUE, GRAD)
GRADIENT_WORDS = ("heads", "queries", "keys", "features", "width", "tiles", "scale")
LOG2_E = 1.4426950408889634
AHEAD = 8  # elements of a row of G and O that a thread reads at once
QUAD = (1, 2)  # lanes that share rows of fragments differ in these bits


class GradientCode(AttentionCode):
    """``finds`` says which gradients a kernel finds: "query", "key", "value" or "key value". Those
    of a block's rows are ``own``, what is beside them ``beside``."""

    def __init__(self, finds: str, *args: Any) -> None:
        super().__init__(*args, sources=SOURCES, own=GRADIENT_WORDS, more=1)
        self.finds = finds
        self.by_query = finds == "query"
        self.by_scores = finds != "value"  # does it need the gradient of the scores?
        self.by_weights = "value" in finds
        self.own = (QUERY, GRAD) if self.by_query else (KEY, VALUE)
        self.beside = (KEY, VALUE) if self.by_query else (QUERY, GRAD)
        self.result = QUERY_GRADIENT if self.by_query else KEY_GRADIENT

    def __native_key__(self) -> str:
        return f"{super().__native_key__()}|{self.finds}"


@inline
def sums_of(P, words, head, query):
    """Where a query's sums lie: a logarithm of base 2, and the sum of G O."""
    at = (head * word(P, words, "queries") + query) * 2
    return device_pointer(f32, words[static(P.head)]) + at


@inline
def base_of(P, x):
    """What is taken from a query's scores, by a logarithm of base 2."""
    base = x * f32(LOG2_E)
    if P.causal:  # a query that sees nothing has no weights
        base = select(base == f32(float("-inf")), f32(0), base)
    return base


@inline
def element_of(P, words, k, place, row, column, inside):
    """An element as f32, or zero."""
    at = row * word(P, words, static(f"row{k}")) + column * word(P, words, static(f"column{k}"))
    x = load_element(P, words, k, beginning(place), select(inside, at, P.I(0)))
    return select(inside, f32(x), f32(0))


@inline
def row_sums(P, words, head, row, bases, means):
    """The sums of this warp's queries; writes them, for other blocks read them later."""
    lane = P.I(thread()) % WARP
    queries, width = word(P, words, "queries"), word(P, words, "width")
    step = word(P, words, static(f"column{SUM}"))
    column = lane % 4
    while column < width:
        for u in static(range(AHEAD // P.atoms)):
            at = column + static(4 * u)
            for a in static(range(P.atoms)):
                for h in static(range(2)):
                    own = row + static(a * 16 + h * 8) + lane // 4
                    found = (own < queries) & (at < width)
                    o = element_of(P, words, OUT, place_of(P, words, OUT, head), own, at, found)
                    g = element_of(P, words, GRAD, place_of(P, words, GRAD, head), own, at, found)
                    means[a][h] = fma(o, g, means[a][h])
        column = column + static(4 * AHEAD // P.atoms)
    for a in static(range(P.atoms)):
        for h in static(range(2)):
            own = row + static(a * 16 + h * 8) + lane // 4
            inside = own < queries
            x = beginning(place_of(P, words, SUM, head))[select(inside, own * step, P.I(0))]
            bases[a][h] = base_of(P, x)
            for mask in static(QUAD):
                means[a][h] = means[a][h] + swap_lanes(means[a][h], mask)
            if lane % 4 == 0 and inside:
                both = insert(insert(vec[f32, 2](f32(0)), 0, bases[a][h]), 1, means[a][h])
                store_whole(sums_of(P, words, head, own), both)


@inline
def own_source(P, words, k, rows, head):
    """What the rows of an operand are read from."""
    depth = static(P.depth if k in (QUERY, KEY) else P.wide)
    return source_of(P, words, k, depth, rows, head)


@inline
def copy_tile(P, words, sources, first_room, second_room, stage, begin, limit):
    """Begins to copy a tile of what is beside the rows to a stage."""
    first = static(P.beside[0])
    second = static(P.beside[1])
    each = static(P.planes * P.tile_size(P.depth))
    other = static(P.planes * P.tile_size(P.wide))
    fetch_rows(
        P, words, first, first_room + stage * each, P.depth, sources[0], begin, limit,
        word(P, words, "features"),
    )  # fmt: skip
    fetch_rows(
        P, words, second, second_room + stage * other, P.wide, sources[1], begin, limit,
        word(P, words, "width"),
    )  # fmt: skip
    commit_copies()


@inline
def copy_sums(P, words, head, room, stage, begin):
    """The sums of a tile's queries, to a stage: of their scores, then of G O."""
    t = P.I(thread())
    if not P.by_query and t < P.columns:
        at = min(begin + t, word(P, words, "queries") - 1)
        both = load_whole(sums_of(P, words, head, at), 2)
        to = room + (stage * static(2 * P.columns) + t)
        to[0] = both[0]
        to[static(P.columns)] = both[1]


@inline
def weigh(P, scores, grads, scale, bases, means, room):
    """Turns scores into weights, and the weights' gradients into those of the scores."""
    lane = P.I(thread()) % WARP
    for n in static(range(P.columns // 8)):
        if not P.by_query:
            pair = load_whole(room + (static(n * 8) + lane % 4 * 2), 2)
            mean = load_whole(room + (static(P.columns + n * 8) + lane % 4 * 2), 2)
        for a in static(range(P.atoms)):
            for k in static(range(4)):
                base = bases[a][k // 2] if P.by_query else pair[k % 2]
                less = means[a][k // 2] if P.by_query else mean[k % 2]
                weight = exp2_near(fma(scores[a][n][k], scale, -base))
                scores[a][n][k] = weight
                if P.by_scores:
                    grads[a][n][k] = weight * (grads[a][n][k] - less)


@inline
def hide(P, scores, grads, row, begin, limit):
    """No weights from ``limit`` on, and for keys behind a query that looks not ahead."""
    lane = P.I(thread()) % WARP
    for a in static(range(P.atoms)):
        for n in static(range(P.columns // 8)):
            for k in static(range(4)):
                place = begin + static(n * 8 + k % 2) + lane % 4 * 2
                own = row + static(a * 16 + k // 2 * 8) + lane // 4
                seen = place < limit
                if P.causal:
                    seen = seen & (place <= own if P.by_query else own <= place)
                scores[a][n][k] = select(seen, scores[a][n][k], f32(0))
                if P.by_scores:
                    grads[a][n][k] = select(seen, grads[a][n][k], f32(0))


@inline
def add_tile(
    P, words, first_room, second_room, sums_room, stage, lefts, others, row, begin, limit, bases,
    means, totals, values,
):  # fmt: skip
    """Adds what a tile gives to this warp's rows."""
    first = first_room + stage * static(P.planes * P.tile_size(P.depth))
    second = second_room + stage * static(P.planes * P.tile_size(P.wide))
    scale = f32(bitcast(f64, words[static(P.word["scale"])])) * f32(LOG2_E)
    scores = product_by_rows(P, lefts, first, P.depth)
    grads = scores
    if P.by_scores:
        grads = product_by_rows(P, others, second, P.wide)
    room = sums_room + stage * static(2 * P.columns)
    weigh(P, scores, grads, scale, bases, means, room)
    end = begin + static(P.columns)
    edge = end > limit
    if P.causal:
        edge = edge | (end > row + 1 if P.by_query else begin < row + static(P.atoms * 16))
    if edge:
        hide(P, scores, grads, row, begin, limit)
    if P.by_weights:
        add_rows(P, as_lefts(P, scores), second, P.wide, values)
    if P.by_scores:
        add_rows(P, as_lefts(P, grads), first, P.depth, totals)


@inline
def reaches(P, row, begin):
    """Does a tile hold anything for this warp's rows?"""
    if P.causal:
        if P.by_query:
            return begin < row + static(P.atoms * 16)
        return begin + static(P.columns) > row
    return bool_(True)


@inline
def store_results(P, words, places, row, totals, values):
    """Writes the rows' gradients."""
    scale = f32(bitcast(f64, words[static(P.word["scale"])]))
    limit = word(P, words, static("queries" if P.by_query else "keys"))
    if P.by_scores:
        for a in static(range(P.atoms)):
            for n in static(range(P.depth // 8)):
                for k in static(range(4)):
                    totals[a][n][k] = totals[a][n][k] * scale
        store_rows(
            P, words, P.result, places[0], P.depth, row, limit, word(P, words, "features"), totals
        )  # fmt: skip
    if P.by_weights:
        store_rows(
            P, words, VALUE_GRADIENT, places[1], P.wide, row, limit, word(P, words, "width"), values
        )  # fmt: skip


@native
def attention_gradient_cores(words: ptr[i64], *, P) -> void:
    """Words: where the queries' sums lie, ``GRADIENT_WORDS``, each operand's last strides, then the
    heads' dims."""
    first_room = shared(P.T, static(2 * P.planes * P.tile_size(P.depth)))
    second_room = shared(P.T, static(2 * P.planes * P.tile_size(P.wide)))
    sums_room = shared(f32, static(4 * P.columns))
    heads = word(P, words, "heads")
    queries, keys = word(P, words, "queries"), word(P, words, "keys")
    b = P.I(block())
    head = b % heads
    tile = b // heads
    if P.by_query:  # (the longest first, where they differ)
        tile = word(P, words, "tiles") - 1 - tile
    top = tile * static(P.rows)
    row = top + P.I(thread()) // WARP * static(P.atoms * 16)
    begin = P.I(0)
    limit = keys if P.by_query else queries
    if P.causal:
        if P.by_query:
            limit = min(limit, top + static(P.rows))
        else:
            begin = top // static(P.columns) * static(P.columns)
    results = [place_of(P, words, k, head) for k in (P.result, VALUE_GRADIENT)]
    rows, count = (queries, keys) if P.by_query else (keys, queries)
    sources = [own_source(P, words, static(P.beside[n]), count, head) for n in static(range(2))]
    copy_tile(P, words, sources, first_room, second_room, P.I(0), begin, limit)
    copy_sums(P, words, head, sums_room, P.I(0), begin)
    bases = [[f32(0)] * 2 for a in static(range(P.atoms))]
    means = [[f32(0)] * 2 for a in static(range(P.atoms))]
    if P.by_query:
        row_sums(P, words, head, row, bases, means)
    lefts = row_fragments(
        P, words, static(P.own[0]),
        own_source(P, words, static(P.own[0]), rows, head), P.depth, row, rows,
        word(P, words, "features"),
    )  # fmt: skip
    others = lefts
    if P.by_scores:
        others = row_fragments(
            P, words, static(P.own[1]),
            own_source(P, words, static(P.own[1]), rows, head), P.wide, row, rows,
            word(P, words, "width"),
        )  # fmt: skip
    totals = no_sums(P, static(P.depth if P.by_scores else 0))
    values = no_sums(P, static(P.wide if P.by_weights else 0))
    stage = P.I(0)
    while begin < limit:
        wait_copies(0)
        barrier()
        ahead = begin + static(P.columns)
        copy_tile(P, words, sources, first_room, second_room, 1 - stage, ahead, limit)
        copy_sums(P, words, head, sums_room, 1 - stage, ahead)
        if reaches(P, row, begin):
            add_tile(
                P, words, first_room, second_room, sums_room, stage, lefts, others, row, begin,
                limit, bases, means, totals, values,
            )  # fmt: skip
        stage = 1 - stage
        begin = ahead
    store_results(P, words, results, row, totals, values)
