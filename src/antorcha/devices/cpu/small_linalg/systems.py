"""Small systems of equations whose matrices are factors already: triangular, Cholesky's, or LU; and
permutations."""

from __future__ import annotations

from antorcha.devices.cpu.small_linalg.tiles import exchange_rows, get, put, read, report, write
from antorcha.lang.native import i32, i64, inline, ptr, select, vec


@inline
def substitute(T, W, a, row, col, n, b, right, UPPER, UNIT):
    """The solutions of ``A x = b`` in the place of b. A is triangular, an "UPPER" or lower one,
    and its element (i, j) is vector ``i * row + j * col`` of a; an "UNIT" one has ones on its
    diagonal, which is not read."""
    for step in range(n):
        k = n - 1 - step if UPPER else step + 0
        if not UNIT:
            pivot = get(T, W, a, k * (row + col))
            for j in range(right):
                put(W, b, k * right + j, get(T, W, b, k * right + j) / pivot)
        for i in range(0 if UPPER else k + 1, k if UPPER else n):
            factor = get(T, W, a, i * row + k * col)
            for j in range(right):
                at = i * right + j
                put(W, b, at, get(T, W, b, at) - factor * get(T, W, b, k * right + j))


@inline
def triangular_tile(T, W, FLAGS, tile):
    """Operands: X, A, then B. FLAGS: words of "upper", "unit"."""
    t = tile.task
    n = t.n
    right = t.right
    a = ptr[T](tile.space)
    b = a + n * n * W
    read(T, W, tile, 1, a, n, n)
    read(T, W, tile, 2, b, n, right)
    substitute(T, W, a, n, i64(1), n, b, right, UPPER="upper" in FLAGS, UNIT="unit" in FLAGS)
    write(T, W, tile, 0, b, n, right)


@inline
def cholesky_solve_tile(T, W, FLAGS, tile):
    """Operands: X, B, then A's lower factor, or "upper" one."""
    t = tile.task
    n = t.n
    right = t.right
    a = ptr[T](tile.space)
    b = a + n * n * W
    read(T, W, tile, 1, b, n, right)
    read(T, W, tile, 2, a, n, n)
    row = i64(1) if "upper" in FLAGS else n + 0
    col = n + 1 - row
    substitute(T, W, a, row, col, n, b, right, UPPER=False, UNIT=False)
    substitute(T, W, a, col, row, n, b, right, UPPER=True, UNIT=False)
    write(T, W, tile, 0, b, n, right)


@inline
def check_pivots(W, tile, pivots, count, rows):
    """Reports matrices with a pivot that is no row, from 1."""
    wrong = vec[i32, W](0)
    for k in range(count):
        row = get(i32, W, pivots, k)
        none = (row < vec[i32, W](1)) | (row > vec[i32, W](i32(rows)))
        wrong = select(none, vec[i32, W](1), wrong)
    report(W, tile, wrong)


@inline
def permutation_tile(T, W, FLAGS, tile):
    """Operands: the permutation matrix, then the pivots."""
    t = tile.task
    n = t.n
    a = ptr[T](tile.space)
    order = ptr[i32](a + n * n * W)
    pivots = order + n * W
    read(i32, W, tile, 1, pivots, i64(1), t.right)
    check_pivots(W, tile, pivots, t.right, n)
    for i in range(n):
        put(W, order, i, vec[i32, W](i32(i)))
    for k in range(t.right):
        row = get(i32, W, pivots, k) - vec[i32, W](1)
        exchange_rows(i32, W, order, k, row, i64(0), n, i64(1))
    for i in range(n):
        for j in range(n):
            here = get(i32, W, order, j) == vec[i32, W](i32(i))
            put(W, a, i * n + j, select(here, vec[T, W](1), vec[T, W](0)))
    write(T, W, tile, 0, a, n, n)


@inline
def lu_solve_tile(T, W, FLAGS, tile):
    """Operands: X, A's LU factors, the pivots, then B. With "adjoint", A's transpose is A."""
    t = tile.task
    n = t.n
    right = t.right
    a = ptr[T](tile.space)
    b = a + n * n * W
    pivots = ptr[i32](b + n * right * W)
    read(T, W, tile, 1, a, n, n)
    read(i32, W, tile, 2, pivots, i64(1), n)
    read(T, W, tile, 3, b, n, right)
    check_pivots(W, tile, pivots, n, n)
    if "adjoint" in FLAGS:
        substitute(T, W, a, i64(1), n, n, b, right, UPPER=False, UNIT=False)
        substitute(T, W, a, i64(1), n, n, b, right, UPPER=True, UNIT=True)
    for step in range(n):
        k = n - 1 - step if "adjoint" in FLAGS else step + 0
        exchange_rows(T, W, b, k, get(i32, W, pivots, k) - vec[i32, W](1), i64(0), n, right)
    if "adjoint" not in FLAGS:
        substitute(T, W, a, n, i64(1), n, b, right, UPPER=False, UNIT=True)
        substitute(T, W, a, n, i64(1), n, b, right, UPPER=True, UNIT=False)
    write(T, W, tile, 0, b, n, right)
