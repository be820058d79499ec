"""exp, exp2, expm1, sigmoid and the hyperbolic functions.

All start from x = n ln(2) + r with |r| <= ln(2)/2 (W. Cody, W. Waite): the first product n * ln(2)
cancels exactly, the second leaves r and what rounding took from it. Then exp(r) = 1 + r + r*r*P(r).

2**n is made in two factors, one of them 2**64 or 2**-64 (float64: 2**512), so that results near the
ends of the range, denormal ones too, are rounded once, by the last multiplication.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from antorcha.devices.math.base import (
    DOUBLE,
    SINGLE,
    any_lane,
    greater,
    ints,
    kind,
    lesser,
    pick,
    polynomial,
    quick_sum,
    scaled,
    scales,
)
from antorcha.devices.math.coefficients import (
    EXP2_32,
    EXP2_64,
    EXP_32,
    EXP_64,
    EXP_LONG_32,
    SINH_32,
    SINH_64,
    TANH_32,
    TANH_64,
)
from antorcha.lang.native import bitcast, copysign, fma, inline, select


class ExponentialRange(NamedTuple):
    """Where exp is neither 0 nor infinite, and ln(2) in two parts."""

    low: float
    high: float
    low2: float  # the same for exp2
    high2: float
    ln2: float
    ln2_low: float
    all_one: float  # beyond this, exp(-x) is nothing beside 1


RANGE_32 = ExponentialRange(
    -104.0, 89.0, -151.0, 129.0, 0.693147182464599609375, -1.904654323148236e-09, 20.0
)
RANGE_64 = ExponentialRange(
    -746.0, 710.0, -1076.0, 1025.0, 0.6931471805599453094, 2.3190468138462996e-17, 42.0
)
LOG2_E = 1 / math.log(2)
GUESS = 0x7EF33800  # this less the bits of a number d are those of y, about 1 / d
GUESS_SUM = 2.00143  # with this s, y (s - d y) is 1 / d to 0.0015
SPARE = 8  # sinh and cosh are divided by 2**SPARE until the last multiplication


@inline
def reduced(x, offset):
    """x = n ln(2) + r + r_low -> bits whose low end is n + offset, n, r, r_low."""
    c = pick(x, RANGE_32, RANGE_64)
    t = fma(x, LOG2_E, offset)
    n = t - offset
    near = fma(n, -c.ln2, x)
    r = fma(n, -c.ln2_low, near)
    return bitcast(ints(x), t), n, r, fma(n, -c.ln2_low, near - r)


@inline
def grown(r, low):
    """exp(r) - 1 - r + low: r*r/2 is rounded once, with the sum."""
    cube = r * r * r
    return fma(r * 0.5, r, fma(polynomial(r, pick(r, EXP_LONG_32, EXP_64)[1:]), cube, low))


@inline
def rounds_with(x, below):
    """What rounds to an integer when it is added; the sum's low end is that of a power of two."""
    f = pick(x, SINGLE, DOUBLE)
    if scales(x):
        return kind(x)(f.magic)
    return select(below, kind(x)(f.magic + f.bias + f.scale), f.magic + f.bias - f.scale)


@inline
def times_power(y, t, n, below):
    """y * 2**n, rounded once; t = n + rounds_with(n, below)."""
    f = pick(y, SINGLE, DOUBLE)
    if scales(y):
        return scaled(y, n)
    power = bitcast(kind(y), bitcast(ints(y), t) << f.fraction)
    return y * power * select(below, kind(y)(f.down), f.up)


@inline
def exp(x):
    """e ** x. Largest error: float32 0.897 ulp over all numbers, float64 0.82."""
    c = pick(x, RANGE_32, RANGE_64)
    x = lesser(c.high, greater(c.low, x))
    below = x < 0.0
    offset = rounds_with(x, below)
    t = fma(x, LOG2_E, offset)
    n = t - offset
    r = fma(n, -c.ln2_low, fma(n, -c.ln2, x))
    y = fma(fma(polynomial(r, pick(x, EXP_32, EXP_64)), r, 1.0), r, 1.0)
    return times_power(y, t, n, below)


@inline
def exp2(x):
    """2 ** x. Largest error: float32 0.838 ulp over all numbers, float64 0.82."""
    c = pick(x, RANGE_32, RANGE_64)
    x = lesser(c.high2, greater(c.low2, x))
    below = x < 0.0
    offset = rounds_with(x, below)
    t = x + offset
    n = t - offset
    r = x - n
    tail = fma(polynomial(r, pick(x, EXP2_32, EXP2_64)), r, c.ln2_low)
    y = 1.0 + fma(r, c.ln2, r * tail)
    return times_power(y, t, n, below)


@inline
def expm1(x):
    """e ** x - 1. Largest error: float32 0.714 ulp over all numbers, float64 0.86."""
    f = pick(x, SINGLE, DOUBLE)
    c = pick(x, RANGE_32, RANGE_64)
    a = lesser(c.high, greater(-c.all_one, x))
    # Half of 2**n, so that n = 128 (1024) does not overflow before its time.
    t, n, r, r_low = reduced(a, f.magic + (f.bias - 1))
    power = bitcast(kind(x), t << f.fraction)
    high, low = quick_sum(r, grown(r, r_low))
    start = power - 0.5
    y = fma(high, power, start)
    rest = fma(high, power, start - y) + fma(low, power, (power - start) - 0.5)
    return copysign(select(n == 0.0, high, (y + rest) * 2.0), x)


@inline
def sigmoid(x):
    """1 / (1 + exp(-x)). Largest error: float32 0.938 ulp over all numbers, float64 0.86."""
    if pick(x, True, False):
        return sigmoid_single(x)
    return sigmoid_double(x)


@inline
def sigmoid_single(x):
    """``sigmoid`` of float32, without a division: on many CPUs it takes as long as all the rest.

    With exp(-x) = (1 + e) 2**n it is 1 / (1 + 2**n + e 2**n). What a guess y lacks is told by
    h = 1 - y - 2**n y - 2**n e y, a small difference: y is cut to twelve bits, so that all but the
    last term is exact as far as it matters. A guess is made by subtracting bits as integers, to
    0.05; improved by a step of Newton's, to 0.0017; and by y (1 + h + h**2), to 2**-27.
    """
    c = RANGE_32
    whole = ints(x)
    near_zero = x < -87.0  # results are exp(x), and y would be denormal
    at = lesser(c.all_one, x)
    t = fma(at, -LOG2_E, SINGLE.magic)
    n = t - SINGLE.magic
    r = fma(n, -c.ln2_low, fma(n, -c.ln2, -at))
    rest = polynomial(r, EXP_32) * (r * r)  # e = r + rest
    shift = bitcast(whole, t) << SINGLE.fraction
    power = bitcast(kind(x), shift + SINGLE.one)
    under = fma(r + rest, power, power) + 1.0
    y = bitcast(kind(x), GUESS - bitcast(whole, under))
    bits = bitcast(whole, y * fma(-under, y, GUESS_SUM)) & -4096
    y, times = bitcast(kind(x), bits), bitcast(kind(x), bits + shift)  # y, 2**n y
    h = fma(-times, rest, fma(-times, r, (0.5 - times) + (0.5 - y)))
    q = fma(fma(h, h, h), y, y)
    if any_lane(near_zero):
        q = select(near_zero, exp(x), q)
    return q


@inline
def sigmoid_double(x):
    """``sigmoid`` of float64.

    With e = exp(-|x|), it is e / (1 + e) for negative x, else 1 / (1 + e).
    """
    f = pick(x, SINGLE, DOUBLE)
    c = pick(x, RANGE_32, RANGE_64)
    below = x < 0.0
    t, _, r, r_low = reduced(greater(c.low, -abs(x)), f.magic + (f.bias + f.scale))
    scale = bitcast(kind(x), t << f.fraction) * f.down
    rest = r + fma(polynomial(r, pick(x, EXP_32, EXP_64)), r * r, r_low)
    e, e_low = quick_sum(kind(x)(1.0), rest)
    under = fma(e, scale, 1.0)
    under_low = fma(e, scale, 1.0 - under)
    inverse = 1.0 / under
    top = select(below, e, 1.0)
    top_low = select(below, e_low, 0.0)
    q = top * inverse
    q = fma(fma(-q, under_low, fma(-q, under, top) + top_low), inverse, q)
    return select(below, q * scale, q)


@inline
def tanh(x):
    """The hyperbolic tangent. Largest error: float32 0.881 ulp over all numbers, float64 0.84.

    1 - 2 / (exp(2 |x|) + 1), but for small x an odd polynomial.
    """
    f = pick(x, SINGLE, DOUBLE)
    c = pick(x, RANGE_32, RANGE_64)
    a = abs(x)
    twice = lesser(c.all_one, a + a)
    t = fma(twice, LOG2_E, f.magic + f.bias)
    n = t - (f.magic + f.bias)
    r = fma(n, -c.ln2, twice)
    if pick(x, False, True):  # for float32, tanh is flat where this would show
        r = fma(n, -c.ln2_low, r)
    power = bitcast(kind(x), bitcast(ints(x), t) << f.fraction)
    e = fma(polynomial(r, pick(x, EXP_32, EXP_64)), r * r, r)  # exp(2 |x|) = (1 + e) * power
    far = 1.0 - 2.0 / fma(e, power, power + 1.0)
    square = x * x
    near = fma(polynomial(square, pick(x, TANH_32, TANH_64)) * square, a, a)
    return copysign(select(a < 1.0, near, far), x)


@inline
def half_exp(a):
    """exp(a) for a >= 0 as (high + low) * power, divided by 2**SPARE -> high, low, power."""
    f = pick(a, SINGLE, DOUBLE)
    t, _, r, r_low = reduced(a, f.magic + (f.bias - SPARE))
    one, rest = quick_sum(kind(a)(1.0), r)
    high, low = quick_sum(one, rest + grown(r, r_low))
    power = bitcast(kind(a), t << f.fraction)
    return high, low, power


@inline
def exp_and_inverse(c, a):
    """exp(a) and exp(-a) for a >= 0, divided by 2**SPARE, the first as a high and a low part."""
    high, low, power = half_exp(lesser(c.high + 1.0, a))
    y, y_low = high * power, low * power
    return y, y_low, 0.25**SPARE / y


@inline
def sinh(x):
    """The hyperbolic sine. Largest error: float32 0.73 ulp, float64 0.7."""
    c = pick(x, RANGE_32, RANGE_64)
    a = abs(x)
    y, y_low, small = exp_and_inverse(c, a)
    far, far_low = quick_sum(y, -small)
    far = (far + (far_low + y_low)) * 2.0 ** (SPARE - 1)
    square = x * x
    near = fma(polynomial(square, pick(x, SINH_32, SINH_64)) * square, a, a)
    return copysign(select(a < 1.0, near, far), x)


@inline
def cosh(x):
    """The hyperbolic cosine. Largest error: float32 0.82 ulp, float64 0.74."""
    c = pick(x, RANGE_32, RANGE_64)
    y, y_low, small = exp_and_inverse(c, abs(x))
    sum_, sum_low = quick_sum(y, small)
    return (sum_ + (sum_low + y_low)) * 2.0 ** (SPARE - 1)
