"""Products of Householder reflectors ``I - tau v v^H``, as LAPACK's QR factorisation stores them.

Column k of a matrix has in it the vector of reflector k below the diagonal: above it are zeros, on
it a one, and neither is read.
"""

from __future__ import annotations

from antorcha.core.lazy import Array, np
from antorcha.errors import DtypeError, ShapeError
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.kernel import kernel
from antorcha.ops.kinds.lapack import (
    adjoint,
    as_column,
    by_columns,
    check_matrix,
    over_stacks,
    planned_matrices,
    unit_lower,
    with_workspace,
)
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Tensor
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

LINALG = "linalg"


@kernel(returns=return_types.geqrf, batching="leading")
def geqrf(input: Tensor):
    """The QR factorisation as LAPACK gives it, as (a, tau): R is the upper triangle of a, below it
    are the vectors of the reflectors whose product is Q.

    >>> torch.geqrf(torch.tensor([[2., 1.], [0., 3.]])).tau
    tensor([0., 0.])
    """
    op = "geqrf"
    check_matrix(op, input, "input")
    batch, (m, n) = input.shape[:-2], input.shape[-2:]
    k = min(m, n)

    def one(a: Array) -> tuple[Any, ...]:
        return with_workspace("geqrf", a, of=a)[:2] if k else (a, ())

    def run(a: Array) -> tuple[Array, ...]:
        return over_stacks(one, [a], [2], [((m, n), a.dtype), ((k,), a.dtype)])

    outs = [by_columns(input.shape, input.dtype, input.device), ((*batch, k), input.dtype)]
    return planned_matrices(op, "reflectors", run, outs)


geqrf.has_no_derivative()


def check_reflectors(op: str, input: Layout, tau: Layout) -> None:
    """A stack of matrices of vectors, and the factors that belong to them."""
    check_matrix(op, input, "input")
    _check_beside(op, input, "tau", tau, 1)


def _check_beside(op: str, input: Layout, name: str, other: Layout, dims: int) -> None:
    """Another operand, whose last dims belong to one matrix of the input: of the same stack."""
    if other.ndim - dims != input.ndim - 2:
        fewer = "one dimension less than" if dims == 1 else "the same number of dimensions as"
        raise ShapeError(
            f"{op}: Expected {name} to have {fewer} input, but got {name}.ndim equal to "
            f"{other.ndim} and input.ndim is equal to {input.ndim}"
        )
    batch = tuple(other.shape[: other.ndim - dims])
    if batch != tuple(input.shape[:-2]):
        raise ShapeError(
            f"{op}: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got "
            f"{batch}"
        )
    if other.dtype is not input.dtype:
        raise DtypeError(
            f"{op}: {name} dtype {other.dtype} does not match input dtype {input.dtype}"
        )


@kernel(name="linalg_householder_product", namespace=LINALG, batching="leading")
def householder_product(input: Tensor, tau: Tensor):
    """The first columns of the product of reflectors: Q, from what ``geqrf`` gives.

    >>> torch.linalg.householder_product(torch.zeros(3, 2), torch.zeros(2)).abs()
    tensor([[1., 0.],
            [0., 1.],
            [0., 0.]])
    """
    op = "linalg.householder_product"
    check_reflectors(op, input, tau)
    (m, n), k = input.shape[-2:], tau.shape[-1]
    if m < n:
        raise ShapeError(
            f"{op}: input.shape[-2] must be greater than or equal to input.shape[-1], got {m}, {n}"
        )
    if n < k:
        raise ShapeError(
            f"{op}: input.shape[-1] must be greater than or equal to tau.shape[-1], got {n}, {k}"
        )

    def one(a: Array, tau: Array) -> tuple[Array]:
        return (with_workspace("orgqr", a, tau, of=a)[0] if k else np.eye(m, n, dtype=a.dtype),)

    def run(a: Array, tau: Array) -> Array:
        return over_stacks(one, [a, tau], [2, 1], [((m, n), a.dtype)])[0]

    out = by_columns(input.shape, input.dtype, input.device)
    return planned_matrices(op, "reflector product", run, [out])


def of_reflectors(g: TensorType, input: TensorType, tau: TensorType) -> tuple[TensorType, ...]:
    """The gradients of the vectors' matrix and of tau from that of the product's first columns.

    The product is ``I - V (I + D S)^-1 D V^H`` with ``D = diag(tau)`` and S what of ``V^H V`` is
    above the diagonal (Schreiber and Van Loan, "A storage-efficient WY representation for products
    of Householder transformations", 1989). Nothing in it divides by tau, which may be zero.
    """
    k, columns = tau._layout.shape[-1], g._layout.shape[-1]
    m, n = input._layout.shape[-2:]
    V = unit_lower(T.narrow(input, -1, 0, k))
    D, W = as_column(tau), adjoint(T.narrow(V, -2, 0, columns))
    S = T.triu(T.matmul(adjoint(V), V), 1)
    M = D * S  # its diagonal, of ones, is not read
    Y = T.linalg_solve_triangular(M, D * W, upper=True, unitriangular=True)
    # backwards through these lines, the product being I - V Y
    of_v = -T.matmul(g, adjoint(Y))
    of_y = -T.matmul(adjoint(V), g)
    of_dw = T.linalg_solve_triangular(adjoint(M), of_y, upper=False, unitriangular=True)
    of_m = -T.matmul(of_dw, adjoint(Y))
    of_tau = T.sum(of_dw * T.conj(W), -1) + T.sum(of_m * T.conj(S), -1)
    of_s = T.triu(T.conj(D) * of_m, 1)
    of_v = of_v + T.matmul(V, of_s + adjoint(of_s))
    of_w = adjoint(T.conj(D) * of_dw)
    of_v = of_v + T.cat((of_w, T.zeros_like(T.narrow(of_v, -2, columns, m - columns))), -2)
    rest = T.zeros_like(T.narrow(input, -1, k, n - k))
    return T.cat((T.tril(of_v, -1), rest), -1), of_tau


@householder_product.derivative
def _(g, input, tau):
    return of_reflectors(g, input, tau)


@householder_product.samples
def _(make):
    yield make(4, 3), make(3)
    yield make(2, 4, 3), make(2, 2)
    yield make(3, 3), make(3)
    yield (make(3, 4), make(3)), {}, RuntimeError, "greater than or equal to input.shape[-1]"
    yield (make(4, 3), make(4)), {}, RuntimeError, "greater than or equal to tau.shape[-1]"
    yield (make(2, 4, 3), make(3)), {}, RuntimeError, "one dimension less"


@composite()
def orgqr(input: Tensor, tau: Tensor):
    """``linalg.householder_product`` under LAPACK's name.

    >>> torch.orgqr(*torch.geqrf(torch.tensor([[3.], [4.]]))).abs()
    tensor([[0.6000],
            [0.8000]])
    """
    return T.linalg_householder_product(input, tau)


@kernel(batching="leading")
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: Bool = True, transpose: Bool = False
):  # fmt: skip
    """``Q @ other`` (``other @ Q`` with ``left=False``) for the whole product Q of reflectors, or,
    with ``transpose``, its conjugate transpose. Q is never made.

    >>> a, tau = torch.geqrf(torch.tensor([[3., 1.], [4., 2.]]))
    >>> torch.ormqr(a, tau, torch.tensor([[3.], [4.]]), transpose=True).abs()
    tensor([[5.],
            [0.]])
    """
    op = "ormqr"
    check_reflectors(op, input, tau)
    check_matrix(op, other, "other")
    _check_beside(op, input, "other", other, 2)
    side, k = -2 if left else -1, tau.shape[-1]
    if other.shape[side] != input.shape[-2]:
        raise ShapeError(f"{op}: other.shape[{side}] must be equal to input.shape[-2]")
    if k != min(other.shape[side], input.shape[-1]):
        raise ShapeError(
            f"{op}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    turned = "N" if not transpose else "C" if input.dtype.kind == "c" else "T"

    def one(a: Array, tau: Array, c: Array) -> tuple[Array]:
        if not (k and c.size):
            return (c,)
        return (with_workspace("ormqr", "L" if left else "R", turned, a[:, :k], tau, c, of=a)[0],)

    def run(a: Array, tau: Array, c: Array) -> Array:
        return over_stacks(one, [a, tau, c], [2, 1, 2], [(c.shape[-2:], c.dtype)])[0]

    out = by_columns(other.shape, other.dtype, other.device)
    kind = "reflected" + " right" * (not left) + " adjoint" * transpose
    return planned_matrices(op, kind, run, [out])


@ormqr.derivative
def _(g, input, tau, other, needs, left, transpose):
    of_input = of_tau = None
    if needs[0] or needs[1]:
        of_q = T.matmul(g, adjoint(other)) if left else T.matmul(adjoint(other), g)
        of_input, of_tau = of_reflectors(adjoint(of_q) if transpose else of_q, input, tau)
    return of_input, of_tau, T.ormqr(input, tau, g, left, not transpose)


@ormqr.samples
def _(make):
    yield make(4, 3), make(3), make(4, 2)
    yield make(2, 3, 3), make(2, 3), make(2, 4, 3), False
    yield make(4, 3), make(3), make(4, 2), True, True
    yield make(4, 3), make(3), make(2, 4), False, True
    yield (make(4, 3), make(3), make(2, 4)), {}, RuntimeError, "input.shape[-2]"
    yield (make(4, 3), make(3), make(4)), {}, RuntimeError, "at least 2 dimensions"
