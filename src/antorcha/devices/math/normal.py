"""The standard normal distribution: ndtr, the share below a number, and its inverse ndtri."""

from __future__ import annotations

from antorcha.devices.math.base import (
    DOUBLE,
    INF,
    NAN,
    any_lane,
    exact_product,
    greater,
    kind,
    lesser,
    polynomial,
    shaped,
)
from antorcha.devices.math.coefficients import ERFCX_64
from antorcha.devices.math.error import decay_pair, erfinv, scaled_erfc
from antorcha.devices.math.logarithm import log
from antorcha.devices.math.special_coefficients import (
    NDTRI_END_64,
    NDTRI_FAR_64,
    NDTRI_NEAR_64,
)
from antorcha.lang.native import f64, fma, inline, select, sqrt

ROOT_TWO, ROOT_HALF = 1.4142135623730951, 0.7071067811865476


@inline
def ndtr(x):
    """The share of a normal distribution below x. Largest error: float32 0.501 ulp, float64 4.

    The smaller tail is exp(-x*x / 2) erfcx(|x| / sqrt(2)) / 2, with the square as a pair.
    """
    w = shaped(x, f64)(x)
    a = lesser(39.0, abs(w))
    square, square_low = exact_product(a, a)
    high, low, scale = decay_pair(square * 0.5, square_low * 0.5)
    q = scaled_erfc(a * ROOT_HALF, ERFCX_64) * 0.5
    tail = fma(high, q, low * q) * scale * DOUBLE.down
    return kind(x)(select(w > 0.0, 1.0 - tail, tail))


@inline
def ndtri(x):
    """The number below which lies the share x. Largest error: float32 0.501 ulp, float64 4.

    Between 1/4 and 3/4 by erfinv; outside, of the nearer end's distance q, a polynomial of
    w = sqrt(-2 log(q)).
    """
    p = shaped(x, f64)(x)
    upper = p > 0.5
    q = select(upper, 1.0 - p, p)
    near = erfinv(fma(p, 2.0, -1.0)) * ROOT_TWO
    w = sqrt(greater(2.0, log(lesser(0.25, q)) * -2.0))
    y = polynomial((w - 2.5) * (1 / 0.875), NDTRI_NEAR_64)
    far = w > 3.375
    if any_lane(far):
        middle = polynomial((w - 6.0) * (1 / 2.625), NDTRI_FAR_64)
        end = polynomial((w - 23.625) * (1 / 15.0), NDTRI_END_64)
        y = select(far, select(w > 8.625, end, middle), y)
    y = select(q < 0.25, select(upper, y, -y), near)
    y = select(q == 0.0, select(upper, INF, -INF), y)
    return kind(x)(select(q < 0.0, NAN, y))
