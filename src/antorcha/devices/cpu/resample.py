"""The template of Resample: weighted sums along one dim, in vectors.

Where the dim is the one whose elements follow each other, a vector holds results along it, and its
elements are gathered. Else a vector holds elements of the dims that lie closer: whole rows are
multiplied by a weight and added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import PassWork, work_of
from antorcha.devices.emit import WORDS, Unsupported
from antorcha.lang.kernels import Launch, Resample
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    i32,
    i64,
    inline,
    native,
    ptr,
    raw,
    select,
    static,
    struct,
    target,
    u8,
    vec,
    vgather,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

TYPES = {"float32": f32, "float64": f64, "int32": i32}
FEW = 4  # taps up to which there is code for just so many
GRAIN = 16384  # products that are worth another thread
MOST_WORDS = 1 << 20  # of tables


class ResampleProgram:
    """The compile-time choices of a resampling kernel."""

    def __init__(self, T: Any, taps: int, full: bool, copies: bool, wide: bool) -> None:
        self.T, self.full, self.copies = T, full, copies
        self.taps = taps if taps <= FEW else 0  # 0: the description says
        self.L = max(target().vector_bits // 8 // T.size, 2)
        self.unroll = 4 if wide else 1

    def __native_key__(self) -> str:
        return f"{self.T.name} {self.taps} {self.full} {self.copies} {self.L} {self.unroll}"


@struct
class ResampleTask:
    outer: i64  # lines along the dim, or planes of dim and closer dims
    n: i64  # elements along the dim
    m: i64  # results along it
    inner: i64  # elements of the closer dims
    taps: i64
    grain: i64
    places: i64  # where the tables are, in bytes from the description's begin
    weights: i64


@inline
def add_product(P, begins, acc, x, weight, where):
    """The sums with one more product each; ``begins``: with the first one."""
    if P.copies:
        return x
    total = x * weight if begins else acc + x * weight
    return total if P.full else select(where, total, acc)


@inline
def add_gathered(P, begins, t, acc, task, x, places, weights, i, few):
    """A vector of results from i on, with what their tap t of the line x adds to them."""
    at = vload(places + (t * task.m + i), P.L, few)
    ok = few if P.full else few & (at >= 0)
    weight = None if P.copies else vload(weights + (t * task.m + i), P.L, few)
    return add_product(P, begins, acc, vgather(x, at, ok), weight, ok)


@native
def line_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Lines u0..u1 along a dim whose elements follow each other."""
    work = ptr[PassWork](args)
    task = ptr[ResampleTask](raw(work.desc))
    places = ptr[i32](ptr[u8](work.desc) + task.places)
    weights = ptr[P.T](ptr[u8](work.desc) + task.weights)
    for u in range(u0, u1):
        x = ptr[P.T](work.bufs[1]) + u * task.n
        y = ptr[P.T](work.bufs[0]) + u * task.m
        for i in range(0, task.m, P.L):
            few = first(P.L, task.m - i)
            acc = vec[P.T, P.L](0)
            if P.taps > 0:
                for t in static(range(P.taps)):
                    acc = add_gathered(P, t == 0, t, acc, task, x, places, weights, i, few)
            else:
                for t in range(task.taps):
                    acc = add_gathered(P, False, t, acc, task, x, places, weights, i, few)
            vstore(y + i, acc, few)


@inline
def add_row(P, begins, t, acc, task, x, places, weights, i, b, masks):
    """Vectors of the row of results i, with what their tap t adds to them."""
    at = places[t * task.m + i]
    if P.full:
        return add_scaled(P, begins, t, acc, task, x, at, weights, i, b, masks)
    if at >= 0:
        acc = add_scaled(P, begins, t, acc, task, x, at, weights, i, b, masks)
    return acc


@inline
def add_scaled(P, begins, t, acc, task, x, at, weights, i, b, masks):
    row = x + (i64(at) * task.inner + b)
    weight = None if P.copies else vec[P.T, P.L](weights[t * task.m + i])
    return [
        add_product(P, begins, acc[k], vload(row + k * P.L, P.L, masks[k]), weight, masks[k])
        for k in static(range(P.unroll))
    ]


@native
def row_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Rows u0..u1 of results: all elements of the closer dims at one place of the dim."""
    work = ptr[PassWork](args)
    task = ptr[ResampleTask](raw(work.desc))
    places = ptr[i32](ptr[u8](work.desc) + task.places)
    weights = ptr[P.T](ptr[u8](work.desc) + task.weights)
    step = static(P.L * P.unroll)
    for u in range(u0, u1):
        plane = u // task.m
        i = u - plane * task.m
        x = ptr[P.T](work.bufs[1]) + plane * (task.n * task.inner)
        y = ptr[P.T](work.bufs[0]) + u * task.inner
        for b in range(0, task.inner, step):
            masks = [first(P.L, task.inner - b - k * P.L) for k in static(range(P.unroll))]
            acc = [vec[P.T, P.L](0) for _ in static(range(P.unroll))]
            if P.taps > 0:
                for t in static(range(P.taps)):
                    acc = add_row(P, t == 0, t, acc, task, x, places, weights, i, b, masks)
            else:
                for t in range(task.taps):
                    acc = add_row(P, False, t, acc, task, x, places, weights, i, b, masks)
            for k in static(range(P.unroll)):
                vstore(y + (b + k * P.L), acc[k], masks[k])


@native
def resample_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """desc: a ResampleTask, then the tables of places (i32) and weights."""
    work = work_of(bufs, desc)
    task = ptr[ResampleTask](raw(desc))
    if task.inner == 1:
        pool_run(address(line_job, P=P), task.outer, task.grain, raw(work))
    else:
        pool_run(address(row_job, P=P), task.outer * task.m, task.grain, raw(work))
    return 0


# ------------------------------------------------------------------------------------ descriptions
def compile_resample(what: Resample, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    return compile_native(what, resample_kernel_of(what, outs[0], ins[0]), outs, ins)


def resample_kernel_of(what: Resample, out: Layout, source: Layout) -> NativeKernel:
    """The kernel of a description, of tensors without holes."""
    copies = what.weights is None
    T: Any = WORDS.get(out.itemsize) if copies else TYPES.get(out.dtype.name)
    taps, m = what.places.shape
    n = source.shape[what.dim]
    closer = _closer_dims(what.dim, out, source)
    if T is None or closer is None or n >= 1 << 31 or taps * m > MOST_WORDS:
        raise Unsupported
    inner = math.prod([source.shape[d] for d in closer])
    tables, weights_at = _tables(what, T)
    outer = source.numel // (n * inner)
    task = [outer, n, m, inner, taps, 1, ResampleTask.size, ResampleTask.size + weights_at]
    task[5] = max(GRAIN // (taps * (m if inner == 1 else inner)), 1)
    full = copies or bool((what.places >= 0).all())
    P = ResampleProgram(T, taps, full, copies, inner > target().vector_bits // 8 // T.size)
    work = out.numel * taps
    return NativeKernel(resample_kernel, {"P": P}, (*task, *tables), None, work)


def _closer_dims(dim: int, out: Layout, source: Layout) -> list[int] | None:
    """The dims that lie closer than ``dim``; None unless both are in one piece, in one order."""
    strides = source.strides if source.shape[dim] > 1 else out.strides
    order = sorted(range(out.ndim), key=lambda d: -strides[d])
    for layout in (out, source):
        step = 1
        for d in reversed(order):
            if layout.shape[d] != 1 and layout.strides[d] != step:
                return None
            step *= layout.shape[d]
        if step == 0:
            return None
    return order[order.index(dim) + 1 :]


def _tables(what: Resample, T: Any) -> tuple[list[int], int]:
    """Places and weights as words, and where the weights begin, in bytes."""
    parts = [what.places.astype(np.int32)]
    if what.weights is not None:
        parts.append(what.weights.astype(T.np))
    blocks = [each.tobytes() for each in parts]
    blocks = [each + bytes(-len(each) % 8) for each in blocks]
    words: list[int] = np.frombuffer(b"".join(blocks), np.int64).tolist()
    return words, len(blocks[0])
