"""Draws with parameters of their own and the functions around gamma: PyTorch's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import needs_torch

DTYPES = ("float32", "float64")


def grid(low: float, high: float, n: int) -> list[float]:
    found: list[float] = np.linspace(low, high, n).tolist()
    return found


DRAWS = {
    "t._standard_gamma(x)": grid(0, 12, 300),
    "t._standard_gamma(x[:3].expand(20, 3))": grid(0, 12, 3),
    "t._standard_gamma(x.reshape(5, 6).t())": grid(0.1, 3, 30),
    "t._sample_dirichlet(x.reshape(50, 6))": grid(0.1, 12, 300),
    "t.poisson(x)": grid(0, 40, 500),
    "t.poisson(x * 1000)": grid(0, 40, 50),
    "t.binomial((x * 40).floor(), x)": grid(0, 1, 400),
    "t.binomial((x * 4000).floor(), 1 - x)": grid(0, 1, 400),
    "(t._standard_gamma(x), t.randn(5, dtype=x.dtype))[1]": grid(0.1, 3, 31),
}


@needs_torch
@pytest.mark.parametrize("text", DRAWS)
def test_draws_are_pytorchs(text: str) -> None:
    import torch

    for dtype in DTYPES:
        found = []
        for t in (antorcha, torch):
            t.manual_seed(3)  # type: ignore[attr-defined]
            x = t.tensor(DRAWS[text], dtype=getattr(t, dtype))
            found.append(eval(text, {"t": t, "x": x}).numpy())
        if "dirichlet" in text and dtype == "float64":  # the sum's order may differ by a bit
            np.testing.assert_allclose(found[0], found[1], rtol=1e-15)
        else:
            np.testing.assert_array_equal(found[0], found[1], err_msg=f"{text} {dtype}")


FUNCTIONS = {
    "t.igamma(x[:, None], 2 * x)": 1e-5,
    "t.special.gammaincc(x[:, None], 2 * x)": 1e-5,
    "t.mvlgamma(x + 2, 4)": 1e-5,
    "t._standard_gamma_grad(*t.broadcast_tensors(x[:, None], x))": 1e-5,
    # (PyTorch computes some of its branches in float32)
    "t._dirichlet_grad(*t.broadcast_tensors(x / 15, x[:, None], x[:, None] + x[:, None, None]))":
        4e-3,
}  # fmt: skip


@needs_torch
@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions_are_pytorchs(text: str) -> None:
    import torch

    for dtype in DTYPES:
        found: list[Any] = []
        for t in (antorcha, torch):
            x = t.tensor(grid(0.05, 14, 40), dtype=getattr(t, dtype))
            found.append(eval(text, {"t": t, "x": x}).numpy())
        rtol = FUNCTIONS[text] if dtype == "float32" else 1e-9
        np.testing.assert_allclose(found[0], found[1], rtol=rtol, atol=1e-30, err_msg=text)


def test_gradients_and_refusals() -> None:
    t: Any = antorcha
    x = t.tensor([0.5, 2.0], requires_grad=True)
    t.igamma(t.tensor([1.0, 1.0]), x).sum().backward()  # 1 - exp(-x)
    np.testing.assert_allclose(x.grad.numpy(), np.exp([-0.5, -2.0]), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="igamma"):
        t.igamma(x, t.ones(2)).sum().backward()
    for draw in (t.poisson, t._standard_gamma, t._sample_dirichlet):
        with pytest.raises(NotImplementedError, match="float32 or float64"):
            draw(t.ones(2, dtype=t.float16))
    with pytest.raises(RuntimeError, match="same dtype"):
        t.binomial(t.ones(2), t.ones(2, dtype=t.float64))


def test_cholesky_ex_looks_at_each_matrix() -> None:
    t: Any = antorcha
    stack = t.tensor([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])
    factor, info = t.linalg.cholesky_ex(stack)
    assert (info != 0).tolist() == [False, True]
    assert t.equal(factor[0], t.linalg.cholesky(stack[0]))
