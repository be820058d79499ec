"""Remainders, exponents, neighbours, and the functions made of one square root or division."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from antorcha.devices.math.base import (
    DOUBLE,
    INF,
    NAN,
    SINGLE,
    any_lane,
    exact_product,
    ints,
    kind,
    pick,
)
from antorcha.lang.native import (
    bitcast,
    copysign,
    floor,
    fma,
    i16,
    i32,
    i64,
    inline,
    intrinsic,
    roundeven,
    select,
    sqrt,
    static,
)


class Hypot(NamedTuple):
    """Outside low..high, hypot scales by powers of two, so that squares are exact pairs."""

    low: float
    grow: float
    high: float
    shrink: float


round_ = roundeven

HYPOT_32 = Hypot(2.0**-32, 2.0**90, 2.0**62, 2.0**-70)
HYPOT_64 = Hypot(2.0**-256, 2.0**740, 2.0**510, 2.0**-520)


_BITS = {2: i16, 4: i32, 8: i64}


def _np_bits(x: Any) -> Any:
    return {2: np.int16, 4: np.int32, 8: np.int64}[np.asarray(x).itemsize]


@intrinsic(_np_bits)
def bits_type(g: Any, node: Any, x: Any) -> Any:
    """The signed integer type of x's shape and width, half types included."""
    return x.ty.with_scalar(_BITS[x.ty.scalar.size])


@inline
def nextafter(x, y):
    """The next number of x's type, which may be a half, from x to y. Exact."""
    whole = bits_type(x)
    bits, zero = bitcast(whole, x), select(y < 0.0, kind(x)(-0.0), kind(x)(0.0))
    away = (y > x) ^ (x < 0.0)  # from zero: magnitudes are in the order of their bits
    least = bitcast(whole, zero) + 1
    moved = select(x == 0.0, least, select(away, bits + 1, bits - 1))
    found = select(x == y, y, bitcast(kind(x), moved))
    return select((x != x) | (y != y), x + y, found)


@inline
def reciprocal(x):
    """1 / x, correctly rounded."""
    return 1.0 / x


@inline
def logb(x):
    """The exponent of x: the integer n with 2**n <= |x| < 2**(n + 1)."""
    f = pick(x, SINGLE, DOUBLE)
    a = abs(x)
    small = a < f.tiny
    bits = bitcast(ints(x), select(small, a * f.widen, a))
    n = kind(x)((bits >> f.fraction) - f.bias) - select(small, kind(x)(float(f.fraction + 1)), 0.0)
    return select(a == 0.0, -INF, select(a < INF, n, a))


@inline
def rsqrt(x):
    """1 / sqrt(x). Largest error: float32 0.501 ulp, float64 0.5."""
    y = 1.0 / sqrt(x)
    # One step of Newton's method, with the product x y exact.
    product, product_low = exact_product(x, y)
    rest = fma(-product, y, 1.0) - product_low * y
    return select((x > 0.0) & (x < INF), fma(y * 0.5, rest, y), y)


@inline
def hypot(x, y):
    """sqrt(x*x + y*y). Largest error: float32 0.75 ulp, float64 0.5 (denormal: 0.75).

    The root of the rounded sum is corrected by the sum's exact error (C. Borges, 2019).
    """
    c = pick(x, HYPOT_32, HYPOT_64)
    ax, ay = abs(x), abs(y)
    high, low = select(ax > ay, ax, ay), select(ax > ay, ay, ax)
    large, small = high > c.high, high < c.low
    factor = select(large, kind(x)(c.shrink), select(small, kind(x)(c.grow), 1.0))
    back = select(large, kind(x)(1 / c.shrink), select(small, kind(x)(1 / c.grow), 1.0))
    a, b = high * factor, low * factor
    h = sqrt(fma(a, a, b * b))
    square, square_low = exact_product(a, a)
    whole, whole_low = exact_product(h, h)
    rest = fma(-b, b, whole - square) + (whole_low - square_low)
    z = select(h > 0.0, h - rest / (h + h), h) * back
    return select((ax == INF) | (ay == INF), INF, z)


@inline
def remainder_of(a, b):
    """The exact remainder of a / b in [0, b), for finite a >= 0 and b > 0.

    For the rounded quotient q, a - q b is exact and at most half a unit in q's last place times b,
    of either sign. One step does unless the quotient has more digits than the type.
    """
    limit = static(pick(a, 2.0**23, 2.0**52))
    up = static(pick(a, 2.0**64, 2.0**512))
    r = a
    far = abs(r / b) >= limit
    while any_lane(far):
        by = b  # times a power of two where the quotient is out of range
        for _ in static(range(4)):
            by = select(abs(r / by) > up, by * up, by)
        r = select(far, fma(-roundeven(r / by), by, r), r)
        far = abs(r / b) >= limit
    r = fma(-roundeven(r / b), b, r)
    r = select(r < 0.0, r + b, r)
    return select(r >= b, r - b, r)


@inline
def fmod(x, y):
    """The remainder of x / y with the sign of x, exact; NaN for y = 0 and infinite x."""
    a, b = abs(x), abs(y)
    good = (a < INF) & (b > 0.0)
    plain = good & (b < INF)
    r = remainder_of(select(plain, a, 0.0), select(plain, b, 1.0))
    return copysign(select(plain, r, select(good, a, NAN)), x)


@inline
def remainder(x, y):
    """The remainder of x / y with the sign of y (a zero keeps that of x, as in PyTorch)."""
    r = fmod(x, y)
    return select((r != 0.0) & ((y < 0.0) ^ (r < 0.0)), r + y, r)


@inline
def floor_divide(x, y):
    """x / y rounded down, as Python's ``//``: by the remainder, which is exact."""
    r = fmod(x, y)
    q = (x - r) / y
    q = select((r != 0.0) & ((y < 0.0) ^ (r < 0.0)), q - 1.0, q)
    low = floor(q)
    low = select(q - low > 0.5, low + 1.0, low)
    whole = x / y
    return select(y == 0.0, whole, select(q != 0.0, low, copysign(kind(q)(0.0), whole)))
