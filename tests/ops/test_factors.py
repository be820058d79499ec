"""Factors of matrices, what is solved with them, and what LAPACK gives up on, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.autograd import gradcheck, gradgradcheck
from tests.ops.parity import compare, data, needs_torch

NUMBERS = ["float32", "float64", "complex64", "complex128"]


def tensor(*shape: int, dtype: str = "complex128", seed: int = 0) -> Any:
    return antorcha.tensor(data(*shape, dtype=dtype, seed=seed)).requires_grad_()


def pivots(*rows: int) -> Any:
    return antorcha.tensor(rows, dtype=antorcha.int32)


TURN = antorcha.tensor([[0.0, 0, 0], [0, 4, 0], [0, 0, 8]], dtype=antorcha.float64)
"""Keeps eigenvalues apart, so that differences are of the same ones."""


def _without_phase(values: Any, vectors: Any) -> tuple[Any, ...]:
    """What of eigenvectors does not depend on the phases that LAPACK is free to choose."""
    return values, vectors.abs(), vectors[..., :, None, 0] * vectors[..., None, :, 0].conj()


def _without_phases(U: Any, S: Any, Vh: Any) -> tuple[Any, ...]:
    """The same of singular vectors, whose two phases are one."""
    return S, U.abs(), Vh.abs(), U[..., :, None, 0] * Vh[..., None, 0, :]


# what gradients of first and second order are checked of, and the operands' shapes
SMOOTH: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "lu": (lambda a: antorcha.linalg.lu(a)[1:], [(2, 3, 3)]),
    "lu tall": (lambda a: antorcha.linalg.lu(a)[1:], [(4, 2)]),
    "lu wide": (lambda a: antorcha.linalg.lu(a)[1:], [(2, 4)]),
    "lu_factor": (lambda a: antorcha.linalg.lu_factor(a)[0], [(3, 3)]),
    "lu_unpack": (lambda a: antorcha.lu_unpack(a, pivots(3, 2))[1:], [(3, 2)]),
    "lu_solve": (lambda a, b: antorcha.linalg.lu_solve(a, pivots(3, 2, 3), b), [(3, 3), (3, 1)]),
    "lu_solve on the right": (
        lambda a, b: antorcha.linalg.lu_solve(a, pivots(2, 2), b, left=False), [(2, 2), (2, 1, 2)],
    ),
    "lu_solve, adjoint": (
        lambda a, b: antorcha.linalg.lu_solve(a, pivots(3, 2, 3), b, adjoint=True),
        [(3, 3), (3, 2)],
    ),
    "solve_ex": (lambda a, b: antorcha.linalg.solve_ex(a, b)[0], [(2, 3, 3), (2, 3)]),
    "inv_ex": (lambda a: antorcha.linalg.inv_ex(a)[0], [(3, 3)]),
    "cholesky_ex": (lambda a: antorcha.linalg.cholesky_ex(a @ a.mH)[0], [(3, 3)]),
    "solve_triangular": (
        lambda a, b: antorcha.linalg.solve_triangular(a, b, upper=False, left=False),
        [(3, 3), (2, 2, 3)],
    ),
    "triangular_solve": (
        lambda b, a: antorcha.triangular_solve(b, a, transpose=True, unitriangular=True)[0],
        [(3, 2), (3, 3)],
    ),
    "slogdet": (lambda a: antorcha.linalg.slogdet(a), [(2, 3, 3)]),
    "logdet": (lambda a: antorcha.logdet(a @ a.mH @ a), [(3, 3)]),
    "householder_product": (antorcha.linalg.householder_product, [(2, 4, 3), (2, 2)]),
    "ormqr": (antorcha.ormqr, [(4, 3), (3,), (4, 2)]),
    "ormqr on the right": (
        lambda *given: antorcha.ormqr(*given, left=False, transpose=True), [(4, 3), (3,), (2, 4)],
    ),
    "solve": (antorcha.linalg.solve, [(2, 3, 3), (3, 2)]),
    "solve on the right": (lambda a, b: antorcha.linalg.solve(a, b, left=False), [(3, 3), (2, 3)]),
    "inv": (antorcha.linalg.inv, [(2, 3, 3)]),
    "det": (antorcha.linalg.det, [(2, 3, 3)]),
    "cholesky": (lambda a: antorcha.linalg.cholesky(a @ a.mH), [(2, 3, 3)]),
    "cholesky, upper": (lambda a: antorcha.linalg.cholesky(a @ a.mH, upper=True), [(3, 3)]),
    "cholesky_solve": (
        lambda b, a: antorcha.cholesky_solve(b, antorcha.linalg.cholesky(a @ a.mH)),
        [(3, 2), (3, 3)],
    ),
    "cholesky_inverse": (
        lambda a: antorcha.cholesky_inverse(antorcha.linalg.cholesky(a @ a.mH)), [(3, 3)],
    ),
    "qr": (antorcha.linalg.qr, [(2, 3, 3)]),
    "qr tall": (antorcha.linalg.qr, [(4, 2)]),
    "qr wide": (antorcha.linalg.qr, [(2, 4)]),
    "svdvals": (antorcha.linalg.svdvals, [(2, 3, 2)]),
    "svd": (lambda a: _without_phases(*antorcha.linalg.svd(a, False)), [(2, 3, 3)]),
    "svd tall": (lambda a: _without_phases(*antorcha.linalg.svd(a, False)), [(4, 2)]),
    "svd wide": (lambda a: _without_phases(*antorcha.linalg.svd(a, False)), [(2, 4)]),
    "eigvalsh": (lambda a: antorcha.linalg.eigvalsh(a + a.mH), [(2, 3, 3)]),
    "eigh": (lambda a: _without_phase(*antorcha.linalg.eigh(a + a.mH)), [(2, 3, 3)]),
    "eigvals": (lambda a: antorcha.linalg.eigvals(a + TURN), [(3, 3)]),
    "eig": (lambda a: _without_phase(*antorcha.linalg.eig(a + TURN)), [(3, 3)]),
    "pinv tall": (antorcha.linalg.pinv, [(2, 4, 3)]),
    "pinv wide": (antorcha.linalg.pinv, [(2, 4)]),
    "pinv, hermitian": (lambda a: antorcha.linalg.pinv(a + a.mH, hermitian=True), [(3, 3)]),
    "lstsq tall": (lambda a, b: antorcha.linalg.lstsq(a, b).solution, [(2, 4, 3), (2, 4, 2)]),
    "lstsq wide": (lambda a, b: antorcha.linalg.lstsq(a, b).solution, [(2, 4), (2, 3)]),
    "matrix_exp": (antorcha.linalg.matrix_exp, [(2, 3, 3)]),
    "matrix_power": (lambda a: antorcha.linalg.matrix_power(a, -3), [(3, 3)]),
    "norm 2": (lambda a: antorcha.linalg.matrix_norm(a, 2), [(3, 2)]),
    "norm nuc": (lambda a: antorcha.linalg.matrix_norm(a, "nuc"), [(2, 3)]),
    "cond": (antorcha.linalg.cond, [(3, 3)]),
    "tensorsolve": (antorcha.linalg.tensorsolve, [(2, 3, 6), (2, 3)]),
    "tensorinv": (lambda a: antorcha.linalg.tensorinv(a, 1), [(4, 2, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives(name: str, dtype: str) -> None:
    call, shapes = SMOOTH[name]
    given = [tensor(*shape, dtype=dtype, seed=k) for k, shape in enumerate(shapes)]
    if name == "slogdet" and dtype == "float64":  # a real sign has no derivative to check
        call = lambda a: antorcha.linalg.slogdet(a)[1]  # noqa: E731
    assert gradcheck(call, given)
    assert gradgradcheck(call, given)


@pytest.mark.parametrize("kind", ["float", "complex"])
def test_derivatives_in_single_precision(kind: str) -> None:
    """They are those in double precision, rounded."""
    wrong = []
    for name, (call, shapes) in SMOOTH.items():
        found = []
        for bits in (32, 64) if kind == "float" else (64, 128):
            leaves = [tensor(*shape, dtype=f"{kind}{bits}", seed=k)
                      for k, shape in enumerate(shapes)]  # fmt: skip
            given = call(*leaves)
            for out in [given] if isinstance(given, antorcha.Tensor) else given:
                weights = antorcha.arange(out.numel()).cos().view(out.shape)
                total = out.real + out.imag if out.is_complex() else out
                if out.requires_grad:
                    (total * weights).sum().backward(retain_graph=True)
            found.append([leaf.grad.numpy() for leaf in leaves])
        for single, double in zip(*found, strict=True):
            off = np.abs(single - double).max() / np.abs(double).max()
            if single.dtype == double.dtype or not off < 1e-3:
                wrong.append(f"{name}: {single.dtype}, {off:.2g}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_factors_solve(dtype: str, hermitian: bool) -> None:
    a = tensor(3, 5, 5, dtype=dtype).detach()
    a = a + (a.mH if hermitian else a.mT)  # indefinite: some blocks of D have two rows
    LD, found = antorcha.linalg.ldl_factor(a, hermitian=hermitian)
    assert (found < 0).any()
    b = tensor(2, 1, 5, 2, dtype=dtype).detach()
    x = antorcha.linalg.ldl_solve(LD, found, b, hermitian=hermitian)
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose((a @ x).numpy(), b.expand(2, 3, 5, 2).numpy(), atol=tolerance)


@needs_torch
@pytest.mark.parametrize("dtype", NUMBERS)
def test_results_lie_as_pytorchs(dtype: str) -> None:
    a, b = data(2, 3, 3, dtype=dtype), data(2, 3, 2, dtype=dtype)
    for call in (
        lambda t, a, b: t.linalg.lu_factor_ex(a), lambda t, a, b: t.linalg.lu(a),
        lambda t, a, b: t.lu_unpack(*t.linalg.lu_factor(a)), lambda t, a, b: t.lu(a),
        lambda t, a, b: t.lu_solve(b, *t.linalg.lu_factor(a)),
        lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b.mT, left=False),
        lambda t, a, b: t.linalg.ldl_factor_ex(a + a.mT),
        lambda t, a, b: t.linalg.ldl_solve(*t.linalg.ldl_factor(a + a.mT), b),
        lambda t, a, b: t.linalg.solve_ex(a, b), lambda t, a, b: t.linalg.inv_ex(a),
        lambda t, a, b: t.linalg.tensorinv(a[0], 1),
        lambda t, a, b: t.geqrf(b), lambda t, a, b: t.geqrf(b.mT),
        lambda t, a, b: t.orgqr(*t.geqrf(b)), lambda t, a, b: t.ormqr(*t.geqrf(b), b),
        lambda t, a, b: t.triangular_solve(b, a[:1], upper=False),
        lambda t, a, b: t.matrix_exp(a / 9), lambda t, a, b: t.adjoint(b),
        lambda t, a, b: t.vander(b[0, 0], 0), lambda t, a, b: b.conj_physical(),
    ):  # fmt: skip
        compare(call, a, b, strides=True, scale=30)


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("count", [2, 20])  # matrix by matrix, and row by row
def test_triangular_stacks(dtype: str, count: int) -> None:
    a, b = data(count, 3, 3, dtype=dtype), data(2, 1, 3, 3, dtype=dtype)
    for upper in (False, True):
        for left in (False, True):
            for unitriangular in (False, True):
                compare(
                    lambda t, a, b, o=(upper, left, unitriangular): t.linalg.solve_triangular(
                        a, b, upper=o[0], left=o[1], unitriangular=o[2]
                    ),
                    a, b, grad=1, strides=True, scale=1000,
                )  # fmt: skip


@needs_torch
def test_nothing_is_factored() -> None:
    """Matrices without rows, without columns, and stacks of no matrices."""
    for shape in ((0, 0), (0, 3, 3), (2, 0, 3), (3, 0)):
        a = np.zeros(shape)
        for call in (
            lambda t, a: t.linalg.lu_factor_ex(a), lambda t, a: t.linalg.lu(a),
            lambda t, a: t.geqrf(a), lambda t, a: t.linalg.ldl_factor_ex(a[..., :0, :0]),
            lambda t, a: t.linalg.solve_ex(a @ a.mT, a), lambda t, a: t.linalg.inv_ex(a @ a.mT),
            lambda t, a: t.linalg.solve_triangular(a @ a.mT, a, upper=True),
            lambda t, a: t.linalg.householder_product(a.mT[..., :0], a[..., 0, :0])
            if a.shape[-2] else a,
        ):  # fmt: skip
            compare(call, a)


@needs_torch
def test_what_lapack_gives_up_on() -> None:
    x = np.array([[[1.0, 2], [2, 5]], [[1, 2], [2, 4]], [[0, 0], [0, 0]]])
    for call in (
        lambda t, x: t.linalg.inv_ex(x), lambda t, x: t.linalg.inv_ex(x[1]),
        lambda t, x: t.linalg.solve_ex(x, x), lambda t, x: t.linalg.lu_factor_ex(x),
        lambda t, x: t.linalg.solve_ex(x, x, left=False), lambda t, x: t.linalg.cholesky_ex(-x),
        lambda t, x: t.linalg.ldl_factor_ex(x * 0).info, lambda t, x: t.linalg.lu(x),
        lambda t, x: t.lu(x, get_infos=True), lambda t, x: x.lu(),
        lambda t, x: t.linalg.cholesky_ex(x[1] - t.eye(2), upper=True).info,
        lambda t, x: t.linalg.solve_triangular(x, x, upper=True),
    ):  # fmt: skip
        compare(call, x)


@needs_torch
def test_what_is_no_number_is_not_positive() -> None:
    x = np.stack([np.eye(3), np.diag([1.0, np.nan, 1])])
    compare(lambda t, x: t.linalg.cholesky_ex(x).info, x)
    with pytest.raises(antorcha.linalg.LinAlgError, match=r"element 1\): .*minor of order 2"):
        antorcha.linalg.cholesky(antorcha.tensor(x))
    with pytest.raises(antorcha.linalg.LinAlgError, match="contained non-finite values"):
        antorcha.linalg.svdvals(antorcha.tensor(x))


@needs_torch
@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "lu_factor", "lu_factor_ex"])
def test_which_of_a_stack_is_singular(name: str) -> None:
    import torch

    x = np.stack([np.eye(2), np.diag([1.0, 0]), np.zeros((2, 2))])
    texts = []
    for lib in (antorcha, torch):
        given = (lib.tensor(x),) * (2 if name == "solve" else 1)
        options = {"check_errors": True} if name.endswith("_ex") else {}
        with pytest.raises(RuntimeError, match=r"\(Batch element 1\): ") as caught:
            getattr(lib.linalg, name)(*given, **options)
        texts.append(str(caught.value).split("element 1): ")[1].split(". ")[0].rstrip("."))
    assert texts[0] == texts[1]


def test_pivots_are_checked() -> None:
    a = antorcha.eye(2)
    for wrong in (pivots(0, 1), pivots(1, 3)):
        for call in (
            lambda p: antorcha.lu_unpack(a, p), lambda p: antorcha.linalg.lu_solve(a, p, a),
            lambda p: antorcha.linalg.ldl_solve(a, p, a),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="between 1 and"):
                call(wrong)
    with pytest.raises(RuntimeError, match="int32"):
        antorcha.lu_unpack(a, antorcha.tensor([1, 2]))
    assert antorcha.lu_unpack(a, pivots(1, 2), unpack_data=False).L.shape == (0,)
    assert antorcha.lu_unpack(a, pivots(1, 2), unpack_pivots=False).P.shape == (0,)


def test_results_go_where_they_are_wanted() -> None:
    """Again and again: what is met often is served by machine code."""
    a = tensor(3, 3, dtype="float64").detach()
    for call, kinds in (
        (antorcha.linalg.lu_factor, "fi"), (antorcha.linalg.lu_factor_ex, "fii"),
        (antorcha.linalg.ldl_factor, "fi"), (antorcha.linalg.lu, "fff"), (antorcha.geqrf, "ff"),
        (antorcha.linalg.qr, "ff"), (antorcha.linalg.inv_ex, "fi"), (antorcha.lu, "fi"),
        (lambda a, **out: antorcha.triangular_solve(a, a, **out), "ff"),
    ):  # fmt: skip
        dtypes = [antorcha.float64 if k == "f" else antorcha.int32 for k in kinds]
        out = tuple([antorcha.empty(0, dtype=dtype) for dtype in dtypes])
        for _ in range(4):
            found = call(a, out=out)
        for have, given, want in zip(found, out, call(a), strict=True):
            assert have is given
            np.testing.assert_array_equal(have.numpy(), want.numpy())


@pytest.mark.parametrize("name", ["eig", "symeig", "solve", "lstsq", "matrix_rank"])
def test_what_was_removed_says_what_to_write(name: str) -> None:
    a = antorcha.eye(2)
    given = (a, a) if name in ("solve", "lstsq") else (a,)
    for call in (getattr(antorcha, name), getattr(antorcha.Tensor, name, antorcha.matrix_rank)):
        with pytest.raises(RuntimeError, match=r"is now removed[\s\S]*torch\.linalg"):
            call(*given)


@needs_torch
def test_sparse_matrices_of_low_rank() -> None:
    import torch

    dense = data(12, 8, dtype="float64") * (data(12, 8, seed=1) > 1)
    found = []
    for lib in (antorcha, torch):
        for x in (lib.tensor(dense).to_sparse(), lib.tensor(dense.T.copy()).to_sparse()):
            lib.manual_seed(1)
            found.append([
                lib.svd_lowrank(x, 3)[1].numpy(), lib.pca_lowrank(x, 3)[1].numpy(),
                lib.pca_lowrank(x, 3, center=False)[1].numpy(),
                lib.svd_lowrank(x, 3, M=lib.ones(x.shape, dtype=lib.float64))[1].numpy(),
            ])  # fmt: skip
    np.testing.assert_allclose(found[:2], found[2:], rtol=1e-9)
    for q, niter in ((9, 2), (-1, 2), (2, -1)):
        with pytest.raises(ValueError, match="must be non-negative"):
            antorcha.pca_lowrank(antorcha.ones(4, 4), q, niter=niter)


@needs_torch
@pytest.mark.parametrize("dtype", NUMBERS)
def test_large_matrices(dtype: str) -> None:
    """What LAPACK does in the precision of the matrix: one, and a stack; square, tall and wide."""
    for shape in ((40, 40), (2, 40, 40), (60, 20), (2, 20, 60)):
        a = data(*shape, dtype=dtype)
        for mode in ("reduced", "complete", "r"):
            compare(lambda t, a, m=mode: t.linalg.qr(a, m).R, a, strides=True, scale=300)
            compare(lambda t, a, m=mode: t.linalg.qr(a, m).Q, a, strides=True, scale=300)
        for full in (False, True):
            compare(lambda t, a, f=full: t.linalg.svd(a, f).S, a, strides=True, scale=30)
            compare(lambda t, a, f=full: rebuilt(t, *t.linalg.svd(a, f)), a, scale=300)
    for shape in ((40, 40), (2, 40, 40)):
        a = data(*shape, dtype=dtype)
        b = data(*shape[:-1], 3, dtype=dtype)
        for call in (
            lambda t, a, b: t.linalg.eigvalsh(a), lambda t, a, b: t.linalg.eigvalsh(a, "U"),
            lambda t, a, b: (lambda w, v: (v * w[..., None, :]) @ v.mH)(*t.linalg.eigh(a, "U")),
            lambda t, a, b: t.linalg.det(a / 4), lambda t, a, b: t.linalg.slogdet(a),
            lambda t, a, b: t.linalg.cholesky(a @ a.mH + 40 * t.eye(40)),
            lambda t, a, b: t.linalg.solve(a + 40 * t.eye(40), b),
            lambda t, a, b: t.linalg.inv(a + 40 * t.eye(40)),
        ):  # fmt: skip
            compare(call, a, b, scale=1000)
        compare(lambda t, a: t.linalg.inv_ex(a * 0).info, a)
        compare(lambda t, a: t.linalg.slogdet(a * 0), a)


def rebuilt(t: Any, U: Any, S: Any, Vh: Any) -> Any:
    """The matrix from its singular values and vectors."""
    k = S.shape[-1]
    return (U[..., :k] * S[..., None, :]) @ Vh[..., :k, :]


def test_determinants_beyond_single_precision() -> None:
    """The product of the pivots leaves the range of float32 on its way; the whole is in it."""
    a = antorcha.diag(antorcha.tensor([1e10] * 20 + [1e-10] * 20))
    np.testing.assert_allclose(antorcha.linalg.det(a).item(), 1.0, rtol=1e-4)
