"""What is tried before a fix is told: on stand-ins only, and nothing of the program notices."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.inspector.explain.trial import TrialVerdict, try_code, try_layer
from antorcha.inspector.explain.values import Names

nn: Any = torch.nn


class Space(Names):
    """Names without a frame."""

    def __init__(self, **known: Any) -> None:
        super().__init__(None)
        self.known = {"torch": torch, "nn": nn, "np": np, "F": nn.functional, **known}


def tried(code: str, **known: Any) -> TrialVerdict:
    return try_code(code, Space(**known), {})


def test_code_holds_fails_or_is_not_known() -> None:
    a, b = torch.ones(3, 2), torch.ones(3, 2)
    assert tried("a @ b", a=a, b=b) == TrialVerdict(False)
    assert tried("a @ b.T", a=a, b=b) == TrialVerdict(True, (3, 3))
    assert tried("helper(a)", a=a, helper=print) == TrialVerdict(None)
    assert tried("[x for x in a]", a=a) == TrialVerdict(None)
    assert tried("a @", a=a) == TrialVerdict(None)
    assert tried("a @ gone", a=a) == TrialVerdict(None)


@pytest.mark.parametrize("low", [0, 1])
def test_values_count(low: int) -> None:
    scores, labels = torch.ones(3, 3), torch.tensor([low, 2, 3])
    assert tried("F.cross_entropy(s, t - 1)", s=scores, t=labels).holds == (low == 1)
    assert tried("nn.CrossEntropyLoss()(s, t - 1)", s=scores, t=labels).holds == (low == 1)
    assert try_layer("nn.Embedding(3, 2)", [labels], Space()) == TrialVerdict(False)
    assert try_layer("nn.Embedding(4, 2)", [labels], Space()) == TrialVerdict(True, (3, 2))


def test_shapes_count_where_values_are_too_many() -> None:
    """(A terabyte, were it computed.)"""
    column = torch.empty(1).expand(1 << 18, 1)
    assert tried("x @ x", x=column) == TrialVerdict(False)
    assert tried("x @ x.T", x=column) == TrialVerdict(True, (1 << 18, 1 << 18))
    assert tried("torch.zeros(n).reshape(5, -1)", n=10**12).holds is True
    assert tried("n ** n ** n", n=10**9) == TrialVerdict(None)
    assert tried("torch.zeros(10**6)[x > 0]", x=torch.ones(10**6)).holds is None


def test_the_program_notices_nothing() -> None:
    x, leaf = torch.ones(3, 3), torch.ones(3, requires_grad=True)
    layer, array = nn.BatchNorm1d(3), np.ones(3)
    y = leaf * 2
    before = [each.clone() for each in (x, leaf.detach(), *layer.state_dict().values())]
    versions = [each._version for each in (x, leaf, y, *layer.state_dict().values())]
    numbers = torch.get_rng_state()
    for code in ("x.zero_()", "x.add_(1).mul_(x)", "y.sum().backward()", "layer(x * 3)", "x += 5",
                 "x[0] = x[1] * 7", "F.dropout(x, 0.5)", "torch.rand(3) + x", "nn.Linear(3, 3)(x)",
                 "layer.eval()", "torch.from_numpy(a).zero_()", "a.copy()"):  # fmt: skip
        found = tried(code, x=x, leaf=leaf, y=y, layer=layer, a=array)
        assert found.holds is True, code
    assert torch.equal(torch.get_rng_state(), numbers)
    after = [x, leaf.detach(), *layer.state_dict().values()]
    assert all(map(torch.equal, before, after))
    assert versions == [each._version for each in (x, leaf, y, *layer.state_dict().values())]
    assert leaf.grad is None
    assert layer.training
    assert array.tolist() == [1, 1, 1]


def test_nothing_of_the_programs_is_called(tmp_path: Path) -> None:
    calls: list[Any] = []

    class Mine(nn.Linear):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            calls.append(x)

    hooked = nn.Linear(2, 2)
    hooked.register_forward_hook(lambda *a: calls.append(a))
    inner = nn.Sequential(nn.Linear(2, 2), Mine(2, 2))
    leaf = torch.ones(2, requires_grad=True)
    leaf.register_hook(calls.append)
    names = {"x": torch.ones(2, 2), "mine": Mine(2, 2), "hooked": hooked, "inner": inner,
             "leaf": leaf, "fn": calls.append, "path": str(tmp_path / "f"),
             "out": calls}  # fmt: skip
    for code in ("mine(x)", "hooked(x)", "inner(x)", "fn(x)", "torch.save(x, path)",
                 "out.append(x)", "x.register_hook(fn)", "x.map_(x, fn)",
                 "torch.set_num_threads(x)", "torch.manual_seed(3)", "x.apply_(fn)"):  # fmt: skip
        assert tried(code, **names).holds is not True, code
    assert tried("(leaf * 2).sum().backward()", **names).holds is True
    assert calls == []
    assert not list(tmp_path.iterdir())


def test_nothing_is_kept() -> None:
    x = torch.ones(3, 2)
    ref = weakref.ref(x)
    assert tried("x + x", x=x).holds is True
    del x
    gc.collect()
    assert ref() is None


def test_a_mode_of_the_thread_plays_no_part() -> None:
    leaf, other = torch.ones(2, requires_grad=True), torch.ones(3, 2)
    with torch.no_grad():
        assert tried("leaf.mul_(2)", leaf=leaf).holds is False  # the program may run it elsewhere
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        assert tried("x @ x.T", x=other) == TrialVerdict(True, (3, 3))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        assert tried("leaf * leaf", leaf=leaf).holds is True
