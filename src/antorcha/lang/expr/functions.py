"""Every scalar op, one record each: name, type rule, NumPy meaning, derivative, expansion.

The records are the functions: `exp(x)` builds a node on an expression, computes on numbers, and
dispatches on tensors (see `op.py`). This file is the only place to edit for a new scalar op.

A derivative rule gets the cotangent, the arguments and the result, and gives the contribution to
one argument, in ops. Conventions are PyTorch's: subgradients (abs'(0) = 0, ties of maximum split in
halves), and for complex numbers the conjugate (`g * conj(dy/dx)`); `conj` of a real is itself.
An expansion gives the same value in simpler ops, to a few ulp; devices prefer their own.
"""

from __future__ import annotations

import math
from typing import Any

from antorcha import dtypes
from antorcha.dtypes import dtype
from antorcha.lang.expr.graph import METHODS, Expr, as_number, const
from antorcha.lang.expr.op import (
    Op,
    anything,
    arithmetic,
    cast_node,
    comparison,
    complex_part,
    dispatch,
    floating,
    integral,
    magnitude,
    only_floating,
    order,
    ordered,
    paired,
    phase,
    real,
    real_floating,
    shifted,
)

_FLAT = (None,)
_FLAT2 = (None, None)
_LN2, _LN10 = math.log(2), math.log(10)


def _itself(kinds: str) -> Any:
    """A shortcut: the argument itself when its dtype is of these kinds."""
    return lambda x: x if x.dtype.kind in kinds else None


def _always(value: bool, kinds: str) -> Any:
    """A shortcut: a constant when the argument's dtype is of these kinds."""
    return lambda x: const(value, dtypes.bool_) if x.dtype.kind in kinds else None


def _same(x: Any) -> Any:
    return x


# Conversion

_cast: Op = Op("cast", 1, anything, _same, (lambda g, x, y: g,), "x converted to a dtype.")


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

detach: Op = Op(
    "detach", 1, anything, _same, _FLAT, "x, through which no gradient flows.", expand=_same
)

# Arithmetic

add: Op = Op(
    "add", 2, anything, "add", (lambda g, a, b, y: g, lambda g, a, b, y: g), "a + b; or for bool."
)
sub: Op = Op(
    "sub", 2, arithmetic, "subtract", (lambda g, a, b, y: g, lambda g, a, b, y: -g), "a - b."
)
mul: Op = Op(
    "mul", 2, anything, "multiply",
    (lambda g, a, b, y: g * conj(b), lambda g, a, b, y: g * conj(a)),
    "a * b; and for bool.",
)  # fmt: skip
div: Op = Op(
    "div", 2, floating, "true_divide",
    (lambda g, a, b, y: g / conj(b), lambda g, a, b, y: -g * conj((a / b) / b)),
    "a / b; integers divide in the default dtype.",
)  # fmt: skip
fma: Op = Op(
    "fma", 3, arithmetic, "fma",
    (
        lambda g, a, b, c, y: g * conj(b),
        lambda g, a, b, c, y: g * conj(a),
        lambda g, a, b, c, y: g,
    ),
    "a * b + c, rounded once where the device can.",
    expand=lambda a, b, c: a * b + c,
)  # fmt: skip
floor_divide: Op = Op(
    "floordiv", 2, ordered, "floordiv", _FLAT2,
    "a / b rounded down; consistent with remainder.", public="floor_divide",
    expand=lambda a, b: _expand_floordiv(a, b),
)  # fmt: skip
trunc_divide: Op = Op(
    "truncdiv", 2, ordered, "truncdiv", _FLAT2,
    "a / b rounded toward zero (div with rounding_mode='trunc').", public="trunc_divide",
    expand=lambda a, b: trunc(a / b) if a.dtype.kind == "f" else None,
)  # fmt: skip
remainder: Op = Op(
    "mod", 2, ordered, "mod", (lambda g, a, b, y: g, lambda g, a, b, y: -g * floor_divide(a, b)),
    "The remainder of a / b with b's sign.", public="remainder",
    expand=lambda a, b: _corrected_fmod(a, b),
)  # fmt: skip
fmod: Op = Op(
    "fmod", 2, ordered, "fmod", (lambda g, a, b, y: g, lambda g, a, b, y: -g * trunc_divide(a, b)),
    "The remainder of a / b with a's sign, exact.",
    expand=lambda a, b: a - trunc_divide(a, b) * b if a.dtype.kind != "f" else None,
)  # fmt: skip
neg: Op = Op(
    "neg", 1, arithmetic, "negative", (lambda g, x, y: -g,), "-x.",
    expand=lambda x: (-0.0 if x.dtype.kind in "fc" else 0) - x,
)  # fmt: skip
abs_: Op = Op(
    "abs", 1, magnitude, "absolute", (lambda g, x, y: g * sgn(x),),
    "The absolute value; of a complex number its magnitude.",
    shortcut=_itself("bu"),
    expand=lambda x: hypot(x.real(), x.imag()) if x.dtype.kind == "c" else where(x <= 0, 0 - x, x),
)  # fmt: skip
sign: Op = Op(
    "sign", 1, real, "sign", _FLAT, "-1, 0 or 1; 0 for NaN.",
    shortcut=_itself("b"), expand=lambda x: cast(x > 0, x.dtype) - cast(x < 0, x.dtype),
)  # fmt: skip
sgn: Op = Op(
    "sgn", 1, anything, "sgn",
    (lambda g, x, y: (g - y * cast(real_(g * conj(y)), g.dtype)) / abs_(x),),
    "sign, and for a complex number x / abs(x), 0 for 0.",
    shortcut=lambda x: sign(x) if x.dtype.kind != "c" else None,
    expand=lambda x: where(x == 0, 0, x / cast(abs_(x), x.dtype)),
)  # fmt: skip


def _pow_base(g: Any, a: Any, b: Any, y: Any) -> Any:
    return where(b == 0, 0, g * conj(b * a ** (b - 1)))


def _pow_exponent(g: Any, a: Any, b: Any, y: Any) -> Any:
    return where((a == 0) & (real_(b) >= 0), 0, g * conj(y * log(a)))


pow_: Op = Op(
    "pow", 2, arithmetic, "power", (_pow_base, _pow_exponent),
    "a ** b; for integers, 0 where b is negative unless a is 1 or -1.", public="pow",
)  # fmt: skip


def _tie(g: Any, a: Any, b: Any, loses: Any) -> Any:
    return where(a == b, g / 2, where(loses, 0, g))


minimum: Op = Op(
    "minimum", 2, real, "minimum",
    (lambda g, a, b, y: _tie(g, a, b, a > b), lambda g, a, b, y: _tie(g, a, b, a < b)),
    "The lesser; NaN if either is.",
    expand=lambda a, b: where((a < b) | isnan(a), a, b),
)  # fmt: skip
maximum: Op = Op(
    "maximum", 2, real, "maximum",
    (lambda g, a, b, y: _tie(g, a, b, a < b), lambda g, a, b, y: _tie(g, a, b, a > b)),
    "The greater; NaN if either is.",
    expand=lambda a, b: where((a > b) | isnan(a), a, b),
)  # fmt: skip
fmin: Op = Op(
    "fmin", 2, real, "fmin",
    (
        lambda g, a, b, y: where((a <= b) | isnan(b), g, 0),
        lambda g, a, b, y: where((a <= b) | isnan(b), 0, g),
    ),
    "The lesser; the other one if one is NaN.",
    expand=lambda a, b: where((a <= b) | isnan(b), a, b),
)  # fmt: skip
fmax: Op = Op(
    "fmax", 2, real, "fmax",
    (
        lambda g, a, b, y: where((a >= b) | isnan(b), g, 0),
        lambda g, a, b, y: where((a >= b) | isnan(b), 0, g),
    ),
    "The greater; the other one if one is NaN.",
    expand=lambda a, b: where((a >= b) | isnan(b), a, b),
)  # fmt: skip

# Comparison and logic

eq: Op = Op("eq", 2, comparison, "equal", _FLAT2, "a == b.", compares=True)
ne: Op = Op("ne", 2, comparison, "not_equal", _FLAT2, "a != b.", compares=True)
lt: Op = Op("lt", 2, order, "less", _FLAT2, "a < b.", compares=True)
le: Op = Op("le", 2, order, "less_equal", _FLAT2, "a <= b.", compares=True)
gt: Op = Op("gt", 2, order, "greater", _FLAT2, "a > b.", compares=True)
ge: Op = Op("ge", 2, order, "greater_equal", _FLAT2, "a >= b.", compares=True)
bitwise_and: Op = Op(
    "and", 2, integral, "bitwise_and", _FLAT2, "Bitwise and; logical for bool.",
    public="bitwise_and",
)  # fmt: skip
bitwise_or: Op = Op(
    "or", 2, integral, "bitwise_or", _FLAT2, "Bitwise or; logical for bool.", public="bitwise_or"
)
bitwise_xor: Op = Op(
    "xor", 2, integral, "bitwise_xor", _FLAT2, "Bitwise exclusive or; logical for bool.",
    public="bitwise_xor",
)  # fmt: skip
bitwise_not: Op = Op(
    "not", 1, integral, "invert", _FLAT, "All bits turned; logical for bool.",
    public="bitwise_not", expand=lambda x: x ^ (True if x.dtype.kind == "b" else -1),
)  # fmt: skip
bitwise_left_shift: Op = Op(
    "shl", 2, shifted, "shl", _FLAT2,
    "a << b; 0 where b is negative or not below the width.", public="bitwise_left_shift",
)  # fmt: skip
bitwise_right_shift: Op = Op(
    "shr", 2, shifted, "shr", _FLAT2,
    "a >> b with the sign; b negative or too large counts as the width.",
    public="bitwise_right_shift",
)  # fmt: skip
where: Op = Op(
    "where", 3, anything, "where",
    (None, lambda g, c, a, b, y: where(c, g, 0), lambda g, c, a, b, y: where(c, 0, g)),
    "a where the condition holds, else b.", head=1,
)  # fmt: skip

# Powers, exponentials and logarithms

exp: Op = Op("exp", 1, floating, "exp", (lambda g, x, y: g * conj(y),), "e ** x.")
exp2: Op = Op(
    "exp2", 1, floating, "exp2", (lambda g, x, y: g * conj(y) * _LN2,), "2 ** x.",
    expand=lambda x: exp(x * _LN2),
)  # fmt: skip
expm1: Op = Op(
    "expm1", 1, floating, "expm1", (lambda g, x, y: g * conj(y + 1),),
    "exp(x) - 1, accurate near 0.", expand=lambda x: _expand_expm1(x),
)  # fmt: skip
log: Op = Op("log", 1, floating, "log", (lambda g, x, y: g / conj(x),), "The natural logarithm.")
log2: Op = Op(
    "log2", 1, floating, "log2", (lambda g, x, y: g / conj(x * _LN2),), "The logarithm to base 2.",
    expand=lambda x: log(x) / _LN2,
)  # fmt: skip
log10: Op = Op(
    "log10", 1, floating, "log10", (lambda g, x, y: g / conj(x * _LN10),),
    "The logarithm to base 10.", expand=lambda x: log(x) / _LN10,
)  # fmt: skip
log1p: Op = Op(
    "log1p", 1, floating, "log1p", (lambda g, x, y: g / conj(x + 1),),
    "log(1 + x), accurate near 0.", expand=lambda x: _expand_log1p(x),
)  # fmt: skip
sqrt: Op = Op("sqrt", 1, floating, "sqrt", (lambda g, x, y: g / (2 * conj(y)),), "The square root.")
rsqrt: Op = Op(
    "rsqrt", 1, floating, "rsqrt", (lambda g, x, y: -0.5 * g * conj(y * y * y),), "1 / sqrt(x).",
    expand=lambda x: 1 / sqrt(x),
)  # fmt: skip
reciprocal: Op = Op(
    "reciprocal", 1, floating, "reciprocal", (lambda g, x, y: -g * conj(y * y),), "1 / x.",
    expand=lambda x: 1 / x,
)  # fmt: skip
sigmoid: Op = Op(
    "sigmoid", 1, floating, "sigmoid", (lambda g, x, y: g * conj((1 - y) * y),),
    "1 / (1 + exp(-x)).", expand=lambda x: 1 / (1 + exp(-x)),
)  # fmt: skip
hypot: Op = Op(
    "hypot", 2, only_floating, "hypot",
    (lambda g, a, b, y: g * (a / y), lambda g, a, b, y: g * (b / y)),
    "sqrt(a*a + b*b) without overflow.", expand=lambda a, b: _expand_hypot(a, b),
)  # fmt: skip

# Trigonometric and hyperbolic

sin: Op = Op("sin", 1, floating, "sin", (lambda g, x, y: g * conj(cos(x)),), "The sine.")
cos: Op = Op("cos", 1, floating, "cos", (lambda g, x, y: -g * conj(sin(x)),), "The cosine.")
tan: Op = Op(
    "tan", 1, floating, "tan", (lambda g, x, y: g * conj(1 + y * y),), "The tangent.",
    expand=lambda x: sin(x) / cos(x),
)  # fmt: skip
asin: Op = Op(
    "asin", 1, floating, "arcsin", (lambda g, x, y: g * conj(rsqrt(1 - x * x)),),
    "The inverse of sin.", expand=lambda x: atan(x / sqrt((1 - x) * (1 + x))),
)  # fmt: skip
acos: Op = Op(
    "acos", 1, floating, "arccos", (lambda g, x, y: -g * conj(rsqrt(1 - x * x)),),
    "The inverse of cos.", expand=lambda x: 2 * atan2(sqrt(1 - x), sqrt(1 + x)),
)  # fmt: skip
atan: Op = Op(
    "atan", 1, floating, "arctan", (lambda g, x, y: g / conj(x * x + 1),), "The inverse of tan."
)


def _over_square(g: Any, a: Any, b: Any) -> Any:
    """g * a / (a*a + b*b), and 0 at the origin, where PyTorch puts it too."""
    square = a * a + b * b
    return g * where(square == 0, 0, a * reciprocal(square))


atan2: Op = Op(
    "atan2", 2, real_floating, "arctan2",
    (lambda g, a, b, y: _over_square(g, b, a), lambda g, a, b, y: -_over_square(g, a, b)),
    "The angle of the point (b, a).", expand=lambda a, b: _expand_atan2(a, b),
)  # fmt: skip
sinh: Op = Op(
    "sinh", 1, floating, "sinh", (lambda g, x, y: g * conj(cosh(x)),), "The hyperbolic sine.",
    expand=lambda x: _expand_sinh(x),
)  # fmt: skip
cosh: Op = Op(
    "cosh", 1, floating, "cosh", (lambda g, x, y: g * conj(sinh(x)),), "The hyperbolic cosine.",
    expand=lambda x: _expand_cosh(x),
)  # fmt: skip
tanh: Op = Op(
    "tanh", 1, floating, "tanh", (lambda g, x, y: g * conj(1 - y * y),), "The hyperbolic tangent.",
    expand=lambda x: _expand_tanh(x),
)  # fmt: skip
asinh: Op = Op(
    "asinh", 1, floating, "arcsinh", (lambda g, x, y: g * conj(rsqrt(x * x + 1)),),
    "The inverse of sinh.", expand=lambda x: _expand_asinh(x),
)  # fmt: skip
acosh: Op = Op(
    "acosh", 1, floating, "arccosh",
    (lambda g, x, y: g * _acosh_slope(x),),
    "The inverse of cosh.", expand=lambda x: _expand_acosh(x),
)  # fmt: skip
atanh: Op = Op(
    "atanh", 1, floating, "arctanh", (lambda g, x, y: g / conj(1 - x * x),),
    "The inverse of tanh.", expand=lambda x: _expand_atanh(x),
)  # fmt: skip

# Rounding

floor: Op = Op(
    "floor", 1, ordered, "floor", _FLAT, "The greatest integer not above x.", shortcut=_itself("ui")
)
ceil: Op = Op(
    "ceil", 1, ordered, "ceil", _FLAT, "The least integer not below x.",
    shortcut=_itself("ui"), expand=lambda x: -floor(-x),
)  # fmt: skip
trunc: Op = Op(
    "trunc", 1, ordered, "trunc", _FLAT, "x without its fraction.",
    shortcut=_itself("ui"), expand=lambda x: where(x < 0, ceil(x), floor(x)),
)  # fmt: skip
round_: Op = Op(
    "round", 1, ordered, "rint", _FLAT, "The nearest integer, ties to even.",
    shortcut=_itself("ui"), expand=lambda x: _expand_round(x),
)  # fmt: skip

# Classification and bits of floating point

isnan: Op = Op(
    "isnan", 1, comparison, "isnan", _FLAT, "Whether NaN.",
    shortcut=_always(False, "bui"), expand=lambda x: x != x,
)  # fmt: skip
isinf: Op = Op(
    "isinf", 1, comparison, "isinf", _FLAT, "Whether infinite.",
    shortcut=_always(False, "bui"), expand=lambda x: _parts(x, lambda p: abs_(p) == math.inf, "or"),
)  # fmt: skip
isfinite: Op = Op(
    "isfinite", 1, comparison, "isfinite", _FLAT, "Whether neither infinite nor NaN.",
    shortcut=_always(True, "bui"), expand=lambda x: _parts(x, lambda p: abs_(p) < math.inf, "and"),
)  # fmt: skip
signbit: Op = Op(
    "signbit", 1, order, "signbit", _FLAT, "Whether the sign is negative, -0.0 included.",
    shortcut=_always(False, "bu"),
    expand=lambda x: (x < 0) | ((x == 0) & (1 / x < 0)) if x.dtype.kind == "f" else x < 0,
)  # fmt: skip
copysign: Op = Op(
    "copysign", 2, real_floating, "copysign",
    (lambda g, a, b, y: g * where(a == 0, 0, y / a), None),
    "a with the sign of b.", expand=lambda a, b: where(signbit(a) ^ signbit(b), -a, a),
)  # fmt: skip
nextafter: Op = Op(
    "nextafter", 2, only_floating, "nextafter", None, "The next number of the dtype from a to b."
)

# Complex numbers

real_: Op = Op(
    "real", 1, magnitude, "real", (lambda g, x, y: g,), "The real part; a real number itself.",
    shortcut=_itself("buif"),
)  # fmt: skip
imag: Op = Op("imag", 1, complex_part, "imag", (lambda g, x, y: g * 1j,), "The imaginary part.")
conj: Op = Op(
    "conj", 1, anything, "conjugate", (lambda g, x, y: conj(g),),
    "The complex conjugate; a real number itself.",
    shortcut=_itself("buif"), expand=lambda x: complex_(real_(x), -imag(x)),
)  # fmt: skip
complex_: Op = Op(
    "complex", 2, paired, "make_complex",
    (lambda g, a, b, y: real_(g), lambda g, a, b, y: imag(g)),
    "a + 1j * b without arithmetic.",
)  # fmt: skip


def _angle_grad(g: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return None
    return complex_(-_over_square(g, imag(x), real_(x)), _over_square(g, real_(x), imag(x)))


angle: Op = Op(
    "angle", 1, phase, "angle", (_angle_grad,), "The argument of a complex number; 0 or pi.",
    expand=lambda x: _expand_angle(x),
)  # fmt: skip


def _acosh_slope(x: Any) -> Any:
    """PyTorch's: real numbers below -1 have one too."""
    if x.dtype.is_complex:
        return conj(rsqrt(x - 1) * rsqrt(x + 1))
    return rsqrt(x * x - 1)


# Expansions too long for a line


def _fmod_against(a: Any, b: Any) -> tuple[Any, Any]:
    """fmod, and whether it lies on the other side of 0 than b: a / b is below its truncation."""
    r = fmod(a, b)
    return r, (r != 0) & ((b < 0) ^ (r < 0))


def _corrected_fmod(a: Any, b: Any) -> Any:
    r, off = _fmod_against(a, b)
    return where(off, r + b, r)


def _expand_floordiv(a: Any, b: Any) -> Any:
    r, off = _fmod_against(a, b)
    if a.dtype.kind != "f":
        q = trunc_divide(a, b)
        return where(off, q - 1, q)
    q = (a - r) / b
    q = where(off, q - 1, q)
    low = floor(q)
    low = where(q - low > 0.5, low + 1, low)
    return where(b == 0, a / b, where(q != 0, low, copysign(0.0, a / b)))


def _expand_expm1(x: Any) -> Any:
    u = exp(x)  # W. Kahan: the rounding errors of u - 1 and log(u) cancel
    by_ratio = (u - 1) * (x / log(u))
    return where(u == 1, x, where((u - 1 == -1) | (u == math.inf), u - 1, by_ratio))


def _expand_log1p(x: Any) -> Any:
    u = 1 + x
    return where(u == 1, x, where(u == math.inf, u, log(u) * (x / (u - 1))))


def _expand_hypot(a: Any, b: Any) -> Any:
    a, b = abs_(a), abs_(b)
    high, low = maximum(a, b), minimum(a, b)
    ratio = low / high
    finite = where(high == 0, high, high * sqrt(1 + ratio * ratio))
    return where((a == math.inf) | (b == math.inf), math.inf, finite)


def _expand_atan2(a: Any, b: Any) -> Any:
    inside = abs_(b) >= abs_(a)
    flat = atan(abs_(a) / abs_(b))
    steep = math.pi / 2 - atan(abs_(b) / abs_(a))
    both = (abs_(a) == math.inf) & (abs_(b) == math.inf)
    zero = (a == 0) & (b == 0)
    t = where(both, math.pi / 4, where(zero, 0, where(inside, flat, steep)))
    return where(isnan(a) | isnan(b), a + b, copysign(where(signbit(b), math.pi - t, t), a))


def _expand_angle(x: Any) -> Any:
    if x.dtype.kind == "c":
        return atan2(imag(x), real_(x))
    return where(x < 0, math.pi, where(isnan(x), x, 0))


def _expand_sinh(x: Any) -> Any:
    a = abs_(x)
    e = expm1(a)
    half = exp(a * 0.5)  # exp(a) overflows before sinh(a) does
    return copysign(where(a < 20, (e + e / (e + 1)) * 0.5, half * 0.5 * half), x)


def _expand_cosh(x: Any) -> Any:
    half = exp(abs_(x) * 0.5)
    return half * 0.5 * half + 0.5 / half / half


def _expand_tanh(x: Any) -> Any:
    e = expm1(-2 * abs_(x))
    return copysign(-e / (2 + e), x)


def _expand_asinh(x: Any) -> Any:
    a = abs_(x)
    near = log1p(a + a * a / (1 + sqrt(a * a + 1)))
    return copysign(where(a < 1e8, near, log(a) + _LN2), x)


def _expand_acosh(x: Any) -> Any:
    t = x - 1
    return where(x < 1e8, log1p(t + sqrt(2 * t + t * t)), log(x) + _LN2)


def _expand_atanh(x: Any) -> Any:
    a = abs_(x)
    return copysign(0.5 * log1p(2 * a / (1 - a)), x)


def _expand_round(x: Any) -> Any:
    low = floor(x)
    rest = x - low
    odd = low - 2 * floor(low * 0.5) == 1
    up = (rest > 0.5) | ((rest == 0.5) & odd)
    return copysign(where(up, low + 1, low), x)


def _parts(x: Any, test: Any, joint: str) -> Any:
    if x.dtype.kind != "c":
        return test(x)
    re, im = test(real_(x)), test(imag(x))
    return re | im if joint == "or" else re & im
