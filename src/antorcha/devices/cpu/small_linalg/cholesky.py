"""Cholesky factors of small matrices."""

from __future__ import annotations

from antorcha.devices.cpu.small_linalg.tiles import get, put, read, report, write, write_vector
from antorcha.lang.native import i32, inline, ptr, select, sqrt, vec


@inline
def cholesky(T, W, a, n):
    """The lower factor in the place of a, whose upper triangle becomes zeros; gives ``info``.

    From the first minor that is not positive on, a matrix stays as it is, as LAPACK leaves it.
    """
    info = vec[i32, W](0)
    for j in range(n):
        rest = get(T, W, a, j * n + j)
        for k in range(j):
            known = get(T, W, a, j * n + k)
            rest -= known * known
        sound = info == vec[i32, W](0)
        failing = select(rest > vec[T, W](0), vec[i32, W](0), vec[i32, W](i32(j) + 1))
        info = select(sound, failing, info)
        going = info == vec[i32, W](0)
        root = sqrt(select(going, rest, vec[T, W](1)))
        kept = select(sound, rest, get(T, W, a, j * n + j))
        put(W, a, j * n + j, select(going, root, kept))
        for i in range(j + 1, n):
            put(W, a, j * n + i, vec[T, W](0))
            old = get(T, W, a, i * n + j)
            rest = old + vec[T, W](0)
            for k in range(j):
                rest -= get(T, W, a, i * n + k) * get(T, W, a, j * n + k)
            put(W, a, i * n + j, select(going, rest / root, old))
    return info


@inline
def cholesky_tile(T, W, FLAGS, tile):
    """Operands: the factor, info if FLAG has "info", then A. FLAG: words of "info", "check"."""
    t = tile.task
    a = ptr[T](tile.space)
    read(T, W, tile, 2 if "info" in FLAGS else 1, a, t.n, t.n)
    info = cholesky(T, W, a, t.n)
    if "check" in FLAGS:
        report(W, tile, info)
    write(T, W, tile, 0, a, t.n, t.n)
    if "info" in FLAGS:
        write_vector(i32, W, tile, 1, info)
