"""Integer arithmetic that no single instruction gives, over vectors or scalars."""

from __future__ import annotations

from antorcha.devices.math.base import any_lane
from antorcha.lang.native import inline, select, trunc_mod


@inline
def power(x, n, *, signed):
    """x ** n by squaring, wrapping; a negative exponent gives 0 unless x is 1 or -1."""
    one = x - x + 1
    result = one
    base = x
    left = n
    if signed:
        odd = (n & 1) != 0
        unit = select((x == 1) | ((x == -1) & ~odd), one, select(x == -1, x, one - one))
        left = select(n < 0, one - one, n)
    while any_lane(left != 0):
        result = select((left & 1) != 0, result * base, result)
        base = base * base
        left = left >> 1
    if signed:
        result = select(n < 0, unit, result)
    return result


@inline
def gcd(a, b):
    """The greatest common divisor by Euclid's algorithm, never negative; of zeros 0."""
    while any_lane(b != 0):
        rest = trunc_mod(a, select(b == 0, b - b + 1, b))
        a, b = select(b == 0, a, b), select(b == 0, b, rest)
    return abs(a)
