"""Complex arithmetic in real arithmetic, so that a device need not know complex numbers.

After `split_complex` the only nodes of complex dtype are inputs and scalars below `real` and `imag`
(a device loads the two parts) and a `complex` at the root (it stores them); all else is real. The
formulas, the records' `complex_rule`, are the textbook's, arranged against needless overflow; at
infinities and branch cuts they give what the real functions in them give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.errors import MissingFeature
from antorcha.lang import expr as E
from antorcha.lang.expr.graph import LEAVES, OPS, Expr, const, node, walk, with_args
from antorcha.lang.expr.op import as_expr, cast_node
from antorcha.lang.expr.pairs import Pair
from antorcha.lang.expr.simplify import simplify_all


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
    rule = OPS[expr.op].complex_rule
    if rule is None:
        raise MissingFeature(f"'{expr.op}' of complex numbers cannot be written in real ones")
    result = rule(*[_parts(a) if a.dtype.kind == "c" else a for a in expr.args])
    return _join(result, expr) if isinstance(result, tuple) else as_expr(result, expr.dtype)


def _parts(x: Expr) -> Pair:
    if x.op == "complex":
        return x.args[0], x.args[1]
    return E.real(x), E.imag(x)


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
