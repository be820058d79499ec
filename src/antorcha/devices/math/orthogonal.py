"""Orthogonal polynomials of x by degree: from degree 0 and 1 by recurrence, in float64.

A degree is rounded towards 0; the value of one below 0 is 0. Errors are some ulp, times the degree,
of the greatest of the polynomials on the way.
"""

from __future__ import annotations

from antorcha.devices.math.base import NAN, any_lane, kind, lesser, pick, shaped
from antorcha.lang.native import f64, fma, inline, select, trunc

MOST_32, MOST_64 = 128.0, 512.0  # degrees of Hermite's polynomials; NaN beyond, as in PyTorch


@inline
def two_x_less(x, k, p, before):
    """Chebyshev's: 2 x p - before."""
    return fma(x + x, p, -before)


@inline
def hermite(x, k, p, before):
    """The physicists': 2 x p - 2 k before."""
    return fma(x, p, -k * before) * 2.0


@inline
def hermite_e(x, k, p, before):
    """The probabilists': x p - k before."""
    return fma(x, p, -k * before)


@inline
def laguerre(x, k, p, before):
    """((2 k + 1 - x) p - k before) / (k + 1)."""
    return fma((k + k + 1.0) - x, p, -k * before) / (k + 1.0)


@inline
def legendre(x, k, p, before):
    """((2 k + 1) x p - k before) / (k + 1)."""
    return fma((k + k + 1.0) * x, p, -k * before) / (k + 1.0)


@inline
def by_recurrence(x, n, first, following):
    """The polynomial of degree n, given that of degree 1; what has overflowed to NaN stays."""
    before, p, k = kind(x)(1.0), first, kind(x)(1.0)
    while any_lane((k < n) & (p == p)):
        more = (k < n) & (p == p)
        q = following(x, k, p, before)
        before, p = select(more, p, before), select(more, q, p)
        k = k + 1.0
    return select(n < 0.0, 0.0, select(n == 0.0, 1.0, select(n == n, p, NAN)))


@inline
def degree(n):
    """n rounded towards 0, in float64; below 0 where PyTorch's integers end."""
    whole = trunc(shaped(n, f64)(n))
    return select(whole >= 2.0**63, -1.0, whole)


@inline
def chebyshev_polynomial_t(x, n):
    """Chebyshev's polynomial of the first kind."""
    w = shaped(x, f64)(x)
    return kind(x)(by_recurrence(w, degree(n), w, two_x_less))


@inline
def chebyshev_polynomial_u(x, n):
    """Chebyshev's polynomial of the second kind."""
    w = shaped(x, f64)(x)
    return kind(x)(by_recurrence(w, degree(n), w + w, two_x_less))


@inline
def chebyshev_polynomial_v(x, n):
    """Chebyshev's polynomial of the third kind."""
    w = shaped(x, f64)(x)
    return kind(x)(by_recurrence(w, degree(n), (w + w) - 1.0, two_x_less))


@inline
def chebyshev_polynomial_w(x, n):
    """Chebyshev's polynomial of the fourth kind."""
    w = shaped(x, f64)(x)
    return kind(x)(by_recurrence(w, degree(n), (w + w) + 1.0, two_x_less))


@inline
def shifted_chebyshev_polynomial_t(x, n):
    """Chebyshev's polynomial of the first kind, of 2 x - 1."""
    w = fma(shaped(x, f64)(x), 2.0, -1.0)
    return kind(x)(by_recurrence(w, degree(n), w, two_x_less))


@inline
def shifted_chebyshev_polynomial_u(x, n):
    """Chebyshev's polynomial of the second kind, of 2 x - 1."""
    w = fma(shaped(x, f64)(x), 2.0, -1.0)
    return kind(x)(by_recurrence(w, degree(n), w + w, two_x_less))


@inline
def shifted_chebyshev_polynomial_v(x, n):
    """Chebyshev's polynomial of the third kind, of 2 x - 1."""
    w = fma(shaped(x, f64)(x), 2.0, -1.0)
    return kind(x)(by_recurrence(w, degree(n), (w + w) - 1.0, two_x_less))


@inline
def shifted_chebyshev_polynomial_w(x, n):
    """Chebyshev's polynomial of the fourth kind, of 2 x - 1."""
    w = fma(shaped(x, f64)(x), 2.0, -1.0)
    return kind(x)(by_recurrence(w, degree(n), (w + w) + 1.0, two_x_less))


@inline
def hermite_polynomial_h(x, n):
    """The physicists' Hermite polynomial."""
    w = shaped(x, f64)(x)
    whole = degree(n)
    y = by_recurrence(w, lesser(pick(x, MOST_32, MOST_64), whole), w + w, hermite)
    return kind(x)(select(whole > pick(x, MOST_32, MOST_64), NAN, y))


@inline
def hermite_polynomial_he(x, n):
    """The probabilists' Hermite polynomial."""
    w = shaped(x, f64)(x)
    whole = degree(n)
    y = by_recurrence(w, lesser(pick(x, MOST_32, MOST_64), whole), w, hermite_e)
    return kind(x)(select(whole > pick(x, MOST_32, MOST_64), NAN, y))


@inline
def laguerre_polynomial_l(x, n):
    """Laguerre's polynomial."""
    w = shaped(x, f64)(x)
    return kind(x)(by_recurrence(w, degree(n), 1.0 - w, laguerre))


@inline
def legendre_polynomial_p(x, n):
    """Legendre's polynomial."""
    w = shaped(x, f64)(x)
    return kind(x)(by_recurrence(w, degree(n), w, legendre))
