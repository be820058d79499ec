"""Singular values of matrices of low rank, by random projections.

From Halko, Martinsson and Tropp, "Finding structure with randomness", 2009. All are made of other
ops, and take sparse matrices, too: only products with them are computed.
"""

from __future__ import annotations

from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.lapack import check_matrix
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Bool, Int, OptInt, OptTensor, Tensor
from antorcha.runtime.tensor import Tensor as TensorType


@composite(method=False, out=False)
def svd_lowrank(A: Tensor, q: OptInt = 6, niter: OptInt = 2, M: OptTensor = None):
    """The ``q`` greatest singular values of ``A - M`` and their vectors, as (U, S, V), near those
    of ``svd`` where the others are small. ``niter`` more rounds bring them nearer.

    >>> _ = torch.manual_seed(0)
    >>> torch.svd_lowrank(torch.ones(4, 3), q=1)[1]
    tensor([3.4641])
    """
    check_matrix("svd_lowrank", A._layout)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    m, n = A._layout.shape[-2:]
    M = None if M is None else T.expand(M, tuple(A._layout.shape))
    if m < n:  # what follows wants rows enough
        A, M = T.adjoint(A), None if M is None else T.adjoint(M)
    Q = near_basis(A, q, niter, M)
    Qh = T.adjoint(Q)
    B = T.matmul(Qh, A)
    U, S, Vh = T.linalg_svd(B if M is None else B - T.matmul(Qh, M), False)
    U, V = T.matmul(Q, U), T.adjoint(Vh)
    return (V, S, U) if m < n else (U, S, V)


def near_basis(A: TensorType, q: int, niter: int, M: TensorType | None) -> TensorType:
    """Orthonormal columns Q with ``Q @ Q.mH @ (A - M)`` near ``A - M`` (algorithm 4.4)."""
    layout = A._layout
    start = T.randn((layout.shape[-1], q), dtype=layout.dtype, device=layout.device)
    back = T.adjoint(A), None if M is None else T.adjoint(M)
    Q = T.linalg_qr(product(A, M, start))[0]
    for _ in range(niter):
        Q = T.linalg_qr(product(*back, Q))[0]
        Q = T.linalg_qr(product(A, M, Q))[0]
    return Q  # type: ignore[no-any-return]


def product(A: TensorType, M: TensorType | None, X: TensorType) -> TensorType:
    """``(A - M) @ X``, without the difference."""
    found = T.matmul(A, X)
    return found if M is None else found - T.matmul(M, X)  # type: ignore[no-any-return]


@composite(method=False, out=False)
def pca_lowrank(A: Tensor, q: OptInt = None, center: Bool = True, niter: Int = 2):
    """The ``q`` principal components of the rows of A, as (U, S, V): V's columns are the directions
    in which the rows, less their mean if ``center``, differ most. See ``svd_lowrank``.

    >>> _ = torch.manual_seed(0)
    >>> torch.pca_lowrank(torch.tensor([[1., 1.], [2., 2.], [3., 3.]]), q=1)[1].round()
    tensor([2.])
    """
    q = checked_rank(A, q, niter)
    return T.svd_lowrank(A - T.mean(A, (-2,), True) if center else A, q, niter)


def checked_rank(A: TensorType, q: int | None, niter: int) -> int:
    """How many components are asked for: by default six, or all."""
    check_matrix("pca_lowrank", A._layout)
    most = min(A._layout.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most:
        raise ValueRangeError(
            f"pca_lowrank: q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{most}"
        )
    if niter < 0:
        raise ValueRangeError(f"pca_lowrank: niter(={niter}) must be non-negative integer")
    return q
