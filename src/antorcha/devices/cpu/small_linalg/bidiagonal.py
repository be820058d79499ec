"""Singular values of small matrices, through bidiagonal ones.

Reflectors on either side make a matrix bidiagonal; steps of Golub and Kahan's algorithm make that
diagonal: Golub and Van Loan, "Matrix computations", 8.6. A tile's matrices go on together until the
slowest of them has its next value; one that has it already is left as it is. What is less than a
part of the rounding of the greatest element counts as zero.
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
from antorcha.devices.cpu.small_linalg.reflectors import (
    form_q,
    form_q_below,
    reflect,
    reflect_column,
)
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
    reduce_min,
    select,
    sqrt,
    vec,
)


@inline
def reflect_rows(T, W, a, m, n, k, v, tau, w):
    """Applies a reflector, whose elements from k + 1 on are in v, to the rows of a below row k."""
    put(W, v, k + 1, vec[T, W](1))
    for i in range(k + 1, m):
        put(W, w, i, vec[T, W](0))
    for j in range(k + 1, n):
        factor = get(T, W, v, j)
        for i in range(k + 1, m):
            put(W, w, i, get(T, W, w, i) + factor * get(T, W, a, j * m + i))
    for j in range(k + 1, n):
        factor = tau * get(T, W, v, j)
        for i in range(k + 1, m):
            put(W, a, j * m + i, get(T, W, a, j * m + i) - factor * get(T, W, w, i))


@inline
def bidiagonalize(T, W, a, m, n, rows, d, e, taus, row_taus, w):
    """The diagonal and what is above it of ``Q^T A P``. Column k of a keeps reflector k of Q, and
    row k of ``rows`` that of P, from its element k + 1 on."""
    for k in range(n):
        tau = reflect_column(T, W, a + k * m * W, k, m)
        put(W, taus, k, tau)
        put(W, d, k, get(T, W, a, k * m + k))
        put(W, e, k, vec[T, W](0))
        reflect(T, W, a + k * m * W, k, m, tau, a, m, n, k + 1)
        if k + 1 < n:
            v = rows + k * n * W
            for j in range(k + 1, n):
                put(W, v, j, get(T, W, a, j * m + k))
            row_tau = reflect_column(T, W, v, k + 1, n)
            put(W, row_taus, k, row_tau)
            put(W, e, k, get(T, W, v, k + 1))
            reflect_rows(T, W, a, m, n, k, v, row_tau, w)


@inline
def rotate(T, W, x, y):
    """The (cos, sin) that turn (x, y) to (size, 0), and the size."""
    square = x * x + y * y
    some = square > vec[T, W](NOTHING[T.size])
    size = select(some, sqrt(square), vec[T, W](0))
    divisor = select(some, size, vec[T, W](1))
    cos = select(some, x, vec[T, W](1)) / divisor
    return cos, select(some, y, vec[T, W](0)) / divisor, size


@inline
def shift_of(T, W, d, e, start, end):
    """The eigenvalue of the last two rows of ``B^T B`` that is nearest to its last element."""
    before = get(T, W, d, end - 1)
    above = vec[T, W](0)
    if end > 1:
        joined = start < vec[i32, W](i32(end) - 1)
        above = select(joined, get(T, W, e, end - 2), above)
    beside = get(T, W, e, end - 1)
    last = get(T, W, d, end)
    low = last * last + beside * beside
    between = before * beside
    half = (before * before + above * above - low) * vec[T, W](0.5)
    square = between * between
    divisor = half + copysign(sqrt(half * half + square), half)
    some = divisor != vec[T, W](0)
    quotient = select(some, square, vec[T, W](0)) / select(some, divisor, vec[T, W](1))
    return low - quotient


@inline
def golub_kahan_step(T, W, d, e, u, v, m, n, start, end, VECTORS):
    """A step on the blocks from the row that each lane names to ``end``; columns of u and of v are
    turned along."""
    going = start < vec[i32, W](i32(end))
    shift = shift_of(T, W, d, e, start, end)
    y = vec[T, W](0)
    z = vec[T, W](0)
    top = i64(reduce_min(select(going, start, vec[i32, W](i32(end)))))
    for k in range(top, end):
        on = going & (start < vec[i32, W](i32(k) + 1))
        first = start == vec[i32, W](i32(k))
        here = get(T, W, d, k)
        beside = get(T, W, e, k)
        below = get(T, W, d, k + 1)
        y = select(first, here - shift / select(on, here, vec[T, W](1)), y)
        z = select(first, beside, z)
        cos, sin, size = rotate(T, W, y, z)
        if k > 0:
            put(W, e, k - 1, select(on & (start != vec[i32, W](i32(k))), size, get(T, W, e, k - 1)))
        left = cos * here + sin * beside
        crossed = cos * beside - sin * here
        bulge = sin * below
        lower = cos * below
        cos2, sin2, size2 = rotate(T, W, left, bulge)
        put(W, d, k, select(on, size2, here))
        y = cos2 * crossed + sin2 * lower
        put(W, e, k, select(on, y, beside))
        put(W, d, k + 1, select(on, cos2 * lower - sin2 * crossed, below))
        if k + 1 < end:
            next_ = get(T, W, e, k + 1)
            z = sin2 * next_
            put(W, e, k + 1, select(on, cos2 * next_, next_))
        if VECTORS:
            one = vec[T, W](1)
            zero = vec[T, W](0)
            for i in range(m):
                turn(T, W, u, k * m + i, (k + 1) * m + i, select(on, cos2, one),
                     select(on, -sin2, zero))  # fmt: skip
            for i in range(n):
                turn(T, W, v, k * n + i, (k + 1) * n + i, select(on, cos, one),
                     select(on, -sin, zero))  # fmt: skip


@inline
def diagonalize_bidiagonal(T, W, d, e, u, v, m, n, VECTORS):
    """Makes a bidiagonal matrix diagonal; columns of u and of v are turned along."""
    least = vec[T, W](0)
    for k in range(n):
        least = max(least, max(fabs(get(T, W, d, k)), fabs(get(T, W, e, k))))
    least = least * vec[T, W](EPSILON[T.size] / 16)
    for back in range(n - 1):
        end = n - 1 - back
        left = i64(STEPS)
        while left > 0:
            start = vec[i32, W](0)
            for k in range(end):
                joined = fabs(get(T, W, e, k)) > least
                start = select(joined, start, vec[i32, W](i32(k) + 1))
            going = start < vec[i32, W](i32(end))
            left = left - 1 if reduce_any(going) else i64(0)
            if left > 0:
                for k in range(end + 1):  # a zero would keep the shift from reaching the end
                    x = get(T, W, d, k)
                    lost = going & (start < vec[i32, W](i32(k) + 1)) & (fabs(x) < least)
                    put(W, d, k, select(lost, copysign(least, x), x))
                golub_kahan_step(T, W, d, e, u, v, m, n, start, end, VECTORS)


@inline
def make_positive(T, W, d, v, n, VECTORS):
    """The values' signs go over to the columns of v."""
    for k in range(n):
        x = get(T, W, d, k)
        put(W, d, k, fabs(x))
        if VECTORS:
            for i in range(n):
                element = get(T, W, v, k * n + i)
                put(W, v, k * n + i, select(x < vec[T, W](0), -element, element))


@inline
def singular_tile(T, W, FLAGS, tile):
    """Operands: U, the singular values and V^T, or the "values" alone, then A. A "wide" A is worked
    on as its transpose, whose m is not less than n."""
    t = tile.task
    m = t.m
    n = t.n
    given = 1 if "values" in FLAGS else 3
    d = ptr[T](tile.space)
    e = d + n * W
    taus = e + n * W
    row_taus = taus + n * W
    w = row_taus + n * W
    a = w + m * W
    rows = a + m * n * W
    v = rows + n * n * W
    u = v + n * n * W
    if "wide" in FLAGS:
        read(T, W, tile, given, a, n, m)
    else:
        read_columns(T, W, tile, given, a, m, n)
    scale, spoilt = scaled_to_one(T, W, a, m * n)
    report(W, tile, select(spoilt, vec[i32, W](1), vec[i32, W](0)))
    bidiagonalize(T, W, a, m, n, rows, d, e, taus, row_taus, w)
    if "values" not in FLAGS:
        form_q(T, W, a, m, n, taus, u, t.right)
        form_q_below(T, W, rows, n, row_taus, v)
    diagonalize_bidiagonal(T, W, d, e, u, v, m, n, VECTORS="values" not in FLAGS)
    make_positive(T, W, d, v, n, VECTORS="values" not in FLAGS)
    order = ptr[i32](taus)
    sort_values(T, W, d, order, n, True)
    scale_values(T, W, d, n, scale)
    if "values" in FLAGS:
        write(T, W, tile, 0, d, i64(1), n)
    else:
        write(T, W, tile, 1, d, i64(1), n)
        take_rows(T, W, a, u, order, n, m)
        for k in range(m * n):
            put(W, u, k, get(T, W, a, k))
        take_rows(T, W, rows, v, order, n, n)
        if "wide" in FLAGS:
            write(T, W, tile, 2, u, t.right, m)
            write_columns(T, W, tile, 0, rows, n, n, n)
        else:
            write_columns(T, W, tile, 0, u, m, m, t.right)
            write(T, W, tile, 2, rows, n, n)
