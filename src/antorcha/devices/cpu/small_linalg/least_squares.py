"""Least squares of small matrices, by QR factors with exchanges of columns: Golub, "Numerical
methods for solving linear least squares problems", 1965."""

from __future__ import annotations

from antorcha.devices.cpu.small_linalg.common import invert_order, scaled_to_one, take_rows
from antorcha.devices.cpu.small_linalg.reflectors import reflect, reflect_column
from antorcha.devices.cpu.small_linalg.systems import substitute
from antorcha.devices.cpu.small_linalg.tiles import (
    exchange_rows,
    get,
    put,
    read,
    read_columns,
    write,
    write_columns,
)
from antorcha.lang.native import fabs, i32, i64, inline, ptr, select, vec


@inline
def find_column(T, W, a, k, m, n):
    """The column, from k on, that is longest from row k on, the first of equals."""
    best = vec[T, W](-1)
    column = vec[i32, W](i32(k))
    for j in range(k, n):
        total = vec[T, W](0)
        for i in range(k, m):
            x = get(T, W, a, j * m + i)
            total += x * x
        better = total > best
        best = select(better, total, best)
        column = select(better, vec[i32, W](i32(j)), column)
    return column


@inline
def factor_pivoted(T, W, a, m, n, taus, order):
    """The QR factors of A's columns in an ``order`` in which R's diagonal descends: R in the upper
    triangle of a, the reflectors below it."""
    for k in range(n):
        put(W, order, k, vec[i32, W](i32(k)))
    for k in range(n):
        column = find_column(T, W, a, k, m, n)
        exchange_rows(T, W, a, k, column, k + 1, n, m)
        exchange_rows(i32, W, order, k, column, k + 1, n, i64(1))
        x = a + k * m * W
        tau = reflect_column(T, W, x, k, m)
        put(W, taus, k, tau)
        reflect(T, W, x, k, m, tau, a, m, n, k + 1)


@inline
def turn_over(T, W, to, a, rows, cols, first, pitch):
    """Matrices that lie row by row from those column by column, or the other way: element (i, j),
    which is vector ``j * first + i`` of a, becomes vector ``i * pitch + j``."""
    for j in range(cols):
        for i in range(rows):
            put(W, to, i * pitch + j, get(T, W, a, j * first + i))


@inline
def least_squares_tile(T, W, FLAGS, tile):
    """Operands: X, the sizes of R's diagonal, A, then B. Of a "wide" A the transpose is factored,
    whose m is not less than n, and X is the shortest there is."""
    t = tile.task
    m = t.m
    n = t.n
    right = t.right
    a = ptr[T](tile.space)
    taus = a + m * n * W
    order = ptr[i32](taus + n * W)
    places = ptr[i32](taus + 2 * n * W)
    columns = taus + 3 * n * W  # of B, or of X, m by right
    rows = columns + m * right * W  # n by right
    moved = rows + n * right * W
    if "wide" in FLAGS:
        read(T, W, tile, 2, a, n, m)
        read(T, W, tile, 3, moved, n, right)
    else:
        read_columns(T, W, tile, 2, a, m, n)
        read_columns(T, W, tile, 3, columns, m, right)
    scale, _ = scaled_to_one(T, W, a, m * n)
    factor_pivoted(T, W, a, m, n, taus, order)
    if "wide" in FLAGS:
        take_rows(T, W, rows, moved, order, n, right)
        substitute(T, W, a, m, i64(1), n, rows, right, UPPER=False, UNIT=False)
        for j in range(right):
            for i in range(n, m):
                put(W, columns, j * m + i, vec[T, W](0))
        turn_over(T, W, columns, rows, right, n, right, m)
    for step in range(n):
        k = n - 1 - step if "wide" in FLAGS else step + 0
        reflect(T, W, a + k * m * W, k, m, get(T, W, taus, k), columns, m, right, i64(0))
    if "wide" in FLAGS:
        for k in range(m * right):
            put(W, columns, k, get(T, W, columns, k) / scale)
        write_columns(T, W, tile, 0, columns, m, m, right)
    else:
        turn_over(T, W, rows, columns, n, right, m, right)
        substitute(T, W, a, i64(1), m, n, rows, right, UPPER=True, UNIT=False)
        for k in range(n * right):
            put(W, rows, k, get(T, W, rows, k) / scale)
        invert_order(W, places, order, n)
        take_rows(T, W, moved, rows, places, n, right)
        write(T, W, tile, 0, moved, n, right)
    for k in range(n):
        put(W, taus, k, fabs(get(T, W, a, k * m + k)) * scale)
    write(T, W, tile, 1, taus, i64(1), n)
