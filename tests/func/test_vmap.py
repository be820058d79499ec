"""vmap: programs beside PyTorch's, writes, what leaves it, random numbers, what it refuses."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.func.vmap import MappedCall
from antorcha.tensor.batched import Example

vmap, func = antorcha.vmap, antorcha.func


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape)


def _network(lib: Any) -> Any:
    return lib.nn.Sequential(
        lib.nn.Conv2d(1, 4, 3, padding=1), lib.nn.ReLU(), lib.nn.MaxPool2d(2),
        lib.nn.Conv2d(4, 8, 3, groups=2), lib.nn.GroupNorm(2, 8), lib.nn.Tanh(), lib.nn.Flatten(),
        lib.nn.LayerNorm(32), lib.nn.Linear(32, 3),
    ).double()  # fmt: skip


def _weights(lib: Any, net: Any) -> dict[str, Any]:
    return {
        name: lib.tensor(numbers(*p.shape, seed=k))
        for k, (name, p) in enumerate(net.named_parameters())
    }


def per_sample_gradients(lib: Any) -> Any:
    net = _network(lib)

    def loss(weights: Any, x: Any, y: Any) -> Any:
        out = lib.func.functional_call(net, weights, (x.unsqueeze(0),))
        return lib.nn.functional.cross_entropy(out, y.unsqueeze(0), label_smoothing=0.1)

    x, y = lib.tensor(numbers(5, 1, 8, 8)[..., :8]), lib.tensor([0, 2, 1, 0, 2])
    found = lib.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(_weights(lib, net), x, y)
    return [found[name] for name in sorted(found)]


def ensembles(lib: Any) -> Any:
    net = _network(lib)
    every = [_weights(lib, net) for _ in range(3)]
    stacked = {k: lib.stack([(j + 1) * w[k] for j, w in enumerate(every)]) for k in every[0]}
    x = lib.tensor(numbers(4, 1, 8, 8))
    run = lib.vmap(lambda w, x: lib.func.functional_call(net, w, (x,)), in_dims=(0, None))
    return [run(stacked, x)]


def attention(lib: Any) -> Any:
    q, k, v = [lib.tensor(numbers(2, 3, 4, 5, seed=s)) for s in range(3)]

    def attend(q: Any, k: Any, v: Any) -> Any:
        return lib.softmax(q @ k.mT / 2, -1) @ v

    return [
        lib.vmap(lib.vmap(attend))(q, k, v),
        lib.vmap(attend, in_dims=(1, 1, 1), out_dims=1)(q, k, v),
        lib.vmap(attend, in_dims=(0, None, None))(q, k[0], v[0]),
    ]  # fmt: skip


def derivatives(lib: Any) -> Any:
    x, w = lib.tensor(numbers(4, 3)), lib.tensor(numbers(3, 3, seed=1))

    def f(x: Any) -> Any:
        return lib.tanh(w @ x)

    vector = lib.ones(3, dtype=lib.float64)
    return [
        lib.vmap(lib.func.jacrev(f))(x), lib.func.jacrev(lib.vmap(f))(x),
        lib.vmap(lib.func.hessian(lambda x: f(x).prod()))(x),
        lib.vmap(lambda x: lib.func.jvp(f, (x,), (vector,))[1])(x),
        lib.vmap(lambda x, v: lib.func.vjp(f, x)[1](v)[0], in_dims=(0, None))(x, vector),
        lib.vmap(lib.func.vjp(f, x[0])[1])(lib.eye(3, dtype=lib.float64))[0],
        lib.func.grad(
            lambda w: lib.vmap(lib.func.grad(lambda x: (w @ x).square().sum()))(x).sum()
        )(w),
    ]  # fmt: skip


def indices(lib: Any) -> Any:
    x, i = lib.tensor(numbers(3, 4, 5)), lib.tensor([[0, 3], [1, 1], [2, 0]])
    rows = lib.arange(2)

    def write(x: Any, i: Any) -> Any:
        x = x.clone()
        x[i] = 0.5
        x[:, 1:3] += x[0, 0]
        x[1, ...] = x[2]
        return x

    return [
        lib.vmap(lambda x, i: x[i])(x, i), lib.vmap(lambda x, i: x[rows, i])(x, i),
        lib.vmap(lambda x, i: x[:, i])(x, i), lib.vmap(lambda x: x[..., None, 1:])(x),
        lib.vmap(lambda x, i: x[i][:, rows], in_dims=(None, 0))(x[0], i), lib.vmap(write)(x, i),
        lib.vmap(lambda x, i: x.index_select(0, i))(x, i), lib.vmap(lambda x: x[[0, 2]])(x),
        lib.vmap(lambda x, i: x.gather(0, i.unsqueeze(1)))(x, i),
    ]  # fmt: skip


def mixed_dtypes(lib: Any) -> Any:
    x, n = lib.tensor(numbers(3), dtype=lib.float32), lib.tensor([1, 2, 3])
    wide = lib.tensor(numbers(3), dtype=lib.float64)
    return [
        lib.vmap(lambda a, b: a + b, in_dims=(None, 0))(x, wide),
        lib.vmap(lambda a, b: a * b)(x, wide), lib.vmap(lambda a, b: a + b, (None, 0))(n, x),
        lib.vmap(lambda a, b: a + b, in_dims=(None, 0))(n, wide > 0),
    ]  # fmt: skip


PROGRAMS = [per_sample_gradients, ensembles, attention, derivatives, indices, mixed_dtypes]


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs(program: Callable[[Any], list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(program(antorcha), program(torch), strict=True):
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)


def test_an_example_without_dims_has_a_say_beside_a_number() -> None:
    x, wide = antorcha.ones(3), antorcha.tensor(2.0, dtype=antorcha.float64)
    for f in (lambda a: antorcha.where(a > 0, a, wide), lambda a: a * wide, lambda a: wide - a):
        assert vmap(f)(x).dtype == f(x[0]).dtype == antorcha.float64


def test_one_run_for_all_examples() -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(x.shape)
        return x.sum()

    x = antorcha.ones(6, 2)
    assert vmap(f)(x).tolist() == [2.0] * 6
    assert vmap(f, chunk_size=4)(x).tolist() == [2.0] * 6
    assert runs == [(2,)] * 3


def test_what_is_asked_of_each_example_is_run_for_each() -> None:
    x = antorcha.tensor([-1.0, 2.0, 3.0])
    assert vmap(lambda x: x if x > 0 else -x)(x).tolist() == [1, 2, 3]
    assert vmap(lambda x: x * float(x))(x).tolist() == [1, 4, 9]
    assert vmap(lambda x: antorcha.arange(3)[int(x)] if x >= 0 else x.long())(x[:2]).tolist() == [
        -1,
        2,
    ]
    nested = vmap(vmap(lambda a, b: a if b.item() > 0 else b, (None, 0)), (0, None))(x, x)
    assert nested.tolist() == [[-1, -1, -1], [-1, 2, 2], [-1, 3, 3]]


def test_writes() -> None:
    x = antorcha.zeros(3, 2)
    y = antorcha.arange(6.0).reshape(3, 2)

    def add(x: Any, y: Any) -> Any:
        x += y
        x[0].mul_(2)
        x.view(-1)[1:].zero_()
        return x

    assert vmap(add)(x, y).tolist() == [[0, 0], [4, 0], [8, 0]] == x.tolist()
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(lambda y: antorcha.zeros(2).add_(y))(y)
    leaf = antorcha.ones(3, 2, requires_grad=True)
    vmap(lambda x: (x * 2).mul_(x))(leaf).sum().backward()
    assert leaf.grad.tolist() == [[4, 4]] * 3


def test_what_gets_out_is_the_whole_batch() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.extend([x, x * 2])
        assert "BatchedTensor" in repr(x)
        return x.sum()

    x = antorcha.arange(6.0).reshape(3, 2)
    vmap(f)(x)
    assert [type(each) is antorcha.Tensor for each in kept] == [True, True]
    assert (kept[0] + kept[1]).tolist() == (x * 3).tolist()
    del kept[:]
    gc.collect()
    assert not any(type(each) is Example for each in gc.get_objects())


class Doubled(antorcha.autograd.Function):
    """Twice its operand; the gradient, wrong on purpose, three times what comes back."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3


class DoubledAtOnce(Doubled):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        assert (info.batch_size, info.randomness, in_dims) == (4, "error", (0,))
        return Doubled.apply(x), 0


@pytest.mark.parametrize("function", [Doubled, DoubledAtOnce])
def test_own_functions(function: Any) -> None:
    x = antorcha.arange(4.0)
    assert vmap(func.grad(lambda x: function.apply(x) * x))(x).tolist() == [0, 5, 10, 15]
    assert vmap(function.apply)(x).tolist() == [0, 2, 4, 6]


def test_what_changes_an_example_in_ways_of_its_own() -> None:
    x = antorcha.arange(6.0).reshape(3, 2)
    for change in (
        lambda x: x.unsqueeze_(0), lambda x: x.clone().t_(),
        lambda x: x.data * 2, lambda x: antorcha.tensor(x.tolist()), lambda x: x + x.numpy().sum(),
        lambda x: x if 1.0 in x else -x, lambda x: antorcha.as_tensor(x.clone().resize_(1)),
        lambda x: x.view(antorcha.int32), lambda x: x.to(antorcha.complex64).imag,
        lambda x: antorcha.from_numpy(antorcha.nn.Parameter(x).detach().numpy()),
    ):  # fmt: skip
        expected = antorcha.stack([change(row.clone()) for row in x])
        assert vmap(change)(x.clone()).equal(expected)


def test_random_numbers() -> None:
    x = antorcha.ones(4, 100)
    dropout = antorcha.nn.functional.dropout
    draws: dict[str, Callable[[Any], Any]] = {
        "rand": lambda x: x + antorcha.rand(100), "like": lambda x: x + antorcha.rand_like(x),
        "dropout": lambda x: dropout(x, 0.5), "normal_": lambda x: x.clone().normal_(),
        "bernoulli": lambda x: antorcha.bernoulli(x / 2),
        "fresh": lambda x: x + antorcha.empty(100).uniform_(),
        "choice": lambda x: antorcha.multinomial(x, 50).float(),
    }  # fmt: skip
    for name, f in draws.items():
        with pytest.raises(RuntimeError, match="randomness"):
            vmap(f)(x)
        same, other = [vmap(f, randomness=r)(x) for r in ("same", "different")]
        assert all(row.equal(same[0]) for row in same), name
        assert not any(row.equal(other[0]) for row in other[1:]), name
    both = vmap(vmap(draws["rand"], randomness="different"), randomness="same")(
        x.reshape(2, 2, 100)
    )
    assert both[0].equal(both[1])
    assert not both[0, 0].equal(both[0, 1])


def test_no_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    x = antorcha.zeros(0, 3)
    assert vmap(lambda x: (x @ antorcha.ones(3, 2)).exp())(x).shape == (0, 2)
    with pytest.raises(RuntimeError, match="each of them"):
        vmap(lambda x: x if x.sum() > 0 else -x)(x)


def test_other_threads_see_no_batch() -> None:
    """Calls beside a vmap are the program's own, and a vmap that fails leaves nothing behind."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:

        def f(x: Any) -> Any:
            beside = pool.submit(lambda: antorcha.ones(2).add(1).tolist()).result()
            assert beside == [2, 2]
            return x + 1

        assert vmap(f)(antorcha.zeros(3)).tolist() == [1, 1, 1]
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: x / (1 // 0))(antorcha.zeros(3))
    assert antorcha.core.modes.batched == 0


def test_the_loop_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = [each for program in PROGRAMS for each in program(antorcha)]
    monkeypatch.setattr(MappedCall, "_at_once", MappedCall._one_by_one)
    one_by_one = [each for program in PROGRAMS for each in program(antorcha)]
    for a, b in zip(at_once, one_by_one, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-12)
