"""Tracing: a plain Python function over scalars becomes a graph.

The function runs once with `Input` nodes for arguments; whatever it computes with operators and the
functions of `antorcha.lang.expr` is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.dtypes import dtype
from antorcha.errors import ArgumentError, GraphError
from antorcha.lang.expr.graph import OPS, Expr, Number, as_number, const, input_, scalar, walk
from antorcha.lang.expr.simplify import simplify_all


def trace(
    fn: Callable[..., Any],
    types: Sequence[dtype],
    scalars: Mapping[str, dtype | Number] | None = None,
) -> Any:
    """The graph of `fn(x0, x1, ..., **scalars)`; a tuple of graphs if `fn` returns a tuple.

    A scalar given as a number is compiled in; one given as a dtype stays a parameter of the kernel.
    """
    result = call(fn, [input_(k, t) for k, t in enumerate(types)], scalars)
    outputs = as_outputs(fn, result)
    for expr in walk(*outputs):
        record = OPS.get(expr.op)
        if expr.op in ("position", "length") or (record is not None and record.reduction):
            raise GraphError(f"{name_of(fn)}: `{expr}` needs a whole row; use trace_rows")
    outputs = simplify_all(outputs)
    return outputs if isinstance(result, tuple) else outputs[0]


def call(
    fn: Callable[..., Any],
    inputs: Sequence[Expr],
    scalars: Mapping[str, dtype | Number] | None,
) -> Any:
    """What `fn` returns for these nodes."""
    named: dict[str, Expr | Number] = {}
    for name, value in (scalars or {}).items():
        if isinstance(value, (bool, int, float, complex)):
            named[name] = value
        else:
            named[name] = scalar(name, value)
    return fn(*inputs, **named)


def as_outputs(fn: Callable[..., Any], result: Any) -> tuple[Expr, ...]:
    """What the function returned as expressions; numbers become constants."""
    outputs = []
    for value in result if isinstance(result, tuple) else (result,):
        number = None if isinstance(value, Expr) else as_number(value)
        if isinstance(value, Expr):
            outputs.append(value)
        elif number is not None:
            outputs.append(const(number, dtypes.scalar_dtype(type(number))))
        else:
            kind = type(value).__name__
            raise ArgumentError(f"{name_of(fn)}: returned {kind}; expected expressions or numbers")
    return tuple(outputs)


def name_of(fn: Callable[..., Any]) -> str:
    """The function's name for messages."""
    return getattr(fn, "__name__", repr(fn))
