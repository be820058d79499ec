"""The pooling template: windows over planes, in vectors of results.

Sliding windows with any stride, padding and dilation, and adaptive ones, differ in the tables of
their starts and counts only (``lang.windows``). Small planes are *flat*: a vector holds any results
of a plane; others go by rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import PassWork, work_of
from antorcha.devices.emit import Unsupported
from antorcha.devices.numpy_semantics.pooling import outside_of_plane
from antorcha.lang.kernels import Launch, Pooling
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    i32,
    i64,
    inline,
    memset,
    native,
    ptr,
    raw,
    select,
    static,
    struct,
    target,
    vec,
    vgather,
    vload,
    void,
    vstore,
)
from antorcha.lang.windows import Windows
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

TYPES = {"float32": f32, "float64": f64}
FLAT = 4096  # results of a plane up to which every one has its own table entry


# ------------------------------------------------------------------------------- what is compiled
class PoolingProgram:
    """The compile-time choices of a pooling kernel."""

    def __init__(self, dtype: str, mode: str, windows: Windows, indices: bool) -> None:
        self.T = TYPES[dtype]
        self.L = max(target().vector_bits // 8 // self.T.size, 2)
        self.mode, self.indices = mode, indices
        self.full = windows.full
        width = windows.axes[2].out
        self.flat = windows.results <= FLAT and width < 4 * self.L
        starts = windows.axes[2].starts
        self.line = bool(
            not self.flat and self.full and starts == list(range(starts[0], starts[0] + width))
        )

    def __native_key__(self) -> str:
        flags = f"{self.indices} {self.full} {self.flat} {self.line}"
        return f"{self.T.name} {self.L} {self.mode} {flags}"


@struct
class PoolingTask:
    planes: i64
    rows: i64  # of results, in a plane
    length: i64  # of a row
    inside: i64  # elements of a plane
    results: i64
    nd: i64  # the longest window
    nh: i64
    nw: i64
    step_d: i64
    step_h: i64
    step_w: i64
    grain: i64
    row_at: i64  # tables, in words from the description's begin: see ``words``
    col_at: i64


def words(planes: int, windows: Windows, flat: bool) -> list[int]:
    """The description: Task, then (start, count d, count h, divisor) of the rows, then the same of
    the columns: tables of start, count w, divisor. Flat planes have one row, and five tables."""
    d, h, w = windows.axes
    if flat:
        rows, length = 1, windows.results
        row_table = [0, 0, 0, 1]
        columns = [windows.bases(), windows.counts(2), windows.divisors(), windows.counts(0),
                   windows.counts(1)]  # fmt: skip
        tables = [int(v) for each in columns for v in each]
    else:
        rows, length = d.out * h.out, w.out
        row_table = []
        over = windows.divisor
        for a in range(d.out):
            for b in range(h.out):
                size = 1 if over else windows.sizes(d)[a] * windows.sizes(h)[b]
                start = (d.starts[a] * h.size + h.starts[b]) * w.size
                row_table += [start, d.counts[a], h.counts[b], size]
        sizes = [over] * w.out if over else windows.sizes(w)
        tables = [*w.starts, *w.counts, *sizes]
    taps = max(math.prod(windows.most), 1)
    head = PoolingTask.size // 8
    grain = max(16384 // max(length * taps, 1), 1)
    return [
        planes, rows, length, windows.inside, windows.results, *windows.most, *windows.steps(),
        grain, head, head + len(row_table), *row_table, *tables,
    ]  # fmt: skip


@inline
def integers(P, p, few):
    return vec[i32, P.L](vload(p, P.L, few))


@native
def forward_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Rows u0..u1 of results of all planes."""
    work = ptr[PassWork](args)
    t = ptr[PoolingTask](raw(work.desc))
    L = static(P.L)
    T = static(P.T)
    cols = work.desc + t.col_at
    for u in range(u0, u1):
        plane = u // t.rows
        row = u - plane * t.rows
        here = work.desc + (t.row_at + row * 4)
        x = ptr[T](work.bufs[2 if P.indices else 1]) + (plane * t.inside + here[0])
        y = ptr[T](work.bufs[0]) + (plane * t.results + row * t.length)
        where = ptr[i64](work.bufs[1]) + (plane * t.results + row * t.length)
        nd = t.nd if P.flat else here[1]
        nh = t.nh if P.flat else here[2]
        for i in range(0, t.length, L):
            few = first(L, t.length - i)
            at = integers(P, cols + i, few)
            many = integers(P, cols + (t.length + i), few)
            deep = integers(P, cols + (3 * t.length + i), few) if P.flat else None
            high = integers(P, cols + (4 * t.length + i), few) if P.flat else None
            acc = vec[T, L](float("-inf")) if P.mode == "max" else vec[T, L](0)
            best = at
            for d in range(nd):
                for h in range(nh):
                    for w in range(t.nw):
                        tap = d * t.step_d + h * t.step_h + w * t.step_w
                        spot = at + vec[i32, L](i32(tap))
                        ok = few
                        if not P.full:
                            ok = ok & (many > vec[i32, L](i32(w)))
                            if P.flat:
                                ok = ok & (deep > vec[i32, L](i32(d)))
                                ok = ok & (high > vec[i32, L](i32(h)))
                        if P.line:
                            v = vload(x + (cols[0] + i + tap), L, ok)
                        else:
                            v = vgather(x, spot, ok)
                        if P.mode == "max":
                            better = ((v > acc) | (v != v)) & ok
                            acc = select(better, v, acc)
                            if P.indices:
                                best = select(better, spot, best)
                        else:
                            acc = acc + v
            if P.mode == "max":
                vstore(y + i, acc, few)
                if P.indices:
                    vstore(where + i, vec[i64, L](best) + vec[i64, L](here[0]), few)
            else:
                size = vload(cols + (2 * t.length + i), L, few) * vec[i64, L](here[3])
                vstore(y + i, acc / vec[T, L](size), few)


@native
def forward_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """Values (and indices within the plane) of the windows."""
    work = work_of(bufs, desc)
    t = ptr[PoolingTask](raw(desc))
    pool_run(address(forward_job, P=P), t.planes * t.rows, t.grain, raw(work))
    return 0


@native
def scatter_job(p0: i64, p1: i64, args: raw, *, P) -> void:
    """Planes p0..p1: each result's gradient goes to the element that it was."""
    work = ptr[PassWork](args)
    inside = work.desc[1]
    results = work.desc[2]
    T = static(P)
    for plane in range(p0, p1):
        x = ptr[T](work.bufs[0]) + plane * inside
        g = ptr[T](work.bufs[1]) + plane * results
        where = ptr[i64](work.bufs[2]) + plane * results
        memset(raw(x), 0, inside * P.size)
        for k in range(results):
            at = where[k]
            if at >= 0 and at < inside:
                x[at] = x[at] + g[k]
            else:
                work.failed = 1


@native
def scatter_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """desc: planes, elements of a plane, results of a plane, grain."""
    work = work_of(bufs, desc)
    pool_run(address(scatter_job, P=P), desc[0], desc[3], raw(work))
    return work.failed


@native
def spread_job(p0: i64, p1: i64, args: raw, *, P) -> void:
    """Planes p0..p1: each result's gradient is shared out among its window."""
    work = ptr[PassWork](args)
    t = ptr[PoolingTask](raw(work.desc))
    T = static(P)
    rows = work.desc + t.row_at
    cols = work.desc + t.col_at
    for plane in range(p0, p1):
        x = ptr[T](work.bufs[0]) + plane * t.inside
        g = ptr[T](work.bufs[1]) + plane * t.results
        memset(raw(x), 0, t.inside * P.size)
        for r in range(t.rows):
            row = rows + r * 4
            for c in range(t.length):
                size = row[3] * cols[2 * t.length + c]
                v = g[r * t.length + c] / T(size)
                to = x + (row[0] + cols[c])
                for d in range(row[1]):
                    for h in range(row[2]):
                        line = to + (d * t.step_d + h * t.step_h)
                        for w in range(cols[t.length + c]):
                            line[w * t.step_w] = line[w * t.step_w] + v


@native
def spread_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    work = work_of(bufs, desc)
    t = ptr[PoolingTask](raw(desc))
    grain = max(t.grain // max(t.rows, 1), 1)
    pool_run(address(spread_job, P=P), t.planes, grain, raw(work))
    return 0


# ------------------------------------------------------------------------------- descriptions
def compile_pooling(what: Pooling, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    return compile_native(what, pooling_kernel(what, outs, ins), outs, ins)


def pooling_kernel(what: Pooling, outs: Sequence[Layout], ins: Sequence[Any]) -> NativeKernel:
    """The kernel of a description, of contiguous planes."""
    T = TYPES.get(ins[0].dtype.name)
    dense = all([layout.contiguous and layout.numel for layout in (*outs, *ins)])
    if T is None or not dense:
        raise Unsupported
    windows = what.windows
    if what.kind == "max gradient" or windows is None:
        return _scattered(T, what, outs[0], ins[0])
    if windows.inside >= 1 << 31:
        raise Unsupported
    planes = ins[0].numel // (windows.results if "gradient" in what.kind else windows.inside)
    work = planes * windows.results * max(math.prod(windows.most), 1)
    if what.kind == "average gradient":
        desc = words(planes, windows, False)
        return NativeKernel(spread_kernel, {"P": T}, tuple(desc), None, work)
    mode = "max" if what.kind == "max" else "avg"
    P = PoolingProgram(ins[0].dtype.name, mode, windows, len(outs) == 2)
    desc = words(planes, windows, P.flat)
    return NativeKernel(forward_kernel, {"P": P}, tuple(desc), None, work)


def _scattered(T: Any, what: Pooling, out: Layout, grad: Layout) -> NativeKernel:
    inside, results = [math.prod(layout.shape[layout.ndim - what.dims :]) for layout in (out, grad)]
    planes = grad.numel // results
    desc = (planes, inside, results, max(16384 // inside, 1))
    return NativeKernel(
        scatter_kernel, {"P": T}, desc, lambda status: outside_of_plane(), out.numel
    )
