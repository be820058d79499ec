"""The kernel of Fourier transforms: those of as many signals at once as a vector has lanes.

The signals' elements are brought into scratch memory, element j of all lanes side by side, first
the real parts, then the imaginary ones. There the transform is Stockham's (T. G. Stockham, "High
speed convolution and correlation", 1966): passes of radix 2 to 7, each from one half of the scratch
to the other, that leave the results in order. In it no lane meets another.

An inverse transform is that of the numbers with their parts exchanged, exchanged back. A real
signal of even length is transformed as half as many complex numbers; its spectrum is taken apart
afterwards (W. H. Press et al., "Numerical Recipes", section 12.3).
"""

from __future__ import annotations

import math

from antorcha.devices.cpu.complexes import evens, in_turns, odds, of_both
from antorcha.devices.cpu.passes import NO_MEMORY, PassWork, work_of
from antorcha.devices.cpu.template import advance, odometer
from antorcha.lang.native import (
    address,
    f64,
    first,
    fma,
    i64,
    inline,
    lanes,
    native,
    ptr,
    raw,
    shuffle,
    static,
    struct,
    vec,
    vgather,
    vload,
    void,
    vscatter,
    vstore,
)
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.pool import pool_run

RADICES = (4, 2, 3, 5, 7)


class FourierProgram:
    """The compile-time choices of a kernel. How elements of memory and lanes lie, at both ends:
    "rows" (a lane's elements follow each other), "pairs" (the lanes' do), "parts" (the lanes' real
    numbers do), or "any"; "half": is a real signal, at one end, half as many complex numbers?"""

    def __init__(
        self, T: Ty, L: int, source: str, target: str, forward: bool, *, real: bool = False,
        half: str = "", turned: bool = False,
    ) -> None:  # fmt: skip
        self.T, self.L, self.source, self.target = T, L, source, target
        self.forward = forward
        self.real = real  # has the source no imaginary parts?
        self.half = half  # "", "in" or "out"
        self.turned = turned  # are the results multiplied by a table of roots?

    def __native_key__(self) -> str:
        return (
            f"{self.T.name} {self.L} {self.source} {self.target} {self.forward} {self.real} "
            f"{self.half} {self.turned}"
        )


@struct
class FourierTask:
    units: i64  # groups of lanes, in all
    groups: i64  # of lanes, next to each other
    count: i64  # lanes next to each other
    n: i64  # complex numbers that are transformed
    kept: i64  # results that are stored
    stages: i64
    grain: i64
    dims: i64  # of groups
    scale: f64  # of the results
    in_step: i64  # real numbers from an element to the next
    in_part: i64  # from a real part to its imaginary part
    in_lane: i64
    out_step: i64
    out_part: i64
    out_lane: i64
    outer_at: i64  # in words from the description's begin: sizes and strides of the outer dims
    radix_at: i64  # the stages' radices
    roots_at: i64  # the stages' roots of unity
    half_at: i64  # the roots that take a half apart


# ------------------------------------------------------------------------------------ butterflies
@inline
def times(a, w):
    """Products of complex numbers: pairs of vectors."""
    return [fma(a[0], w[0], -(a[1] * w[1])), fma(a[0], w[1], a[1] * w[0])]


@inline
def plus(a, b):
    return [a[0] + b[0], a[1] + b[1]]


@inline
def minus(a, b):
    return [a[0] - b[0], a[1] - b[1]]


@inline
def over_i(a):
    """a times -i."""
    return [a[1], -a[0]]


@inline
def butterfly(P, radix, a):
    """The transform of so many numbers."""
    if radix == 2:
        return [plus(a[0], a[1]), minus(a[0], a[1])]
    if radix == 4:
        even, odd = plus(a[0], a[2]), plus(a[1], a[3])
        left, right = minus(a[0], a[2]), over_i(minus(a[1], a[3]))
        return [plus(even, odd), plus(left, right), minus(even, odd), minus(left, right)]
    return odd_butterfly(P, radix, a)


@inline
def odd_butterfly(P, radix, a):
    """Results k and radix - k share their cosines and have opposite sines."""
    h = static(radix // 2)
    sums = [plus(a[j], a[radix - j]) for j in static(range(1, h + 1))]
    rests = [over_i(minus(a[j], a[radix - j])) for j in static(range(1, h + 1))]
    cosines = [weighted(P, a[0], sums, cosines_of(radix, k)) for k in static(range(1, h + 1))]
    sines = [weighted(P, None, rests, sines_of(radix, k)) for k in static(range(1, h + 1))]
    total = a[0]
    for j in static(range(h)):
        total = plus(total, sums[j])
    return [
        total if k == 0
        else plus(cosines[k - 1], sines[k - 1]) if k <= h
        else minus(cosines[radix - 1 - k], sines[radix - 1 - k])
        for k in static(range(radix))
    ]  # fmt: skip


@inline
def weighted(P, start, values, weights):
    total = start
    for j in static(range(len(weights))):
        w = vec[P.T, P.L](P.T(weights[j]))
        if total is None:
            total = [values[j][0] * w, values[j][1] * w]
        else:
            total = [fma(values[j][0], w, total[0]), fma(values[j][1], w, total[1])]
    return total


def cosines_of(radix: int, k: int) -> tuple[float, ...]:
    return tuple([math.cos(2 * math.pi * (j * k % radix) / radix)
                  for j in range(1, radix // 2 + 1)])  # fmt: skip


def sines_of(radix: int, k: int) -> tuple[float, ...]:
    return tuple([math.sin(2 * math.pi * (j * k % radix) / radix)
                  for j in range(1, radix // 2 + 1)])  # fmt: skip


# ----------------------------------------------------------------------------------------- passes
@inline
def get(P, p):
    """A complex number of every lane."""
    return [vload(p, P.L), vload(p + P.L, P.L)]


@inline
def put(P, p, value):
    vstore(p, value[0])
    vstore(p + P.L, value[1])


@inline
def root(P, p):
    """A root of unity, for all lanes."""
    return [vec[P.T, P.L](p[0]), vec[P.T, P.L](p[1])]


@inline
def one_pass(P, radix, last, src, dst, m, s, roots):
    """m transforms of ``radix`` numbers, s times; in the last pass m is 1, and roots are none."""
    size = static(2 * P.L)
    for p in range(m):
        at = roots + p * static(2 * (radix - 1))
        ws = [None if last else root(P, at + 2 * k) for k in static(range(radix - 1))]
        for q in range(s):
            a = [get(P, src + (q + s * (p + k * m)) * size) for k in static(range(radix))]
            b = butterfly(P, radix, a)
            to = dst + (q + s * (radix * p)) * size
            put(P, to, b[0])
            for k in static(range(1, radix)):
                put(P, to + k * s * size, b[k] if last else times(b[k], ws[k - 1]))


@inline
def any_pass(P, radix, src, dst, m, s, roots):
    if m == 1:
        one_pass(P, radix, True, src, dst, m, s, roots)
    else:
        one_pass(P, radix, False, src, dst, m, s, roots)


@inline
def transform(P, task, desc, a, b):
    """The passes; gives the half of the scratch with the results, and the other one."""
    roots = ptr[P.T](desc + task.roots_at)
    src, dst = a, b
    n, s = task.n, i64(1)
    for k in range(task.stages):
        radix = desc[task.radix_at + k]
        m = n // radix
        for r in static(RADICES):
            if radix == r:
                any_pass(P, r, src, dst, m, s, roots)
        roots = roots + 2 * (radix - 1) * m
        n = m
        s = s * radix
        src, dst = dst, src
    return src, dst


# ---------------------------------------------------------------------------------- in and out
@inline
def transposed(P, rows):
    """The vectors of a square with its rows as its columns."""
    for bit in static(bits(P.L)):
        rows = [
            shuffle(
                rows[k & ~bit], rows[k | bit], half_of(P.L, bit, (k & bit) != 0)
            )
            for k in static(range(P.L))
        ]  # fmt: skip
    return rows


def bits(n: int) -> tuple[int, ...]:
    return tuple([1 << k for k in range(n.bit_length() - 1)])


def half_of(n: int, bit: int, upper: bool) -> tuple[int, ...]:
    """Of two rows that differ in a bit of their numbers the lanes that go into one of them."""
    return tuple([
        (k | bit if upper else k & ~bit) + (n if k & bit else 0) for k in range(n)
    ])  # fmt: skip


@inline
def exchanged(P, value):
    """For an inverse transform: the parts in each other's place."""
    return value if P.forward else [value[1], value[0]]


@inline
def load_rows(P, task, x, a, few, count):
    """Elements that follow each other in memory, of all lanes."""
    for j in range(0, count, static(P.L // 2)):
        mask = first(P.L, 2 * (count - j))
        rows = [
            vload(x + (min(i64(k), few - 1) * task.in_lane + 2 * j), P.L, mask)
            for k in static(range(P.L))
        ]
        columns = transposed(P, rows)
        for k in static(range(P.L // 2)):
            put_loaded(P, a, j + k, [columns[2 * k], columns[2 * k + 1]])


@inline
def load_one(P, task, x, j, mask):
    """Element j of all lanes."""
    at = x + j * task.in_step
    if P.L == 1:
        re = vload(at, 1)
        return [re, vec[P.T, 1](0) if P.real else vload(at + task.in_part, 1)]
    if P.source == "pairs":
        both = vload(at, 2 * P.L, of_both(mask, P.L))
        return [shuffle(both, None, evens(P.L)), shuffle(both, None, odds(P.L))]
    if P.source == "parts":
        re = vload(at, P.L, mask)
        return [re, vec[P.T, P.L](0) if P.real else vload(at + task.in_part, P.L, mask)]
    places = lanes(i64, P.L) * task.in_lane
    re = vgather(at, places, mask)
    return [re, vec[P.T, P.L](0) if P.real else vgather(at + task.in_part, places, mask)]


@inline
def put_loaded(P, a, j, value):
    put(P, a + j * static(2 * P.L), value if P.half == "out" else exchanged(P, value))


@inline
def load_signals(P, task, x, a, few, count):
    if P.source == "rows":
        load_rows(P, task, x, a, few, count)
    else:
        mask = first(P.L, few)
        for j in range(count):
            put_loaded(P, a, j, load_one(P, task, x, j, mask))


@inline
def store_rows(P, task, y, a, few, scale):
    for j in range(0, task.kept, static(P.L // 2)):
        mask = first(P.L, 2 * (task.kept - j))
        pairs = [
            exchanged(P, get(P, a + (j + k) * static(2 * P.L))) for k in static(range(P.L // 2))
        ]
        rows = transposed(P, [pairs[k // 2][k % 2] * scale for k in static(range(P.L))])
        for k in static(range(P.L)):
            if k < few:
                vstore(y + (k * task.out_lane + 2 * j), rows[k], mask)


@inline
def store_one(P, task, y, j, value, mask):
    at = y + j * task.out_step
    if P.L == 1:
        vstore(at, value[0])
        vstore(at + task.out_part, value[1])
    elif P.target == "pairs":
        both = shuffle(value[0], value[1], in_turns(P.L))
        vstore(at, both, of_both(mask, P.L))
    elif P.target == "parts":
        vstore(at, value[0], mask)
        vstore(at + task.out_part, value[1], mask)
    else:
        places = lanes(i64, P.L) * task.out_lane
        vscatter(at, places, value[0], mask)
        vscatter(at + task.out_part, places, value[1], mask)


@inline
def store_results(P, task, y, a, few, turn):
    scale = vec[P.T, P.L](P.T(task.scale))
    if P.target == "rows" and not P.turned:
        store_rows(P, task, y, a, few, scale)
    else:
        mask = first(P.L, few)
        for j in range(task.kept):
            value = get(P, a + j * static(2 * P.L))
            if P.turned:
                at = turn + j * task.count
                w = [vload(at, P.L, mask), vload(at + task.count * task.kept, P.L, mask)]
                value = times(value, w)
            value = exchanged(P, [value[0] * scale, value[1] * scale])
            store_one(P, task, y, j, value, mask)


# ------------------------------------------------------------------------------------------ halves
@inline
def ends_of_half(P, z):
    """Elements 0 and h of a real signal's spectrum, from element 0 of its half's."""
    zero = vec[P.T, P.L](0)
    return [z[0] + z[1], zero], [z[0] - z[1], zero]


@inline
def take_apart(P, task, z, x, roots):
    """From the transform z of h complex numbers to h + 1 results x for the 2 h real ones."""
    size = static(2 * P.L)
    h = task.n
    low, high = ends_of_half(P, get(P, z))
    put(P, x, low)
    put(P, x + h * size, high)
    half = vec[P.T, P.L](P.T(0.5))
    for k in range(1, h // 2 + 1):
        a, b = get(P, z + k * size), get(P, z + (h - k) * size)
        even = [(a[0] + b[0]) * half, (a[1] - b[1]) * half]
        odd = times([(a[1] + b[1]) * half, (b[0] - a[0]) * half], root(P, roots + 2 * k))
        put(P, x + k * size, plus(even, odd))
        put(P, x + (h - k) * size, [even[0] - odd[0], odd[1] - even[1]])


@inline
def put_together(P, task, x, z, roots):
    """From h + 1 results to h complex numbers whose inverse transform is the real signal; with the
    parts exchanged. The imaginary parts of the first and the last are not read."""
    size = static(2 * P.L)
    h = task.n
    low, high = vload(x, P.L), vload(x + h * size, P.L)
    put(P, z, [low - high, low + high])
    for k in range(1, h // 2 + 1):
        a, b = get(P, x + k * size), get(P, x + (h - k) * size)
        even = [a[0] + b[0], a[1] - b[1]]
        w = root(P, roots + 2 * k)
        odd = times([a[0] - b[0], a[1] + b[1]], [w[0], -w[1]])
        put(P, z + k * size, [even[1] + odd[0], even[0] - odd[1]])
        put(P, z + (h - k) * size, [odd[0] - even[1], even[0] + odd[1]])


# ---------------------------------------------------------------------------------------- the whole
@native
def fourier_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Groups u0..u1 of lanes."""
    work = ptr[PassWork](args)
    desc = work.desc
    task = ptr[FourierTask](raw(desc))
    one = (task.n + static(P.L + 1)) * static(2 * P.L)
    space = allocate((2 * one) * P.T.size + 64)
    if space is None:
        work.failed = NO_MEMORY
        return
    a = ptr[P.T](raw((i64(space) + 63) // 64 * 64))
    b = a + one
    roots = ptr[P.T](desc + task.half_at)
    outer = desc + task.outer_at
    index, offset = odometer(2, outer, task.dims, u0 // task.groups)
    group = u0 % task.groups
    for _u in range(u0, u1):
        lane = group * P.L
        few = min(task.count - lane, i64(P.L))
        x = ptr[P.T](work.bufs[1]) + (offset[0] + lane * task.in_lane)
        y = ptr[P.T](work.bufs[0]) + (offset[1] + lane * task.out_lane)
        if P.half == "out":
            load_signals(P, task, x, b, few, task.n + 1)
            put_together(P, task, b, a, roots)
        else:
            load_signals(P, task, x, a, few, task.n)
        src, dst = transform(P, task, desc, a, b)
        if P.half == "in":
            take_apart(P, task, src, dst, roots)
            src = dst
        turn = ptr[P.T](work.bufs[2]) + lane if P.turned else None
        store_results(P, task, y, src, few, turn)
        group += 1
        if group == task.groups:
            group = i64(0)
            advance(2, outer, task.dims, index, offset)
    release(space)


@native
def fourier_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """desc: a FourierTask and its tables. bufs: results, signals, and what P.turned asks for: real
    parts of roots, then imaginary ones."""
    work = work_of(bufs, desc)
    task = ptr[FourierTask](raw(desc))
    pool_run(address(fourier_job, P=P), task.units, task.grain, raw(work))
    return work.failed
