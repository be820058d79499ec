"""Functions that PyTorch has removed: they refuse, and say what to write in their place."""

from __future__ import annotations

from typing import NoReturn

from antorcha.errors import MissingFeature
from antorcha.ops.kinds.record import composite
from antorcha.ops.kinds.types import Any, Bool, Tensor


def refuse(name: str, instead: str) -> NoReturn:
    raise MissingFeature(
        f"{name}: This function was deprecated since version 1.9 and is now removed. {instead}"
    )


@composite(page=False)
def eig(input: Tensor, eigenvectors: Bool = False):
    """Removed: ``linalg.eig`` gives complex eigenvalues and eigenvectors."""
    refuse(
        "eig",
        "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than "
        "real tensors mimicking complex tensors.\n\n"
        "L, V = torch.eig(A, eigenvectors=True) should be replaced with:\n"
        "L_complex, V_complex = torch.linalg.eig(A)",
    )


@composite(page=False)
def symeig(input: Tensor, eigenvectors: Bool = False, upper: Bool = True):
    """Removed: ``linalg.eigh`` gives the eigenvalues and eigenvectors of symmetric matrices."""
    refuse(
        "symeig",
        "The default behavior has changed from using the upper triangular portion of the matrix "
        "by default to using the lower triangular portion.\n\n"
        "L, V = torch.symeig(A, eigenvectors=True) should be replaced with:\n"
        "L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')",
    )


@composite(page=False)
def solve(input: Tensor, A: Tensor):
    """Removed: ``linalg.solve`` has its operands the other way round."""
    refuse(
        "solve",
        "`torch.linalg.solve` has its arguments reversed and does not return the LU "
        "factorization. To get that see `torch.linalg.lu_factor`.\n\n"
        "X = torch.solve(B, A).solution should be replaced with:\n"
        "X = torch.linalg.solve(A, B)",
    )


@composite(page=False)
def lstsq(input: Tensor, A: Tensor):
    """Removed: ``linalg.lstsq`` has its operands the other way round."""
    refuse(
        "lstsq",
        "`torch.linalg.lstsq` has reversed arguments, gives the residuals by themselves, and does "
        "not return the QR decomposition; `torch.linalg.qr` does.\n\n"
        "X, _ = torch.lstsq(B, A).solution[:A.size(1)] should be replaced with:\n"
        "X = torch.linalg.lstsq(A, B).solution",
    )


@composite(method=False, page=False)
def matrix_rank(input: Tensor, tol: Any = None, symmetric: Bool = False):
    """Removed: ``linalg.matrix_rank`` calls ``symmetric`` ``hermitian``."""
    refuse(
        "matrix_rank",
        "Please use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' "
        "was renamed in `torch.linalg.matrix_rank()` to 'hermitian'.",
    )
