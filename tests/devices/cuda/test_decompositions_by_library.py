"""Linear algebra by cuSOLVER, with a fake of it: each kind, in each type, against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.gpu import fallback
from tests.devices.cuda import fake_libraries
from tests.devices.cuda.fake_driver import FakeLibrary
from tests.devices.cuda.fake_solvers import FakeCusolver

Make = Callable[[Any], Any]
RNG = np.random.default_rng(0)
linalg = torch.linalg


@pytest.fixture
def solver(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> Any:
    fallback.noted.clear()
    return fake_libraries.install(monkeypatch, library, "cusolver", "cublas")["cusolver"]


def array(*shape: int) -> Any:
    return torch.tensor(RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape))


A, STACK, TALL, WIDE = array(5, 5), array(2, 3, 4, 4), array(2, 6, 4), array(4, 6)
B, MANY, VECTOR = array(5, 3), array(2, 3, 4, 2), array(5)
POSITIVE = A @ A.mH + torch.eye(5)
LOTS, RIGHT = array(3, 4, 3, 3), array(3, 4, 3, 2)
HERMITIAN = LOTS @ LOTS.mH + torch.eye(3)
SYMMETRIC = STACK + STACK.mH


def of_vectors(x: Any) -> Any:
    """A matrix from its eigenvalues and vectors."""
    w, v = linalg.eigh(x)
    return (v * w.unsqueeze(-2)) @ v.mH


def of_singular(x: Any, full: bool) -> Any:
    """A matrix from its singular values and vectors."""
    u, s, v = linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    return (u[..., :k] * s.unsqueeze(-2)) @ v[..., :k, :]


def gram(q: Any) -> Any:
    return q @ q.mH


CASES: dict[str, Make] = {
    "cholesky": lambda t: linalg.cholesky(t(POSITIVE)),
    "cholesky, upper": lambda t: linalg.cholesky(t(POSITIVE), upper=True),
    "cholesky, strided": lambda t: linalg.cholesky(t(POSITIVE).mT),
    "cholesky info": lambda t: torch.linalg.cholesky_ex(-t(POSITIVE)).info,
    "lu": lambda t: linalg.lu_factor(t(A))[0],
    "pivots": lambda t: linalg.lu_factor(t(STACK))[1],
    "lu of a wide matrix": lambda t: linalg.lu_factor(t(WIDE))[0],
    "lu of a tall matrix": lambda t: linalg.lu_factor(t(TALL))[0],
    "solve": lambda t: linalg.solve(t(A), t(B)),
    "solve, from the right": lambda t: linalg.solve(t(A), t(B).mT, left=False),
    "solve, a vector": lambda t: linalg.solve(t(A), t(VECTOR)),
    "solve, stacks": lambda t: linalg.solve(t(STACK), t(MANY)),
    "solve, one right side": lambda t: linalg.solve(t(STACK), t(MANY)[0, 0]),
    "solve, one matrix": lambda t: linalg.solve(t(STACK)[1, 2], t(MANY)),
    "solve info": lambda t: linalg.solve_ex(t(A) * 0, t(B)).info,
    "inverse": lambda t: linalg.inv(t(STACK)),
    "inverse, strided": lambda t: linalg.inv(t(A)[1:4, 1:4].mT),
    "inverse info": lambda t: linalg.inv_ex(t(STACK) * 0).info,
    "determinant": lambda t: linalg.det(t(STACK)),
    "determinant of one": lambda t: linalg.det(t(A)),
    "determinant of zeros": lambda t: linalg.det(t(A) * 0),
    "sign": lambda t: linalg.slogdet(t(STACK))[0],
    "logarithm": lambda t: linalg.slogdet(t(STACK))[1],
    "logarithm of zero": lambda t: linalg.slogdet(t(A) * 0)[1],
    "q r": lambda t: torch.matmul(*linalg.qr(t(TALL))),
    "r": lambda t: linalg.qr(t(TALL), mode="r").R.abs(),
    "q of a wide matrix": lambda t: torch.matmul(*linalg.qr(t(WIDE))),
    "q, complete": lambda t: torch.matmul(*linalg.qr(t(TALL), mode="complete")),
    "q is unitary": lambda t: gram(linalg.qr(t(TALL), mode="complete").Q),
    "eigenvalues": lambda t: linalg.eigh(t(SYMMETRIC)).eigenvalues,
    "eigenvalues, upper": lambda t: linalg.eigh(t(SYMMETRIC + STACK.tril(-1)), "U").eigenvalues,
    "eigenvalues alone": lambda t: linalg.eigvalsh(t(SYMMETRIC)),
    "eigenvalues alone, upper": lambda t: linalg.eigvalsh(t(SYMMETRIC + STACK.tril(-1)), "U"),
    "eigenvectors": lambda t: of_vectors(t(SYMMETRIC)),
    "singular values": lambda t: linalg.svdvals(t(TALL)),
    "singular values of a wide matrix": lambda t: linalg.svdvals(t(WIDE)),
    "singular values, beside vectors": lambda t: linalg.svd(t(TALL)).S,
    "u s v": lambda t: of_singular(t(TALL), False),
    "u s v, full": lambda t: of_singular(t(TALL), True),
    "u s v of a wide matrix": lambda t: of_singular(t(WIDE), True),
    "triangular": lambda t: linalg.solve_triangular(t(A), t(B), upper=False),
    "triangular, upper": lambda t: linalg.solve_triangular(t(STACK), t(MANY), upper=True),
    "triangular, unit": lambda t: linalg.solve_triangular(
        t(A) / 4, t(B), upper=True, unitriangular=True
    ),
    "triangular, from the right": lambda t: linalg.solve_triangular(
        t(A), t(B).mT, upper=True, left=False
    ),
    "triangular, many": lambda t: linalg.solve_triangular(t(STACK)[0, 0], t(MANY), upper=True),
    "cholesky solve": lambda t: torch.cholesky_solve(t(B), t(POSITIVE)),
    "cholesky solve, upper": lambda t: torch.cholesky_solve(t(B), t(POSITIVE), upper=True),
    "lu solve": lambda t: linalg.lu_solve(*linalg.lu_factor(t(STACK)), t(MANY)),
    "lu solve, adjoint": lambda t: linalg.lu_solve(*linalg.lu_factor(t(A)), t(B), adjoint=True),
    "reflectors": lambda t: torch.geqrf(t(TALL))[0].triu().abs(),
    "reflector product": lambda t: gram(torch.orgqr(*torch.geqrf(t(TALL)))),
    "reflected": lambda t: torch.ormqr(*torch.geqrf(t(A)), t(B)).abs(),
    "reflected, adjoint": lambda t: torch.ormqr(*torch.geqrf(t(A)), t(B), transpose=True).abs(),
    "reflected, right": lambda t: torch.ormqr(*torch.geqrf(t(A)), t(B).mT, left=False).abs(),
    "many: cholesky": lambda t: linalg.cholesky(t(HERMITIAN)),
    "many: lu": lambda t: linalg.lu_factor(t(LOTS))[0],
    "many: pivots": lambda t: linalg.lu_factor(t(LOTS))[1],
    "many: solve": lambda t: linalg.solve(t(LOTS), t(RIGHT)),
    "many: solve, from the right": lambda t: linalg.solve(t(LOTS), t(RIGHT).mT, left=False),
    "many: inverse": lambda t: linalg.inv(t(LOTS)),
    "many: inverse info": lambda t: linalg.inv_ex(t(LOTS) * 0).info,
    "many: determinant": lambda t: linalg.det(t(LOTS)),
    "many: logarithm": lambda t: linalg.slogdet(t(LOTS))[1],
    "many: lu solve": lambda t: linalg.lu_solve(
        *linalg.lu_factor(t(LOTS)), t(RIGHT), adjoint=True
    ),
    "many: triangular": lambda t: linalg.solve_triangular(t(LOTS), t(RIGHT), upper=True),
    "many: eigenvalues": lambda t: linalg.eigh(t(HERMITIAN)).eigenvalues,
    "many: eigenvalues alone": lambda t: linalg.eigvalsh(t(HERMITIAN)),
    "many: eigenvectors": lambda t: of_vectors(t(HERMITIAN)),
}  # fmt: skip
DTYPES = {
    torch.float32: 1e-4, torch.float64: 1e-11, torch.complex64: 1e-4, torch.complex128: 1e-11,
}  # fmt: skip


def on(device: str, dtype: torch.dtype) -> Make:
    """Makes a tensor of that dtype, there."""
    return lambda x: (x if dtype.is_complex else x.real).to(dtype).to(device)


def test_decompositions_are_those_of_the_cpu(solver: FakeCusolver) -> None:
    wrong = []
    for dtype, tolerance in DTYPES.items():
        for name, make in CASES.items():
            ours, theirs = make(on("cuda", dtype)), make(on("cpu", dtype))
            same = ours.shape == theirs.shape and ours.dtype == theirs.dtype
            if not same or not torch.allclose(ours.cpu(), theirs, rtol=tolerance, atol=tolerance):
                wrong.append(f"{name}, {dtype}: {ours} is not {theirs}")
    assert not wrong, "\n".join(wrong)
    assert "Matrices" not in fallback.noted


def test_a_matrix_that_cannot_be_factored_is_told(solver: FakeCusolver) -> None:
    bad = torch.zeros(2, 3, 3, device="cuda")
    out = torch.ones(2, 3, 3, device="cuda")
    for call in (
        lambda: linalg.inv(bad), lambda: linalg.solve(bad, bad), lambda: linalg.cholesky(bad),
        lambda: linalg.inv(bad, out=out), lambda: linalg.svd(bad[0] + float("nan")),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as found:
            call()
        assert "linalg" in str(found.value)
    assert (out == 1).all()  # nothing was written


def test_a_switch_leaves_them_to_the_host(solver: FakeCusolver) -> None:
    x = torch.tensor([[4.0, 1], [1, 3]], device="cuda")
    want = linalg.inv(x).cpu()
    calls = len(solver.calls)
    assert calls
    torch.backends.cuda.preferred_linalg_library("lapack")
    try:
        assert torch.allclose(linalg.inv(x).cpu(), want)
        assert len(solver.calls) == calls
    finally:
        torch.backends.cuda.preferred_linalg_library("default")


def test_a_failing_function_says_which(solver: FakeCusolver) -> None:
    solver.failing["cusolverDnXgetrf"] = 7
    with pytest.raises(RuntimeError, match=r"CUSOLVER_STATUS_INTERNAL_ERROR.*cusolverDnXgetrf"):
        linalg.inv(torch.eye(3, device="cuda"))
