"""lgamma and digamma, for float32 computed in float64, for float64 with pairs.

Both types step to an interval beside 1 and use a polynomial there, and Stirling's series far out.
Where a float64 result is small beside its terms, at the roots between the poles, nothing short of
their Taylor series will do: `LGAMMA_ROOTS` and `PSI_ROOTS` hold them.
"""

from __future__ import annotations

from antorcha.devices.math.base import (
    INF,
    NAN,
    any_lane,
    exact_product,
    exact_sum,
    ints,
    kind,
    pair_over_pair,
    pick,
    polynomial,
    quick_sum,
    shaped,
)
from antorcha.devices.math.coefficients import (
    DIGAMMA_64,
    LGAMMA_ONE_64,
    LGAMMA_TWO_64,
    PSI_TAIL_64,
    STIRLING_64,
)
from antorcha.devices.math.logarithm import log, split_normal
from antorcha.devices.math.pair_coefficients import (
    COTANGENT,
    COTANGENT_LONG,
    LGAMMA_ONE,
    LGAMMA_ROOTS,
    LOG_LONG,
    PSI_LONG,
    PSI_NEAR,
    PSI_ROOTS,
)
from antorcha.devices.math.pairs import log_of, pair_polynomial, pair_product, pair_sum
from antorcha.devices.math.trigonometric import HALF_PI, HALF_PI_LOW, sine_of, word_at
from antorcha.lang.native import constant, f64, floor, fma, inline, roundeven, select, static

PI = 3.141592653589793
HALF_LOG_TWO_PI = 0.9189385332046727
PSI_ROOT, PSI_ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17
PSI_ROOT_PART, PSI_ROOT_PART_LOW = 0.46163214496836236, -1.5522348162858677e-17  # the root - 1
LN2 = (0.6931471805599453, 2.3190468138462996e-17, 5.707708438416212e-34)
LOG_PI, LOG_PI_LOW = 1.1447298858494002, 1.0265951162707826e-17
PI_SQUARE, PI_SQUARE_LOW = 9.869604401089358, 6.265295508739711e-16
LGAMMA_TABLE = tuple([x for row in LGAMMA_ROOTS for x in row])
PSI_TABLE = tuple([x for row in PSI_ROOTS for x in row])


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
def half_sine(a):
    """sin(pi a), with what it is made of: j, r, r_low."""
    j, r, r_low = half_turns(a)
    return sine_of(j, r, r_low)


@inline
def factors(x, n):
    """For x in -17.5..8, n the nearest integer: gamma(x) = gamma(1 + x - n) * p or / p, as a pair.

    For n > 0 the product p is (x - 1) (x - 2) ... (x - n + 1), else x (x + 1) ... (x - n).
    """
    up = n > 0.5
    factor, step = select(up, x - 1.0, x), select(up, kind(x)(-1.0), 1.0)
    count = select(up, n - 1.0, 1.0 - n)
    p, p_low = kind(x)(1.0), kind(x)(0.0)
    while any_lane(count > 0.0):
        live = count > 0.0
        q, q_low = pair_product(p, p_low, factor, 0.0)
        p, p_low = select(live, q, p), select(live, q_low, p_low)
        factor = factor + step
        count = count - 1.0
    return p, p_low


@inline
def lgamma_exact(x):
    """lgamma of float64.

    -17.5 to 8: log(gamma(1 + t)), |t| <= 0.5, plus or minus the logarithm of a product. Above,
    Stirling's series; below, log(pi / |x sin(pi x)|) - lgamma(-x) with it.
    """
    a = abs(x)
    far, behind = (x >= 8.0) | (x < -17.5), x < -17.5
    b = select(far, 1.0, x)
    n = roundeven(b)
    t = b - n
    one, one_low = pair_polynomial(t, 0.0, LGAMMA_ONE)
    one, one_low = pair_product(one, one_low, t, 0.0)
    p, p_low = factors(b, n)
    l, l_low = log_of(select(far, a, p), select(far, 0.0, p_low))
    below = n < 0.5
    near, near_low = pair_sum(one, one_low, select(below, -l, l), select(below, -l_low, l_low))
    y = near + near_low
    y = select(p == 0.0, INF, y)
    if any_lane(far):
        half, half_low = quick_sum(a, kind(x)(-0.5))
        e, e_low = quick_sum(l, kind(x)(-1.0))
        s, s_low = pair_product(half, half_low, e, e_low + l_low)
        inverse = 1.0 / a
        tail = fma(polynomial(inverse * inverse, STIRLING_64), inverse, HALF_LOG_TWO_PI - 0.5)
        out = select(s < INF, s + (s_low + tail), INF)
        if any_lane(behind):
            sine = abs(half_sine(a))
            m, m_low = log_of(sine, 0.0)
            u, u_low = pair_sum(s, s_low + tail, l, l_low)
            v, v_low = pair_sum(m, m_low, kind(x)(-LOG_PI), -LOG_PI_LOW)
            u, u_low = pair_sum(u, u_low, v, v_low)
            out = select(behind, select(roundeven(a) == a, INF, -(u + u_low)), out)
        y = select(far, out, y)
    root = (x < -2.0) & (x > -16.5) & (abs(y) < 2.0**-7)
    if any_lane(root):
        y = select(root, lgamma_at_root(select(root, a, 2.5), y), y)
    return select(a == INF, INF, y)


@inline
def lgamma_at_root(a, y):
    """lgamma(-a), 2 < a < 16.5, from the Taylor series of the root nearby; y where that is far."""
    width = static(len(LGAMMA_ROOTS[0]))
    at = (ints(a)(a + a) - 4) * width
    row = [word_at(constant(f64, LGAMMA_TABLE), at + k) for k in range(width)]
    z, z_low = from_root(a, row)
    rest = row[width - 1]
    for k in static(range(width - 2, 5, -1)):
        rest = fma(rest, z, row[k])
    c, c_low = quick_sum(row[4], rest * z)
    value, low = pair_product(z, z_low, c, c_low + row[5])
    return select(abs(z) <= row[3], value + low, y)


@inline
def from_root(a, row):
    """-a minus the root, which is minus the sum of the row's first three numbers, as a pair."""
    z, z_low = quick_sum(row[0] - a, row[1])
    return z, z_low + row[2]


@inline
def lgamma(x):
    """log(|gamma(x)|). Largest error: float32 0.501 ulp, float64 0.6, beside its roots too."""
    if pick(x, True, False):
        return kind(x)(lgamma_wide(shaped(x, f64)(x)))
    return lgamma_exact(x)


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
def fractions(b, n):
    """1 / (b - 1) + ... + 1 / (b - n + 1), or for n = 0 minus 1 / b, as a pair; b < 8, n <= b."""
    zero = n == 0.0
    factor = select(zero, b, b - 1.0)
    count = select(zero, 1.0, n - 1.0)
    top, top_low = kind(b)(0.0), kind(b)(0.0)
    under, under_low = kind(b)(1.0), kind(b)(0.0)
    while any_lane(count > 0.0):
        live = count > 0.0
        p, p_low = pair_product(top, top_low, factor, 0.0)
        p, p_low = pair_sum(under, under_low, p, p_low)
        top, top_low = select(live, p, top), select(live, p_low, top_low)
        p, p_low = pair_product(under, under_low, factor, 0.0)
        under, under_low = select(live, p, under), select(live, p_low, under_low)
        factor = factor - 1.0
        count = count - 1.0
    q, q_low = pair_over_pair(top, top_low, under, under_low)
    return select(zero, -q, q), select(zero, -q_low, q_low)


@inline
def digamma_pair(a):
    """digamma of float64 a > 0 as a pair, and 1 / a as another."""
    high = a >= 8.0
    b = select(high, 1.0, a)
    n = floor(b)
    t = b - n
    u, u_low = exact_sum(t, kind(a)(-PSI_ROOT_PART))
    p, p_low = pair_polynomial(t - 0.5, 0.0, PSI_NEAR)
    p, p_low = pair_product(u, u_low - PSI_ROOT_PART_LOW, p, p_low)
    q, q_low = fractions(b, n)
    y, y_low = pair_sum(p, p_low, q, q_low)
    inverse = 1.0 / a
    inverse_low = fma(-inverse, a, 1.0) * inverse
    if any_lane(high):
        l, l_low = log_of(select(high, a, 8.0), 0.0)
        square = inverse * inverse
        tail = fma(polynomial(square, PSI_TAIL_64), square, 0.5 * inverse_low)
        l, low = quick_sum(l, -0.5 * inverse)
        l, l_low = quick_sum(l, low + (l_low - tail))
        y, y_low = select(high, l, y), select(high, l_low, y_low)
    return y, y_low, inverse, inverse_low


@inline
def cotangent_pair(a):
    """pi / tan(pi a) as a pair, for a that is no integer."""
    h = a - roundeven(a)
    g = abs(h)
    steep = g > 0.25
    v = select(steep, 0.5 - g, g)
    # w = pi v cot(pi v); pi cot(pi g) is w / v, or pi**2 v / w where v = 0.5 - g
    z, z_low = exact_product(v, v)
    c, c_low = pair_polynomial(z, z_low, COTANGENT)
    c, c_low = pair_product(z, z_low, c, c_low)
    w, w_low = quick_sum(kind(a)(1.0), -c)
    w_low = w_low - c_low
    p, p_low = pair_product(v, 0.0, kind(a)(PI_SQUARE), PI_SQUARE_LOW)
    q, q_low = pair_over_pair(
        select(steep, p, w), select(steep, p_low, w_low), select(steep, w, v),
        select(steep, w_low, 0.0),
    )  # fmt: skip
    return select(h < 0.0, -q, q), select(h < 0.0, -q_low, q_low)


@inline
def digamma_exact(x):
    """digamma of float64; for negative x: digamma(-x) - 1/x + pi / tan(-pi x)."""
    a = abs(x)
    y, y_low, inverse, inverse_low = digamma_pair(a)
    below = x < 0.0
    if any_lane(below):
        c, c_low = cotangent_pair(a)
        s, s_low = pair_sum(y, y_low, inverse, inverse_low)
        s, s_low = pair_sum(s, s_low, c, c_low)
        y, y_low = select(below, s, y), select(below, s_low, y_low)
        root = below & (a < static(float(len(PSI_ROOTS)))) & (abs(y) < 2.0**-4)
        if any_lane(root):
            z, z_low = digamma_at_root(select(root, a, 0.5))
            y, y_low = select(root, z, y), select(root, z_low, y_low)
        root = below & (a >= static(float(len(PSI_ROOTS)))) & (abs(y) < 2.0**-4)
        if any_lane(root):
            z, z_low = digamma_far_root(select(root, a, 40.75))
            y, y_low = select(root, z, y), select(root, z_low, y_low)
    y = y + y_low
    y = select(below & (roundeven(a) == a), NAN, y)
    y = select(a < 2.0**-60, -1.0 / x, y)
    return select(a < INF, y, select(x == INF, INF, NAN))


@inline
def digamma_at_root(a):
    """digamma(-a) from the Taylor series of the root between the poles around it."""
    width = static(len(PSI_ROOTS[0]))
    at = ints(a)(a) * width
    row = [word_at(constant(f64, PSI_TABLE), at + k) for k in range(width)]
    z, z_low = from_root(a, row)
    rest = row[width - 1]
    for k in static(range(width - 2, 4, -1)):
        rest = fma(rest, z, row[k])
    c, c_low = quick_sum(row[3], rest * z)
    return pair_product(z, z_low, c, c_low + row[4])


@inline
def digamma_far_root(a):
    """digamma(-a) beside a root, a >= 32: log(a) + 1/(2 a) - series + pi cot(pi a), to 2**-104."""
    h = a - roundeven(a)
    # pi cot(pi h) = 1/h - h C(h*h): the quotient in three parts
    q = 1.0 / h
    rest = fma(-q, h, 1.0)
    q_low = rest / h
    q_least = fma(-q_low, h, rest) / h
    z, z_low = exact_product(h, h)
    c, c_low = pair_polynomial(z, z_low, COTANGENT_LONG)
    c, c_low = pair_product(h, 0.0, c, c_low)
    # log(2**k m) = k log(2) + 2 s + 2 s B(s*s) s*s, s = (m - 1) / (m + 1)
    k, m = split_normal(a)
    under, under_low = quick_sum(kind(a)(1.0), m)
    s, s_low = pair_over_pair(m - 1.0, 0.0, under, under_low)
    z, z_low = pair_product(s, s_low, s, s_low)
    b, b_low = pair_polynomial(z, z_low, LOG_LONG)
    b, b_low = pair_product(b, b_low, z, z_low)
    b, b_low = pair_product(b, b_low, s + s, s_low + s_low)
    two, two_low = exact_product(k, kind(a)(LN2[0]))
    two_next, two_least = exact_product(k, kind(a)(LN2[1]))
    inverse = 1.0 / a
    inverse_low = fma(-inverse, a, 1.0) * inverse
    w, w_low = pair_product(inverse, inverse_low, inverse, inverse_low)
    p, p_low = pair_polynomial(w, w_low, PSI_LONG)
    p, p_low = pair_product(p, p_low, w, w_low)
    least = fma(k, LN2[2], two_least) + (q_least + 0.5 * inverse_low)
    x, y, z = q, kind(a)(0.0), least - p_low
    terms = (
        two, s + s, -c, 0.5 * inverse, b, -p, two_low, q_low, s_low + s_low, b_low, -c_low, two_next
    )  # fmt: skip
    for i in static(range(12)):
        x, part = exact_sum(x, terms[i])
        y, part = exact_sum(y, part)
        z = z + part
    x, y = exact_sum(x, y)
    return quick_sum(x, y + z)


@inline
def digamma(x):
    """The derivative of lgamma. Largest error: float32 0.501 ulp, float64 0.6, by its roots too.

    It is -inf at 0.0, inf at -0.0 and NaN at the negative integers.
    """
    if pick(x, True, False):
        return kind(x)(digamma_wide(shaped(x, f64)(x)))
    return digamma_exact(x)
