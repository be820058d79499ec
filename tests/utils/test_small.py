"""utils.weak, utils.swap_tensors, random.fork_rng, graph.allow_mutation_on_saved_tensors."""

from __future__ import annotations

import copy
import gc
import importlib
from typing import Any

import pytest

LIBRARIES = ["antorcha", pytest.param("torch", marks=pytest.mark.oracle)]


@pytest.fixture(params=LIBRARIES)
def lib(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param)
    return importlib.import_module(request.param)


def test_keys_by_identity(lib: Any) -> None:
    weak = importlib.import_module(f"{lib.__name__}.utils.weak")
    x, y = lib.ones(2), lib.ones(2)
    found = weak.WeakTensorKeyDictionary({x: 1})
    found[y] = 2
    assert (found[x], found[y], len(found), x in found) == (1, 2, 2, True)
    assert found.get(lib.ones(2)) is None
    assert found == found.copy()
    assert len(found | {lib.ones(1): 3}) in (2, 3)
    copied = copy.deepcopy(found)
    assert [value for _, value in copied.items()] == [1, 2]
    reference = weak.TensorWeakRef(y)
    assert reference() is y
    assert found.pop(x) == 1
    with pytest.raises(KeyError):
        found[x]
    del y
    gc.collect()
    assert (len(found), reference()) == (0, None)
    assert weak.WeakIdRef(x) == weak.WeakIdRef(x)


def test_swap(lib: Any) -> None:
    a, b = lib.zeros(1), lib.nn.Parameter(lib.ones(2, dtype=lib.float64))
    a.note = "a"
    before = id(a), id(b)
    lib.utils.swap_tensors(a, b)
    assert (id(a), id(b)) == before
    assert isinstance(a, lib.nn.Parameter)
    assert not isinstance(b, lib.nn.Parameter)
    assert (a.tolist(), b.tolist(), b.note, a.requires_grad) == ([1.0, 1.0], [0.0], "a", True)
    assert not hasattr(a, "note")
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
    assert b.grad is None


def test_fork_rng(lib: Any) -> None:
    lib.manual_seed(3)
    first = lib.rand(2)
    lib.manual_seed(3)
    with lib.random.fork_rng(devices=[]):
        lib.rand(5)
        lib.manual_seed(7)
    assert lib.equal(lib.rand(2), first)
    lib.manual_seed(3)
    with lib.random.fork_rng(enabled=False):
        lib.rand(2)
    assert not lib.equal(lib.rand(2), first)
    assert lib.random.thread_safe_generator() is None


def test_saved_tensors_may_be_written_to(lib: Any) -> None:
    allow = lib.autograd.graph.allow_mutation_on_saved_tensors
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    with allow() as context:
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        (out + b.sum()).backward()
        context.clear()
        late = (a * a.exp()).sum()
    wanted = lib.tensor([1.0, 2.0])
    assert lib.allclose(a.grad, 2 * wanted + wanted.cos())
    with pytest.raises(AssertionError, match="Trying to backward outside"):
        late.backward()
