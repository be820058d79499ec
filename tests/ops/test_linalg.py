"""Products, contractions and decompositions against PyTorch and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds import blas_threads
from tests.ops.parity import compare, data, functional, needs_torch

SHAPES = [
    ((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)), ((2, 5, 3, 4), (2, 5, 4, 2)), ((1, 1, 3, 4), (2, 1, 4, 2)),
    ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((2, 0, 4), (4, 5)), ((0,), (0,)), ((1, 1), (1, 1)),
]  # fmt: skip
BAD = [((3, 2), (3, 2)), ((), (2,)), ((2, 3, 4), (3, 4, 5)), ((3, 4), (5,)), ((2,), (3,))]


def spd(n: int, dtype: str = "float64", *batch: int) -> Any:
    x = data(*batch, n, n, dtype=dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + n * np.eye(n)


@needs_torch
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(a: Any, b: Any) -> None:
    for dtype in ("float32", "int64", "uint8", "complex64", "float16", "bfloat16"):
        compare(lambda lib, x, y: x @ y, data(*a, dtype=dtype), data(*b, dtype=dtype, seed=1),
                dtype=dtype, strides=True, scale=10)  # fmt: skip
    compare(lambda lib, x, y: lib.matmul(x, y), data(*a, dtype="float64"),
            data(*b, dtype="float64", seed=1), grad=2)  # fmt: skip
    compare(lambda lib, x, y: lib.matmul(x, y), data(*a, dtype="complex128"),
            data(*b, dtype="complex128", seed=1), grad=1)  # fmt: skip


@needs_torch
@pytest.mark.parametrize(("a", "b"), BAD)
def test_matmul_errors(a: Any, b: Any) -> None:
    compare(lambda lib, x, y: x @ y, data(*a), data(*b))


@needs_torch
def test_matmul_strides() -> None:
    x, y = data(4, 3, 5), data(3, 6, 5, seed=1)
    compare(lambda lib, x, y: x.permute(1, 0, 2) @ y.transpose(1, 2), x, y, strides=True, grad=1)
    compare(lambda lib, x, y: x[:, ::2] @ y[0].T, x, y, grad=1)
    compare(lambda lib, x, y: x.expand(2, 4, 3, 5) @ y[:2, None].transpose(-1, -2), x, y, grad=1)
    compare(lambda lib, x, y: x[0, 0].expand(3, 5) @ y[0].t(), x, y, grad=1)
    compare(lambda lib, x, y: x[:, :, 1:3] @ y[0, 1:3, :], x, y, grad=1)
    compare(
        lambda lib, x, y: lib.matmul(x[0], y[0].t(), out=lib.empty(6, 3).t()), x, y, strides=True
    )
    ours = antorcha.empty(3, 4, 6).transpose(0, 1)  # PyTorch cannot write to this one
    antorcha.matmul(antorcha.tensor(x), antorcha.tensor(y[0].T), out=ours)
    np.testing.assert_allclose(ours.numpy(), x @ y[0].T, rtol=1e-5, atol=1e-5)


def test_error_text() -> None:
    with pytest.raises(RuntimeError) as caught:
        antorcha.ones(3, 2) @ antorcha.ones(3, 2)
    assert str(caught.value) == (
        "matmul: (3, 2) @ (3, 2): inner sizes 2 and 3 differ. a @ b.T gives (3, 3); a.T @ b gives "
        "(2, 2)."
    )


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_products(dtype: str) -> None:
    def d(*shape: int, seed: int = 0) -> Any:
        return data(*shape, dtype=dtype, seed=seed)

    second = 2 if dtype == "float64" else 1
    cases = [
        (lambda t, x, y: t.mm(x, y), d(3, 4), d(4, 5)),
        (lambda t, x, y: t.bmm(x, y), d(2, 3, 4), d(2, 4, 5)),
        (lambda t, x, y: t.mv(x, y), d(3, 4), d(4)),
        (lambda t, x, y: t.dot(x, y), d(4), d(4, seed=2)),
        (lambda t, x, y: t.vdot(x, y), d(4), d(4, seed=2)),
        (lambda t, x, y: t.inner(x, y), d(3, 4), d(2, 4)),
        (lambda t, x, y: t.outer(x, y), d(3), d(4)),
        (lambda t, x, y, z: t.addmm(x, y, z, beta=2, alpha=0.5), d(5), d(3, 4), d(4, 5)),
        (lambda t, x, y, z: t.addmm(x, y, z), d(3, 5), d(3, 4), d(4, 5)),
        (lambda t, x, y, z: t.addmv(x, y, z, alpha=3), d(3), d(3, 4), d(4)),
        (lambda t, x, y, z: t.baddbmm(x, y, z, beta=2), d(2, 3, 5), d(2, 3, 4), d(2, 4, 5)),
        (lambda t, x, y, z: t.addbmm(x, y, z), d(3, 5), d(2, 3, 4), d(2, 4, 5)),
        (lambda t, x, y, z: t.addr(x, y, z, beta=2), d(3, 4), d(3), d(4)),
        (lambda t, x, y: t.kron(x, y), d(2, 3), d(3, 2)),
        (lambda t, x, y: t.kron(x, y), d(2), d(3, 2)),
        (lambda t, x, y: t.tensordot(x, y, 2), d(2, 3, 4), d(3, 4, 5)),
        (lambda t, x, y: t.tensordot(x, y, ([0, 2], [1, 0])), d(2, 3, 4), d(4, 2, 5)),
        (lambda t, x, y, z: t.chain_matmul(x, y, z), d(2, 3), d(3, 4), d(4, 2)),
        (lambda t, x, y, z: t.linalg.multi_dot([x, y, z]), d(3), d(3, 4), d(4)),
        (lambda t, x: t.matrix_power(x, 5), d(3, 3)),
        (lambda t, x: t.linalg.matrix_power(x, -2), d(2, 3, 3)),
        (lambda t, x: t.matrix_power(x, 0), d(3, 3)),
        (lambda t, x: t.trace(x), d(3, 4)),
        (lambda t, x, y: t.linalg.cross(x, y), d(4, 3), d(4, 3, seed=2)),
    ]
    for call, *arrays in cases:
        compare(call, *arrays, grad=second)


@needs_torch
def test_linear() -> None:
    def d(*shape: int, seed: int = 0) -> Any:
        return data(*shape, dtype="float64", seed=seed)

    linear = lambda t, *args: functional(t).linear(*args)  # noqa: E731
    compare(linear, d(3, 4), d(5, 4), d(5), grad=2)
    compare(linear, d(3, 4), d(5, 4), grad=2)
    compare(linear, d(2, 3, 4), d(5, 4), d(5), grad=2, strides=True)
    compare(linear, d(4), d(5, 4), d(5), grad=1)
    compare(linear, d(3, 4), d(4), grad=1)
    compare(linear, d(0, 4), d(5, 4), d(5), grad=1)
    compare(linear, d(3, 4), d(4, 3))
    compare(linear, d(3, 4), d(5, 4), d(4))
    compare(lambda t, x, w: functional(t).linear(x.transpose(0, 1), w), d(2, 3, 4), d(5, 4), grad=1)
    for lead in ((3,), (), (2, 3), (0,)):
        x, y = d(*lead, 4), d(*lead, 5)
        compare(lambda t, *a: functional(t).bilinear(*a), x, y, d(2, 4, 5), d(2), grad=1)


@needs_torch
@pytest.mark.parametrize(("equation", "shapes"), [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ij->ji", [(2, 3)]),
    ("ii", [(3, 3)]), ("ii->i", [(3, 3)]), ("ij->", [(2, 3)]), ("i,j->ij", [(2,), (3,)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ij,ij->i", [(2, 3), (2, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]), ("i,i->", [(3,), (3,)]), (" i j , j -> i", [(2,
    3), (3,)]),
    ("...,...->...", [(2, 3), (3,)]), ("ab...,b->a...", [(2, 3, 4), (3,)]), ("iij->j", [(3, 3, 2)]),
    ("ij,ij->ij", [(2, 1), (2, 3)]), ("ij,kj->jik", [(2, 3), (4, 3)]), ("bn,anm,bm->ba", [(2,
    3), (4, 3, 5), (2, 5)]),
    ("i->ii", [(3,)]), ("ij,jk", [(2, 3)]), ("ij,jk->ik", [(2, 3), (2, 3)]), ("ijk->ij", [(2,
    3)]), ("i1->i", [(2, 3)]),
])  # fmt: skip
def test_einsum(equation: str, shapes: Any) -> None:
    arrays = [data(*s, dtype="float64", seed=k) for k, s in enumerate(shapes)]
    compare(lambda lib, *x: lib.einsum(equation, *x), *arrays, grad=2)


@needs_torch
def test_einsum_forms() -> None:
    x, y = data(2, 3), data(3, 4)
    compare(lambda lib, a, b: lib.einsum(a, [0, 1], b, [1, 2], [0, 2]), x, y)
    compare(lambda lib, a, b: lib.einsum("ij,jk", [a, b]), x, y)


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_solvers(dtype: str, batch: Any) -> None:
    x, b, v = (
        data(*batch, 3, 3, dtype=dtype),
        data(*batch, 3, 2, dtype=dtype),
        data(*batch, 3, dtype=dtype),
    )
    order = 2 if dtype == "float64" else 1
    positive = spd(3, dtype, *batch)
    cases = [
        (lambda t, x: t.linalg.det(x), x), (lambda t, x: t.det(x), x), (lambda t,
        x: t.linalg.inv(x), x),
        (lambda t, x, b: t.linalg.solve(x, b), x, b), (lambda t, x, v: t.linalg.solve(x, v), x, v),
        (lambda t, x, b: t.linalg.solve(x, b.mT, left=False), x, b),
        (lambda t, x: t.linalg.pinv(x), data(*batch, 4, 3, dtype=dtype)),
        (lambda t, x: t.linalg.pinv(x), data(*batch, 3, 4, dtype=dtype)),
        (lambda t, x: t.linalg.matrix_exp(x), x / 3),
        (lambda t, x, b: t.linalg.solve_triangular(x, b, upper=True), positive, b),
        (lambda t, x, b: t.linalg.solve_triangular(x, b, upper=False, unitriangular=True),
        positive, b),
        (lambda t, x, b: t.linalg.lstsq(x, b).solution, data(*batch, 4, 3, dtype=dtype),
        data(*batch, 4, 2, dtype=dtype)),
        (lambda t, x: t.linalg.cholesky((x + x.mH) / 2), positive),
        (lambda t, x: t.linalg.cholesky((x + x.mH) / 2, upper=True), positive),
        (lambda t, b, x: t.cholesky_solve(b, t.linalg.cholesky((x + x.mH) / 2)), b, positive),
    ]  # fmt: skip
    for call, *arrays in cases:
        compare(call, *arrays, grad=order, scale=30)
    compare(lambda t, x: t.linalg.slogdet(x)[1], x, grad=order, scale=30)
    compare(lambda t, x: t.linalg.slogdet(x)[0], x)
    compare(lambda t, x: t.logdet(x), positive, grad=1 if dtype == "float64" else 0, scale=30)


@needs_torch
def test_singular() -> None:
    x = np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]])
    compare(lambda t, x: t.linalg.det(x), x)
    # PyTorch's gradient is zero where its LAPACK finds a pivot of exactly zero, which depends on
    # the processor; the derivative of a determinant is the matrix of cofactors everywhere.
    ours = antorcha.tensor(x, requires_grad=True)
    antorcha.linalg.det(ours).backward()
    cofactors = [[4.0, 4.0, -4.0], [-2.0, -2.0, 2.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(ours.grad.numpy(), cofactors, rtol=1e-12, atol=1e-12)
    for call in (
        lambda t, x: t.linalg.inv(x * 0), lambda t, x: t.linalg.solve(x * 0, x),
        lambda t, x: t.linalg.cholesky(-x), lambda t, x: t.linalg.det(x[:2]),
        lambda t, x: t.linalg.inv(x.long()), lambda t, x: t.linalg.det(x[0]),
    ):  # fmt: skip
        compare(call, x)
    with pytest.raises(antorcha.linalg.LinAlgError):
        antorcha.linalg.inv(antorcha.zeros(2, 2))


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_factorisations(dtype: str) -> None:
    """Compared through what does not depend on the signs that LAPACK is free to choose."""
    tall, wide, square = data(5, 3, dtype=dtype), data(3, 5, dtype=dtype), data(4, 4, dtype=dtype)
    order = 2 if dtype == "float64" else 1
    for x in (tall, wide, square, data(2, 4, 3, dtype=dtype)):
        compare(lambda t, x: t.linalg.svdvals(x), x, grad=order, scale=30)
        compare(lambda t, x: t.linalg.svd(x, False).S, x, grad=1, scale=30)
        compare(lambda t, x: (lambda u, s, v: (u * s.cos()[..., None, :]) @ v)(*t.linalg.svd(x,
            False)), x,
                grad=order, scale=100)  # fmt: skip
        compare(lambda t, x: (lambda q, r: q @ (r.mH @ r)[..., : q.shape[-1],
            : q.shape[-1]] @ q.mH)(*t.linalg.qr(x)), x,
                grad=order, scale=1000)  # fmt: skip
        compare(lambda t, x: t.linalg.qr(x, "complete").R.abs(), x, scale=30)
    hermitian = spd(4, dtype)
    compare(lambda t, x: t.linalg.eigvalsh((x + x.mH) / 2), hermitian, grad=order, scale=30)
    compare(lambda t, x: (lambda w, v: (v * w.cos()) @ v.mH)(*t.linalg.eigh((x + x.mH) / 2)),
        hermitian,
            grad=1, scale=100)  # fmt: skip
    compare(lambda t, x: t.linalg.eigvals(x).abs().sort()[0], square, grad=1, scale=100)
    compare(lambda t, x: (lambda w, v: v @ t.diag(w * w) @ t.linalg.inv(v))(*t.linalg.eig(x)),
        square,
            grad=1, scale=1000)  # fmt: skip
    for x in (tall, wide, square):
        compare(lambda t, x: t.linalg.lu_factor(x), x, scale=30)
        compare(lambda t, x: t.linalg.lu(x), x, scale=30)


@needs_torch
def test_norms() -> None:
    x = data(3, 4, dtype="float64")
    for order in ("fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2):
        compare(lambda t, x, o=order: t.linalg.matrix_norm(x, o), x, grad=1, scale=30)
        compare(lambda t, x, o=order: t.linalg.norm(x, o, keepdim=True), x)
        compare(
            lambda t, x, o=order: t.linalg.matrix_norm(x, o, (0, 2)), data(2, 3, 4, dtype="float64")
        )
    square = data(3, 3, dtype="float64")
    for p in (None, 1, 2, -2, "fro", np.inf):
        compare(lambda t, x, p=p: t.linalg.cond(x, p), square, scale=30)
    compare(lambda t, x: t.linalg.matrix_rank(x), np.outer([1.0, 2], [3.0, 4]))
    compare(lambda t, x: t.linalg.norm(x), x, grad=1)
    for p in (0.5, 1, 2, 3, np.inf):
        compare(lambda t, x, y, p=p: t.cdist(x, y, p), data(3, 4), data(2, 4, seed=1), grad=1)
    compare(lambda t, x, y: t.cdist(x, y), data(30, 4), data(28, 4, seed=1), scale=30)
    compare(lambda t, x: t.linalg.vander(x), data(4))


def test_with_numpy() -> None:
    x, y = data(3, 4, dtype="float64"), data(4, 5, dtype="float64")
    t = antorcha.tensor
    np.testing.assert_allclose((t(x) @ t(y)).numpy(), x @ y)
    np.testing.assert_allclose(antorcha.einsum("ij,jk->ki", t(x), t(y)).numpy(), (x @ y).T)
    a = spd(3)
    np.testing.assert_allclose(antorcha.linalg.inv(t(a)).numpy(), np.linalg.inv(a))
    np.testing.assert_allclose(antorcha.linalg.eigvalsh(t(a)).numpy(), np.linalg.eigvalsh(a))


def test_complex_weights_of_real_products_are_refused() -> None:
    one = antorcha.ones(1, 1)
    for call in (antorcha.addmm, lambda *a, **k: antorcha.baddbmm(*[t[None] for t in a], **k)):
        for name in ("alpha", "beta"):
            with pytest.raises(RuntimeError, match="must be real numbers"):
                call(one, one, one, **{name: 1j})


def test_either_side_of_where_lapack_takes_one_thread() -> None:
    """Sizes around the limits, whatever the order of the operands; the threads come back."""
    functions = blas_threads._functions()
    before = functions[0]() if functions else 0
    for n in (31, 32, 33, 361, 362, 363):
        rng = np.random.default_rng(n)
        a = rng.standard_normal((n, n)) + n**0.5 * np.eye(n)
        s, b = a + a.T, rng.standard_normal((n, 3))
        for x, y in ((a, s), (a.T, s.T), (np.asfortranarray(a), np.asfortranarray(s))):
            A, S = antorcha.from_numpy(x), antorcha.from_numpy(y)
            found = antorcha.linalg.solve(A, antorcha.from_numpy(b)).numpy()
            np.testing.assert_allclose(x @ found, b, 0, 1e-9)
            for upper in "LU":
                one = antorcha.tril(S) if upper == "L" else antorcha.triu(S)
                values, vectors = antorcha.linalg.eigh(one, upper)
                product = vectors @ antorcha.diag(values) @ vectors.mT
                np.testing.assert_allclose(product.numpy(), y, 0, 1e-9)
        for singular in (np.zeros((n, n)), np.ones((n, n))):
            with pytest.raises(RuntimeError, match="singular"):
                antorcha.linalg.solve(antorcha.from_numpy(singular), antorcha.from_numpy(b))
    assert functions is None or functions[0]() == before


def test_threads_of_lapack_come_back_when_the_last_call_ends() -> None:
    functions = blas_threads._functions()
    if functions is None:
        pytest.skip("SciPy's LAPACK is not OpenBLAS's")
    before = functions[0]()
    with blas_threads.threads_for(4096):
        assert functions[0]() == 1
        with pytest.raises(ZeroDivisionError), blas_threads.threads_for(4096):
            _ = 1 / 0
        assert functions[0]() == 1
    assert functions[0]() == before
    with blas_threads.threads_for(1 << 20):
        assert functions[0]() == before
