"""Complex arithmetic in real arithmetic, so that a device need not know complex numbers.

After `split_complex` the only nodes of complex dtype are inputs and scalars below `real` and `imag`
(a device loads the two parts) and a `complex` at the root (it stores them); all else is real. The
formulas are the textbook's, arranged against needless overflow; at infinities and branch cuts they
give what the real functions in them give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from antorcha import dtypes
from antorcha.errors import MissingFeature
from antorcha.lang.expr import functions as f
from antorcha.lang.expr.graph import LEAVES, Expr, const, node, walk, with_args
from antorcha.lang.expr.op import as_expr, cast_node
from antorcha.lang.expr.simplify import simplify_all

Pair = tuple[Any, Any]  # the real and the imaginary part


def split_complex(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """The graphs with complex arithmetic written out in real arithmetic."""
    done: dict[Expr, Expr] = {}
    for expr in walk(*roots):
        new = with_args(expr, tuple(done[a] for a in expr.args))
        done[expr] = _split(new) if _is_complex(new) else new
    return simplify_all([done[r] for r in roots])


def _is_complex(expr: Expr) -> bool:
    if expr.op in LEAVES:
        return expr.op == "const" and expr.dtype.kind == "c"
    if expr.op in ("real", "imag", "complex"):
        return False
    return any(e.dtype.kind == "c" for e in (expr, *expr.args))


def _split(expr: Expr) -> Expr:
    part = expr.dtype.to_real()
    if expr.op == "const":
        value = complex(expr.payload)  # type: ignore[arg-type]  # a const's payload is a number
        return _join((const(value.real, part), const(value.imag, part)), expr)
    if expr.op == "cast":
        return _cast(expr)
    if expr.op in _TESTS:
        return as_expr(_TESTS[expr.op](*map(_parts, expr.args)), dtypes.bool_)
    if expr.op == "where":
        c, a, b = expr.args
        pairs = zip(_parts(a), _parts(b), strict=True)
        return _join(tuple(f.where(c, x, y) for x, y in pairs), expr)
    if expr.op in ("reduce_sum", "detach"):
        return _join(tuple(node(expr.op, (p,), part) for p in _parts(expr.args[0])), expr)
    rule = _RULES.get(expr.op)
    if rule is None:
        raise MissingFeature(f"'{expr.op}' of complex numbers cannot be written in real ones")
    result = rule(*map(_parts, expr.args))
    return _join(result, expr) if isinstance(result, tuple) else as_expr(result, expr.dtype)


def _parts(x: Expr) -> Pair:
    if x.op == "complex":
        return x.args[0], x.args[1]
    return f.real_(x), f.imag(x)


def _join(parts: Sequence[Any], like: Expr) -> Expr:
    part = like.dtype.to_real()
    return node("complex", tuple(cast_node(as_expr(p, part), part) for p in parts), like.dtype)


def _cast(expr: Expr) -> Expr:
    (x,) = expr.args
    part = expr.dtype.to_real()
    if x.dtype.kind != "c":
        return _join((cast_node(x, part), const(0, part)), expr)
    re, im = _parts(x)
    if expr.dtype.kind == "c":
        return _join((re, im), expr)
    if expr.dtype.kind == "b":
        return as_expr((re != 0) | (im != 0), expr.dtype)
    return cast_node(re, expr.dtype)


def _mul(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _div(a: Pair, b: Pair) -> Pair:
    scale = f.maximum(f.abs_(b[0]), f.abs_(b[1]))  # so that the squares do not overflow
    c, d = b[0] / scale, b[1] / scale
    size = (c * c + d * d) * scale
    return (a[0] * c + a[1] * d) / size, (a[1] * c - a[0] * d) / size


def _add(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _sub(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def _neg(a: Pair) -> Pair:
    return -a[0], -a[1]


def _scale(a: Pair, by: float) -> Pair:
    return a[0] * by, a[1] * by


def _shift(a: Pair, by: float) -> Pair:
    return a[0] + by, a[1]


def _one(a: Pair) -> Pair:
    return const(1, a[0].dtype), const(0, a[0].dtype)


def _turn(a: Pair) -> Pair:
    """1j * a."""
    return -a[1], a[0]


def _back(a: Pair) -> Pair:
    """-1j * a."""
    return a[1], -a[0]


def _exp(a: Pair) -> Pair:
    size = f.exp(a[0])
    return size * f.cos(a[1]), f.where(a[1] == 0, a[1], size * f.sin(a[1]))


def _expm1(a: Pair) -> Pair:
    half = f.sin(a[1] * 0.5)
    return f.expm1(a[0]) * f.cos(a[1]) - 2 * half * half, f.exp(a[0]) * f.sin(a[1])


def _log(a: Pair) -> Pair:
    return f.log(f.hypot(*a)), f.atan2(a[1], a[0])


def _sqrt(a: Pair) -> Pair:
    size = f.hypot(*a)
    t = f.sqrt((size + f.abs_(a[0])) * 0.5)
    other = f.where(t == 0, 0, f.abs_(a[1]) / (2 * t))
    right = a[0] >= 0
    return f.where(right, t, other), f.copysign(f.where(right, other, t), a[1])


def _pow(a: Pair, b: Pair) -> Pair:
    re, im = _exp(_mul(b, _log(a)))
    at_zero = (a[0] == 0) & (a[1] == 0)
    nothing = f.cast((b[0] == 0) & (b[1] == 0), re.dtype)
    return f.where(at_zero, nothing, re), f.where(at_zero, 0, im)


def _sinh(a: Pair) -> Pair:
    return f.sinh(a[0]) * f.cos(a[1]), f.cosh(a[0]) * f.sin(a[1])


def _cosh(a: Pair) -> Pair:
    return f.cosh(a[0]) * f.cos(a[1]), f.sinh(a[0]) * f.sin(a[1])


def _tanh(a: Pair) -> Pair:
    x, y = 2 * a[0], 2 * a[1]
    far = f.abs_(x) > 80  # where cosh(x) nears float32's limit and tanh has long been 1
    size = f.cosh(f.where(far, 0, x)) + f.cos(y)
    re = f.where(far, f.copysign(_like(1, x), x), f.sinh(f.where(far, 0, x)) / size)
    return re, f.where(far, 4 * f.sin(a[1]) * f.cos(a[1]) * f.exp(-f.abs_(x)), f.sin(y) / size)


def _like(value: float, x: Expr) -> Expr:
    return const(value, x.dtype)


def _asinh(a: Pair) -> Pair:
    # the half plane without cancellation: asinh is odd
    left = f.signbit(a[0])
    z = f.where(left, -a[0], a[0]), f.where(left, -a[1], a[1])
    re, im = _log(_add(z, _sqrt(_shift(_mul(z, z), 1))))
    return f.where(left, -re, re), f.where(left, -im, im)


def _acosh(a: Pair) -> Pair:
    return _log(_add(a, _mul(_sqrt(_shift(a, 1)), _sqrt(_shift(a, -1)))))


def _atanh(a: Pair) -> Pair:
    return _scale(_sub(_log(_shift(a, 1)), _log(_shift(_neg(a), 1))), 0.5)


def _asin(a: Pair) -> Pair:
    return _back(_asinh(_turn(a)))


def _acos(a: Pair) -> Pair:
    re, im = _asin(a)
    return math.pi / 2 - re, -im


def _sgn(a: Pair) -> Pair:
    size = f.hypot(*a)
    return f.where(size == 0, 0, a[0] / size), f.where(size == 0, 0, a[1] / size)


_TESTS: dict[str, Callable[..., Any]] = {
    "eq": lambda a, b: (a[0] == b[0]) & (a[1] == b[1]),
    "ne": lambda a, b: (a[0] != b[0]) | (a[1] != b[1]),
    "isnan": lambda a: f.isnan(a[0]) | f.isnan(a[1]),
    "isinf": lambda a: f.isinf(a[0]) | f.isinf(a[1]),
    "isfinite": lambda a: f.isfinite(a[0]) & f.isfinite(a[1]),
}
_RULES: dict[str, Callable[..., Any]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "fma": lambda a, b, c: _add(_mul(a, b), c),
    "conj": lambda a: (a[0], -a[1]),
    "abs": lambda a: f.hypot(*a),
    "angle": lambda a: f.atan2(a[1], a[0]),
    "sgn": _sgn,
    "exp": _exp,
    "exp2": lambda a: _exp(_scale(a, math.log(2))),
    "expm1": _expm1,
    "log": _log,
    "log2": lambda a: _scale(_log(a), 1 / math.log(2)),
    "log10": lambda a: _scale(_log(a), 1 / math.log(10)),
    "log1p": lambda a: _log(_shift(a, 1)),
    "sqrt": _sqrt,
    "rsqrt": lambda a: _div(_one(a), _sqrt(a)),
    "reciprocal": lambda a: _div(_one(a), a),
    "sigmoid": lambda a: _div(_one(a), _shift(_exp(_neg(a)), 1)),
    "pow": _pow,
    "sin": lambda a: _back(_sinh(_turn(a))),
    "cos": lambda a: _cosh(_turn(a)),
    "tan": lambda a: _back(_tanh(_turn(a))),
    "asin": _asin,
    "acos": _acos,
    "atan": lambda a: _back(_atanh(_turn(a))),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
}
