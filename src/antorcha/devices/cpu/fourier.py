"""The template of Fourier: kernels of ours, and SciPy's pocketfft for the rest.

Where lines without great prime factors are transformed, many of them or long ones, kernels of ours
do it dim by dim (``fourier_lines``, ``fourier_long``). All else is pocketfft's, straight from the
operand's memory to the result's, on as many threads as kernels may use. What it is called with has
no place in SciPy's documentation; where it is elsewhere, SciPy's public functions compute instead
(``numpy_semantics.fourier``).

Of all of the transform of real numbers, the half that is the conjugate of the other is copied.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.devices.cpu.fourier_lines import TYPES
from antorcha.devices.cpu.fourier_long import dim_by_dim
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.template import Work, lanes_of, rows_of, work_of
from antorcha.devices.emit import Unsupported
from antorcha.devices.numpy_semantics.host import in_steps, launch_of, view
from antorcha.lang.kernels import Fourier, Launch
from antorcha.lang.native import (
    address,
    first,
    i64,
    inline,
    native,
    ptr,
    raw,
    shuffle,
    static,
    struct,
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
REALS = dtypes.float32, dtypes.float64
COMPLEX = dtypes.complex64, dtypes.complex128
NORMS = {"none": 0, "root": 1, "all": 2}
"""pocketfft's numbers of what sums are multiplied by."""
ALONE = 1 << 16
"""Elements of which a thread of pocketfft's is not worth being woken."""
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
    return _transform(what, what.dims, out, x)


@functools.cache
def _is_there() -> bool:
    try:
        return callable(pocketfft.c2c)
    except (ImportError, AttributeError):
        return False


def _transform(what: Fourier, dims: tuple[int, ...], out: Layout, x: Layout) -> Launch:
    """Dim by dim by kernels of ours, or by one call of pocketfft."""
    by_dims = dim_by_dim(what, dims, out, x)
    if by_dims is not None:
        return by_dims
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
    units = t.pieces * rows_of(3, ptr[i64](t + 1), t.dims)
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
