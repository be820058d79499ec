"""QR factors of small matrices by Householder's reflectors, with LAPACK's signs.

Matrices lie column by column: element (i, j) of an m by n matrix is vector ``j * m + i``.
"""

from __future__ import annotations

from antorcha.devices.cpu.small_linalg.tiles import (
    get,
    identity,
    put,
    read,
    read_columns,
    write,
    write_columns,
)
from antorcha.devices.math.base import words
from antorcha.lang.native import bitcast, copysign, fabs, i64, inline, ptr, select, sqrt, vec

EXPONENT = {4: 0x7F80_0000, 8: 0x7FF0_0000_0000_0000}
"""The exponent's bits of a float of so many bytes."""
LEAST = {4: 0x0080_0000, 8: 0x0010_0000_0000_0000}
"""The bits of the least normal number."""


@inline
def power_below(T, W, size):
    """The greatest power of two up to a size (which is not negative), or the least normal one:
    multiplying and dividing by it is exact."""
    U = words(size)
    bits = bitcast(U, size) & U(EXPONENT[T.size])
    least = U(LEAST[T.size])
    return bitcast(vec[T, W], select(bits > least, bits, least))


@inline
def reflect_column(T, W, x, k, m):
    """Makes the reflector that clears a column of m elements below element k, in its place; gives
    tau."""
    alpha = get(T, W, x, k)
    below = vec[T, W](0)
    for i in range(k + 1, m):
        below = max(below, fabs(get(T, W, x, i)))
    scale = power_below(T, W, max(below, fabs(alpha)))
    inverse = vec[T, W](1) / scale
    total = vec[T, W](0)
    for i in range(k + 1, m):
        part = get(T, W, x, i) * inverse
        total += part * part
    head = alpha * inverse
    beta = copysign(sqrt(head * head + total), -alpha)
    # a column that is clear already is left as it is; one with a NaN is not
    clear = (below == vec[T, W](0)) & (total == vec[T, W](0))
    tau = select(clear, vec[T, W](0), (beta - head) / beta)
    rest = select(clear, vec[T, W](1), head - beta)
    for i in range(k + 1, m):
        put(W, x, i, get(T, W, x, i) * inverse / rest)
    put(W, x, k, select(clear, alpha, beta * scale))
    return tau


@inline
def reflect(T, W, v, k, m, tau, x, pitch, cols, start):
    """Applies reflector k, whose column is v, to the columns of x from ``start`` on; these lie
    ``pitch`` vectors apart."""
    for j in range(start, cols):
        y = x + j * pitch * W
        total = get(T, W, y, k)
        for i in range(k + 1, m):
            total += get(T, W, v, i) * get(T, W, y, i)
        total = total * tau
        put(W, y, k, get(T, W, y, k) - total)
        for i in range(k + 1, m):
            put(W, y, i, get(T, W, y, i) - total * get(T, W, v, i))


@inline
def factor_qr(T, W, a, m, n, taus):
    """R in the upper triangle of a, the reflectors below it."""
    for k in range(min(m, n)):
        tau = reflect_column(T, W, a + k * m * W, k, m)
        put(W, taus, k, tau)
        reflect(T, W, a + k * m * W, k, m, tau, a, m, n, k + 1)


@inline
def reflect_all(T, W, a, m, count, taus, q, pitch, cols):
    """Applies reflectors, the last first, to the first columns of an identity matrix."""
    for back in range(count):
        k = count - 1 - back
        reflect(T, W, a + k * pitch * W, k, m, get(T, W, taus, k), q, pitch, cols, k)


@inline
def form_q(T, W, a, m, count, taus, q, cols):
    """The first columns of the product of so many reflectors."""
    identity(T, W, q, cols, m)
    reflect_all(T, W, a, m, count, taus, q, m, cols)


@inline
def form_q_below(T, W, a, n, taus, q):
    """The product of n - 1 reflectors that leave the first of n elements alone: column k of a has
    number k from row k + 1 on."""
    identity(T, W, q, n, n)
    reflect_all(T, W, a + W, n - 1, n - 1, taus, q + (n + 1) * W, n, n - 1)


@inline
def qr_tile(T, W, FLAGS, tile):
    """Operands: Q, R, then A. Q may be unwanted (no "q"); it has as many columns as R has rows."""
    t = tile.task
    m = t.m
    n = t.n
    a = ptr[T](tile.space)
    taus = a + m * n * W
    read_columns(T, W, tile, 2, a, m, n)
    factor_qr(T, W, a, m, n, taus)
    if "q" in FLAGS:
        q = taus + min(m, n) * W
        form_q(T, W, a, m, min(m, n), taus, q, t.right)
        write_columns(T, W, tile, 0, q, m, m, t.right)
    for j in range(n):
        for i in range(j + 1, t.right):
            put(W, a, j * m + i, vec[T, W](0))
    write_columns(T, W, tile, 1, a, m, t.right, n)


@inline
def reflectors_tile(T, W, FLAGS, tile):
    """Operands: R and the reflectors in one matrix, the reflectors' factors, then A."""
    t = tile.task
    m = t.m
    n = t.n
    a = ptr[T](tile.space)
    taus = a + m * n * W
    read_columns(T, W, tile, 2, a, m, n)
    factor_qr(T, W, a, m, n, taus)
    write_columns(T, W, tile, 0, a, m, m, n)
    write(T, W, tile, 1, taus, i64(1), min(m, n))


@inline
def product_tile(T, W, FLAGS, tile):
    """Operands: the first columns of the product, the reflectors, then their factors."""
    t = tile.task
    m = t.m
    n = t.n
    a = ptr[T](tile.space)
    q = a + m * n * W
    taus = q + m * n * W
    read_columns(T, W, tile, 1, a, m, n)
    read(T, W, tile, 2, taus, i64(1), t.right)
    form_q(T, W, a, m, t.right, taus, q, n)
    write_columns(T, W, tile, 0, q, m, m, n)


@inline
def reflected_tile(T, W, FLAGS, tile):
    """Operands: ``Q C``, the reflectors, their factors, then C. FLAGS: words of "adjoint", "right",
    where C and ``C Q`` are their transposes."""
    t = tile.task
    m = t.m
    a = ptr[T](tile.space)
    taus = a + m * t.n * W
    count = min(m, t.n)
    c = taus + count * W
    read_columns(T, W, tile, 1, a, m, t.n)
    read(T, W, tile, 2, taus, i64(1), count)
    if "right" in FLAGS:
        read(T, W, tile, 3, c, t.right, m)
    else:
        read_columns(T, W, tile, 3, c, m, t.right)
    for step in range(count):
        # the transpose of C Q is the adjoint of Q times that of C
        k = step + 0 if ("adjoint" in FLAGS) != ("right" in FLAGS) else count - 1 - step
        reflect(T, W, a + k * m * W, k, m, get(T, W, taus, k), c, m, t.right, i64(0))
    if "right" in FLAGS:
        write(T, W, tile, 0, c, t.right, m)
    else:
        write_columns(T, W, tile, 0, c, m, m, t.right)
