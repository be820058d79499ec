"""Factorisations by elimination, and what is solved with them: Cholesky, LU, LDL.

Devices have kernels for small matrices; LAPACK does the rest of the work, one matrix of a stack at
a time where NumPy has no function for it. The ops whose names end with ``ex`` give ``info``,
LAPACK's word on each matrix, where the others raise.
"""

from __future__ import annotations

from antorcha.core import dtypes
from antorcha.core.lazy import Array, np
from antorcha.core.shapes import broadcast_shapes
from antorcha.errors import DtypeError, MissingFeature, ShapeError
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.kernel import kernel
from antorcha.ops.kinds.lapack import (
    ADJOINT,
    NOT_POSITIVE,
    PLAIN,
    adjoint,
    bad_pivots,
    below_diagonal,
    best_workspace,
    by_columns,
    check_fitting,
    check_matrix,
    check_pivots,
    check_same,
    check_square,
    cholesky_and_info,
    lu_factors,
    over_stacks,
    planned,
    planned_matrices,
    raise_first,
    refusal,
    routine,
    solved_triangular,
    solved_with_lu,
    unit_lower,
)
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import positive_definite
from antorcha.ops.kinds.types import Any, Bool, Dtype, Int, Tensor
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

LINALG = "linalg"


# -------------------------------------------------------------------------------------- Cholesky
@kernel(name="linalg_cholesky", namespace=LINALG, node="linalg_cholesky_ex")
def cholesky(A: Tensor, *, upper: Bool = False):
    """The lower triangular L with ``A = L @ L.mH``, for a Hermitian positive definite A.

    >>> torch.linalg.cholesky(torch.tensor([[4., 0.], [0., 9.]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    op = "linalg.cholesky"
    check_square(op, A)
    out = by_columns(A.shape, A.dtype, A.device)
    return planned_matrices(
        op, "cholesky", lambda a: cholesky_and_info(op, a, upper, True)[0], [out],
        refuse=refusal(op, NOT_POSITIVE, A.ndim > 2), transposed=upper,
    )  # fmt: skip


def of_cholesky(g: TensorType, out: TensorType, upper: bool) -> TensorType:
    """The gradient of a matrix from that of its factor."""
    # Iain Murray, "Differentiation of the Cholesky decomposition", 2016
    L, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    phi = T.matmul(adjoint(L), g)
    inside = T.mul(T.tril(phi) + adjoint(T.tril(phi, -1)), 0.5)
    left = T.linalg_solve_triangular(adjoint(L), inside, upper=True)
    return T.linalg_solve_triangular(L, left, upper=False, left=False)  # type: ignore[no-any-return]


@cholesky.derivative
def _(g, out, upper):
    return of_cholesky(g, out, upper)


@cholesky.samples
def _(make):
    yield (positive_definite(make),)
    yield (positive_definite(make),), {"upper": True}
    yield (make(2, 3),), {}, RuntimeError, "square"


@composite(name="cholesky")
def cholesky_alias(input: Tensor, upper: Bool = False):
    """The Cholesky factor: ``torch.linalg.cholesky``."""
    return T.linalg_cholesky(input, upper=upper)


@kernel(
    name="linalg_cholesky_ex", namespace=LINALG, node="linalg_cholesky_ex",
    returns=return_types.linalg_cholesky_ex,
)  # fmt: skip
def cholesky_ex(A: Tensor, *, upper: Bool = False, check_errors: Bool = False):
    """The Cholesky factor and ``info``, 0 where it exists; nothing is raised when it does not.

    >>> torch.linalg.cholesky_ex(torch.tensor([[1., 2.], [2., 1.]])).info
    tensor(2, dtype=torch.int32)
    """
    op = "linalg.cholesky_ex"
    check_square(op, A)
    outs = [by_columns(A.shape, A.dtype, A.device), (A.shape[:-2], dtypes.int32)]
    return planned_matrices(
        op, "cholesky info", lambda a: cholesky_and_info(op, a, upper, check_errors), outs,
        refuse=refusal(op, NOT_POSITIVE, A.ndim > 2) if check_errors else None, transposed=upper,
    )  # fmt: skip


@cholesky_ex.derivative
def _(g, out0, upper):
    return of_cholesky(g[0], out0, upper)


@cholesky_ex.samples
def _(make):
    yield (positive_definite(make),)
    yield (-positive_definite(make),), {"check_errors": True}, RuntimeError, "minor of order 1"


@kernel(batching="matrices")
def cholesky_solve(B: Tensor, L: Tensor, upper: Bool = False):
    """The X with ``A @ X = B``, from the Cholesky factor of A.

    >>> torch.cholesky_solve(torch.tensor([[8.]]), torch.tensor([[2.]]))
    tensor([[2.]])
    """
    op = "cholesky_solve"
    check_matrix(op, B, "B")
    check_square(op, L, "L")
    check_same(op, B, L)
    if B.shape[-2] != L.shape[-1]:
        raise ShapeError(
            f"{op}: Incompatible matrix sizes: each L is {L.shape[-1]} by {L.shape[-1]} but each B "
            f"is {B.shape[-2]} by {B.shape[-1]}"
        )
    batch = broadcast_shapes(B.shape[:-2], L.shape[:-2], op=op)

    def run(b: Array, factor: Array) -> Array:
        turned = np.conj(np.swapaxes(factor, -1, -2))
        first, second = (turned, factor) if upper else (factor, turned)
        half = solved_triangular(first, b, upper=False)
        return solved_triangular(second, half, upper=True)

    out = by_columns((*batch, *B.shape[-2:]), B.dtype, B.device)
    kind = "cholesky solve" + " upper" * upper
    return planned_matrices(op, kind, run, [out])


@cholesky_solve.derivative
def _(g, L, out, upper):
    # the other triangle of L is not read, but PyTorch gives it the gradient of a full L
    of_b = T.cholesky_solve(g, L, upper)
    common = T.matmul(of_b, adjoint(out))
    common = common + adjoint(common)
    return of_b, -T.matmul(L, common) if upper else -T.matmul(common, L)


@cholesky_solve.samples
def _(make):
    yield make(3, 2), positive_definite(make).tril()


@composite()
def cholesky_inverse(L: Tensor, upper: Bool = False):
    """The inverse of the matrix whose Cholesky factor is given."""
    return T.linalg_inv(T.matmul(adjoint(L), L) if upper else T.matmul(L, adjoint(L)))


# -------------------------------------------------------------------------------------------- LU
SINGULAR_U = (
    "U[{info},{info}] is zero and using it on lu_solve would result in a division by zero. If you "
    "still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
    "linalg.lu_factor_ex(A, pivot)"
)


@kernel(
    name="linalg_lu_factor_ex", namespace=LINALG, node="linalg_lu_factor_ex",
    returns=return_types.linalg_lu_factor_ex,
)  # fmt: skip
def lu_factor_ex(A: Tensor, *, pivot: Bool = True, check_errors: Bool = False):
    """The compact LU factorisation and ``info``: 0, or the first pivot that is zero.

    >>> torch.linalg.lu_factor_ex(torch.tensor([[1., 2.], [2., 4.]])).info
    tensor(2, dtype=torch.int32)
    """
    op = "linalg.lu_factor"
    check_matrix(op, A)
    if not pivot:
        raise MissingFeature(f"{op}: LU without pivoting is not implemented on the CPU")

    def run(a: Array) -> tuple[Array, ...]:
        found = lu_factors(a)
        if check_errors:
            raise_first(op, found[2], SINGULAR_U)
        return found

    batch, k = A.shape[:-2], min(A.shape[-2:])
    outs = [by_columns(A.shape, A.dtype, A.device), ((*batch, k), dtypes.int32),
            (batch, dtypes.int32)]  # fmt: skip
    refuse = refusal(op, SINGULAR_U, A.ndim > 2) if check_errors else None
    return planned_matrices(op, "lu", run, outs, refuse=refuse)


@lu_factor_ex.derivative
def _(g, out0, out1):
    # With k the smaller size, L = [L1; L2] and U = [U1, U2] whose first parts are k by k. What L2
    # and U2 owe to L1 and U1 is taken off the gradients of those.
    g, LU = g[0], out0
    m, n = LU._layout.shape[-2:]
    k = min(m, n)
    inner, of_inner = [T.narrow(T.narrow(x, -2, 0, k), -1, 0, k) for x in (LU, g)]
    L, U = unit_lower(inner), T.triu(inner)
    of_lower = T.matmul(adjoint(L), T.tril(of_inner, -1))
    of_upper = T.matmul(T.triu(of_inner), adjoint(U))
    if m < n:
        right = T.narrow(g, -1, k, n - k)
        of_lower = of_lower - T.matmul(right, adjoint(T.narrow(LU, -1, k, n - k)))
    if m > n:
        below = T.narrow(g, -2, k, m - k)
        of_upper = of_upper - T.matmul(adjoint(T.narrow(LU, -2, k, m - k)), below)
    found = T.tril(of_lower, -1) + T.triu(of_upper)
    found = T.linalg_solve_triangular(adjoint(U), found, upper=False, left=False)
    if m < n:
        found = T.cat((found, right), -1)
    found = T.linalg_solve_triangular(adjoint(L), found, upper=True, unitriangular=True)
    if m > n:
        below = T.linalg_solve_triangular(adjoint(U), below, upper=False, left=False)
        found = T.cat((found, below), -2)
    return T.matmul(T.lu_permutation(out1, m, g._layout.dtype), found)


@lu_factor_ex.samples
def _(make):
    yield (make(3, 3),)
    yield (make(2, 4, 3),)
    yield (make(2, 4),)
    yield (make(3, 3) * 0,), {"check_errors": True}, RuntimeError, "U[1,1] is zero"
    yield (make(3, 3),), {"pivot": False}, RuntimeError, "without pivoting"


@composite(name="linalg_lu_factor", namespace=LINALG)
def lu_factor(A: Tensor, *, pivot: Bool = True):
    """The compact LU factorisation with partial pivoting, as (LU, pivots); pivots count from 1.

    >>> torch.linalg.lu_factor(torch.eye(2)).pivots
    tensor([1, 2], dtype=torch.int32)
    """
    LU, pivots, _ = T.linalg_lu_factor_ex(A, pivot=pivot, check_errors=True)
    return return_types.linalg_lu_factor(LU, pivots)


@composite(name="lu")
def lu_alias(A: Tensor, pivot: Bool = True, get_infos: Bool = False):
    """``linalg.lu_factor_ex`` under its old name: (LU, pivots), and ``info`` if it is asked for.

    >>> torch.lu(torch.tensor([[0., 1.], [2., 0.]]))[1]
    tensor([2, 2], dtype=torch.int32)
    """
    found = T.linalg_lu_factor_ex(A, pivot=pivot)
    return return_types._lu_with_info(*found) if get_infos else tuple(found[:2])


@kernel(function=False, method=False, out=False, batching="leading")
def lu_permutation(pivots: Tensor, rows: Int, dtype: Dtype):
    """The permutation matrix that exchanges row after row as the pivots say."""

    def exchanged(pivots: Array) -> tuple[list[int]]:
        order = list(range(rows))
        for i, other in enumerate(pivots.tolist()):
            order[i], order[other - 1] = order[other - 1], order[i]
        return (order,)

    def run(pivots: Array) -> Array:
        check_pivots("lu_unpack", pivots, rows)
        order = over_stacks(exchanged, [pivots], [1], [((rows,), np.int64)])[0]
        found: Array = order[..., None, :] == np.arange(rows)[:, None]
        return found

    out = (*pivots.shape[:-1], rows, rows), dtype
    refuse = lambda _k, _info: bad_pivots("lu_unpack")  # noqa: E731
    return planned_matrices("lu_unpack", "permutation", run, [out], refuse=refuse)


@composite(method=False)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: Bool = True, unpack_pivots: Bool = True
):
    """The P, L and U of ``A = P @ L @ U`` from what ``linalg.lu_factor`` gives.

    What is not asked for is an empty tensor.

    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[0., 1.], [2., 0.]]))).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    layout = LU_data._layout
    if layout.ndim < 2:
        raise ShapeError("lu_unpack: The input tensor LU_data must have at least 2 dimensions.")
    if unpack_pivots and LU_pivots._layout.dtype is not dtypes.int32:
        raise DtypeError(
            "lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, as "
            f"torch.linalg.lu_factor gives it; got {LU_pivots._layout.dtype}"
        )
    m, n = layout.shape[-2:]
    P = L = U = T.empty((0,), dtype=layout.dtype, device=layout.device)
    if unpack_data:
        rows = T.contiguous(LU_data)
        L, U = unit_lower(rows), T.triu(T.narrow(rows, -2, 0, min(m, n)))
    if unpack_pivots:
        P = T.lu_permutation(LU_pivots, m, layout.dtype)
    return return_types.lu_unpack(P, L, U)


@lu_unpack.samples
def _(make):
    yield make(3, 3), make.ints((3,), 4, 1, dtypes.int32)
    yield make(2, 3), make.ints((2,), 3, 1, dtypes.int32)
    yield make(3, 2), make.ints((2,), 4, 1, dtypes.int32)
    yield (make(2, 2), make.ints((2,), 4, 3, dtypes.int32)), {}, RuntimeError, "between 1 and"


@composite(name="linalg_lu", namespace=LINALG)
def lu(A: Tensor, *, pivot: Bool = True):
    """``A = P @ L @ U`` with a permutation P and triangular L and U, as (P, L, U).

    >>> torch.linalg.lu(torch.tensor([[0., 1.], [2., 0.]])).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    LU, pivots, _ = T.linalg_lu_factor_ex(A, pivot=pivot)
    return return_types.linalg_lu(*T.lu_unpack(LU, pivots))


@kernel(name="linalg_lu_solve", namespace=LINALG)
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: Bool = True, adjoint: Bool = False):
    """The X with ``A @ X = B`` (``X @ A = B`` with ``left=False``), from the LU factors of A.

    With ``adjoint`` A's conjugate transpose stands for A.

    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2., 0.], [0., 4.]]))
    >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[2.], [2.]]))
    tensor([[1.0000],
            [0.5000]])
    """
    op = "linalg.lu_solve"
    check_square(op, LU)
    check_matrix(op, B, "B")
    check_same(op, LU, B)
    if pivots.dtype is not dtypes.int32:
        raise DtypeError(f"{op}: pivots should be a Tensor of scalar type torch.int32")
    check_pivots_of(op, "LU", LU, pivots)
    check_fitting(op, LU, B, left)
    batch = broadcast_shapes(LU.shape[:-2], B.shape[:-2], op=op)
    shape = (*batch, *B.shape[-2:])
    out = by_columns(shape, B.dtype, B.device) if left else (shape, B.dtype)

    def run(lu: Array, pivots: Array, b: Array) -> Array:
        check_pivots("lu_solve", pivots, lu.shape[-1])
        if left:
            return solved_with_lu(lu, pivots, b, ADJOINT if adjoint else PLAIN)
        found = solved_with_lu(
            lu, pivots, np.conj(np.swapaxes(b, -1, -2)), PLAIN if adjoint else ADJOINT
        )
        return np.conj(np.swapaxes(found, -1, -2))

    if not left:
        return planned(op, run, [out])
    kind = "lu solve" + " adjoint" * adjoint
    return planned_matrices(op, kind, run, [out], refuse=lambda _k, _info: bad_pivots("lu_solve"))


def check_pivots_of(op: str, name: str, factors: Layout, pivots: Layout) -> None:
    """A pivot for each row of the factors."""
    if tuple(pivots.shape) != tuple(factors.shape[:-1]):
        raise ShapeError(
            f"{op}: Expected {name}.shape[:-1] and pivots.shape to be the same, but got pivots "
            f"with shape {tuple(pivots.shape)} instead"
        )


@lu_solve.batches
def _(batch, run, LU, pivots, B, left, adjoint):
    ndim = max(LU._layout.ndim, B._layout.ndim)
    factors = batch.beside(LU, ndim), batch.beside(pivots, ndim - 1)
    return run(*factors, batch.beside(B, ndim), left=left, adjoint=adjoint)


@lu_solve.derivative
def _(g, LU, pivots, out, needs, left, adjoint):
    of_b = T.linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)
    if not needs[0]:
        return None, None, of_b
    x = T.adjoint(out)
    of_a = -T.matmul(of_b, x) if left else -T.matmul(x, of_b)
    of_a = T.adjoint(of_a) if adjoint else of_a
    permutation = T.lu_permutation(pivots, LU._layout.shape[-1], g._layout.dtype)
    of_rows = T.matmul(T.transpose(permutation, -2, -1), of_a)
    of_lower = T.tril(T.matmul(of_rows, T.adjoint(T.triu(LU))), -1)
    return of_lower + T.triu(T.matmul(T.adjoint(unit_lower(LU)), of_rows)), None, of_b


@lu_solve.samples
def _(make):
    pivots = make.ints((3,), 4, 1, dtypes.int32)
    yield make(3, 3), pivots, make(3, 2)
    yield (make(3, 3), pivots, make(2, 2, 3)), {"left": False}
    yield (make(3, 3), pivots, make(3, 2)), {"adjoint": True}
    yield (make(3, 3), pivots, make(2, 3)), {"left": False, "adjoint": True}
    yield (make(3, 3), pivots.long(), make(3, 2)), {}, RuntimeError, "torch.int32"
    yield (make(3, 3), pivots, make(2, 3)), {}, RuntimeError, "Incompatible shapes"


@composite(name="lu_solve")
def lu_solve_alias(input: Tensor, LU_data: Tensor, LU_pivots: Tensor):
    """``linalg.lu_solve`` under its old name, the right side first.

    >>> torch.lu_solve(torch.tensor([[6.], [8.]]), *torch.lu(torch.tensor([[2., 0.], [0., 4.]])))
    tensor([[3.],
            [2.]])
    """
    return T.linalg_lu_solve(LU_data, LU_pivots, input)


# ------------------------------------------------------------------------------------------- LDL
SINGULAR_D = (
    "D[{info},{info}] is zero and using it on ldl_solve would result in a division by zero. If you "
    "still want to perform the factorization, consider calling linalg.ldl_factor_ex"
)


@kernel(
    name="linalg_ldl_factor_ex", namespace=LINALG, node="NotImplementedBackward",
    returns=return_types.linalg_ldl_factor_ex,
)  # fmt: skip
def ldl_factor_ex(input: Tensor, *, hermitian: Bool = False, check_errors: Bool = False):
    """The compact LDL factorisation and ``info``: 0, or the first element of D that is zero.

    >>> torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    op = "linalg.ldl_factor"
    check_square(op, input)
    n = input.shape[-1]
    name = "hetrf" if hermitian and input.dtype.kind == "c" else "sytrf"

    def run(a: Array) -> tuple[Array, ...]:
        (room,) = best_workspace(name, a.dtype, n, lower=1) if n else (0,)
        factor = routine(name, a.dtype)

        def one(a: Array) -> tuple[Any, ...]:
            if not n:
                return a, (), 0
            LD, pivots, info = factor(a, lower=1, lwork=room)
            np.copyto(LD, 0, where=below_diagonal(n, n).T)
            return LD, pivots, info

        found = over_stacks(one, [a], [2], [((n, n), a.dtype), ((n,), np.int32), ((), np.int32)])
        if check_errors:
            raise_first(op, found[2], SINGULAR_D)
        return found

    return planned(op, run, [
        by_columns(input.shape, input.dtype, input.device),
        (input.shape[:-1], dtypes.int32), (input.shape[:-2], dtypes.int32),
    ])  # fmt: skip


ldl_factor_ex.has_no_derivative("linalg.ldl_factor_ex")


@ldl_factor_ex.samples
def _(make):
    yield (make(3, 3),)
    yield (make(2, 4, 4),)
    yield (make(3, 3) * 0,), {"check_errors": True}, RuntimeError, "D[1,1] is zero"


@composite(name="linalg_ldl_factor", namespace=LINALG)
def ldl_factor(input: Tensor, *, hermitian: Bool = False):
    """The compact factors of a symmetric matrix, ``A = P @ L @ D @ L.mT @ P.mT``, as (LD, pivots).

    L has ones on its diagonal, D blocks of one or two rows. With ``hermitian``, L is conjugated.

    >>> torch.linalg.ldl_factor(torch.tensor([[4., 2.], [2., 3.]])).LD
    tensor([[4.0000, 0.0000],
            [0.5000, 2.0000]])
    """
    LD, pivots, _ = T.linalg_ldl_factor_ex(input, hermitian=hermitian, check_errors=True)
    return return_types.linalg_ldl_factor(LD, pivots)


@kernel(name="linalg_ldl_solve", namespace=LINALG, node="NotImplementedBackward")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: Bool = False):
    """The X with ``A @ X = B``, from the LDL factors of A.

    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[4., 2.], [2., 3.]]))
    >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[6.], [5.]]))
    tensor([[1.],
            [1.]])
    """
    op = "linalg.ldl_solve"
    check_square(op, LD)
    check_matrix(op, B, "B")
    check_same(op, LD, B)
    check_fitting(op, LD, B, True)
    check_pivots_of(op, "LD", LD, pivots)
    if pivots.dtype.kind not in "iu":
        raise DtypeError(f"{op}: Expected pivots to be integers. Got {pivots.dtype}")
    batch = broadcast_shapes(LD.shape[:-2], B.shape[:-2], op=op)

    def one(LD: Array, pivots: Array, b: Array) -> tuple[Array]:
        return (solved_with_ldl(LD, pivots, b, hermitian),)

    def run(LD: Array, pivots: Array, b: Array) -> Array:
        check_pivots("ldl_solve", abs(pivots), LD.shape[-1])
        return over_stacks(one, [LD, pivots, b], [2, 1, 2], [(b.shape[-2:], b.dtype)])[0]

    return planned(op, run, [by_columns((*batch, *B.shape[-2:]), B.dtype, B.device)])


ldl_solve.has_no_derivative("linalg.ldl_solve")


@ldl_solve.batches
def _(batch, run, LD, pivots, B, hermitian):
    ndim = max(LD._layout.ndim, B._layout.ndim)
    factors = batch.beside(LD, ndim), batch.beside(pivots, ndim - 1)
    return run(*factors, batch.beside(B, ndim), hermitian=hermitian)


def solved_with_ldl(LD: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    """What LAPACK's sytrs and hetrs do for a lower factor (which older versions of SciPy lack)."""
    conj = np.conj if hermitian else np.asarray
    b = b.copy()
    blocks = []  # (first row, the row after, the row that its last one was exchanged with)
    start = 0
    while start < len(pivots):
        stop = min(start + (1 if pivots[start] > 0 else 2), len(pivots))
        blocks.append((start, stop, abs(int(pivots[start])) - 1))
        start = stop
    for start, stop, other in blocks:
        b[[stop - 1, other]] = b[[other, stop - 1]]
        b[stop:] -= LD[stop:, start:stop] @ b[start:stop]
        D = np.tril(LD[start:stop, start:stop])
        D = D + conj(np.tril(D, -1)).T
        b[start:stop] = np.linalg.solve(D, b[start:stop]) if stop - start > 1 else b[start:stop] / D
    for start, stop, other in reversed(blocks):
        b[start:stop] -= conj(LD[stop:, start:stop]).T @ b[stop:]
        b[[stop - 1, other]] = b[[other, stop - 1]]
    return b


@ldl_solve.samples
def _(make):
    yield make(3, 3), make.ints((3,), 4, 1, dtypes.int32), make(3, 2)
