"""Rounding, and what depends on a float's bits: its class, sign, exponent and neighbours."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.lazy import np
from antorcha.lang import expr as E
from antorcha.lang.expr.op import (
    EXACT,
    FLAT,
    ScalarOp,
    always,
    comparison,
    itself,
    only_floating,
    order,
    ordered,
    real_floating,
)

__all__ = [
    "ceil", "copysign", "floor", "isfinite", "isinf", "isnan", "logb", "nextafter", "round_",
    "signbit", "trunc",
]  # fmt: skip

# Rounding


def _expand_round(x: Any) -> Any:
    low = E.floor(x)
    rest = x - low
    odd = low - 2 * E.floor(low * 0.5) == 1
    up = (rest > 0.5) | ((rest == 0.5) & odd)
    return E.copysign(E.where(up, low + 1, low), x)


floor: ScalarOp = ScalarOp(
    "floor", 1, ordered, "floor", FLAT,
    "The greatest integer not above a number; integers stay as they are.",
    accuracy=EXACT, shortcut=itself("ui"),
)  # fmt: skip
ceil: ScalarOp = ScalarOp(
    "ceil", 1, ordered, "ceil", FLAT,
    "The least integer not below a number; integers stay as they are.",
    accuracy=EXACT, expand=lambda x: -E.floor(-x), shortcut=itself("ui"),
)  # fmt: skip
trunc: ScalarOp = ScalarOp(
    "trunc", 1, ordered, "trunc", FLAT, "A number without its fraction; integers stay as they are.",
    accuracy=EXACT, expand=lambda x: E.where(x < 0, E.ceil(x), E.floor(x)),
    shortcut=itself("ui"),
)  # fmt: skip
round_: ScalarOp = ScalarOp(
    "round", 1, ordered, "rint", FLAT, "The nearest integer, ties to even.",
    accuracy=EXACT, expand=_expand_round, shortcut=itself("ui"),
)  # fmt: skip

# Class

isnan: ScalarOp = ScalarOp(
    "isnan", 1, comparison, "isnan", FLAT, "Whether NaN.",
    complex_rule=lambda z: E.isnan(z[0]) | E.isnan(z[1]),
    expand=lambda x: x != x, shortcut=always(False, "bui"),
)  # fmt: skip
isinf: ScalarOp = ScalarOp(
    "isinf", 1, comparison, "isinf", FLAT, "Whether infinite.",
    complex_rule=lambda z: E.isinf(z[0]) | E.isinf(z[1]),
    expand=lambda x: E.abs(x) == math.inf, shortcut=always(False, "bui"),
)  # fmt: skip
isfinite: ScalarOp = ScalarOp(
    "isfinite", 1, comparison, "isfinite", FLAT, "Whether neither infinite nor NaN.",
    complex_rule=lambda z: E.isfinite(z[0]) & E.isfinite(z[1]),
    expand=lambda x: E.abs(x) < math.inf, shortcut=always(True, "bui"),
)  # fmt: skip

# Sign


def _signbit(x: Any) -> Any:
    return x < 0 if x.dtype.kind in "bui" else np.signbit(x)


signbit: ScalarOp = ScalarOp(
    "signbit", 1, order, _signbit, FLAT, "Whether the sign is negative, -0.0 and NaN included.",
    expand=lambda x: (x < 0) | ((x == 0) & (1 / x < 0)) if x.dtype.kind == "f" else x < 0,
    shortcut=always(False, "bu"),
)  # fmt: skip
copysign: ScalarOp = ScalarOp(
    "copysign", 2, real_floating, "copysign",
    (lambda g, a, b, y: g * E.where(a == 0, 0, y / a), None),
    "a with the sign of b.", accuracy=EXACT,
    expand=lambda a, b: E.where(E.signbit(a) ^ E.signbit(b), -a, a),
)  # fmt: skip

# Exponent


def _logb(x: Any) -> Any:
    exponent = (np.frexp(x)[1] - 1).astype(x.dtype)
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), exponent, abs(x)))


logb: ScalarOp = ScalarOp(
    "logb", 1, real_floating, _logb, FLAT,
    "The whole part of log2 of the magnitude, rounded down: -inf at 0, inf at infinities.",
    domain=(0, math.inf), accuracy=EXACT,
)  # fmt: skip

# Neighbours


def _nextafter(a: Any, b: Any) -> Any:
    if a.dtype.name == "bfloat16":
        return _nextafter_bfloat16(a, b)
    return np.where(a == b, b, np.nextafter(a, b))  # NumPy's half keeps the sign of a zero


def _nextafter_bfloat16(a: Any, b: Any) -> Any:
    """By its bits."""
    a, b = np.broadcast_arrays(a, b)
    bits = a.view(np.int16).astype(np.int32)
    down = (b < a) == (bits >= 0)  # toward zero lowers the magnitude
    tiny = np.where(np.signbit(b.astype(np.float32)), -0x7FFF, 1)
    moved = np.where(a == 0, tiny, np.where(down, bits - 1, bits + 1)).astype(np.int16)
    out = moved.view(a.dtype)
    return np.where(np.isnan(a) | np.isnan(b), a + b, np.where(a == b, b, out))


nextafter: ScalarOp = ScalarOp(
    "nextafter", 2, only_floating, _nextafter, None, "The next number of the dtype from a to b.",
    accuracy=EXACT,
)  # fmt: skip
