"""Sums, products and polynomials of pairs (high, low), for float64 results within an ulp.

Each is good to some 2**-100 of its result, `pair_polynomial` to what its single coefficients allow.
Results are not brought to |low| <= ulp(high) / 2 unless said: whoever needs that calls `quick_sum`.
"""

from __future__ import annotations

from antorcha.devices.math.base import (
    exact_product,
    exact_sum,
    kind,
    polynomial,
    quick_sum,
)
from antorcha.devices.math.power import log_pair
from antorcha.lang.native import fma, inline, select, static


@inline
def pair_sum(a, a_low, b, b_low):
    """(a + a_low) + (b + b_low)."""
    high, low = exact_sum(a, b)
    return quick_sum(high, low + (a_low + b_low))


@inline
def pair_product(a, a_low, b, b_low):
    """(a + a_low) * (b + b_low)."""
    high, low = exact_product(a, b)
    return high, low + fma(a, b_low, b * a_low)


@inline
def pair_polynomial(x, x_low, table):
    """The polynomial of table at x + x_low; x_low must not matter to its single coefficients."""
    r, r_low = polynomial(x, table.rest), kind(x)(0.0)
    for k in static(range(len(table.lead) - 1, -1, -1)):
        p, p_low = exact_product(x, r)
        p_low = fma(x, r_low, fma(r, x_low, p_low))
        r, rest = exact_sum(kind(x)(table.lead[k][0]), p)
        r_low = rest + (p_low + table.lead[k][1])
    return r, r_low


@inline
def log_of(x, x_low):
    """log(|x + x_low|), good to 2**-65 or so; for x = 0 any number."""
    a = abs(x)
    high, low = log_pair(a)
    return quick_sum(high, low + select(a > 0.0, x_low / x, 0.0))
