"""Special functions that MLX lacks, of float32 arrays: the polynomials of ``devices/math``.

Those are computed in float64 there, which Apple's GPUs lack. In float32 the errors are some
units in the last place; beside roots of lgamma and digamma they are of the size of a rounding error
of 1, and what is smaller than the least normal number is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.devices.mps.library import mx

Array = Any
known = lazy("antorcha.devices.math.coefficients")
bessel = lazy("antorcha.devices.math.special_coefficients")

HALF_LOG_TWO_PI = 0.9189385332046727
SMALLEST = 2.0**-30  # of coefficients that float32 shows, beside the largest


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """The polynomial, lowest power first, without the powers that float32 does not show."""
    most = max([abs(c) for c in coefficients]) * SMALLEST
    count = max([k + 1 for k, c in enumerate(coefficients) if abs(c) > most])
    result: Any = mx.full(x.shape, coefficients[count - 1], mx.float32)
    for c in reversed(coefficients[: count - 1]):
        result = result * x + c
    return result


# ---- the error function
def exp_square(a: Array, sign: float) -> Array:
    """exp(a*a) or exp(-a*a), from two squares of which the first is exact."""
    high = mx.floor(a * 256.0) / 256.0
    return mx.exp(sign * high * high) * mx.exp(sign * (a - high) * (a + high))


def scaled_erfc(a: Array) -> Array:
    """exp(a*a) erfc(a) for 0 <= a <= 28."""
    return polynomial((a - 4.0) / (a + 4.0), known.ERFCX_SHORT_64) / (a * 2.0 + 1.0)


def erfc(x: Array) -> Array:
    a = mx.minimum(mx.abs(x), 10.1)
    far = exp_square(a, -1.0) * scaled_erfc(a)
    far = mx.where(x < 0, 2.0 - far, far)
    return mx.where(mx.abs(x) < 0.5, 1.0 - mx.erf(x), far)


def erfcx(x: Array) -> Array:
    a = mx.abs(x)
    inverse = 1.0 / mx.maximum(a, 10.0)
    square = inverse * inverse
    far = inverse * (1.0 - square * (0.5 - square * (0.75 - 1.875 * square))) / math.sqrt(math.pi)
    y = mx.where(a > 10.0, far, scaled_erfc(mx.minimum(a, 10.0)))
    low = mx.minimum(a, 9.5)
    below = mx.where(a > 9.41, math.inf, 2.0 * exp_square(low, 1.0)) - y
    return mx.where(x < 0, below, y)


def ndtr(x: Array) -> Array:
    return 0.5 * erfc(x * -math.sqrt(0.5))


# ---- gamma
def _lgamma_of_positive(a: Array) -> Array:
    """Two polynomials below 8, steps down to 2..3, then Stirling's series."""
    tiny, low, high = a < 0.5, a < 1.5, a >= 8.0
    y, product = a, mx.ones_like(a)
    for _ in range(5):
        above = y >= 3.0
        y = mx.where(above, y - 1.0, y)
        product = mx.where(above, product * y, product)
    logarithm = mx.log(mx.where(tiny | high, a, product))
    t = mx.where(tiny, a, a - 1.0)
    t = mx.minimum(t, 0.5)
    one = t * polynomial(t, known.LGAMMA_ONE_64) + mx.where(tiny, -logarithm, 0.0)
    t = mx.clip(y - 2.0, -0.5, 1.0)
    two = t * polynomial(t, known.LGAMMA_TWO_64) + logarithm
    inverse = 1.0 / mx.maximum(a, 8.0)
    tail = polynomial(inverse * inverse, known.STIRLING_64) * inverse + (HALF_LOG_TWO_PI - 0.5)
    far = (a - 0.5) * (logarithm - 1.0) + tail
    return mx.where(low, one, mx.where(high, far, two))


def lgamma(x: Array) -> Array:
    a = mx.abs(x)
    y = _lgamma_of_positive(a)
    sine = mx.sin(math.pi * (a - mx.round(a)))
    mirrored = mx.log(math.pi / mx.abs(a * sine)) - y
    y = mx.where(x < 0, mirrored, y)
    return mx.where((a == math.inf) | (a == 0.0), math.inf, y)


def digamma(x: Array) -> Array:
    low = x < 0.0
    y = mx.where(low, 1.0 - x, x)
    total = mx.zeros_like(x)
    for _ in range(8):
        below = y < 8.0
        total = mx.where(below, total - 1.0 / y, total)
        y = mx.where(below, y + 1.0, y)
    inverse = 1.0 / y
    square = inverse * inverse
    found = total + mx.log(y) - 0.5 * inverse - square * polynomial(square, known.PSI_TAIL_64)
    turn = x - mx.round(x)
    found = mx.where(low, found - math.pi / mx.tan(math.pi * turn), found)
    found = mx.where(low & (turn == 0.0), math.nan, found)
    return mx.where(x == 0.0, -math.inf / mx.where(1.0 / x < 0, -1.0, 1.0), found)


# ---- modified Bessel functions
def _series(a: Array, order: int) -> Array:
    """I of order 0 or 1 for 0 <= a <= 8."""
    if order == 0:
        z = a * a * 0.25
        return polynomial(z * 0.0625, bessel.I0_NEAR_64) * z + 1.0
    half = a * 0.5
    z = half * half
    return polynomial(z * 0.0625, bessel.I1_NEAR_64) * z * half + half


def _scaled_far(a: Array, order: int) -> Array:
    """exp(-a) I(a) for a >= 8."""
    b = mx.maximum(a, 8.0)
    return polynomial(16.0 / b - 1.0, (bessel.I0_FAR_64, bessel.I1_FAR_64)[order]) / mx.sqrt(b)


def _bessel_i(order: int, scaled: bool) -> Callable[[Array], Array]:
    def compute(x: Array) -> Array:
        a = mx.abs(x)
        near, far = _series(mx.minimum(a, 8.0), order), _scaled_far(a, order)
        if scaled:
            y = mx.where(a > 8.0, far, mx.exp(-mx.minimum(a, 8.0)) * near)
        else:
            half = mx.exp(a * 0.5)  # (exp(a) overflows earlier than I does)
            y = mx.where(a > 8.0, half * far * half, near)
        return mx.where(x < 0, -y, y) if order else y

    return compute


def _bessel_k(order: int, scaled: bool) -> Callable[[Array], Array]:
    def compute(x: Array) -> Array:
        a = mx.minimum(x, 2.0)
        z = a * a * 0.25
        if order == 0:
            near = -mx.log(a * 0.5) * _series(a, 0) + polynomial(z, bessel.K0_NEAR_64)
        else:
            near = mx.log(a * 0.5) * _series(a, 1) + polynomial(z, bessel.K1_NEAR_64) / a
            near = mx.where((a >= 0) & (a < 1e-30), 1.0 / mx.abs(a), near)
        b = mx.maximum(x, 2.0)
        far = polynomial(4.0 / b - 1.0, (bessel.K0_FAR_64, bessel.K1_FAR_64)[order]) / mx.sqrt(b)
        far = far if scaled else far * mx.exp(-b)
        return mx.where(x > 2.0, far, near * mx.exp(a) if scaled else near)

    return compute


SPECIAL: dict[str, Callable[..., Array]] = {
    "erfc": erfc, "erfcx": erfcx, "ndtr": ndtr, "lgamma": lgamma, "digamma": digamma,
    "i0": _bessel_i(0, False), "i0e": _bessel_i(0, True), "i1": _bessel_i(1, False),
    "i1e": _bessel_i(1, True), "modified_bessel_k0": _bessel_k(0, False),
    "modified_bessel_k1": _bessel_k(1, False),
    "scaled_modified_bessel_k0": _bessel_k(0, True),
    "scaled_modified_bessel_k1": _bessel_k(1, True),
}  # fmt: skip
