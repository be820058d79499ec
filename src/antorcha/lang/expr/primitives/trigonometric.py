"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from typing import Any

from antorcha.lang import expr as E
from antorcha.lang.expr import complex_functions
from antorcha.lang.expr.op import Accuracy, ScalarOp, floating, real_floating

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin",
    "sinh", "tan", "tanh",
]  # fmt: skip

# Trigonometric


sin: ScalarOp = ScalarOp(
    "sin", 1, floating, "sin", (lambda g, x, y: g * E.conj(E.cos(x)),),
    "The sine of an angle in radians.",
    complex_rule=complex_functions.sin,
    accuracy=Accuracy(0.95, 0.8),
)  # fmt: skip
cos: ScalarOp = ScalarOp(
    "cos", 1, floating, "cos", (lambda g, x, y: -g * E.conj(E.sin(x)),),
    "The cosine of an angle in radians.",
    complex_rule=complex_functions.cos, accuracy=Accuracy(0.95, 0.8),
)  # fmt: skip
tan: ScalarOp = ScalarOp(
    "tan", 1, floating, "tan", (lambda g, x, y: g * E.conj(1 + y * y),),
    "The tangent of an angle in radians.",
    complex_rule=complex_functions.tan,
    domain=(-math.pi / 2, math.pi / 2), accuracy=Accuracy(0.95, 0.85, within=(-50, 50)),
    expand=lambda x: E.sin(x) / E.cos(x),
)  # fmt: skip
asin: ScalarOp = ScalarOp(
    "asin", 1, floating, "arcsin", (lambda g, x, y: g * E.conj(E.rsqrt(1 - x * x)),),
    "The inverse sine: nan outside of -1..1.",
    complex_rule=complex_functions.asin, domain=(-1, 1), accuracy=Accuracy(0.8, 0.75),
    expand=lambda x: E.atan(x / E.sqrt((1 - x) * (1 + x))),
)  # fmt: skip
acos: ScalarOp = ScalarOp(
    "acos", 1, floating, "arccos", (lambda g, x, y: -g * E.conj(E.rsqrt(1 - x * x)),),
    "The inverse cosine: nan outside of -1..1.",
    complex_rule=complex_functions.acos, domain=(-1, 1), accuracy=Accuracy(0.8, 0.75),
    expand=lambda x: 2 * E.atan2(E.sqrt(1 - x), E.sqrt(1 + x)),
)  # fmt: skip
atan: ScalarOp = ScalarOp(
    "atan", 1, floating, "arctan", (lambda g, x, y: g / E.conj(x * x + 1),), "The inverse tangent.",
    complex_rule=complex_functions.atan,
    accuracy=Accuracy(1.0, 0.9),
)  # fmt: skip


def over_square(g: Any, a: Any, b: Any) -> Any:
    """g * a / (a*a + b*b), and 0 at the origin, where PyTorch puts it too."""
    square = a * a + b * b
    return g * E.where(square == 0, 0, a * E.reciprocal(square))


def _expand_atan2(a: Any, b: Any) -> Any:
    inside = E.abs(b) >= E.abs(a)
    flat = E.atan(E.abs(a) / E.abs(b))
    steep = math.pi / 2 - E.atan(E.abs(b) / E.abs(a))
    both = (E.abs(a) == math.inf) & (E.abs(b) == math.inf)
    zero = (a == 0) & (b == 0)
    t = E.where(both, math.pi / 4, E.where(zero, 0, E.where(inside, flat, steep)))
    turned = E.copysign(E.where(E.signbit(b), math.pi - t, t), a)
    return E.where(E.isnan(a) | E.isnan(b), a + b, turned)


atan2: ScalarOp = ScalarOp(
    "atan2", 2, real_floating, "arctan2",
    (lambda g, a, b, y: over_square(g, b, a), lambda g, a, b, y: -over_square(g, a, b)),
    "The angle of the point (b, a).", accuracy=Accuracy(1.0, 0.95), expand=_expand_atan2,
)  # fmt: skip

# Hyperbolic


def _expand_sinh(x: Any) -> Any:
    a = E.abs(x)
    e = E.expm1(a)
    half = E.exp(a * 0.5)  # exp(a) overflows before sinh(a) does
    return E.copysign(E.where(a < 20, (e + e / (e + 1)) * 0.5, half * 0.5 * half), x)


def _expand_cosh(x: Any) -> Any:
    half = E.exp(E.abs(x) * 0.5)
    return half * 0.5 * half + 0.5 / half / half


def _expand_tanh(x: Any) -> Any:
    e = E.expm1(-2 * E.abs(x))
    return E.copysign(-e / (2 + e), x)


sinh: ScalarOp = ScalarOp(
    "sinh", 1, floating, "sinh", (lambda g, x, y: g * E.conj(E.cosh(x)),), "The hyperbolic sine.",
    complex_rule=complex_functions.sinh, accuracy=Accuracy(0.9, 0.8, within=(-710, 710)),
    expand=_expand_sinh,
)  # fmt: skip
cosh: ScalarOp = ScalarOp(
    "cosh", 1, floating, "cosh", (lambda g, x, y: g * E.conj(E.sinh(x)),), "The hyperbolic cosine.",
    complex_rule=complex_functions.cosh, accuracy=Accuracy(0.95, 0.85, within=(-710, 710)),
    expand=_expand_cosh,
)  # fmt: skip
tanh: ScalarOp = ScalarOp(
    "tanh", 1, floating, "tanh", (lambda g, x, y: g * E.conj(1 - y * y),),
    "The hyperbolic tangent.",
    complex_rule=complex_functions.tanh, accuracy=Accuracy(0.95, 0.9, within=(-20, 20)),
    expand=_expand_tanh,
)  # fmt: skip


def _expand_asinh(x: Any) -> Any:
    a = E.abs(x)
    near = E.log1p(a + a * a / (1 + E.sqrt(a * a + 1)))
    return E.copysign(E.where(a < 1e8, near, E.log(a) + math.log(2)), x)


def _acosh_slope(x: Any) -> Any:
    """PyTorch's: real numbers below -1 have one too."""
    if x.dtype.is_complex:
        return E.conj(E.rsqrt(x - 1) * E.rsqrt(x + 1))
    return E.rsqrt(x * x - 1)


def _expand_acosh(x: Any) -> Any:
    t = x - 1
    return E.where(x < 1e8, E.log1p(t + E.sqrt(2 * t + t * t)), E.log(x) + math.log(2))


def _expand_atanh(x: Any) -> Any:
    a = E.abs(x)
    return E.copysign(0.5 * E.log1p(2 * a / (1 - a)), x)


asinh: ScalarOp = ScalarOp(
    "asinh", 1, floating, "arcsinh", (lambda g, x, y: g * E.conj(E.rsqrt(x * x + 1)),),
    "The inverse hyperbolic sine.",
    complex_rule=complex_functions.asinh, accuracy=Accuracy(0.85, 0.7), expand=_expand_asinh,
)  # fmt: skip
acosh: ScalarOp = ScalarOp(
    "acosh", 1, floating, "arccosh", (lambda g, x, y: g * _acosh_slope(x),),
    "The inverse hyperbolic cosine: nan below 1.",
    complex_rule=complex_functions.acosh, domain=(1, math.inf), accuracy=Accuracy(1.0, 0.85),
    expand=_expand_acosh,
)  # fmt: skip
atanh: ScalarOp = ScalarOp(
    "atanh", 1, floating, "arctanh", (lambda g, x, y: g / E.conj(1 - x * x),),
    "The inverse hyperbolic tangent: nan outside of -1..1.",
    complex_rule=complex_functions.atanh, domain=(-1, 1), accuracy=Accuracy(0.8, 0.7),
    expand=_expand_atanh,
)  # fmt: skip
