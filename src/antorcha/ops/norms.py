"""Norms, ranks and distances of matrices, and the cross product. All are made of other ops."""

from __future__ import annotations

import math

from antorcha.core import dtypes
from antorcha.core.lazy import np
from antorcha.core.shapes import broadcast_shapes, normalize_dim, normalize_dims
from antorcha.errors import DtypeError, ShapeError
from antorcha.ops.kinds.lapack import check_float, check_matrix, check_square
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import (
    Any,
    Bool,
    Dim,
    Dims,
    Dtype,
    Float,
    Int,
    Ints,
    OptInt,
    Str,
    Tensor,
)
from antorcha.runtime.tensor import Tensor as TensorType

LINALG = "linalg"


@composite(name="linalg_matrix_norm", namespace=LINALG)
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Ints = (-2, -1), keepdim: Bool = False, *, dtype: Dtype = None
):
    """A norm of matrices: "fro", "nuc", inf, -inf, 1, -1, 2 or -2.

    >>> torch.linalg.matrix_norm(torch.tensor([[3., 0.], [0., 4.]]))
    tensor(5.)
    """
    layout = A._layout
    op = "linalg.matrix_norm"
    if layout.ndim < 2:
        raise ShapeError(f"{op}: The input tensor A must have at least 2 dimensions.")
    check_float(op, layout, half=True)
    if len(dim) != 2:
        raise ShapeError(f"{op}: dim must be a 2-tuple. Got {dim}")
    row, column = normalize_dims(dim, layout.ndim, op=op)
    A = A if dtype is None else T.to_dtype(A, dtype)
    if ord == "fro":
        return T.linalg_vector_norm(A, 2, (row, column), keepdim)
    if ord in ("nuc", 2, -2, 2.0, -2.0):
        values = T.linalg_svdvals(T.movedim(A, (row, column), (-2, -1)))
        if ord == "nuc":
            found = T.sum(values, -1)
        else:
            found = _greatest(values, -1, False) if ord > 0 else T.amin(values, -1)
        if keepdim:
            for d in sorted((row, column)):
                found = T.unsqueeze(found, d)
        return found
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        raise ShapeError(f"{op}: Order {ord} not supported.")
    along, over = (row, column) if abs(ord) == 1 else (column, row)
    sums = T.linalg_vector_norm(A, 1, along, True)
    found = _greatest(sums, over, True) if ord > 0 else T.amin(sums, over, True)
    return found if keepdim else T.squeeze(found, (row, column))


def _greatest(sizes: Tensor, d: int, keepdim: bool) -> Tensor:
    """The greatest along ``d``; of none it is 0, as in PyTorch."""
    return (T.amax if sizes._layout.shape[d] else T.sum)(sizes, d, keepdim)


@matrix_norm.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), "nuc"
    yield make(3, 4), math.inf
    yield make(3, 4), -1
    yield make(2, 3, 4), 2


@composite(name="linalg_norm", namespace=LINALG)
def norm(
    A: Tensor, ord: Any = None, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None
):
    """A vector or matrix norm, by ``ord`` and the number of dims.

    >>> torch.linalg.norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    ndim = A._layout.ndim
    if ord is None:
        return T.linalg_vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None and ndim > 2:
        raise ShapeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{ndim}D."
        )
    count = (1 if isinstance(dim, int) else len(dim)) if dim is not None else ndim
    if count == 2:
        return T.linalg_matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise ShapeError(f"linalg.norm: ord={ord!r} needs two dims")
    return T.linalg_vector_norm(A, ord, dim, keepdim, dtype=dtype)


@norm.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(3), 3


@composite(method=False, page=False)
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: Bool = False):
    """The sum of singular values: ``linalg.matrix_norm(input, "nuc")``.

    >>> torch.nuclear_norm(torch.tensor([[3., 0.], [0., 4.]]))
    tensor(7.)
    """
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        keepdim, dim = dim, None
    return T.linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


@nuclear_norm.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), True
    yield make(2, 3, 4), (0, 2)


@composite(method=False, page=False)
def frobenius_norm(input: Tensor, dim: Dims, keepdim: Bool = False):
    """The root of the sum of squares over one or two dims: ``linalg.vector_norm(input, 2, dim)``.

    >>> torch.frobenius_norm(torch.tensor([[3., 4.]]), dim=1)
    tensor([5.])
    """
    if isinstance(dim, tuple) and len(dim) > 2:
        raise ShapeError(
            f"frobenius_norm: Expected at most 2 dimensions, but got {len(dim)} dimensions instead"
        )
    return T.linalg_vector_norm(input, 2, None if dim == () else dim, keepdim)


@frobenius_norm.samples
def _(make):
    yield make(3, 4), (0, 1)
    yield make(2, 3, 4), 1, True
    yield (make(2, 3, 4), (0, 1, 2)), {}, RuntimeError, "at most 2 dimensions"


@composite(name="linalg_cond", namespace=LINALG)
def cond(A: Tensor, p: Any = None):
    """The condition number of matrices in a norm; by default the ratio of singular values.

    >>> torch.linalg.cond(torch.tensor([[4., 0.], [0., 2.]]))
    tensor(2.)
    """
    check_matrix("linalg.cond", A._layout)
    if p is None or p in (2, -2):
        values = T.linalg_svdvals(A)
        first, last = T.select(values, -1, 0), T.select(values, -1, -1)
        return last / first if p == -2 else first / last
    check_square("linalg.cond", A._layout)
    return T.linalg_matrix_norm(A, p) * T.linalg_matrix_norm(T.linalg_inv(A), p)


@cond.samples
def _(make):
    yield (make(3, 3),)
    yield make(3, 3), 1


@composite(name="linalg_matrix_rank", namespace=LINALG)
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: Bool = False, *, atol: Any = None, rtol: Any = None
):
    """The number of singular values above ``max(atol, rtol * largest)``.

    >>> torch.linalg.matrix_rank(torch.tensor([[1., 1.], [2., 2.]]))
    tensor(1)
    """
    check_matrix("linalg.matrix_rank", A._layout)
    if hermitian:  # the values whose size is the singular ones'; one triangle of A is read
        values = T.abs(T.linalg_eigvalsh(A.detach()))
    else:
        values = T.linalg_svdvals(A.detach())
    atol = tol if atol is None else atol
    if rtol is None:
        eps = float(np.finfo(A._layout.dtype.to_real().np).eps)
        rtol = max(A._layout.shape[-2:]) * eps if atol is None else 0.0
    if not values._layout.shape[-1]:
        return T.sum(T.gt(values, 0), -1)
    atol, rtol = [T.unsqueeze(t, -1) if isinstance(t, TensorType) else t for t in (atol, rtol)]
    cut = T.amax(values, -1, True) * rtol
    cut = cut if atol is None else T.clamp(cut, atol)
    return T.sum(T.gt(values, cut), -1)


@composite(name="linalg_cross", namespace=LINALG, samples=of_shapes((4, 3), (4, 3)))
def cross(input: Tensor, other: Tensor, *, dim: Dim = -1):
    """The cross product of vectors of three elements along ``dim``; the rest broadcasts.

    >>> torch.linalg.cross(torch.tensor([1., 0., 0.]), torch.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    a, b = input._layout, other._layout
    if a.ndim != b.ndim:
        raise ShapeError(
            f"linalg.cross: inputs must have the same number of dimensions, got {tuple(a.shape)} "
            f"and {tuple(b.shape)}"
        )
    d = normalize_dim(dim, a.ndim, op="linalg.cross")
    if a.shape[d] != 3 or b.shape[d] != 3:
        raise ShapeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {a.shape[d]} and "
            f"{b.shape[d]}"
        )
    broadcast_shapes(a.shape, b.shape, op="linalg.cross")
    x, y = [[T.select(each, d, k) for k in range(3)] for each in (input, other)]
    return T.stack(
        [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]], d
    )


@composite(name="cross")
def cross_old(input: Tensor, other: Tensor, dim: Dim = None):
    """The cross product along ``dim``, by default the first dim of size 3; see ``linalg.cross``."""
    if dim is None:
        sizes = list(input._layout.shape)
        if 3 not in sizes:
            raise ShapeError(f"cross: no dimension of size 3 in input, of shape {tuple(sizes)}")
        dim = sizes.index(3)
    return T.linalg_cross(input, other, dim=dim)


@composite(name="linalg_vecdot", namespace=LINALG, samples=of_shapes((3, 4), (3, 4)))
def vecdot(x: Tensor, y: Tensor, *, dim: Dim = -1):
    """The dot products along ``dim``, the first operand conjugated.

    >>> torch.linalg.vecdot(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor(11.)
    """
    return T.sum((T.conj(x) if x._layout.dtype.kind == "c" else x) * y, dim)


@composite(name="linalg_vander", namespace=LINALG)
def vander(x: Tensor, *, N: Int = None):
    """The Vandermonde matrix: powers 0, 1, .. N - 1 of each element, along a new last dim.

    >>> torch.linalg.vander(torch.tensor([2, 3]))
    tensor([[1, 2],
            [1, 3]])
    """
    if not x._layout.ndim:
        x = T.unsqueeze(x, 0)
    if x._layout.dtype.kind in "iu":
        x = T.to_dtype(x, dtypes.int64)  # what powers of integers are
    n = x._layout.shape[-1] if N is None else N
    column = T.unsqueeze(x, -1)
    factors = T.expand(column, (*x._layout.shape, max(n - 1, 0)))
    return T.cumprod(T.cat([T.ones_like(column), factors], -1), -1)


@composite(name="vander", method=False, out=False)
def vander_of_torch(x: Tensor, N: OptInt = None, increasing: Bool = False):
    """The Vandermonde matrix of a vector, as NumPy lays it out: powers descend unless they are
    ``increasing``. See ``linalg.vander``.

    >>> torch.vander(torch.tensor([2, 3]))
    tensor([[2, 1],
            [3, 1]])
    """
    layout = x._layout
    if layout.ndim != 1:
        raise ShapeError("vander: x must be a one-dimensional tensor.")
    n = layout.shape[0] if N is None else N
    if n < 0:
        raise ShapeError("vander: N must be non-negative.")
    x = x if layout.dtype.kind in "fc" else T.to_dtype(x, dtypes.int64)
    found = T.narrow(T.linalg_vander(x, N=n), -1, 0, n)
    return found if increasing else T.flip(found, (-1,))


@vander_of_torch.samples
def _(make):
    yield (make(3),)
    yield make(3), 2, True
    yield (make(3, 2),), {}, RuntimeError, "one-dimensional"
    yield (make(3), -1), {}, RuntimeError, "non-negative"


@composite(method=False, out=False)
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: Float = 2.0,
    compute_mode: Str = "use_mm_for_euclid_dist_if_necessary",
):
    """The ``p``-norm distances between every row of ``x1`` and every row of ``x2``.

    Shapes: (..., P, M) and (..., R, M); the result is (..., P, R).

    >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.]]))
    tensor([[5.]])
    """
    a, b = x1._layout, x2._layout
    for layout in (a, b):
        if layout.dtype.kind != "f":
            raise DtypeError(f"cdist: only supports floating-point dtypes, got {layout.dtype}")
    if a.ndim < 2 or b.ndim < 2:
        raise ShapeError("cdist: both tensors must have at least 2 dimensions")
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"cdist: X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: "
            f"{b.shape[-1]}"
        )
    if not p >= 0:
        raise ShapeError("cdist: only supports non-negative p values")
    large = a.shape[-2] > 25 or b.shape[-2] > 25
    if (
        p == 2
        and compute_mode != "donot_use_mm_for_euclid_dist"
        and (large or compute_mode == "use_mm_for_euclid_dist")
    ):
        first, second = T.sum(x1 * x1, -1, True), T.sum(x2 * x2, -1)
        squares = first + T.unsqueeze(second, -2) - T.matmul(x1, T.transpose(x2, -2, -1)) * 2
        return T.sqrt(T.clamp(squares, 1e-30))
    return T.linalg_vector_norm(T.unsqueeze(x1, -2) - T.unsqueeze(x2, -3), p, -1)


@cdist.samples
def _(make):
    yield make(3, 4), make(5, 4)
    yield make(2, 3, 4), make(2, 5, 4), 1.0
