"""NumPy gives a graph its meaning: slow, obvious, and the oracle for every device.

Each node is computed in its own dtype; float16 and bfloat16 nodes in float32, then rounded. To
compute as devices do, with halves widened throughout, evaluate `opmath(expr)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from antorcha.core import float8
from antorcha.core.dtypes import FLOAT8
from antorcha.core.lazy import np
from antorcha.errors import ArgumentError
from antorcha.lang.expr.graph import HALVES, OPS, Expr, walk

Array = Any  # an array whose dtype is only known at run time


def evaluate(
    exprs: Expr | Sequence[Expr],
    values: Sequence[Any],
    scalars: Mapping[str, Any] | None = None,
    *,
    length: int | None = None,
) -> Any:
    """The value of a graph (a tuple of them for several) on arrays that broadcast together.

    `values[k]` stands for input k and is converted to its dtype. `length`, for row programs, is the
    size of the last axis, over which reductions run.
    """
    roots = (exprs,) if isinstance(exprs, Expr) else tuple(exprs)
    done: dict[Expr, Array] = {}
    with np.errstate(all="ignore"):
        for expr in walk(*roots):
            if expr.args:
                done[expr] = compute(expr, [done[a] for a in expr.args], length)
            else:
                done[expr] = _leaf(expr, values, scalars or {}, length)
    results = tuple(np.asarray(done[r]) for r in roots)
    return results[0] if isinstance(exprs, Expr) else results


def compute(expr: Expr, args: Sequence[Array], length: int | None = None) -> Array:
    """One node's value from its arguments' values."""
    record = OPS[expr.op]
    if expr.op not in ("cast", "nextafter"):
        args = [
            v.astype(np.float32) if a.dtype.name in HALVES else v
            for a, v in zip(expr.args, args, strict=True)
        ]
    if record.reduction:
        if length is None:
            raise ArgumentError(f"evaluate: `{expr}` needs the row's length")
        args = [np.broadcast_to(v, (*v.shape[:-1], length)) for v in args]
    head = () if expr.payload is None else (expr.payload,)
    result = record.on_arrays(*head, *args)
    return convert(np.asarray(result), expr.dtype.np)


def convert(value: Array, to: Any) -> Array:
    """`value` in another dtype: complex numbers lose their imaginary part without a warning."""
    if value.dtype.kind == "c" and to.kind not in "cb":
        value = value.real
    if to.name in FLOAT8 or value.dtype.name in FLOAT8:
        return float8.cast(value, to)
    return value.astype(to, copy=False)


def _leaf(
    expr: Expr, values: Sequence[Any], scalars: Mapping[str, Any], length: int | None
) -> Array:
    if expr.op == "const":
        return np.asarray(expr.payload).astype(expr.dtype.np)
    if expr.op == "input":
        position = expr.payload
        if not isinstance(position, int) or position >= len(values):
            raise ArgumentError(f"evaluate: no value for `{expr}`; {len(values)} were given")
        return convert(np.asarray(values[position]), expr.dtype.np)
    if expr.op == "scalar":
        if expr.payload not in scalars:
            raise ArgumentError(f"evaluate: no value for the scalar `{expr}`")
        return convert(np.asarray(scalars[str(expr.payload)]), expr.dtype.np)
    if length is None:
        raise ArgumentError(f"evaluate: `{expr}` needs the row's length")
    if expr.op == "position":
        return np.arange(length, dtype=expr.dtype.np)
    return np.asarray(length, dtype=expr.dtype.np)
