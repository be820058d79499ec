"""The error function and the gamma function, their inverses and derivatives, of real numbers.

They have no expansion: a device brings its own, or the op runs on NumPy.
"""

from __future__ import annotations

import math
from typing import Any

from antorcha import dtypes
from antorcha.errors import ArgumentError
from antorcha.lang import expr as E
from antorcha.lang.expr.graph import METHODS, Expr, as_number, const, node
from antorcha.lang.expr.op import Accuracy, Op, cast_node, dispatch, real_floating
from antorcha.lazy import lazy, np

__all__ = ["digamma", "erf", "erfc", "erfinv", "lgamma", "polygamma"]

special = lazy("scipy.special")

erf: Op = Op(
    "erf", 1, real_floating, lambda x: special.erf(x),
    (lambda g, x, y: g * (2 / math.sqrt(math.pi)) * E.exp(-(x * x)),),
    "The error function.", accuracy=Accuracy(0.95, 0.95, within=(-6, 6)),
)  # fmt: skip
erfc: Op = Op(
    "erfc", 1, real_floating, lambda x: special.erfc(x),
    (lambda g, x, y: g * (-2 / math.sqrt(math.pi)) * E.exp(-(x * x)),),
    "``1 - erf(input)``, accurate where erf is near 1.",
    accuracy=Accuracy(0.51, 0.8, within=(-6, 26.5)),
)  # fmt: skip
erfinv: Op = Op(
    "erfinv", 1, real_floating,
    lambda x: np.copysign(special.erfinv(x), x),  # SciPy loses the sign of -0.0
    (lambda g, x, y: g * (math.sqrt(math.pi) / 2) * E.exp(y * y),),
    "The inverse of ``erf``: nan outside of -1..1.",
    domain=(-1, 1), accuracy=Accuracy(0.51, 0.8),
)  # fmt: skip
lgamma: Op = Op(
    "lgamma", 1, real_floating, lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)),
    (lambda g, x, y: g * E.digamma(x),),
    "The logarithm of the absolute value of the gamma function: inf at 0, -1, -2, ...",
    domain=(0, math.inf),
    accuracy=Accuracy(0.51, 0.65, within=(-30, 30), exact="re(loggamma(x))"),
)  # fmt: skip
digamma: Op = Op(
    "digamma", 1, real_floating, lambda x: special.psi(x),
    (lambda g, x, y: g * E.polygamma(1, x),),
    "The derivative of ``lgamma``: nan at -1, -2, ...", domain=(0, math.inf),
    accuracy=Accuracy(0.51, 0.6, within=(-60, 60), exact="psi(0, x)"),
)  # fmt: skip
_polygamma: Op = Op(
    "polygamma", 1, real_floating,
    lambda n, x: special.psi(x) if n == 0 else special.polygamma(n, x),
    (lambda g, n, x, y: g * E.polygamma(n + 1, x),),
    "The n-th derivative of digamma; the payload is n.", domain=(0, math.inf),
)  # fmt: skip


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma; n is a Python integer."""
    if not isinstance(n, int) or n < 0:
        raise ArgumentError(f"polygamma: n must be a non-negative integer, got {n!r}")
    if not isinstance(x, Expr):
        number = as_number(x)
        if number is None:
            return dispatch("polygamma", (n, x))
        wide = const(number, dtypes.float64)
        return E.evaluate(node("polygamma", (wide,), dtypes.float64, n), ()).item()
    common, result = real_floating("polygamma", x.dtype)
    return node("polygamma", (cast_node(x, common),), result, n)


del METHODS["polygamma"]  # its first argument is not the expression
