"""Conversion, the four operations, remainders, magnitude and sign, the lesser and the greater."""

from __future__ import annotations

from typing import Any, overload

from antorcha.core.dtypes import dtype
from antorcha.core.lazy import np
from antorcha.lang import expr as E
from antorcha.lang.expr import pairs
from antorcha.lang.expr.graph import METHODS, Expr, as_number, const
from antorcha.lang.expr.op import (
    EXACT,
    FLAT,
    FLAT2,
    ScalarOp,
    anything,
    arithmetic,
    cast_node,
    dispatch,
    floating,
    itself,
    magnitude,
    ordered,
    real,
    shifted,
)
from antorcha.lang.expr.pairs import Pair

__all__ = [
    "abs_", "add", "cast", "detach", "div", "floor_divide", "fma", "fmax", "fmin", "fmod", "gcd",
    "maximum", "minimum", "mul", "neg", "remainder", "sgn", "sign", "sub", "trunc_divide",
]  # fmt: skip


def _same(x: Any) -> Any:
    return x


# Conversion

_cast: ScalarOp = ScalarOp(
    "cast", 1, anything, _same, (lambda g, x, y: g,), "x converted to a dtype."
)


@overload
def cast(x: Expr, to: dtype) -> Expr: ...
@overload
def cast(x: Any, to: dtype) -> Any: ...
def cast(x: Any, to: dtype) -> Any:
    """x converted to `to`: floats truncate to integers, complex numbers lose the imaginary part."""
    if isinstance(x, Expr):
        return cast_node(x, to)
    number = as_number(x)
    if number is None:
        return dispatch("cast", (x, to))
    number = number.real if isinstance(number, complex) and to.kind != "c" else number
    return const(number, to, exact=True).payload


METHODS["cast"] = METHODS["to"] = cast

detach: ScalarOp = ScalarOp(
    "detach", 1, anything, _same, FLAT, "x, through which no gradient flows.",
    complex_rule=lambda z: (E.detach(z[0]), E.detach(z[1])), expand=_same,
)  # fmt: skip

# The four operations

add: ScalarOp = ScalarOp(
    "add", 2, anything, "add", (lambda g, a, b, y: g, lambda g, a, b, y: g), "a + b; or for bool.",
    complex_rule=pairs.add,
)  # fmt: skip
sub: ScalarOp = ScalarOp(
    "sub", 2, arithmetic, "subtract", (lambda g, a, b, y: g, lambda g, a, b, y: -g), "a - b.",
    complex_rule=pairs.sub,
)  # fmt: skip
mul: ScalarOp = ScalarOp(
    "mul", 2, anything, "multiply",
    (lambda g, a, b, y: g * E.conj(b), lambda g, a, b, y: g * E.conj(a)),
    "a * b; and for bool.", complex_rule=pairs.mul,
)  # fmt: skip
div: ScalarOp = ScalarOp(
    "div", 2, floating, "true_divide",
    (lambda g, a, b, y: g / E.conj(b), lambda g, a, b, y: -g * E.conj((a / b) / b)),
    "a / b; integers divide in the default dtype.", complex_rule=pairs.div,
)  # fmt: skip


def _fma(a: Any, b: Any, c: Any) -> Any:
    """In float64 for float32, so rounded nearly once; twice for the others."""
    if a.dtype == np.float32:
        return (a.astype(np.float64) * b + c).astype(np.float32)
    return a * b + c


fma: ScalarOp = ScalarOp(
    "fma", 3, arithmetic, _fma,
    (
        lambda g, a, b, c, y: g * E.conj(b),
        lambda g, a, b, c, y: g * E.conj(a),
        lambda g, a, b, c, y: g,
    ),
    "a * b + c, rounded once where the device can.",
    complex_rule=lambda a, b, c: pairs.add(pairs.mul(a, b), c), expand=lambda a, b, c: a * b + c,
)  # fmt: skip
neg: ScalarOp = ScalarOp(
    "neg", 1, arithmetic, "negative", (lambda g, x, y: -g,), "-x.",
    complex_rule=pairs.neg, expand=lambda x: (-0.0 if x.dtype.kind == "f" else 0) - x,
)  # fmt: skip

# Quotients of whole numbers and their remainders


def _is_float(x: Any) -> bool:
    return x.dtype.kind not in "biu"


def _floordiv(a: Any, b: Any) -> Any:
    """As Python's float `//`."""
    if not _is_float(a):
        return np.floor_divide(a, b)
    r = np.fmod(a, b)
    q = (a - r) / b
    q = np.where((r != 0) & ((b < 0) != (r < 0)), q - 1, q)
    floor = np.floor(q)
    floor = np.where(q - floor > 0.5, floor + 1, floor)
    return np.where(b == 0, a / b, np.where(q != 0, floor, np.copysign(0, a / b)))


def _fmod_against(a: Any, b: Any) -> tuple[Any, Any]:
    """fmod, and whether it lies on the other side of 0 than b: a / b is below its truncation."""
    r = E.fmod(a, b)
    return r, (r != 0) & ((b < 0) ^ (r < 0))


def _expand_floordiv(a: Any, b: Any) -> Any:
    r, off = _fmod_against(a, b)
    if a.dtype.kind != "f":
        q = E.trunc_divide(a, b)
        return E.where(off, q - 1, q)
    q = (a - r) / b
    q = E.where(off, q - 1, q)
    low = E.floor(q)
    low = E.where(q - low > 0.5, low + 1, low)
    return E.where(b == 0, a / b, E.where(q != 0, low, E.copysign(0.0, a / b)))


floor_divide: ScalarOp = ScalarOp(
    "floordiv", 2, ordered, _floordiv, FLAT2, "a / b rounded down; consistent with remainder.",
    public="floor_divide", accuracy=EXACT, expand=_expand_floordiv,
)  # fmt: skip


def _truncdiv(a: Any, b: Any) -> Any:
    if _is_float(a):
        return np.trunc(a / b)
    q = np.floor_divide(a, b)
    return np.where((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)), q + 1, q).astype(a.dtype)


trunc_divide: ScalarOp = ScalarOp(
    "truncdiv", 2, ordered, _truncdiv, FLAT2,
    "a / b rounded toward zero (div with rounding_mode='trunc').", public="trunc_divide",
    expand=lambda a, b: E.trunc(a / b) if a.dtype.kind == "f" else None,
)  # fmt: skip


def _mod(a: Any, b: Any) -> Any:
    if not _is_float(a):
        return np.remainder(a, b)
    r = np.fmod(a, b)  # a zero keeps the dividend's sign, as in PyTorch
    return np.where((r != 0) & ((b < 0) != (r < 0)), r + b, r)


def _expand_mod(a: Any, b: Any) -> Any:
    r, off = _fmod_against(a, b)
    return E.where(off, r + b, r)


remainder: ScalarOp = ScalarOp(
    "mod", 2, ordered, _mod, (lambda g, a, b, y: g, lambda g, a, b, y: -g * E.floor_divide(a, b)),
    "The remainder of a / b with b's sign.",
    public="remainder", accuracy=EXACT, expand=_expand_mod,
)  # fmt: skip
fmod: ScalarOp = ScalarOp(
    "fmod", 2, ordered, "fmod",
    (lambda g, a, b, y: g, lambda g, a, b, y: -g * E.trunc_divide(a, b)),
    "The remainder of a / b with a's sign, exact.", accuracy=EXACT,
    expand=lambda a, b: a - E.trunc_divide(a, b) * b if a.dtype.kind != "f" else None,
)  # fmt: skip

gcd: ScalarOp = ScalarOp(
    "gcd", 2, shifted, "gcd", FLAT2, "The greatest common divisor of integers; of zeros 0."
)

# Magnitude and sign


def _sign(x: Any) -> Any:
    return (x > 0).astype(np.int8) - (x < 0).astype(np.int8)


def _sgn(x: Any) -> Any:
    if x.dtype.kind != "c":
        return _sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / size)


def _complex_sgn(z: Pair) -> Pair:
    size = E.hypot(*z)
    return E.where(size == 0, 0, z[0] / size), E.where(size == 0, 0, z[1] / size)


abs_: ScalarOp = ScalarOp(
    "abs", 1, magnitude, "absolute", (lambda g, x, y: g * E.sgn(x),),
    "The absolute value; of a complex number its magnitude.",
    complex_rule=lambda z: E.hypot(*z), expand=lambda x: E.where(x <= 0, 0 - x, x),
    shortcut=itself("bu"),
)  # fmt: skip
sign: ScalarOp = ScalarOp(
    "sign", 1, real, _sign, FLAT, "-1, 0 or 1 with the sign of a number; 0 for nan.",
    expand=lambda x: E.cast(x > 0, x.dtype) - E.cast(x < 0, x.dtype), shortcut=itself("b"),
)  # fmt: skip
sgn: ScalarOp = ScalarOp(
    "sgn", 1, anything, _sgn,
    (lambda g, x, y: (g - y * E.cast(E.real(g * E.conj(y)), g.dtype)) / E.abs(x),),
    "``sign``; for a complex number the unit with its direction, 0 for 0.",
    complex_rule=_complex_sgn, shortcut=lambda x: E.sign(x) if x.dtype.kind != "c" else None,
)  # fmt: skip

# The lesser and the greater


def _tie(g: Any, a: Any, b: Any, loses: Any) -> Any:
    return E.where(a == b, g / 2, E.where(loses, 0, g))


minimum: ScalarOp = ScalarOp(
    "minimum", 2, real, "minimum",
    (lambda g, a, b, y: _tie(g, a, b, a > b), lambda g, a, b, y: _tie(g, a, b, a < b)),
    "The lesser; NaN if either is.", expand=lambda a, b: E.where((a < b) | E.isnan(a), a, b),
)  # fmt: skip
maximum: ScalarOp = ScalarOp(
    "maximum", 2, real, "maximum",
    (lambda g, a, b, y: _tie(g, a, b, a < b), lambda g, a, b, y: _tie(g, a, b, a > b)),
    "The greater; NaN if either is.", expand=lambda a, b: E.where((a > b) | E.isnan(a), a, b),
)  # fmt: skip
fmin: ScalarOp = ScalarOp(
    "fmin", 2, real, "fmin",
    (
        lambda g, a, b, y: E.where((a <= b) | E.isnan(b), g, 0),
        lambda g, a, b, y: E.where((a <= b) | E.isnan(b), 0, g),
    ),
    "The lesser; the other one if one is NaN.",
    expand=lambda a, b: E.where((a <= b) | E.isnan(b), a, b),
)  # fmt: skip
fmax: ScalarOp = ScalarOp(
    "fmax", 2, real, "fmax",
    (
        lambda g, a, b, y: E.where((a >= b) | E.isnan(b), g, 0),
        lambda g, a, b, y: E.where((a >= b) | E.isnan(b), 0, g),
    ),
    "The greater; the other one if one is NaN.",
    expand=lambda a, b: E.where((a >= b) | E.isnan(b), a, b),
)  # fmt: skip
