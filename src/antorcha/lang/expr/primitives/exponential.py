"""Powers, roots, exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.lazy import np
from antorcha.lang import expr as E
from antorcha.lang.expr import complex_functions, pairs
from antorcha.lang.expr.op import Accuracy, ScalarOp, arithmetic, floating, only_floating

__all__ = [
    "exp", "exp2", "expm1", "hypot", "log", "log1p", "log2", "log10", "pow_", "reciprocal", "rsqrt",
    "sigmoid", "sqrt",
]  # fmt: skip

_LN2, _LN10 = math.log(2), math.log(10)
_POSITIVE = (0, math.inf)

# Powers and roots


def _power(a: Any, b: Any) -> Any:
    if a.dtype.kind not in "bi":
        return np.power(a, b)
    positive = np.power(a, np.maximum(b, 0))
    unit = np.where(b % 2 == 0, np.ones_like(a), a)
    return np.where(b >= 0, positive, np.where(abs(a) == 1, unit, 0)).astype(positive.dtype)


def _pow_base(g: Any, a: Any, b: Any, y: Any) -> Any:
    return E.where(b == 0, 0, g * E.conj(b * a ** (b - 1)))


def _pow_exponent(g: Any, a: Any, b: Any, y: Any) -> Any:
    return E.where((a == 0) & (E.real(b) >= 0), 0, g * E.conj(y * E.log(a)))


pow_: ScalarOp = ScalarOp(
    "pow", 2, arithmetic, _power, (_pow_base, _pow_exponent),
    "a ** b; for integers, 0 where b is negative unless a is 1 or -1.",
    complex_rule=complex_functions.power, domain=_POSITIVE,
    accuracy=Accuracy(0.51, 0.8, exact="x ** y"),
)  # fmt: skip
sqrt: ScalarOp = ScalarOp(
    "sqrt", 1, floating, "sqrt", (lambda g, x, y: g / (2 * E.conj(y)),),
    "The square root: nan below 0.",
    complex_rule=complex_functions.sqrt, domain=_POSITIVE, accuracy=Accuracy(0.5, 0.5),
)  # fmt: skip
rsqrt: ScalarOp = ScalarOp(
    "rsqrt", 1, floating, lambda x: 1 / np.sqrt(x),
    (lambda g, x, y: -0.5 * g * E.conj(y * y * y),),
    "One divided by the square root: inf at 0, nan below.",
    complex_rule=complex_functions.rsqrt, domain=_POSITIVE,
    accuracy=Accuracy(0.51, 0.51, exact="1 / sqrt(x)"), expand=lambda x: 1 / E.sqrt(x),
)  # fmt: skip
reciprocal: ScalarOp = ScalarOp(
    "reciprocal", 1, floating, lambda x: 1 / x, (lambda g, x, y: -g * E.conj(y * y),),
    "One divided by a number.",
    complex_rule=pairs.reciprocal, domain=_POSITIVE,
    accuracy=Accuracy(0.5, 0.5, within=(-50, 50), exact="1 / x"), expand=lambda x: 1 / x,
)  # fmt: skip


def _expand_hypot(a: Any, b: Any) -> Any:
    a, b = E.abs(a), E.abs(b)
    high, low = E.maximum(a, b), E.minimum(a, b)
    ratio = low / high
    finite = E.where(high == 0, high, high * E.sqrt(1 + ratio * ratio))
    return E.where((a == math.inf) | (b == math.inf), math.inf, finite)


hypot: ScalarOp = ScalarOp(
    "hypot", 2, only_floating, "hypot",
    (lambda g, a, b, y: g * (a / y), lambda g, a, b, y: g * (b / y)),
    "``sqrt(input**2 + other**2)`` without overflow. Floats only.",
    accuracy=Accuracy(0.8, 0.8), expand=_expand_hypot,
)  # fmt: skip

# Exponentials


def _expand_expm1(x: Any) -> Any:
    u = E.exp(x)  # W. Kahan: the rounding errors of u - 1 and log(u) cancel
    by_ratio = (u - 1) * (x / E.log(u))
    return E.where(u == 1, x, E.where((u - 1 == -1) | (u == math.inf), u - 1, by_ratio))


exp: ScalarOp = ScalarOp(
    "exp", 1, floating, "exp", (lambda g, x, y: g * E.conj(y),), "``e`` to the power of a number.",
    complex_rule=pairs.exp, accuracy=Accuracy(0.95, 0.85, within=(-745, 709)),
)  # fmt: skip
exp2: ScalarOp = ScalarOp(
    "exp2", 1, floating,
    lambda x: np.exp(x * np.log(2)) if x.dtype.kind == "c" else np.exp2(x),  # which has no complex
    (lambda g, x, y: g * E.conj(y) * _LN2,), "2 to the power of a number.",
    complex_rule=complex_functions.exp2,
    accuracy=Accuracy(0.95, 0.85, within=(-1074, 1023), exact="2 ** x"),
    expand=lambda x: E.exp(x * _LN2),
)  # fmt: skip
expm1: ScalarOp = ScalarOp(
    "expm1", 1, floating, "expm1", (lambda g, x, y: g * E.conj(y + 1),),
    "``exp(input) - 1``, accurate near 0.",
    complex_rule=complex_functions.expm1, accuracy=Accuracy(1.0, 0.9, within=(-40, 709)),
    expand=_expand_expm1,
)  # fmt: skip
sigmoid: ScalarOp = ScalarOp(
    "sigmoid", 1, floating, lambda x: 1 / (1 + np.exp(-x)),
    (lambda g, x, y: g * E.conj((1 - y) * y),), "``1 / (1 + exp(-input))``.",
    complex_rule=complex_functions.sigmoid,
    accuracy=Accuracy(0.99, 0.9, within=(-745, 40), exact="1 / (1 + exp(-x))"),
    expand=lambda x: 1 / (1 + E.exp(-x)),
)  # fmt: skip

# Logarithms


def _expand_log1p(x: Any) -> Any:
    u = 1 + x
    return E.where(u == 1, x, E.where(u == math.inf, u, E.log(u) * (x / (u - 1))))


log: ScalarOp = ScalarOp(
    "log", 1, floating, "log", (lambda g, x, y: g / E.conj(x),),
    "The natural logarithm: nan below 0, -inf at 0.",
    complex_rule=complex_functions.log, domain=_POSITIVE, accuracy=Accuracy(0.95, 0.8),
)  # fmt: skip
log2: ScalarOp = ScalarOp(
    "log2", 1, floating, "log2", (lambda g, x, y: g / E.conj(x * _LN2),),
    "The logarithm to base 2: nan below 0, -inf at 0.",
    complex_rule=complex_functions.log2, domain=_POSITIVE,
    accuracy=Accuracy(0.75, 0.6, exact="log(x, 2)"), expand=lambda x: E.log(x) / _LN2,
)  # fmt: skip
log10: ScalarOp = ScalarOp(
    "log10", 1, floating, "log10", (lambda g, x, y: g / E.conj(x * _LN10),),
    "The logarithm to base 10: nan below 0, -inf at 0.",
    complex_rule=complex_functions.log10, domain=_POSITIVE,
    accuracy=Accuracy(0.75, 0.6, exact="log(x, 10)"), expand=lambda x: E.log(x) / _LN10,
)  # fmt: skip
log1p: ScalarOp = ScalarOp(
    "log1p", 1, floating, "log1p", (lambda g, x, y: g / E.conj(x + 1),),
    "``log(1 + input)``, accurate near 0: nan below -1, -inf at -1.",
    complex_rule=complex_functions.log1p, domain=(-1, math.inf),
    accuracy=Accuracy(1.0, 0.95), expand=_expand_log1p,
)  # fmt: skip
