"""The template of Bags: rows of a table, folded in registers as they are read.

A unit is a block of the columns of a bag: the vectors of a block stay in registers while its rows
pass by, in the order of the indices. The first lines of a row are asked for some rows before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.gather import BadIndex
from antorcha.devices.cpu.gather_walk import AHEAD, THREAD, status
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import PassWork, work_of
from antorcha.devices.emit import NUMBERS, Unsupported
from antorcha.lang.kernels import Bags, Launch
from antorcha.lang.native import (
    address,
    f32,
    first,
    i32,
    i64,
    inline,
    native,
    prefetch,
    ptr,
    raw,
    select,
    static,
    struct,
    target,
    u64,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

VECTORS = 8  # of a block
MOST = 1 << 31  # indices, whose numbers are 32 bits in vectors


class BagsTemplate:
    """What the kernel is compiled for."""

    def __init__(self, element: Ty, index: Ty, what: Bags) -> None:
        self.T, self.I, self.A = element, index, f32 if element.half else element
        self.fold, self.sized, self.weighted = what.fold, what.size is not None, what.weighted
        self.skips = what.skipped is not None
        self.W = max(target().vector_bits // 8 // self.A.size, 4)
        self.outs = 2 if what.fold == "max" else 1
        self.starts = self.outs + 2  # buffers: the results, the table, the indices
        self.weights = self.starts + (not self.sized)

    def __native_key__(self) -> str:
        return (
            f"{self.T.name} {self.I.name} {self.fold} {self.sized} {self.weighted} {self.skips} "
            f"{self.W}"
        )


@struct
class BagsShape:
    bags: i64
    n: i64  # indices
    size: i64  # of a bag, where all are alike
    columns: i64
    rows: i64  # of the table
    step: i64  # from one to the next
    skipped: i64


@inline
def ends_of(P, work, shape, b):
    """The first index of a bag, and the end."""
    if P.sized:
        return b * shape.size, (b + 1) * shape.size
    starts = ptr[i64](work.bufs[P.starts])
    end = shape.n + 0
    if b + 1 < shape.bags:
        end = min(end, starts[b + 1])
    return max(starts[b], i64(0)), end


@inline
def ask_for_row(P, shape, x, i):
    """Asks for the first lines of the cache of a row, if there is such a row."""
    if u64(i) < u64(shape.rows):
        line = static(64 // P.T.size)
        for k in static(range(4)):
            prefetch(x + (i * shape.step + k * line))


@inline
def fold_block(P, work, shape, b, j, masks):
    """A block of columns, from column j on, of a bag."""
    W = static(P.W)
    x = ptr[P.T](work.bufs[P.outs]) + j
    index = ptr[P.I](work.bufs[P.outs + 1])
    lo, hi = ends_of(P, work, shape, b)
    acc = [vec[P.A, W](0) for _ in static(range(VECTORS))]
    best = [vec[i32, W](-1) for _ in static(range(VECTORS))]
    count = i64(0)
    for k in range(lo, hi):
        i = i64(index[k])
        ask_for_row(P, shape, x, i64(index[min(k + AHEAD, hi - 1)]))
        if u64(i) >= u64(shape.rows):
            work.failed = 1
        elif not P.skips or i != shape.skipped:
            count += 1
            row = x + i * shape.step
            for q in static(range(VECTORS)):
                value = vec[P.A, W](vload(row + q * W, W, masks[q]))
                if P.weighted:
                    value = value * vec[P.A, W](P.A(ptr[P.T](work.bufs[P.weights])[k]))
                if P.fold == "max":
                    better = (best[q] < 0) | (value > acc[q])
                    acc[q] = select(better, value, acc[q])
                    best[q] = select(better, vec[i32, W](i32(k)), best[q])
                else:
                    acc[q] = acc[q] + value
    at = b * shape.columns + j
    for q in static(range(VECTORS)):
        result = acc[q]
        if P.fold == "mean":
            result = result / vec[P.A, W](P.A(max(count, i64(1))))
        vstore(ptr[P.T](work.bufs[0]) + (at + q * W), vec[P.T, W](result), masks[q])
        if P.fold == "max":
            vstore(ptr[i64](work.bufs[1]) + (at + q * W), vec[i64, W](best[q]), masks[q])


@native
def bags_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1."""
    work = ptr[PassWork](args)
    shape = ptr[BagsShape](raw(work.desc))
    W = static(P.W)
    blocks = (shape.columns + W * VECTORS - 1) // (W * VECTORS)
    for u in range(u0, u1):
        b = u // blocks
        j = (u - b * blocks) * (W * VECTORS)
        if j + W * VECTORS <= shape.columns:
            fold_block(P, work, shape, b, j, [None for _ in static(range(VECTORS))])
        else:
            masks = [first(W, shape.columns - j - q * W) for q in static(range(VECTORS))]
            fold_block(P, work, shape, b, j, masks)


@native
def bags_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """desc: a BagsShape."""
    work = work_of(bufs, desc)
    shape = ptr[BagsShape](raw(desc))
    width = static(P.W * VECTORS)
    units = shape.bags * ((shape.columns + width - 1) // width)
    each = max(shape.n // max(shape.bags, 1), 1) * min(shape.columns, i64(width))
    pool_run(address(bags_job, P=P), units, max(THREAD // max(each, 1), 1), raw(work))
    if work.failed != 0:
        index = ptr[P.I](bufs[P.outs + 1])
        for k in range(shape.n):
            if u64(i64(index[k])) >= u64(shape.rows):
                return status(i64(index[k]), 0)
    return 0


def compile_bags(what: Bags, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    x, index, *rest = ins
    T = NUMBERS.get(x.dtype.name)
    dense = all([each.contiguous for each in (*outs, index, *rest)])
    if T is None or T.kind != "f" or not dense or x.strides[1] != 1 or index.numel >= MOST:
        raise Unsupported
    P = BagsTemplate(T, i32 if index.dtype.name == "int32" else i64, what)
    bags, columns = outs[0].shape
    skipped = -1 if what.skipped is None else what.skipped
    desc = (bags, index.numel, what.size or 0, columns, x.shape[0], x.strides[0], skipped)
    work = max(index.numel * columns, 1)
    kernel = NativeKernel(bags_kernel, {"P": P}, desc, BadIndex(what.refuse), work)
    return compile_native(what, kernel, outs, ins)
