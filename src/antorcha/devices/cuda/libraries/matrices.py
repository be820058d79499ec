"""Which class computes a kind of linear algebra by cuSOLVER."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import switches
from antorcha.devices.cuda.libraries import cusolver, decompositions, systems
from antorcha.devices.cuda.libraries.cusolver import Cusolver
from antorcha.devices.cuda.libraries.decompositions import Decomposition, are_many, seen_matrices
from antorcha.devices.cuda.libraries.launching import library_launch
from antorcha.devices.cuda.libraries.loader import library
from antorcha.devices.emit import Unsupported
from antorcha.lang.kernels import Launch, Matrices
from antorcha.runtime.memory.layout import Layout

KINDS: dict[str, type[Decomposition]] = {
    "cholesky": decompositions.Cholesky,
    "lu": decompositions.LowerUpper,
    "solve": decompositions.Solve,
    "inverse": decompositions.Inverse,
    "determinant": decompositions.Determinant,
    "logarithm": decompositions.Logarithm,
    "qr": decompositions.Orthogonal,
    "r": decompositions.Orthogonal,
    "eigh": decompositions.Eigen,
    "eigenvalues": decompositions.Eigen,
    "svd": decompositions.Singular,
    "singular values": decompositions.Singular,
    "triangular": systems.TriangularSolve,
    "cholesky solve": systems.CholeskySolve,
    "lu solve": systems.LuSolve,
    "reflectors": systems.Reflectors,
    "reflector product": systems.ReflectorProduct,
    "reflected": systems.Reflected,
}
DETAILS = ("info", "upper", "unit", "adjoint", "right")
"""Words of a kind that say how it is meant; the rest says what is computed."""


def plan_matrices(
    device: Any, what: Matrices, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:  # fmt: skip
    """A launch of cuSOLVER; Unsupported where it cannot, or is not to, compute it."""
    solver: Cusolver | None = library(Cusolver) if switches.libraries.linalg != "lapack" else None
    if solver is None:
        raise Unsupported("cuSOLVER is not used")
    kind = KINDS.get(" ".join([word for word in what.kind.split() if word not in DETAILS]))
    if kind is None or ins[0].dtype.name not in cusolver.LETTERS:
        raise Unsupported(f"cuSOLVER computes no {what.kind} of {ins[0].dtype}")
    if not all([each.numel for each in ins]):
        raise Unsupported("matrices without elements")
    turned = what.transposed
    matrices = [seen_matrices(each, turned, what.vectors and k > 0) for k, each in enumerate(ins)]
    if are_many(matrices[kind.MATRIX]) and not kind.TAKES_MANY:
        raise Unsupported("many small matrices")
    return library_launch(device, "Matrices", outs, kind(device, solver, what, outs, matrices).run)
