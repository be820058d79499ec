"""The templates of Search and Bins: places in sorted lines, and counts of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import (
    CHANGED,
    NO_MEMORY,
    Passes,
    PassWork,
    compile_passes,
    failed,
    work_of,
)
from antorcha.devices.emit import NUMBERS, Unsupported
from antorcha.lang.kernels import Bins, Launch, Search
from antorcha.lang.native import (
    address,
    atomic_max,
    atomic_min,
    clz,
    first,
    i64,
    inline,
    local,
    memset,
    native,
    ptr,
    raw,
    reduce_max,
    reduce_min,
    select,
    static,
    struct,
    u32,
    u64,
    vec,
    vgather,
    vload,
    void,
    vstore,
)
from antorcha.lang.native.machine import target
from antorcha.runtime.counted import Count
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run, pool_threads


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
SHARE = 1 << 15  # integers that are worth a thread
TABLES = 4  # that neighbours are counted in: an addition to a bin waits for the last one to it
SMALL = 1 << 11  # bins of which so many tables stay in the first cache


@native
def range_job(u0: i64, u1: i64, args: raw, *, T, W) -> void:
    """The least and the greatest of integers u0..u1, joined to those found so far."""
    work = ptr[PassWork](args)
    x = ptr[T](work.bufs[1])
    low, high = x[u0] + T(0), x[u0] + T(0)
    at = u0 + (u1 - u0) // (2 * W) * (2 * W)
    if at > u0:
        lows = [vload(x + u0, W) for _ in static(range(2))]
        highs = [vload(x + u0, W) for _ in static(range(2))]
        for i in range(u0, at, 2 * W):
            for k in static(range(2)):
                some = vload(x + i + k * W, W)
                lows[k], highs[k] = min(lows[k], some), max(highs[k], some)
        low = reduce_min(min(lows[0], lows[1]))
        high = reduce_max(max(highs[0], highs[1]))
    for i in range(at, u1):
        low, high = min(low, x[i]), max(high, x[i])
    found = ptr[i64](work.bufs[0])
    atomic_min(found, i64(low))
    atomic_max(found + 1, i64(high))


@native
def range_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W) -> i64:
    """The least and the greatest of desc[0] integers, as i64; bufs: the two, the integers."""
    work = work_of(bufs, desc)
    found = ptr[i64](bufs[0])
    found[0] = i64(ptr[T](bufs[1])[0])
    found[1] = found[0]
    pool_run(address(range_job, T=T, W=W), desc[0], SHARE, raw(work))
    return 0


@struct
class Tally:
    """Integers counted in tables that are added up afterwards: so many a part."""

    x: raw
    n: i64
    bins: i64
    parts: i64
    tables: ptr[u32]
    apart: i64  # from a table of a part to the next, in which the next integer is counted
    of_part: i64  # from the tables of a part to the next's
    failed: i64


@native
def tally_job(c0: i64, c1: i64, args: raw, *, T) -> void:
    """The counts of parts c0..c1."""
    tally = ptr[Tally](args)
    x = ptr[T](tally.x)
    bins = u64(tally.bins)
    apart = tally.apart
    for c in range(c0, c1):
        table = tally.tables + c * tally.of_part
        memset(raw(table), 0, tally.of_part * 4)
        lo = c * tally.n // tally.parts
        hi = (c + 1) * tally.n // tally.parts
        whole = lo + (hi - lo) // TABLES * TABLES
        for i in range(lo, whole, TABLES):
            at = [u64(x[i + k]) for k in static(range(TABLES))]
            if max(max(at[0], at[1]), max(at[2], at[3])) >= bins:
                tally.failed = CHANGED
                return
            for k in static(range(TABLES)):
                place = table + (k * apart + i64(at[k]))
                place[0] = place[0] + 1
        for i in range(whole, hi):
            one = u64(x[i])
            if one >= bins:
                tally.failed = CHANGED
                return
            place = table + i64(one)
            place[0] = place[0] + 1


@native
def total_job(b0: i64, b1: i64, args: raw) -> void:
    """Bins b0..b1 of all tables added up in the result, which x is by now."""
    tally = ptr[Tally](args)
    out = ptr[i64](tally.x)
    end = tally.parts * tally.of_part
    for b in range(b0, b1, 8):
        few = first(8, b1 - b)
        total = vec[i64, 8](0)
        for table in range(0, end, tally.bins):
            total = total + vec[i64, 8](vload(tally.tables + table + b, 8, few))
        vstore(out + b, total, few)


@native
def tally_tables(tally: ptr[Tally], out: raw, *, T) -> i64:
    """The counts of integers in tables; gives the status."""
    space = allocate(tally.parts * tally.of_part * 4)
    if space is None:
        return NO_MEMORY
    tally.tables = ptr[u32](space)
    tally.failed = 0
    pool_run(address(tally_job, T=T), tally.parts, 1, raw(tally))
    tally.x = out
    if tally.failed == 0:
        pool_run(address(total_job), tally.bins, SHARE, raw(tally))
    release(space)
    return tally.failed


@native
def bincount_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, WEIGHT, TOTAL) -> i64:
    """desc: the number of integers, the least number of bins; bufs: the bins, the integers' range,
    the integers, the weights. Sums of weights have the integers' order."""
    n = desc[0]
    bins = max(ptr[i64](bufs[1])[1] + 1, desc[1])
    if WEIGHT is None:
        tally = local(Tally)
        tally.x, tally.n, tally.bins = bufs[2], n, bins
        tally.apart = bins if bins <= SMALL else i64(0)
        tally.of_part = bins if bins > SMALL else TABLES * bins
        tally.parts = min(min(pool_threads(), max(n // SHARE, 1)), n // (4 * tally.of_part))
        if tally.parts > (1 if bins > SMALL else 0) and n < 1 << 32:
            return tally_tables(tally, bufs[0], T=T)
    x = ptr[T](bufs[2])
    out = ptr[TOTAL](bufs[0])
    memset(raw(out), 0, bins * TOTAL.size)
    for i in range(n):
        at = i64(x[i])
        if at < 0 or at >= bins:
            return CHANGED
        if WEIGHT is None:
            out[at] = out[at] + TOTAL(1)
        else:
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
    lanes = target().vector_bits // 8 // T.size
    options = {"T": T, "WEIGHT": weight, "TOTAL": NUMBERS[outs[0].dtype.name]}
    ends = NativeKernel(range_kernel, {"T": T, "W": lanes}, desc, fail, x.numel)
    count = NativeKernel(bincount_kernel, options, desc, fail, x.numel)

    bins = Count(1, 1, what.least)  # as many as the greatest of them says
    passes = Passes(ends, [((2,), dtypes.int64)], [(bins,)], count, refuse=what.refuse)
    return compile_passes(what, passes, outs, ins)
