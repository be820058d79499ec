"""Ops over a whole row: each takes an expression that runs over the row and gives one value.

The value is a scalar again, and broadcasts back when used beside row values: `x - x.max()`. They
are methods of expressions; only row functions (`trace_rows`) may use them.
"""

from __future__ import annotations

from typing import Any

from antorcha.core import dtypes
from antorcha.core.dtypes import dtype
from antorcha.core.lazy import np
from antorcha.errors import DtypeError
from antorcha.lang import expr as E
from antorcha.lang.expr.graph import METHODS, Expr, node
from antorcha.lang.expr.op import ScalarOp, real


def _total(name: str, t: dtype) -> tuple[dtype, dtype]:
    wide = dtypes.int64 if t.kind in "bui" else t
    return wide, wide


def _index(name: str, t: dtype) -> tuple[dtype, dtype]:
    common, _ = real(name, t)
    return common, dtypes.int64


def _truth(name: str, t: dtype) -> tuple[dtype, dtype]:
    if t.kind != "b":
        raise DtypeError(f"{name}: expected a condition (bool), got {t}")
    return t, t


def _tied(g: Any, x: Any, y: Any) -> Any:
    """PyTorch's amax: the gradient is shared by all that reach the extreme."""
    mask = E.cast(x == y, g.dtype)
    return g * mask / sum_(mask)


def _prod_grad(g: Any, x: Any, y: Any) -> Any:
    zero = x == 0
    others = prod(E.where(zero, 1, x))  # the product of all that is not zero
    zeros = sum_(zero)
    return g * E.where(zeros == 0, y / x, E.where((zeros == 1) & zero, others, 0))


def _numpy(name: str) -> Any:
    return lambda x: getattr(np, name)(x, axis=-1, keepdims=True)


sum_: ScalarOp = ScalarOp(
    "reduce_sum", 1, _total, _numpy("sum"), (lambda g, x, y: g,), "The sum; integers in int64.",
    public="sum", complex_rule=lambda z: (sum_(z[0]), sum_(z[1])), reduction=True,
)  # fmt: skip
prod: ScalarOp = ScalarOp(
    "reduce_prod", 1, _total, _numpy("prod"), (_prod_grad,), "The product; integers in int64.",
    public="prod", reduction=True,
)  # fmt: skip
amax: ScalarOp = ScalarOp(
    "reduce_max", 1, real, _numpy("max"), (_tied,), "The greatest; NaN if any is.",
    public="amax", reduction=True,
)  # fmt: skip
amin: ScalarOp = ScalarOp(
    "reduce_min", 1, real, _numpy("min"), (_tied,), "The least; NaN if any is.",
    public="amin", reduction=True,
)  # fmt: skip
argmax: ScalarOp = ScalarOp(
    "argmax", 1, _index, _numpy("argmax"), (None,), "The first position of the greatest (or NaN).",
    reduction=True,
)  # fmt: skip
argmin: ScalarOp = ScalarOp(
    "argmin", 1, _index, _numpy("argmin"), (None,), "The first position of the least (or NaN).",
    reduction=True,
)  # fmt: skip
any_: ScalarOp = ScalarOp(
    "reduce_any", 1, _truth, _numpy("any"), (None,), "Whether any holds.",
    public="any", reduction=True,
)  # fmt: skip
all_: ScalarOp = ScalarOp(
    "reduce_all", 1, _truth, _numpy("all"), (None,), "Whether all hold.",
    public="all", reduction=True,
)  # fmt: skip


def position() -> Expr:
    """The column of the element: 0 .. length - 1, int64."""
    return node("position", (), dtypes.int64)


def length(t: dtype | None = None) -> Expr:
    """How many elements the row has, in the dtype asked for (int64)."""
    return node("length", (), t or dtypes.int64)


def mean(x: Expr) -> Expr:
    """sum / length, in floating point."""
    x = x if x.dtype.kind in "fc" else E.cast(x, dtypes.get_default_dtype())
    return sum_(x) / length(x.dtype)


def var(x: Expr, correction: float = 1) -> Expr:
    """The variance, in two passes: the mean of squared distances from the mean."""
    d = x - mean(x)
    return sum_(d * d) / (length(d.dtype) - correction)


def std(x: Expr, correction: float = 1) -> Expr:
    """The square root of `var`."""
    return E.sqrt(var(x, correction))


def logsumexp(x: Expr) -> Expr:
    """log(sum(exp(x))) without overflow."""
    top = amax(x).detach()
    top = E.where(E.isinf(top), 0, top)
    return E.log(sum_(E.exp(x - top))) + top


METHODS.update(max=amax, min=amin, mean=mean, var=var, std=std, logsumexp=logsumexp)
