"""Graphs that compute in float64, for devices that have none, or whose float64 is slow."""

from __future__ import annotations

from collections.abc import Sequence

from antorcha.core import dtypes
from antorcha.lang import expr as E
from antorcha.lang.expr.graph import with_args

NARROWER = {dtypes.float64: dtypes.float32, dtypes.complex128: dtypes.complex64}


def in_float32(exprs: Sequence[E.Expr]) -> tuple[E.Expr, ...]:
    """The graphs with float64 computed in float32."""
    done: dict[E.Expr, E.Expr] = {}
    for e in E.walk(*exprs):
        new = with_args(e, tuple([done[a] for a in e.args]))
        if (narrow := NARROWER.get(new.dtype)) is not None:
            if new.op == "cast" and new.args[0].dtype is narrow:
                new = new.args[0]
            else:
                new = E.node(new.op, new.args, narrow, new.payload)
        done[e] = new
    return E.simplify_all([done[e] for e in exprs])
