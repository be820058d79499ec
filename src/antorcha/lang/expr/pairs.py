"""Complex arithmetic on pairs of real expressions: (real part, imaginary part)."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from antorcha.lang import expr as E

Pair: TypeAlias = tuple[Any, Any]


def add(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def sub(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def neg(a: Pair) -> Pair:
    return -a[0], -a[1]


def mul(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def div(a: Pair, b: Pair) -> Pair:
    """By R. L. Smith (1962), as PyTorch and NumPy do: the divisor's lesser part over its greater.

    Over zero each part of ``a`` is divided by zero.
    """
    wide = E.abs(b[0]) >= E.abs(b[1])
    high, low = E.where(wide, b[0], b[1]), E.where(wide, b[1], b[0])
    zero = (high == 0) & (low == 0)
    ratio = low / high
    scale = E.where(zero, math.inf, 1 / (high + low * ratio))
    re = E.where(wide, a[0] + a[1] * ratio, a[0] * ratio + a[1])
    im = E.where(wide, a[1] - a[0] * ratio, a[1] * ratio - a[0])
    return E.where(zero, a[0], re) * scale, E.where(zero, a[1], im) * scale


def reciprocal(a: Pair) -> Pair:
    return div((1, 0), a)


def scale(a: Pair, by: float) -> Pair:
    """a * by for a real number."""
    return a[0] * by, a[1] * by


def shift(a: Pair, by: float) -> Pair:
    """a + by for a real number."""
    return a[0] + by, a[1]


def times_i(a: Pair) -> Pair:
    return -a[1], a[0]


def over_i(a: Pair) -> Pair:
    return a[1], -a[0]


def exponential(of: Any, x: Any, y: Any) -> Pair:
    """``of(x)``, a real exponential, in the direction of the angle y."""
    half, size = of(x * 0.5), of(x)
    cos, sin = E.cos(y), E.sin(y)
    over = (size == math.inf) & (x < math.inf)  # its product with a small cosine may be finite
    re = E.where(over, half * cos * half, size * cos)
    im = E.where(over, half * sin * half, size * sin)
    vague = E.isinf(x) & ~E.isfinite(y)  # an infinite size without a direction, or a zero
    re = E.where(vague, size, re)
    im = E.where(vague, E.where(x > 0, y - y, 0), im)
    return re, E.where(y == 0, y, im)


def exp(a: Pair) -> Pair:
    return exponential(E.exp, *a)
