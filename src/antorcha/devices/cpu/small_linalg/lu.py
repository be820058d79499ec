"""LU factors of small matrices with partial pivoting, determinants, and solutions of systems."""

from __future__ import annotations

from antorcha.devices.cpu.small_linalg.systems import substitute
from antorcha.devices.cpu.small_linalg.tiles import (
    exchange_rows,
    get,
    identity,
    put,
    read,
    report,
    write,
    write_vector,
)
from antorcha.devices.math.logarithm import log
from antorcha.lang.native import f64, fabs, i32, i64, inline, ptr, select, vec


@inline
def find_pivot(T, W, a, k, m, n):
    """The row, from k on, whose element in column k is greatest, the first of equals; and it."""
    best = fabs(get(T, W, a, k * n + k))
    row = vec[i32, W](i32(k))
    for i in range(k + 1, m):
        size = fabs(get(T, W, a, i * n + k))
        better = size > best
        best = select(better, size, best)
        row = select(better, vec[i32, W](i32(i)), row)
    return row


@inline
def eliminate(T, W, a, k, m, n):
    """Subtracts multiples of row k from those below; they take the place of column k."""
    pivot = get(T, W, a, k * n + k)
    usable = pivot != vec[T, W](0)
    for i in range(k + 1, m):
        head = get(T, W, a, i * n + k)
        factor = select(usable, head / pivot, head)
        put(W, a, i * n + k, factor)
        for j in range(k + 1, n):
            put(W, a, i * n + j, get(T, W, a, i * n + j) - factor * get(T, W, a, k * n + j))
    return usable


@inline
def factor(T, W, a, m, n, b, right, pivots):
    """LU in the place of a, and the rows of b exchanged as those of a; gives ``info`` and the sign
    of the permutation. ``pivots``, if any, gets the rows, from 1."""
    info = vec[i32, W](0)
    sign = vec[T, W](1)
    for k in range(min(m, n)):
        row = find_pivot(T, W, a, k, m, n)
        if pivots is not None:
            put(W, pivots, k, row + vec[i32, W](1))
        exchange_rows(T, W, a, k, row, k + 1, m, n)
        if b is not None:
            exchange_rows(T, W, b, k, row, k + 1, m, right)
        sign = select(row == vec[i32, W](i32(k)), sign, -sign)
        usable = eliminate(T, W, a, k, m, n)
        missing = select(usable, vec[i32, W](0), vec[i32, W](i32(k) + 1))
        info = select(info == vec[i32, W](0), missing, info)
    return info, sign


# ----------------------------------------------------------------------------------------- bodies
@inline
def lu_tile(T, W, FLAGS, tile):
    """Operands: LU, pivots, info, then A. A zero pivot may be an error ("check")."""
    t = tile.task
    a = ptr[T](tile.space)
    pivots = ptr[i32](a + t.m * t.n * W)
    read(T, W, tile, 3, a, t.m, t.n)
    info, _ = factor(T, W, a, t.m, t.n, None, 0, pivots)
    if "check" in FLAGS:
        report(W, tile, info)
    write(T, W, tile, 0, a, t.m, t.n)
    write(i32, W, tile, 1, pivots, i64(1), min(t.m, t.n))
    write_vector(i32, W, tile, 2, info)


@inline
def solve_tile(T, W, FLAGS, tile):
    """Operands: X, info if FLAG has "info", A, then B, or none where X is the inverse.

    FLAG: words of "info", "inverse", "check".
    """
    t = tile.task
    n = t.n
    given = 2 if "info" in FLAGS else 1
    a = ptr[T](tile.space)
    b = a + n * n * W
    right = t.right + 0
    read(T, W, tile, given, a, n, n)
    if "inverse" in FLAGS:
        identity(T, W, b, n, n)
    else:
        read(T, W, tile, given + 1, b, n, right)
    info, _ = factor(T, W, a, n, n, b, right, None)
    if "check" in FLAGS:
        report(W, tile, info)
    substitute(T, W, a, n, i64(1), n, b, right, UPPER=False, UNIT=True)
    substitute(T, W, a, n, i64(1), n, b, right, UPPER=True, UNIT=False)
    write(T, W, tile, 0, b, n, right)
    if "info" in FLAGS:
        write_vector(i32, W, tile, 1, info)


@inline
def determinant_tile(T, W, FLAGS, tile):
    """Operands: the determinant (or its sign and its "logarithm"), then A."""
    t = tile.task
    n = t.n
    a = ptr[T](tile.space)
    read(T, W, tile, 2 if "logarithm" in FLAGS else 1, a, n, n)
    _, sign = factor(T, W, a, n, n, None, 0, None)
    # in double precision: products of many numbers leave the range of single precision
    logs = vec[f64, W](0)
    product = vec[f64, W](sign)
    for k in range(n):
        pivot = vec[f64, W](get(T, W, a, k * n + k))
        if "logarithm" in FLAGS:
            logs += log(fabs(pivot))
            turned = select(pivot < vec[f64, W](0), -product, product)
            product = select(pivot == vec[f64, W](0), vec[f64, W](0), turned)
        else:
            product = product * pivot
    write_vector(T, W, tile, 0, vec[T, W](product))
    if "logarithm" in FLAGS:
        write_vector(T, W, tile, 1, vec[T, W](logs))
