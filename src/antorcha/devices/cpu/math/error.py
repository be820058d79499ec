"""erf, erfc and erfinv."""

# Native functions take their types from their arguments: mypy sees them untyped.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-any-generics, no-warn-return-any
from __future__ import annotations

from antorcha.devices.cpu.math.base import (
    DOUBLE,
    INF,
    NAN,
    SINGLE,
    any_lane,
    exact_product,
    greater,
    ints,
    kind,
    lesser,
    pick,
    polynomial,
    quick_sum,
    shaped,
)
from antorcha.devices.cpu.math.coefficients import (
    ERF_32,
    ERF_64,
    ERF_TAIL_32,
    ERFCX_64,
    ERFINV_END_64,
    ERFINV_FAR_64,
    ERFINV_NEAR_64,
    EXP_32,
    EXP_64,
)
from antorcha.devices.cpu.math.exponential import LOG2_E, RANGE_32, RANGE_64
from antorcha.devices.cpu.math.logarithm import log_of_pair
from antorcha.lang.native import bitcast, copysign, f64, fma, inline, select, sqrt, static


@inline
def decay(a, a_low):
    """exp(-(a + a_low)) for a >= 0."""
    f = pick(a, SINGLE, DOUBLE)
    c = pick(a, RANGE_32, RANGE_64)
    offset = static(f.magic + (f.bias + f.scale))
    t = fma(greater(c.low, -a), LOG2_E, offset)
    n = t - offset
    r = fma(n, -c.ln2_low, fma(n, -c.ln2, greater(c.low, -a))) - a_low
    power = bitcast(kind(a), bitcast(ints(a), t) << f.fraction)
    y = fma(fma(polynomial(r, pick(a, EXP_32, EXP_64)), r, 1.0), r, 1.0)
    return y * power * f.down


@inline
def scaled_erfc(a):
    """float64 exp(a*a) erfc(a) for 0 <= a <= 28 (M. Shepherd, J. Laframboise)."""
    t = (a - 4.0) / (a + 4.0)
    y = polynomial(t, ERFCX_64)
    under = fma(a, 2.0, 1.0)
    q = y / under
    return q


@inline
def erf(x):
    """The error function. Largest error: float32 ULP ulp over all numbers, float64 ULP.

    An odd polynomial near 0, 1 - erfc(x) further out.
    """
    a = abs(x)
    square = x * x
    near = fma(polynomial(square, pick(x, ERF_32, ERF_64)), x, x)
    if pick(x, True, False):
        b = lesser(kind(x)(4.0), a)
        power, power_low = quick_sum(b, polynomial(b, ERF_TAIL_32))
        far = 1.0 - decay(power, power_low)
        return select(a < 0.9375, near, copysign(far, x))
    b = lesser(kind(x)(6.0), a)
    far = 1.0 - decay(b * b, 0.0) * scaled_erfc(b)
    return select(a < 1.0, near, copysign(far, x))


@inline
def erfc_wide(x):
    """erfc of float64."""
    a = lesser(kind(x)(28.0), abs(x))
    square, square_low = exact_product(a, a)
    far = decay(square, square_low) * scaled_erfc(a)
    far = select(x < 0.0, 2.0 - far, far)
    z = x * x
    near = 1.0 - fma(polynomial(z, ERF_64), x, x)
    return select(abs(x) < 0.5, near, far)


@inline
def erfc(x):
    """1 - erf(x). Largest error: float32 ULP ulp over all numbers, float64 ULP."""
    if pick(x, True, False):
        return kind(x)(erfc_wide(shaped(x, f64)(x)))
    return erfc_wide(x)


@inline
def erfinv_wide(x):
    """erfinv of float64: x times a polynomial of w = -log(1 - x*x) or its root (after M. Giles)."""
    square, square_low = exact_product(x, x)
    under = 1.0 - square
    under_low = ((1.0 - under) - square) - square_low
    # Beside 1 the factors are better.
    a = abs(x)
    one, gap = 1.0 + a, 1.0 - a
    product, product_low = exact_product(one, gap)
    one_low = a - (one - 1.0)
    w = -log_of_pair(product, product_low + gap * one_low, 0.0)
    w = select(a < 0.5, -log_of_pair(under, under_low, 0.0), w)
    y = polynomial(w - 3.125, ERFINV_NEAR_64)
    far = w > 6.25
    if any_lane(far):
        root = sqrt(w)
        middle = polynomial(root - 3.0, ERFINV_FAR_64)
        end = polynomial(root - 5.0, ERFINV_END_64)
        y = select(far, select(w > 16.0, end, middle), y)
    y = y * x
    y = select(a == 1.0, copysign(kind(x)(INF), x), y)
    return select(a > 1.0, NAN, y)


@inline
def erfinv(x):
    """The inverse of erf. Largest error: float32 ULP ulp over all numbers, float64 ULP."""
    if pick(x, True, False):
        return kind(x)(erfinv_wide(shaped(x, f64)(x)))
    return erfinv_wide(x)
