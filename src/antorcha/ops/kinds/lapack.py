"""What the decompositions share: checks of their operands, and running LAPACK.

NumPy runs LAPACK over whole stacks of matrices, in double precision. SciPy's functions, of one
matrix, do what NumPy has no function for, what it does not tell about matrices that LAPACK gives up
on, and what takes long: they work in the precision of the matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from antorcha.core import dtypes
from antorcha.core.device import Device
from antorcha.core.lazy import lazy, np
from antorcha.core.shapes import contiguous_strides
from antorcha.errors import AntorchaError, DtypeError, MissingFeature, ShapeError
from antorcha.lang.kernels import Host, Matrices
from antorcha.ops.kinds.blas_threads import threads_for
from antorcha.ops.kinds.kernel import Planned
from antorcha.ops.kinds.record import T
from antorcha.runtime.memory import layout as L

if TYPE_CHECKING:
    from antorcha.runtime.memory.layout import Layout
    from antorcha.runtime.tensor import Tensor

scipy_linalg = lazy("scipy.linalg")

Array: TypeAlias = "np.ndarray[Any, Any]"


class LinAlgError(AntorchaError, RuntimeError):
    """A matrix that the algorithm cannot work on: singular, or not positive definite.

    Example: ``torch.linalg.inv(torch.zeros(2, 2))``.
    """


def check_float(op: str, layout: Layout, half: bool = False) -> None:
    """Floats or complex numbers; of two bytes only for an op that widens them itself."""
    if layout.dtype.kind not in "fc":
        raise DtypeError(
            "{op}: Expected a floating point or complex tensor as input. Got {0.dtype}; cast "
            "first, e.g. {fix}",
            reason="needs float", op=op, operands=(layout,), fix="A.float()",
        )  # fmt: skip
    if layout.dtype.itemsize == 2 and not half:
        raise MissingFeature(f"{op}: not implemented for {layout.dtype}; use A.float()")


def check_matrix(op: str, layout: Layout, name: str = "A", half: bool = False) -> None:
    """At least two dims, of floats."""
    if layout.ndim < 2:
        raise ShapeError(
            f"{op}: The input tensor {name} must have at least 2 dimensions, but its shape is "
            f"{tuple(layout.shape)}"
        )
    check_float(op, layout, half)


def check_square(op: str, layout: Layout, name: str = "A", half: bool = False) -> None:
    """A square matrix or a stack of them, of floats."""
    check_matrix(op, layout, name, half)
    m, n = layout.shape[-2:]
    if m != n:
        raise ShapeError(
            "{op}: {name} must be batches of square matrices, but they are {m} by {n} matrices",
            reason="square", op=op, operands=(layout,), name=name, m=m, n=n,
        )  # fmt: skip


def check_same(op: str, a: Layout, b: Layout) -> None:
    if a.dtype is not b.dtype:
        raise DtypeError(f"{op}: Expected A and B to have the same dtype, got {a.dtype}, {b.dtype}")


def check_fitting(op: str, A: Layout, B: Layout, left: bool) -> None:
    """Right sides of as many rows as A (columns, where X is on the left)."""
    if B.shape[-2 if left else -1] != A.shape[-1]:
        raise ShapeError(
            f"{op}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'}: {tuple(A.shape)} and {tuple(B.shape)}"
        )


def by_columns(shape: tuple[int, ...], dtype: dtypes.dtype, device: Device) -> Layout:
    """Matrices that lie column by column, as LAPACK leaves them."""
    strides = list(contiguous_strides((*shape[:-2], shape[-1], shape[-2])))
    strides[-2:] = strides[-1], strides[-2]
    return L.layout(tuple(shape), tuple(strides), dtype, device)


def planned(op: str, run: Callable[..., Any], outs: list[Any]) -> Planned:
    """A plan that runs NumPy's LAPACK."""
    return Planned(Host(_guarded(op, run)), outs)


def planned_matrices(
    op: str, kind: str, run: Callable[..., Any], outs: list[Any], why: str = "", **how: Any
) -> Planned:
    """A plan of a kind of ``Matrices``, with ``how`` as its other fields, for which NumPy's LAPACK
    stands in; ``why`` is what it means when that gives up."""
    return Planned(Matrices(op, kind, _guarded(op, run, why), **how), outs)


def _guarded(op: str, run: Callable[..., Any], why: str = "") -> Callable[..., Any]:
    """A function whose errors of NumPy's are the op's."""

    def guarded(*arrays: Any) -> Any:
        try:
            return run(*arrays)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"{op}: {why or error}") from None

    return guarded


# ----------------------------------------------------------------------------------------- LAPACK
NO_INVERSE = (
    "The diagonal element {info} is zero, the inversion could not be completed because the input "
    "matrix is singular. linalg.pinv gives the pseudo-inverse."
)
NO_SOLUTION = (
    "The solver failed because the input matrix is singular. linalg.lstsq gives the solution of "
    "least squares."
)
NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {info} is not positive-definite)."
)


@cache
def routine(name: str, dtype: Any) -> Callable[..., Any]:
    """LAPACK's function (or BLAS's) of that name for numbers of a NumPy dtype."""
    get = scipy_linalg.get_blas_funcs if name == "trsm" else scipy_linalg.get_lapack_funcs
    (found,) = get((name,), dtype=dtype)
    return found  # type: ignore[no-any-return]


def with_workspace(name: str, *args: Any, of: Array) -> Any:
    """A LAPACK function's results, given the workspace that it says is best for these arguments."""
    run = routine(name, of.dtype)
    work = run(*args, lwork=-1)[-2]
    return run(*args, lwork=int(work[0].real))


SMALL = 1024
"""A matrix of a stack of so many elements costs less than calling SciPy for it."""
BLOCK = 32
"""The columns that LAPACK works on at a time, for which it wants a workspace."""


def one_by_one(a: Array) -> bool:
    """Are matrices left to SciPy's functions of one?"""
    return a.size > 0 and (a.ndim == 2 or a.shape[-2] * a.shape[-1] > SMALL)


def over_stacks(
    run: Callable[..., tuple[Any, ...]], stacks: Sequence[Array], dims: Sequence[int],
    outs: Sequence[tuple[Sequence[int], Any]],
) -> tuple[Array, ...]:  # fmt: skip
    """Stacks of what ``run`` gives for one matrix or vector of each operand; batches broadcast.

    ``dims`` says how many dims the part of each operand has that ``run`` takes; ``outs`` are the
    shapes and dtypes of the parts that it gives.
    """
    cuts = [x.ndim - n for x, n in zip(stacks, dims, strict=True)]
    threads = threads_for(math.prod(stacks[0].shape[cuts[0] :]))
    if not any(cuts):  # a matrix, not a stack: no time for what follows
        with threads:
            parts = zip(run(*stacks), outs, strict=True)
        return tuple([np.asarray(part, dtype) for part, (_, dtype) in parts])
    batch = np.broadcast_shapes(*[x.shape[:cut] for x, cut in zip(stacks, cuts, strict=True)])
    wide = [np.broadcast_to(x, (*batch, *x.shape[n:])) for x, n in zip(stacks, cuts, strict=True)]
    results = tuple([np.empty((*batch, *shape), dtype) for shape, dtype in outs])
    with threads:
        for at in np.ndindex(*batch):
            for result, part in zip(results, run(*[x[at] for x in wide]), strict=True):
                result[at] = part
    return results


def raise_first(op: str, info: Array, why: str) -> None:
    """An error for the first matrix whose ``info`` is not 0; ``why`` has a place for it."""
    if info.any():
        at = int(np.flatnonzero(info)[0])
        raise refusal(op, why, info.ndim > 0)(at, info.flat[at])


def refusal(op: str, why: str, stacked: bool) -> Callable[[int, int], LinAlgError]:
    """What makes the error of a matrix from its number in the stack and its ``info``."""

    def refuse(at: int, info: int) -> LinAlgError:
        where = f"(Batch element {at}): " if stacked else ""
        return LinAlgError(f"{op}: {where}{why.format(info=info)}")

    return refuse


def check_pivots(op: str, pivots: Array, rows: int) -> None:
    """Rows to exchange, counted from 1: LAPACK itself would write anywhere."""
    if pivots.size and not (pivots.min() >= 1 and pivots.max() <= rows):
        raise bad_pivots(op)


def bad_pivots(op: str) -> ShapeError:
    """What `check_pivots` raises."""
    return ShapeError(
        f"{op}: pivots passed to {op} must be between 1 and LU.size(-2) inclusive. Did you "
        "properly pass the result of lu_factor?"
    )


def lu_factors(a: Array) -> tuple[Array, ...]:
    """The LU factors of a stack of matrices: (LU, pivots from 1, info)."""

    def run(a: Array) -> tuple[Any, ...]:
        if not a.size:
            return a, (), 0
        lu, pivots, info = routine("getrf", a.dtype)(a)
        return lu, pivots + 1, info

    m, n = a.shape[-2:]
    outs = [((m, n), a.dtype), ((min(m, n),), np.int32), ((), np.int32)]
    return over_stacks(run, [a], [2], outs)


PLAIN, TRANSPOSED, ADJOINT = 0, 1, 2


def solved_with_lu(lu: Array, pivots: Array, b: Array, form: int = PLAIN) -> Array:
    """The X of ``A @ X = B``, of ``A^T @ X = B`` or ``A^H @ X = B``, from the LU factors of A."""

    def run(lu: Array, pivots: Array, b: Array) -> tuple[Array]:
        if not b.size:
            return (b,)
        return (routine("getrs", b.dtype)(lu, pivots - 1, b, trans=form)[0],)

    return over_stacks(run, [lu, pivots, b], [2, 1, 2], [(b.shape[-2:], b.dtype)])[0]


def solved_triangular(
    a: Array, b: Array, upper: bool, left: bool = True, unit: bool = False
) -> Array:
    """The X of ``a @ X = b`` (``X @ a = b`` unless ``left``) for triangular matrices."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if math.prod(batch) > 2 * a.shape[-1]:  # the calls of a small matrix each cost more than rows
        if left:
            return _substituted(a, b, upper, unit)
        turned = _substituted(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not upper, unit)
        return np.swapaxes(turned, -1, -2)
    trsm = routine("trsm", b.dtype)

    def run(a: Array, b: Array) -> tuple[Array]:
        return (trsm(1, a, b, side=not left, lower=not upper, diag=unit) if b.size else b,)

    return over_stacks(run, [a, b], [2, 2], [(b.shape[-2:], b.dtype)])[0]


def least_squares(a: Array, b: Array) -> tuple[Array, Array]:
    """The shortest X that makes ``A @ X - B`` least, for matrices of full rank; and the sizes of
    the diagonal of R in the QR factors of A, or of A^H where that has fewer columns, in the order
    of columns in which they descend."""
    m, n = a.shape[-2:]

    def run(a: Array, b: Array) -> tuple[Array, Array]:
        Q, R, order = scipy_linalg.qr(
            a if m >= n else a.conj().T, mode="economic", pivoting=True, check_finite=False
        )
        if m >= n:
            x = np.empty((n, b.shape[-1]), b.dtype)
            x[order] = solved_triangular(R, Q.conj().T @ b, upper=True)
        else:
            x = Q @ solved_triangular(R.conj().T, b[order], upper=False)
        return x, np.abs(np.diagonal(R))

    real = np.real(a[..., :0]).dtype
    outs = [((n, b.shape[-1]), b.dtype), ((min(m, n),), real)]
    found = over_stacks(run, [a, b], [2, 2], outs)
    return found[0], found[1]


def _substituted(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """`solved_triangular` row by row, for all matrices of a stack at once."""
    n = a.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.broadcast_to(b, (*batch, *b.shape[-2:])).copy()
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        x[..., i, :] -= np.matmul(a[..., i : i + 1, known], x[..., known, :])[..., 0, :]
        if not unit:
            x[..., i, :] /= a[..., i, i, None]
    return x


def solution_and_info(
    op: str, a: Array, b: Array | None, check_errors: bool
) -> tuple[Array, Array]:
    """The X of ``a @ X = b`` for stacks, or the inverses where there is no b; and ``info``: 0, or
    the first pivot that is zero."""
    if not one_by_one(a) or (b is not None and a.ndim > 2):
        with suppress(np.linalg.LinAlgError):
            found = np.linalg.inv(a) if b is None else np.linalg.solve(a, b)
            return found, np.zeros(a.shape[:-2], np.int32)
    if b is not None and a.ndim == 2 and a.flags.c_contiguous:
        lu, pivots, info = lu_factors(a.T)  # which lies as LAPACK wants it
        if not info.any():
            return solved_with_lu(lu, pivots, b, TRANSPOSED), info
    lu, pivots, info = lu_factors(a)
    if check_errors:
        raise_first(op, info, NO_INVERSE if b is None else NO_SOLUTION)
    if b is None and one_by_one(a) and not info.any():
        return _inverted_with_lu(lu, pivots), info
    right = np.eye(a.shape[-1], dtype=a.dtype, order="F") if b is None else b
    return solved_with_lu(lu, pivots, right), info


def cholesky_and_info(op: str, a: Array, upper: bool, check_errors: bool) -> tuple[Array, Array]:
    """The Cholesky factors of a stack, and ``info``: 0, or the first minor that is not positive."""
    if upper:
        L, info = cholesky_and_info(op, np.conj(np.swapaxes(a, -1, -2)), False, check_errors)
        return np.conj(np.swapaxes(L, -1, -2)), info
    L, info = _lower_factors(a)
    nan = np.isnan(np.diagonal(L, axis1=-2, axis2=-1))
    if nan.any():  # LAPACK says that it is not positive, OpenBLAS does not
        info = np.where(nan.any(-1) & (info == 0), nan.argmax(-1) + 1, info)
    if check_errors:
        raise_first(op, info, NOT_POSITIVE)
    return L, info


def _inverted_with_lu(lu: Array, pivots: Array) -> Array:
    """The inverses of matrices from their LU factors, which have no zero pivot."""
    n = lu.shape[-1]

    def run(lu: Array, pivots: Array) -> tuple[Array]:
        return (routine("getri", lu.dtype)(lu, pivots - 1, lwork=BLOCK * n)[0],)

    return over_stacks(run, [lu, pivots], [2, 1], [((n, n), lu.dtype)])[0]


def _lower_factors(a: Array) -> tuple[Array, Array]:
    """The lower Cholesky factors of a stack, and what LAPACK says of each."""
    if not one_by_one(a):
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(a), np.zeros(a.shape[:-2], np.int32)
    outs = [(a.shape[-2:], a.dtype), ((), np.int32)]
    L, info = over_stacks(lambda a: routine("potrf", a.dtype)(a, lower=1), [a], [2], outs)
    return L, info


def determinants(a: Array) -> tuple[Array, ...]:
    """The determinants' signs, and the logarithms of their magnitudes."""
    if not one_by_one(a):
        return tuple(np.linalg.slogdet(a))
    sign, diagonal = _lu_diagonal(a)
    sizes = np.abs(diagonal)
    sign = sign * np.prod(np.where(sizes > 0, diagonal / sizes, diagonal), -1)
    return sign, np.log(sizes).sum(-1)


def determinant(a: Array) -> Array:
    """The determinants."""
    if not one_by_one(a):
        return np.asarray(np.linalg.det(a))
    sign, diagonal = _lu_diagonal(a)
    return np.asarray(sign * np.prod(diagonal, -1))


def _lu_diagonal(a: Array) -> tuple[Array, Array]:
    """The sign of the rows' permutation, and U's diagonal, in double precision: products of many
    numbers leave the range of single precision."""
    lu, pivots, _ = lu_factors(a)
    moved = (pivots != np.arange(1, pivots.shape[-1] + 1)).sum(-1)
    wide = np.result_type(a.dtype, np.float64)
    return 1.0 - 2.0 * (moved % 2), np.diagonal(lu, axis1=-2, axis2=-1).astype(wide)


def qr_factors(a: Array, mode: Any) -> tuple[Array, ...]:
    """Q and R; Q is empty where ``mode`` is "r"."""
    if not one_by_one(a):
        found: Any = np.linalg.qr(a, mode)
        return (np.zeros((0,), a.dtype), found) if mode == "r" else tuple(found)
    m, n = a.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    factor = routine("geqrf", a.dtype)
    product = routine("ungqr" if a.dtype.kind == "c" else "orgqr", a.dtype)

    def run(a: Array) -> tuple[Array, ...]:
        found, tau = factor(a, lwork=BLOCK * n)[:2]
        R = found[:k].copy("F")
        np.copyto(R, 0, where=below_diagonal(k, n))
        if mode == "r":
            return (R,)
        vectors = found[:, :k]
        if k > n:
            vectors = np.zeros((m, k), a.dtype, order="F")
            vectors[:, :n] = found
        return product(vectors, tau, lwork=BLOCK * k)[0], R

    if mode == "r":
        return np.zeros((0,), a.dtype), *over_stacks(run, [a], [2], [((k, n), a.dtype)])
    return over_stacks(run, [a], [2], [((m, k), a.dtype), ((k, n), a.dtype)])


@lru_cache(maxsize=16)
def below_diagonal(rows: int, columns: int) -> Array:
    """Where a matrix that lies column by column is below its diagonal."""
    return np.asfortranarray(np.tri(rows, columns, -1, dtype=bool))


@cache
def best_workspace(name: str, dtype: Any, *sizes: int, **options: Any) -> Sequence[int]:
    """What LAPACK says is the best workspace of a function for matrices of these sizes."""
    *best, _ = routine(f"{name}_lwork", dtype)(*sizes, **options)
    return [int(np.real(each)) for each in best]


def eigen(a: Array, lower: bool, vectors: bool = True) -> tuple[Array, ...]:
    """The eigenvalues, ascending, and eigenvectors (unless none are wanted) of symmetric or
    Hermitian matrices."""
    if not one_by_one(a):
        half: Any = "L" if lower else "U"
        return tuple(np.linalg.eigh(a, half)) if vectors else (np.linalg.eigvalsh(a, half),)
    n = a.shape[-1]
    name = "heevd" if a.dtype.kind == "c" else "syevd"
    if name == "syevd" and a.ndim == 2 and a.flags.c_contiguous:
        a, lower = a.T, not lower  # which lies as LAPACK wants it
    how = {"compute_v": vectors, "lower": lower}
    sizes = best_workspace(name, a.dtype, n, **how)
    room = dict(zip(("lwork", "liwork", "lrwork"), sizes, strict=False))

    def run(a: Array) -> tuple[Array, ...]:
        values, found, info = routine(name, a.dtype)(a, **how, **room)
        if info:
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
        return (values, found) if vectors else (values,)

    outs = [((n,), np.real(a[..., :0]).dtype), ((n, n), a.dtype)]
    return over_stacks(run, [a], [2], outs if vectors else outs[:1])


def singular(a: Array, full_matrices: bool, vectors: bool = True) -> tuple[Array, ...]:
    """U, the singular values, descending, and V^H; or the values alone."""
    if not one_by_one(a):
        if not vectors:
            return (np.linalg.svd(a, compute_uv=False),)
        return tuple(np.linalg.svd(a, full_matrices=full_matrices))
    m, n = a.shape[-2:]
    k = min(m, n)
    how = {"full_matrices": full_matrices, "compute_uv": vectors}
    (room,) = best_workspace("gesdd", a.dtype, m, n, **how)

    def run(a: Array) -> tuple[Array, ...]:
        U, S, Vh, info = routine("gesdd", a.dtype)(a, **how, lwork=room)
        if info:
            raise np.linalg.LinAlgError("SVD did not converge")
        return (U, S, Vh) if vectors else (S,)

    u, v = (m, n) if full_matrices else (k, k)
    outs = [((m, u), a.dtype), ((k,), np.real(a[..., :0]).dtype), ((v, n), a.dtype)]
    return over_stacks(run, [a], [2], outs if vectors else outs[1:2])


# -------------------------------------------------------------------------- what derivatives share
def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of a stack of matrices (a view when real)."""
    found = T.transpose(x, -2, -1)
    return T.conj(found) if x._layout.dtype.kind == "c" else found  # type: ignore[no-any-return]


def eye_like(x: Tensor) -> Tensor:
    """The identity matrix of the last dim's size."""
    layout = x._layout
    return T.eye(layout.shape[-1], dtype=layout.dtype, device=layout.device)  # type: ignore[no-any-return]


def unit_lower(x: Tensor) -> Tensor:
    """What a matrix has below its diagonal, and ones on it: (m, min(m, n))."""
    layout = x._layout
    m, k = layout.shape[-2], min(layout.shape[-2:])
    ones = T.eye(m, k, dtype=layout.dtype, device=layout.device)
    return T.tril(T.narrow(x, -1, 0, k), -1) + ones  # type: ignore[no-any-return]


def as_column(x: Tensor) -> Tensor:
    """Each element of the last dim as a row's factor: (..., n, 1)."""
    return T.unsqueeze(x, -1)  # type: ignore[no-any-return]


def as_row(x: Tensor) -> Tensor:
    """Each element of the last dim as a column's factor: (..., 1, n)."""
    return T.unsqueeze(x, -2)  # type: ignore[no-any-return]
