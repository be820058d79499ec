"""The incomplete gamma functions: of gamma(a) the share P that lies below x, the share Q above it,
and P's slope in x. All are computed in float64.

They begin with x**a exp(-x) / gamma(a + 1), whose exponent is a pair. The smaller share is computed
and the other one is 1 less it: below a by P's series, above by Legendre's continued fraction of Q,
both from the last term to the first; for a from 128 on and x nearby by N. Temme's uniform expansion
(DLMF 8.12). Where a and x are small, Q is too small for that, and has a series of its own.
"""

from __future__ import annotations

from fractions import Fraction

from antorcha.devices.math.base import (
    INF,
    NAN,
    any_lane,
    exact_sum,
    kind,
    lesser,
    pair_over_pair,
    polynomial,
    shaped,
)
from antorcha.devices.math.coefficients import ERFCX_64, STIRLING_64
from antorcha.devices.math.error import scaled_erfc
from antorcha.devices.math.exponential import exp, expm1
from antorcha.devices.math.pair_coefficients import LGAMMA_ONE, Pairs
from antorcha.devices.math.pairs import log_of, pair_polynomial, pair_product, pair_sum
from antorcha.devices.math.power import exp_of_pair
from antorcha.devices.math.special_coefficients import (
    GAMMA_ORDER_0,
    GAMMA_ORDER_1,
    GAMMA_ORDER_2,
    GAMMA_ORDER_3,
    GAMMA_ORDER_4,
    GAMMA_ORDER_5,
    GAMMA_ORDER_6,
)
from antorcha.lang.native import f64, floor, fma, inline, roundeven, select, sqrt, static

ROOT_TWO_PI = 2.5066282746310002
ORDERS = (
    GAMMA_ORDER_0, GAMMA_ORDER_1, GAMMA_ORDER_2, GAMMA_ORDER_3, GAMMA_ORDER_4, GAMMA_ORDER_5,
    GAMMA_ORDER_6,
)  # fmt: skip
STIRLING_FROM = 8.0  # of a: below, gamma(a + 1) is a product
TEMME_FROM, TEMME_REACH = 128.0, 0.3  # of a, and of |x / a - 1|
SMALL_A, SMALL_X = 1.0, 1.1
SMALL_TERMS = 20
SERIES_TERMS, FRACTION_TERMS = 132.0, 68.0  # at most, but for small x
_GAP = [Fraction((-1) ** k, k + 2) for k in range(20)]
GAP_NEAR = 0.1
GAP = Pairs(
    tuple([(float(c), float(c - Fraction(float(c)))) for c in _GAP[:4]]),
    tuple([float(c) for c in _GAP[4:]]),
)
"""(t - log(1 + t)) / t**2, |t| <= GAP_NEAR."""


@inline
def small_exponent(a, x):
    """a log(x) - log(gamma(a + 1)) as a pair, for 0 < a < 8."""
    n = roundeven(a)
    t = a - n
    g, g_low = pair_polynomial(t, 0.0, LGAMMA_ONE)
    g, g_low = pair_product(g, g_low, t, 0.0)
    # gamma(a + 1) = a (a - 1) .. (a - n + 1) gamma(1 + t)
    p, p_low, factor, count = kind(a)(1.0), kind(a)(0.0), a, n
    while any_lane(count > 0.0):
        q, q_low = pair_product(p, p_low, factor, 0.0)
        p, p_low = select(count > 0.0, q, p), select(count > 0.0, q_low, p_low)
        factor, count = factor - 1.0, count - 1.0
    l, l_low = log_of(p, p_low)
    m, m_low = log_of(x, 0.0)
    e, e_low = pair_product(a, 0.0, m, m_low)
    g, g_low = pair_sum(g, g_low, l, l_low)
    return pair_sum(e, e_low, -g, -g_low)


@inline
def gap(a, x):
    """x - a - a log(x / a) as a pair, which is never below 0."""
    d, d_low = exact_sum(x, -a)
    q, q_low = pair_over_pair(d, d_low, a, 0.0)
    near = abs(q) <= GAP_NEAR
    s, s_low = select(near, q, 0.0), select(near, q_low, 0.0)
    u, u_low = pair_polynomial(s, s_low, GAP)
    s, s_low = pair_product(s, s_low, s, s_low)
    u, u_low = pair_product(s, s_low, u, u_low)
    r, r_low = pair_over_pair(x, 0.0, a, 0.0)
    l, l_low = log_of(r, r_low)
    v, v_low = pair_sum(q, q_low, -l, -l_low)
    u, u_low = select(near, u, v), select(near, u_low, v_low)
    u, u_low = pair_product(u, u_low, a, 0.0)
    return pair_sum(u, u_low, kind(a)(0.0), 0.0)


@inline
def start(a, x, slope):
    """x**a exp(-x) / gamma(a + 1); for ``slope`` over x, which the power alone may not reach."""
    large = a >= STIRLING_FROM
    e, e_low = small_exponent(select(large, 1.0, a), x)
    e, e_low = pair_sum(e, e_low, -x, 0.0)
    scale = kind(a)(1.0)
    if any_lane(large):
        b = select(large, a, STIRLING_FROM)
        u, u_low = gap(b, select(large, x, STIRLING_FROM))
        inverse = 1.0 / b
        u, u_low = pair_sum(u, u_low, polynomial(inverse * inverse, STIRLING_64) * inverse, 0.0)
        e, e_low = select(large, -u, e), select(large, -u_low, e_low)
        scale = select(large, 1.0 / (sqrt(b) * ROOT_TWO_PI), scale)
    if slope:
        l, l_low = log_of(x, 0.0)
        e, e_low = pair_sum(e, e_low, -l, -l_low)
    return exp_of_pair(e, e_low) * scale


@inline
def lower_series(a, x):
    """1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + .., for x below a, or below 1.1."""
    k = lesser(kind(a)(SERIES_TERMS), floor(fma(sqrt(a), 9.5, 24.0)))
    y = kind(a)(1.0)
    while any_lane(k > 0.0):
        y = select(k > 0.0, fma(x / (a + k), y, 1.0), y)
        k = k - 1.0
    return y


@inline
def upper_fraction(a, x):
    """The fraction that x**a exp(-x) is divided by for gamma(a) Q, for x above a and 1.1."""
    k = floor(110.0 / x + lesser(kind(a)(FRACTION_TERMS), fma(sqrt(x), 4.5, 8.0)))
    d = x - a
    v = d + (k + k + 1.0)
    while any_lane(k > 0.0):
        v = select(k > 0.0, (d + (k + k - 1.0)) - k * (k - a) / v, v)
        k = k - 1.0
    return v


@inline
def small_upper(a, x):
    """Q for a below 1 and x below 1.1: 1 - x**a / gamma(a + 1), and what exp(-x) takes from P."""
    e, e_low = small_exponent(a, x)
    s = 1.0 / (a + float(SMALL_TERMS))
    for k in static(range(SMALL_TERMS - 1, 0, -1)):
        s = fma(x * static(-1.0 / (k + 1)), s, 1.0 / (a + float(k)))
    power = exp(e)
    return fma(power, a * x * s, -fma(power, e_low, expm1(e)))


@inline
def temme(a, x):
    """The smaller of the shares, where a is large and x nearby."""
    u, u_low = gap(a, x)
    above = x >= a
    root = sqrt(u)
    eta = root * (1.4142135623730951 / sqrt(a))
    eta = select(above, eta, -eta)
    inverse = 1.0 / a
    t = polynomial(eta, static(ORDERS[-1]))
    for k in static(range(len(ORDERS) - 2, -1, -1)):
        t = fma(t, inverse, polynomial(eta, ORDERS[k]))
    t = t / (sqrt(a) * ROOT_TWO_PI)
    half = scaled_erfc(lesser(kind(a)(28.0), root), ERFCX_64) * 0.5
    return exp_of_pair(-u, -u_low) * (half + select(above, t, -t))


@inline
def smaller_share(a, x):
    """One of the shares, and whether it is the upper one, for positive and finite a and x."""
    small = (a < SMALL_A) & (x < SMALL_X)
    uniform = (a >= TEMME_FROM) & (abs(x - a) <= a * TEMME_REACH)
    above = (x >= a) & ~small
    y = start(a, x, False)
    fraction, series = above & ~uniform, ~above & ~uniform
    if any_lane(series):
        rest = lower_series(select(series, a, 1.0), select(series, x, 1.0))
        y = select(series, y * rest, y)
    if any_lane(fraction):
        rest = upper_fraction(select(fraction, a, 1.0), select(fraction, x, 2.0))
        y = select(fraction, y * a / rest, y)
    if any_lane(uniform):
        b = select(uniform, a, TEMME_FROM)
        y = select(uniform, temme(b, select(uniform, x, TEMME_FROM)), y)
    return y, above, small


@inline
def at_ends(a, x, y, least):
    """y, or the share where a or x is 0 or infinite: ``least`` where x is small beside a."""
    inside = (a >= 0.0) & (x >= 0.0)
    y = select(inside & ((x == 0.0) | (a == INF)), least, y)
    y = select(inside & ((a == 0.0) | (x == INF)), 1.0 - least, y)
    unknown = ~inside | ((a == 0.0) & (x == 0.0)) | ((a == INF) & (x == INF))
    return select(unknown, NAN, y)


@inline
def gammainc(input, other):
    """P. Largest error: float32 0.501 ulp, float64 10."""
    a, x = shaped(input, f64)(input), shaped(other, f64)(other)
    usual = (a > 0.0) & (x > 0.0) & (a < INF) & (x < INF)
    y, upper, _ = smaller_share(select(usual, a, 1.0), select(usual, x, 1.0))
    return kind(input)(at_ends(a, x, select(upper, 1.0 - y, y), 0.0))


@inline
def gammaincc(input, other):
    """Q. Largest error: float32 0.501 ulp, float64 10."""
    a, x = shaped(input, f64)(input), shaped(other, f64)(other)
    usual = (a > 0.0) & (x > 0.0) & (a < INF) & (x < INF)
    b, z = select(usual, a, 1.0), select(usual, x, 1.0)
    y, upper, small = smaller_share(b, z)
    y = select(upper, y, 1.0 - y)
    if any_lane(small):
        y = select(small, small_upper(select(small, b, 0.5), select(small, z, 0.5)), y)
    return kind(input)(at_ends(a, x, y, 1.0))


@inline
def gamma_density(input, other):
    """The slope of P in x: x**(a - 1) exp(-x) / gamma(a). Largest error: float32 0.501 ulp, float64
    6."""
    a, x = shaped(input, f64)(input), shaped(other, f64)(other)
    usual = (a > 0.0) & (x > 0.0) & (a < INF) & (x < INF)
    b, z = select(usual, a, 1.0), select(usual, x, 1.0)
    y = start(b, z, True) * b
    y = select((a >= 0.0) & (x >= 0.0) & ~usual, 0.0, select(usual, y, NAN))
    y = select((x == 0.0) & (a == 1.0), 1.0, y)
    return kind(input)(select((x == 0.0) & (a > 0.0) & (a < 1.0), INF, y))
