"""Products with sparse matrices.

Sparse by dense gathers the rows of the dense matrix that the columns of the sparse one name, scales
them by its values, and adds them up in the rows of the result. The gradient of the sparse factor is
sparse: it exists where the factor has elements.
"""

from __future__ import annotations

from typing import Any

from antorcha.core.lazy import np
from antorcha.errors import GraphError, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.ops.lobpcg import lobpcg
from antorcha.ops.lowrank import checked_rank, svd_lowrank
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy
from antorcha.tensor.sparse.compressed import in_format
from antorcha.tensor.sparse.dispatch import refuse, rule
from antorcha.tensor.sparse.parts import coalesce, from_values, terms, values_of
from antorcha.tensor.sparse.rules import permuted, sum_of
from antorcha.tensor.sparse.tensor import SparseTensor, dense_zeros, is_sparse, sparse_dims


def check_matrix(name: str, x: Tensor) -> None:
    """Refuses what is no matrix."""
    if x._layout.ndim != 2 or (
        isinstance(x, SparseTensor) and x._format == "coo" and sparse_dims(x) != 2
    ):
        raise ShapeError(
            f"{name}: expected a matrix, with two sparse dims where it is sparse; got a tensor of "
            f"{tuple(x._layout.shape)}"
        )


def check_product(name: str, a: Tensor, b: Tensor) -> None:
    """Refuses factors that do not fit."""
    left, right = tuple(a._layout.shape), tuple(b._layout.shape)
    if left[-1] != right[0]:
        raise ShapeError(
            "{op}: {0.shape} @ {1.shape}: inner sizes {one} and {other} differ", reason="matmul",
            op=name, operands=(left, right), one=left[-1], other=right[0],
        )  # fmt: skip
    if a._layout.dtype is not b._layout.dtype:
        raise GraphError(
            f"{name}: expected both factors to have the same dtype, but got {a._layout.dtype} and "
            f"{b._layout.dtype}"
        )


def sparse_by_dense(x: SparseTensor, dense: Tensor, reduce: str = "sum") -> Tensor:
    """``x @ dense`` for a matrix (n, m) and a dense matrix (m, p); `reduce` (sum, mean, amax, amin)
    makes one of the products of each row, 0 where the row is empty."""
    coo = in_format(x, "coo")
    indices, values = terms(coo)
    rows, columns = T.select(indices, 0, 0), T.select(indices, 0, 1)
    picked = T.mul(T.index_select(dense, 0, columns), T.unsqueeze(values, 1))
    result: Tensor = dense_zeros(dense, (x._layout.shape[0], dense._layout.shape[1]))
    if reduce == "sum":
        return T.index_add(result, 0, rows, picked)  # type: ignore[no-any-return]
    rows = T.expand(T.unsqueeze(rows, 1), picked._layout.shape)
    return T.scatter_reduce(result, 0, rows, picked, reduce, include_self=False)  # type: ignore[no-any-return]


def sparse_by_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """``a @ b``, sparse: each element of ``a`` meets the row of ``b`` that its column names."""
    a, b = coalesce(in_format(a, "coo")), coalesce(in_format(b, "coo"))
    left, right = a._parts[0].numpy(), b._parts[0].numpy()
    low = np.searchsorted(right[0], left[1], "left")
    counts = np.searchsorted(right[0], left[1], "right") - low
    from_a = np.repeat(np.arange(left.shape[1]), counts)
    begins = np.concatenate(([0], np.cumsum(counts)[:-1])) if counts.size else counts
    from_b = np.repeat(low - begins, counts) + np.arange(len(from_a))
    indices = np.stack((left[0][from_a], right[1][from_b])).astype(np.int64)
    values = T.mul(
        T.index_select(values_of(a), 0, from_numpy(from_a.astype(np.int64))),
        T.index_select(values_of(b), 0, from_numpy(from_b.astype(np.int64))),
    )
    shape = (a._layout.shape[0], b._layout.shape[1])
    return coalesce(from_values(values, (from_numpy(indices),), shape))


@rule("mm", "smm", "spmm", "hspmm")
def mm(input: Any, mat2: Any) -> Any:
    """The product of two matrices of which at least one is sparse."""
    check_matrix("mm", input)
    check_matrix("mm", mat2)
    check_product("mm", input, mat2)
    if not is_sparse(mat2):
        return sparse_by_dense(input, mat2)
    if not is_sparse(input):
        turned = permuted("t", mat2, [1, 0])
        return T.transpose(sparse_by_dense(turned, T.transpose(input, 0, 1)), 0, 1)
    return in_format(sparse_by_sparse(input, mat2), input._format)


@rule("mv")
def mv(input: Any, vec: Any) -> Any:
    """A sparse matrix times a dense vector."""
    if not is_sparse(input) or is_sparse(vec):
        return refuse("mv", vec if is_sparse(vec) else input)
    check_matrix("mv", input)
    if vec._layout.ndim != 1:
        raise ShapeError(f"mv: the second argument must be 1-D, not {tuple(vec._layout.shape)}")
    check_product("mv", input, vec)
    return T.squeeze(sparse_by_dense(input, T.unsqueeze(vec, 1)), 1)


rule("svd_lowrank")(svd_lowrank.fn)  # these two compute products only
rule("lobpcg")(lobpcg.fn)


@rule("pca_lowrank")
def principal_components(A: Any, q: Any = None, center: bool = True, niter: int = 2) -> Any:
    """``pca_lowrank`` without a dense matrix of A's size: the mean is taken off the products."""
    q = checked_rank(A, q, niter)
    m, n = A._layout.shape
    mean = T.matmul(T.full((1, m), 1 / m, dtype=A._layout.dtype, device=A._layout.device), A)
    return T.svd_lowrank(A, q, niter, M=T.expand(mean, (m, n)) if center else None)


@rule("matmul")
def matmul(input: Any, other: Any) -> Any:
    """``input @ other``."""
    left, right = input._layout.ndim, other._layout.ndim
    if left == 2 and right == 2:
        return mm(input, other)
    if left == 2 and right == 1 and is_sparse(input):
        return mv(input, other)
    if left == 1 and right == 2 and is_sparse(other):
        return mv(permuted("t", other, [1, 0]), input)
    return refuse("matmul", input if is_sparse(input) else other)


@rule("addmm", "sspaddmm")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    product = mm(mat1, mat2) if is_sparse(mat1) or is_sparse(mat2) else T.mm(mat1, mat2)
    if is_sparse(product) and is_sparse(input):
        return sum_of(T.mul(input, beta), product, alpha)
    if is_sparse(input):
        return refuse("addmm", input)
    scaled = input if beta == 1 else T.mul(input, beta)
    if is_sparse(product):
        return T.add(T.expand(scaled, tuple(product._layout.shape)), product, alpha=alpha)
    return T.add(scaled, product, alpha=alpha)


@rule("bmm")
def bmm(input: Any, mat2: Any) -> Tensor:
    """A batch of sparse matrices times a batch of dense ones."""
    if not is_sparse(input) or is_sparse(mat2) or sparse_dims(input) != 3:
        return refuse("bmm", input if is_sparse(input) else mat2)
    if input._layout.shape[0] != mat2._layout.shape[0]:
        raise ShapeError("bmm: the batches differ in size")
    if not input._layout.shape[0]:
        return dense_zeros(mat2, (0, input._layout.shape[1], mat2._layout.shape[2]))
    each = [mm(T.select(input, 0, k), T.select(mat2, 0, k)) for k in range(input._layout.shape[0])]
    return T.stack(each)  # type: ignore[no-any-return]


@rule("linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias``, for matrices of which one is sparse."""
    result = matmul(input, permuted("linear", weight, [1, 0]) if is_sparse(weight)
                  else T.transpose(weight, 0, 1))  # fmt: skip
    return result if bias is None else T.add(result, bias)  # type: ignore[no-any-return]


def sampled(input: SparseTensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` where ``input`` has elements."""
    coo = in_format(input, "coo")
    at = coo._parts[0]
    rows = T.index_select(mat1, 0, T.select(at, 0, 0))
    columns = T.index_select(T.transpose(mat2, 0, 1), 0, T.select(at, 0, 1))
    found = T.mul(T.sum(T.mul(rows, columns), -1), alpha)
    values = T.add(found, T.mul(values_of(coo), beta))
    result = from_values(values, coo._parts[:1], coo._layout.shape, "coo", coo._coalesced)
    return in_format(result, input._format)
