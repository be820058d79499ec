"""Determinants, inverses and solutions of linear systems. One record per op.

LAPACK does the work, through NumPy; the gradients are the textbook ones, written in ops.
"""

from __future__ import annotations

from antorcha import dtypes
from antorcha.errors import MissingFeature, ShapeError
from antorcha.lazy import np
from antorcha.ops import return_types
from antorcha.ops.kernel import kernel
from antorcha.ops.lapack import (
    LinAlgError,
    adjoint,
    by_columns,
    check_matrix,
    check_same,
    check_square,
    planned,
)
from antorcha.ops.record import T, composite
from antorcha.ops.sampled import of_shapes
from antorcha.ops.types import Bool, Float, Str, Tensor
from antorcha.shapes import broadcast_shapes

LINALG = "linalg"
SINGULAR = "the input matrix is singular: it has no inverse. linalg.pinv gives the pseudo-inverse."


# ---------------------------------------------------------------------------------- determinants
@kernel(name="linalg_det", namespace=LINALG)
def det(A: Tensor):
    """The determinant of a square matrix, or of each in a stack.

    >>> torch.linalg.det(torch.tensor([[2., 0.], [0., 3.]]))
    tensor(6.)
    """
    check_square("linalg.det", A)
    return planned("linalg.det", np.linalg.det, [(A.shape[:-2], A.dtype)])


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

    def run(a):
        u, s, vh = np.linalg.svd(a)
        n = s.shape[-1]
        others = np.stack([np.delete(s, k, -1).prod(-1) for k in range(n)], -1) if n else s
        sign = np.linalg.det(u) * np.linalg.det(vh)
        return np.conj(sign)[..., None, None] * np.matmul(u * others[..., None, :], vh)

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
    return planned(
        "linalg.slogdet", lambda a: tuple(np.linalg.slogdet(a)),
        [(batch, A.dtype), (batch, A.dtype.to_real())],
    )  # fmt: skip


@slogdet.derivative
def _(g, A):
    of_sign, of_size = g
    if of_sign is not None and A._layout.dtype.kind == "c":
        raise MissingFeature("linalg.slogdet: the gradient of a complex sign is not written")
    if of_size is None:
        return None  # the sign of a real matrix does not move
    return T.unsqueeze(T.unsqueeze(of_size, -1), -1) * adjoint(T.linalg_inv(A))


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
    yield (positive(make),)


# -------------------------------------------------------------------------------------- inverses
@kernel(name="linalg_inv", namespace=LINALG, node="linalg_inv_ex")
def inv(A: Tensor):
    """The inverse of a square matrix, or of each in a stack.

    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    check_square("linalg.inv", A)
    out = by_columns(A.shape, A.dtype, A.device)
    return planned("linalg.inv", np.linalg.inv, [out], SINGULAR)


@inv.derivative
def _(g, out):
    back = adjoint(out)
    return -T.matmul(T.matmul(back, g), back)


@inv.samples
def _(make):
    yield (make(3, 3),)
    yield (make(2, 3, 3),)
    yield (make(2, 3),), {}, RuntimeError, "square"
    yield (make(2, 2) * 0,), {}, RuntimeError, "singular"


@composite(name="inverse")
def inverse(input: Tensor):
    """The inverse: ``torch.linalg.inv``.

    >>> torch.inverse(torch.tensor([[2.]]))
    tensor([[0.5000]])
    """
    return T.linalg_inv(input)


@kernel(function=False, method=False, node="linalg_pinv")
def pinv_kernel(A: Tensor, atol: Float, rtol: Float, hermitian: Bool):
    """The Moore-Penrose pseudo-inverse."""
    shape = (*A.shape[:-2], A.shape[-1], A.shape[-2])

    def run(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        top = s.max(-1, keepdims=True, initial=0)
        cut = np.maximum(atol, rtol * top)
        with np.errstate(divide="ignore"):
            inverse = np.where(s > cut, 1 / s, 0).astype(s.dtype)
        return np.matmul(np.conj(np.swapaxes(vh, -1, -2)) * inverse[..., None, :],
                         np.conj(np.swapaxes(u, -1, -2)))  # fmt: skip

    return planned("linalg.pinv", run, [(shape, A.dtype)])


@pinv_kernel.derivative
def _(g, A, out):
    # Golub and Pereyra, "The differentiation of pseudo-inverses", 1973
    P, Ph, gh = out, adjoint(out), adjoint(g)
    first = -T.matmul(Ph, T.matmul(g, Ph))
    second = T.matmul(T.matmul(gh - T.matmul(A, T.matmul(P, gh)), P), Ph)
    third = T.matmul(T.matmul(Ph, P), gh - T.matmul(T.matmul(gh, P), A))
    return first + second + third


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
    lay = A._layout
    check_matrix("linalg.pinv", lay)
    if hermitian:  # one triangle of A is read
        check_square("linalg.pinv", lay)
        lower = T.tril(A, -1)
        real = T.diag_embed(T.real(T.diagonal(A, 0, -2, -1)))
        A = (
            lower
            + adjoint(lower)
            + (real if lay.dtype.kind != "c" else T.to_dtype(real, lay.dtype))
        )
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        eps = float(np.finfo(lay.dtype.to_real().np).eps)
        rtol = max(lay.shape[-2:]) * eps if atol is None else 0.0
    return T.pinv_kernel(A, atol or 0.0, rtol, hermitian)


@composite()
def pinverse(input: Tensor, rcond: Float = 1e-15):
    """The pseudo-inverse: ``torch.linalg.pinv``."""
    return T.linalg_pinv(input, rcond)


@pinv.samples
def _(make):
    yield (make(3, 4),)
    yield (make(2, 4, 3),)


# ------------------------------------------------------------------------------------- solutions
def is_vector(A, B):
    """PyTorch's rule: B is a stack of vectors if it is 1-D or has A's batch and one size less."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


@kernel(name="linalg_solve", namespace=LINALG, node="linalg_solve_ex")
def solve(A: Tensor, B: Tensor, *, left: Bool = True):
    """The X with ``A @ X = B`` (``X @ A = B`` with ``left=False``), for a square A.

    B is a matrix (or vector) of right sides; batches broadcast.

    >>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    op = "linalg.solve"
    check_square(op, A)
    check_same(op, A, B)
    vector = is_vector(A, B)
    size = B.shape[-1] if vector or not left else B.shape[-2] if B.ndim > 1 else -1
    if size != A.shape[-1]:
        raise ShapeError(
            f"{op}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'}: {tuple(A.shape)} and {tuple(B.shape)}"
        )
    tail = 1 if vector else 2
    batch = broadcast_shapes(A.shape[:-2], B.shape[: B.ndim - tail], op=op)
    shape = (*batch, *B.shape[B.ndim - tail :])
    columns = len(shape) > 1 if vector else left  # a stack of vectors lies as one matrix would
    out = by_columns(shape, B.dtype, B.device) if columns else (shape, B.dtype)

    def run(a, b):
        b = b[..., None] if vector else b
        if not left and not vector:
            found = np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)),
                                -1, -2)  # fmt: skip
        else:
            found = np.linalg.solve(a, b)
        return found[..., 0] if vector else found

    return planned("torch.linalg.solve", run, [out], f"The solver failed because {SINGULAR}")


@solve.derivative
def _(g, A, out, B_layout, left):
    vector = is_vector(A._layout, B_layout)
    of_b = T.linalg_solve(adjoint(A), g, left=left or vector)
    if vector:
        return -T.matmul(T.unsqueeze(of_b, -1), adjoint(T.unsqueeze(out, -1))), of_b
    if left:
        return -T.matmul(of_b, adjoint(out)), of_b
    return -T.matmul(adjoint(out), of_b), of_b


@solve.samples
def _(make):
    yield make(3, 3), make(3, 2)
    yield make(3, 3), make(3)
    yield make(2, 3, 3), make(2, 3, 2)
    yield (make(3, 3), make(2, 3)), {"left": False}


@composite(name="linalg_solve_triangular", namespace=LINALG)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: Bool, left: Bool = True, unitriangular: Bool = False
):
    """The X with ``A @ X = B`` for a triangular A; its other triangle is not read.

    >>> A, B = torch.tensor([[2., 0.], [1., 1.]]), torch.tensor([[2.], [3.]])
    >>> torch.linalg.solve_triangular(A, B, upper=False)
    tensor([[1.],
            [2.]])
    """
    check_square("linalg.solve_triangular", A._layout)
    part = T.triu(A, 1 if unitriangular else 0) if upper else T.tril(A, -1 if unitriangular else 0)
    if unitriangular:
        lay = A._layout
        part = part + T.eye(lay.shape[-1], dtype=lay.dtype, device=lay.device)
    return T.linalg_solve(part, B, left=left)


@solve_triangular.samples
def _(make):
    yield (positive(make), make(3, 2)), {"upper": True}


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
    full = full and m > n and driver != "gelsy"
    if full:
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


# -------------------------------------------------------------------------------------- Cholesky
NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite."
)


@kernel(name="linalg_cholesky", namespace=LINALG, node="linalg_cholesky_ex")
def cholesky(A: Tensor, *, upper: Bool = False):
    """The lower triangular L with ``A = L @ L.mH``, for a Hermitian positive definite A.

    >>> torch.linalg.cholesky(torch.tensor([[4., 0.], [0., 9.]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    check_square("linalg.cholesky", A)

    def run(a):
        if upper:
            return np.conj(np.swapaxes(np.linalg.cholesky(np.conj(np.swapaxes(a, -1, -2))), -1, -2))
        return np.linalg.cholesky(a)

    out = by_columns(A.shape, A.dtype, A.device)
    return planned("linalg.cholesky", run, [out], NOT_POSITIVE)


@cholesky.derivative
def _(g, out, upper):
    # Iain Murray, "Differentiation of the Cholesky decomposition", 2016
    L, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    phi = T.matmul(adjoint(L), g)
    inside = T.mul(T.tril(phi) + adjoint(T.tril(phi, -1)), 0.5)
    back = adjoint(L)
    left = T.linalg_solve(back, inside)
    return T.linalg_solve(L, left, left=False)


def positive(make, n=3):
    """A positive definite matrix."""
    x = make(n, n)
    return (T.matmul(x, T.t(x)) + T.eye(n, dtype=x._layout.dtype) * n).detach()


@cholesky.samples
def _(make):
    yield (positive(make),)
    yield (positive(make),), {"upper": True}
    yield (make(2, 3),), {}, RuntimeError, "square"


@composite(name="cholesky")
def cholesky_alias(input: Tensor, upper: Bool = False):
    """The Cholesky factor: ``torch.linalg.cholesky``."""
    return T.linalg_cholesky(input, upper=upper)


@composite(name="linalg_cholesky_ex", namespace=LINALG, out=False)
def cholesky_ex(A: Tensor, *, upper: Bool = False, check_errors: Bool = False):
    """The Cholesky factor and ``info``, 0 where it exists; nothing is raised when it does not."""
    return _with_info(return_types.linalg_cholesky_ex, A, check_errors,
                      lambda each: T.linalg_cholesky(each, upper=upper))  # fmt: skip


@composite(name="linalg_inv_ex", namespace=LINALG, out=False)
def inv_ex(A: Tensor, *, check_errors: Bool = False):
    """The inverse and ``info``, 0 where it exists; nothing is raised when it does not."""
    return _with_info(return_types.linalg_inv_ex, A, check_errors, T.linalg_inv)


def _with_info(kind, A, check_errors, run):
    from antorcha import dtypes

    lay = A._layout
    info = T.zeros(lay.shape[:-2], dtype=dtypes.int32, device=lay.device)
    try:
        return kind(run(A), info)
    except LinAlgError:
        if check_errors:
            raise
    if lay.ndim == 2:
        return kind(T.mul(A.detach(), float("nan")), info + 1)
    # some of the stack have none: each says so for itself
    found = [_with_info(kind, each, False, run) for each in T.unbind(A)]
    return kind(*[T.stack(parts) for parts in zip(*found)])


@kernel()
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

    def run(b, factor):
        lower = np.conj(np.swapaxes(np.triu(factor), -1, -2)) if upper else np.tril(factor)
        return np.linalg.solve(np.conj(np.swapaxes(lower, -1, -2)), np.linalg.solve(lower, b))

    out = by_columns((*batch, *B.shape[-2:]), B.dtype, B.device)
    return planned(op, run, [out], SINGULAR)


@cholesky_solve.derivative
def _(g, L, out, upper):
    # the other triangle of L is not read, but PyTorch gives it the gradient of a full L
    of_b = T.cholesky_solve(g, L, upper)
    common = T.matmul(of_b, adjoint(out))
    common = common + adjoint(common)
    return of_b, -T.matmul(L, common) if upper else -T.matmul(common, L)


@cholesky_solve.samples
def _(make):
    yield make(3, 2), positive(make).tril()


@composite()
def cholesky_inverse(L: Tensor, upper: Bool = False):
    """The inverse of the matrix whose Cholesky factor is given."""
    return T.linalg_inv(T.matmul(adjoint(L), L) if upper else T.matmul(L, adjoint(L)))


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


@kernel(name="linalg_matrix_exp", namespace=LINALG, samples=of_shapes((3, 3)))
def matrix_exp(A: Tensor):
    """The exponential of a square matrix: ``sum_k A^k / k!``.

    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_square("linalg.matrix_exp", A)

    def run(a):
        from scipy.linalg import expm

        return expm(a) if a.size else a

    return planned("linalg.matrix_exp", run, [(A.shape, A.dtype)])


@matrix_exp.derivative
def _(g, A):
    # the upper right block of exp([[A^H, g], [0, A^H]]) is the derivative along g
    back = adjoint(A)
    n = A._layout.shape[-1]
    zero = T.zeros_like(back)
    whole = T.cat((T.cat((back, g), -1), T.cat((zero, back), -1)), -2)
    return T.narrow(T.narrow(T.linalg_matrix_exp(whole), -2, 0, n), -1, n, n)
