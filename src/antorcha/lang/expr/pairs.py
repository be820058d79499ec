"""Complex arithmetic on pairs of real expressions: (real part, imaginary part)."""

from __future__ import annotations

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
    scale = E.maximum(E.abs(b[0]), E.abs(b[1]))  # so that the squares do not overflow
    c, d = b[0] / scale, b[1] / scale
    size = (c * c + d * d) * scale
    return (a[0] * c + a[1] * d) / size, (a[1] * c - a[0] * d) / size


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


def exp(a: Pair) -> Pair:
    size = E.exp(a[0])
    return size * E.cos(a[1]), E.where(a[1] == 0, a[1], size * E.sin(a[1]))


def log(a: Pair) -> Pair:
    return E.log(E.hypot(*a)), E.atan2(a[1], a[0])


def sqrt(a: Pair) -> Pair:
    size = E.hypot(*a)
    t = E.sqrt((size + E.abs(a[0])) * 0.5)
    other = E.where(t == 0, 0, E.abs(a[1]) / (2 * t))
    right = a[0] >= 0
    return E.where(right, t, other), E.copysign(E.where(right, other, t), a[1])
