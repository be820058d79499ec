"""The error function, the normal distribution, and the gamma function with those near it, of real
numbers.

They have no expansion: a device brings its own, or the op runs on NumPy.
"""

from __future__ import annotations

import math
from typing import Any

from antorcha.core import dtypes
from antorcha.core.lazy import lazy, np
from antorcha.errors import ArgumentError
from antorcha.lang import expr as E
from antorcha.lang.expr.graph import METHODS, Expr, as_number, const, node
from antorcha.lang.expr.op import Accuracy, ScalarOp, cast_node, dispatch, real_floating

__all__ = [
    "digamma", "erf", "erfc", "erfcx", "erfinv", "gamma_density", "gammainc", "gammaincc", "lgamma",
    "ndtr", "ndtri", "polygamma", "polygamma_by_order", "zeta",
]  # fmt: skip

special = lazy("scipy.special")

erf: ScalarOp = ScalarOp(
    "erf", 1, real_floating, lambda x: special.erf(x),
    (lambda g, x, y: g * (2 / math.sqrt(math.pi)) * E.exp(-(x * x)),),
    "The error function.", accuracy=Accuracy(0.95, 0.95, within=(-6, 6)),
)  # fmt: skip
erfc: ScalarOp = ScalarOp(
    "erfc", 1, real_floating, lambda x: special.erfc(x),
    (lambda g, x, y: g * (-2 / math.sqrt(math.pi)) * E.exp(-(x * x)),),
    "``1 - erf(input)``, accurate where erf is near 1.",
    accuracy=Accuracy(0.51, 0.8, within=(-6, 26.5)),
)  # fmt: skip
erfinv: ScalarOp = ScalarOp(
    "erfinv", 1, real_floating,
    lambda x: np.copysign(special.erfinv(x), x),  # SciPy loses the sign of -0.0
    (lambda g, x, y: g * (math.sqrt(math.pi) / 2) * E.exp(y * y),),
    "The inverse of ``erf``: nan outside of -1..1.",
    domain=(-1, 1), accuracy=Accuracy(0.51, 0.8),
)  # fmt: skip
erfcx: ScalarOp = ScalarOp(
    "erfcx", 1, real_floating, lambda x: special.erfcx(x),
    (lambda g, x, y: g * (2 * x * y - 2 / math.sqrt(math.pi)),),
    "``exp(input**2) erfc(input)``, which stays where erfc vanishes.",
    accuracy=Accuracy(0.51, 5, within=(-26, math.inf), exact="exp(x * x) * erfc(x)"),
)  # fmt: skip
ndtr: ScalarOp = ScalarOp(
    "ndtr", 1, real_floating, lambda x: special.ndtr(x),
    (lambda g, x, y: g * (1 / math.sqrt(2 * math.pi)) * E.exp(-0.5 * (x * x)),),
    "The share of the standard normal distribution below a number.",
    accuracy=Accuracy(0.51, 5, within=(-37.5, 40), exact="erfc(-x / sqrt(2)) / 2"),
)  # fmt: skip
ndtri: ScalarOp = ScalarOp(
    "ndtri", 1, real_floating, lambda x: special.ndtri(x),
    (lambda g, x, y: g * math.sqrt(2 * math.pi) * E.exp(0.5 * (y * y)),),
    "The inverse of ``ndtr``: nan outside of 0..1.", domain=(0, 1), accuracy=Accuracy(
        0.51, 4, exact="sqrt(2) * erfinv(2 * x - 1)"
    ),
)  # fmt: skip
lgamma: ScalarOp = ScalarOp(
    "lgamma", 1, real_floating, lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)),
    (lambda g, x, y: g * E.digamma(x),),
    "The logarithm of the absolute value of the gamma function: inf at 0, -1, -2, ...",
    domain=(0, math.inf),
    accuracy=Accuracy(0.51, 0.65, within=(-30, 30), exact="re(loggamma(x))"),
)  # fmt: skip
digamma: ScalarOp = ScalarOp(
    "digamma", 1, real_floating, lambda x: special.psi(x),
    (lambda g, x, y: g * E.polygamma(1, x),),
    "The derivative of ``lgamma``: nan at -1, -2, ...", domain=(0, math.inf),
    accuracy=Accuracy(0.51, 0.6, within=(-60, 60), exact="psi(0, x)"),
)  # fmt: skip


def _polygamma_by_zeta(n: int, x: Any) -> Any:
    if n == 0:
        return E.digamma(x)
    if n > 170:  # n! overflows
        return None
    return E.polygamma_by_order(float(n), x)


_polygamma: ScalarOp = ScalarOp(
    "polygamma", 1, real_floating,
    lambda n, x: special.psi(x) if n == 0 else special.polygamma(n, x),
    (lambda g, n, x, y: g * E.polygamma(n + 1, x),),
    "The n-th derivative of digamma; the payload is n.", domain=(0, math.inf),
    expand=_polygamma_by_zeta,
)  # fmt: skip


def _no_slope_in_shape(op: str) -> Any:
    def refuse(g: Any, a: Any, x: Any, y: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{op}: input' is not implemented.")

    return refuse


gammainc: ScalarOp = ScalarOp(
    "gammainc", 2, real_floating, lambda a, x: special.gammainc(a, x),
    (_no_slope_in_shape("igamma"), lambda g, a, x, y: g * E.gamma_density(a, x)),
    "The lower incomplete gamma function, scaled: the share of gamma(``input``) below ``other``.",
    domain=(0, math.inf),
    accuracy=Accuracy(0.51, 12, exact="gammainc(x, 0, y, regularized=True)"),
)  # fmt: skip
gammaincc: ScalarOp = ScalarOp(
    "gammaincc", 2, real_floating, lambda a, x: special.gammaincc(a, x),
    (_no_slope_in_shape("igammac"), lambda g, a, x, y: -g * E.gamma_density(a, x)),
    "The upper incomplete gamma function, scaled: ``1 - igamma(input, other)``.",
    domain=(0, math.inf),
    accuracy=Accuracy(0.51, 12, exact="gammainc(x, y, inf, regularized=True)"),
)  # fmt: skip


def _density_on_arrays(a: Any, x: Any) -> Any:
    power = special.xlogy(np.asarray(a, np.float64) - 1, x)
    return np.exp(power - x - special.gammaln(a)).astype(np.result_type(a, x))


gamma_density: ScalarOp = ScalarOp(
    "gamma_density", 2, real_floating, _density_on_arrays,
    (
        lambda g, a, x, y: g * y * (E.log(x) - E.digamma(a)),
        lambda g, a, x, y: g * y * ((a - 1) / x - 1),
    ),
    "The density at b of the gamma distribution of shape a: how fast ``gammainc`` grows.",
    domain=(0, math.inf),
    accuracy=Accuracy(0.51, 8, exact="exp((x - 1) * log(y) - y - loggamma(x))"),
)  # fmt: skip


def _no_slope_in_order(g: Any, n: Any, x: Any, y: Any) -> Any:
    raise NotImplementedError("polygamma has no derivative in its order.")


polygamma_by_order: ScalarOp = ScalarOp(
    "polygamma_by_order", 2, real_floating,
    lambda n, x: special.polygamma(np.round(n), x),
    (_no_slope_in_order, lambda g, n, x, y: g * E.polygamma_by_order(n + 1, x)),
    "The derivative of digamma whose order is the first operand, a whole number from 1 to 170.",
    domain=(0, math.inf),
    accuracy=Accuracy(0.51, 8, exact="psi(nint(x), y)"),
)  # fmt: skip


def _no_slope_in_exponent(g: Any, x: Any, q: Any, y: Any) -> Any:
    raise NotImplementedError("the derivative for 'zeta' is not implemented.")


zeta: ScalarOp = ScalarOp(
    "zeta", 2, real_floating, lambda x, q: special.zeta(x, q),
    (_no_slope_in_exponent, lambda g, x, q, y: g * (-x * E.zeta(x + 1, q))),
    "The Hurwitz zeta function, the sum of ``(k + other)**-input`` for k = 0, 1, 2, ...: inf where "
    "``input`` is 1, nan below.",
    domain=(1, math.inf), accuracy=Accuracy(0.51, 4, exact="zeta(x, y)"),
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
