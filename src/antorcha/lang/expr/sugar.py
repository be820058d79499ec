"""Short forms that are no ops of their own: on tensors the sibling op runs, else the formula."""

from __future__ import annotations

from typing import Any

from antorcha.lang.expr.graph import METHODS, Expr, as_number
from antorcha.lang.expr.op import dispatch
from antorcha.lang.expr.primitives.logic import where


def relu(x: Any) -> Any:
    """x where positive, else 0; NaN stays."""
    return where(x <= 0, 0, x) if _is_scalar(x) else dispatch("relu", (x,))


def square(x: Any) -> Any:
    """x * x."""
    return x * x if _is_scalar(x) else dispatch("square", (x,))


def clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    """x limited to low..high; NaN stays. Gradient 1 within the limits, both included."""
    if not _is_scalar(x):
        return dispatch("clamp", (x, low, high))
    y = x
    if low is not None:
        y = where(y < low, low, y)
    return y if high is None else where(y > high, high, y)


def _is_scalar(x: Any) -> bool:
    return isinstance(x, Expr) or as_number(x) is not None


METHODS.update(relu=relu, square=square, clamp=clamp)
