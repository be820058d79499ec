"""Draws: the same numbers as PyTorch's, bit for bit; generators, states, errors, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import needs_torch

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")

DRAWS = """
t.rand(5, 7, dtype=dt)
t.randn(3, 5, dtype=dt)
t.randn(5, 7, dtype=dt)
t.randn(4, 4, dtype=dt)
t.empty(6, 5, dtype=dt).t().uniform_(-1, 3)
t.empty(6, 5, dtype=dt).t().normal_(1, 2)
t.empty(10, 8, dtype=dt)[:, ::2].normal_()
t.empty(10, 8, dtype=dt)[::2, 1:4].uniform_()
t.zeros(30, dtype=dt).random_()
t.zeros(30, dtype=dt).random_(17)
t.zeros(30, dtype=dt).random_(-5, 17)
t.zeros(3, dtype=dt).random_(2**30, 2**33)
t.zeros(30, dtype=dt).bernoulli_()
t.zeros(30, dtype=dt).bernoulli_(0.3)
t.zeros(5, 6, dtype=dt).t().bernoulli_(t.linspace(0, 1, 30).view(6, 5))
t.zeros(5, 6, dtype=dt).bernoulli_(t.linspace(0, 1, 6, dtype=t.float64))
t.zeros(30, dtype=dt).exponential_(2.0)
t.zeros(30, dtype=dt).geometric_(0.3)
t.zeros(30, dtype=dt).cauchy_(1, 2)
t.zeros(30, dtype=dt).log_normal_(0.5, 0.7)
t.randint(10, (20,), dtype=dt)
t.randint(2, 10, (20,), dtype=dt)
t.randint(high=10, size=(3,), dtype=dt)
t.randint(2, high=10, size=(3,), dtype=dt)
t.randint(-(2**40), 2**40, (5,))
t.randperm(20, dtype=dt)
t.randperm(0)
t.rand_like(t.zeros(5, 6, dtype=dt).t())
t.randn_like(t.zeros(5, 6, dtype=dt).t())
t.randint_like(t.zeros(5, 6, dtype=dt), -2, high=3)
t.bernoulli(t.linspace(0, 1, 20).to(dt))
t.bernoulli(t.linspace(0, 1, 20).to(dt).view(4, 5).t())
t.bernoulli(t.zeros(20, dtype=dt), 0.3)
t.multinomial(t.linspace(0, 1, 20, dtype=t.float64).view(2, 10), 5)
t.multinomial(t.linspace(0, 1, 20).to(dt), 1)
t.multinomial(t.linspace(0, 1, 20).to(dt).view(2, 10), 15, replacement=True)
t.multinomial(t.rand(9, 300, dtype=t.float64), 20)
t.multinomial(t.rand(9, 300, dtype=t.float64).t(), 9)
t.multinomial(t.rand(9, 300).to(dt), 20, replacement=True)
t.multinomial(t.rand(3, 300, dtype=dt), 1)
t.multinomial(t.rand(9, 300).to(dt), 20, True, out=t.empty(20, 9, dtype=t.int64).t())
t.normal(t.arange(20).to(dt), 1.5)
t.normal(2.0, t.arange(20).to(dt))
t.normal(t.arange(4).to(dt).view(4, 1), t.arange(5).to(dt))
t.normal(1.0, 2.0, (5, 5), dtype=dt)
t.rand(2, 3, out=t.empty(2, 3, dtype=dt))
t.randn(4, 6, out=t.empty(6, 4, dtype=dt).t())
t.randn(20, dtype=t.complex64)
t.rand(5, dtype=t.complex128)
t.rand(())
t.rand(0, 3)
""".strip().splitlines()

ERRORS = """
t.randint(5, 3, (2,))
t.rand(-1)
t.normal(0., -1., (2,))
t.normal(t.ones(2), -t.ones(2))
t.zeros(2).uniform_(1, 0)
t.zeros(2).bernoulli_(1.5)
t.zeros(2, dtype=t.int64).uniform_()
t.bernoulli(t.tensor([2.]))
t.bernoulli(t.tensor([1]))
t.zeros(2, requires_grad=True).uniform_()
t.multinomial(t.ones(3), 5)
t.multinomial(t.tensor([-1., 2]), 1)
t.multinomial(t.zeros(3), 1)
t.randperm(-1)
t.zeros(2).exponential_(-1)
t.zeros(2).geometric_(2)
t.zeros(2).cauchy_(0, -1)
t.zeros(2).log_normal_(0, -1)
t.zeros(2).random_(5, 3)
t.zeros(3).expand(2, 3).uniform_()
t.rand(2, generator=3)
t.rand('a')
t.rand()
t.randint(5)
t.randint(1.5, (3,))
t.zeros(2, dtype=t.uint8).random_(0, 300)
t.rand_like(3)
t.rand(2, foo=1)
t.manual_seed(2**64)
t.set_rng_state(t.zeros(5056))
""".strip().splitlines()


def draw(lib: Any, text: str, dtype: str) -> Any:
    """(dtype, strides, bits) of a draw after seeding, or the exception's class."""
    lib.manual_seed(7)
    try:
        made = eval(text, {"t": lib, "dt": getattr(lib, dtype)})
    except Exception as error:
        return type(error)
    bits = made.contiguous().reshape(-1)
    after = lib.rand(1).item()  # the generator is where it should be
    wide = bits.float() if dtype == "bfloat16" and not bits.dtype.is_complex else bits
    return str(made.dtype), tuple(made.shape), made.stride(), wide.numpy().tobytes(), after


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", DRAWS)
def test_same_bits(text: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = draw(antorcha, text, dtype), draw(torch, text, dtype)
    if isinstance(theirs, type):
        assert isinstance(ours, type), ours
        assert issubclass(ours, theirs)
    else:
        assert ours == theirs


@needs_torch
@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = draw(antorcha, text, "float32"), draw(torch, text, "float32")
    assert isinstance(ours, type)
    assert isinstance(theirs, type)
    assert issubclass(ours, theirs)


def test_the_tutorial_numbers() -> None:
    antorcha.manual_seed(42)
    want = [[0.8823, 0.9150, 0.3829, 0.9593, 0.3904]]
    np.testing.assert_allclose(antorcha.rand(1, 5).numpy(), want, atol=5e-5)


def test_state_round_trip() -> None:
    state = antorcha.get_rng_state()
    assert state.dtype is antorcha.uint8
    assert tuple(state.shape) == (5056,)
    first = antorcha.randn(5).tolist()
    antorcha.set_rng_state(state)
    assert antorcha.randn(5).tolist() == first
    with antorcha.random.fork_rng():
        antorcha.manual_seed(0)
        inside = antorcha.rand(2).tolist()
    antorcha.manual_seed(0)
    assert antorcha.rand(2).tolist() == inside


@needs_torch
def test_states_are_exchanged_with_torch() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.Generator().manual_seed(3)
    torch.randn(3, generator=theirs)
    ours = antorcha.Generator()
    ours.set_state(antorcha.tensor(theirs.get_state().tolist(), dtype=antorcha.uint8))
    want = torch.randn(7, generator=theirs).tolist()
    assert antorcha.randn(7, generator=ours).tolist() == want


def test_generator_of_ones_own() -> None:
    g = antorcha.Generator(device="cpu").manual_seed(1)
    assert g.initial_seed() == 1
    before = antorcha.get_rng_state().tolist()
    first = antorcha.rand(3, generator=g).tolist()
    assert antorcha.get_rng_state().tolist() == before
    assert antorcha.rand(3, generator=g.manual_seed(1)).tolist() == first


def test_versions_and_gradients() -> None:
    x = antorcha.ones(3, requires_grad=True)
    y = x * 1
    before = y._version
    y.uniform_()
    assert y._version == before + 1
    assert type(y.grad_fn).__name__ == "UniformBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    p = antorcha.full((3,), 0.5, requires_grad=True)
    antorcha.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0, 0, 0]
    made = antorcha.rand(2, requires_grad=True)
    assert made.is_leaf
    assert made.requires_grad


def test_meta_tensors_have_no_numbers() -> None:
    assert antorcha.rand(2, 3, device="meta").shape == (2, 3)
    assert antorcha.randint(4, (2,), device="meta").dtype is antorcha.int64
