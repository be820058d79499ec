"""The template of Fourier: SciPy's pocketfft, and what is left to do around it.

pocketfft transforms several rows at a time in vector lanes, straight from the operand's memory to
the result's, on as many threads as kernels may use. Kernels of ours do the rest:

- All of the transform of real numbers: the half that is the conjugate of the other is copied.
- A long row alone, whose factors pocketfft takes one number at a time, as the columns and the rows
  of a matrix: with j = j1 n2 + j2 and k = k1 + n1 k2, X[k] is the transform along j2 of w^(j2 k1)
  times the transform along j1, w = exp(-2 pi i / n) (Gentleman and Sande, "Fast Fourier transforms
  for fun and profit", 1966).

What pocketfft is called with has no place in SciPy's documentation; where it is elsewhere, SciPy's
public functions compute instead (``numpy_semantics.fourier``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.core.shapes import contiguous_strides
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.template import Work, lanes_of, work_of
from antorcha.devices.emit import Unsupported
from antorcha.devices.numpy_semantics.host import in_steps, launch_of, view
from antorcha.lang.kernels import Fourier, Launch
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    fma,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    shuffle,
    static,
    struct,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.runtime import pool
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import new_storage
from antorcha.runtime.pool import pool_run
from antorcha.runtime.sequence import Sequence as Steps

pocketfft = lazy("scipy.fft._pocketfft.pypocketfft")

Place = Sequence[int]
"""Where a sequence has a storage, and an offset."""
TYPES: dict[str, Any] = {"complex64": f32, "complex128": f64}
REALS = dtypes.float32, dtypes.float64
COMPLEX = dtypes.complex64, dtypes.complex128
NORMS = {"none": 0, "root": 1, "all": 2}
"""pocketfft's numbers of what sums are multiplied by."""
ALONE = 1 << 16
"""Elements of which a thread of pocketfft's is not worth being woken."""
LONG = 1 << 12
"""Elements of a row that is transformed as a matrix."""
LEAST, MOST = 64, 512
"""Rows of such a matrix."""
FEW = 4
"""Of fewer rows pocketfft transforms each alone, one number at a time."""
PAD = 8  # elements between rows, so that columns are not a power of two apart
PIECE = 4096  # elements of a row that are a unit of work
APART = 1 << 20
"""Elements for each thread of ours: between two calls of pocketfft's it would spin, and keep one of
pocketfft's from working."""


def compile_fourier(what: Fourier, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (out,), (x,) = outs, ins
    if not what.dims or not x.numel or not out.numel or not _is_there():
        raise Unsupported
    if x.dtype not in (REALS if what.kind == "real" else COMPLEX):
        raise Unsupported("pocketfft's functions convert nothing")
    if what.kind == "real" and not what.onesided:
        return _whole(what, out, x)
    if what.kind == "complex" and len(what.dims) == 1 and x.dtype.name == "complex64":
        n1 = _columns(x.shape[what.dims[0]])
        if n1 and x.numel < FEW * x.shape[what.dims[0]]:
            return _as_matrix(what, out, x, n1)
    return _transform(what, what.dims, out, x)


@functools.cache
def _is_there() -> bool:
    try:
        return callable(pocketfft.c2c)
    except (ImportError, AttributeError):
        return False


def _transform(what: Fourier, dims: tuple[int, ...], out: Layout, x: Layout) -> Launch:
    """One call of pocketfft."""
    norm, forward, length = NORMS[what.norm], what.forward, what.length
    alone = max(out.numel, x.numel) < ALONE
    kind = {"complex": pocketfft.c2c, "real": pocketfft.r2c, "to real": pocketfft.c2r}[what.kind]
    sizes = (length,) if what.kind == "to real" else ()

    def into(storage: Any, offset: int, source: Any, start: int) -> None:
        threads = 1 if alone else int(pool.get_num_threads())
        target = view(out, storage, offset)
        kind(view(x, source, start), dims, *sizes, forward, norm, target, threads)

    return launch_of(into, [out], [x])


# ------------------------------------------------------------------------- all of real numbers'
@struct
class MirrorTask:
    """Description words; then each outer dim: its size, its steps in the whole and in the half, and
    whether it is turned, too."""

    n: i64  # of the last dim of the transform
    step: i64
    half_step: i64
    pieces: i64  # units that a row is cut into
    dims: i64  # outer


@inline
def copy_straight(T, W, out, p, low, high, out_step, step):
    """Elements low..high."""
    if out_step == 1 and step == 1:
        for k in range(low, high, W):
            few = first(2 * W, 2 * (high - k))
            vstore(out + 2 * k, vload(p + 2 * k, 2 * W, few), few)
    else:
        for k in range(low, high):
            out[2 * k * out_step] = p[2 * k * step]
            out[2 * k * out_step + 1] = p[2 * k * step + 1]


@inline
def copy_turned(T, W, end, p, low, high, out_step, step):
    """X[n - k] from X[k], low <= k < high, where ``end`` is X + n."""
    k = low
    if out_step == 1 and step == 1:
        turned = static([2 * (W - 1 - k // 2) + k % 2 * (2 * W + 1) for k in range(2 * W)])
        for at in range(low, low + (high - low) // W * W, W):
            v = vload(p + 2 * at, 2 * W)
            vstore(end - 2 * (at + W - 1), shuffle(v, -v, turned))
        k = low + max(high - low, i64(0)) // W * W
    for at in range(k, high):
        end[-2 * at * out_step] = p[2 * at * step]
        end[1 - 2 * at * out_step] = -p[2 * at * step + 1]


@native
def mirror_job(u0: i64, u1: i64, args: raw, *, T, W, COPY) -> void:
    """Units u0..u1: X[n - k] is the conjugate of X[k], with all that is transformed turned."""
    work = ptr[Work](args)
    t = ptr[MirrorTask](raw(work.desc))
    dims = ptr[i64](t + 1)
    for u in range(u0, u1):
        out = ptr[T](work.bufs[0])
        half = ptr[T](work.bufs[1])
        turned = half
        rest = u // t.pieces
        for d in range(t.dims):
            size, step = dims[d * 4], 2 * dims[d * 4 + 2]
            i = rest % size
            rest = rest // size
            out = out + 2 * i * dims[d * 4 + 1]
            half = half + i * step
            turned = turned + ((size - i) % size if dims[d * 4 + 3] != 0 else i) * step
        low = u % t.pieces * PIECE
        high = low + PIECE
        if COPY:
            copy_straight(T, W, out, half, low, min(high, t.n // 2 + 1), t.step, t.half_step)
        copy_turned(
            T, W, out + 2 * t.n * t.step, turned, max(low, i64(1)), min(high, (t.n + 1) // 2),
            t.step, t.half_step,
        )  # fmt: skip


@native
def mirror_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W, COPY) -> i64:
    work = work_of(bufs, desc)
    t = ptr[MirrorTask](raw(desc))
    dims = ptr[i64](t + 1)
    units = t.pieces
    for d in range(t.dims):
        units = units * dims[d * 4]
    job = address(mirror_job, T=T, W=W, COPY=COPY)
    pool_run(job, units, max(APART // min(t.n, PIECE), 1), raw(work))
    return 0


def _whole(what: Fourier, out: Layout, x: Layout) -> Launch:
    """One half by pocketfft: into the result, or, where its columns are transformed, too, into
    memory where they lie closer, and not a power of two apart."""
    last, T = what.dims[-1], TYPES[out.dtype.name]
    n, apart = out.shape[last], len(what.dims) > 1
    shape = tuple([n // 2 + 1 if d == last else size for d, size in enumerate(out.shape)])
    half = L.layout(shape, out.strides, out.dtype, out.device)
    if apart:
        half = L.contiguous(shape, out.dtype, out.device)
    words = [n, out.strides[last], half.strides[last], n // 2 // PIECE + 1, out.ndim - 1]
    for d in reversed(range(out.ndim)):
        if d != last:
            words += [out.shape[d], out.strides[d], half.strides[d], int(d in what.dims)]
    static = {"T": T, "W": lanes_of(2 * T.size), "COPY": apart}
    kernel = NativeKernel(mirror_kernel, static, tuple(words), work=out.numel)
    transform = _transform(what, what.dims, half, x)
    mirror = compile_native(what, kernel, [out], [half])

    def write(steps: Steps, to: Place, source: Place) -> None:
        side = to
        if apart:
            side = (steps.allocate(half.nbytes, new_storage), steps.constant(0))
        steps.into(transform.into, *side, *source)
        steps.into(mirror.into, *to, *side)

    return in_steps(write, out, 2)


# ------------------------------------------------------------------------------- a row as a matrix
@struct
class TwistTask:
    """Description words."""

    n1: i64
    n2: i64
    pitch: i64  # from row to row
    rows: i64  # of all matrices
    bits: i64  # of the numbers of the table's first part


@inline
def root(t, table, m):
    """w^m, of the numbers w^0, w^1 .. and then w^(2^bits * 0), w^(2^bits * 1) .."""
    low = table + 2 * (m & ((i64(1) << t.bits) - 1))
    high = table + 2 * ((i64(1) << t.bits) + (m >> t.bits))
    return low[0] * high[0] - low[1] * high[1], low[0] * high[1] + low[1] * high[0]


@native
def twist_job(u0: i64, u1: i64, args: raw) -> void:
    """Rows u0..u1: element j2 of row k1 is multiplied by w^(j2 k1)."""
    work = ptr[Work](args)
    t = ptr[TwistTask](raw(work.desc))
    table = ptr[f64](work.bufs[1])
    twice = static([lane // 2 for lane in range(16)])
    signs = static([lane // 2 + 8 * (lane % 2) for lane in range(16)])
    swap = static([lane ^ 1 for lane in range(16)])
    for u in range(u0, u1):
        k1 = u % t.n1
        row = ptr[f32](work.bufs[0]) + 2 * u * t.pitch
        re = local(f64, 8)
        im = local(f64, 8)
        for j in static(range(8)):
            re[j], im[j] = root(t, table, k1 * j)
        a = vload(re, 8)
        b = vload(im, 8)
        for j in range(0, t.n2, 8):
            c, d = root(t, table, k1 * j)
            cos = vec[f32, 8](a * c - b * d)
            sin = vec[f32, 8](a * d + b * c)
            few = first(16, 2 * (t.n2 - j))
            v = vload(row + 2 * j, 16, few)
            turned = shuffle(v, None, swap) * shuffle(-sin, sin, signs)
            vstore(row + 2 * j, fma(v, shuffle(cos, None, twice), turned), few)


@native
def twist_kernel(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    work = work_of(bufs, desc)
    t = ptr[TwistTask](raw(desc))
    pool_run(address(twist_job), t.rows, max(APART // t.n2, 1), raw(work))
    return 0


@functools.lru_cache(maxsize=8)
def _roots(n: int, bits: int, forward: bool) -> Any:
    """The storage of `root`'s table."""
    m = np.concatenate([np.arange(1 << bits), np.arange((n >> bits) + 1) << bits])
    w = np.exp((-2j if forward else 2j) * np.pi / n * m)
    storage = new_storage(w.nbytes)
    np.frombuffer(memoryview(storage), w.dtype)[:] = w
    return storage


def _columns(n: int) -> int:
    """The n1 of a row that is transformed as a matrix; 0: it is not."""
    if n < LONG:
        return 0
    return next((d for d in range(min(isqrt(n), MOST), LEAST - 1, -1) if n % d == 0), 0)


def _as_matrix(what: Fourier, out: Layout, x: Layout, n1: int) -> Launch:
    (d,), n, dtype = what.dims, x.shape[what.dims[0]], x.dtype
    n2, bits = n // n1, n.bit_length() // 2

    def matrix(layout: Layout, rows: int, row: int, column: int) -> Layout:
        """Its elements with two dims in the place of one, at the end."""
        rest = [k for k in range(layout.ndim) if k != d]
        step = layout.strides[d]
        return L.layout(
            (*[layout.shape[k] for k in rest], rows, n // rows),
            (*[layout.strides[k] for k in rest], row * step, column * step), dtype, layout.device,
        )  # fmt: skip

    source = matrix(x, n1, n2, 1)
    last, pitch = source.ndim - 1, n2 + PAD
    strides = contiguous_strides((*source.shape[:-1], pitch))
    between = L.layout(source.shape, strides, dtype, x.device)
    columns = _transform(what, (last - 1,), between, source)
    rows = _transform(what, (last,), matrix(out, n1, 1, n1), between)
    table = _roots(n, bits, what.forward)
    size = x.numel // n2 * pitch * dtype.itemsize
    at = L.contiguous((table.nbytes // 8,), dtypes.float64, x.device)
    kernel = NativeKernel(twist_kernel, {}, (n1, n2, pitch, x.numel // n2, bits))
    twist = compile_native(what, kernel, [between], [at])

    def write(steps: Steps, to: Place, source: Place) -> None:
        start = steps.constant(0)
        room = steps.allocate(size, new_storage)
        steps.into(columns.into, room, start, *source)
        steps.into(twist.into, room, start, steps.constant(table), start)
        steps.into(rows.into, *to, room, start)

    return in_steps(write, out, 2)
