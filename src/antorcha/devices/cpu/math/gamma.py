"""lgamma and digamma, computed in float64 for both types."""

# Native functions take their types from their arguments: mypy sees them untyped.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-any-generics, no-warn-return-any
from __future__ import annotations

from antorcha.devices.cpu.math.base import (
    INF,
    NAN,
    any_lane,
    exact_product,
    ints,
    kind,
    pick,
    polynomial,
    shaped,
)
from antorcha.devices.cpu.math.coefficients import (
    DIGAMMA_64,
    LGAMMA_ONE_64,
    LGAMMA_TWO_64,
    PSI_TAIL_64,
    STIRLING_64,
)
from antorcha.devices.cpu.math.logarithm import log
from antorcha.devices.cpu.math.trigonometric import HALF_PI, HALF_PI_LOW, sine_of
from antorcha.lang.native import f64, fma, inline, roundeven, select, static

PI = 3.141592653589793
HALF_LOG_TWO_PI = 0.9189385332046727
PSI_ROOT, PSI_ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17


@inline
def half_turns(a):
    """pi a = j pi/2 + r + r_low."""
    twice = a + a
    n = roundeven(twice)
    rest = twice - n
    r, r_low = exact_product(rest, kind(a)(HALF_PI))
    # n modulo 4, for the conversion to an integer: n may be any float.
    n = n - 4.0 * roundeven(n * 0.25)
    return ints(a)(n), r, fma(rest, HALF_PI_LOW, r_low)


@inline
def lgamma_of(a):
    """lgamma of a positive float64: two polynomials below 8, steps down to 2..3, then Stirling."""
    tiny, low, high = a < 0.5, a < 1.5, a >= 8.0
    y, product = a, kind(a)(1.0)
    for _ in static(range(5)):
        above = y >= 3.0
        y = select(above, y - 1.0, y)
        product = select(above, product * y, product)
    logarithm = log(select(tiny | high, a, product))
    t = select(tiny, a, a - 1.0)
    one = fma(t, polynomial(t, LGAMMA_ONE_64), select(tiny, -logarithm, 0.0))
    t = y - 2.0
    two = fma(t, polynomial(t, LGAMMA_TWO_64), logarithm)
    inverse = 1.0 / a
    tail = fma(polynomial(inverse * inverse, STIRLING_64), inverse, HALF_LOG_TWO_PI - 0.5)
    far = fma(a - 0.5, logarithm - 1.0, tail)
    return select(low, one, select(high, far, two))


@inline
def lgamma_wide(x):
    """lgamma of float64; for negative x: log(pi / |x sin(pi x)|) - lgamma(-x)."""
    a = abs(x)
    y = lgamma_of(a)
    below = x < 0.0
    if any_lane(below):
        j, r, r_low = half_turns(a)
        mirrored = log(PI / abs(a * sine_of(j, r, r_low))) - y
        y = select(below, mirrored, y)
    return select(a == INF, INF, select(a == 0.0, INF, y))


@inline
def lgamma(x):
    """log(|gamma(x)|). Largest error: float32 0.501 ulp, float64 2.2 for positive x.

    For negative x the absolute error is small; near a zero there the relative error is not.
    """
    if pick(x, True, False):
        return kind(x)(lgamma_wide(shaped(x, f64)(x)))
    return lgamma_wide(x)


@inline
def digamma_of(a):
    """digamma of a positive float64."""
    small, high = a < 1.0, a >= 8.0
    y = select(small, a + 1.0, a)
    # The sum of 1 / (a - 1), 1 / (a - 2), ... as one fraction.
    top, under = select(small, kind(a)(-1.0), 0.0), select(small, a, 1.0)
    for _ in static(range(6)):
        above = y >= 2.0
        y = select(above, y - 1.0, y)
        top = select(above, fma(top, y, under), top)
        under = select(above, under * y, under)
    near = polynomial(y - 1.5, DIGAMMA_64) * ((y - PSI_ROOT) - PSI_ROOT_LOW) + top / under
    inverse = 1.0 / a
    square = inverse * inverse
    far = log(a) - fma(polynomial(square, PSI_TAIL_64), square, 0.5 * inverse)
    return select(high, far, near)


@inline
def digamma_wide(x):
    """digamma of float64; for negative x: digamma(-x) - 1/x + pi / tan(-pi x)."""
    a = abs(x)
    y = digamma_of(a)
    below = x < 0.0
    if any_lane(below):
        j, r, r_low = half_turns(a)
        sine = sine_of(j, r, r_low)
        mirrored = y + (1.0 / a + PI * sine_of(j + 1, r, r_low) / sine)
        y = select(below, select(roundeven(a) == a, NAN, mirrored), y)
    return select(x == 0.0, -1.0 / x, select(x == INF, INF, y))


@inline
def digamma(x):
    """The derivative of lgamma. Largest error: float32 0.501 ulp, float64 3.6 for positive x.

    It is -inf at 0.0, inf at -0.0 and NaN at the negative integers.
    """
    if pick(x, True, False):
        return kind(x)(digamma_wide(shaped(x, f64)(x)))
    return digamma_wide(x)
