"""The Bessel functions of order 0 and 1, the modified ones, and the Airy function, of real numbers.

They have no expansion: a device brings its own, or the op runs on NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.core.lazy import lazy, np
from antorcha.lang import expr as E
from antorcha.lang.expr.op import Accuracy, ScalarOp, real_floating

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "i0", "i0e", "i1", "i1e",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
]  # fmt: skip

special = lazy("scipy.special")

_POSITIVE = (0, math.inf)


def _over(y: Any, x: Any) -> Any:
    """y / x, for an odd y with the slope 1/2 at 0."""
    return E.where(x == 0, 0.5, y / E.where(x == 0, 1, x))


# Modified Bessel functions

i0: ScalarOp = ScalarOp(
    "i0", 1, real_floating, lambda x: special.i0(x), (lambda g, x, y: g * E.i1(x),),
    "The modified Bessel function of the first kind of order 0.",
    accuracy=Accuracy(0.51, 3, within=(-713, 713), exact="besseli(0, x)"),
)  # fmt: skip
i0e: ScalarOp = ScalarOp(
    "i0e", 1, real_floating, lambda x: special.i0e(x),
    (lambda g, x, y: g * (E.i1e(x) - E.sgn(x) * y),),
    "``exp(-abs(input)) i0(input)``, which does not overflow.",
    accuracy=Accuracy(0.51, 3, exact="exp(-abs(x)) * besseli(0, x)"),
)  # fmt: skip
i1: ScalarOp = ScalarOp(
    "i1", 1, real_floating, lambda x: np.copysign(special.i1(x), x),  # SciPy loses the sign of -0.0
    (lambda g, x, y: g * (E.i0(x) - _over(y, x)),),
    "The modified Bessel function of the first kind of order 1.",
    accuracy=Accuracy(0.51, 3, within=(-713, 713), exact="besseli(1, x)"),
)  # fmt: skip
i1e: ScalarOp = ScalarOp(
    "i1e", 1, real_floating, lambda x: np.copysign(special.i1e(x), x),
    (lambda g, x, y: g * (E.i0e(x) - E.sgn(x) * y - _over(y, x)),),
    "``exp(-abs(input)) i1(input)``, which does not overflow.",
    accuracy=Accuracy(0.51, 3, exact="exp(-abs(x)) * besseli(1, x)"),
)  # fmt: skip
modified_bessel_k0: ScalarOp = ScalarOp(
    "modified_bessel_k0", 1, real_floating, lambda x: special.k0(x),
    (lambda g, x, y: -g * E.modified_bessel_k1(x),),
    "The modified Bessel function of the second kind of order 0: nan below 0, inf at 0.",
    domain=_POSITIVE, accuracy=Accuracy(0.51, 8, within=(0, 700), exact="besselk(0, x)"),
)  # fmt: skip
modified_bessel_k1: ScalarOp = ScalarOp(
    "modified_bessel_k1", 1, real_floating, lambda x: special.k1(x),
    (lambda g, x, y: -g * (E.modified_bessel_k0(x) + y / x),),
    "The modified Bessel function of the second kind of order 1: nan below 0, inf at 0.",
    domain=_POSITIVE, accuracy=Accuracy(0.51, 4, within=(0, 700), exact="besselk(1, x)"),
)  # fmt: skip
scaled_modified_bessel_k0: ScalarOp = ScalarOp(
    "scaled_modified_bessel_k0", 1, real_floating, lambda x: special.k0e(x),
    (lambda g, x, y: g * (y - E.scaled_modified_bessel_k1(x)),),
    "``exp(input) modified_bessel_k0(input)``, which does not vanish.",
    domain=_POSITIVE, accuracy=Accuracy(0.51, 8, exact="exp(x) * besselk(0, x)"),
)  # fmt: skip
scaled_modified_bessel_k1: ScalarOp = ScalarOp(
    "scaled_modified_bessel_k1", 1, real_floating, lambda x: special.k1e(x),
    (lambda g, x, y: g * (y - E.scaled_modified_bessel_k0(x) - y / x),),
    "``exp(input) modified_bessel_k1(input)``, which does not vanish.",
    domain=_POSITIVE, accuracy=Accuracy(0.51, 4, exact="exp(x) * besselk(1, x)"),
)  # fmt: skip

# Bessel functions: waves


def _waves(order: int, second: bool) -> Callable[[Any], Any]:
    """SciPy's J or Y; from 25 on by Hankel's expansion, as SciPy loses the phase of large x."""
    name = f"{'y' if second else 'j'}{order}"

    def compute(x: Any) -> Any:
        a = np.maximum(np.abs(x), 25).astype(np.float64)
        term, parts = np.ones_like(a), [np.zeros_like(a), np.zeros_like(a)]
        for k in range(1, 30):
            parts[(k - 1) % 2] += term if (k - 1) % 4 < 2 else -term
            term = term * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * a)
        sine, cosine = (np.sin(a) - np.cos(a)) / np.sqrt(2), (np.sin(a) + np.cos(a)) / np.sqrt(2)
        if order:  # a quarter turn behind
            sine, cosine = -cosine, sine
        up, across = (sine, cosine) if second else (cosine, -sine)
        far = np.sqrt(2 / np.pi / a) * (parts[0] * up + parts[1] * across)
        if second:
            far = np.where(x < 0, np.nan, far)
        elif order:
            far = np.copysign(1.0, x) * far
        return np.where(np.abs(x) < 25, getattr(special, name)(x), far).astype(x.dtype)

    return compute


def _wave_size(order: int) -> str:
    return f"hypot(besselj({order}, abs(x)), bessely({order}, abs(x))) if abs(x) > 2 else "


bessel_j0: ScalarOp = ScalarOp(
    "bessel_j0", 1, real_floating, _waves(0, False), (lambda g, x, y: -g * E.bessel_j1(x),),
    "The Bessel function of the first kind of order 0.", accuracy=Accuracy(
        0.51, 4, exact="besselj(0, x)", size=_wave_size(0) + "besselj(0, x)"
    ),
)  # fmt: skip
bessel_j1: ScalarOp = ScalarOp(
    "bessel_j1", 1, real_floating, _waves(1, False),
    (lambda g, x, y: g * (E.bessel_j0(x) - _over(y, x)),),
    "The Bessel function of the first kind of order 1.", accuracy=Accuracy(
        0.51, 4, exact="besselj(1, x)", size=_wave_size(1) + "besselj(1, x)"
    ),
)  # fmt: skip
bessel_y0: ScalarOp = ScalarOp(
    "bessel_y0", 1, real_floating, _waves(0, True), (lambda g, x, y: -g * E.bessel_y1(x),),
    "The Bessel function of the second kind of order 0: nan below 0, -inf at 0.",
    domain=_POSITIVE, accuracy=Accuracy(
        0.51, 4, exact="bessely(0, x)", size="hypot(besselj(0, x), bessely(0, x))"
    ),
)  # fmt: skip
bessel_y1: ScalarOp = ScalarOp(
    "bessel_y1", 1, real_floating, _waves(1, True),
    (lambda g, x, y: g * (E.bessel_y0(x) - y / x),),
    "The Bessel function of the second kind of order 1: nan below 0, -inf at 0.",
    domain=_POSITIVE, accuracy=Accuracy(
        0.51, 4, exact="bessely(1, x)", size="hypot(besselj(1, x), bessely(1, x))"
    ),
)  # fmt: skip
airy_ai: ScalarOp = ScalarOp(
    "airy_ai", 1, real_floating,
    lambda x: np.where(x > 200, 0, special.airy(x)[0]).astype(x.dtype),  # SciPy's is nan there
    None,
    "The Airy function Ai.", accuracy=Accuracy(
        0.51, 4, within=(-100, 100), exact="airyai(x)",
        size="hypot(airyai(x), airybi(x)) if x < -1 else airyai(x)",
    ),
)  # fmt: skip
