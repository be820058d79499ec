"""What decompositions into values and vectors share: scaling, rotations, order."""

from __future__ import annotations

from antorcha.devices.cpu.small_linalg.reflectors import power_below
from antorcha.devices.cpu.small_linalg.tiles import get, put
from antorcha.lang.native import fabs, i32, i64, inline, reduce_any, select, vec

EPSILON = {4: 2.0**-23, 8: 2.0**-52}
"""From 1 to the next float of so many bytes."""
STEPS = 50
"""After so many steps for one value what is left is rounding."""
NOTHING = {4: 2.0**-100, 8: 2.0**-400}
"""What the square of a number is below that counts as zero beside a matrix of size one; squares
above it are as precise as any."""


@inline
def scaled_to_one(T, W, a, count):
    """Divides matrices of so many elements by a power of two near their greatest element; gives it,
    and whether an element is no finite number."""
    greatest = vec[T, W](0)
    spoilt = vec[T, W](0)
    for k in range(count):
        x = get(T, W, a, k)
        greatest = max(greatest, fabs(x))
        spoilt += x * vec[T, W](0)
    scale = power_below(T, W, greatest)
    inverse = vec[T, W](1) / scale
    scale_values(T, W, a, count, inverse)
    return scale, spoilt != spoilt


@inline
def scale_values(T, W, values, count, scale):
    """Multiplies so many numbers of each matrix."""
    for k in range(count):
        put(W, values, k, get(T, W, values, k) * scale)


@inline
def turn(T, W, x, p, q, cos, sin):
    """The vectors at p and q, turned against each other."""
    left = get(T, W, x, p)
    right = get(T, W, x, q)
    put(W, x, p, cos * left - sin * right)
    put(W, x, q, sin * left + cos * right)


@inline
def sort_values(T, W, values, order, n, DOWN):
    """Puts values in order; ``order`` gets the numbers of the places that they had."""
    for i in range(n):
        put(W, order, i, vec[i32, W](i32(i)))
    for i in range(n):
        for j in range(i + 1, n):
            a = get(T, W, values, i)
            b = get(T, W, values, j)
            wrong = (a < b) if DOWN else (b < a)
            if reduce_any(wrong):
                put(W, values, i, select(wrong, b, a))
                put(W, values, j, select(wrong, a, b))
                first = get(i32, W, order, i)
                second = get(i32, W, order, j)
                put(W, order, i, select(wrong, second, first))
                put(W, order, j, select(wrong, first, second))


@inline
def take_rows(T, W, to, a, order, rows, width):
    """The rows of a in an order that each lane has of its own."""
    for i in range(rows):
        for lane in range(W):
            row = i64(order[i * W + lane])
            source = a + (row * width * W + lane)
            target = to + (i * width * W + lane)
            for _ in range(width):
                target[0] = source[0]
                source = source + W
                target = target + W


@inline
def invert_order(W, places, order, n):
    """``places`` gets the place that each number has in the order of its lane."""
    for i in range(n):
        for lane in range(W):
            (places + (i64(order[i * W + lane]) * W + lane))[0] = i32(i)
