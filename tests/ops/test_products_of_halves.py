"""Products of float16 and bfloat16: of the same numbers as float32, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import antorcha as torch

PRODUCTS: list[Callable[[Any, Any, Any], Any]] = [
    lambda a, w, b: torch.nn.functional.linear(a, w, b),
    lambda a, w, b: a @ w.T,
    lambda a, w, b: torch.addmm(b, a, w.T, alpha=0.5, beta=2.0),
    lambda a, w, b: torch.mv(a, w[0]),
    lambda a, w, b: torch.dot(a[0], w[0]),
    lambda a, w, b: a[::2] @ w[:5, :].T,
    lambda a, w, b: a[:, ::3] @ w[:, ::3].T,
    lambda a, w, b: torch.stack([a, a * 2]) @ w.T,
    lambda a, w, b: a.expand(3, -1, -1) @ w.T.expand(3, -1, -1),
    lambda a, w, b: a.unflatten(0, (2, 4)).transpose(0, 1) @ w.T.expand(4, -1, -1),
    lambda a, w, b: torch.mm(a, w.T, out=torch.empty(9, 8, dtype=a.dtype).T),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_products_are_rounded_once(dtype: Any) -> None:
    torch.manual_seed(0)
    a, w, b = [torch.randn(*shape).to(dtype) for shape in ((8, 33), (9, 33), (9,))]
    for number, product in enumerate(PRODUCTS):
        wide = product(a.float(), w.float(), b.float())
        found = product(a, w, b)
        assert found.dtype is dtype
        assert torch.equal(found, wide.to(dtype)), number


def test_gradients_have_the_dtype_of_the_operands() -> None:
    a = torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True)
    w = torch.ones(4, 3, dtype=torch.bfloat16, requires_grad=True)
    torch.nn.functional.linear(a, w).sum().backward()
    assert torch.equal(a.grad, torch.full((2, 3), 4.0, dtype=torch.bfloat16))
    assert torch.equal(w.grad, torch.full((4, 3), 2.0, dtype=torch.bfloat16))
