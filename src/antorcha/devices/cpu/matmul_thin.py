"""Products of few rows: nothing is packed, since nearly all time goes into reading B once.

A vector times a matrix (a layer that gets one example, a model that writes a word at a time), or a
matrix times a vector, does two operations for every number that it reads. So B is read in the order
in which it lies, by rows (``by_rows``) or by columns (``by_dots``), and as many results are on
their way at a time as registers allow: each waits for its own last step only.
"""

from __future__ import annotations

from antorcha.lang.native import (
    f64,
    first,
    fma,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    reduce_add,
    static,
    vec,
    vload,
    void,
    vstore,
)

THIN = 4  # rows at most
DEEP = 4096  # terms of a sum that are added up apart from the others
STRIP = 1024  # columns whose sums are in the nearest cache
CASCADE = 16  # products added up in a lane, before the sum joins the others


@inline
def scale_of(number, T):
    """``alpha`` or ``beta`` as a number of type T."""
    return T(number) if T.kind == "f" else T(i64(number))


@inline
def dots(m, n, k, A, a_row, B, b_col, C, c_row, c_col, alpha, add, S, rows, cols):
    """The products of ``rows`` rows with ``cols`` columns that lie one after another; beyond m and
    n the last ones are computed again."""
    L = static(S.L)
    a = [A + min(i64(q), m - 1) * a_row for q in static(range(rows))]
    b = [B + min(i64(w), n - 1) * b_col for w in static(range(cols))]
    acc = [vec[S.T, S.L](0) for _ in static(range(rows * cols))]
    whole = k // L * L
    for p in range(0, whole, L):
        left = [vload(a[q] + p, L) for q in static(range(rows))]
        for w in static(range(cols)):
            right = vload(b[w] + p, L)
            for q in static(range(rows)):
                acc[q * cols + w] = fma(left[q], right, acc[q * cols + w])
    if whole < k:
        few = first(L, k - whole)
        left = [vload(a[q] + whole, L, few) for q in static(range(rows))]
        for w in static(range(cols)):
            right = vload(b[w] + whole, L, few)
            for q in static(range(rows)):
                acc[q * cols + w] = fma(left[q], right, acc[q * cols + w])
    for q in static(range(rows)):
        for w in static(range(cols)):
            if q < m and w < n:
                result = reduce_add(acc[q * cols + w]) * scale_of(alpha, S.T)
                to = C + (q * c_row + w * c_col)
                to[0] = to[0] + result if add else result


@inline
def all_dots(m, n, k, A, a_row, B, b_col, C, c_row, c_col, alpha, add, S, rows, cols):
    for j in range(0, n, cols):
        for p in range(0, k, DEEP):
            dots(
                m, n - j, min(k - p, DEEP), A + p, a_row, B + (j * b_col + p), b_col,
                C + j * c_col, c_row, c_col, alpha, add or p > 0, S, rows, cols,
            )  # fmt: skip


@inline
def one_dot(k, a, b, S):
    """The product of two vectors: a sum of sums, each by eight vectors of lanes."""
    L = static(S.L)
    total = vec[S.T, S.L](0)
    for block in range(0, k, 8 * CASCADE * L):
        end = min(block + 8 * CASCADE * L, k)
        acc = [vec[S.T, S.L](0) for _ in static(range(8))]
        whole = block + (end - block) // (8 * L) * (8 * L)
        for p in range(block, whole, 8 * L):
            for i in static(range(8)):
                acc[i] = fma(vload(a + (p + i * L), L), vload(b + (p + i * L), L), acc[i])
        for i in static(range(8)):
            few = first(L, end - (whole + i * L))
            left = vload(a + (whole + i * L), L, few)
            acc[i] = fma(left, vload(b + (whole + i * L), L, few), acc[i])
        for apart in static((4, 2, 1)):
            for i in static(range(apart)):
                acc[i] = acc[i] + acc[i + apart]
        total = total + acc[0]
    return reduce_add(total)


@native(export=True)
def by_dots(
    m: i64, n: i64, k: i64, A: raw, a_row: i64, B: raw, b_col: i64, C: raw, c_row: i64, c_col: i64,
    alpha: f64, add: bool, *, S,
) -> void:  # fmt: skip
    """Few rows times a matrix whose columns lie one after another, as ``x @ w.t()``."""
    a = ptr[S.T](A)
    b = ptr[S.T](B)
    c = ptr[S.T](C)
    if m == 1 and n == 1:
        result = one_dot(k, a, b, S) * scale_of(alpha, S.T)
        c[0] = c[0] + result if add else result
    elif m == 1:
        all_dots(m, n, k, a, a_row, b, b_col, c, c_row, c_col, alpha, add, S, 1, 8)
    elif m == 2:
        all_dots(m, n, k, a, a_row, b, b_col, c, c_row, c_col, alpha, add, S, 2, S.WIDE)
    else:
        all_dots(m, n, k, a, a_row, b, b_col, c, c_row, c_col, alpha, add, S, 4, S.WIDE // 2)


@inline
def some_rows(m, n, A, a_row, a_col, b, b_row, C, c_row, alpha, add, S, rows, deep):
    """Adds what ``deep`` rows of B give."""
    L = static(S.L)
    left = [
        vec[S.T, S.L](A[min(i64(q), m - 1) * a_row + p * a_col] * scale_of(alpha, S.T))
        for q in static(range(rows)) for p in static(range(deep))
    ]  # fmt: skip
    for j in range(0, n, L):
        few = first(L, n - j)
        right = [vload(b + p * b_row + j, L, few) for p in static(range(deep))]
        for q in static(range(rows)):
            if q < m:
                to = C + q * c_row + j
                acc = left[q * deep] * right[0]
                for p in static(range(1, deep)):
                    acc = fma(left[q * deep + p], right[p], acc)
                vstore(to, vload(to, L, few) + acc if add else acc, few)


@inline
def all_rows(m, n, k, A, a_row, a_col, b, b_row, C, c_row, alpha, add, S, rows, deep):
    """A strip of columns; where k is large, sums of sums."""
    part_row = static(STRIP)
    part = local(S.T, rows * STRIP)
    block_rows(
        m, n, min(k, DEEP // 8), A, a_row, a_col, b, b_row, C, c_row, alpha, add, S, rows, deep
    )
    for p in range(DEEP // 8, k, DEEP // 8):
        block_rows(
            m, n, min(k - p, DEEP // 8), A + p * a_col, a_row, a_col, b + p * b_row, b_row, part,
            i64(STRIP), alpha, False, S, rows, deep,
        )  # fmt: skip
        for q in range(m):
            for j in range(n):
                C[q * c_row + j] += part[q * part_row + j]


@inline
def block_rows(m, n, k, A, a_row, a_col, b, b_row, C, c_row, alpha, add, S, rows, deep):
    p = i64(0)
    while k - p >= deep:
        some_rows(
            m, n, A + p * a_col, a_row, a_col, b + p * b_row, b_row, C, c_row, alpha, add or p > 0,
            S, rows, deep,
        )  # fmt: skip
        p += deep
    while p < k:
        some_rows(
            m, n, A + p * a_col, a_row, a_col, b + p * b_row, b_row, C, c_row, alpha, add or p > 0,
            S, rows, 1,
        )  # fmt: skip
        p += 1


@native(export=True)
def by_rows(
    m: i64, n: i64, k: i64, A: raw, a_row: i64, a_col: i64, B: raw, b_row: i64, C: raw, c_row: i64,
    alpha: f64, add: bool, *, S,
) -> void:  # fmt: skip
    """Few rows times a large matrix that lies by rows: the results stay in the nearest cache."""
    a = ptr[S.T](A)
    b = ptr[S.T](B)
    c = ptr[S.T](C)
    for j in range(0, n, STRIP):
        few = min(n - j, STRIP)
        if m == 1:
            all_rows(m, few, k, a, a_row, a_col, b + j, b_row, c + j, c_row, alpha, add, S, 1, 8)
        else:
            all_rows(
                m, few, k, a, a_row, a_col, b + j, b_row, c + j, c_row, alpha, add, S, 4,
                S.WIDE // 2,
            )  # fmt: skip
