"""Draws at sizes that grow from call to call: the same stream of numbers, whoever serves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import antorcha as torch
from antorcha.runtime.call import native, plan

pytestmark = pytest.mark.skipif(not native.ACTIVE, reason=native.why_not())
F = torch.nn.functional
CASES: dict[str, Callable[[int], Any]] = {
    "dropout": lambda n: F.dropout(torch.ones(3 * n, 4)),
    "alpha_dropout": lambda n: F.alpha_dropout(torch.ones(3 * n, 4)),
    "feature_alpha_dropout": lambda n: F.feature_alpha_dropout(torch.ones(3 * n, 4, 2)),
    "dropout2d": lambda n: F.dropout2d(torch.ones(3 * n, 4, 2, 2)),
    "rrelu": lambda n: F.rrelu(-torch.ones(3 * n, 4), training=True),
    "gumbel_softmax": lambda n: F.gumbel_softmax(torch.ones(3 * n, 4)),
    "rand": lambda n: torch.rand(n + 2, 3),
    "randn": lambda n: torch.randn(n + 2, 3),
    "randint": lambda n: torch.randint(0, 9, (n + 2,)),
    "randperm": lambda n: torch.randperm(n + 2),
    "rand_like": lambda n: torch.rand_like(torch.ones(n + 2, 3)),
    "bernoulli": lambda n: torch.bernoulli(torch.full((n + 2, 3), 0.5)),
    "multinomial": lambda n: torch.multinomial(torch.ones(n + 2, 5), 2),
    "normal": lambda n: torch.normal(torch.zeros(n + 2), torch.ones(n + 2)),
    "attention": lambda n: F.scaled_dot_product_attention(
        *[torch.ones(1, 1, n + 2, 4)] * 3, dropout_p=0.5
    ),
    "fractional_max_pool2d": lambda n: F.fractional_max_pool2d(
        torch.ones(1, 1, n + 9, 8), 2, output_size=3
    ),
    "exponential_": lambda n: torch.empty(n + 2).exponential_(),
    "xavier_uniform_": lambda n: torch.nn.init.xavier_uniform_(torch.empty(n + 2, 4)),
    "distribution": lambda n: torch.distributions.Normal(torch.zeros(n + 2), 1.0).sample(),
}


def stream(case: Callable[[int], Any]) -> list[Any]:
    """What is drawn by calls at growing sizes, and by others in between."""
    plan.flush()
    torch.manual_seed(3)
    return [(case(n).tolist(), torch.rand(2).tolist()) for n in range(1, 12)]


@pytest.mark.parametrize("name", CASES)
def test_draws(name: str) -> None:
    ours = stream(CASES[name])
    with native.off():
        assert ours == stream(CASES[name])


def test_planning_leaves_no_memory(no_collection: None) -> None:
    for n in (300, 500, 700, 1000, 1200, 1500):
        before = torch.memory_stats()["live"]
        x = torch.empty(n, n)
        del x
        assert torch.memory_stats()["live"] - before < 4 * n * n
