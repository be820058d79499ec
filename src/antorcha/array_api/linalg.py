"""Linear algebra of the array API standard: matrices and their products.

See https://data-apis.org/array-api/latest/extensions/linear_algebra_functions.html.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from antorcha.array_api.arrays import axes_of, like, operands, plain
from antorcha.array_api.elementwise import matmul
from antorcha.array_api.manipulation import matrix_transpose
from antorcha.array_api.statistics import sum as array_sum
from antorcha.core import shapes
from antorcha.core.dtypes import finfo
from antorcha.errors import ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

_SAME = ("det", "eigvals", "eigvalsh", "inv", "svdvals")


class EigenResult(NamedTuple):
    """What ``eig`` and ``eigh`` give."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """What ``qr`` gives."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """What ``slogdet`` gives."""

    sign: Any
    logabsdet: Any


class SVDResult(NamedTuple):
    """What ``svd`` gives."""

    U: Any
    S: Any
    Vh: Any


def _of_matrices(name: str) -> Callable[..., Any]:
    op = f"linalg_{name}"

    def function(x: Any, /) -> Any:
        return like(getattr(T, op)(plain(x)), x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(T, op).__doc__
    return function


globals().update({name: _of_matrices(name) for name in _SAME})


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factors of positive definite matrices."""
    return like(T.linalg_cholesky(plain(x), upper=upper), x)


def eig(x: Any, /) -> Any:
    """The eigenvalues and eigenvectors of square matrices, complex."""
    return like(EigenResult(*T.linalg_eig(plain(x))), x)


def eigh(x: Any, /) -> Any:
    """The eigenvalues and eigenvectors of symmetric (or Hermitian) matrices."""
    return like(EigenResult(*T.linalg_eigh(plain(x))), x)


def slogdet(x: Any, /) -> Any:
    """The sign of the determinants, and the logarithms of their absolute values."""
    return like(SlogdetResult(*T.linalg_slogdet(plain(x))), x)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross products of vectors of three elements along an axis."""
    a, b = operands("cross", x1, x2)
    if a._layout.shape[axis] != 3 or b._layout.shape[axis] != 3:
        raise ShapeError(
            f"cross: vectors of 3 elements are wanted along axis {axis}, not "
            f"{tuple(a._layout.shape)} and {tuple(b._layout.shape)}"
        )
    return like(T.linalg_cross(*T.broadcast_tensors(a, b), dim=axis), x1, x2)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of a stack of matrices."""
    return like(T.diagonal(plain(x), offset, -2, -1), x)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norms of a stack of matrices."""
    order = "fro" if ord is None else ord
    return like(T.linalg_matrix_norm(plain(x), order, (-2, -1), keepdims), x)


def matrix_power(x: Any, n: int, /) -> Any:
    """The n-th powers of square matrices."""
    return like(T.matrix_power(plain(x), n), x)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """How many singular values are larger than ``rtol`` times the largest."""
    if x._layout.ndim < 2:
        raise ShapeError(f"matrix_rank: 2 dims and more are wanted, not {tuple(x.shape)}")
    values = T.linalg_svdvals(plain(x))
    if rtol is None:
        rtol = max(x._layout.shape[-2:]) * finfo(values._layout.dtype).eps
    elif isinstance(rtol, Tensor):
        rtol = T.unsqueeze(plain(rtol), -1)
    least = T.mul(T.amax(values, -1, True), rtol) if values._layout.shape[-1] else values
    return like(T.sum(T.gt(values, least), -1), x)


def outer(x1: Any, x2: Any, /) -> Any:
    """The products of each element of a vector with each of another."""
    return like(T.outer(*operands("outer", x1, x2)), x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverses of a stack of matrices."""
    if rtol is None:
        real = x._layout.dtype.to_real()
        rtol = max(x._layout.shape[-2:]) * finfo(real).eps
    if not isinstance(rtol, Tensor):
        return like(T.linalg_pinv(plain(x), rtol=rtol), x)
    u, s, vh = T.linalg_svd(plain(x), False)
    most = T.amax(s, -1, True) if s._layout.shape[-1] else s
    kept = T.gt(s, T.mul(most, T.unsqueeze(plain(rtol), -1)))
    inverse = T.where(kept, T.reciprocal(T.where(kept, s, 1)), 0)
    v, uh = [T.conj(T.transpose(each, -2, -1)) for each in (vh, u)]
    return like(T.matmul(T.mul(v, T.unsqueeze(inverse, -2)), uh), x)


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """Orthogonal and triangular factors of matrices."""
    return like(QRResult(*T.linalg_qr(plain(x), mode)), x)


def solve(x1: Any, x2: Any, /) -> Any:
    """The x with ``x1 @ x = x2``; a vector ``x2`` is one, a larger array holds matrices.

    >>> xp.linalg.solve(xp.asarray([[2., 0.], [0., 4.]]), xp.asarray([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    a, b = operands("solve", x1, x2)
    if b._layout.ndim == 1:
        return like(T.squeeze(T.linalg_solve(a, T.unsqueeze(b, -1)), -1), x1, x2)
    shape = shapes.broadcast_shapes(a._layout.shape[:-2], b._layout.shape[:-2])
    wide = T.broadcast_to(b, (*shape, *b._layout.shape[-2:]))
    square = T.broadcast_to(a, (*shape, *a._layout.shape[-2:]))
    return like(T.linalg_solve(square, wide), x1, x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    """The singular value decompositions of a stack of matrices: (U, S, Vh)."""
    return like(SVDResult(*T.linalg_svd(plain(x), full_matrices)), x)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """The products of two arrays, summed over axes: the last of one with the first of the other, or
    those that are named."""
    a, b = operands("tensordot", x1, x2)
    named = axes if isinstance(axes, int) else tuple([list(each) for each in axes])
    return like(T.tensordot(a, b, named), x1, x2)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of a stack of matrices."""
    return array_sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The dot products of vectors along an axis; those of the first are conjugated."""
    a, b = operands("vecdot", x1, x2)
    if a._layout.shape[axis] != b._layout.shape[axis]:
        raise ShapeError(
            f"vecdot: {tuple(a._layout.shape)} and {tuple(b._layout.shape)} have other sizes along "
            f"axis {axis}"
        )
    a, b = [T.movedim(each, axis, -1) for each in (a, b)]
    return like(T.sum(T.mul(T.conj(a), b), -1, dtype=a._layout.dtype), x1, x2)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    """The norms of vectors along axes: of all elements where none is named."""
    if axis == ():
        return like(T.to_dtype(T.ne(plain(x), 0), x._layout.dtype) if ord == 0 else
                    T.abs(plain(x)), x)  # fmt: skip
    return like(T.linalg_vector_norm(plain(x), ord, axes_of(axis), keepdims), x)


__all__ = [
    *_SAME, "cholesky", "cross", "diagonal", "eig", "eigh", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
