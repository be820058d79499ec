"""Eigenvalues of small symmetric matrices, and singular values, by Jacobi's rotations.

A sweep turns each pair of rows (columns) against each other until they are orthogonal; sweeps are
made until none turns anything, a handful of them. The one-sided form for singular values is
Hestenes', as in Demmel and Veselic, "Jacobi's method is more accurate than QR", 1992.
"""

from __future__ import annotations

from antorcha.devices.cpu.small_linalg.reflectors import factor_qr, form_q, power_below
from antorcha.devices.cpu.small_linalg.tiles import (
    get,
    identity,
    put,
    read,
    read_columns,
    report,
    write,
    write_columns,
)
from antorcha.lang.native import (
    copysign,
    fabs,
    i32,
    i64,
    inline,
    ptr,
    reduce_any,
    select,
    sqrt,
    static,
    vec,
)

SWEEPS = 30
"""After so many sweeps what is left is rounding."""
EPSILON = {4: 2.0**-23, 8: 2.0**-52}
"""From 1 to the next float of so many bytes."""


@inline
def rotation(T, W, first, second, between, wanted):
    """The (cos, sin, tan) that make [[first, between], [between, second]] diagonal; no turn where
    none is wanted."""
    one = vec[T, W](1)
    apart = (second - first) / (between + between)
    tangent = copysign(one / (fabs(apart) + sqrt(apart * apart + one)), apart)
    tangent = select(wanted, tangent, vec[T, W](0))
    cos = one / sqrt(tangent * tangent + one)
    return cos, tangent * cos, tangent


@inline
def turn(T, W, x, p, q, cos, sin):
    """The vectors at p and q, turned against each other."""
    left = get(T, W, x, p)
    right = get(T, W, x, q)
    put(W, x, p, cos * left - sin * right)
    put(W, x, q, sin * left + cos * right)


@inline
def sort_rows(T, W, keys, n, ROWS, widths, DOWN):
    """Puts keys in order, and with them the rows of each of some matrices."""
    for i in range(n):
        for j in range(i + 1, n):
            a = get(T, W, keys, i)
            b = get(T, W, keys, j)
            wrong = (a < b) if DOWN else (b < a)
            if reduce_any(wrong):
                put(W, keys, i, select(wrong, b, a))
                put(W, keys, j, select(wrong, a, b))
                for k in static(range(len(ROWS))):
                    for r in range(widths[k]):
                        upper = get(T, W, ROWS[k], i * widths[k] + r)
                        lower = get(T, W, ROWS[k], j * widths[k] + r)
                        put(W, ROWS[k], i * widths[k] + r, select(wrong, lower, upper))
                        put(W, ROWS[k], j * widths[k] + r, select(wrong, upper, lower))


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
    for k in range(count):
        put(W, a, k, get(T, W, a, k) * inverse)
    return scale, spoilt != spoilt


# ----------------------------------------------------------------------------- symmetric matrices
@inline
def eigen_sweep(T, W, a, v, n):
    """Turns each pair of the rows and columns of a, of which the lower triangle is used, and rows
    of v; gives the lanes in which something was turned."""
    moved = vec[i32, W](0)
    for p in range(n):
        for q in range(p + 1, n):
            first = get(T, W, a, p * n + p)
            second = get(T, W, a, q * n + q)
            between = get(T, W, a, q * n + p)
            wanted = fabs(between) > vec[T, W](EPSILON[T.size] / 16)
            if reduce_any(wanted):
                moved = select(wanted, vec[i32, W](1), moved)
                cos, sin, tangent = rotation(T, W, first, second, between, wanted)
                put(W, a, p * n + p, first - tangent * between)
                put(W, a, q * n + q, second + tangent * between)
                put(W, a, q * n + p, select(wanted, vec[T, W](0), between))
                for r in range(p):
                    turn(T, W, a, p * n + r, q * n + r, cos, sin)
                for r in range(p + 1, q):
                    turn(T, W, a, r * n + p, q * n + r, cos, sin)
                for r in range(q + 1, n):
                    turn(T, W, a, r * n + p, r * n + q, cos, sin)
                for r in range(n):
                    turn(T, W, v, p * n + r, q * n + r, cos, sin)
    return moved


@inline
def eigen_tile(T, W, FLAGS, tile):
    """Operands: the eigenvalues and eigenvectors, then A: its lower triangle, or "upper"."""
    t = tile.task
    n = t.n
    a = ptr[T](tile.space)
    v = a + n * n * W
    values = v + n * n * W
    if "upper" in FLAGS:
        read_columns(T, W, tile, 2, a, n, n)
    else:
        read(T, W, tile, 2, a, n, n)
    beside = vec[T, W](0)
    for i in range(n):
        for j in range(i + 1, n):
            put(W, a, i * n + j, vec[T, W](0))
            beside += fabs(get(T, W, a, j * n + i))
    scale, spoilt = scaled_to_one(T, W, a, n * n)
    spoilt = spoilt & (beside != vec[T, W](0))  # a diagonal has its values, whatever they are
    report(W, tile, select(spoilt, vec[i32, W](1), vec[i32, W](0)))
    identity(T, W, v, n, n)
    left = i64(SWEEPS)
    while left > 0:
        moved = eigen_sweep(T, W, a, v, n)
        left = left - 1 if reduce_any(moved != vec[i32, W](0)) else i64(0)
    for k in range(n):
        put(W, values, k, get(T, W, a, k * n + k) * scale)
    sort_rows(T, W, values, n, [v], [n], False)
    write(T, W, tile, 0, values, i64(1), n)
    write_columns(T, W, tile, 1, v, n, n, n)


# -------------------------------------------------------------------------------- singular values
@inline
def singular_sweep(T, W, g, v, m, n, tolerance):
    """Turns each pair of the n columns of g, of m elements each, and of the rows of v; gives the
    lanes in which something was turned."""
    moved = vec[i32, W](0)
    for p in range(n):
        for q in range(p + 1, n):
            first = vec[T, W](0)
            second = vec[T, W](0)
            between = vec[T, W](0)
            for i in range(m):
                left = get(T, W, g, p * m + i)
                right = get(T, W, g, q * m + i)
                first += left * left
                second += right * right
                between += left * right
            wanted = fabs(between) > tolerance * sqrt(first) * sqrt(second)
            if reduce_any(wanted):
                moved = select(wanted, vec[i32, W](1), moved)
                cos, sin, _ = rotation(T, W, first, second, between, wanted)
                for i in range(m):
                    turn(T, W, g, p * m + i, q * m + i, cos, sin)
                for i in range(n):
                    turn(T, W, v, p * n + i, q * n + i, cos, sin)
    return moved


@inline
def column_sizes(T, W, g, m, n, values, scale):
    for j in range(n):
        total = vec[T, W](0)
        for i in range(m):
            part = get(T, W, g, j * m + i)
            total += part * part
        put(W, values, j, sqrt(total) * scale)


@inline
def left_vectors(T, W, g, m, n, taus, u, cols):
    """Orthonormal columns that begin with those of g, divided by their sizes: where a column is
    zero, or none is left, any that goes with the others."""
    factor_qr(T, W, g, m, n, taus)
    form_q(T, W, g, m, n, taus, u, cols)
    for j in range(n):
        turned = get(T, W, g, j * m + j) < vec[T, W](0)
        for i in range(m):
            x = get(T, W, u, j * m + i)
            put(W, u, j * m + i, select(turned, -x, x))


@inline
def singular_tile(T, W, FLAGS, tile):
    """Operands: U, the singular values, V^T, then A; a "wide" A is worked on as its transpose,
    whose m is not less than n."""
    t = tile.task
    m = t.m
    n = t.n
    g = ptr[T](tile.space)
    v = g + m * n * W
    values = v + n * n * W
    taus = values + n * W
    u = taus + n * W
    if "wide" in FLAGS:
        read(T, W, tile, 3, g, n, m)
    else:
        read_columns(T, W, tile, 3, g, m, n)
    scale, spoilt = scaled_to_one(T, W, g, m * n)
    report(W, tile, select(spoilt, vec[i32, W](1), vec[i32, W](0)))
    identity(T, W, v, n, n)
    tolerance = sqrt(vec[T, W](T(m))) * vec[T, W](EPSILON[T.size])
    left = i64(SWEEPS)
    while left > 0:
        moved = singular_sweep(T, W, g, v, m, n, tolerance)
        left = left - 1 if reduce_any(moved != vec[i32, W](0)) else i64(0)
    column_sizes(T, W, g, m, n, values, scale)
    sort_rows(T, W, values, n, [g, v], [m, n], True)
    left_vectors(T, W, g, m, n, taus, u, t.right)
    write(T, W, tile, 1, values, i64(1), n)
    if "wide" in FLAGS:
        write(T, W, tile, 2, u, t.right, m)
        write_columns(T, W, tile, 0, v, n, n, n)
    else:
        write_columns(T, W, tile, 0, u, m, m, t.right)
        write(T, W, tile, 2, v, n, n)
