"""The modified Bessel functions of order 0 and 1: I and K, and those scaled by exponentials.

I is even or odd: a series of positive terms up to 8, beyond it exp(x) / sqrt(x) times a polynomial
of 1 / x. K is a logarithm times I and a series up to 2, beyond it exp(-x) / sqrt(x) times a
polynomial of 1 / x. All are computed in float64.
"""

from __future__ import annotations

from antorcha.devices.math.base import DOUBLE, INF, kind, lesser, polynomial, shaped
from antorcha.devices.math.error import decay_pair
from antorcha.devices.math.exponential import SPARE, exp, half_exp
from antorcha.devices.math.logarithm import log
from antorcha.devices.math.special_coefficients import (
    I0_FAR_64,
    I0_NEAR_64,
    I1_FAR_64,
    I1_NEAR_64,
    K0_FAR_64,
    K0_NEAR_64,
    K1_FAR_64,
    K1_NEAR_64,
)
from antorcha.lang.native import copysign, f64, fma, inline, select, sqrt

NEAR_I, NEAR_K = 8.0, 2.0  # where the series end
LEAST = 2.0**-1000  # below it K1(x) is 1 / x
GREATEST = 714.5  # exp(GREATEST) / 2**SPARE is finite, and I is not


@inline
def series_0(a):
    """I0(a) for 0 <= a <= 8."""
    z = a * a * 0.25
    return fma(polynomial(z * 0.0625, I0_NEAR_64), z, 1.0)


@inline
def series_1(a):
    """I1(a) for 0 <= a <= 8."""
    half = a * 0.5
    z = half * half
    return fma(polynomial(z * 0.0625, I1_NEAR_64) * z, half, half)


@inline
def decayed(a, near, far):
    """exp(-a) I(a), given I where that is near."""
    b = select(a > NEAR_I, a, NEAR_I)
    y = polynomial(16.0 / b - 1.0, far) / sqrt(b)
    return select(a > NEAR_I, y, exp(-a) * near)


@inline
def grown_far(a, far):
    """I(a) for a > 8: its exponential overflows later than it does; at infinity NaN."""
    y = polynomial(16.0 / a - 1.0, far) / sqrt(a)
    high, low, power = half_exp(lesser(GREATEST, a))
    return select(a > GREATEST, INF * y, (fma(high, y, low * y) * power) * 2.0**SPARE)


@inline
def i0(x):
    """I0, which is even. Largest error: float32 0.501 ulp, float64 3."""
    a = abs(shaped(x, f64)(x))
    far = grown_far(select(a > NEAR_I, a, NEAR_I), I0_FAR_64)
    y = select(a > NEAR_I, far, series_0(lesser(NEAR_I, a)))
    return kind(x)(y)


@inline
def i0e(x):
    """exp(-abs(x)) I0(x). Largest error: float32 0.501 ulp, float64 3."""
    a = abs(shaped(x, f64)(x))
    return kind(x)(decayed(a, series_0(lesser(NEAR_I, a)), I0_FAR_64))


@inline
def i1(x):
    """I1, which is odd. Largest error: float32 0.501 ulp, float64 3."""
    a = abs(shaped(x, f64)(x))
    far = grown_far(select(a > NEAR_I, a, NEAR_I), I1_FAR_64)
    y = select(a > NEAR_I, far, series_1(lesser(NEAR_I, a)))
    return copysign(kind(x)(y), x)


@inline
def i1e(x):
    """exp(-abs(x)) I1(x). Largest error: float32 0.501 ulp, float64 3."""
    a = abs(shaped(x, f64)(x))
    return copysign(kind(x)(decayed(a, series_1(lesser(NEAR_I, a)), I1_FAR_64)), x)


@inline
def k0_near(a):
    """K0(a) for a <= 2: NaN below 0, infinite at 0."""
    z = a * a * 0.25
    return fma(-log(a * 0.5), series_0(a), polynomial(z, K0_NEAR_64))


@inline
def k1_near(a):
    """K1(a) for a <= 2: NaN below 0, infinite at 0."""
    z = a * a * 0.25
    rest = log(a * 0.5) * series_1(a)
    y = rest + polynomial(z, K1_NEAR_64) / a
    return select((a >= 0.0) & (a < LEAST), 1.0 / abs(a), y)


@inline
def k_far(a, far):
    """exp(a) K(a) for a >= 2."""
    return polynomial(4.0 / a - 1.0, far) / sqrt(a)


@inline
def k_of(x, near, far):
    """K, near and far."""
    a = shaped(x, f64)(x)
    b = select(a > NEAR_K, a, NEAR_K)
    high, low, scale = decay_pair(b, 0.0)
    y = k_far(b, far)
    y = fma(high, y, low * y) * scale * DOUBLE.down
    return kind(x)(select(a > NEAR_K, y, near(lesser(NEAR_K, a))))


@inline
def scaled_k_of(x, near, far):
    """exp(x) K(x), near and far."""
    a = shaped(x, f64)(x)
    y = k_far(select(a > NEAR_K, a, NEAR_K), far)
    b = lesser(NEAR_K, a)
    return kind(x)(select(a > NEAR_K, y, exp(b) * near(b)))


@inline
def modified_bessel_k0(x):
    """K0. Largest error: float32 0.501 ulp, float64 6."""
    return k_of(x, k0_near, K0_FAR_64)


@inline
def modified_bessel_k1(x):
    """K1. Largest error: float32 0.501 ulp, float64 6."""
    return k_of(x, k1_near, K1_FAR_64)


@inline
def scaled_modified_bessel_k0(x):
    """exp(x) K0(x). Largest error: float32 0.501 ulp, float64 6."""
    return scaled_k_of(x, k0_near, K0_FAR_64)


@inline
def scaled_modified_bessel_k1(x):
    """exp(x) K1(x). Largest error: float32 0.501 ulp, float64 6."""
    return scaled_k_of(x, k1_near, K1_FAR_64)
