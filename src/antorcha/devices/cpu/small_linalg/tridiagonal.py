"""Eigenvalues of small symmetric matrices, through tridiagonal ones.

Reflectors on both sides make a matrix tridiagonal, and steps of the QL algorithm make that
diagonal, as tred2 and imtql2 of EISPACK do: Wilkinson and Reinsch, "Handbook for automatic
computation: linear algebra", 1971. A tile's matrices go on together until the slowest of them has
its next eigenvalue; one that has it already is left as it is.
"""

from __future__ import annotations

from antorcha.devices.cpu.small_linalg.common import (
    EPSILON,
    NOTHING,
    STEPS,
    scale_values,
    scaled_to_one,
    sort_values,
    take_rows,
    turn,
)
from antorcha.devices.cpu.small_linalg.reflectors import form_q_below, reflect_column
from antorcha.devices.cpu.small_linalg.tiles import (
    get,
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
    reduce_max,
    select,
    sqrt,
    vec,
)


@inline
def multiply_lower(T, W, a, n, start, v, w):
    """``w = A v`` for the rows from ``start`` on of a symmetric matrix, whose lower triangle lies
    column by column."""
    for i in range(start, n):
        put(W, w, i, vec[T, W](0))
    for j in range(start, n):
        column = a + j * n * W
        factor = get(T, W, v, j)
        total = get(T, W, column, j) * factor
        for i in range(j + 1, n):
            x = get(T, W, column, i)
            put(W, w, i, get(T, W, w, i) + x * factor)
            total += x * get(T, W, v, i)
        put(W, w, j, get(T, W, w, j) + total)


@inline
def tridiagonalize(T, W, a, n, d, e, taus, w):
    """The diagonal and the elements beside it of a matrix similar to that whose lower triangle lies
    column by column in a. Column k of a keeps reflector k, from row k + 1 on."""
    for k in range(n - 1):
        v = a + k * n * W
        put(W, d, k, get(T, W, v, k))
        tau = reflect_column(T, W, v + W, k, n - 1)
        put(W, taus, k, tau)
        put(W, e, k, get(T, W, v, k + 1))
        put(W, v, k + 1, vec[T, W](1))
        multiply_lower(T, W, a, n, k + 1, v, w)
        along = vec[T, W](0)
        for i in range(k + 1, n):
            along += get(T, W, w, i) * get(T, W, v, i)
        along = along * tau * tau * vec[T, W](0.5)
        for i in range(k + 1, n):
            put(W, w, i, tau * get(T, W, w, i) - along * get(T, W, v, i))
        for j in range(k + 1, n):
            column = a + j * n * W
            first = get(T, W, v, j)
            second = get(T, W, w, j)
            for i in range(j, n):
                change = get(T, W, v, i) * second + get(T, W, w, i) * first
                put(W, column, i, get(T, W, column, i) - change)
    put(W, d, n - 1, get(T, W, a, n * n - 1))
    put(W, e, n - 1, vec[T, W](0))


@inline
def find_block(T, W, d, e, start, n):
    """The last row of the block that begins at ``start``, the first after which the element beside
    the diagonal is nothing; and the diagonal's element there."""
    epsilon = vec[T, W](EPSILON[T.size] * EPSILON[T.size] / 4)
    last = vec[i32, W](i32(n) - 1)
    corner = get(T, W, d, n - 1)
    for back in range(n - 1 - start):
        i = n - 2 - back
        beside = get(T, W, e, i)
        here = get(T, W, d, i)
        least = epsilon * fabs(here) * fabs(get(T, W, d, i + 1)) + vec[T, W](NOTHING[T.size])
        joined = beside * beside > least
        last = select(joined, last, vec[i32, W](i32(i)))
        corner = select(joined, corner, here)
    return last, corner


@inline
def ql_step(T, W, d, e, v, n, start, last, corner, VECTORS):
    """A step of QL on the blocks from ``start`` to the row that each lane names; rows of v are
    turned along."""
    one = vec[T, W](1)
    zero = vec[T, W](0)
    going = last > vec[i32, W](i32(start))
    first = get(T, W, d, start)
    beside = get(T, W, e, start)
    g = (get(T, W, d, start + 1) - first) / (beside + beside)
    root = sqrt(g * g + one)
    g = corner - first + beside / (g + copysign(root, g))
    sin = one + zero
    cos = one + zero
    p = zero + zero
    top = i64(reduce_max(select(going, last, vec[i32, W](i32(start)))))
    for back in range(top - start):
        i = top - 1 - back
        on = going & (last > vec[i32, W](i32(i)))
        old = get(T, W, e, i)
        f = sin * old
        b = cos * old
        square = f * f + g * g
        some = square > vec[T, W](NOTHING[T.size])
        root = select(some, sqrt(square), zero)
        beyond = get(T, W, e, i + 1)
        kept = select(last == vec[i32, W](i32(i) + 1), zero, root)
        put(W, e, i + 1, select(on, kept, beyond))
        divisor = select(some, root, one)
        s = select(some, f, zero) / divisor
        c = select(some, g, one) / divisor
        lower = get(T, W, d, i + 1)
        above = lower - p
        r = (get(T, W, d, i) - above) * s + (c + c) * b
        sin = select(on, s, sin)
        cos = select(on, c, cos)
        p = select(on, s * r, p)
        put(W, d, i + 1, select(on, above + p, lower))
        g = select(on, c * r - b, g)
        if VECTORS:
            s = select(on, s, zero)
            c = select(on, c, one)
            for j in range(n):
                turn(T, W, v, i * n + j, (i + 1) * n + j, c, s)
    put(W, d, start, select(going, first - p, first))
    put(W, e, start, select(going, g, beside))


@inline
def diagonalize(T, W, d, e, v, n, VECTORS):
    """Makes a tridiagonal matrix diagonal; rows of v are turned along."""
    for start in range(n - 1):
        left = i64(STEPS)
        while left > 0:
            last, corner = find_block(T, W, d, e, start, n)
            left = left - 1 if reduce_any(last > vec[i32, W](i32(start))) else i64(0)
            if left > 0:
                ql_step(T, W, d, e, v, n, start, last, corner, VECTORS)


@inline
def eigen_tile(T, W, FLAGS, tile):
    """Operands: the eigenvalues, the eigenvectors unless FLAGS has "values", then A: its lower
    triangle, or "upper"."""
    t = tile.task
    n = t.n
    given = 1 if "values" in FLAGS else 2
    d = ptr[T](tile.space)
    e = d + n * W
    taus = e + n * W
    w = taus + n * W
    a = w + n * W
    v = a + n * n * W
    if "upper" in FLAGS:
        read(T, W, tile, given, a, n, n)
    else:
        read_columns(T, W, tile, given, a, n, n)
    beside = vec[T, W](0)
    for j in range(n):
        for i in range(j):
            put(W, a, j * n + i, vec[T, W](0))
        for i in range(j + 1, n):
            beside += fabs(get(T, W, a, j * n + i))
    scale, spoilt = scaled_to_one(T, W, a, n * n)
    spoilt = spoilt & (beside != vec[T, W](0))  # a diagonal has its values, whatever they are
    report(W, tile, select(spoilt, vec[i32, W](1), vec[i32, W](0)))
    tridiagonalize(T, W, a, n, d, e, taus, w)
    if "values" not in FLAGS:
        form_q_below(T, W, a, n, taus, v)
    diagonalize(T, W, d, e, v, n, VECTORS="values" not in FLAGS)
    order = ptr[i32](taus)
    sort_values(T, W, d, order, n, False)
    scale_values(T, W, d, n, scale)
    write(T, W, tile, 0, d, i64(1), n)
    if "values" not in FLAGS:
        take_rows(T, W, a, v, order, n, n)
        write_columns(T, W, tile, 1, a, n, n, n)
