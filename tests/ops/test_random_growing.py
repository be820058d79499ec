"""Draws at sizes that grow from call to call: the same stream of numbers, whoever serves them."""

from __future__ import annotations

import threading
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
    "one size": lambda n: F.dropout(torch.ones(4, 4)) + torch.randn(4, 4) * torch.rand(4, 4),
    "with gradients": lambda n: F.dropout(torch.ones(3 * n, 4, requires_grad=True)).sum(),
    "normal_": lambda n: torch.empty(3 * n).normal_(2.0, 3.0),
    "bernoulli_": lambda n: torch.empty(3 * n).bernoulli_(0.25),
    "random_": lambda n: torch.empty(3 * n, dtype=torch.int32).random_(-5, 1 << 30),
    "geometric_": lambda n: torch.empty(3 * n).geometric_(0.25),
    "strided": lambda n: torch.empty(3, 2 * n).t().uniform_(),
    "float64": lambda n: torch.rand(n + 2, dtype=torch.float64),
    "bfloat16": lambda n: torch.randn(9 * n, dtype=torch.bfloat16),
    "complex": lambda n: torch.randn(n + 2, dtype=torch.complex64),
    "many": lambda n: torch.randn(800 * n),
    "a generator": lambda n: torch.rand(n + 2, generator=torch.Generator().manual_seed(n)),
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


DRAWN = (
    "dropout",
    "rand",
    "randn",
    "randint",
    "randperm",
    "exponential_",
    "bernoulli_",
    "one size",
)


@pytest.mark.parametrize("name", DRAWN)
def test_machine_code_draws(name: str) -> None:
    """What is drawn again and again needs no Python."""
    from antorcha.runtime import random

    plan.flush()
    for _ in range(12):
        CASES[name](3)
    asked: list[Any] = []
    sample = random.Generator.sample
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            random.Generator, "sample", lambda *args, **named: asked.append(sample(*args, **named))
        )
        CASES[name](3)
    assert not asked


def test_machine_code_waits_for_python() -> None:
    """While another thread holds the state, Python serves the draw, and waits."""
    x = torch.empty(4)
    for _ in range(12):
        x.uniform_()
    torch.manual_seed(3)
    expected = [x.uniform_().tolist() for _ in range(2)]
    torch.manual_seed(3)
    generator = torch.default_generator
    done = threading.Event()

    def draw() -> None:
        x.uniform_()
        done.set()

    with generator.lock:
        thread = threading.Thread(target=draw)
        thread.start()
        assert not done.wait(0.05)
    thread.join()
    assert [x.tolist(), x.uniform_().tolist()] == expected


def test_planning_leaves_no_memory(no_collection: None) -> None:
    for n in (300, 500, 700, 1000, 1200, 1500):
        before = torch.memory_stats()["live"]
        x = torch.empty(n, n)
        del x
        assert torch.memory_stats()["live"] - before < 4 * n * n
