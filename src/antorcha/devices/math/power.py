"""pow: exp(y log(x)) with the logarithm a pair, and its special values (C11, annex F.10.4.4)."""

from __future__ import annotations

from antorcha.devices.math.base import (
    DOUBLE,
    INF,
    NAN,
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
from antorcha.devices.math.coefficients import EXP_SHORT_64, LOG_PAIR_64, LOG_SHORT_64
from antorcha.devices.math.exponential import LOG2_E, RANGE_64, grown
from antorcha.devices.math.logarithm import split, split_normal
from antorcha.lang.native import bitcast, f64, fma, inline, select, trunc

TWO_THIRDS, TWO_THIRDS_LOW = 0.6666666666666666, 3.700743415417188e-17


@inline
def log_pair(x):
    """log(x) of a positive float64 as a pair, good to 2**-66 or so.

    With s = (m - 1) / (m + 1): log(m) = 2 s + 2/3 s**3 + s**5 P(s*s).
    """
    k, m = split(x)
    under, under_low = quick_sum(kind(x)(1.0), m)
    s, s_low = pair_over_pair(m - 1.0, 0.0, under, under_low)
    square, square_low = exact_product(s, s)
    square_low = fma(s + s, s_low, square_low)
    cube, cube_low = exact_product(s, square)
    cube_low = cube_low + fma(s, square_low, s_low * square)
    third, third_low = exact_product(cube, kind(x)(TWO_THIRDS))
    third_low = fma(cube, TWO_THIRDS_LOW, fma(cube_low, TWO_THIRDS, third_low))
    tail = polynomial(square, LOG_PAIR_64) * (cube * square)
    high, low = quick_sum(s + s, third)
    low = low + (tail + (s_low + s_low + third_low))
    c = RANGE_64
    twos, twos_low = exact_product(k, kind(x)(c.ln2))
    whole, rest = exact_sum(twos, high)
    return quick_sum(whole, rest + (low + fma(k, c.ln2_low, twos_low)))


@inline
def exp_of_pair(x, x_low):
    """exp(x + x_low) of float64."""
    f, c = DOUBLE, RANGE_64
    x = lesser(c.high + 1.0, greater(c.low - 1.0, x))
    below = x < 0.0
    offset = select(below, kind(x)(f.magic + f.bias + f.scale), f.magic + f.bias - f.scale)
    t = fma(x, LOG2_E, offset)
    n = t - offset
    r, r_low = quick_sum(fma(n, -c.ln2, x), fma(n, -c.ln2_low, x_low))
    one, rest = quick_sum(kind(x)(1.0), r)
    power = bitcast(kind(x), bitcast(ints(x), t) << f.fraction)
    y = one + (rest + grown(r, fma(r_low, r, r_low)))
    return y * power * select(below, kind(x)(f.down), f.up)


@inline
def positive_power(a, y):
    """a ** y for a positive and finite, y finite."""
    high, low = log_pair(a)
    e, e_low = exact_product(y, high)
    e_low = select(abs(e) < 2000.0, fma(y, low, e_low), 0.0)
    return exp_of_pair(e, e_low)


@inline
def power_short(a, y):
    """The same of float64 that came from float32, to 2**-32 or so."""
    c = RANGE_64
    k, m = split_normal(a)
    f = m - 1.0
    log = fma(k, c.ln2, fma(polynomial(f, LOG_SHORT_64), f * f, f))
    x = lesser(kind(a)(200.0), greater(kind(a)(-200.0), y * log))
    t = fma(x, LOG2_E, DOUBLE.magic + DOUBLE.bias)
    n = t - (DOUBLE.magic + DOUBLE.bias)
    r = fma(n, -c.ln2, x)
    scale = bitcast(kind(a), bitcast(ints(a), t) << DOUBLE.fraction)
    return fma(fma(polynomial(r, EXP_SHORT_64), r, 1.0), r, 1.0) * scale


@inline
def pow_(x, y):
    """x ** y. Largest error: float32 0.501 ulp, float64 0.61 (denormal results: 0.75)."""
    a = abs(x)
    if pick(x, True, False):
        wide = shaped(x, f64)
        z = kind(x)(power_short(wide(a), wide(y)))
    else:
        z = positive_power(a, y)
    up = y > 0.0
    z = select(a == 0.0, select(up, kind(x)(0.0), INF), z)
    z = select(a == INF, select(up, kind(x)(INF), 0.0), z)
    z = select(abs(y) == INF, select(up == (a > 1.0), kind(x)(INF), 0.0), z)
    z = select(a == 1.0, 1.0, z)
    half = y * 0.5
    whole = trunc(y) == y
    odd = whole & (trunc(half) != half)
    negative = bitcast(ints(x), x) < 0
    z = select(negative & odd, -z, z)
    z = select((x < 0.0) & ~whole & (a < INF), NAN, z)
    z = select((x != x) | (y != y), x + y, z)
    return select((y == 0.0) | (x == 1.0), 1.0, z)
