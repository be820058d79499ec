"""Determinants, and their logarithms. One record per op."""

from __future__ import annotations

from antorcha.core.lazy import Array, np
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.kernel import kernel
from antorcha.ops.kinds.lapack import (
    adjoint,
    check_square,
    determinant,
    determinants,
    planned,
    planned_matrices,
)
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes, positive_definite
from antorcha.ops.kinds.types import Tensor

LINALG = "linalg"


@kernel(name="linalg_det", namespace=LINALG)
def det(A: Tensor):
    """The determinant of a square matrix, or of each in a stack.

    >>> torch.linalg.det(torch.tensor([[2., 0.], [0., 3.]]))
    tensor(6.)
    """
    check_square("linalg.det", A)
    return planned_matrices("linalg.det", "determinant", determinant, [(A.shape[:-2], A.dtype)])


@det.derivative
def _(g, A, out, create):
    wide = T.unsqueeze(T.unsqueeze(g, -1), -1)
    if not create:
        return wide * T.adjugate_adjoint(A)
    out = T.unsqueeze(T.unsqueeze(out, -1), -1)
    return wide * adjoint(out * T.linalg_inv(A))


@kernel(function=False, method=False, out=False)
def adjugate_adjoint(A: Tensor):
    """The conjugate transpose of det(A) inv(A): the gradient of det, for singular A too."""

    def run(a: Array) -> Array:
        u, s, vh = np.linalg.svd(a)
        n = s.shape[-1]
        others = np.stack([np.delete(s, k, -1).prod(-1) for k in range(n)], -1) if n else s
        sign = np.linalg.det(u) * np.linalg.det(vh)
        found: Array = np.conj(sign)[..., None, None] * np.matmul(u * others[..., None, :], vh)
        return found

    return planned("det", run, [(A.shape, A.dtype)])


@det.samples
def _(make):
    yield (make(3, 3),)
    yield (make(2, 3, 3),)
    yield (make(2, 3),), {}, RuntimeError, "square"
    yield (make(2, 2).long(),), {}, RuntimeError, "floating point"


@composite(name="det", samples=of_shapes((3, 3)))
def det_alias(input: Tensor):
    """The determinant: ``torch.linalg.det``.

    >>> torch.det(torch.tensor([[2., 0.], [0., 3.]]))
    tensor(6.)
    """
    return T.linalg_det(input)


@kernel(name="linalg_slogdet", namespace=LINALG, returns=return_types.linalg_slogdet)
def slogdet(A: Tensor):
    """The determinant's sign and the logarithm of its magnitude, as (sign, logabsdet).

    >>> torch.linalg.slogdet(torch.eye(2))
    torch.return_types.linalg_slogdet(
    sign=tensor(1.),
    logabsdet=tensor(0.))
    """
    check_square("linalg.slogdet", A)
    batch = A.shape[:-2]
    return planned_matrices(
        "linalg.slogdet", "logarithm", determinants,
        [(batch, A.dtype), (batch, A.dtype.to_real())],
    )  # fmt: skip


@slogdet.derivative
def _(g, A, out0):
    of_sign, of_size = g
    if of_sign is not None and A._layout.dtype.kind == "c":
        turn = T.mul(T.imag(T.conj(of_sign) * out0), -1j)
        of_size = turn if of_size is None else of_size + turn
    if of_size is None:
        return None  # the sign of a real matrix does not move
    return T.unsqueeze(T.unsqueeze(of_size, -1), -1) * adjoint(T.linalg_inv_ex(A)[0])


@slogdet.samples
def _(make):
    yield (make(3, 3),)
    yield (make(2, 3, 3),)


@composite(name="slogdet", out=False)
def slogdet_alias(input: Tensor):
    """The determinant's sign and logarithm: ``torch.linalg.slogdet``."""
    return T.linalg_slogdet(input)


@composite(out=False)
def logdet(input: Tensor):
    """The logarithm of the determinant; NaN when that is negative.

    >>> torch.logdet(torch.eye(2))
    tensor(0.)
    """
    sign, size = T.linalg_slogdet(input)
    if input._layout.dtype.kind == "c":
        return size + T.log(sign)
    return T.where(sign == -1, float("nan"), size)


@logdet.samples
def _(make):
    yield (positive_definite(make),)
