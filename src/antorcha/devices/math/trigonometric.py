"""sin, cos and tan.

x = j pi/2 + r with |r| <= pi/4: j pi/2 is subtracted in three parts (W. Cody, W. Waite), and r is
kept as a pair. If any lane is larger than that serves, all go through the multiplication with the
bits of 2/pi that matter (M. Payne, R. Hanek), in float64 for both types, and the large ones take
its result.
"""

from __future__ import annotations

from typing import NamedTuple

from antorcha.devices.math.base import (
    DOUBLE,
    INF,
    SINGLE,
    any_lane,
    exact_product,
    ints,
    kind,
    pick,
    polynomial,
    quick_sum,
    shaped,
    words,
)
from antorcha.devices.math.coefficients import COS_32, COS_64, SIN_32, SIN_64, TAN_32, TAN_64
from antorcha.lang.native import (
    bitcast,
    constant,
    f64,
    fma,
    inline,
    mulhi,
    select,
    u64,
    vgather,
)


class Circle(NamedTuple):
    """pi/2 in three parts, each rounded down so that -0.0 keeps its sign; how far they serve."""

    one: float
    two: float
    three: float
    limit: float


CIRCLE_32 = Circle(1.57079625129699707, 7.54978941586159635e-08, 5.39030252995776476e-15, 2.0**17)
CIRCLE_64 = Circle(1.5707963267948966192, 6.123233995736765e-17, 1.0828566739219139e-32, 2.0**30)
TWO_OVER_PI = 0.63661977236758134308
HALF_PI, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
# The binary digits of 2/pi, after a word of zeros.
DIGITS = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip


@inline
def word_at(table, i):
    """table[i], lane by lane."""
    if kind(i).kind == "v":
        return vgather(table, i)
    return table[i]


@inline
def small_float(word):
    """A 64-bit word below 2**52 as float64."""
    return bitcast(shaped(word, f64), word | 0x4330000000000000) - 2.0**52


@inline
def reduce_large(x):
    """float64 x, 2**-9 or greater in magnitude: j (its low two bits count), r, r_low."""
    table = constant(u64, DIGITS)
    bits = bitcast(words(x), x)
    # x = m * 2**(e - 1075). Digits whose product with m is a multiple of 4 are left out.
    e = (bits >> 52) & 0x7FF
    m = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000
    at = select(e > 1013, e - 1013, 0)
    first, shift = at >> 6, at & 63
    digits = [word_at(table, first + k) for k in range(4)]
    d = [(digits[k] << shift) | ((digits[k + 1] >> 1) >> (63 - shift)) for k in range(3)]
    # The product modulo 4, two bits before the point and 126 after it.
    high, low = m * d[0] + mulhi(m, d[1]), m * d[1]
    total = low + mulhi(m, d[2])
    high = high + select(total < low, kind(total)(1), 0)
    fraction, fraction_low = (high << 2) | (total >> 62), total << 2
    j = (high >> 62) + (fraction >> 63)
    turn = kind(bits)(ints(x)(fraction) >> 63)  # all ones where the nearest multiple is above
    fraction, fraction_low = fraction ^ turn, fraction_low ^ turn
    a, b = quick_sum(
        small_float(fraction >> 32) * 2.0**-32, small_float(fraction & 0xFFFFFFFF) * 2.0**-64
    )
    a, c = quick_sum(a, small_float(fraction_low >> 32) * 2.0**-96)
    tail = b + (c + small_float(fraction_low & 0xFFFFFFFF) * 2.0**-128)
    r, r_low = exact_product(a, HALF_PI)
    r, r_low = quick_sum(r, r_low + fma(tail, HALF_PI, a * HALF_PI_LOW))
    sign = (bits ^ turn) & 0x8000000000000000
    r = bitcast(kind(x), bitcast(words(x), r) ^ sign)
    r_low = bitcast(kind(x), bitcast(words(x), r_low) ^ sign)
    j = ints(x)(j)
    return select(x < 0.0, -j, j), r, r_low


@inline
def reduce_far(x):
    """reduce_large for either type."""
    if pick(x, False, True):
        return reduce_large(x)
    wide = shaped(x, f64)(x)
    j, r, r_low = reduce_large(wide)
    near = kind(x)(r)
    return ints(x)(j), near, kind(x)((r - shaped(x, f64)(near)) + r_low)


@inline
def reduced_near(x):
    """x = j pi/2 + r + r_low, j an integer whose low bits count, for |x| below the limit."""
    f = pick(x, SINGLE, DOUBLE)
    c = pick(x, CIRCLE_32, CIRCLE_64)
    t = fma(x, TWO_OVER_PI, f.magic)
    n = t - f.magic
    start = fma(n, -c.one, x)
    part, part_low = exact_product(n, -c.two)
    r, r_low = quick_sum(start, part)
    r_low = fma(n, -c.three, r_low + part_low)
    return bitcast(ints(x), t), r, r_low


@inline
def reduced(x):
    """The same for every x."""
    c = pick(x, CIRCLE_32, CIRCLE_64)
    j, r, r_low = reduced_near(x)
    far = abs(x) >= c.limit
    if any_lane(far):
        far = far & (abs(x) < INF)
        far_j, far_r, far_low = reduce_far(x)
        j, r, r_low = select(far, far_j, j), select(far, far_r, r), select(far, far_low, r_low)
    return j, r, r_low


@inline
def sine_of(j, r, r_low):
    """sin(j pi/2 + r + r_low)."""
    f = pick(r, SINGLE, DOUBLE)
    square = r * r
    sine = r + fma(polynomial(square, pick(r, SIN_32, SIN_64)), square * r, r_low)
    half = 0.5 * square
    one = 1.0 - half
    tail = fma(-r, r_low, (1.0 - one) - half)
    cosine = one + fma(polynomial(square, pick(r, COS_32, COS_64)), square * square, tail)
    y = select((j & 1) == 0, sine, cosine)
    return bitcast(kind(r), bitcast(ints(r), y) ^ ((j & 2) << (f.bits - 2)))


@inline
def sin(x):
    """The sine. Largest error: float32 0.852 ulp over all numbers, float64 0.78."""
    j, r, r_low = reduced(x)
    return select(x == 0.0, x, sine_of(j, r, r_low))


@inline
def cos(x):
    """The cosine. Largest error: float32 0.847 ulp over all numbers, float64 0.76."""
    j, r, r_low = reduced(x)
    return sine_of(j + 1, r, r_low)


@inline
def tan(x):
    """The tangent. Largest error: float32 0.866 ulp over all numbers, float64 0.77."""
    j, r, r_low = reduced(x)
    r, r_low = quick_sum(r, r_low)  # beside a pole r_low can be more than r's last place
    square, square_low = exact_product(r, r)
    # tan(r) = r + u r; what rounding took from the square counts with the slope of u near pi/4.
    u = fma(square, polynomial(square, pick(x, TAN_32, TAN_64)), square_low * 0.55)
    y = fma(u, r, r)
    y_low = fma(r_low, fma(y, y, 1.0), fma(u, r, r - y))
    inverse = -1.0 / y
    # -1 / (y + y_low): the remainder of the division, and what y_low changes.
    turned = fma(fma(inverse, y, 1.0) + inverse * y_low, inverse, inverse)
    return select(x == 0.0, x, select((j & 1) == 0, y + y_low, turned))
