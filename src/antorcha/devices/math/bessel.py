"""The Bessel functions of order 0 and 1: J and Y; and the Airy function Ai.

Up to 4 polynomials of x*x, times what has J's first root, and with Y's logarithm. Beyond, they are
sqrt(2 / (pi x)) times the cosine and the sine of x less an odd multiple of pi/4, weighed by
polynomials of 1 / x**2: angles are reduced as those of sin and cos are, however large. All are
computed in float64.

Beside a root errors are some ulp of the size of the waves, not of the small result.
"""

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
    quick_sum,
    shaped,
)
from antorcha.devices.math.error import decay_pair
from antorcha.devices.math.logarithm import log
from antorcha.devices.math.pairs import pair_product
from antorcha.devices.math.special_coefficients import (
    AIRY_DECAY_64,
    AIRY_LEFT_64,
    AIRY_P_64,
    AIRY_Q_64,
    AIRY_RIGHT_64,
    BESSEL0_P_64,
    BESSEL0_Q_64,
    BESSEL1_P_64,
    BESSEL1_Q_64,
    J0_NEAR_64,
    J1_NEAR_64,
    Y0_NEAR_64,
    Y1_NEAR_64,
)
from antorcha.devices.math.trigonometric import HALF_PI, HALF_PI_LOW, reduced, sine_of
from antorcha.lang.native import f64, fma, inline, select, sqrt

NEAR = 4.0
J0_ROOT, J0_ROOT_LOW = 2.404825557695773, -1.176691651530894e-16
J1_ROOT, J1_ROOT_LOW = 3.8317059702075125, -1.5269184090088067e-16
TWO_OVER_PI = 0.6366197723675814
QUARTER_PI, QUARTER_PI_LOW = HALF_PI * 0.5, HALF_PI_LOW * 0.5
LEAST = 2.0**-1000  # below it Y1(x) is -2 / (pi x)
TWO_THIRDS, TWO_THIRDS_LOW = 0.6666666666666666, 3.700743415417188e-17
AIRY_WAVES = 4.5  # of s, where they begin
AIRY_MOST = 2.0**50  # of s: a pair of float64 has no more of the angle
AIRY_DECAYS = 1.5
INVERSE_ROOT_PI = 0.5641895835477563


@inline
def from_quarter(x, x_low):
    """sin(x + x_low - pi/4) and the cosine, for x >= 0."""
    j, r, r_low = reduced(x)
    r, r_low = quick_sum(r, r_low + x_low)
    below = r < 0.0
    j = select(below, j - 1, j)  # r less a quarter turn is r and a quarter turn, of a half before
    u, u_low = quick_sum(select(below, kind(r)(QUARTER_PI), -QUARTER_PI), r)
    u_low = u_low + (r_low + select(below, kind(r)(QUARTER_PI_LOW), -QUARTER_PI_LOW))
    return sine_of(j, u, u_low), sine_of(j + 1, u, u_low)


@inline
def waves(a, p, q):
    """The polynomials' P and Q, times sqrt(2 / (pi a)), and sin and cos of a - pi/4; a >= 4."""
    inverse = 1.0 / a
    t = fma(inverse * inverse, 32.0, -1.0)
    scale = sqrt(inverse * TWO_OVER_PI)
    sine, cosine = from_quarter(a, 0.0)
    return polynomial(t, p) * scale, polynomial(t, q) * (inverse * scale), sine, cosine


@inline
def j0_near(a):
    """J0(a) for 0 <= a <= 4."""
    gap = (a - J0_ROOT) - J0_ROOT_LOW
    return polynomial(fma(a, a * 0.125, -1.0), J0_NEAR_64) * gap * (a + J0_ROOT)


@inline
def j1_near(a):
    """J1(a) for 0 <= a <= 4."""
    gap = (a - J1_ROOT) - J1_ROOT_LOW
    return polynomial(fma(a, a * 0.125, -1.0), J1_NEAR_64) * gap * (a * (a + J1_ROOT))


@inline
def bessel_j0(x):
    """J0, which is even. Largest error: float32 0.501 ulp, float64 4, of the waves."""
    a = abs(shaped(x, f64)(x))
    y = j0_near(lesser(NEAR, a))
    far = a > NEAR
    if any_lane(far):
        p, q, sine, cosine = waves(select(far, a, NEAR), BESSEL0_P_64, BESSEL0_Q_64)
        y = select(far, fma(p, cosine, -q * sine), y)
    return kind(x)(y)


@inline
def bessel_j1(x):
    """J1, which is odd. Largest error: float32 0.501 ulp, float64 4, of the waves."""
    w = shaped(x, f64)(x)
    a = abs(w)
    y = j1_near(lesser(NEAR, a))
    far = a > NEAR
    if any_lane(far):
        p, q, sine, cosine = waves(select(far, a, NEAR), BESSEL1_P_64, BESSEL1_Q_64)
        y = select(far, fma(p, sine, q * cosine), y)
    return kind(x)(select(w < 0.0, -y, select(w == 0.0, w, y)))


@inline
def bessel_y0(x):
    """Y0: NaN below 0. Largest error: float32 0.501 ulp, float64 4, of the waves."""
    a = shaped(x, f64)(x)
    b = lesser(NEAR, a)
    smooth = polynomial(fma(b, b * 0.125, -1.0), Y0_NEAR_64)
    y = fma(log(b * 0.5) * TWO_OVER_PI, j0_near(b), smooth)
    far = a > NEAR
    if any_lane(far):
        p, q, sine, cosine = waves(select(far, a, NEAR), BESSEL0_P_64, BESSEL0_Q_64)
        y = select(far, fma(p, sine, q * cosine), y)
    return kind(x)(y)


@inline
def bessel_y1(x):
    """Y1: NaN below 0. Largest error: float32 0.501 ulp, float64 4, of the waves."""
    a = shaped(x, f64)(x)
    b = lesser(NEAR, a)
    smooth = polynomial(fma(b, b * 0.125, -1.0), Y1_NEAR_64) * b
    pole = fma(log(b * 0.5), j1_near(b), -1.0 / b)
    y = fma(pole, TWO_OVER_PI, smooth)
    y = select((b >= 0.0) & (b < LEAST), TWO_OVER_PI / -abs(b), y)
    far = a > NEAR
    if any_lane(far):
        p, q, sine, cosine = waves(select(far, a, NEAR), BESSEL1_P_64, BESSEL1_Q_64)
        y = select(far, fma(q, sine, -p * cosine), y)
    return kind(x)(y)


@inline
def airy_ai(x):
    """The Airy function Ai. Largest error: float32 0.501 ulp, float64 3, of the waves left of 0.

    It is NaN left of -1e10 or so.
    """
    w = shaped(x, f64)(x)
    right = polynomial((lesser(AIRY_DECAYS, w) - 0.5) * 0.8, AIRY_RIGHT_64)
    left = polynomial((w + 2.25) * (1 / 1.5), AIRY_LEFT_64)
    y = select(w < -0.75, left, right)
    # s = 2/3 |x|**(3/2)
    a = greater(AIRY_DECAYS, lesser(select(w > 0.0, kind(w)(200.0), INF), abs(w)))
    root = sqrt(a)
    s, s_low = exact_product(a, root)
    s_low = fma(a, fma(-root, root, a) / (root + root), s_low)
    s, s_low = quick_sum(*pair_product(s, s_low, kind(a)(TWO_THIRDS), TWO_THIRDS_LOW))
    scale = INVERSE_ROOT_PI / sqrt(root)
    high, low, power = decay_pair(s, s_low)
    tail = polynomial(2.4 / s - 1.0, AIRY_DECAY_64) * (scale * 0.5)
    decayed = fma(high, tail, low * tail) * power * DOUBLE.down
    y = select(w > AIRY_DECAYS, decayed, y)
    waves = (w < 0.0) & (s > AIRY_WAVES)
    if any_lane(waves):
        b, b_low = select(waves, s, AIRY_WAVES), select(waves, s_low, 0.0)
        inverse = 1.0 / b
        t = fma(inverse * inverse, 20.25, -1.0)
        sine, cosine = from_quarter(b, b_low)
        wave = fma(polynomial(t, AIRY_P_64), cosine, polynomial(t, AIRY_Q_64) * inverse * sine)
        y = select(waves, wave * scale, y)
    return kind(x)(select(s < AIRY_MOST, y, NAN))
