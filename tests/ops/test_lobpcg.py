"""Some eigenvalues of large matrices, against PyTorch and against all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.autograd import gradcheck, gradgradcheck
from tests.ops.parity import data, needs_torch


def positive(n: int, seed: int = 0) -> Any:
    x = data(n, n, dtype="float64", seed=seed)
    return x @ x.T + np.eye(n)


OPTIONS: list[dict[str, Any]] = [
    {"k": 3}, {"k": 2, "largest": False}, {"k": 2, "method": "basic"}, {"k": 1, "n": 3},
    {"k": 3, "niter": 3}, {"k": 2, "method": "basic", "niter": 4, "largest": False},
    {"k": 2, "ortho_bparams": {"ortho_use_drop": True}}, {"k": 2, "tol": 1e-3},
    {"k": 2, "B": positive(15, 1)}, {"k": 2, "B": positive(15, 1), "method": "basic"},
    {"X": data(15, 2, dtype="float64"), "iK": np.linalg.inv(positive(15)), "largest": False},
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("batch", [False, True])
def test_steps_as_pytorch(options: dict[str, Any], batch: bool) -> None:
    import torch

    found = []
    for lib in (antorcha, torch):
        made = lambda x, lib=lib: lib.tensor(x) if isinstance(x, np.ndarray) else x  # noqa: E731
        given: dict[str, Any] = {name: made(value) for name, value in options.items()}
        a = lib.tensor(positive(15))
        if batch:
            a = lib.stack([a, a * 2])
            for name in {"B", "X"} & given.keys():
                given[name] = lib.stack([given[name]] * 2)
        lib.manual_seed(0)
        steps: list[int] = []
        values, vectors = lib.lobpcg(
            a, tracker=lambda s, steps=steps: steps.append(s.ivars["istep"]), **given
        )
        found.append((values.numpy(), np.abs(vectors.numpy()), np.array(steps)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", ["ortho", "basic"])
def test_sparse_matrices(method: str) -> None:
    dense = np.diag(np.arange(1.0, 21)) + np.diag(np.ones(19), 1) + np.diag(np.ones(19), -1)
    antorcha.manual_seed(0)
    values, vectors = antorcha.lobpcg(antorcha.tensor(dense).to_sparse(), k=3, method=method)
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(dense)[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(dense @ vectors.numpy(), (vectors * values).numpy(), atol=1e-5)


@pytest.mark.parametrize("options", [{"k": 3}, {"k": 1, "largest": False}])
def test_derivatives(options: dict[str, Any]) -> None:
    def pairs(x: Any) -> Any:
        antorcha.manual_seed(1)
        values, vectors = antorcha.lobpcg((x + x.mT) / 2, tol=1e-14, **options)
        return values, vectors.abs()  # of which sign is nobody's promise

    stack = [positive(9), positive(9, 1)][: options["k"]]
    x = antorcha.tensor(np.stack(stack), requires_grad=True)
    assert gradcheck(pairs, (x,))
    assert gradgradcheck(pairs, (x,))


def test_a_tracker_stops_it() -> None:
    seen: list[Any] = []

    def look(state: Any) -> None:
        seen.append((state.ivars["istep"], tuple(state.S.shape)))
        state.bvars["force_stop"] = len(seen) == 2

    antorcha.lobpcg(antorcha.tensor(positive(15)), k=2, tracker=look)
    assert seen == [(1, (15, 4)), (2, (15, 6))]


def test_what_is_refused() -> None:
    a = antorcha.tensor(positive(9), requires_grad=True)
    with pytest.raises(ValueError, match="smaller than 3 x"):
        antorcha.lobpcg(a, k=4)
    with pytest.raises(RuntimeError, match="square"):
        antorcha.lobpcg(a[:, :8], k=1)
    with pytest.raises(RuntimeError, match="same shape"):
        antorcha.lobpcg(a, k=1, B=antorcha.eye(3))
    with pytest.raises(RuntimeError, match="must be"):
        antorcha.lobpcg(a, X=antorcha.ones(8, 2))
    values, _ = antorcha.lobpcg(a, k=1, B=antorcha.eye(9, dtype=antorcha.float64))
    with pytest.raises(ValueError, match="B != I"):
        values.sum().backward()
