"""Stacks of small matrices: the CPU's kernels against LAPACK, which the reference device runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha import linalg
from antorcha.devices import cpu
from antorcha.lang.kernels import Matrices
from antorcha.runtime.call import plan

SHAPES = (
    (8, 8), (6, 4, 4), (2, 37, 5, 5), (5, 32, 32), (7, 5, 3), (7, 3, 5), (40, 1, 1), (17, 47, 47),
    (9, 64, 33), (8, 33, 64),
)  # fmt: skip
FEW = ((5, 5), (2, 3, 7), (3, 20, 20), (1, 1))
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}


@pytest.fixture
def no_lapack(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The CPU device, which must not call LAPACK from Python meanwhile."""
    compiled = cpu.compile_host

    def compile(what: Any, outs: Any, ins: Any) -> Any:
        assert not isinstance(what, Matrices), f"{what.kind} of {ins} has no kernel"
        return compiled(what, outs, ins)

    monkeypatch.setattr(cpu, "compile_host", compile)
    plan.flush()
    yield
    plan.flush()


def matrices(shape: tuple[int, ...], dtype: str, what: str) -> Any:
    a = np.random.default_rng(len(shape)).uniform(-3, 3, shape)
    if what == "deficient":
        a[..., -1] = a[..., 0]
        a[..., 0, :] = 0
    if what == "graded":
        a *= 10.0 ** -np.arange(shape[-1])
    if what == "tiny":
        a *= 1e-30 if dtype == "float32" else 1e-280
    if what == "zero":
        a[1::2] = 0
    return a.astype(dtype)


def positive(a: Any) -> Any:
    return a @ np.swapaxes(a, -1, -2) + a.shape[-1] * np.eye(a.shape[-1], dtype=a.dtype)


def both(call: Callable[..., Any], *arrays: Any) -> tuple[list[Any], list[Any]]:
    """What the kernels and what LAPACK give, as arrays."""
    found: list[list[Any]] = []
    for device in ("cpu", "reference"):
        result = call(*[antorcha.tensor(x, device=device) for x in arrays])
        results = result if isinstance(result, tuple) else (result,)
        found.append([x.cpu().numpy() for x in results])
    return found[0], found[1]


def near(have: Any, want: Any, dtype: str, scale: float = 1.0) -> None:
    """Equal up to some hundreds of roundings of numbers of size ``scale``."""
    np.testing.assert_allclose(
        have, want, rtol=1000 * EPSILON[dtype], atol=1000 * EPSILON[dtype] * scale
    )


def is_factorisation(product: Any, a: Any, dtype: str, *orthonormal: Any) -> None:
    """Does a product give the matrices back, and are the columns of some factors orthonormal?"""
    size = float(np.abs(a).max()) or 1.0
    n = max(a.shape[-2:])
    np.testing.assert_allclose(product / size, a / size, atol=20 * n * EPSILON[dtype], rtol=0)
    for q in orthonormal:
        eye = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
        atol = 20 * n * EPSILON[dtype]
        np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, eye, atol=atol, rtol=0)


KINDS = ("random", "deficient", "graded", "tiny", "zero")


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", SHAPES)
def test_elimination(dtype: str, shape: tuple[int, ...], no_lapack: None) -> None:
    for what in KINDS:
        a = matrices(shape, dtype, what)
        LU, found, info = [x.numpy() for x in linalg.lu_factor_ex(antorcha.tensor(a))]
        P, L, U = [x.numpy().astype("float64") for x in linalg.lu(antorcha.tensor(a))]
        is_factorisation(P @ L @ U, a.astype("float64"), dtype)
        assert np.abs(L).max() <= 1
        if what == "random":
            have, want = both(linalg.lu_factor_ex, a)
            near(have[0], want[0], dtype, 30)
            np.testing.assert_array_equal(found, want[1])
            np.testing.assert_array_equal(info, want[2])
        if what == "zero" and a.shape[0] > 1 and a.ndim > 2:
            assert (info[1::2] == 1).all()
            assert (info[::2] == 0).all()
            assert (LU[1::2] == 0).all()


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("n", [1, 2, 5, 8, 13, 32, 50])
def test_solutions(dtype: str, n: int, no_lapack: None) -> None:
    a = positive(matrices((3, 7, n, n), dtype, "random"))
    b, shared = matrices((3, 7, n, 4), dtype, "random"), matrices((1, n, 6), dtype, "random")
    vectors = matrices((3, 7, n), dtype, "random")
    for call, *given in (
        (linalg.solve, a, b), (linalg.solve, a, shared), (linalg.solve, a, vectors),
        (linalg.solve, a[0, 0], vectors[0, 0]), (linalg.solve_ex, a, b), (linalg.inv, a),
        (lambda a, b: linalg.solve(a, b.mT, left=False), a, b), (linalg.inv_ex, a),
        (linalg.solve, a.swapaxes(-1, -2)[:, ::2], b[:, ::2]), (linalg.slogdet, a),
        (lambda a: linalg.inv(a[1:, 2:].mT), a), (lambda a: linalg.det(a / a.amax((-1, -2), True)),
        a), (linalg.cholesky, a), (lambda a: linalg.cholesky(a.mT, upper=True), a),
        (linalg.cholesky_ex, a[:, 0]),
    ):  # fmt: skip
        if n >= 32 and (len(given) == 1 or n > 32) and given[0] is not a:
            continue
        for have, want in zip(*both(call, *given), strict=True):
            near(have, want, dtype, 10)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("n", [1, 2, 5, 32, 50])
def test_systems_of_factors(dtype: str, n: int, no_lapack: None) -> None:
    a, b = (
        positive(matrices((3, 9, n, n), dtype, "random")),
        matrices((3, 9, n, 4), dtype, "random"),
    )
    one, many = positive(matrices((1, n, n), dtype, "random"))[0], b[0]
    factors = lambda x: linalg.lu_factor(x.mT.contiguous().mT.flip(-1))  # noqa: E731
    wrong: list[str] = []
    for upper in (False, True):
        for unit in (False, True):
            for name, call, *given in (
                ("left", lambda a, b, u=upper, w=unit: linalg.solve_triangular(
                    a / n, b, upper=u, unitriangular=w), a, b),
                ("right", lambda a, b, u=upper, w=unit: linalg.solve_triangular(
                    a / n, b.mT, upper=u, left=False, unitriangular=w), a, b),
                ("one matrix", lambda a, b, u=upper, w=unit: linalg.solve_triangular(
                    a / n, b, upper=u, unitriangular=w), one, many),
                ("cholesky", lambda a, b, u=upper: antorcha.cholesky_solve(b, a / n, u), a, b),
                ("lu", lambda a, b, u=upper: linalg.lu_solve(*factors(a), b, adjoint=u), a, b),
                ("lu, one right side", lambda a, b, u=upper: linalg.lu_solve(
                    *factors(a), b, adjoint=u), a, b[0, :1]),
            ):  # fmt: skip
                have, want = [x[0] for x in both(call, *given)]
                size = float(np.abs(want).max())
                try:
                    near(have / size, want / size, dtype)
                except AssertionError as error:
                    wrong.append(f"{name}, upper={upper}, unit={unit}: {error}")
    assert not wrong, "\n".join(wrong)


def test_pivots_are_rows(no_lapack: None) -> None:
    """Any row may be exchanged with any; what is no row is refused, in whichever matrix."""
    rng = np.random.default_rng(0)
    for shape in ((20, 4), (3,), (2, 9, 1)):
        n = shape[-1]
        pivots = rng.integers(1, n + 1, shape).astype("int32")
        LU, b = positive(matrices((*shape, n), "float64", "random")), rng.random((*shape, 2))
        for call in (
            lambda p, x: antorcha.lu_unpack(x, p).P, lambda p, x, b: linalg.lu_solve(x, p, b),
            lambda p, x, b: linalg.lu_solve(x, p, b, adjoint=True),
        ):  # fmt: skip
            given = (pivots, LU, b)[: call.__code__.co_argcount]
            have, want = both(call, *given)
            near(have[0], want[0], "float64")
            for value in (0, n + 1, -5):
                bad = pivots.copy()
                bad[..., -1] = value
                with pytest.raises(RuntimeError, match="between 1 and"):
                    call(*[antorcha.tensor(x) for x in (bad, *given[1:])])


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", [(7, 6, 6), (2, 9, 8, 3), (9, 3, 8), (8, 40, 40), (9, 64, 20)])
def test_least_squares(dtype: str, shape: tuple[int, ...], no_lapack: None) -> None:
    a, b = matrices(shape, dtype, "random"), matrices((*shape[:-1], 5), dtype, "random")
    for factor in (1.0, 1e-20, 1e15):  # sizes that leave the range of their squares
        have, want = both(
            lambda a, b: linalg.lstsq(a, b).solution, (a * factor).astype(dtype), b
        )  # fmt: skip
        size = float(np.abs(want[0]).max())
        near(have[0] / size, want[0] / size, dtype, 20)
    x = linalg.lstsq(antorcha.tensor(a), antorcha.tensor(b))
    assert (x.rank == min(shape[-2:])).all()
    if shape[-2] >= shape[-1]:  # what is left is orthogonal to the columns
        rest = b.astype("float64") - a.astype("float64") @ x.solution.numpy()
        atol = 100 * shape[-2] * EPSILON[dtype] * float(np.abs(x.solution.numpy()).max())
        np.testing.assert_allclose(np.swapaxes(a, -1, -2) @ rest, 0, atol=atol)
    deficient = matrices(shape, dtype, "deficient")
    if shape[-2] >= shape[-1]:
        x = linalg.lstsq(antorcha.tensor(deficient), antorcha.tensor(b))
        assert (x.rank < min(shape[-2:])).all()
        want = np.linalg.pinv(deficient.astype("float64"), 1e-5) @ b
        np.testing.assert_allclose(x.solution.numpy(), want, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", [*SHAPES, (4, 20, 6), (3, 2, 32)])
def test_reflectors(dtype: str, shape: tuple[int, ...], no_lapack: None) -> None:
    for what in KINDS:
        a = matrices(shape, dtype, what)
        for mode in ("reduced", "complete"):
            Q, R = [x.numpy() for x in linalg.qr(antorcha.tensor(a), mode)]
            is_factorisation(Q.astype("float64") @ R, a.astype("float64"), dtype, Q)
            assert (np.tril(R, -1) == 0).all()
        np.testing.assert_array_equal(
            linalg.qr(antorcha.tensor(a), "r").R.numpy(), R[..., : min(shape[-2:]), :]
        )
        if what == "random":  # the signs are LAPACK's
            have, want = both(linalg.qr, a)
            for x, y in zip(have, want, strict=True):
                near(x, y, dtype, 10)
            for x, y in zip(*both(antorcha.geqrf, a), strict=True):
                near(x, y, dtype, 10)
            m, n = shape[-2:]
            c = matrices((*shape[:-1], 3), dtype, "random")
            for left in (False, True):
                for adjoint in (False, True):
                    have, want = both(
                        lambda a, c, left=left, adjoint=adjoint: antorcha.ormqr(
                            *antorcha.geqrf(a), c if left else c.mT, left, adjoint
                        ), a, c,
                    )  # fmt: skip
                    near(have[0], want[0], dtype, 30)
            for count in (min(m, n), min(m, n) - 1):
                if m >= n and count:
                    have, want = both(
                        lambda a, count=count: linalg.householder_product(
                            antorcha.geqrf(a)[0], antorcha.geqrf(a)[1][..., :count]
                        ), a,
                    )  # fmt: skip
                    near(have[0], want[0], dtype, 10)


def test_reflectors_keep_lapacks_signs(no_lapack: None) -> None:
    """Of columns that are zero below the diagonal, or all but so, and of none below."""
    a = np.array([[[1.0, 2], [0, 3]], [[1, 2], [1e-200, 3]], [[-1, 2], [0, 0]], [[0, 0], [0, 1]]])
    have, want = both(lambda a: linalg.qr(a), a)
    for x, y in zip(have, want, strict=True):
        near(x, y, "float64")


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", [*SHAPES, *FEW, (4, 20, 6), (5, 2, 32)])
def test_singular_values(dtype: str, shape: tuple[int, ...], no_lapack: None) -> None:
    for what in KINDS:
        a = matrices(shape, dtype, what)
        (alone,), (want,) = both(linalg.svdvals, a)
        for full in (False, True):
            U, S, Vh = [x.numpy().astype("float64") for x in linalg.svd(antorcha.tensor(a), full)]
            k = min(shape[-2:])
            product = (U[..., :k] * S[..., None, :]) @ Vh[..., :k, :]
            is_factorisation(product, a.astype("float64"), dtype, U, np.swapaxes(Vh, -1, -2))
            size = float(np.abs(a).max()) or 1.0
            near(S / size, want / size, dtype)
            near(alone / size, want / size, dtype)
            assert (np.diff(S) <= 0).all()
            assert (S >= 0).all()


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("UPLO", ["L", "U"])
@pytest.mark.parametrize("shape", [s for s in (*SHAPES, *FEW) if s[-1] == s[-2]])
def test_eigenvalues(dtype: str, UPLO: str, shape: tuple[int, ...], no_lapack: None) -> None:
    for what in KINDS:
        a = matrices(shape, dtype, what)
        (alone,), (want,) = both(lambda a: linalg.eigvalsh(a, UPLO), a)
        w, V = [x.numpy().astype("float64") for x in linalg.eigh(antorcha.tensor(a), UPLO)]
        half = np.tril(a) if UPLO == "L" else np.swapaxes(np.triu(a), -1, -2)
        whole = half + np.swapaxes(np.tril(half, -1), -1, -2)
        product = (V * w[..., None, :]) @ np.swapaxes(V, -1, -2)
        is_factorisation(product, whole.astype("float64"), dtype, V)
        size = float(np.abs(a).max()) or 1.0
        near(w / size, want / size, dtype, 10)
        near(alone / size, want / size, dtype, 10)
        assert (np.diff(w) >= 0).all()


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", [(5, 5), (1, 1), (2, 3, 8, 8), (30, 33, 33), (4, 64, 64)])
def test_eigenvalues_of_any_matrix(
    dtype: str, shape: tuple[int, ...], no_lapack: None
) -> None:  # fmt: skip
    for what in ("random", "deficient", "tiny", "turned"):
        a = matrices(shape, dtype, what if what != "turned" else "random")
        given = antorcha.tensor(a)
        if what == "turned":  # each matrix lies by columns, and matrices side by side
            given = antorcha.tensor(np.moveaxis(a, 0, -1).copy()).movedim(-1, 0)
        w, V = [x.numpy().astype("complex128") for x in linalg.eig(given)]
        size = float(np.abs(a).max()) or 1.0
        left = (a / size).astype("complex128") @ V - V * (w / size)[..., None, :]
        np.testing.assert_allclose(left, 0, atol=30 * shape[-1] * EPSILON[dtype])
        norms = np.linalg.norm(V, axis=-2)
        np.testing.assert_allclose(norms, 1, atol=100 * EPSILON[dtype])
        trace = np.trace(a / size, axis1=-2, axis2=-1)
        np.testing.assert_allclose(
            (w / size).sum(-1), trace, atol=30 * shape[-1] * EPSILON[dtype]
        )  # fmt: skip


NOT_FINITE = ("eig", "svd", "eigh", "svdvals", "eigvalsh")


@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "lu_factor", *NOT_FINITE])
def test_failures_are_lapacks(name: str, no_lapack: None) -> None:
    """The first of several, in whichever tile; the same text."""
    a = np.broadcast_to(np.eye(3), (600, 3, 3)).copy()
    for at in (577, 39, 311):
        a[at, 1, 1] = np.nan if name in ("eig", "svd", "svdvals", "cholesky") else 0
        if name in ("eigh", "eigvalsh"):
            a[at, 2, 0] = np.nan
    texts = []
    for device in ("cpu", "reference"):
        given = (antorcha.tensor(a, device=device),) * (2 if name == "solve" else 1)
        with pytest.raises(linalg.LinAlgError) as caught:
            getattr(linalg, name)(*given)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert name in NOT_FINITE or "(Batch element 39): " in texts[0]


def test_what_is_no_number_stays_in_its_matrix(no_lapack: None) -> None:
    a = positive(matrices((50, 4, 4), "float64", "random"))
    spoilt = a.copy()
    spoilt[7, 2, 1], spoilt[21, 0, 0] = np.nan, np.inf
    others = [k for k in range(50) if k not in (7, 21)]
    for call in (
        linalg.lu_factor_ex, linalg.inv_ex, linalg.cholesky_ex, linalg.det, linalg.slogdet,
        lambda a: tuple(linalg.qr(a)), lambda a: linalg.solve_ex(a, a),
    ):  # fmt: skip
        have, want = [call(antorcha.tensor(x)) for x in (spoilt, a)]
        for x, y in zip(*[r if isinstance(r, tuple) else (r,) for r in (have, want)], strict=True):
            np.testing.assert_array_equal(x.numpy()[others], y.numpy()[others])
        assert any([np.isnan(x.numpy()[7].astype(float)).any() for x in
                    (have if isinstance(have, tuple) else (have,))])  # fmt: skip
    singular = both(lambda a: linalg.inv_ex(a), np.zeros((3, 2, 2)))
    np.testing.assert_array_equal(singular[0][1], singular[1][1])


def test_a_matrix_has_its_result_in_any_stack(no_lapack: None) -> None:
    """Whatever stands beside it, on any number of threads, wherever it lies."""
    a = positive(matrices((70, 6, 6), "float32", "random"))
    threads = antorcha.get_num_threads()
    for call in (
        linalg.inv, linalg.cholesky, linalg.det, lambda a: linalg.svd(a)[0],
        lambda a: linalg.eigh(a)[1], lambda a: linalg.qr(a)[0], linalg.svdvals, linalg.eigvalsh,
        lambda a: linalg.lstsq(a, a).solution, lambda a: antorcha.cholesky_solve(a, a),
        lambda a: linalg.lu_solve(*linalg.lu_factor(a), a), linalg.pinv,
        lambda a: antorcha.orgqr(*antorcha.geqrf(a)),
    ):  # fmt: skip
        whole = call(antorcha.tensor(a)).numpy()
        for start, stop in ((0, 4), (3, 20), (66, 70)):
            np.testing.assert_array_equal(call(antorcha.tensor(a[start:stop])).numpy(),
                                          whole[start:stop])  # fmt: skip
        turned = antorcha.tensor(a.swapaxes(0, 1).copy()).transpose(0, 1)
        np.testing.assert_array_equal(call(turned).numpy(), whole)
        try:
            antorcha.set_num_threads(1)
            np.testing.assert_array_equal(call(antorcha.tensor(a)).numpy(), whole)
        finally:
            antorcha.set_num_threads(threads)


def test_results_lie_where_they_are_wanted(no_lapack: None) -> None:
    a = antorcha.tensor(positive(matrices((20, 4, 4), "float64", "random")))
    want = linalg.inv(a).numpy()
    out = antorcha.empty(4, 20, 4, dtype=a.dtype).transpose(0, 1)
    assert linalg.inv(a, out=out) is out
    np.testing.assert_array_equal(out.numpy(), want)
    linalg.inv(a, out=a)
    np.testing.assert_array_equal(a.numpy(), want)


def test_stacks_of_nothing() -> None:
    for shape in ((0, 3, 3), (2, 0, 0), (0, 0)):
        a = antorcha.zeros(shape)
        for name in (
            "inv", "cholesky", "det", "svd", "eigh", "qr", "lu_factor", "slogdet", "svdvals",
            "eigvalsh", "pinv",
        ):  # fmt: skip
            found = getattr(linalg, name)(a)
            for x in found if isinstance(found, tuple) else (found,):
                assert x.shape[: len(shape) - 2] == shape[:-2]
