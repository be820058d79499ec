"""Fourier transforms: which kernels run, one for each dim, and what they need to know.

Lengths whose factors are small are transformed by the kernel; SciPy's pocketfft has the others. A
long signal that is alone is a matrix (D. H. Bailey, "FFTs in external or hierarchical memory",
1990): its columns are transformed, multiplied by roots of unity, and then its rows.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from antorcha.core.loops import collapse
from antorcha.core.structs import struct as record
from antorcha.devices.cpu.emit import Unsupported
from antorcha.devices.cpu.fourier_kernel import (
    RADICES,
    FourierProgram,
    FourierTask,
    fourier_kernel,
)
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import failed
from antorcha.devices.cpu.template import words_of
from antorcha.lang.kernels import Fourier, Launch
from antorcha.lang.native import f32, f64, target
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, as_numpy, new_storage
from antorcha.runtime.sequence import Sequence as Steps

TYPES: dict[str, Any] = {"float32": f32, "float64": f64, "complex64": f32, "complex128": f64}
LONGEST = 8192  # numbers that the scratch of a kernel holds for every lane
ALONE = 256  # from which on a signal that is alone is a matrix
LONGEST_ALONE = 1 << 22
GRAIN = 1 << 15  # numbers that are worth another thread

Array = np.ndarray[Any, Any]


@record
class Along:
    """A pass over one dim: its strides at both ends, in real numbers, and those of other dims."""

    n: int  # complex numbers that are transformed
    kept: int  # results
    source: tuple[int, int]  # to the next element, and to the imaginary part
    target: tuple[int, int]
    sizes: tuple[int, ...]  # of the other dims, the last one being the lanes
    columns: Sequence[tuple[int, int]]  # their strides at both ends


def compile_fourier(what: Fourier, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (out,), (source,) = outs, ins
    T = TYPES.get(source.dtype.name)
    if T is None or not out.numel or not source.numel or not what.dims:
        raise Unsupported
    scale = 1 / _divisor(what, out if what.kind == "to real" else source)
    if _is_alone(what, out):
        return _matrix(what, T, out, source, scale)
    launches = []
    for k, dim in enumerate(reversed(what.dims)):
        last = k == len(what.dims) - 1
        begins = out if k else source
        half = what.kind if k == 0 and what.onesided else ""
        along, P = pass_along(what, T, dim, out, begins, half)
        kernel = kernel_of(P, along, scale if last else 1.0)
        launches.append(compile_native(what, kernel, [out], [begins]))
    return _one_after_another(out, launches)


def _one_after_another(out: Layout, launches: Sequence[Launch]) -> Launch:
    """The first one reads the operand, the others the result."""
    first, *others = launches
    if not others:
        return first
    into, fresh = Steps(4), Steps(2)
    room = fresh.allocate(out.nbytes, new_storage), fresh.constant(0)
    into.into(first.into, 0, 1, 2, 3)
    fresh.into(first.into, *room, 0, 1)
    for each in others:
        into.into(each.into, 0, 1, 0, 1)
        fresh.into(each.into, *room, *room)
    return Launch(fresh.bound(room[0]), into.bound())


def _divisor(what: Fourier, signal: Layout) -> float:
    """What the sums are divided by."""
    count = math.prod([signal.shape[d] for d in what.dims])
    return {"all": float(count), "root": math.sqrt(count), "none": 1.0}[what.norm]


def pass_along(
    what: Fourier, T: Any, dim: int, out: Layout, source: Layout, half: str
) -> tuple[Along, FourierProgram]:
    """The pass along a dim; ``half``: of "real" numbers, or "to real" ones."""
    (a, b), n, kept = _strides(out, source, dim), source.shape[dim], out.shape[dim]
    real, ends = source.dtype.kind == "f", ""
    if half == "real" and n % 2 == 0:
        n, a, real, ends = n // 2, (2 * a[0], a[0]), False, "in"
    elif half == "to real":
        if kept % 2 or len(what.dims) > 1 or source.shape[dim] <= kept // 2:
            raise Unsupported
        n = kept = kept // 2
        b, ends = (2 * b[0], b[0]), "out"
    rest = [d for d in range(out.ndim) if d != dim]
    ends_of = [_parts(source), _parts(out)]
    order = sorted(rest, key=lambda d: (-source.strides[d], d))
    sizes, columns = collapse(
        [out.shape[d] for d in order],
        [[layout.strides[d] * p for d in order]
         for layout, p in zip((source, out), ends_of, strict=True)],
    )  # fmt: skip
    lanes = _lanes_first([*sizes], [*columns], a[0], b[0])
    along = Along(n, kept, a, b, *lanes)
    if n > LONGEST or _radices(n) is None:
        raise Unsupported
    count, (x, y) = along.sizes[-1], along.columns[-1]
    width = target().vector_bits // 8 // T.size if count > 1 else 1
    forward = what.forward and half != "to real"
    if half == "real" and not what.forward:
        raise Unsupported
    kinds = _kind(a, x, real), _kind(b, y, False)
    return along, FourierProgram(T, width, *kinds, forward, real=real, half=ends)


def _lanes_first(
    sizes: list[int], columns: list[Any], a: int, b: int
) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    """The other dims with that last whose elements are the lanes: the one that lies closest, or,
    where the transformed dim lies closest, the largest."""
    found = [(c[0], c[1]) for c in zip(*columns, strict=True)] if sizes else []
    if not sizes:
        return (1,), [(0, 0)]
    closest = min(range(len(sizes)), key=lambda k: found[k][1])
    if found[closest][1] > min(abs(b), 2):
        closest = max(range(len(sizes)), key=lambda k: sizes[k])
    order = [*[k for k in range(len(sizes)) if k != closest], closest]
    return tuple([sizes[k] for k in order]), [found[k] for k in order]


def _parts(layout: Layout) -> int:
    """Real numbers of an element."""
    return 2 if layout.dtype.kind == "c" else 1


def _strides(out: Layout, source: Layout, dim: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """To the next element along a dim, and to an element's imaginary part, of both ends."""
    a, b = (layout.strides[dim] * _parts(layout) for layout in (source, out))
    return (a, 1), (b, 1)


def _kind(along: tuple[int, int], lane: int, real: bool) -> str:
    step, part = along
    if step == 2 and part == 1 and not real:
        return "rows"
    if lane == 2 and part == 1 and not real:
        return "pairs"
    return "parts" if lane == 1 else "any"


def kernel_of(P: FourierProgram, along: Along, scale: float) -> NativeKernel:
    """The kernel of a pass, with its tables."""
    if P.L == 1:
        P.source, P.target = "any", "any"
    radices = _radices(along.n) or ()
    *outer, count = along.sizes
    strides = list(zip(*along.columns[:-1], strict=True)) if outer else [(), ()]
    dims = words_of(outer, strides)
    groups = -(-count // P.L)
    roots = _words(_stage_roots(along.n, P.T is f32))
    half = _words(_half_roots(along.n, P.T is f32)) if P.half else []
    head = FourierTask.size // 8
    at = [head, head + len(dims), head + len(dims) + len(radices)]
    x, y = along.columns[-1]
    task = [
        groups * math.prod(outer), groups, count, along.n, along.kept, len(radices),
        max(GRAIN // (along.n * P.L), 1), len(outer), _bits(scale),
        *along.source, x, *along.target, y, *at, at[-1] + len(roots),
    ]  # fmt: skip
    desc = (*task, *dims, *radices, *roots, *half)
    work = math.prod(along.sizes) * along.n * max(len(radices), 1)
    return NativeKernel(fourier_kernel, {"P": P}, desc, failed("fft"), work)


# -------------------------------------------------------------------------------- a signal alone
def _is_alone(what: Fourier, out: Layout) -> bool:
    whole = what.kind in ("complex", "real") and not what.onesided and len(what.dims) == 1
    return whole and out.numel == out.shape[what.dims[0]] and out.numel >= ALONE


def _matrix(what: Fourier, T: Any, out: Layout, source: Layout, scale: float) -> Launch:
    """One long signal, as n1 rows of n2 elements: columns into scratch memory, rows from there."""
    (dim,) = what.dims
    n = out.numel
    n1, n2 = _factors(n)
    (a, _), (b, _) = _strides(out, source, dim)
    real = source.dtype.kind == "f"
    width = target().vector_bits // 8 // T.size
    columns = Along(n1, n1, (a * n2, 1), (2 * n2, 1), (n2,), [(a, 2)])
    rows = Along(n2, n2, (2, 1), (b * n1, 1), (n1,), [(2 * n2, b)])
    kinds = _kind(columns.source, a, real), "pairs"
    P = FourierProgram(T, width, *kinds, what.forward, real=real, turned=True)
    Q = FourierProgram(T, width, "rows", _kind(rows.target, b, False), what.forward)
    scratch = L.contiguous((n,), out.dtype, out.device)
    ins = [source, L.contiguous((2, n), out.dtype.to_real(), out.device)]
    first = compile_native(what, kernel_of(P, columns, 1.0), [scratch], ins)
    second = compile_native(what, kernel_of(Q, rows, scale), [out], [scratch])

    def write(steps: Steps, out: tuple[int, int], source: tuple[int, int]) -> None:
        start, roots = steps.constant(0), steps.constant(_turning(n1, n2, T is f32))
        between = steps.allocate(scratch.nbytes, new_storage), start
        steps.into(first.into, *between, *source, roots, start)
        steps.into(second.into, *out, *between)

    into, fresh = Steps(4), Steps(2)
    write(into, (0, 1), (2, 3))
    room = fresh.allocate(out.nbytes, new_storage), fresh.constant(0)
    write(fresh, room, (0, 1))
    return Launch(fresh.bound(room[0]), into.bound())


def _factors(n: int) -> tuple[int, int]:
    """Two factors, the first the larger one, as near to each other as they can be."""
    if n > LONGEST_ALONE or _radices(n) is None:
        raise Unsupported
    small = next(k for k in range(math.isqrt(n), 0, -1) if n % k == 0)
    if n // small > LONGEST:
        raise Unsupported
    return n // small, small


# ---------------------------------------------------------------------------------------- tables
@lru_cache(maxsize=256)
def _radices(n: int) -> tuple[int, ...] | None:
    """The factors of a length; None where it has others than those of the kernel."""
    found: list[int] = []
    for radix in RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return tuple(found) if n == 1 else None


def roots_of_unity(n: int) -> Array:
    """exp(-2 pi i k / n) for k < n, each from an angle of at most pi / 4."""
    k = 8 * np.arange(n, dtype=np.int64)
    octant, rest = k // n, k % n
    odd = octant % 2 == 1
    angle = np.where(odd, n - rest, rest) * (math.pi / 4 / n)
    cos, sin = np.cos(angle), np.sin(angle)
    cos, sin = np.where(odd, sin, cos), np.where(odd, cos, sin)  # of the angle in its quadrant
    quadrant = octant // 2
    re = np.select([quadrant == 0, quadrant == 1, quadrant == 2], [cos, -sin, -cos], sin)
    im = np.select([quadrant == 0, quadrant == 1, quadrant == 2], [sin, cos, -sin], -cos)
    found: Array = re - 1j * im
    return found


@lru_cache(maxsize=64)
def _stage_roots(n: int, single: bool) -> Array:
    """For each pass, for each of its transforms, the roots that its results are multiplied by."""
    whole, parts, left = roots_of_unity(n), [np.zeros(0, np.complex128)], n
    for radix in _radices(n) or ():
        m = left // radix
        at = np.arange(m)[:, None] * np.arange(1, radix)
        parts.append(whole[at.ravel() * (n // left)])
        left = m
    return np.concatenate(parts).astype(np.complex64 if single else np.complex128)


@lru_cache(maxsize=64)
def _half_roots(h: int, single: bool) -> Array:
    roots = roots_of_unity(2 * h)[: h // 2 + 1]
    return roots.astype(np.complex64 if single else np.complex128)


@lru_cache(maxsize=4)
def _turning(n1: int, n2: int, single: bool) -> Storage:
    """The roots that a matrix is multiplied by: all their real parts, then the imaginary ones."""
    whole = roots_of_unity(n1 * n2)
    turned = whole[np.arange(n1)[:, None] * np.arange(n2) % (n1 * n2)]
    dtype = np.dtype(np.float32 if single else np.float64)
    size, shape = dtype.itemsize, (2, n1 * n2)
    storage = new_storage(2 * n1 * n2 * size)
    as_numpy(storage, 0, shape, (n1 * n2 * size, size), dtype)[...] = [
        turned.real.ravel(), turned.imag.ravel()
    ]  # fmt: skip
    return storage


def _bits(number: float) -> int:
    """A float64 as a word."""
    (word,) = struct.unpack("q", struct.pack("d", number))
    return int(word)


def _words(table: Array) -> list[int]:
    blocks = table.tobytes()
    words: list[int] = np.frombuffer(blocks + bytes(-len(blocks) % 8), np.int64).tolist()
    return words
