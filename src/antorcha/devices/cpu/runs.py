"""Runs of equal elements: where each begins is counted by parts, then written by parts.

Elements are read in blocks of 64, which give a word: bit i is set where an element differs from the
one before. A part writes no more than was counted, whatever another thread does to the elements
meanwhile. NaN is a run of its own.
"""

from __future__ import annotations

from typing import Any

from antorcha.core import dtypes
from antorcha.devices.cpu.native import NativeKernel
from antorcha.devices.cpu.passes import CHANGED, Passes, PassWork, failed, place_parts, work_of
from antorcha.devices.cpu.select import SelectTask, mask_task, parts_of
from antorcha.devices.cpu.sort_keys import SORT, Keys, key_of
from antorcha.lang.kernels import Distinct
from antorcha.lang.native import (
    address,
    clz,
    ctpop,
    ctz,
    first,
    i64,
    inline,
    mask_bits,
    native,
    ptr,
    raw,
    static,
    u64,
    vload,
    void,
)
from antorcha.runtime.counted import Count, Shape
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run


@inline
def differs(K, few, before, here):
    """Which elements differ from the ones before."""
    key = key_of(K, here)
    found = key != key_of(K, before)
    if K.kind == "f":
        found = found | (key == static(K.U)(K.ones))
    return mask_bits(found if few is None else found & few)


@inline
def begins_at(K, x, at, hi):
    """Which of up to 64 elements from ``at`` on begin a run, the first one lowest."""
    W = static(64 // K.U.size)
    word = u64(1) if at == 0 else u64(0)
    low = max(at, 1)
    shift = u64(low - at)
    n = min(at + 64, hi) - low
    p = ptr[static(K.U)](x) + low
    if n == 64:
        for k in static(range(K.U.size)):
            found = differs(K, None, vload(p + (k * W - 1), W), vload(p + k * W, W))
            word = word | u64(found) << (k * W)
    else:
        for k in static(range(K.U.size)):
            few = first(W, n - k * W)
            found = differs(K, few, vload(p + (k * W - 1), W, few), vload(p + k * W, W, few))
            word = word | u64(found) << (k * W) << shift
    return word


@native
def count_runs(c0: i64, c1: i64, args: raw, *, K) -> void:
    """How many runs begin in parts c0..c1, and where the last one does (-1: none does)."""
    work = ptr[PassWork](args)
    t = ptr[SelectTask](raw(work.desc))
    lasts = ptr[i64](work.bufs[1])
    for c in range(c0, c1):
        lo = c * t.part
        hi = min(lo + t.part, t.n)
        total = u64(0)
        last = i64(-1)
        for at in range(lo, hi, 64):
            word = begins_at(K, work.bufs[2], at, hi)
            total += ctpop(word)
            if word != 0:
                last = at + 63 - i64(clz(word))
        work.offsets[c + 1] = i64(total)
        lasts[c] = last


@native
def count_runs_kernel(bufs: ptr[raw], desc: ptr[i64], *, K) -> i64:
    """bufs: the parts' first runs, and the number of all; where the last run before each part
    begins; the input."""
    work = work_of(bufs, desc)
    work.offsets = ptr[i64](bufs[0])
    t = ptr[SelectTask](raw(desc))
    lasts = ptr[i64](bufs[1])
    pool_run(address(count_runs, K=K), t.parts, 4, raw(work))
    place_parts(work, t.parts)
    last = i64(0)
    for c in range(t.parts):
        here = lasts[c]
        lasts[c] = last
        if here >= 0:
            last = here
    lasts[t.parts] = last
    return 0


@native
def write_runs(c0: i64, c1: i64, args: raw, *, K, INVERSE, COUNTS) -> void:
    """The runs that begin in parts c0..c1. bufs: values, inverse, counts; the two of
    ``count_runs_kernel``; the input."""
    work = ptr[PassWork](args)
    t = ptr[SelectTask](raw(work.desc))
    U = static(K.U)
    values = ptr[U](work.bufs[0])
    inverse = ptr[i64](work.bufs[1])
    counts = ptr[i64](work.bufs[2])
    x = ptr[U](work.bufs[5])
    for c in range(c0, c1):
        lo = c * t.part
        hi = min(lo + t.part, t.n)
        k = work.offsets[c]
        end = work.offsets[c + 1]
        last = ptr[i64](work.bufs[4])[c]
        for at in range(lo, hi, 64):
            word = begins_at(K, work.bufs[5], at, hi)
            if k + i64(ctpop(word)) > end:  # the elements are not what was counted
                work.failed = CHANGED
                return
            if INVERSE:
                group = k - 1
                for i in range(at, min(at + 64, hi)):
                    group += i64(word >> u64(i - at) & 1)
                    inverse[i] = group
            while word != 0:
                i = at + i64(ctz(word))
                values[k] = x[i]
                if COUNTS:
                    if k > 0:
                        counts[k - 1] = i - last
                    last = i
                k += 1
                word = word & (word - 1)
        if k != end:
            work.failed = CHANGED


@native
def write_runs_kernel(bufs: ptr[raw], desc: ptr[i64], *, K, INVERSE, COUNTS) -> i64:
    work = work_of(bufs, desc)
    work.offsets = ptr[i64](bufs[3])
    t = ptr[SelectTask](raw(desc))
    pool_run(address(write_runs, K=K, INVERSE=INVERSE, COUNTS=COUNTS), t.parts, 2, raw(work))
    if COUNTS:
        total = work.offsets[t.parts]
        ptr[i64](bufs[2])[total - 1] = t.n - ptr[i64](bufs[4])[t.parts]
    return work.failed


def run_passes(what: Distinct, x: Layout) -> Passes:
    """The two passes over a contiguous tensor's elements."""
    n, fail, K = x.numel, failed(what.name), Keys(x, False, SORT, x.numel)
    desc = (*mask_task(n), 0)
    parts = parts_of(n)
    scratch = [((parts + 1,), dtypes.int64)] * 2
    options: dict[str, Any] = {"K": K, "INVERSE": what.inverse, "COUNTS": what.counts}
    return Passes(
        NativeKernel(count_runs_kernel, {"K": K}, desc, fail, n), scratch,
        shapes_of(what, x, Count(0)),
        NativeKernel(write_runs_kernel, options, desc, fail, n), first=parts,
    )  # fmt: skip


def shapes_of(what: Distinct, x: Layout, groups: Count) -> list[Shape]:
    """The shapes of values, inverse and counts."""
    inverse: Shape = tuple(x.shape) if what.inverse else (0,)
    return [(groups,), inverse, (groups,) if what.counts else (0,)]
