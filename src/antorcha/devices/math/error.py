"""erf, erfc, erfcx and erfinv."""

from __future__ import annotations

from antorcha.devices.math.base import (
    DOUBLE,
    INF,
    NAN,
    SINGLE,
    any_lane,
    exact_product,
    exact_sum,
    greater,
    ints,
    kind,
    lesser,
    pair_over_pair,
    pick,
    polynomial,
    quick_sum,
    shaped,
)
from antorcha.devices.math.coefficients import (
    ERF_32,
    ERF_64,
    ERF_SHORT_64,
    ERF_TAIL_32,
    ERFCX_64,
    ERFCX_SHORT_64,
    ERFINV_END_64,
    ERFINV_FAR_64,
    ERFINV_FAR_SHORT_64,
    ERFINV_NEAR_64,
    ERFINV_NEAR_SHORT_64,
    EXP_32,
    EXP_64,
    EXP_SHORT_64,
    LOG_SHORT_64,
)
from antorcha.devices.math.exponential import LOG2_E, RANGE_32, RANGE_64, exp, grown
from antorcha.devices.math.logarithm import log_of_pair, split_normal
from antorcha.devices.math.pair_coefficients import ERFCX, ERFCX_SLOPE, ERFINV
from antorcha.devices.math.pairs import pair_polynomial, pair_product
from antorcha.lang.native import bitcast, copysign, f64, fma, inline, select, sqrt, static

TWO_OVER_ROOT_PI = 1.1283791670955126
ERFCX_LEAST = 26.64  # erfcx(-ERFCX_LEAST) is infinite
ROOT_PI = 1.7724538509055159
ERFCX_FAR = (1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875)  # (2k - 1)!! / (-2)**k


@inline
def decay(a, a_low):
    """exp(-(a + a_low)) for 0 <= a <= 40."""
    f = pick(a, SINGLE, DOUBLE)
    c = pick(a, RANGE_32, RANGE_64)
    offset = static(f.magic + f.bias)
    t = fma(a, -LOG2_E, offset)
    n = t - offset
    r = fma(n, -c.ln2_low, fma(n, -c.ln2, -a)) - a_low
    power = bitcast(kind(a), bitcast(ints(a), t) << f.fraction)
    return fma(fma(polynomial(r, pick(a, EXP_32, EXP_64)), r, 1.0), r, 1.0) * power


@inline
def scaled_erfc(a, c):
    """float64 exp(a*a) erfc(a) for 0 <= a <= 28 (M. Shepherd, J. Laframboise)."""
    return polynomial((a - 4.0) / (a + 4.0), c) / fma(a, 2.0, 1.0)


@inline
def erf(x):
    """The error function. Largest error: float32 0.908 ulp over all numbers, float64 0.9.

    An odd polynomial near 0, 1 - erfc(x) further out.
    """
    a = abs(x)
    square = x * x
    near = fma(polynomial(square, pick(x, ERF_32, ERF_64)), x, x)
    if pick(x, True, False):
        b = lesser(kind(x)(4.0), a)
        power, power_low = quick_sum(b, polynomial(b, ERF_TAIL_32))
        far = 1.0 - decay(power, power_low)
        return select(a < 0.9375, near, copysign(far, x))
    b = lesser(kind(x)(6.0), a)
    power, power_low = exact_product(b, b)
    far = 1.0 - decay(power, power_low) * scaled_erfc(b, ERFCX_64)
    return select(a < 1.0, near, copysign(far, x))


@inline
def erfc(x):
    """1 - erf(x). Largest error: float32 0.501 ulp, float64 0.65 (denormal results: 0.76)."""
    if pick(x, True, False):
        return kind(x)(erfc_short(shaped(x, f64)(x)))
    # Near 0, 1 - erf(x) = 1 - x - x P(x*x).
    one, one_low = quick_sum(kind(x)(1.0), -x)
    near = one + fma(polynomial(x * x, ERF_64), -x, one_low)
    high, low, _, scale = far_erfc(lesser(kind(x)(28.0), abs(x)))
    far = (high + low) * scale * DOUBLE.down
    two, two_low = quick_sum(kind(x)(2.0), -(high * scale * DOUBLE.down))
    far = select(x < 0.0, two + fma(low * scale, -DOUBLE.down, two_low), far)
    return select(abs(x) < 0.5, near, far)


@inline
def far_erfc(a):
    """float64 erfc(a) for 0 <= a <= 28 as (high + low) * scale / 2**512 -> high, low, e, scale.

    It is exp(-a*a) Q(t) / (1 + 2 a), t = (a - 4) / (a + 4); e * scale / 2**512 is the exponential.
    """
    square, square_low = exact_product(a, a)
    e, e_low, scale = decay_pair(square, square_low)
    t, t_low = pair_over_pair(*exact_sum(a, kind(a)(-4.0)), *exact_sum(a, kind(a)(4.0)))
    top, top_low = pair_polynomial(t, 0.0, ERFCX)
    top_low = fma(polynomial(t, ERFCX_SLOPE), t_low, top_low)
    q, q_low = pair_over_pair(top, top_low, *exact_sum(kind(a)(1.0), a + a))
    high, low = pair_product(e, e_low, q, q_low)
    return high, low, e, scale


@inline
def decay_pair(a, a_low):
    """exp(-(a + a_low)) of float64 a >= 0: (high + low) * power / 2**scale -> high, low, power."""
    f, c = DOUBLE, RANGE_64
    offset = static(f.magic + (f.bias + f.scale))
    x = greater(c.low, -a)
    t = fma(x, LOG2_E, offset)
    n = t - offset
    r, r_low = quick_sum(fma(n, -c.ln2, x), fma(n, -c.ln2_low, -a_low))
    one, rest = quick_sum(kind(a)(1.0), r)
    high, low = quick_sum(one, rest + grown(r, fma(r_low, r, r_low)))
    return high, low, bitcast(kind(a), bitcast(ints(a), t) << f.fraction)


@inline
def erfc_short(x):
    """The same of float64 that came from float32, to 2**-32 or so."""
    a = lesser(kind(x)(10.1), abs(x))
    square = x * x
    t = fma(-(a * a), LOG2_E, DOUBLE.magic + DOUBLE.bias)
    r = fma(t - (DOUBLE.magic + DOUBLE.bias), -RANGE_64.ln2, -(a * a))
    power = bitcast(kind(x), bitcast(ints(x), t) << DOUBLE.fraction)
    e = fma(fma(polynomial(r, EXP_SHORT_64), r, 1.0), r, 1.0) * power
    far = e * scaled_erfc(a, ERFCX_SHORT_64)
    far = select(x < 0.0, 2.0 - far, far)
    near = 1.0 - fma(polynomial(square, ERF_SHORT_64), x, x)
    return select(abs(x) < 0.5, near, far)


@inline
def erfcx(x):
    """exp(x*x) erfc(x). Largest error: float32 0.501 ulp, float64 4.

    Below 0 it is 2 exp(x*x) - erfcx(-x), beyond 28 the asymptotic series.
    """
    w = shaped(x, f64)(x)
    a = abs(w)
    b = lesser(28.0, a)
    c = greater(28.0, a)
    inverse = 1.0 / c
    far = polynomial(inverse * inverse, ERFCX_FAR) * inverse / ROOT_PI
    y = select(a > 28.0, far, scaled_erfc(b, ERFCX_64))
    b = lesser(ERFCX_LEAST, a)
    square, square_low = exact_product(b, b)
    e = exp(square)
    below = fma(e, square_low, e) * 2.0 - y
    return kind(x)(select(w < 0.0, below, y))


@inline
def erfinv(x):
    """The inverse of erf. Largest error: float32 0.501 ulp, float64 0.65 (denormal results: 0.75).

    x times a polynomial of w = -log(1 - x*x), or of its root where w is large (after M. Giles).
    float64 takes one of x*x up to 0.5, with pairs, and beyond mends with a step of Newton's method.
    """
    a = abs(x)
    if pick(x, True, False):
        y = kind(x)(erfinv_short(shaped(x, f64)(x)))
    else:
        square, square_low = exact_product(x, x)
        ratio, ratio_low = pair_polynomial(square, square_low, ERFINV)
        y = fma(x, ratio, x * ratio_low)
        outer = a > 0.5
        if any_lane(outer):
            y = select(outer, outer_erfinv(select(outer, a, 0.75)), y)
        y = copysign(y, x)
    y = select(a == 1.0, copysign(kind(x)(INF), x), y)
    return select(a > 1.0, NAN, y)


@inline
def outer_erfinv(a):
    """erfinv of float64 a in 0.5..1: y + (erfc(y) - (1 - a)) / (2 exp(-y*y) / sqrt(pi))."""
    one, gap = 1.0 + a, 1.0 - a
    product, product_low = exact_product(one, gap)
    product_low = product_low + gap * (a - (one - 1.0))
    w = -log_of_pair(product, product_low, 0.0)
    y = polynomial(w - 3.125, ERFINV_NEAR_64)
    far = w > 6.25
    if any_lane(far):
        root = sqrt(w)
        middle = polynomial(root - 3.0, ERFINV_FAR_64)
        y = select(far, select(w > 16.0, polynomial(root - 5.0, ERFINV_END_64), middle), y)
    y = lesser(kind(a)(6.0), y * a)
    high, low, e, scale = far_erfc(y)
    scale = scale * DOUBLE.down
    rest = fma(low, scale, fma(high, scale, -gap))
    return y + rest / (e * scale * TWO_OVER_ROOT_PI)


@inline
def erfinv_short(x):
    """The same of float64 that came from float32, to 2**-32 or so; for |x| = 1 anything."""
    k, m = split_normal((1.0 - x) * (1.0 + x))
    f = m - 1.0
    log = fma(k, RANGE_64.ln2, fma(polynomial(f, LOG_SHORT_64), f * f, f))
    y = polynomial(-3.125 - log, ERFINV_NEAR_SHORT_64)
    far = log < -6.25
    if any_lane(far):
        y = select(far, polynomial(sqrt(-log) - 3.0, ERFINV_FAR_SHORT_64), y)
    return y * x
