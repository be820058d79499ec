"""Orthogonal polynomials of x by degree: from degree 0 and 1 by recurrence, in pairs of float64.

A degree is rounded towards 0; the value of one below 0 is 0. Errors are of the greatest of the
polynomials on the way, which pairs hold to more than float64's last place.
"""

from __future__ import annotations

from antorcha.devices.math.base import (
    NAN,
    any_lane,
    exact_sum,
    kind,
    lesser,
    pair_over_pair,
    pick,
    shaped,
)
from antorcha.devices.math.pairs import pair_product, pair_sum
from antorcha.lang.native import f64, inline, select, trunc

MOST_32, MOST_64 = 128.0, 512.0  # degrees of Hermite's polynomials; NaN beyond, as in PyTorch


@inline
def less_multiple(a, a_low, p, p_low, k, b, b_low):
    """(a + a_low) (p + p_low) - k (b + b_low), a step of every recurrence."""
    u, u_low = pair_product(a, a_low, p, p_low)
    v, v_low = pair_product(k, 0.0, -b, -b_low)
    return pair_sum(u, u_low, v, v_low)


@inline
def chebyshev(x, x_low, k, p, p_low, b, b_low):
    """2 x p - b, of p and what was before it; k is p's degree."""
    return less_multiple(x + x, x_low + x_low, p, p_low, kind(x)(1.0), b, b_low)


@inline
def hermite(x, x_low, k, p, p_low, b, b_low):
    """The physicists': 2 x p - 2 k b."""
    return less_multiple(x + x, x_low + x_low, p, p_low, k + k, b, b_low)


@inline
def hermite_e(x, x_low, k, p, p_low, b, b_low):
    """The probabilists': x p - k b."""
    return less_multiple(x, x_low, p, p_low, k, b, b_low)


@inline
def laguerre(x, x_low, k, p, p_low, b, b_low):
    """((2 k + 1 - x) p - k b) / (k + 1)."""
    a, a_low = exact_sum(k + k + 1.0, -x)
    top, top_low = less_multiple(a, a_low - x_low, p, p_low, k, b, b_low)
    return pair_over_pair(top, top_low, k + 1.0, 0.0)


@inline
def legendre(x, x_low, k, p, p_low, b, b_low):
    """((2 k + 1) x p - k b) / (k + 1)."""
    a, a_low = pair_product(x, x_low, k + k + 1.0, 0.0)
    top, top_low = less_multiple(a, a_low, p, p_low, k, b, b_low)
    return pair_over_pair(top, top_low, k + 1.0, 0.0)


@inline
def by_recurrence(x, x_low, n, slope, rest, following):
    """The polynomial of degree n, that of degree 1 being slope x + rest; NaN where it overflows."""
    p, p_low = exact_sum(slope * x, kind(x)(rest))
    p_low = p_low + slope * x_low
    before, before_low, k = kind(x)(1.0), kind(x)(0.0), kind(x)(1.0)
    while any_lane((k < n) & (p == p)):
        more = (k < n) & (p == p)
        q, q_low = following(x, x_low, k, p, p_low, before, before_low)
        before, before_low = select(more, p, before), select(more, p_low, before_low)
        p, p_low = select(more, q, p), select(more, q_low, p_low)
        k = k + 1.0
    y = p + p_low
    return select(n < 0.0, 0.0, select(n == 0.0, 1.0, select(n == n, y, NAN)))


@inline
def of_number(x, n, slope, rest, following):
    """The polynomial of x."""
    w = shaped(x, f64)(x)
    return kind(x)(by_recurrence(w, kind(w)(0.0), degree(n), slope, rest, following))


@inline
def of_shifted(x, n, slope, rest):
    """Chebyshev's polynomial of 2 x - 1."""
    w = shaped(x, f64)(x)
    t, t_low = exact_sum(w + w, kind(w)(-1.0))
    return kind(x)(by_recurrence(t, t_low, degree(n), slope, rest, chebyshev))


@inline
def of_hermite(x, n, slope, following):
    """Hermite's polynomial of x, up to the degrees that PyTorch computes."""
    most = pick(x, MOST_32, MOST_64)
    whole = degree(n)
    return select(whole > most, NAN, of_number(x, lesser(most, whole), slope, 0.0, following))


@inline
def degree(n):
    """n rounded towards 0, in float64; below 0 where PyTorch's integers end."""
    whole = trunc(shaped(n, f64)(n))
    return select(whole >= 2.0**63, -1.0, whole)


@inline
def chebyshev_polynomial_t(x, n):
    """Chebyshev's polynomial of the first kind."""
    return of_number(x, n, 1.0, 0.0, chebyshev)


@inline
def chebyshev_polynomial_u(x, n):
    """Chebyshev's polynomial of the second kind."""
    return of_number(x, n, 2.0, 0.0, chebyshev)


@inline
def chebyshev_polynomial_v(x, n):
    """Chebyshev's polynomial of the third kind."""
    return of_number(x, n, 2.0, -1.0, chebyshev)


@inline
def chebyshev_polynomial_w(x, n):
    """Chebyshev's polynomial of the fourth kind."""
    return of_number(x, n, 2.0, 1.0, chebyshev)


@inline
def shifted_chebyshev_polynomial_t(x, n):
    """Chebyshev's polynomial of the first kind, of 2 x - 1."""
    return of_shifted(x, n, 1.0, 0.0)


@inline
def shifted_chebyshev_polynomial_u(x, n):
    """Chebyshev's polynomial of the second kind, of 2 x - 1."""
    return of_shifted(x, n, 2.0, 0.0)


@inline
def shifted_chebyshev_polynomial_v(x, n):
    """Chebyshev's polynomial of the third kind, of 2 x - 1."""
    return of_shifted(x, n, 2.0, -1.0)


@inline
def shifted_chebyshev_polynomial_w(x, n):
    """Chebyshev's polynomial of the fourth kind, of 2 x - 1."""
    return of_shifted(x, n, 2.0, 1.0)


@inline
def hermite_polynomial_h(x, n):
    """The physicists' Hermite polynomial."""
    return of_hermite(x, n, 2.0, hermite)


@inline
def hermite_polynomial_he(x, n):
    """The probabilists' Hermite polynomial."""
    return of_hermite(x, n, 1.0, hermite_e)


@inline
def laguerre_polynomial_l(x, n):
    """Laguerre's polynomial."""
    return of_number(x, n, -1.0, 1.0, laguerre)


@inline
def legendre_polynomial_p(x, n):
    """Legendre's polynomial."""
    return of_number(x, n, 1.0, 0.0, legendre)
