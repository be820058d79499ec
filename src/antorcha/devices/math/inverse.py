"""asin, acos, atan and atan2."""

from __future__ import annotations

from typing import NamedTuple

from antorcha.devices.math.base import (
    DOUBLE,
    INF,
    SINGLE,
    exact_product,
    ints,
    kind,
    pick,
    polynomial,
    quick_sum,
)
from antorcha.devices.math.coefficients import ASIN_32, ASIN_64, ATAN_32, ATAN_64
from antorcha.lang.native import bitcast, copysign, fma, inline, select, sqrt


class Angle(NamedTuple):
    """pi/2 as a pair."""

    half_pi: float
    low: float


ANGLE_32 = Angle(1.57079637050628662109375, -4.37113900018624283e-8)
ANGLE_64 = Angle(1.5707963267948966192, 6.123233995736766e-17)


@inline
def small_asin(s):
    """(asin(s) - s) for |s| <= 0.5, given s."""
    square = s * s
    return polynomial(square, pick(s, ASIN_32, ASIN_64)) * (square * s)


@inline
def half_root(a):
    """sqrt((1 - a) / 2) as a pair, for a in 0.5..1."""
    z = fma(a, -0.5, 0.5)
    root = sqrt(z)
    rest = fma(-root, root, z) / (root + root)
    return root, select(z > 0.0, rest, 0.0)


@inline
def asin(x):
    """The inverse of sin. Largest error: float32 0.69 ulp over all numbers, float64 0.66.

    Beyond 0.5: asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
    """
    c = pick(x, ANGLE_32, ANGLE_64)
    a = abs(x)
    root, root_low = half_root(a)
    small = a <= 0.5
    s = select(small, a, root)
    tail = small_asin(s)
    high, low = quick_sum(kind(x)(c.half_pi), -2.0 * s)
    far = high + fma(tail + root_low, -2.0, low + c.low)
    return copysign(select(small, s + tail, far), x)


@inline
def acos(x):
    """The inverse of cos. Largest error: float32 0.674 ulp over all numbers, float64 0.61."""
    c = pick(x, ANGLE_32, ANGLE_64)
    a = abs(x)
    root, root_low = half_root(a)
    small = a <= 0.5
    below = x < 0.0
    s = select(small, x, root)
    tail = small_asin(s)
    # |x| <= 0.5: pi/2 - asin(x); x > 0.5: 2 asin(root); x < -0.5: pi - 2 asin(root)
    base = select(small, kind(x)(c.half_pi), select(below, kind(x)(2.0 * c.half_pi), 0.0))
    base_low = select(small, kind(x)(c.low), select(below, kind(x)(2.0 * c.low), 0.0))
    times = select(small, kind(x)(-1.0), select(below, kind(x)(-2.0), 2.0))
    low_part = select(small, 0.0, root_low)
    high, low = quick_sum(base, times * s)
    return high + fma(times, tail + low_part, low + base_low)


@inline
def atan(x):
    """The inverse of tan. Largest error: float32 0.902 ulp over all numbers, float64 0.87.

    Beyond 1: atan(x) = pi/2 - atan(1 / x).
    """
    c = pick(x, ANGLE_32, ANGLE_64)
    a = abs(x)
    steep = a > 1.0
    inverse = 1.0 / a
    inverse_low = fma(-inverse, a, 1.0) * inverse
    s = select(steep, -inverse, a)
    square, square_low = exact_product(s, s)
    # atan(s) = s + u s; what rounding took from the square counts with the slope of u near 1.
    u = fma(square, polynomial(square - 0.5, pick(x, ATAN_32, ATAN_64)), square_low * -0.15)
    high, low = quick_sum(select(steep, kind(x)(c.half_pi), 0.0), s)
    mend = select(a < INF, inverse_low * -0.55, 0.0)
    return copysign(high + fma(u, s, low + select(steep, mend + c.low, 0.0)), x)


@inline
def atan2(y, x):
    """The angle of the point (x, y), in -pi..pi. Largest error: float32 0.98 ulp, float64 0.89.

    The smaller of |x|, |y| is divided by the greater, with its remainder; the quotient's angle is
    taken from pi/2 where |y| is the greater, and that from pi where x is negative.
    """
    c = pick(x, ANGLE_32, ANGLE_64)
    f = pick(x, SINGLE, DOUBLE)
    ax, ay = abs(x), abs(y)
    steep = ay > ax
    top, under = select(steep, ax, ay), select(steep, ay, ax)
    # Both are scaled where a quotient of them would lose bits, or the remainder would.
    factor = select(under > f.up, kind(x)(f.down), select(under < 1.0, kind(x)(f.up), 1.0))
    top, under = top * factor, under * factor
    s = top / under
    s_low = fma(-s, under, top) / under
    one = (ax == INF) & (ay == INF)
    s = select(one, 1.0, select(under == 0.0, 0.0, s))
    s_low = select(under < INF, s_low, 0.0)
    s_low = select(under == 0.0, 0.0, s_low)
    square, square_low = exact_product(s, s)
    u = fma(square, polynomial(square - 0.5, pick(x, ATAN_32, ATAN_64)), square_low * -0.15)
    bits = ints(x)
    behind = (bitcast(bits, x) >> (f.bits - 1)) != 0
    # base +- atan(s): 0 + , pi - , pi/2 - , pi/2 +
    base = select(steep, kind(x)(1.0), select(behind, kind(x)(2.0), 0.0))
    turned = steep ^ behind
    signed = select(turned, -s, s)
    high, low = quick_sum(base * c.half_pi, signed)
    tail = fma(u, signed, low + base * c.low)
    tail = fma(select(turned, -s_low, s_low), fma(square, -0.45, 1.0), tail)
    z = copysign(high + tail, y)
    return select((x != x) | (y != y), x + y, z)
