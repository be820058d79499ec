"""Inverses, solutions of linear systems, and the matrix exponential. One record per op.

Devices have kernels for small matrices; LAPACK does the rest of the work, through NumPy. The
gradients are the textbook ones, written in ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from antorcha.core import dtypes, modes
from antorcha.core.lazy import Array, lazy, np
from antorcha.core.shapes import broadcast_shapes, normalize_dims
from antorcha.errors import ShapeError
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.blas_threads import threads_for
from antorcha.ops.kinds.kernel import kernel
from antorcha.ops.kinds.lapack import (
    NO_INVERSE,
    NO_SOLUTION,
    LinAlgError,
    adjoint,
    as_row,
    by_columns,
    check_fitting,
    check_matrix,
    check_same,
    check_square,
    least_squares,
    planned,
    planned_matrices,
    refusal,
    solution_and_info,
    solved_triangular,
)
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes, positive_definite
from antorcha.ops.kinds.types import Any, Bool, Dims, Float, Int, Str, Tensor
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

scipy_linalg = lazy("scipy.linalg")

LINALG = "linalg"


# -------------------------------------------------------------------------------------- inverses
@kernel(name="linalg_inv", namespace=LINALG, node="linalg_inv_ex")
def inv(A: Tensor):
    """The inverse of a square matrix, or of each in a stack.

    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    op = "linalg.inv"
    check_square(op, A)
    out = by_columns(A.shape, A.dtype, A.device)
    return planned_matrices(
        op, "inverse", lambda a: solution_and_info(op, a, None, True)[0], [out],
        refuse=refusal(op, NO_INVERSE, A.ndim > 2),
    )  # fmt: skip


def of_inverse(g: TensorType, out: TensorType) -> TensorType:
    """The gradient of a matrix from that of its inverse."""
    back = adjoint(out)
    return -T.matmul(T.matmul(back, g), back)  # type: ignore[no-any-return]


@inv.derivative
def _(g, out):
    return of_inverse(g, out)


@inv.samples
def _(make):
    yield (make(3, 3),)
    yield (make(2, 3, 3),)
    yield (make(2, 3),), {}, RuntimeError, "square"
    yield (make(2, 2) * 0,), {}, RuntimeError, "singular"


@kernel(
    name="linalg_inv_ex", namespace=LINALG, node="linalg_inv_ex", returns=return_types.linalg_inv_ex
)
def inv_ex(A: Tensor, *, check_errors: Bool = False):
    """The inverse and ``info``, 0 where it exists; nothing is raised when it does not.

    >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    op = "linalg.inv_ex"
    check_square(op, A)
    outs = [by_columns(A.shape, A.dtype, A.device), (A.shape[:-2], dtypes.int32)]
    return planned_matrices(
        op, "inverse info", lambda a: solution_and_info(op, a, None, check_errors), outs,
        refuse=refusal(op, NO_INVERSE, A.ndim > 2) if check_errors else None,
    )  # fmt: skip


@inv_ex.derivative
def _(g, out0):
    return of_inverse(g[0], out0)


@inv_ex.samples
def _(make):
    yield (make(2, 3, 3),)
    yield (make(2, 2, 2) * 0,), {"check_errors": True}, RuntimeError, "(Batch element 0)"


@composite(name="inverse")
def inverse(input: Tensor):
    """The inverse: ``torch.linalg.inv``.

    >>> torch.inverse(torch.tensor([[2.]]))
    tensor([[0.5000]])
    """
    return T.linalg_inv(input)


@kernel(function=False, method=False, out=False, node="linalg_pinv", batching="matrices")
def pseudo_inverse_of(A: Tensor, P: Tensor):
    """P, with the gradient of A's pseudo-inverse."""
    return planned("linalg.pinv", lambda _a, p: p, [(P.shape, P.dtype)])


def of_pseudo_inverse(g: TensorType, A: TensorType, P: TensorType) -> TensorType:
    """The gradient of a matrix from that of its pseudo-inverse P."""
    # Golub and Pereyra, "The differentiation of pseudo-inverses", 1973
    Ph, gh = adjoint(P), adjoint(g)
    first = -T.matmul(Ph, T.matmul(g, Ph))
    second = T.matmul(T.matmul(gh - T.matmul(A, T.matmul(P, gh)), P), Ph)
    third = T.matmul(T.matmul(Ph, P), gh - T.matmul(T.matmul(gh, P), A))
    return first + second + third  # type: ignore[no-any-return]


@pseudo_inverse_of.derivative
def _(g, A, out):
    return of_pseudo_inverse(g, A, out), None


@composite(name="linalg_pinv", namespace=LINALG)
def pinv(
    A: Tensor,
    rcond: Float = None,
    hermitian: Bool = False,
    *,
    atol: Float = None,
    rtol: Float = None,
):
    """The Moore-Penrose pseudo-inverse of a matrix, or of each in a stack.

    Singular values up to ``max(atol, rtol * largest)`` count as zero.

    >>> torch.linalg.pinv(torch.tensor([[2., 0.]]))
    tensor([[0.5000],
            [0.0000]])
    """
    layout = A._layout
    check_matrix("linalg.pinv", layout)
    if hermitian:  # one triangle of A is read
        check_square("linalg.pinv", layout)
        lower = T.tril(A, -1)
        real = T.diag_embed(T.real(T.diagonal(A, 0, -2, -1)))
        A = (
            lower
            + adjoint(lower)
            + (real if layout.dtype.kind != "c" else T.to_dtype(real, layout.dtype))
        )
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        eps = float(np.finfo(layout.dtype.to_real().np).eps)
        rtol = max(layout.shape[-2:]) * eps if atol is None else 0.0
    P = _inverted(A.detach(), atol or 0.0, rtol)
    return T.pseudo_inverse_of(A, P) if modes.wants_gradient(A) else P


def _inverted(A: TensorType, atol: float, rtol: float) -> TensorType:
    """The pseudo-inverse, in double precision where that costs little."""
    layout = A._layout
    if not layout.numel:
        return T.transpose(T.clone(A), -2, -1)  # type: ignore[no-any-return]
    double = dtypes.complex128 if layout.dtype.kind == "c" else dtypes.float64
    wide = T.to_dtype(A, double) if layout.device.type == "cpu" else A
    U, S, Vh = T.linalg_svd(wide, False)
    cut = T.clamp(T.amax(S, -1, True) * rtol, atol)
    inverse = T.where(T.gt(S, cut), T.reciprocal(S), 0.0)
    found = T.matmul(adjoint(Vh) * as_row(inverse), adjoint(U))
    return T.to_dtype(found, layout.dtype)  # type: ignore[no-any-return]


@composite()
def pinverse(input: Tensor, rcond: Float = 1e-15):
    """The pseudo-inverse: ``torch.linalg.pinv``."""
    return T.linalg_pinv(input, rcond)


@pinv.samples
def _(make):
    yield (make(3, 4),)
    yield (make(2, 4, 3),)


# ------------------------------------------------------------------------------------- solutions
def is_vector(A: Layout, B: Layout) -> bool:
    """PyTorch's rule: B is a stack of vectors if it is 1-D or has A's batch and one size less."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


def solution(
    op: str, A: Layout, B: Layout, left: bool, check_errors: bool
) -> tuple[Callable[..., tuple[Any, Any]], Any]:
    """What solves systems of such operands, giving ``info`` too, and how the solutions lie."""
    check_square(op, A)
    check_same(op, A, B)
    if not B.ndim:
        raise ShapeError(f"{op}: The input tensor B must have at least 1 dimension.")
    vector = is_vector(A, B)
    check_fitting(op, A, B, left and not vector)
    tail = 1 if vector else 2
    batch = broadcast_shapes(A.shape[:-2], B.shape[: B.ndim - tail], op=op)
    shape = (*batch, *B.shape[B.ndim - tail :])
    columns = len(shape) > 1 if vector else left  # a stack of vectors lies as one matrix would
    out = by_columns(shape, B.dtype, B.device) if columns else (shape, B.dtype)

    def run(a: Any, b: Any) -> tuple[Any, Any]:
        if vector:
            found, info = solution_and_info(op, a, b[..., None], check_errors)
            return found[..., 0], info
        if left:
            return solution_and_info(op, a, b, check_errors)
        a, b = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)
        found, info = solution_and_info(op, a, b, check_errors)
        return np.swapaxes(found, -1, -2), info

    return run, out


@kernel(name="linalg_solve", namespace=LINALG, node="linalg_solve_ex")
def solve(A: Tensor, B: Tensor, *, left: Bool = True):
    """The X with ``A @ X = B`` (``X @ A = B`` with ``left=False``), for a square A.

    B is a matrix (or vector) of right sides; batches broadcast.

    >>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    op = "torch.linalg.solve"
    run, out = solution(op, A, B, left, True)
    vectors = is_vector(A, B)
    return planned_matrices(
        op, "solve", lambda a, b: run(a, b)[0], [out],
        refuse=refusal(op, NO_SOLUTION, A.ndim > 2), transposed=not (left or vectors),
        vectors=vectors,
    )  # fmt: skip


def of_system(
    g: TensorType, A: TensorType, out: TensorType, B: Layout, left: bool
) -> tuple[TensorType, TensorType]:
    """The gradients of a system's matrix and right side from that of its solution."""
    vector = is_vector(A._layout, B)
    of_b = T.linalg_solve(adjoint(A), g, left=left or vector)
    if vector:
        return -T.matmul(T.unsqueeze(of_b, -1), adjoint(T.unsqueeze(out, -1))), of_b
    return -(T.matmul(of_b, adjoint(out)) if left else T.matmul(adjoint(out), of_b)), of_b


@solve.batches
def _(batch, run, A, B, left):
    if is_vector(A._layout, B._layout):
        return T.squeeze(run(A, T.unsqueeze(B, -1)), -1)
    ndim = max(A._layout.ndim, B._layout.ndim)
    return run(batch.beside(A, ndim), batch.beside(B, ndim), left=left)


@solve.derivative
def _(g, A, out, B_layout, left):
    return of_system(g, A, out, B_layout, left)


@solve.samples
def _(make):
    yield make(3, 3), make(3, 2)
    yield make(3, 3), make(3)
    yield make(2, 3, 3), make(2, 3, 2)
    yield (make(3, 3), make(2, 3)), {"left": False}
    yield (make(3, 3) * 0, make(3)), {}, RuntimeError, "singular"


@kernel(
    name="linalg_solve_ex", namespace=LINALG, node="linalg_solve_ex",
    returns=return_types.linalg_solve_ex,
)  # fmt: skip
def solve_ex(A: Tensor, B: Tensor, *, left: Bool = True, check_errors: Bool = False):
    """``linalg.solve`` and ``info``, 0 where A has an inverse; nothing is raised when it has none.

    >>> torch.linalg.solve_ex(torch.zeros(2, 2), torch.ones(2)).info
    tensor(1, dtype=torch.int32)
    """
    op = "torch.linalg.solve_ex"
    run, out = solution(op, A, B, left, check_errors)
    vectors = is_vector(A, B)
    return planned_matrices(
        op, "solve info", run, [out, (A.shape[:-2], dtypes.int32)],
        refuse=refusal(op, NO_SOLUTION, A.ndim > 2) if check_errors else None,
        transposed=not (left or vectors), vectors=vectors,
    )  # fmt: skip


@solve_ex.batches
def _(batch, run, A, B, left, check_errors):
    if is_vector(A._layout, B._layout):
        found, info = run(A, T.unsqueeze(B, -1), check_errors=check_errors)
        return T.squeeze(found, -1), info
    ndim = max(A._layout.ndim, B._layout.ndim)
    aligned = batch.beside(A, ndim), batch.beside(B, ndim)
    return run(*aligned, left=left, check_errors=check_errors)


@solve_ex.derivative
def _(g, A, out0, B_layout, left):
    return of_system(g[0], A, out0, B_layout, left)


@solve_ex.samples
def _(make):
    yield make(3, 3), make(3)
    yield (make(2, 3, 3), make(2, 2, 3)), {"left": False}
    yield (make(2, 2) * 0, make(2)), {"check_errors": True}, RuntimeError, "singular"


# ---------------------------------------------------------------------------- triangular systems
@kernel(name="linalg_solve_triangular", namespace=LINALG)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: Bool, left: Bool = True, unitriangular: Bool = False
):
    """The X with ``A @ X = B`` for a triangular A; its other triangle is not read.

    >>> A, B = torch.tensor([[2., 0.], [1., 1.]]), torch.tensor([[2.], [3.]])
    >>> torch.linalg.solve_triangular(A, B, upper=False)
    tensor([[1.],
            [2.]])
    """
    op = "linalg.solve_triangular"
    check_square(op, A)
    check_matrix(op, B, "B")
    check_same(op, A, B)
    check_fitting(op, A, B, left)
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-2], op=op)

    def run(a: Array, b: Array) -> Array:
        return solved_triangular(a, b, upper, left, unitriangular)

    kind = "triangular" + " upper" * (upper == left) + " unit" * unitriangular
    out = by_columns((*batch, *B.shape[-2:]), B.dtype, B.device)
    return planned_matrices(op, kind, run, [out], transposed=not left)


@solve_triangular.derivative
def _(g, A, out, needs, upper, left, unitriangular):
    of_b = T.linalg_solve_triangular(
        adjoint(A), g, upper=not upper, left=left, unitriangular=unitriangular
    )
    if not needs[0]:
        return None, of_b
    of_a = -(T.matmul(of_b, adjoint(out)) if left else T.matmul(adjoint(out), of_b))
    kept = int(unitriangular)
    return T.triu(of_a, kept) if upper else T.tril(of_a, -kept), of_b


@solve_triangular.samples
def _(make):
    yield (positive_definite(make), make(3, 2)), {"upper": True}
    yield (positive_definite(make), make(2, 2, 3)), {"upper": False, "left": False}
    yield (make(2, 3, 3), make(3, 2)), {"upper": False, "unitriangular": True}


@composite()
def triangular_solve(
    input: Tensor, A: Tensor, upper: Bool = True, transpose: Bool = False,
    unitriangular: Bool = False,
):  # fmt: skip
    """``linalg.solve_triangular`` under its old name, the right side first; it gives A, too.

    >>> A, b = torch.tensor([[2., 1.], [0., 1.]]), torch.tensor([[3.], [1.]])
    >>> torch.triangular_solve(b, A).solution
    tensor([[1.],
            [1.]])
    """
    a, b = A._layout, input._layout
    for name, layout in (("b", b), ("A", a)):
        if layout.ndim < 2:
            raise ShapeError(
                f"triangular_solve: Expected {name} to have at least 2 dimensions, but it has "
                f"{layout.ndim} dimensions instead"
            )
    back = T.transpose(A, -2, -1)
    solution = T.linalg_solve_triangular(
        back if transpose else A, input, upper=upper is not transpose, unitriangular=unitriangular
    )
    batch = solution._layout.shape[:-2]
    whole = T.expand(back, (*batch, *back._layout.shape[-2:]))
    copied = T.transpose(T.clone(whole, memory_format="contiguous"), -2, -1)
    return return_types.triangular_solve(solution, copied)


@triangular_solve.samples
def _(make):
    yield make(3, 2), positive_definite(make)
    yield (make(3, 2), positive_definite(make)), {"upper": False, "transpose": True}
    yield (make(3), make(3, 3)), {}, RuntimeError, "at least 2 dimensions"


# ------------------------------------------------------------------------------- tensor equations
@composite(name="linalg_tensorsolve", namespace=LINALG)
def tensorsolve(input: Tensor, other: Tensor, dims: Dims = None):
    """The X with ``tensordot(input, X, X.ndim) = other``; ``dims`` of input are first moved to its
    end.

    >>> A = torch.eye(6).reshape(2, 3, 6)
    >>> torch.linalg.tensorsolve(A, torch.arange(6.).reshape(2, 3))
    tensor([0., 1., 2., 3., 4., 5.])
    """
    if dims is not None:
        dims = normalize_dims(dims, input._layout.ndim, op="linalg.tensorsolve")
        input = T.movedim(input, dims, tuple(range(-len(dims), 0)))
    shape, ndim = tuple(input._layout.shape), other._layout.ndim
    rows, columns = math.prod(shape[:ndim]), math.prod(shape[ndim:])
    if rows != columns:
        raise ShapeError(
            "linalg.tensorsolve: Expected self to satisfy the requirement prod(self.shape["
            f"other.ndim:]) == prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    found = T.linalg_solve(T.reshape(input, (rows, columns)), T.reshape(other, (-1,)))
    return T.reshape(found, shape[ndim:])


@tensorsolve.samples
def _(make):
    yield make(2, 3, 6), make(2, 3)
    yield make(6, 2, 3), make(2, 3), (0,)
    yield (make(2, 3, 5), make(2, 3)), {}, RuntimeError, "5 != 6"


@composite(name="linalg_tensorinv", namespace=LINALG)
def tensorinv(input: Tensor, ind: Int = 2):
    """The inverse for ``tensordot`` over ``ind`` dims: its product with B is ``tensorsolve(A, B)``.

    >>> torch.linalg.tensorinv(torch.eye(6).reshape(6, 2, 3), ind=1).shape
    torch.Size([2, 3, 6])
    """
    shape = tuple(input._layout.shape)
    if ind <= 0:
        raise ShapeError(
            f"linalg.tensorinv: Expected a strictly positive integer for 'ind', but got {ind}"
        )
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise ShapeError(
            "linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    return T.reshape(T.linalg_inv(T.reshape(input, (rows, columns))), (*shape[ind:], *shape[:ind]))


@tensorinv.samples
def _(make):
    yield make(2, 3, 6), 2
    yield make(6, 3, 2), 1
    yield (make(2, 3, 5),), {}, RuntimeError, "5 != 6"


# --------------------------------------------------------------------------------- least squares
@kernel(function=False, method=False, out=False, node="linalg_lstsq", batching="matrices")
def full_rank_solution(A: Tensor, B: Tensor):
    """The shortest X that makes ``norm(A @ X - B)`` least, for an A of full rank, and sizes that
    say whether it is: R's diagonal, descending, in a QR factorisation with exchanges."""
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-2], op="linalg.lstsq")
    m, n = A.shape[-2:]
    x = by_columns((*batch, n, B.shape[-1]), B.dtype, B.device)
    outs = [x, ((*batch, min(m, n)), A.dtype.to_real())]
    return planned_matrices("linalg.lstsq", "least squares", least_squares, outs)


@full_rank_solution.derivative
def _(g, A, B, needs):
    P = T.linalg_pinv(A)
    of_b = T.matmul(adjoint(P), g[0])
    return of_pseudo_inverse(T.matmul(g[0], adjoint(B)), A, P) if needs[0] else None, of_b


@composite(name="linalg_lstsq", namespace=LINALG, out=False)
def lstsq(A: Tensor, B: Tensor, rcond: Float = None, *, driver: Str = None):
    """The X that minimises ``norm(A @ X - B)``, as (solution, residuals, rank, singular_values).

    >>> torch.linalg.lstsq(torch.tensor([[1.], [1.]]), torch.tensor([[1.], [3.]])).solution
    tensor([[2.0000]])
    """
    a, b = A._layout, B._layout
    check_matrix("linalg.lstsq", a)
    check_same("linalg.lstsq", a, b)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ShapeError(
            f"linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got "
            f"{driver!r}"
        )
    vector = is_vector(a, b)
    right = T.unsqueeze(B, -1) if vector else B
    m, n = a.shape[-2:]
    if right._layout.shape[-2] != m:
        raise ShapeError(
            f"linalg.lstsq: input.size(-2) should match other.size(-2): {tuple(a.shape)} and "
            f"{tuple(b.shape)}"
        )
    full = driver not in ("gelsd", "gelss") and a.numel > 0 and right._layout.numel > 0
    if full:
        found, sizes = T.full_rank_solution(A, right)
        least = max(m, n) * float(np.finfo(a.dtype.to_real().np).eps) if rcond is None else rcond
        sizes = sizes.detach()
        enough = T.select(sizes, -1, -1) > T.select(sizes, -1, 0) * least
        full = bool(T.all(enough).item())
        rank = T.full(a.shape[:-2], min(m, n), dtype=dtypes.int64, device=a.device)
    if not full:
        found = T.matmul(T.linalg_pinv(A, rcond), right)
        rank = T.linalg_matrix_rank(A, rtol=rcond)
        full = bool(T.all(rank == min(m, n)).item())
    if driver == "gels":  # which works on matrices of full rank, and does not give it
        if not full:
            raise LinAlgError(
                "torch.linalg.lstsq: The least squares solution could not be computed because the "
                "input matrix does not have full rank; use another driver, e.g. 'gelsd'"
            )
        rank = T.empty((0,), dtype=dtypes.int64, device=a.device)
    # (what PyTorch takes by default gives residuals on GPUs only)
    if full and m > n and driver != "gelsy" and (driver or a.device.type != "cpu"):
        residuals = T.sum(T.square(T.abs(T.matmul(A, found) - right)), -2)
    else:  # none, but they are of the graph as in PyTorch
        real = T.real(found) if a.dtype.kind == "c" else found
        residuals = T.narrow(T.reshape(real, (-1,)), 0, 0, 0)
    if driver in ("gelsd", "gelss"):
        values = T.linalg_svdvals(A.detach())
    else:
        values = T.empty((0,), dtype=a.dtype.to_real(), device=a.device)
    solution = T.squeeze(found, -1) if vector else found
    return return_types.linalg_lstsq(solution, residuals, rank, values)


# ---------------------------------------------------------------------------------- trace, exp
@composite(out=False, samples=of_shapes((3, 4)))
def trace(input: Tensor):
    """The sum of a matrix's diagonal.

    >>> torch.trace(torch.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    if input._layout.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got shape {tuple(input._layout.shape)}")
    return T.sum(T.diagonal(input))


@composite(name="matrix_exp", out=False)
def matrix_exp_alias(input: Tensor):
    """The exponential of a square matrix: ``torch.linalg.matrix_exp``.

    >>> torch.matrix_exp(torch.tensor([[0., 1.], [0., 0.]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return T.linalg_matrix_exp(input)


@kernel(name="linalg_matrix_exp", namespace=LINALG, samples=of_shapes((3, 3)))
def matrix_exp(A: Tensor):
    """The exponential of a square matrix: ``sum_k A^k / k!``.

    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_square("linalg.matrix_exp", A, half=True)

    def run(a: Array) -> Array:
        if not a.size:
            return a
        with threads_for(a.shape[-1] ** 2, 0):  # it has threads for the smallest matrices, too
            found: Array = scipy_linalg.expm(a)
        return found

    return planned("linalg.matrix_exp", run, [(A.shape, A.dtype)])


@matrix_exp.derivative
def _(g, A):
    # the upper right block of exp([[A^H, g], [0, A^H]]) is the derivative along g
    back = adjoint(A)
    n = A._layout.shape[-1]
    zero = T.zeros_like(back)
    whole = T.cat((T.cat((back, g), -1), T.cat((zero, back), -1)), -2)
    return T.narrow(T.narrow(T.linalg_matrix_exp(whole), -2, 0, n), -1, n, n)
