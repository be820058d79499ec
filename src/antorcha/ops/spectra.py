"""Factorisations of matrices: qr, svd, eigh, eig. One record per op.

Devices have kernels for small matrices; LAPACK does the rest of the work, through NumPy. The
gradients are the textbook ones, written in ops. Where they divide by differences of eigenvalues or
singular values, equal ones give inf, as in PyTorch.
"""

from __future__ import annotations

from antorcha.core import modes
from antorcha.core.lazy import np
from antorcha.errors import GraphError, ShapeError
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.kernel import kernel
from antorcha.ops.kinds.lapack import (
    adjoint,
    as_column,
    as_row,
    by_columns,
    check_matrix,
    check_square,
    eigen,
    eye_like,
    planned_matrices,
    qr_factors,
    refusal,
    singular,
)
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Any, Bool, OptTensor, Str, Tensor
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

LINALG = "linalg"


# -------------------------------------------------------------------------------------------- qr
@kernel(name="linalg_qr", namespace=LINALG, returns=return_types.linalg_qr)
def qr(A: Tensor, mode: Str = "reduced"):
    """``A = Q @ R`` with orthonormal columns in Q and an upper triangular R, as (Q, R).

    ``mode``: "reduced", "complete" (Q is square), or "r" (Q is empty).

    >>> torch.linalg.qr(torch.eye(2)).R.abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise ShapeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    batch, (m, n) = A.shape[:-2], A.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    q = ((0,), A.dtype) if mode == "r" else by_columns((*batch, m, k), A.dtype, A.device)
    outs = [q, by_columns((*batch, k, n), A.dtype, A.device)]
    return planned_matrices(
        "linalg.qr", "r" if mode == "r" else "qr", lambda a: qr_factors(a, mode), outs
    )


@qr.derivative
def _(g, out0, out1, A_layout, mode):
    m, n = A_layout.shape[-2:]
    if mode == "r" or (mode == "complete" and m > n):
        raise GraphError(
            f"linalg.qr: the derivative is not defined for mode={mode!r} and this shape"
        )
    of_q, of_r = g
    Q, R = out0, out1
    if m < n:  # wide: only the first m columns decide Q
        return _wide_qr(of_q, of_r, Q, R, m, n)
    return _tall_qr(of_q, of_r, Q, R)


def _tall_qr(of_q: OptTensor, of_r: OptTensor, Q: Tensor, R: Tensor) -> Tensor:
    # Walter and Lehmann, "Algorithmic differentiation of linear algebra functions", 2018
    M = (0 if of_r is None else T.matmul(R, adjoint(of_r))) - (
        0 if of_q is None else T.matmul(adjoint(of_q), Q)
    )
    lower = T.tril(M, -1)
    M = T.tril(M) + adjoint(lower)
    if M._layout.dtype.kind == "c":
        M = M - T.diag_embed(T.mul(T.imag(T.diagonal(M, 0, -2, -1)), 1j))
    inside = T.matmul(Q, M)
    inside = inside if of_q is None else of_q + inside
    return T.linalg_solve(adjoint(R), inside, left=False)


def _wide_qr(of_q: OptTensor, of_r: OptTensor, Q: Tensor, R: Tensor, m: int, n: int) -> Tensor:
    first, rest = T.narrow(R, -1, 0, m), T.narrow(R, -1, m, n - m)
    of_first = of_rest = None
    if of_r is not None:
        of_first, of_rest = T.narrow(of_r, -1, 0, m), T.narrow(of_r, -1, m, n - m)
        # R2 = Q^H A2: its gradient goes to A2 and to Q, where A2 is Q R2
        through = T.matmul(Q, T.matmul(rest, adjoint(of_rest)))
        of_q = through if of_q is None else of_q + through
    left = _tall_qr(of_q, of_first, Q, first)
    right = T.zeros_like(rest) if of_rest is None else T.matmul(Q, of_rest)
    return T.cat((left, right), -1)


@qr.samples
def _(make):
    yield (make(4, 3),)
    yield (make(3, 3),)


@composite(name="qr")
def qr_alias(input: Tensor, some: Bool = True):
    """``linalg.qr`` under its old name."""
    return return_types.qr(*T.linalg_qr(input, "reduced" if some else "complete"))


# ------------------------------------------------------------------------------------------- svd
NOT_FINITE = (
    "The algorithm failed to converge because the input matrix contained non-finite values."
)


@kernel(name="linalg_svd", namespace=LINALG, returns=return_types.linalg_svd)
def svd(A: Tensor, full_matrices: Bool = True, *, driver: Str = None):
    """``A = U @ diag(S) @ Vh``: the singular value decomposition, as (U, S, Vh); S descends.

    >>> torch.linalg.svd(torch.tensor([[3., 0.], [0., 2.]])).S
    tensor([3., 2.])
    """
    check_matrix("linalg.svd", A)
    batch, (m, n) = A.shape[:-2], A.shape[-2:]
    k = min(m, n)
    u, v = (m, n) if full_matrices else (k, k)
    return planned_matrices(
        "linalg.svd", "svd", lambda a: singular(a, full_matrices),
        [by_columns((*batch, m, u), A.dtype, A.device), ((*batch, k), A.dtype.to_real()),
         by_columns((*batch, v, n), A.dtype, A.device)],
        NOT_FINITE, refuse=refusal("linalg.svd", NOT_FINITE, False),
    )  # fmt: skip


@svd.derivative
def _(g, out0, out1, out2, A_layout):
    of_u, of_s, of_vh = g
    m, n = A_layout.shape[-2:]
    k = min(m, n)
    U, S, Vh = T.narrow(out0, -1, 0, k), out1, T.narrow(out2, -2, 0, k)
    if of_u is None and of_vh is None:
        return T.matmul(U * as_row(of_s), Vh)
    of_u, of_vh = _within_reduced(of_u, -1, k), _within_reduced(of_vh, -2, k)
    # James Townsend, "Differentiating the singular value decomposition", 2016
    E = as_row(S * S) - as_column(S * S) + eye_like(as_row(S) + as_column(S))
    inside: Any = 0
    if of_u is not None:
        part = T.matmul(adjoint(U), of_u)
        inside = T.mul(part - adjoint(part), as_row(S))
    if of_vh is not None:
        part = T.matmul(Vh, adjoint(of_vh))
        inside = inside + as_column(S) * (part - adjoint(part))
    inside = inside / E
    if A_layout.dtype.kind == "c" and of_u is not None:
        turn = T.mul(T.imag(T.diagonal(T.matmul(adjoint(U), of_u), 0, -2, -1)), 1j)
        inside = inside + T.diag_embed(turn / S)
    if of_s is not None:
        inside = inside + T.diag_embed(of_s)
    found = T.matmul(T.matmul(U, inside), Vh)
    if of_u is not None and m > k:
        rest = of_u / as_row(S)
        rest = rest - T.matmul(U, T.matmul(adjoint(U), rest))
        found = found + T.matmul(rest, Vh)
    if of_vh is not None and n > k:
        rest = of_vh / as_column(S)
        rest = rest - T.matmul(T.matmul(rest, adjoint(Vh)), Vh)
        found = found + T.matmul(U, rest)
    return found


def _within_reduced(g: OptTensor, dim: int, k: int) -> OptTensor:
    """The gradient of the first ``k`` singular vectors; the others' must be zero."""
    if g is None or g._layout.shape[dim] <= k:
        return g
    beyond = T.narrow(g, dim, k, g._layout.shape[dim] - k)
    if bool(T.any(beyond.detach() != 0).item()):
        raise GraphError(
            "linalg.svd: the singular vectors beyond the reduced decomposition have no derivative; "
            "use full_matrices=False"
        )
    return T.narrow(g, dim, 0, k)


@svd.samples
def _(make):
    yield (make(3, 4), False)


@composite(name="svd")
def svd_alias(input: Tensor, some: Bool = True, compute_uv: Bool = True):
    """The singular value decomposition as (U, S, V): ``linalg.svd`` gives V transposed."""
    U, S, Vh = T.linalg_svd(input, not some)
    return return_types.svd(U, S, adjoint(Vh))


@kernel(function=False, method=False, out=False, batching="matrices")
def singular_values(A: Tensor):
    """The singular values of a matrix, descending, for those who want no gradient."""
    check_matrix("linalg.svdvals", A)
    shape = (*A.shape[:-2], min(A.shape[-2:]))
    return planned_matrices(
        "linalg.svdvals", "singular values", lambda a: singular(a, False, vectors=False)[0],
        [(shape, A.dtype.to_real())], NOT_FINITE,
        refuse=refusal("linalg.svdvals", NOT_FINITE, False),
    )  # fmt: skip


singular_values.has_no_derivative()


@composite(name="linalg_svdvals", namespace=LINALG, samples=of_shapes((3, 4)))
def svdvals(A: Tensor, *, driver: Str = None):
    """The singular values of a matrix, descending.

    >>> torch.linalg.svdvals(torch.tensor([[3., 0.], [0., 2.]]))
    tensor([3., 2.])
    """
    return T.linalg_svd(A, False)[1] if modes.wants_gradient(A) else T.singular_values(A)


# ----------------------------------------------------------------------------------- eigenvalues
NO_EIGENVALUES = "Eigenvalues did not converge"
INFINITE = "input tensor should not contain infs or NaNs."


@kernel(name="linalg_eigh", namespace=LINALG, returns=return_types.linalg_eigh)
def eigh(A: Tensor, UPLO: Str = "L"):
    """The eigenvalues (ascending) and eigenvectors of a symmetric or Hermitian matrix.

    Only the triangle ``UPLO`` ("L" or "U") is read.

    >>> torch.linalg.eigh(torch.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    upper = _reads_upper("linalg.eigh", A, UPLO)
    return planned_matrices(
        "linalg.eigh", "eigh upper" if upper else "eigh",
        lambda a: eigen(a, not upper),
        [(A.shape[:-1], A.dtype.to_real()), by_columns(A.shape, A.dtype, A.device)],
        refuse=refusal("linalg.eigh", NO_EIGENVALUES, False),
    )  # fmt: skip


def _reads_upper(op: str, A: Layout, UPLO: str) -> bool:
    """Is the upper triangle of a square matrix the one to be read?"""
    check_square(op, A)
    if UPLO.upper() not in ("L", "U"):
        raise ShapeError(f"{op}: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


@eigh.derivative
def _(g, out0, out1):
    of_values, of_vectors = g
    return of_eigh(of_values, of_vectors, out0, out1)


def of_eigh(
    of_values: OptTensor, of_vectors: OptTensor, L: TensorType, V: TensorType
) -> TensorType:
    """The gradient of a matrix from those of its eigenvalues and vectors."""
    if of_vectors is None:
        return T.matmul(V * as_row(of_values), adjoint(V))  # type: ignore[no-any-return]
    E = as_row(L) - as_column(L) + eye_like(as_row(L) + as_column(L))
    part = T.matmul(adjoint(V), of_vectors)
    diagonal = T.diag_embed(T.diagonal(part, 0, -2, -1))
    inside = (part - diagonal) / E
    if of_values is not None:
        inside = inside + T.diag_embed(of_values)
    return T.matmul(T.matmul(V, inside), adjoint(V))  # type: ignore[no-any-return]


@kernel(function=False, method=False, out=False, batching="matrices")
def symmetric_eigenvalues(A: Tensor, UPLO: Str):
    """The eigenvalues of a symmetric or Hermitian matrix, for those who want no gradient."""
    upper = _reads_upper("linalg.eigvalsh", A, UPLO)
    return planned_matrices(
        "linalg.eigvalsh", "eigenvalues" + " upper" * upper,
        lambda a: eigen(a, not upper, vectors=False)[0], [(A.shape[:-1], A.dtype.to_real())],
        refuse=refusal("linalg.eigvalsh", NO_EIGENVALUES, False),
    )  # fmt: skip


symmetric_eigenvalues.has_no_derivative()


@composite(name="linalg_eigvalsh", namespace=LINALG, samples=of_shapes((3, 3)))
def eigvalsh(A: Tensor, UPLO: Str = "L"):
    """The eigenvalues of a symmetric or Hermitian matrix, ascending.

    >>> torch.linalg.eigvalsh(torch.tensor([[2., 0.], [0., 1.]]))
    tensor([1., 2.])
    """
    alone = not modes.wants_gradient(A)
    return T.symmetric_eigenvalues(A, UPLO) if alone else T.linalg_eigh(A, UPLO)[0]


@kernel(name="linalg_eig", namespace=LINALG, returns=return_types.linalg_eig)
def eig(A: Tensor):
    """The eigenvalues and eigenvectors of a square matrix, complex and in no order.

    >>> torch.linalg.eig(torch.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([2.+0.j, 1.+0.j])
    """
    check_square("linalg.eig", A)
    kind = A.dtype.to_complex()
    return planned_matrices(
        "linalg.eig", "eig", lambda a: tuple(np.linalg.eig(a)),
        [(A.shape[:-1], kind), by_columns(A.shape, kind, A.device)], INFINITE,
        refuse=refusal("linalg.eig", INFINITE, False),
    )  # fmt: skip


@eig.derivative
def _(g, out0, out1, A_layout):
    of_values, of_vectors = g
    L, V = out0, out1
    inside = 0
    if of_vectors is not None:
        part = T.matmul(adjoint(V), of_vectors)
        # the vectors have length one: what would change it is taken out
        turned = part - T.matmul(adjoint(V), V * as_row(T.real(T.diagonal(part, 0, -2, -1))))
        E = T.conj(as_row(L) - as_column(L))
        E = E + T.eye(L._layout.shape[-1], dtype=L._layout.dtype)
        inside = turned / E
        inside = inside - T.diag_embed(T.diagonal(inside, 0, -2, -1))
    if of_values is not None:
        inside = inside + T.diag_embed(of_values)
    back = adjoint(V)
    found = T.matmul(T.linalg_solve(back, inside), back)
    return found if A_layout.dtype.kind == "c" else T.real(found)


@composite(name="linalg_eigvals", namespace=LINALG)
def eigvals(A: Tensor):
    """The eigenvalues of a square matrix, complex and in no order.

    >>> torch.linalg.eigvals(torch.tensor([[2., 0.], [0., 1.]]))
    tensor([2.+0.j, 1.+0.j])
    """
    return T.linalg_eig(A)[0]
