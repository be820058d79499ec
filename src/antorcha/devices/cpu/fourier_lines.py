"""Fourier transforms of many lines at once, a line in each lane of vectors.

Lines, `width` at a time, are read into a buffer that has a vector of real and one of imaginary
parts for each of their elements; they are transformed there, in place, and written. A stage of
radix R, in blocks of some length, takes elements length / R apart, and gives their transform, whose
number q is turned by exp(-2 pi i j q / length) where j is the place in the block; blocks of
length / R are left (decimation in frequency: Gentleman and Sande, "Fast Fourier transforms for fun
and profit", 1966). Results come in the order of reversed digits, which is undone as they are
written.

An even number of real ones is half as many complex numbers, each of two neighbours: with Z their
transform of length m, and Z' = conj Z[m - k], that of the real ones is, for k = 0 .. m,
(Z + Z') / 2 + exp(-pi i k / m) (Z - Z') / 2i. Backwards, complex numbers' parts change places on
both ways, and of half a transform X the real numbers come in pairs from that of
Z = X + X' + i exp(pi i k / m) (X - X').

Lines that are the columns of a long signal, seen as a matrix, are *twisted*: number k of column j
is turned by w^(j k), where w is the root of the whole signal.
"""

from __future__ import annotations

import functools
import struct as c_struct
from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.core.loops import collapse_dims
from antorcha.devices.butterfly import butterfly, conjugate, minus, plus, times, unpacked
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.template import (
    THREAD,
    Work,
    lanes_of,
    odometer,
    rows_of,
    transposed,
    words_of,
    work_of,
)
from antorcha.lang.kernels import Fourier, Launch
from antorcha.lang.native import (
    address,
    array,
    f32,
    f64,
    first,
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
from antorcha.runtime.memory.storage import Storage, new_storage
from antorcha.runtime.pool import pool_run
from antorcha.runtime.sequence import Sequence as Steps

RADICES = (8, 7, 5, 4, 3, 2)
LONGEST = 1024  # elements of a line: its buffer is to stay in a core's cache
TURNS = 32  # its root: two tables of powers are enough
MOST_STAGES = 10
TURNED = ("complex", "twisted")  # forms whose parts change places as they are read, backwards
TYPES: dict[str, Any] = {"float32": f32, "float64": f64, "complex64": f32, "complex128": f64}


@struct
class LinesTask:
    """Description words; then the outer dims, with strides of the result and the operand, which
    count parts of complex numbers, as all strides here do."""

    n: i64  # complex numbers of a line
    given: i64  # that are read
    kept: i64  # results of a line; pairs of them, where they are real
    lines: i64
    groups: i64  # of lines that go together
    out_line: i64
    out_step: i64
    x_line: i64
    x_step: i64
    x_row: i64  # do a line's elements lie side by side?
    flip: i64  # is it backwards?
    scale: f64
    whole: i64  # the signal's length, where lines are twisted
    bits: i64  # of the numbers of the first part of its roots' table
    dims: i64
    stages: i64
    radices: array[i64, MOST_STAGES]


# ---------------------------------------------------------------------------------------- reading
@inline
def number_at(W, at):
    return [vload(at, W), vload(at + W, W)]


@inline
def put_number(W, buf, re, im, first_part):
    """Writes the two parts, the real one at `first_part`: 0, or, to change their places, W."""
    vstore(buf + first_part, re)
    vstore(buf + (W - first_part), im)


@inline
def read_rows(T, W, t, x, lines, buf, first_part):
    """Lines whose elements lie side by side: squares of them are transposed."""
    C = static(W // 2)
    evens, odds = static([2 * k for k in range(W)]), static([2 * k + 1 for k in range(W)])
    for e in range(0, t.given, C):
        mask = first(W, 2 * (t.given - e))
        halves = [
            transposed(
                C,
                [
                    vload(x + (min(i64(h * C + k), lines - 1) * t.x_line + 2 * e), W, mask)
                    for k in static(range(C))
                ],
                2,
            )
            for h in static(range(2))
        ]
        for k in static(range(C)):
            re = shuffle(halves[0][k], halves[1][k], evens)
            im = shuffle(halves[0][k], halves[1][k], odds)
            put_number(W, buf + (e + k) * (2 * W), re, im, first_part)


@inline
def read_columns(T, W, t, x, lines, buf, first_part):
    """Complex lines that lie side by side."""
    evens, odds = static([2 * k for k in range(W)]), static([2 * k + 1 for k in range(W)])
    mask = first(2 * W, 2 * lines)
    for e in range(t.given):
        both = vload(x + e * t.x_step, 2 * W, mask)
        re, im = shuffle(both, None, evens), shuffle(both, None, odds)
        put_number(W, buf + e * (2 * W), re, im, first_part)


@inline
def read_real_columns(T, W, t, x, lines, buf):
    """Real lines that lie side by side."""
    mask = first(W, lines)
    for e in range(t.n):
        re = vload(x + 2 * e * t.x_step, W, mask)
        im = vload(x + (2 * e + 1) * t.x_step, W, mask)
        put_number(W, buf + e * (2 * W), re, im, 0)


@inline
def pack(T, W, t, buf, turns):
    """Makes of half a transform's numbers those whose transform is the real ones, their parts
    having changed places."""
    first_one, last = vload(buf, W), vload(buf + t.n * (2 * W), W)
    put_number(W, buf, first_one + last, first_one - last, W)  # (the other parts are nothing)
    for k in range(1, t.n // 2 + 1):
        near, far = buf + k * (2 * W), buf + (t.n - k) * (2 * W)
        one, other = number_at(W, near), conjugate(number_at(W, far))
        even = plus(one, other)
        odd = times(minus(one, other), [turns[2 * k], -turns[2 * k + 1]])
        put_number(W, far, even[0] + odd[1], odd[0] - even[1], W)
        put_number(W, near, even[0] - odd[1], even[1] + odd[0], W)


# ---------------------------------------------------------------------------------------- stages
@inline
def run_stage(T, W, R, buf, n, length, roots):
    """Butterflies of radix R in blocks of `length` elements."""
    part = length // R
    for j in range(part):
        turns = [
            [roots[2 * (j * (R - 1) + q)], roots[2 * (j * (R - 1) + q) + 1]]
            for q in static(range(R - 1))
        ]
        at = j
        while at < n:
            given = [
                [
                    vload(buf + (at + r * part) * (2 * W), W),
                    vload(buf + ((at + r * part) * (2 * W) + W), W),
                ]
                for r in static(range(R))
            ]
            found = butterfly(T, given)
            put_number(W, buf + at * (2 * W), found[0][0], found[0][1], 0)
            for q in static(range(1, R)):
                value = times(found[q], turns[q - 1])
                put_number(W, buf + (at + q * part) * (2 * W), value[0], value[1], 0)
            at += length


@inline
def transform(T, W, t, buf, roots):
    """All stages."""
    length, table = t.n, roots
    for s in range(t.stages):
        radix = t.radices[s]
        for R in static(RADICES):
            if radix == R:
                run_stage(T, W, R, buf, t.n, length, table)
        length = length // radix
        table = table + 2 * (radix - 1) * length


# ---------------------------------------------------------------------------------------- writing
@inline
def write_rows(T, W, t, out, lines, k, numbers):
    """Results k and on of the lines as rows: a square for each half of them."""
    C = static(W // 2)
    mask = first(W, 2 * (t.kept - k))
    for h in static(range(2)):
        joined = static([h * C + lane // 2 + lane % 2 * W for lane in range(W)])
        rows = [shuffle(re, im, joined) for re, im in static(numbers)]
        rows = transposed(C, rows, 2)
        for c in static(range(C)):
            if h * C + c < lines:
                vstore(out + ((h * C + c) * t.out_line + 2 * k), rows[c], mask)


@inline
def write_columns(T, W, t, out, lines, k, number):
    """Result k of lines that lie side by side."""
    joined = static([lane // 2 + lane % 2 * W for lane in range(2 * W)])
    both = shuffle(number[0], number[1], joined)
    vstore(out + k * t.out_step, both, first(2 * W, 2 * lines))


@inline
def write_real_columns(W, t, out, lines, k, pair):
    """Real results 2 k and 2 k + 1 of lines that lie side by side."""
    mask = first(W, lines)
    vstore(out + k * t.out_step, pair[0], mask)
    vstore(out + (k * t.out_step + t.out_step // 2), pair[1], mask)


@inline
def result(T, W, FORM, t, buf, places, turns, k):
    """Result k of the lines; where there are no more, the last one."""
    k = min(k, t.kept - 1)
    at = buf + places[k]
    if FORM != "real":
        factor = T(t.scale)
        return [vload(at + t.flip * W, W) * factor, vload(at + (1 - t.flip) * W, W) * factor]
    near, far = number_at(W, at), conjugate(number_at(W, buf + places[t.n - k]))
    twice, _ = unpacked(near, far, [turns[2 * k], turns[2 * k + 1]])
    return [twice[0] * T(t.scale * 0.5), twice[1] * T(t.scale * (0.5 - f64(t.flip)))]


@inline
def write(T, W, FORM, t, out, lines, buf, places, turns):
    """All results of the lines."""
    C = static(W // 2)
    if t.out_step == 2:
        for k in range(0, t.kept, C):
            numbers = [result(T, W, FORM, t, buf, places, turns, k + c) for c in static(range(C))]
            write_rows(T, W, t, out, lines, k, numbers)
    else:
        for k in range(t.kept):
            number = result(T, W, FORM, t, buf, places, turns, k)
            if FORM == "to real":
                write_real_columns(W, t, out, lines, k, number)
            else:
                write_columns(T, W, t, out, lines, k, number)


@inline
def root(t, table, m):
    """w^m, of the numbers w^0, w^1 .. and then w^(2^bits * 0), w^(2^bits * 1) .."""
    low = table + 2 * (m & ((i64(1) << t.bits) - 1))
    high = table + 2 * ((i64(1) << t.bits) + (m >> t.bits))
    return times([low[0], low[1]], [high[0], high[1]])


@inline
def powers(T, W, t, table, line, each, turns):
    """Powers of w^(j * each), in lane after lane for column after column j: the 0th, the 1st .."""
    re, im = local(f64, W), local(f64, W)
    for lane in range(W):
        one = root(t, table, (line + lane) * each % t.whole)
        re[lane] = one[0]
        im[lane] = one[1]
    by = [vload(re, W), vload(im, W)]
    power = [vec[f64, W](1.0), vec[f64, W](0.0)]
    for k in range(TURNS):
        put_number(W, turns + k * (2 * W), vec[T, W](power[0]), vec[T, W](power[1]), 0)
        found = times(power, by)
        power[0] = found[0]
        power[1] = found[1]


@inline
def write_twisted(T, W, t, out, line, lines, buf, places, table):
    """All results of columns, from number `line` of them on."""
    low, high = local(T, TURNS * 2 * W), local(T, TURNS * 2 * W)
    powers(T, W, t, table, line, i64(1), low)
    powers(T, W, t, table, line, i64(TURNS), high)
    for k in range(t.kept):
        a, b = low + k % TURNS * (2 * W), high + k // TURNS * (2 * W)
        turn = times(number_at(W, a), number_at(W, b))
        number = times(result(T, W, "complex", t, buf, places, None, k), turn)
        write_columns(T, W, t, out, lines, k, number)


# ---------------------------------------------------------------------------------------- all of it
@native
def lines_job(u0: i64, u1: i64, args: raw, *, T, W, FORM) -> void:
    """Units u0..u1: lines that go together, each."""
    work = ptr[Work](args)
    t = ptr[LinesTask](raw(work.desc))
    roots, places = ptr[T](work.bufs[2]), ptr[i64](work.bufs[3])
    buf = local(T, (LONGEST + W) * 2 * W)
    for u in range(u0, u1):
        row = u // t.groups
        line = (u - row * t.groups) * W
        lines = t.lines - line
        _index, offset = odometer(2, ptr[i64](t + 1), t.dims, row)
        out = ptr[T](work.bufs[0]) + (offset[0] + line * t.out_line)
        x = ptr[T](work.bufs[1]) + (offset[1] + line * t.x_line)
        first_part = t.flip * W if FORM in TURNED else i64(0)
        if t.x_row != 0:
            read_rows(T, W, t, x, lines, buf, first_part)
        elif FORM == "real":
            read_real_columns(T, W, t, x, lines, buf)
        else:
            read_columns(T, W, t, x, lines, buf, first_part)
        turns = ptr[T](work.bufs[4]) if FORM in ("real", "to real") else None
        if FORM == "to real":
            pack(T, W, t, buf, turns)
        transform(T, W, t, buf, roots)
        if FORM == "twisted":
            write_twisted(T, W, t, out, line, lines, buf, places, ptr[f64](work.bufs[4]))
        else:
            write(T, W, FORM, t, out, lines, buf, places, turns)


@native
def lines_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W, FORM) -> i64:
    """FORM: of "complex" numbers, of "real" ones, of such a transform "to real" ones; "twisted"."""
    t = ptr[LinesTask](raw(desc))
    units = t.groups * rows_of(2, ptr[i64](t + 1), t.dims)
    job = address(lines_job, T=T, W=W, FORM=FORM)
    pool_run(job, units, max(THREAD // (t.n * W), 1), raw(work_of(bufs, desc)))
    return 0


# ---------------------------------------------------------------------------------------- planning
@functools.cache
def radices_of(n: int) -> tuple[int, ...]:
    """The radices of a length's stages; none: it has other prime factors, or is too long."""
    if not 1 < n <= LONGEST:
        return ()
    found: list[int] = []
    twos = (n & -n).bit_length() - 1
    rest = n >> twos
    if twos % 3 == 1 and twos > 1:
        found, twos = [4, 4], twos - 4
    elif twos % 3:
        found, twos = [1 << twos % 3], twos // 3 * 3
    found = [8] * (twos // 3) + found
    for radix in (7, 5, 3):
        while rest % radix == 0:
            found.append(radix)
            rest //= radix
    return tuple(found) if rest == 1 else ()


@functools.lru_cache(maxsize=64)
def tables_of(n: int, name: str, width: int) -> tuple[Storage, Storage]:
    """The roots of all stages, a line after another of a butterfly's; where each result is in the
    buffer, and the first one again after the last."""
    radices = radices_of(n)
    length, roots = n, []
    for radix in radices:
        part = length // radix
        turns = np.outer(np.arange(part), np.arange(1, radix)).ravel()
        roots.append(np.exp(-2j * np.pi / length * turns))
        length = part
    places = np.zeros(1, np.int64)
    for radix in reversed(radices):  # what the first stage numbers is the lowest digit
        places = np.add.outer(places, len(places) * np.arange(radix)).ravel()
    places = np.append(places, places[:1]) * (2 * width)
    return in_storage(np.concatenate(roots).astype(name)), in_storage(places)


def in_storage(values: Any) -> Storage:
    storage = new_storage(values.nbytes)
    np.frombuffer(memoryview(storage), values.dtype)[:] = values
    return storage


@functools.lru_cache(maxsize=8)
def roots_of(n: int, bits: int, forward: bool) -> Storage:
    """The table of `root`."""
    m = np.concatenate([np.arange(1 << bits), np.arange((n >> bits) + 1) << bits])
    return in_storage(np.exp((-2j if forward else 2j) * np.pi / n * m))


@functools.lru_cache(maxsize=64)
def turns_of(m: int, name: str) -> Storage:
    """exp(-pi i k / m), for k = 0 .. m."""
    turns = np.exp(-1j * np.pi / m * np.arange(m + 1))
    turns[m] = -1  # (or the last result would not be real)
    return in_storage(turns.astype(name))


class LinesPass:
    """The transform along one dim, from one layout to another. form: as the kernel's; whole: the
    length of the signal, where it is twisted. Real numbers may be given as if they were parts of
    complex ones, whose strides then count them."""

    def __init__(
        self, what: Fourier, d: int, out: Layout, x: Layout, form: str, scale: float,
        whole: int = 0,
    ) -> None:  # fmt: skip
        self.what, self.out, self.x = what, out, x
        self.T, self.form, self.whole = TYPES[out.dtype.name], form, whole
        self.width, self.bits = lanes_of(self.T.size), whole.bit_length() // 2
        self.table_dtype = "complex64" if self.T is f32 else "complex128"
        self.words: tuple[int, ...] = ()  # none: it is not for here
        real = {"real": x.shape[d], "to real": out.shape[d]}.get(form, 0)
        self.n = real // 2 if real else x.shape[d]
        given = self.n if form == "real" else x.shape[d]
        kept = self.n if form == "to real" else out.shape[d]
        radices = radices_of(self.n)
        parts = [2 if o.dtype.kind == "c" else 1 for o in (out, x)]
        closest = 1 if form == "to real" else 2, 1 if form == "real" else 2
        others = [k for k in range(x.ndim) if k != d]
        sizes, columns = collapse_dims(others, [out, x], x.shape)
        steps = [o.strides[d] * each for o, each in zip((out, x), parts, strict=True)]
        strides = [[n * each for n in s] for s, each in zip(columns, parts, strict=True)]
        together = [
            k
            for k in sorted(range(len(sizes)), key=lambda k: -sizes[k])
            if all([closest[i] in (steps[i], strides[i][k]) for i in range(2)])
        ]
        if not radices or real % 2 or not together or sizes[together[0]] < self.width:
            return
        at = together[0]
        rest = [k for k in range(len(sizes)) if k != at]
        self.words = (
            self.n, given, kept, sizes[at], -(-sizes[at] // self.width), strides[0][at],
            steps[0] * (3 - closest[0]), strides[1][at], steps[1], int(steps[1] == closest[1]),
            int(not what.forward), c_struct.unpack("q", c_struct.pack("d", scale))[0], whole,
            self.bits, len(rest), len(radices), *radices, *[0] * (MOST_STAGES - len(radices)),
            *words_of([sizes[k] for k in rest], [[s[k] for k in rest] for s in strides]),
        )  # fmt: skip

    def launch(self) -> Launch:
        """Takes the result, the operand, and the tables."""
        static = {"T": self.T, "W": self.width, "FORM": self.form}
        kernel = NativeKernel(lines_kernel, static, self.words)
        tables = [
            L.contiguous((each.nbytes // 8,), dtypes.int64, self.x.device) for each in self.tables
        ]
        return compile_native(self.what, kernel, [self.out], [self.x, *tables])

    def add(self, launch: Launch, steps: Steps, to: Sequence[int], source: Sequence[int]) -> None:
        """Adds its launch to a sequence, for these places of the result and the operand."""
        start = steps.constant(0)
        tables = [at for table in self.tables for at in (steps.constant(table), start)]
        steps.into(launch.into, *to, *source, *tables)

    @property
    def tables(self) -> tuple[Storage, ...]:
        tables = tables_of(self.n, self.table_dtype, self.width)
        if self.form in ("real", "to real"):
            return *tables, turns_of(self.n, self.table_dtype)
        if self.form == "twisted":
            return *tables, roots_of(self.whole, self.bits, self.what.forward)
        return tables


def factor_of(what: Fourier, lengths: Sequence[int]) -> float:
    """What sums are multiplied by, where the transform's dims have these lengths."""
    count = prod(lengths)
    return {"none": 1.0, "root": 1 / sqrt(count), "all": 1 / count}[what.norm]
