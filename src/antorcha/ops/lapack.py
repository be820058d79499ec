"""What the decompositions share: checks of their operands, and running LAPACK through NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.errors import AntorchaError, DtypeError, MissingFeature, ShapeError
from antorcha.lang.kernels import Host
from antorcha.lazy import np
from antorcha.ops.kernel import Planned
from antorcha.ops.record import T
from antorcha.runtime import layout as L
from antorcha.shapes import contiguous_strides

if TYPE_CHECKING:
    from antorcha.runtime.layout import Layout
    from antorcha.runtime.tensor import Tensor


class LinAlgError(AntorchaError, RuntimeError):
    """A matrix that the algorithm cannot work on: singular, or not positive definite.

    Example: ``torch.linalg.inv(torch.zeros(2, 2))``.
    """


def check_float(op: str, lay: Layout) -> None:
    if lay.dtype.kind not in "fc":
        raise DtypeError(
            "{op}: Expected a floating point or complex tensor as input. Got {0.dtype}; cast "
            "first, e.g. {fix}",
            reason="needs float", op=op, operands=(lay,), fix="A.float()",
        )  # fmt: skip
    if lay.dtype.itemsize == 2:
        raise MissingFeature(f"{op}: not implemented for {lay.dtype}; use A.float()")


def check_matrix(op: str, lay: Layout, name: str = "A") -> None:
    """At least two dims, of floats."""
    if lay.ndim < 2:
        raise ShapeError(
            f"{op}: The input tensor {name} must have at least 2 dimensions, but its shape is "
            f"{tuple(lay.shape)}"
        )
    check_float(op, lay)


def check_square(op: str, lay: Layout, name: str = "A") -> None:
    """A square matrix or a stack of them, of floats."""
    check_matrix(op, lay, name)
    m, n = lay.shape[-2:]
    if m != n:
        raise ShapeError(
            "{op}: {name} must be batches of square matrices, but they are {m} by {n} matrices",
            reason="square", op=op, operands=(lay,), name=name, m=m, n=n,
        )  # fmt: skip


def check_same(op: str, a: Layout, b: Layout) -> None:
    if a.dtype is not b.dtype:
        raise DtypeError(f"{op}: Expected A and B to have the same dtype, got {a.dtype}, {b.dtype}")


def by_columns(shape: tuple[int, ...], dtype: Any, device: Any) -> Layout:
    """Matrices that lie column by column, as LAPACK leaves them."""
    strides = list(contiguous_strides((*shape[:-2], shape[-1], shape[-2])))
    strides[-2:] = strides[-1], strides[-2]
    return L.layout(tuple(shape), tuple(strides), dtype, device)


def planned(op: str, run: Callable[..., Any], outs: list[Any], why: str = "") -> Planned:
    """A plan that runs NumPy's LAPACK; ``why`` is what it means when that gives up."""

    def guarded(*arrays: Any) -> Any:
        try:
            return run(*arrays)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"{op}: {why or error}") from None

    return Planned(Host(guarded), outs)


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of a stack of matrices."""
    found = T.transpose(x, -2, -1)
    return T.conj(found) if x._layout.dtype.kind == "c" else found  # type: ignore[no-any-return]


def eye_like(x: Tensor) -> Tensor:
    """The identity matrix of the last dim's size."""
    lay = x._layout
    return T.eye(lay.shape[-1], dtype=lay.dtype, device=lay.device)  # type: ignore[no-any-return]


def as_column(x: Tensor) -> Tensor:
    """Each element of the last dim as a row's factor: (..., n, 1)."""
    return T.unsqueeze(x, -1)  # type: ignore[no-any-return]


def as_row(x: Tensor) -> Tensor:
    """Each element of the last dim as a column's factor: (..., 1, n)."""
    return T.unsqueeze(x, -2)  # type: ignore[no-any-return]
