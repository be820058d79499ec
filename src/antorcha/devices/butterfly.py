"""Complex numbers as pairs of their parts, and the transforms of a few of them in registers.

The parts are numbers or vectors; a transform's sign is that of exp(-2 pi i k / n).
"""

from __future__ import annotations

import math

from antorcha.lang.native import fma, inline, static

HALF_ROOT = math.sqrt(0.5)
COSINES = tuple([tuple([math.cos(2 * math.pi * k / r) for k in range(r)]) for r in range(1, 14)])
SINES = tuple([tuple([math.sin(2 * math.pi * k / r) for k in range(r)]) for r in range(1, 14)])


@inline
def plus(a, b):
    return [a[0] + b[0], a[1] + b[1]]


@inline
def minus(a, b):
    return [a[0] - b[0], a[1] - b[1]]


@inline
def times(a, b):
    return [fma(a[0], b[0], -(a[1] * b[1])), fma(a[0], b[1], a[1] * b[0])]


@inline
def swapped(a):
    return [a[1], a[0]]


@inline
def conjugate(a):
    return [a[0], -a[1]]


@inline
def unpacked(near, far, turn):
    """Twice numbers k and m - k of the transform of 2 m real numbers, of number k of that of their
    pairs, the conjugate of number m - k, and exp(-pi i k / m)."""
    even, odd = plus(near, far), times(turn, minus(near, far))
    one = [even[0] + odd[1], even[1] - odd[0]]
    return one, [even[0] - odd[1], -(even[1] + odd[0])]


@inline
def butterfly(T, x):
    """The transform of a few numbers in registers."""
    count = static(len(x))
    if count == 1:
        return [x[0]]
    if count == 2:
        return [plus(x[0], x[1]), minus(x[0], x[1])]
    if count == 4:
        return butterfly_4(x)
    if count == 8:
        return butterfly_8(T, x)
    return butterfly_odd(T, x, count)


@inline
def butterfly_4(x):
    a, b = plus(x[0], x[2]), minus(x[0], x[2])
    c, d = plus(x[1], x[3]), minus(x[1], x[3])
    return [plus(a, c), [b[0] + d[1], b[1] - d[0]], minus(a, c), [b[0] - d[1], b[1] + d[0]]]


@inline
def butterfly_8(T, x):
    even = butterfly_4([x[0], x[2], x[4], x[6]])
    odd = butterfly_4([x[1], x[3], x[5], x[7]])
    h = T(HALF_ROOT)
    turned = [
        odd[0],
        [(odd[1][0] + odd[1][1]) * h, (odd[1][1] - odd[1][0]) * h],
        [odd[2][1], -odd[2][0]],
        [(odd[3][1] - odd[3][0]) * h, -(odd[3][0] + odd[3][1]) * h],
    ]
    low = [plus(even[k], turned[k]) for k in static(range(4))]
    high = [minus(even[k], turned[k]) for k in static(range(4))]
    return low + high


@inline
def butterfly_odd(T, x, count):
    """Any odd radix: elements r and count - r meet conjugate roots."""
    half = static(count // 2)
    sums = [plus(x[k + 1], x[count - 1 - k]) for k in static(range(half))]
    gaps = [minus(x[k + 1], x[count - 1 - k]) for k in static(range(half))]
    found = [[x[0][0], x[0][1]] for k in static(range(count))]
    for k in static(range(half)):
        found[0] = plus(found[0], sums[k])
    for j in static(range(1, half + 1)):
        even = [x[0][0], x[0][1]]
        odd = [T(0), T(0)]
        for k in static(range(half)):
            c = T(static(COSINES[count - 1][j * (k + 1) % count]))
            s = T(static(SINES[count - 1][j * (k + 1) % count]))
            even = [fma(sums[k][0], c, even[0]), fma(sums[k][1], c, even[1])]
            odd = [fma(gaps[k][0], s, odd[0]), fma(gaps[k][1], s, odd[1])]
        found[j] = [even[0] + odd[1], even[1] - odd[0]]
        found[count - j] = [even[0] - odd[1], even[1] + odd[0]]
    return found
