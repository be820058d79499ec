"""The kernels of pooling: windows over planes, in vectors of results.

A window is a start and a count along each of three axes (see ``Windows``); sliding windows with
any stride, padding and dilation, and adaptive ones, differ in these tables only. Small planes are
*flat*: a vector holds any results of a plane; others go by rows.
"""

# This file is partly in the kernel language, whose types are values: mypy cannot read it.
# mypy: ignore-errors
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from antorcha.lang.kernels import Host, NativeKernel
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    i32,
    i64,
    inline,
    local,
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
from antorcha.runtime.pool import pool_run

TYPES = {"float32": f32, "float64": f64}
FLAT = 4096  # results of a plane up to which every one has its own table entry


# ----------------------------------------------------------------------------------- the windows
@dataclass
class Axis:
    """The windows along one axis of ``size`` elements: element ``starts[o] + k * step``,
    k < ``counts[o]``; ``spans`` are their lengths, padding included."""

    size: int
    starts: list[int]
    counts: list[int]
    spans: list[int]
    step: int = 1

    @property
    def out(self) -> int:
        return len(self.starts)


def out_size(n: int, k: int, stride: int, pad: int, dilation: int, ceil: bool) -> int:
    """How many windows there are; with ``ceil`` the last may hang over, but must start inside."""
    room = n + 2 * pad - dilation * (k - 1) - 1
    size = (room + (stride - 1 if ceil else 0)) // stride + 1
    return size - 1 if ceil and (size - 1) * stride >= n + pad else size


def sliding(n: int, k: int, stride: int, pad: int, dilation: int, ceil: bool) -> Axis:
    starts, counts, spans = [], [], []
    for o in range(out_size(n, k, stride, pad, dilation, ceil)):
        low = o * stride - pad
        end = min(low + (k - 1) * dilation + 1, n)
        spans.append(min(low + k, n + pad) - low)
        low += -(low // dilation) * dilation if low < 0 else 0
        starts.append(low)
        counts.append(len(range(low, end, dilation)))
    return Axis(n, starts, counts, spans, dilation)


def adaptive(n: int, out: int) -> Axis:
    starts = [o * n // out for o in range(out)]
    counts = [-(-(o + 1) * n // out) - s for o, s in enumerate(starts)]
    return Axis(n, starts, counts, counts)


@dataclass
class Windows:
    """The windows of one plane, and what an average divides by."""

    axes: list[Axis]  # three
    include_pad: bool = True
    divisor: int | None = None

    @property
    def inside(self) -> int:
        return math.prod([a.size for a in self.axes])

    @property
    def results(self) -> int:
        return math.prod([a.out for a in self.axes])

    @property
    def most(self) -> list[int]:
        return [max(a.counts, default=0) for a in self.axes]

    @property
    def full(self) -> bool:
        """Have all windows the same counts?"""
        return all([len(set(a.counts)) <= 1 for a in self.axes])

    def sizes(self, axis: Axis) -> list[int]:
        return axis.spans if self.include_pad else axis.counts

    def steps(self) -> list[int]:
        """Elements between neighbours of a window along each axis."""
        _, h, w = self.axes
        return [self.axes[0].step * h.size * w.size, h.step * w.size, w.step]

    def outer(self, tables: Sequence[Sequence[int]], weights: Sequence[int]) -> np.ndarray:
        """sum of table[o] * weight over the axes, for every result in order."""
        parts = [np.asarray(t, np.int64) * w for t, w in zip(tables, weights, strict=True)]
        return (parts[0][:, None, None] + parts[1][:, None] + parts[2]).reshape(-1)

    def bases(self) -> np.ndarray:
        """Where each result's window starts in the plane."""
        _, h, w = self.axes
        return self.outer([a.starts for a in self.axes], [h.size * w.size, w.size, 1])

    def counts(self, k: int) -> np.ndarray:
        """The windows' counts along axis k, for every result."""
        weights = [int(j == k) for j in range(3)]
        return self.outer([a.counts for a in self.axes], weights)

    def divisors(self) -> np.ndarray:
        if self.divisor is not None:
            return np.full(self.results, self.divisor, np.int64)
        d, h, w = [np.asarray(self.sizes(a), np.int64) for a in self.axes]
        return (d[:, None, None] * h[:, None] * w).reshape(-1)


# ------------------------------------------------------------------------------- what is compiled
class Program:
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
class Task:
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


@struct
class Work:
    bufs: ptr[raw]
    desc: ptr[i64]
    failed: i64


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
    head = Task.size // 8
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
    work = ptr[Work](args)
    t = ptr[Task](raw(work.desc))
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
    work = local(Work)
    work.bufs = bufs
    work.desc = desc
    t = ptr[Task](raw(desc))
    pool_run(address(forward_job, P=P), t.planes * t.rows, t.grain, raw(work))
    return 0


@native
def scatter_job(p0: i64, p1: i64, args: raw, *, P) -> void:
    """Planes p0..p1: each result's gradient goes to the element that it was."""
    work = ptr[Work](args)
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
    work = local(Work)
    work.bufs = bufs
    work.desc = desc
    work.failed = 0
    pool_run(address(scatter_job, P=P), desc[0], desc[3], raw(work))
    return work.failed


@native
def spread_job(p0: i64, p1: i64, args: raw, *, P) -> void:
    """Planes p0..p1: each result's gradient is shared out among its window."""
    work = ptr[Work](args)
    t = ptr[Task](raw(work.desc))
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
    work = local(Work)
    work.bufs = bufs
    work.desc = desc
    t = ptr[Task](raw(desc))
    grain = max(t.grain // max(t.rows, 1), 1)
    pool_run(address(spread_job, P=P), t.planes, grain, raw(work))
    return 0


# ------------------------------------------------------------------------------- descriptions
def forward(mode: str, lay: Any, windows: Windows, indices: bool, shape: tuple[int, ...]) -> Any:
    """The description of a pooling of contiguous planes; results have the given shape."""
    planes = lay.numel // max(windows.inside, 1)
    reference = _reference(mode, windows, indices, shape)
    if lay.dtype.name not in TYPES or windows.inside >= 1 << 31 or not windows.results * planes:
        return Host(reference)
    P = Program(lay.dtype.name, mode, windows, indices)
    work = planes * windows.results * max(math.prod(windows.most), 1)
    return NativeKernel(
        forward_kernel, {"P": P}, tuple(words(planes, windows, P.flat)), reference, None, work
    )


def scatter(lay: Any, inside: int, results: int, shape: tuple[int, ...]) -> Any:
    """The description of the gradient of a maximum: (grad, indices) -> the input's gradient."""
    planes = lay.numel // max(results, 1)

    def reference(g: Any, where: Any) -> Any:
        made = np.zeros((planes, inside), np.asarray(g).dtype)
        at = np.asarray(where).reshape(planes, results)
        if at.size and (at.min() < 0 or at.max() >= inside):
            raise _outside(1)
        rows = np.broadcast_to(np.arange(planes)[:, None], at.shape)
        np.add.at(made, (rows, at), np.asarray(g).reshape(planes, results))
        return made.reshape(shape)

    T = TYPES.get(lay.dtype.name)
    if T is None or not results * planes:
        return Host(reference)
    grain = max(16384 // max(inside, 1), 1)
    return NativeKernel(
        scatter_kernel, {"P": T}, (planes, inside, results, grain), reference, _outside,
        planes * inside,
    )  # fmt: skip


def _outside(code: int) -> BaseException:
    from antorcha.errors import ShapeError

    return ShapeError("max_pool: an index is outside of its plane")


def spread(lay: Any, windows: Windows, shape: tuple[int, ...]) -> Any:
    """The description of the gradient of an average."""
    planes = lay.numel // max(windows.results, 1)

    def reference(g: Any) -> Any:
        made = np.zeros((planes, windows.inside), np.asarray(g).dtype)
        share = np.asarray(g).reshape(planes, windows.results) / windows.divisors()
        for spot, ok in _taps(windows):
            np.add.at(made, (slice(None), spot[ok]), share[:, ok].astype(made.dtype))
        return made.reshape(shape)

    T = TYPES.get(lay.dtype.name)
    if T is None or not windows.results * planes:
        return Host(reference)
    work = planes * windows.results * max(math.prod(windows.most), 1)
    return NativeKernel(
        spread_kernel, {"P": T}, tuple(words(planes, windows, False)), reference, None, work
    )


def _taps(windows: Windows) -> Any:
    """For each tap of the longest window: where it is for every result, and whether it counts."""
    bases = windows.bases()
    counts = [windows.counts(k) for k in range(3)]
    steps = windows.steps()
    for tap in np.ndindex(*windows.most):
        ok = np.ones(bases.shape, bool)
        for k in range(3):
            ok &= tap[k] < counts[k]
        yield bases + sum(t * s for t, s in zip(tap, steps, strict=True)), ok


def _reference(mode: str, windows: Windows, indices: bool, shape: tuple[int, ...]) -> Any:
    def compute(x: Any) -> Any:
        x = np.asarray(x)
        flat = x.reshape(-1, windows.inside) if windows.inside else x.reshape(0, 0)
        wide = flat.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else flat
        lowest = -np.inf if wide.dtype.kind == "f" else np.iinfo(wide.dtype).min
        start = lowest if mode == "max" else 0
        acc = np.full((flat.shape[0], windows.results), start, wide.dtype)
        best = np.broadcast_to(windows.bases(), acc.shape).copy()
        if acc.size:
            for spot, ok in _taps(windows):
                v = wide[:, np.where(ok, spot, 0)]
                if mode == "max":
                    better = ((v > acc) | (v != v)) & ok
                    acc = np.where(better, v, acc)
                    best = np.where(better, spot, best)
                else:
                    acc = acc + np.where(ok, v, 0)
        if mode == "avg":
            size = windows.divisors()
            acc = acc / size if acc.dtype.kind == "f" else np.trunc(acc / size)
        acc = acc.reshape(shape).astype(x.dtype)
        return (acc, best.reshape(shape)) if indices else acc

    return compute
