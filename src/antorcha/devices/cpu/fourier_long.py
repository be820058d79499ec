"""Fourier transforms dim by dim; long lines as the columns and the rows of a matrix.

With j = j1 n2 + j2 and k = k1 + n1 k2, X[k] is the transform along j2 of w^(j2 k1) times the
transform along j1, w = exp(-2 pi i / n) (Gentleman and Sande, "Fast Fourier transforms for fun and
profit", 1966). A long line of real numbers is transformed as half as many complex ones, whose
results are then *unpacked* where they are (``butterfly.unpacked``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt, prod, sqrt

from antorcha.core import dtypes
from antorcha.core.loops import collapse_dims
from antorcha.core.shapes import contiguous_strides
from antorcha.devices.butterfly import conjugate, times, unpacked
from antorcha.devices.cpu.fourier_lines import (
    LONGEST,
    TYPES,
    LinesPass,
    radices_of,
    root,
    roots_of,
)
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.template import (
    THREAD,
    Work,
    lanes_of,
    odometer,
    rows_of,
    words_of,
    work_of,
)
from antorcha.devices.numpy_semantics.host import in_steps
from antorcha.lang.kernels import Fourier, Launch
from antorcha.lang.native import (
    address,
    f64,
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
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import new_storage
from antorcha.runtime.pool import pool_run
from antorcha.runtime.sequence import Sequence as Steps

LEAST = 16  # rows of a matrix
PAD = 8  # elements between rows, so that columns are not a power of two apart
PIECE = 4096  # elements of a line that are a unit of work
Place = Sequence[int]
"""Where a sequence has a storage, and an offset."""
Write = Callable[[Steps, Place, Place], None]
"""Adds to a sequence what transforms, given the places of the result and the operand."""


# ---------------------------------------------------------------------------------------- unpacking
@struct
class UnpackTask:
    """Description words; then the dims of the lines, with their strides in parts."""

    m: i64  # complex numbers that were transformed; there are m + 1 results
    pieces: i64  # units that a line is cut into
    bits: i64  # of the numbers of the first part of the roots' table
    conjugate: i64
    dims: i64


@inline
def unpack_pairs(t, T, near, far, turn):
    """Results k and m - k, of numbers k and (conjugate) m - k of the transform."""
    one, other = unpacked(near, far, turn)
    half, own = T(0.5), T(0.5 - f64(t.conjugate))
    return [one[0] * half, one[1] * own], [other[0] * half, other[1] * own]


@inline
def unpack_ends(T, t, line):
    """The results that have no partner: the first and the last, and the middle one."""
    re, im = line[0] + line[1], line[0] - line[1]
    line[0] = re
    line[1] = T(0)
    line[2 * t.m] = im
    line[2 * t.m + 1] = T(0)
    if t.m % 2 == 0 and t.conjugate == 0:
        line[t.m + 1] = -line[t.m + 1]


@inline
def unpack_vector(T, W, t, line, table, first_turns, k):
    """Results k .. k + W - 1 and what is opposite, in one vector each."""
    straight = static([2 * lane for lane in range(W)])
    turned = static([2 * (W - 1 - lane) for lane in range(W)])
    near = vload(line + 2 * k, 2 * W)
    far = vload(line + 2 * (t.m - k - (W - 1)), 2 * W)
    base = root(t, table, k)
    turn = times(first_turns, base)
    one, other = unpack_pairs(
        t, T,
        [shuffle(near, None, static([n + part for n in straight])) for part in static(range(2))],
        conjugate([shuffle(far, None, static([n + part for n in turned]))
                   for part in static(range(2))]),
        [vec[T, W](turn[0]), vec[T, W](turn[1])],
    )  # fmt: skip
    joined = static([n // 2 + n % 2 * W for n in range(2 * W)])
    back = static([W - 1 - n // 2 + n % 2 * W for n in range(2 * W)])
    vstore(line + 2 * k, shuffle(one[0], one[1], joined))
    vstore(line + 2 * (t.m - k - (W - 1)), shuffle(other[0], other[1], back))


@inline
def unpack_number(T, t, line, table, k):
    """Result k and what is opposite."""
    near, far = line + 2 * k, line + 2 * (t.m - k)
    turn = root(t, table, k)
    one, other = unpack_pairs(
        t, T, [near[0], near[1]], [far[0], -far[1]], [T(turn[0]), T(turn[1])]
    )  # fmt: skip
    near[0] = one[0]
    near[1] = one[1]
    far[0] = other[0]
    far[1] = other[1]


@native
def unpack_job(u0: i64, u1: i64, args: raw, *, T, W) -> void:
    """Units u0..u1: pieces of the lines' first halves, with what is opposite."""
    work = ptr[Work](args)
    t = ptr[UnpackTask](raw(work.desc))
    table = ptr[f64](work.bufs[1])
    re, im = local(f64, W), local(f64, W)
    for lane in range(W):
        one = root(t, table, lane)
        re[lane] = one[0]
        im[lane] = one[1]
    turns = [vload(re, W), vload(im, W)]
    half = (t.m - 1) // 2 + 1
    for u in range(u0, u1):
        row = u // t.pieces
        _index, offset = odometer(1, ptr[i64](t + 1), t.dims, row)
        line = ptr[T](work.bufs[0]) + offset[0]
        k = (u - row * t.pieces) * PIECE
        high = min(k + PIECE, half)
        if k == 0:
            unpack_ends(T, t, line)
            k = i64(1)
        while k + W <= high:
            unpack_vector(T, W, t, line, table, turns, k)
            k += W
        while k < high:
            unpack_number(T, t, line, table, k)
            k += 1


@native
def unpack_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W) -> i64:
    t = ptr[UnpackTask](raw(desc))
    units = t.pieces * rows_of(1, ptr[i64](t + 1), t.dims)
    job = address(unpack_job, T=T, W=W)
    pool_run(job, units, max(THREAD // PIECE, 1), raw(work_of(bufs, desc)))
    return 0


def _unpacking(what: Fourier, d: int, out: Layout, m: int) -> Write:
    T, bits = TYPES[out.dtype.name], m.bit_length() // 2
    rest = [k for k in range(out.ndim) if k != d]
    sizes, (strides,) = collapse_dims(rest, [out], out.shape)
    words = [m, m // 2 // PIECE + 1, bits, int(not what.forward), len(sizes)]
    words += words_of(sizes, [[n * 2 for n in strides]])
    table = roots_of(2 * m, bits, True)
    at = L.contiguous((table.nbytes // 8,), dtypes.float64, out.device)
    kernel = NativeKernel(unpack_kernel, {"T": T, "W": lanes_of(T.size)}, tuple(words))
    launch = compile_native(what, kernel, [out], [at])

    def write(steps: Steps, to: Place, source: Place) -> None:
        steps.into(launch.into, *to, steps.constant(table), steps.constant(0))

    return write


# ---------------------------------------------------------------------------------------- a matrix
def _rows(n: int) -> int:
    """The n1 of a line that is transformed as a matrix, both of whose sides are lengths of lines;
    0: it is not."""
    if n <= LONGEST:
        return 0
    sides = (d for d in range(isqrt(n), LEAST - 1, -1) if n % d == 0)
    return next((d for d in sides if radices_of(d) and radices_of(n // d)), 0)


def _as_matrix(layout: Layout, d: int, n: int, n1: int, row: int, column: int) -> Layout:
    """n of a layout's elements along d as n1 rows, in two dims at the end."""
    rest = [k for k in range(layout.ndim) if k != d]
    return L.layout(
        (*[layout.shape[k] for k in rest], n1, n // n1),
        (*[layout.strides[k] for k in rest], row, column), layout.dtype, layout.device,
    )  # fmt: skip


def _long(what: Fourier, d: int, out: Layout, x: Layout, kind: str, factor: float) -> Write | None:
    """The transform along a dim whose lines are too long to be held in a buffer."""
    real = kind == "real"
    n = x.shape[d] // 2 if real else x.shape[d]
    n1 = _rows(n)
    if (
        not n1
        or kind == "to real"
        or (real and (x.shape[d] % 2 or (x.strides[d], out.strides[d]) != (1, 1)))
    ):
        return None
    n2, step, to_step = n // n1, 2 if real else x.strides[d], out.strides[d]
    source = _as_matrix(x, d, n, n1, n2 * step, step)
    last, pitch = source.ndim - 1, n2 + PAD
    strides = contiguous_strides((*source.shape[:-1], pitch))
    between = L.layout(source.shape, strides, out.dtype, x.device)
    one_way = Fourier("complex", (d,), what.forward or real, "none")
    columns = LinesPass(one_way, last - 1, between, source, "twisted", factor, n)
    result = _as_matrix(out, d, n, n1, to_step, n1 * to_step)
    rows = LinesPass(one_way, last, result, between, "complex", 1.0)
    if not columns.words or not rows.words:
        return None
    size = prod(source.shape[:-1]) * pitch * out.dtype.itemsize
    first, second = columns.launch(), rows.launch()
    unpack = _unpacking(what, d, out, n) if real else None

    def write(steps: Steps, to: Place, source: Place) -> None:
        room = steps.allocate(size, new_storage), steps.constant(0)
        columns.add(first, steps, room, source)
        rows.add(second, steps, to, room)
        if unpack is not None:
            unpack(steps, to, to)

    return write


# ---------------------------------------------------------------------------------------- all dims
def _one_dim(
    what: Fourier, d: int, out: Layout, x: Layout, kind: str, factor: float
) -> Write | None:
    """The transform along one dim; None: it is not for here."""
    lines = LinesPass(what, d, out, x, kind, factor)
    if not lines.words:
        return _long(what, d, out, x, kind, factor)
    launch = lines.launch()

    def write(steps: Steps, to: Place, source: Place) -> None:
        lines.add(launch, steps, to, source)

    return write


def dim_by_dim(what: Fourier, dims: Sequence[int], out: Layout, x: Layout) -> Launch | None:
    """A launch that transforms along one dim after another; None: it is not for here."""
    lengths = [out.shape[d] if what.kind == "to real" else x.shape[d] for d in dims]
    count = prod(lengths)
    factor = {"none": 1.0, "root": 1 / sqrt(count), "all": 1 / count}[what.norm]
    # (what becomes real does so along the last dim, when nothing is left to be transformed)
    order, between = list(reversed(dims)), out
    if what.kind == "to real":
        order, between = list(dims), L.contiguous(x.shape, x.dtype, x.device)
    kinds = ["complex"] * len(order)
    kinds[0 if what.kind == "real" else -1] = what.kind
    places = [x, *[between] * (len(order) - 1), out]
    writes: list[Write] = []
    for k, d in enumerate(order):
        one = _one_dim(what, d, places[k + 1], places[k], kinds[k], 1.0 if k else factor)
        if one is None:
            return None
        writes.append(one)

    def write(steps: Steps, to: Place, source: Place) -> None:
        room = to
        if between is not out and len(writes) > 1:
            room = steps.allocate(between.nbytes, new_storage), steps.constant(0)
        for k, one in enumerate(writes):
            one(steps, room if k + 1 < len(writes) else to, room if k else source)

    return in_steps(write, out, 2)
