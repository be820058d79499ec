"""Elementary functions of complex numbers, written in real ones: what records say as complex rule.

Each takes numbers as pairs (real part, imaginary part) and gives such a pair. Sums are arranged so
that neither part loses digits to cancellation; pairs of float32 are computed in float64. Special
values are those of C11, annex G.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from antorcha.core import dtypes
from antorcha.lang import expr as E
from antorcha.lang.expr import pairs
from antorcha.lang.expr.pairs import Pair

Rule: TypeAlias = Callable[[Pair], Pair]

LN2, LN10 = math.log(2), math.log(10)
HUGE = 709.0  # cosh overflows soon beyond
FLAT = 22.0  # from here on tanh is 1
MOST_PRODUCTS = 100  # whole powers up to this are made of products
FAR = 2.0**64  # so far out 1 is nothing beside the square


def in_float64(rule: Callable[..., Pair]) -> Callable[..., Pair]:
    """The rule with its arithmetic in float64; the caller rounds the result to the parts' dtype."""

    @wraps(rule)
    def wide(*numbers: Pair) -> Pair:
        return rule(*[tuple([E.cast(part, dtypes.float64) for part in z]) for z in numbers])

    return wide


# ---- roots and powers
@in_float64
def sqrt(z: Pair) -> Pair:
    """Scaled where the size overflows, or is denormal."""
    x, y = z
    size = E.maximum(E.abs(x), E.abs(y))
    big, small = size > 2.0**1000, size < 2.0**-900
    x, y = (part * E.where(big, 0.25, E.where(small, 2.0**108, 1.0)) for part in z)
    back = E.where(big, 2.0, E.where(small, 2.0**-54, 1.0))
    t = E.sqrt(E.hypot(x, y) * 0.5 + E.abs(x) * 0.5)
    other = E.where(t == 0, 0, E.abs(y) / (2 * t)) * back
    t, right, endless = t * back, x >= 0, E.isinf(y)
    re, im = E.where(right, t, other), E.where(right, other, t)
    return E.where(endless, math.inf, re), E.copysign(E.where(endless, math.inf, im), y)


def rsqrt(z: Pair) -> Pair:
    return pairs.reciprocal(sqrt(z))


@in_float64
def _any_power(a: Pair, b: Pair) -> Pair:
    re, im = pairs.exp(pairs.mul(b, log(a)))
    at_zero, up, none = (a[0] == 0) & (a[1] == 0), b[0] > 0, (b[0] == 0) & (b[1] == 0)
    size = E.where(up, 0.0, E.where(none, 1.0, E.where(b[0] < 0, math.inf, math.nan)))
    turn = E.where(up | none, 0.0, math.nan)
    return E.where(at_zero, size, re), E.where(at_zero, turn, im)


def power(a: Pair, b: Pair) -> Pair:
    """a ** b; a known whole or half exponent gives products and roots, which are exacter."""
    known = b[0].payload if b[0].op == b[1].op == "const" and b[1].payload == 0 else None
    if known in (0.5, -0.5):
        return sqrt(a) if known == 0.5 else rsqrt(a)
    if known is not None and known in range(-MOST_PRODUCTS, MOST_PRODUCTS + 1):
        return _whole_power(int(known))(a)
    return _any_power(a, b)


def _whole_power(n: int) -> Rule:
    """The n-th power by squaring."""

    def by_squaring(a: Pair) -> Pair:
        result, square, left = None, a, abs(n)
        while left:
            if left & 1:
                result = square if result is None else pairs.mul(result, square)
            square, left = pairs.mul(square, square), left >> 1
        if result is None:
            return E.const(1.0, dtypes.float64), E.const(0.0, dtypes.float64)
        return pairs.reciprocal(result) if n < 0 else result

    return in_float64(by_squaring)


# ---- exponentials
@in_float64
def exp2(z: Pair) -> Pair:
    return pairs.exponential(E.exp2, z[0], z[1] * LN2)


@in_float64
def expm1(z: Pair) -> Pair:
    re, im = pairs.exp(z)
    half = E.sin(z[1] * 0.5)
    less = E.expm1(z[0]) * E.cos(z[1]) - 2 * half * half
    return E.where(z[0] > 100, re, less), im


@in_float64
def sigmoid(z: Pair) -> Pair:
    """1 / (1 + w) where |w| <= 1, else w / (1 + w): |1 + w|**2 is (1 - e)**2 + 4 e cos(y/2)**2."""
    x, y = z
    e, gap = E.exp(-E.abs(x)), -E.expm1(-E.abs(x))
    cos, half = E.cos(y), E.cos(y * 0.5)
    twice = 2 * half * half  # 1 + cos(y)
    size = gap * gap + 2 * e * twice
    left = e * E.where(e > 0.5, twice - gap, e + cos)
    return E.where(x >= 0, gap + e * twice, left) / size, e * E.sin(y) / size


# ---- logarithms
def _exact_sum(a: Any, b: Any) -> Pair:
    """a + b and what rounding took from it (D. Knuth)."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


def _plus_squares(start: Any, x: Any, y: Any) -> Any:
    """start + x*x + y*y; the terms may cancel."""
    xx, yy = x * x, y * y
    total, low = _exact_sum(xx, start)
    total, rest = _exact_sum(total, yy)
    low, lost = _exact_sum(low, rest)
    tail, rest = _exact_sum(E.fma(x, x, -xx), E.fma(y, y, -yy))
    low, last = _exact_sum(low, tail)
    total, low = _exact_sum(total, low)
    return total + (low + (lost + rest + last))


def _log_size(x: Any, y: Any, excess: Any) -> Any:
    """log(hypot(x, y)), given ``x*x + y*y - 1`` for where that is near 1."""
    a, b = E.abs(x), E.abs(y)
    high, low = E.maximum(a, b), E.minimum(a, b)
    near = (high > 0.5) & (high < 2)
    ratio = low / E.where(high == 0, 1.0, high)
    size = E.where(near, 0.0, E.log(high)) + 0.5 * E.log1p(E.where(near, excess, ratio * ratio))
    return E.where(E.isinf(x) | E.isinf(y), math.inf, size)


@in_float64
def log(z: Pair) -> Pair:
    x, y = z
    return _log_size(x, y, _plus_squares(-1.0, x, y)), E.atan2(y, x)


@in_float64
def log1p(z: Pair) -> Pair:
    x, y = z
    size = _log_size(x + 1, y, _plus_squares(2 * x, x, y))
    return E.where((x == 0) & (y == 0), x, size), E.atan2(y, x + 1)


def log2(z: Pair) -> Pair:
    return pairs.scale(log(z), 1 / LN2)


def log10(z: Pair) -> Pair:
    return pairs.scale(log(z), 1 / LN10)


# ---- hyperbolic and trigonometric functions
def _hyperbolic(x: Any) -> tuple[Any, Any, Any]:
    """sinh(x) and cosh(x), both to be multiplied by a third number, last: then only a product that
    is infinite overflows."""
    far, half = E.abs(x) > HUGE, E.exp(E.abs(x) * 0.5)
    sinh = E.where(far, E.copysign(half * 0.5, x), E.sinh(x))
    return sinh, E.where(far, half * 0.5, E.cosh(x)), E.where(far, half, 1.0)


def _without_direction(x: Any, y: Any) -> Any:
    """Whether of infinite size with an angle that is not finite."""
    return E.isinf(x) & ~E.isfinite(y)


@in_float64
def sinh(z: Pair) -> Pair:
    x, y = z
    sinh, cosh, last = _hyperbolic(x)
    re = sinh * E.cos(y) * last
    re = E.where(((x == 0) | E.isinf(x)) & ~E.isfinite(y), x, re)
    return re, E.where(y == 0, y, cosh * E.sin(y) * last)


@in_float64
def cosh(z: Pair) -> Pair:
    x, y = z
    sinh, cosh, last = _hyperbolic(x)
    re = E.where(_without_direction(x, y), math.inf, cosh * E.cos(y) * last)
    zero = E.copysign(0.0, x) * E.copysign(1.0, y)
    return re, E.where((x == 0) | (y == 0), zero, sinh * E.sin(y) * last)


@in_float64
def tanh(z: Pair) -> Pair:
    """By the half angle: the divisor sinh(x)**2 + cos(y)**2 is a sum of squares."""
    x, y = z
    far = E.abs(x) > FLAT
    near = E.where(far, 0.0, x)
    sinh, cos, sin = E.sinh(near), E.cos(y), E.sin(y)
    size = sinh * sinh + cos * cos
    vanishing = 4 * sin * cos * E.exp(-2 * E.abs(x))
    re = E.where(far, E.copysign(1.0, x), sinh * E.cosh(near) / size)
    im = E.where(far, vanishing, sin * cos / size)
    im = E.where(_without_direction(x, y), E.copysign(0.0, y), im)
    return E.where(x == 0, x, re), E.where(y == 0, y, im)


def turned(rule: Rule) -> Rule:
    """-i f(i z): sin from sinh, tan from tanh, and their inverses."""
    return lambda z: pairs.over_i(rule(pairs.times_i(z)))


sin: Rule = turned(sinh)
tan: Rule = turned(tanh)


def cos(z: Pair) -> Pair:
    return cosh(pairs.times_i(z))


# ---- their inverses
def _arc(x: Any, y: Any) -> Pair:
    """Of x and y that are not negative, with A the half sum of the distances of x + iy from i and
    -i: the real part of asinh(x + iy), which is acosh(A), and sqrt(A*A - y*y), 1 where y is 0.

    T. Hull, T. Fairgrieve, P. Tang, "Implementing the complex arcsine and arccosine functions using
    exception handling" (1997), with the factor x taken out of roots that would underflow.
    """
    endless, across = E.isinf(x) | E.isinf(y), x
    far = E.maximum(x, y) > FAR
    x, y = (E.where(far, part * 2.0**-16, part) for part in (x, y))
    gap = E.abs(y - 1)
    above, below = E.hypot(x, y + 1), E.hypot(x, y - 1)
    a = (above + below) * 0.5
    first, second, rest = 1 / (above + (y + 1)), 1 / (below + gap), below + gap
    both = (first + second) * 0.5
    less = (x * (x * first) + rest) * 0.5  # A - y where y < 1, else A - 1
    inside = y < 1
    # A - 1 + sqrt(A*A - 1)
    shift = E.where(
        inside, x * (x * both) + x * E.sqrt(both * (a + 1)), less + E.sqrt(less) * E.sqrt(a + 1)
    )
    real = E.log1p(shift)
    real = E.where(far, real + 16 * LN2, real)
    root = E.where(y <= 1, E.sqrt(less) * E.sqrt(a + y), x * E.sqrt(both) * E.sqrt(a + y))
    root = E.where(far, root * 2.0**16, root)
    return E.where(endless, math.inf, real), E.where(endless, across, E.where(y == 0, 1.0, root))


@in_float64
def asinh(z: Pair) -> Pair:
    x, y = z
    real, root = _arc(E.abs(x), E.abs(y))
    return E.copysign(real, x), E.atan2(y, root)


@in_float64
def acos(z: Pair) -> Pair:
    x, y = z
    imag, root = _arc(E.abs(y), E.abs(x))
    return E.atan2(root, x), -E.copysign(imag, y)


@in_float64
def acosh(z: Pair) -> Pair:
    x, y = z
    real, root = _arc(E.abs(y), E.abs(x))
    return real, E.copysign(E.atan2(root, x), y)


@in_float64
def atanh(z: Pair) -> Pair:
    """A quarter of log1p(4 x / |1 - z|**2); beside the pole at 1, half the log of 2 / |1 - z|."""
    x, y = E.abs(z[0]), z[1]
    apart = E.hypot(1 - x, y)
    pole = apart < 2.0**-100
    part = 2 / apart
    size = E.log1p(E.where(pole, part, x * part / apart * 2)) * E.where(pole, 0.5, 0.25)
    size = E.where((x == 0) | E.isinf(x) | E.isinf(y), 0.0, size)
    far = (x > FAR) | (E.abs(y) > FAR)
    square = E.where(far, -1.0, ((1 - x) * (1 + x) - y * y) * 0.5)
    return E.copysign(size, z[0]), 0.5 * E.atan2(
        E.where(far & (y == y), E.copysign(0.0, y), y), square
    )


asin: Rule = turned(asinh)
atan: Rule = turned(atanh)
