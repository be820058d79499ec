"""The template of Attention: a few queries at a time, whose scores never leave the caches.

Both products are those of ``matmul``: queries and weights are packed as its left factors, keys as
its right one; values are read where they lie. Between them the scores of some queries are a strip
of rows, of which softmax is taken. Where each query looks at no later place than its own, nothing
beyond the last one's place is computed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.devices.cpu.matmul import ProductShape, bits, pack, shape_of, tiles
from antorcha.devices.cpu.passes import NO_MEMORY, failed
from antorcha.devices.cpu.template import advance, launch, odometer, words_of
from antorcha.devices.emit import Unsupported
from antorcha.devices.math.exponential import exp
from antorcha.lang.kernels import Attention, Launch
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    reduce_add,
    reduce_max,
    select,
    static,
    struct,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

PANELS = 8  # of queries that are a unit of work: it packs the keys again
TYPES: dict[str, Any] = {"float32": f32, "float64": f64}
WORTH = 1 << 18  # products that are worth another thread


class AttentionProgram:
    """The compile-time choices of a kernel."""

    def __init__(self, S: ProductShape, causal: bool) -> None:
        self.S, self.causal = S, causal

    def __native_key__(self) -> str:
        return f"{self.S.__native_key__()} {self.causal}"


@struct
class AttentionTask:
    parts: i64  # units of the queries of a head
    units: i64
    queries: i64
    keys: i64
    features: i64
    width: i64  # features of a value
    scale: f64
    out_row: i64
    query_row: i64
    query_col: i64
    key_row: i64
    key_col: i64
    value_row: i64
    dims: i64  # of heads; their sizes and strides follow


@struct
class AttentionJob:
    bufs: ptr[raw]
    task: ptr[AttentionTask]
    failed: i64


@struct
class AttentionSpace:
    """Scratch memory: packed keys, packed queries, a strip of scores, the packed strip."""

    keys: raw
    queries: raw
    scores: raw
    weights: raw
    pitch: i64  # elements of a row of scores


@inline
def softmax_row(P, row, count, limit):
    """The first ``count`` of a row of scores as weights; those up to ``limit`` are 0."""
    S = static(P.S)
    T = static(P.S.T)
    L = static(S.L)
    low = vec[T, S.L](float("-inf"))
    top = low
    for j in range(0, count, L):
        few = first(L, count - j)
        v = vload(row + j, L, few)
        top = select(few & ((v > top) | (v != v)), v, top)
    most = reduce_max(top)
    if P.causal:  # a query that sees nothing finds zeros
        most = T(0) if most == T(float("-inf")) else most
    total = vec[T, S.L](0)
    for j in range(0, count, L):
        few = first(L, count - j)
        e = select(few, exp(vload(row + j, L, few) - vec[T, S.L](most)), vec[T, S.L](0))
        total = total + e
        vstore(row + j, e, first(L, limit - j))
    for j in range((count + L - 1) // L * L, limit, L):
        vstore(row + j, vec[T, S.L](0), first(L, limit - j))
    whole = reduce_add(total)
    if P.causal:
        whole = T(1) if whole == T(0) else whole
    share = vec[T, S.L](T(1) / whole)
    for j in range(0, count, L):
        few = first(L, count - j)
        vstore(row + j, vload(row + j, L, few) * share, few)


@native
def softmax_strip(
    scores: raw, pitch: i64, m: i64, from_row: i64, keys: i64, limit: i64, *, P
) -> void:
    """The weights of m queries, of which the first is number ``from_row``."""
    for r in range(m):
        count = min(keys, from_row + r + 1) if P.causal else keys
        softmax_row(P, ptr[static(P.S.T)](scores) + r * pitch, count, limit)


@inline
def pack_keys(P, t, keys, space, limit):
    """The keys up to a place, as the right factor of the scores."""
    S = static(P.S)
    size = static(S.T.size)
    for j in range(0, limit, S.NR):
        pack(
            t.features, min(limit - j, i64(S.NR)), keys + j * t.key_row * size, t.key_row,
            t.key_col, space.keys + j * t.features * size, S=S, W=S.NR,
        )  # fmt: skip


@inline
def attend(P, t, query, value, out, space, i, m):
    """The results of m queries from number i on."""
    S = static(P.S)
    size = static(S.T.size)
    NR = static(S.NR)
    limit = min(t.keys, i + m) if P.causal else t.keys
    nowhere = raw(0)
    pack(
        t.features, m, query + i * t.query_row * size, t.query_row, t.query_col, space.queries,
        S=S, W=S.MR,
    )  # fmt: skip
    for j in range(0, limit, NR):
        tiles(
            t.features, space.queries, space.keys + j * t.features * size, i64(NR),
            space.scores + j * size, space.pitch, nowhere, i64(0), m, limit - j, t.scale, S=S,
        )  # fmt: skip
    softmax_strip(space.scores, space.pitch, m, i, t.keys, limit, P=P)
    pack(limit, m, space.scores, space.pitch, i64(1), space.weights, S=S, W=S.MR)
    for j in range(0, t.width, NR):
        tiles(
            limit, space.weights, value + j * size, t.value_row,
            out + (i * t.out_row + j) * size, t.out_row, nowhere, i64(0), m, t.width - j, 1.0, S=S,
        )  # fmt: skip


@native
def attention_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1: some queries of a head each."""
    work = ptr[AttentionJob](args)
    t = work.task
    S = static(P.S)
    size = static(S.T.size)
    MR = static(S.MR)
    rows = static(PANELS * S.MR)
    pitch = (t.keys + static(S.NR - 1)) // S.NR * S.NR
    block = allocate((pitch * (t.features + 2 * MR) + t.features * MR + 64) * size)
    if block is None:
        work.failed = NO_MEMORY
        return
    space = local(AttentionSpace)
    space.pitch = pitch
    space.keys = block
    space.queries = space.keys + pitch * t.features * size
    space.scores = space.queries + t.features * MR * size
    space.weights = space.scores + pitch * MR * size
    outer = ptr[i64](t + 1)
    index, offset = odometer(4, outer, t.dims, u0 // t.parts)
    part = u0 % t.parts
    for _u in range(u0, u1):
        begin = part * rows
        end = min(t.queries, begin + rows)
        query = work.bufs[1] + offset[1] * size
        value = work.bufs[3] + offset[3] * size
        out = work.bufs[0] + offset[0] * size
        limit = min(t.keys, end) if P.causal else t.keys
        pack_keys(P, t, work.bufs[2] + offset[2] * size, space, limit)
        for i in range(begin, end, MR):
            attend(P, t, query, value, out, space, i, min(end - i, i64(MR)))
        part += 1
        if part == t.parts:
            part = i64(0)
            advance(4, outer, t.dims, index, offset)
    release(block)


@native
def attention_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """desc: an AttentionTask, and what `odometer` wants of the heads."""
    work = local(AttentionJob)
    work.bufs = bufs
    work.task = ptr[AttentionTask](desc)
    work.failed = 0
    t = work.task
    each = static(PANELS * P.S.MR) * t.keys * (t.features + t.width)
    pool_run(address(attention_job, P=P), t.units, max(WORTH // max(each, 1), 1), raw(work))
    return work.failed


@functools.cache
def _kernel_for(T: Any, causal: bool) -> Any:
    return attention_kernel.spec(P=AttentionProgram(shape_of(T), causal))


def compile_attention(what: Attention, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    out, (query, key, value) = outs[0], ins
    T = TYPES.get(out.dtype.name)
    if T is None or len(outs) > 1 or out.strides[-1] != 1 or value.strides[-1] != 1:
        raise Unsupported
    *heads, queries, features = query.shape
    keys, width = value.shape[-2:]
    parts = -(-queries // (PANELS * shape_of(T).MR))
    sizes, columns = collapse(heads, [each.strides[:-2] for each in (out, query, key, value)])
    task = [
        parts, parts * math.prod(heads), queries, keys, features, width, bits(what.scale),
        out.strides[-2], *query.strides[-2:], *key.strides[-2:], value.strides[-2], len(sizes),
    ]  # fmt: skip
    work = out.numel * keys // 16
    kernel = _kernel_for(T, what.causal)
    words = [*task, *words_of(sizes, columns)]
    return launch(kernel, words, outs, ins, work, what, failed("scaled_dot_product_attention"))
