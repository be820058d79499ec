"""The templates of Search and Bins: places in sorted lines, and counts of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import CHANGED, Passes, PassWork, compile_passes, failed, work_of
from antorcha.devices.cpu.tally import find_ends, tally
from antorcha.devices.cpu.template import lanes_of
from antorcha.devices.emit import NUMBERS, Unsupported
from antorcha.lang.kernels import Bins, Launch, Search
from antorcha.lang.native import (
    address,
    clz,
    i64,
    inline,
    memset,
    native,
    ptr,
    raw,
    select,
    static,
    struct,
    vec,
    vgather,
    vload,
    void,
    vstore,
)
from antorcha.runtime.counted import Count
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run


# ---------------------------------------------------------------------------------- searchsorted
@struct
class Lines:
    lines: i64
    edges: i64  # elements of a sorted line
    step: i64  # from one sorted line to the next: 0 if there is only one
    values: i64  # per line
    grain: i64


WIDTH, VECTORS = 8, 4  # values that are looked for at once: a bisection waits for every load


@inline
def places_of_some(T, I, RIGHT, edges, n, values, out):
    """The places of WIDTH * VECTORS values in one line."""
    some = [vload(values + g * WIDTH, WIDTH) for g in static(range(VECTORS))]
    low = [vec[i64, WIDTH](0) for g in static(range(VECTORS))]
    high = [vec[i64, WIDTH](n) for g in static(range(VECTORS))]
    for _halving in range(64 - clz(n)):
        for g in static(range(VECTORS)):
            open_ = low[g] < high[g]
            mid = (low[g] + high[g]) >> 1
            edge = vgather(edges, mid, open_)
            behind = (edge > some[g]) if RIGHT else (edge >= some[g])
            high[g] = select(open_ & behind, mid, high[g])
            low[g] = select(open_, select(behind, low[g], mid + 1), low[g])
    for g in static(range(VECTORS)):
        vstore(out + g * WIDTH, vec[I, WIDTH](low[g]))


@native
def search_job(v0: i64, v1: i64, args: raw, *, T, I, RIGHT, SORTER) -> void:
    """bufs: the places, the sorted lines, the values, the lines' order if there is one."""
    work = ptr[PassWork](args)
    t = ptr[Lines](raw(work.desc))
    out = ptr[I](work.bufs[0])
    edges = ptr[T](work.bufs[1])
    values = ptr[T](work.bufs[2])
    line = v0 // t.values
    left = (line + 1) * t.values - v0
    v = v0 + 0
    while v < v1:
        if left == 0:
            line += 1
            left = t.values + 0
        some = static(WIDTH * VECTORS if not SORTER and T.size >= 4 else 0)
        if some and min(left, v1 - v) >= some:
            places_of_some(T, I, RIGHT, edges + line * t.step, t.edges, values + v, out + v)
            v += some
            left -= some
            continue
        left -= 1
        value = values[v]
        lo = i64(0)
        hi = t.edges + 0
        while lo < hi:
            mid = (lo + hi) >> 1
            at = line * t.step + mid
            if SORTER:
                order = ptr[i64](work.bufs[3])[at]
                if order < 0 or order >= t.edges:
                    work.failed = CHANGED
                    order = i64(0)
                at = line * t.step + order
            edge = edges[at]
            behind = (edge > value) if RIGHT else (edge >= value)
            if behind:
                hi = mid + 0
            else:
                lo = mid + 1
        out[v] = I(lo)
        v += 1


@native
def search_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, I, RIGHT, SORTER) -> i64:
    work = work_of(bufs, desc)
    t = ptr[Lines](raw(desc))
    job = address(search_job, T=T, I=I, RIGHT=RIGHT, SORTER=SORTER)
    pool_run(job, t.lines * t.values, t.grain, raw(work))
    return work.failed


# -------------------------------------------------------------------------------------- bincount
@native
def ends_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W) -> i64:
    """The least and the greatest of desc[0] integers, as i64; bufs: the two, the integers."""
    find_ends(ptr[i64](bufs[0]), bufs[1], desc[0], T=T, W=W)
    return 0


@native
def bincount_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, WEIGHT, TOTAL) -> i64:
    """desc: the number of integers, the least number of bins; bufs: the bins, the integers' range,
    the integers, the weights. Sums of weights have the integers' order."""
    bins = max(ptr[i64](bufs[1])[1] + 1, desc[1])
    if WEIGHT is None:
        return tally(ptr[i64](bufs[0]), bufs[2], desc[0], i64(0), bins, T=T)
    else:
        x = ptr[T](bufs[2])
        out = ptr[TOTAL](bufs[0])
        memset(raw(out), 0, bins * TOTAL.size)
        for i in range(desc[0]):
            at = i64(x[i])
            if at < 0 or at >= bins:
                return CHANGED
            out[at] = out[at] + TOTAL(ptr[WEIGHT](bufs[3])[i])
        return 0


# ------------------------------------------------------------------------------------ descriptions
def compile_search(what: Search, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    edges, values, *sorter = ins
    T = NUMBERS.get(edges.dtype.name)
    dense = all([layout.contiguous for layout in ins])
    if sorter and sorter[0].dtype.name != "int64":
        raise Unsupported
    if T is None or not dense or not values.numel or edges.ndim == 0:
        raise Unsupported
    n = edges.shape[-1]
    per_line = values.numel if edges.ndim == 1 else values.shape[-1]
    lines = values.numel // per_line
    desc = (lines, n, 0 if edges.ndim == 1 else n, per_line, 4096)
    options = {"T": T, "I": NUMBERS[outs[0].dtype.name], "RIGHT": what.right,
               "SORTER": bool(sorter)}  # fmt: skip
    refuse = what.refuse
    kernel = NativeKernel(search_kernel, options, desc, lambda code: refuse(), 8 * values.numel)
    return compile_native(what, kernel, outs, ins)


def compile_bins(what: Bins, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    x, *weights = ins
    T, weight = NUMBERS[x.dtype.name], None
    if not x.numel or not x.contiguous or x.dtype.name == "uint64":
        raise Unsupported
    if weights:
        weight = NUMBERS.get(weights[0].dtype.name)
        if weight is None or not weights[0].contiguous:
            raise Unsupported
    fail, desc = failed(what.name), (x.numel, what.least)
    lanes = lanes_of(T.size)
    options = {"T": T, "WEIGHT": weight, "TOTAL": NUMBERS[outs[0].dtype.name]}
    ends = NativeKernel(ends_kernel, {"T": T, "W": lanes}, desc, fail, x.numel)
    count = NativeKernel(bincount_kernel, options, desc, fail, x.numel)

    bins = Count(1, 1, what.least)  # as many as the greatest of them says
    passes = Passes(ends, [((2,), dtypes.int64)], [(bins,)], count, refuse=what.refuse)
    return compile_passes(what, passes, outs, ins)
