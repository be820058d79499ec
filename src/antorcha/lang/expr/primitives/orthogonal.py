"""Orthogonal polynomials of a number, by degree, of real numbers.

They have no expansion: a device brings its own, or the op runs on NumPy. No derivative is known of
them, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.core.lazy import lazy, np
from antorcha.lang.expr.op import Accuracy, ScalarOp, real_floating

__all__ = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
    "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]  # fmt: skip

special = lazy("scipy.special")


def _polynomial(
    name: str, doc: str, numpy: Callable[[Any, Any], Any], exact: str, size: str
) -> ScalarOp:
    """The record of a polynomial, given its value on arrays of degrees and numbers, and the size
    that it has between its roots."""

    def of_degree(x: Any, n: Any) -> Any:
        whole = np.where((n >= 0) & (n < 2**63), n, -1).astype(np.int64)
        value = np.where(whole < 0, 0, numpy(np.maximum(whole, 0), x))
        return np.where(np.isnan(n), np.nan, value).astype(x.dtype)

    accuracy = Accuracy(0.51, 1, exact=exact, size=f"max(abs({exact}), {size})")
    doc = f"{doc} The degree ``n`` is rounded towards 0."
    return ScalarOp(name, 2, real_floating, of_degree, None, doc, accuracy=accuracy)


def _chebyshev(
    kind: str, which: str, numpy: Callable[[Any, Any], Any], exact: str, size: str
) -> tuple[ScalarOp, ScalarOp]:
    """The records of a Chebyshev polynomial and of the same of ``2 x - 1``."""
    doc = f"The Chebyshev polynomial of the {which} kind"
    shifted = exact.replace("x", "(2 * x - 1)")
    return (
        _polynomial(f"chebyshev_polynomial_{kind}", f"{doc}.", numpy, exact, size),
        _polynomial(f"shifted_chebyshev_polynomial_{kind}", f"{doc}, of ``2 * input - 1``.",
                    lambda n, x: numpy(n, 2 * x - 1), shifted, size),
    )  # fmt: skip


def _limited(numpy: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """NaN for the degrees that PyTorch does not compute."""
    return lambda n, x: np.where(n > (128 if x.dtype == np.float32 else 512), np.nan, numpy(n, x))


chebyshev_polynomial_t, shifted_chebyshev_polynomial_t = _chebyshev(
    "t", "first", lambda n, x: special.eval_chebyt(n, x), "chebyt(y, x)", "1"
)
chebyshev_polynomial_u, shifted_chebyshev_polynomial_u = _chebyshev(
    "u", "second", lambda n, x: special.eval_chebyu(n, x), "chebyu(y, x)", "y + 1"
)
chebyshev_polynomial_v, shifted_chebyshev_polynomial_v = _chebyshev(
    "v", "third", lambda n, x: special.eval_chebyu(n, x) - special.eval_chebyu(n - 1, x),
    "(chebyu(y, x) - chebyu(y - 1, x))", "2 * y + 1",
)  # fmt: skip
chebyshev_polynomial_w, shifted_chebyshev_polynomial_w = _chebyshev(
    "w", "fourth", lambda n, x: special.eval_chebyu(n, x) + special.eval_chebyu(n - 1, x),
    "(chebyu(y, x) + chebyu(y - 1, x))", "2 * y + 1",
)  # fmt: skip
hermite_polynomial_h: ScalarOp = _polynomial(
    "hermite_polynomial_h", "The physicists' Hermite polynomial.",
    _limited(lambda n, x: special.eval_hermite(n, x)),
    "hermite(y, x)", "exp(x * x / 2) * sqrt(2**y * factorial(y))",
)  # fmt: skip
hermite_polynomial_he: ScalarOp = _polynomial(
    "hermite_polynomial_he", "The probabilists' Hermite polynomial.",
    _limited(lambda n, x: special.eval_hermitenorm(n, x)),
    "hermite(y, x / sqrt(2)) / sqrt(2)**y", "exp(x * x / 4) * sqrt(factorial(y))",
)  # fmt: skip
laguerre_polynomial_l: ScalarOp = _polynomial(
    "laguerre_polynomial_l", "The Laguerre polynomial.",
    lambda n, x: special.eval_laguerre(n, x), "laguerre(y, 0, x)", "exp(x / 2)",
)  # fmt: skip
legendre_polynomial_p: ScalarOp = _polynomial(
    "legendre_polynomial_p", "The Legendre polynomial.",
    lambda n, x: special.eval_legendre(n, x), "legendre(y, x)", "1",
)  # fmt: skip
