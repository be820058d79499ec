"""Plans for sizes not seen: an outline gives what planning gives, for every op and any size."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.errors import NativeError, ShapeError
from antorcha.ops.kinds.record import Composite, Op
from antorcha.runtime.call import native, sizes
from antorcha.runtime.call import outline as outlines
from antorcha.runtime.call import plan as plans
from tests.ops.records import everything, samples

F = torch.nn.functional
NOT_OUTLINED = {
    # computed by NumPy, SciPy or LAPACK, or after a look at the operands' values
    "cholesky_solve", "complex", "fourier_complex", "fourier_real", "fourier_to_real",
    "linalg_cholesky", "linalg_cholesky_ex", "linalg_det",
    "linalg_householder_product", "linalg_inv", "linalg_inv_ex", "linalg_ldl_factor_ex",
    "linalg_ldl_solve", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_matrix_exp", "linalg_qr",
    "linalg_slogdet", "linalg_solve", "linalg_solve_ex", "linalg_solve_triangular", "linalg_svd",
    "masked_scatter", "mode", "ormqr", "polar", "put", "take",
}  # fmt: skip


@pytest.fixture(autouse=True)
def all_compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every plan by outline is compared with one made for the size itself. (The native path makes
    no plans: tests/runtime/test_native_sizes.py compares its results.)"""
    monkeypatch.setattr(sizes, "compared", True)
    plans.flush()
    with native.off():
        yield
    plans.flush()


def bound(op: Op) -> Iterator[tuple[Any, ...]]:
    """What the op's samples are bound to, with the numbers that an outline gets."""
    for args, kwargs in samples(op, torch.float32):
        _, operands, _, _, values = op.bind(args, kwargs)
        given = [o._layout for o in operands if o is not None]
        numbers = sizes.numbers_of(given, [values[k] for k in sizes.shapes_in(op, values)])
        if numbers:
            yield values, operands, given, numbers


@everything
def test_an_outline_plans_what_planning_does(op: Op) -> None:
    if isinstance(op, Composite) or not op.outlined:
        pytest.skip("it has no plans, or none that are outlined")
    for values, operands, given, numbers in bound(op):
        real = op.make_plan(values, None)
        if real.kind == plans.HOST:
            continue
        made = sizes.outlined(op, values, operands, numbers, False)
        if made is None:
            assert op.name in NOT_OUTLINED, sizes.refused[op.name]
            continue
        found = made.plan_for(given, numbers)
        assert found is not None
        sizes.compare(op, found, real)


# ---- over sizes
def n_by(*rest: int, grad: bool = False) -> Callable[[int], Any]:
    return lambda n: torch.rand(n, *rest, requires_grad=grad)


def classes(n: int) -> Any:
    return torch.arange(n) % 5


CASES: dict[str, tuple[Callable[..., Any], list[Callable[[int], Any]]]] = {
    "broadcast": (lambda a, b: a * b, [n_by(1), lambda n: torch.rand(7)]),
    "transposed": (lambda a, b: a + b.T, [n_by(8), lambda n: torch.rand(8, n)]),
    "grad": (lambda a, b: (a * b).sum().backward(), [n_by(3, grad=True), n_by(3)]),
    "sum of columns": (lambda a: a.sum(0), [n_by(8)]),
    "sum of rows": (lambda a: a.sum(1), [n_by(8)]),
    "mean kept": (lambda a: a.mean(-1, keepdim=True), [n_by(8)]),
    "var": (lambda a: a.var(0), [n_by(8)]),
    "argmax": (lambda a: a.argmax(1), [n_by(8)]),
    "max": (lambda a: a.max(1), [n_by(8)]),
    "softmax": (lambda a: torch.softmax(a, -1), [n_by(8)]),
    "layer_norm": (lambda a: F.layer_norm(a, (8,)), [n_by(8)]),
    "matmul": (lambda a, b: a @ b, [n_by(9), lambda n: torch.rand(9, n)]),
    "product in parts": (
        lambda a, b: a @ b, [lambda n: torch.rand(64 * n, 64), lambda n: torch.rand(64, 64)],
    ),
    "bmm": (torch.bmm, [lambda n: torch.rand(2, n, 4), lambda n: torch.rand(2, 4, n)]),
    "linear": (
        lambda a, w, b: F.linear(a, w, b).sum().backward(),
        [n_by(6), lambda n: torch.rand(4, 6, requires_grad=True), lambda n: torch.rand(4)],
    ),
    "cat": (lambda a, b: torch.cat([a, b]), [n_by(4), lambda n: torch.rand(3, 4)]),
    "stack": (lambda a, b: torch.stack([a, b]), [n_by(), n_by()]),
    "embedding": (F.embedding, [classes, lambda n: torch.rand(5, 3)]),
    "indexed": (lambda i, w: w[i], [classes, lambda n: torch.rand(5, 3)]),
    "cross entropy": (
        lambda x, t: F.cross_entropy(x, t).backward(), [n_by(5, grad=True), classes],
    ),
    "convolution": (
        lambda x, w: F.conv2d(x, w).sum().backward(),
        [lambda n: torch.rand(1, 2, n + 3, 8), lambda n: torch.rand(3, 2, 3, 3).requires_grad_()],
    ),
    "where": (lambda c, a: torch.where(c > 0.5, a, 0.0), [n_by(2), n_by(2)]),
    "cumsum": (lambda a: a.cumsum(0), [n_by(3)]),
    "sort": (lambda a: a.sort(0), [n_by(3)]),
    "zeros": (torch.zeros, [lambda n: (n, 3)]),
    "contiguous": (lambda a: a.t().contiguous(), [n_by(3)]),
    "in place": (lambda a, b: a.add_(b), [n_by(3), lambda n: torch.rand(3)]),
    "assigned": (lambda a, b: a.__setitem__(slice(1, None), b[1:]), [n_by(3), n_by(3)]),
    "cast": (lambda a: a.t().double(), [n_by(3)]),
    "index_add": (
        lambda a, i, b: a.index_add(0, i, b), [lambda n: torch.zeros(5, 3), classes, n_by(3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_other_sizes_are_served_and_right(name: str) -> None:
    run, makers = CASES[name]
    for n in (4, 5, 7, 6, 9, 16, 33, 64, 2, 3, 100, 1, 0 if name in ("zeros", "cat") else 8):
        run(*[make(n) for make in makers])  # `compared` checks each plan
    served = [family for family in sizes._families.values() if family.outlines]
    assert served, sizes.refused


def test_results_are_those_of_numpy() -> None:
    for n in range(2, 40):
        a, b = np.random.rand(n, 6).astype("float32"), np.random.rand(6, n).astype("float32")
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        np.testing.assert_allclose((x @ y).numpy(), a @ b, rtol=1e-5)
        np.testing.assert_allclose((x.t() + y).sum(0).numpy(), (a.T + b).sum(0), rtol=1e-5)
        np.testing.assert_allclose(torch.cat([x, y.t()]).numpy(), np.concatenate([a, b.T]))


def test_a_size_that_does_not_fit_is_refused_as_ever() -> None:
    for n in (3, 4, 5, 6, 9):
        torch.rand(2, n) @ torch.rand(n, 2)
        torch.rand(n) + torch.rand(n, 1).t()
    with pytest.raises(ShapeError, match="inner sizes 7 and 8"):
        torch.rand(2, 7) @ torch.rand(8, 2)
    with pytest.raises(ShapeError, match=r"broadcast|size"):
        torch.rand(3, 7) + torch.rand(3, 8)


def test_a_bad_index_is_told_with_the_size_of_its_own_call() -> None:
    for n in (3, 4, 5, 9):
        with pytest.raises(IndexError, match=f"size {n}"):
            torch.rand(n, 2).index_select(0, torch.tensor([1, n]))


# ---- the table
def families(name: str) -> list[sizes.Family]:
    return [family for key, family in sizes._families.items() if key[0].name == name]


def test_an_op_is_outlined_at_its_third_size() -> None:
    torch.rand(3, 8).softmax(-1)
    torch.rand(2, 8).softmax(-1)
    (family,) = families("softmax")
    assert (family.misses, len(family.outlines)) == (2, 0)
    torch.rand(4, 8).softmax(-1)
    assert (family.misses, len(family.outlines)) == (3, 1)
    for n in range(5, 50):
        torch.rand(n, 8).softmax(-1)
    assert family.misses < 6  # (how rows are shared out is asked of some)


def test_a_family_keeps_a_bounded_number_of_outlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlines.Outline, "plan_for", lambda self, given, numbers: None)
    for n in range(3, 40):
        torch.rand(n, 8).softmax(-1)
    (family,) = families("softmax")
    assert len(family.outlines) == sizes.MOST_OUTLINES
    assert family.misses > sizes.MOST_MISSES


def test_families_are_bounded_and_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "MOST_FAMILIES", 3)
    for dims in range(1, 6):
        torch.rand(*[2] * dims).sum(0)
        assert len(sizes._families) <= 3
    plans.flush()
    assert not sizes._families


def test_an_op_that_cannot_be_planned_with_symbols_is_planned_size_by_size() -> None:
    for n in (2, 3, 4, 5):
        x = np.eye(n, dtype="float32") * 3
        exponential = torch.linalg.matrix_exp(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(exponential, np.eye(n) * np.exp(3), rtol=1e-5, atol=1e-5)
    (family,) = families("linalg_matrix_exp")
    assert family.misses >= sizes.MOST_MISSES
    assert not family.outlines


def test_a_wrong_outline_is_found_where_plans_are_compared() -> None:
    for n in (3, 4, 5):
        torch.rand(n, 8).softmax(-1)
    (family,) = families("softmax")
    program = family.outlines[0].program

    def wrong(*numbers: int) -> Any:
        return program(numbers[0] + 1, *numbers[1:])

    family.outlines[0].program = wrong
    with pytest.raises(NativeError, match="softmax: an outline"):
        torch.rand(6, 8).softmax(-1)


def test_threads_outline_at_once() -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for n in range(2, 60):
                x = torch.full((n + seed, 4), 2.0)
                assert (x.t() @ x).sum().item() == 64.0 * (n + seed)
                assert torch.cat([x, x]).sum().item() == 16.0 * (n + seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
