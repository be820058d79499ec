"""Matrix products of every form and size that a kernel of its own is taken for."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.cpu import matmul

ROWS = (1, 2, 3, 4, 5, 8, 13, 14, 29, 84, 85)
DEPTHS = (1, 7, 8, 17, 64, 400, 1030, 4500)
COLUMNS = (1, 3, 16, 31, 33, 100, 1030)


def laid(array: Any, form: str) -> torch.Tensor:
    """A tensor of these elements: by rows, by columns, or with gaps in both."""
    if form == "rows":
        return torch.from_numpy(array.copy())
    if form == "columns":
        return torch.from_numpy(array.T.copy()).t()
    number = float("nan") if array.dtype.kind == "f" else 77
    wide = torch.from_numpy(np.full((2 * array.shape[0], 2 * array.shape[1]), number, array.dtype))
    wide[::2, ::2] = torch.from_numpy(array)
    return wide[::2, ::2]


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_and_layouts(dtype: str, threads: int) -> None:
    """Beside NumPy's product in float64. What lies beyond an operand's end is not multiplied."""
    draw = np.random.default_rng(0)
    forms = itertools.cycle(itertools.product(("rows", "columns", "gaps"), repeat=2))
    close = {"float32": 3e-6, "float64": 1e-14}[dtype]
    for m, k, n in itertools.product(ROWS, DEPTHS, COLUMNS):
        if m * k * n > 2**22:
            continue
        a, b = draw.standard_normal((m, k)), draw.standard_normal((k, n))
        a, b = a.astype(dtype), b.astype(dtype)
        c = draw.standard_normal((m, n)).astype(dtype)
        expected = a.astype("float64") @ b.astype("float64")
        for _ in range(2):  # (of the nine pairs of forms all are met, at each size others)
            form = next(forms)
            x, y = laid(a, form[0]), laid(b, form[1])
            what = f"{(m, k, n)}, {form}"
            atol = close * max(1.0, k**0.5)
            np.testing.assert_allclose((x @ y).numpy(), expected, close, atol, err_msg=what)
            found = torch.addmm(torch.from_numpy(c), x, y, beta=0.5, alpha=2.0)
            sums = 0.5 * c + 2 * expected
            np.testing.assert_allclose(found.numpy(), sums, close, 4 * atol, err_msg=what)


def test_integers() -> None:
    """Sums wrap around, as NumPy's do."""
    draw = np.random.default_rng(0)
    forms = itertools.cycle(itertools.product(("rows", "columns", "gaps"), repeat=2))
    wrong = []
    for dtype in ("int64", "int32", "int16", "int8", "uint8"):
        for m, k, n in itertools.product((1, 2, 5, 40), (1, 17, 400, 4500), (1, 3, 70)):
            a, b = [draw.integers(0, 100, size).astype(dtype) for size in ((m, k), (k, n))]
            c, expected = draw.integers(0, 100, (m, n)).astype(dtype), a @ b
            form = next(forms)
            x, y = laid(a, form[0]), laid(b, form[1])
            found = torch.addmm(torch.from_numpy(c), x, y, beta=3, alpha=2)
            sums = (3 * c + 2 * expected).astype(dtype)
            both = (x @ y).numpy(), expected, found.numpy(), sums
            if not (np.array_equal(*both[:2]) and np.array_equal(*both[2:])):
                wrong.append((dtype, (m, k, n), form))
    assert not wrong, wrong[:20]


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_infinities_stay_where_they_are(form: str) -> None:
    for m, k in itertools.product((1, 2, 4, 9), (1, 9, 15, 17)):
        a, b = np.ones((m, k), np.float32), np.ones((k, 20), np.float32)
        b[-1, 3], b[0, 7] = np.inf, -np.inf
        if k == 1:
            b[0, 7] = 5
        np.testing.assert_array_equal((laid(a, "rows") @ laid(b, form)).numpy(), a @ b)


def test_another_number_of_threads_cuts_the_work_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts: list[tuple[int, ...]] = []
    split = matmul.split
    monkeypatch.setattr(matmul, "split", lambda *a: cuts.append(split(*a)) or cuts[-1])
    x, y = torch.ones(256, 257), torch.ones(257, 320)
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 2, 1):
            torch.set_num_threads(count)
            for _ in range(3):
                x @ y
    finally:
        torch.set_num_threads(before)
    # (A size may be planned twice: for all sizes at first, for itself when it comes again.)
    assert [parts for parts, _ in itertools.groupby([cut[0] * cut[1] for cut in cuts])] == [1, 2, 1]
