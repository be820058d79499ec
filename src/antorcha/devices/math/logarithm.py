"""log, log2, log10, log1p, the inverse hyperbolic functions and pow.

All write x = 2**k m with m in 2/3..4/3, exactly, f = m - 1, and log(m) = f + f*f*Q(f). What is
added to k ln(2) is kept as a pair, so that only the last sum rounds.
"""

from __future__ import annotations

from typing import NamedTuple

from antorcha.devices.math.base import (
    DOUBLE,
    INF,
    NAN,
    SINGLE,
    any_lane,
    exact_product,
    exact_sum,
    ints,
    kind,
    lesser,
    pair_over_pair,
    pick,
    polynomial,
    quick_sum,
    words,
)
from antorcha.devices.math.coefficients import (
    ASINH_32,
    ASINH_64,
    ATANH_32,
    ATANH_64,
    LOG_32,
    LOG_64,
    LOG_CUBE_32,
    LOG_CUBE_64,
)
from antorcha.devices.math.exponential import RANGE_32, RANGE_64
from antorcha.lang.native import bitcast, copysign, fma, inline, select, sqrt, static


class Scale(NamedTuple):
    """What turns natural logarithms into those of another base: parts of 1 / log(base)."""

    high: float
    low: float
    two: float  # log of 2 in that base, high and low
    two_low: float


BASE2_32 = Scale(1.44269502162933349609375, 1.9259629911266174681e-08, 1.0, 0.0)
BASE2_64 = Scale(1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0)
BASE10_32 = Scale(
    0.4342944920063018798828125, -1.010305028845e-08, 0.3010300099849700927734375, -1.4320988e-08
)
BASE10_64 = Scale(
    0.4342944819032518, 1.098319650216765e-17, 0.3010299956639812, -2.8037281277851704e-18
)


@inline
def unusual(x):
    """Whether x is not a positive normal number."""
    f = pick(x, SINGLE, DOUBLE)
    return bitcast(words(x), x) - (1 << f.fraction) >= (2 * f.bias) << f.fraction


@inline
def split_normal(x):
    """A positive normal x as 2**k * m, with m in 2/3..4/3 -> k, m."""
    f = pick(x, SINGLE, DOUBLE)
    bits = bitcast(ints(x), x)
    steps = (bits - f.two_thirds) >> f.fraction
    return kind(x)(steps), bitcast(kind(x), bits - (steps << f.fraction))


@inline
def split(x):
    """The same for denormal numbers too."""
    f = pick(x, SINGLE, DOUBLE)
    small = x < f.tiny
    k, m = split_normal(select(small, x * f.widen, x))
    return k - select(small, kind(x)(float(f.fraction + 1)), 0.0), m


@inline
def outside(x, y):
    """The logarithm y of x, mended where x is 0, negative, infinite or NaN."""
    y = select(x < INF, y, x)
    y = select(x == 0.0, -INF, y)
    return select(x < 0.0, NAN, y)


@inline
def log_of_parts(k, m):
    """log(2**k m)."""
    c = pick(m, RANGE_32, RANGE_64)
    f = m - 1.0
    high = fma(k, c.ln2, f)
    low = fma(k, c.ln2, -high) + f
    tail = fma(polynomial(f, pick(m, LOG_32, LOG_64)), f * f, fma(k, c.ln2_low, low))
    return high + tail


@inline
def log(x):
    """The natural logarithm. Largest error: float32 0.823 ulp over all numbers, float64 0.75."""
    k, m = split_normal(x)
    y = log_of_parts(k, m)
    rare = unusual(x)
    if any_lane(rare):
        k, m = split(x)
        y = select(rare, outside(x, log_of_parts(k, m)), y)
    return y


@inline
def log_in_base(k, m, c):
    """log(2**k m) in the base of c."""
    f = m - 1.0
    square, square_low = exact_product(f, f)
    near, near_low = quick_sum(f, -0.5 * square)  # log(m) so far
    cube = polynomial(f, pick(m, LOG_CUBE_32, LOG_CUBE_64)) * (f * square)
    near_low = near_low + fma(square_low, -0.5, cube)
    part, part_low = exact_product(near, c.high)
    whole = k * c.two
    high, low = exact_sum(whole, part)
    low = low + fma(near_low, c.high, fma(near, c.low, part_low))
    if c.two_low:
        low = low + fma(k, c.two_low, fma(k, c.two, -whole))
    return high + low


@inline
def log_scaled(x, c):
    """log(x) in the base of c."""
    k, m = split_normal(x)
    y = log_in_base(k, m, c)
    rare = unusual(x)
    if any_lane(rare):
        k, m = split(x)
        y = select(rare, outside(x, log_in_base(k, m, c)), y)
    return y


@inline
def log2(x):
    """The logarithm to base 2. Largest error: float32 0.662 ulp over all numbers, float64 0.59."""
    return log_scaled(x, pick(x, BASE2_32, BASE2_64))


@inline
def log10(x):
    """The logarithm to base 10. Largest error: float32 0.649 ulp over all numbers, float64 0.6."""
    return log_scaled(x, pick(x, BASE10_32, BASE10_64))


@inline
def log_of_pair(x, x_low, more):
    """log(x + x_low) + more * ln(2), for x normal, accurate beside 1 too."""
    f = pick(x, SINGLE, DOUBLE)
    c = pick(x, RANGE_32, RANGE_64)
    bits = bitcast(ints(x), x)
    steps = (bits - f.two_thirds) >> f.fraction
    shift = steps << f.fraction
    m = bitcast(kind(x), bits - shift)
    # x_low / 2**k: 2**-k is made from the bits of 1.0 (0 for the greatest k, where it is nothing).
    rest = x_low * bitcast(kind(x), max(f.one - shift, 0))
    k = kind(x)(steps) + more
    e = m - 1.0
    rest = rest * fma(e, e - 1.0, 1.0)  # rest / m
    high = fma(k, c.ln2, e)
    low = fma(k, c.ln2, -high) + e
    tail = polynomial(e, pick(x, LOG_32, LOG_64)) * (e * e)
    return high + (tail + (rest + fma(k, c.ln2_low, low)))


@inline
def log1p(x):
    """log(1 + x). Largest error: float32 0.964 ulp over all numbers, float64 0.92."""
    one, low = exact_sum(kind(x)(1.0), x)
    y = log_of_pair(one, low, 0.0)
    y = select(x < INF, y, x)
    y = select(x == -1.0, -INF, y)
    y = select(x < -1.0, NAN, y)
    return select(abs(x) < pick(x, 2.0**-60, 2.0**-200), x, y)


@inline
def asinh(x):
    """The inverse of sinh. Largest error: float32 0.71 ulp, float64 0.68.

    log(|x| + sqrt(x*x + 1)) with the argument a pair; log(2 |x|) for large x.
    """
    huge = static(pick(x, 2.0**14, 2.0**30))
    a = abs(x)
    b = lesser(kind(x)(huge), a)
    square, square_low = exact_product(b, b)
    under, under_low = exact_sum(square, kind(x)(1.0))
    root = sqrt(under)
    root_low = (fma(-root, root, under) + (under_low + square_low)) / (root + root)
    y, y_low = exact_sum(root, b)
    large = a > huge
    more = select(large, kind(x)(1.0), 0.0)
    far = log_of_pair(select(large, a, y), select(large, 0.0, y_low + root_low), more)
    near = fma(polynomial(square, pick(x, ASINH_32, ASINH_64)) * square, a, a)
    return copysign(select(a < 0.5, near, select(a < INF, far, a)), x)


@inline
def acosh(x):
    """The inverse of cosh. Largest error: float32 0.95 ulp, float64 0.86.

    log(1 + (t + sqrt(t (t + 2)))), t = x - 1, with the argument a pair; log(2 x) for large x.
    """
    huge = static(pick(x, 2.0**14, 2.0**30))
    b = lesser(kind(x)(huge), x)
    t = b - 1.0
    square, square_low = exact_product(t, t)
    # t (t + 2) = square + 2 t
    under, under_low = exact_sum(t + t, square)
    root = sqrt(under)
    rest = fma(-root, root, under) + (under_low + square_low)
    root_low = select(under > 0.0, rest / (root + root), 0.0)
    sum_, sum_low = exact_sum(root, t)
    y, y_low = exact_sum(kind(x)(1.0), sum_)
    large = x > huge
    more = select(large, kind(x)(1.0), 0.0)
    low = select(large, 0.0, y_low + (sum_low + root_low))
    far = log_of_pair(select(large, x, y), low, more)
    return select(x < INF, select(x < 1.0, NAN, far), x)


@inline
def atanh(x):
    """The inverse of tanh. Largest error: float32 0.64 ulp, float64 0.6."""
    a = abs(x)
    top, top_low = exact_sum(kind(x)(1.0), a)
    under, under_low = exact_sum(kind(x)(1.0), -a)
    q, q_low = pair_over_pair(top, top_low, under, under_low)
    far = 0.5 * log_of_pair(q, q_low, 0.0)
    square = x * x
    near = fma(polynomial(square, pick(x, ATANH_32, ATANH_64)) * square, a, a)
    y = select(a < 0.5, near, far)
    y = select(a == 1.0, INF, y)
    return copysign(select(a > 1.0, NAN, y), x)
