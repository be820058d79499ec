"""The Hurwitz zeta function: ten terms of its sum, and the Euler-Maclaurin formula for the rest.
The polygamma functions are its multiples by factorials, which are taken into the terms.
"""

from __future__ import annotations

import math
from fractions import Fraction

from antorcha.devices.math.base import (
    INF,
    NAN,
    any_lane,
    exact_sum,
    ints,
    kind,
    pair_over_pair,
    pick,
    shaped,
)
from antorcha.devices.math.logarithm import log
from antorcha.devices.math.power import pow_
from antorcha.devices.math.trigonometric import word_at
from antorcha.lang.native import constant, f64, floor, fma, inline, roundeven, select, static

TERMS = 10
LEAST = 2.0**-950
# The Bernoulli numbers of even order 2 k, each divided by (2 k)!
EULER_MACLAURIN = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19,
)  # fmt: skip
SMALL, LARGE = 2.0**-30, 2.0**30  # of their arguments
MOST_ORDER = 170  # of polygamma: the factorial of the next order overflows
NEAR = 16.0  # below it no term of polygamma vanishes; beyond, none overflows
_FACTORIALS = [math.factorial(n) for n in range(MOST_ORDER + 1)]
_DOWN = [(f.bit_length() - 1) // (n + 1) for n, f in enumerate(_FACTORIALS)]
_HALVINGS = [_DOWN, [k + 1 for k in _DOWN]]  # for x below NEAR and beyond
SCALES = tuple([2.0**-k for row in _HALVINGS for k in row])
SHARES = tuple([float(Fraction(f, 2 ** (k * (n + 1)))) for row in _HALVINGS
                for n, (f, k) in enumerate(zip(_FACTORIALS, row, strict=True))])  # fmt: skip
"""Of every order n a power of two c, and n! c**(n + 1), which is at least 1 near 0 and at most 1
far out: so the sum that it multiplies stays in the range of floats where the product does."""


@inline
def power_of_sum(w, w_low, c, x):
    """(c (w + w_low))**-x for a power of two c."""
    y = pow_(w * c, -x)
    return select(y < INF, fma(y, -x * (w_low / w), y), y)


@inline
def euler_maclaurin(x, b, inverse, count):
    """b (1/2 + x / (12 w) - ...), so many terms of it; ``inverse`` is 1 / w. Their factors are
    moderate."""
    term = b * (x * inverse)
    rest = fma(term, EULER_MACLAURIN[0], b * 0.5)
    for k in static(range(1, count)):
        term = term * ((x + (2.0 * k - 1.0)) * inverse) * ((x + 2.0 * k) * inverse)
        rest = fma(term, EULER_MACLAURIN[k], rest)
    return rest


@inline
def zeta_by_products(x, q, c, terms, count):
    """``zeta_of`` for whole x and q that is neither tiny nor huge: so many terms of the sum, and of
    the formula. The powers are products."""
    sums = [exact_sum(q, kind(x)(float(k))) for k in static(range(terms + 1))]
    inverses = [1.0 / (sums[k][0] * c) for k in static(range(terms + 1))]
    bases = [inverses[k] for k in static(range(terms + 1))]
    powers = [kind(x)(1.0) for _ in static(range(terms + 1))]
    left = ints(x)(x)
    while any_lane(left != 0):
        odd = (left & 1) != 0
        for k in static(range(terms + 1)):
            powers[k] = select(odd, powers[k] * bases[k], powers[k])
            bases[k] = bases[k] * bases[k]
        left = left >> 1
    for k in static(range(terms + 1)):  # what rounding took from sums and inverses
        lost = fma(-inverses[k], sums[k][0] * c, 1.0) - sums[k][1] * c * inverses[k]
        powers[k] = fma(powers[k], x * lost, powers[k])
    b, inverse = powers[terms], inverses[terms] * c
    part, part_low = pair_over_pair(sums[terms][0], sums[terms][1], x - 1.0, 0.0)
    rest = fma(b, part, fma(b, part_low, euler_maclaurin(x, b, inverse, count)))
    total = powers[terms - 1]
    for k in static(range(terms - 2, 0, -1)):
        total = total + powers[k]
    return (total + rest) + powers[0]


@inline
def zeta_of(x, q, q_low, c):
    """The sum of (c (k + q + q_low))**-x, k = 0, 1, 2, ..., for float64 x > 1, q > 0 and a power of
    two c."""
    total = kind(x)(0.0)
    for k in range(TERMS):
        w, w_low = exact_sum(q, kind(x)(k))
        total = total + power_of_sum(w, w_low + q_low, c, x)
    w, w_low = exact_sum(q, kind(x)(float(TERMS)))
    b = power_of_sum(w, w_low + q_low, c, x)
    rest = euler_maclaurin(x, b, 1.0 / w, 12)
    gap, gap_low = exact_sum(x, kind(x)(-1.0))
    q, q_low = pair_over_pair(w, w_low + q_low, gap, gap_low)
    y = total + fma(b, q, fma(b, q_low, rest))
    small = b < LEAST
    if any_lane(small):  # the power vanishes, and w times it does not
        b = power_of_sum(w, w_low, c, gap) / (gap * c)
        b = fma(b, -gap_low * log(w * c), b)
        y = select(small, total + select(b > 0.0, b + rest, 0.0), y)
    return y


@inline
def zeta_below(x, q, c):
    """The same for whole x and q < 0 that is not whole: the term of the pole nearby, and those on
    both of its sides, with the sign of (-1)**x on the one side."""
    nearest = roundeven(q)
    r = q - nearest
    half = x * 0.5
    even = floor(half) == half
    own = pow_(abs(r) * c, -x)
    right, right_low = exact_sum(kind(x)(1.0), r)
    left, left_low = exact_sum(kind(x)(1.0), -r)
    far, far_low = exact_sum(1.0 - nearest, -r)
    right, left = zeta_of(x, right, right_low, c), zeta_of(x, left, left_low, c)
    left = left - zeta_of(x, far, far_low, c)
    own = select(even | (r > 0.0), own, -own)
    return own + select(even, right + left, right - left)


@inline
def scaled_zeta(s, a, c):
    """The sum of (c (k + a))**-s: NaN for s below 1, and for a below 0 unless s is whole."""
    usual = (s > 1.0) & (a > 0.0)
    zero = kind(s)(0.0)
    y = zeta_of(select(usual, s, 2.0), select(usual, a, 1.0), zero, select(usual, c, 1.0))
    below = (s > 1.0) & (a < 0.0) & (floor(a) != a) & (floor(s) == s) & (s < INF)
    if any_lane(below):
        part = zeta_below(select(below, s, 2.0), select(below, a, -0.5), select(below, c, 1.0))
        y = select(below, part, y)
    y = select(usual | below, y, NAN)
    y = select((s > 1.0) & (a <= 0.0) & (floor(a) == a), INF, y)
    return select((s == 1.0) & (a == a), INF, y)


@inline
def zeta(x, q):
    """Hurwitz's zeta function. Largest error: float32 0.501 ulp, float64 3."""
    s, a = shaped(x, f64)(x), shaped(x, f64)(q)
    return kind(x)(scaled_zeta(s, a, kind(s)(1.0)))


@inline
def polygamma_by_order(n, x):
    """The n-th derivative of digamma, n whole and from 1 to 170."""
    order, a = shaped(x, f64)(n), shaped(x, f64)(x)
    inside = (order >= 1.0) & (order <= static(float(MOST_ORDER)))
    order = select(inside, order, 1.0)
    at = ints(order)(select(a < NEAR, order, order + static(MOST_ORDER + 1.0)))
    c, factor = word_at(constant(f64, SCALES), at), word_at(constant(f64, SHARES), at)
    near = (a > SMALL) & (a < LARGE) & (order < pick(x, 31.0, 4.0))
    order_near, a_near = select(near, order, 1.0), select(near, a, 1.0)
    y = zeta_by_products(order_near + 1.0, a_near, c, pick(x, 6, 10), pick(x, 7, 12))
    if any_lane(~near):
        y = select(near, y, scaled_zeta(order + 1.0, a, c))
    y = y * factor
    half = order * 0.5
    y = select(floor(half) == half, -y, y)
    return kind(x)(select(inside, y, NAN))
