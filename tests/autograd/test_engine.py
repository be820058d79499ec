"""The engine: accumulation, graphs kept and freed, errors half-way, threads, memory, depth."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest


def test_gradients_add_up(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_a_graph_serves_once(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_a_write_through_a_view_serves_once(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x + 0
    y[0].mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_second_order(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (g,) = lib.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x)
    assert g.tolist() == [3.0, 12.0]
    assert h.tolist() == [6.0, 12.0]


def test_inputs(lib: Any) -> None:
    a = lib.tensor([1.0], requires_grad=True)
    b = lib.tensor([2.0], requires_grad=True)
    c = a * b
    c.sum().backward(inputs=[a, c])
    assert a.grad.tolist() == [2.0]
    assert b.grad is None
    assert c.grad.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (a * b).sum().backward(inputs=[])


def test_unused_inputs(lib: Any) -> None:
    a = lib.tensor([1.0], requires_grad=True)
    b = lib.tensor([2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        lib.autograd.grad((a * 2).sum(), [a, b])
    assert lib.autograd.grad((a * 2).sum(), [a, b], allow_unused=True)[1] is None
    assert lib.autograd.grad((a * 2).sum(), [a, b], materialize_grads=True)[1].tolist() == [0.0]


def test_the_first_gradient(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(lib.ones(3))
    with pytest.raises(RuntimeError, match="does not require grad"):
        lib.ones(1).backward()
    (x * 2).backward(lib.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]


def test_batched_gradients(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    seeds = lib.tensor([[1.0, 0.0], [0.0, 1.0]])
    (g,) = lib.autograd.grad(x * x, x, seeds, is_grads_batched=True)
    assert g.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_an_error_half_way_changes_no_gradient(torch: Any) -> None:
    a = torch.tensor([1.0], requires_grad=True)
    b = torch.tensor([2.0], requires_grad=True)
    y = (a * 2) + (b.exp() * 3)

    def fail(_: Any) -> None:
        raise ValueError("mine")

    a.register_hook(fail)
    with pytest.raises(ValueError, match="mine"):
        y.sum().backward(retain_graph=True)
    assert a.grad is None
    assert b.grad is None
    z = b.exp()
    total = (y + z).sum()
    z.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()
    assert a.grad is None
    assert b.grad is None


def test_a_gradient_has_memory_of_its_own(lib: Any) -> None:
    a = lib.tensor([1.0], requires_grad=True)
    b = lib.tensor([2.0], requires_grad=True)
    (a + b).sum().backward()
    a.grad.mul_(5)
    assert b.grad.tolist() == [1.0]
    seed = lib.tensor([3.0])
    a.grad = None
    (a + 0).backward(seed)
    seed.mul_(2)
    assert a.grad.tolist() == [3.0]


@pytest.mark.parametrize("shared", [False, True])
def test_ten_threads(torch: Any, shared: bool) -> None:
    """Seed 001's train_fn: in each thread its own leaf, or one leaf for all."""
    common = torch.ones(5, 5, requires_grad=True)
    failures: list[BaseException] = []

    def train() -> None:
        try:
            x = common if shared else torch.ones(5, 5, requires_grad=True)
            for _ in range(1000 if shared else 100):
                y = (x + 3) * (x + 4) * 0.5
                y.sum().backward()
            if not shared:
                assert x.grad.tolist() == [[450.0] * 5] * 5
        except BaseException as error:
            failures.append(error)

    _in_threads(train)
    assert not failures
    if shared:
        assert common.grad.tolist() == [[45000.0] * 5] * 5


def test_threads_on_one_graph(torch: Any) -> None:
    x = torch.ones(5, 5, requires_grad=True)
    y = ((x + 3) * (x + 4) * 0.5).sum()
    _in_threads(lambda: [y.backward(retain_graph=True) for _ in range(50)])
    assert x.grad[0, 0].item() == 4.5 * 500


def _in_threads(work: Any) -> None:
    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("length", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_long_chain(torch: Any, length: int) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(length):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_memory_goes_back_without_the_collector(torch: Any, count: int) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y / x

    x = torch.ones(3, 4, requires_grad=True)

    def once() -> list[Any]:
        y = ((x + 3) * (x + 4)).tanh()
        z = Twice.apply(y.clone())
        w = z.clone()
        w[0] = y[1]
        w.mul_(2)
        w.retain_grad()
        w.register_hook(lambda g: g * 2)
        w.exp().sum().backward()
        x.grad = None
        return [weakref.ref(each) for each in (y, z, w, y.grad_fn, z.grad_fn, w.grad_fn)]

    for _ in range(100):
        once()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(count):
            references = once()
        assert [each() for each in references] == [None] * 6
        assert len(gc.get_objects()) <= before + 50
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_the_graph_is_freed_by_backward(torch: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    storage = weakref.ref(y._storage)
    z = y.tanh()
    del y
    assert storage() is not None
    z.sum().backward()
    assert storage() is None
