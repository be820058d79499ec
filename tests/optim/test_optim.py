"""Optimizers and schedulers: values beside PyTorch's, state dictionaries, groups, hooks."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import antorcha

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}),
    ("Adam", {"betas": (0.3, 0.9)}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"amsgrad": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.1}),
]
IDS = [f"{n}-{'-'.join(k)}" for n, k in CASES]


def draw(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def train(library: Any, name: str, options: dict[str, Any], dtype: str, steps: int = 12) -> Any:
    shapes = ((7, 13), (5,), ())
    params = [
        library.nn.Parameter(library.tensor(draw(k, *s)).to(getattr(library, dtype)))
        for k, s in enumerate(shapes)
    ]
    optimizer = getattr(library.optim, name)(params, **options)
    for step in range(steps):
        for k, (p, s) in enumerate(zip(params, shapes, strict=True)):
            p.grad = library.tensor(draw(100 * step + k, *s)).to(getattr(library, dtype))
        optimizer.step()
    return params, optimizer


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_values(name: str, options: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    mine, a = train(antorcha, name, options, dtype)
    theirs, b = train(torch, name, {**options, "foreach": False}, dtype)
    rtol = 1e-12 if dtype == "float64" else 3e-6
    for p, q in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=rtol, atol=rtol / 9)
    x, y = a.state_dict(), b.state_dict()
    assert x["state"].keys() == y["state"].keys()
    for k in y["state"]:
        assert list(x["state"][k]) == list(y["state"][k])
        for key, value in y["state"][k].items():
            np.testing.assert_allclose(x["state"][k][key].numpy(), value.numpy(), rtol=rtol * 10,
                                       atol=rtol)  # fmt: skip
    ours = [dict(g, foreach=None) for g in x["param_groups"]]
    assert ours == [dict(g, foreach=None) for g in y["param_groups"]]
    assert [list(g) for g in x["param_groups"]] == [list(g) for g in y["param_groups"]]
    assert repr(a) == repr(b).replace("foreach: False", "foreach: None")


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_state_dict_goes_on_where_it_was(name: str, options: dict[str, Any]) -> None:
    torch: Any = antorcha
    params, optimizer = train(torch, name, options, "float32", steps=3)
    twins = [torch.nn.Parameter(p.detach().clone()) for p in params]
    again = getattr(torch.optim, name)(twins, **options)
    again.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    for p, q in zip(params, twins, strict=True):
        p.grad = q.grad = torch.ones_like(p)
    before = copy.deepcopy(optimizer.state_dict())
    optimizer.step()
    again.step()
    assert all(torch.equal(p, q) for p, q in zip(params, twins, strict=True))
    for k, state in before["state"].items():
        if "step" in state:
            assert float(optimizer.state_dict()["state"][k]["step"]) == float(state["step"]) + 1


def test_groups_and_errors() -> None:
    torch: Any = antorcha
    w, v = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([{"params": [w], "lr": 0.5}, {"params": v}], lr=0.1)
    w.grad, v.grad = torch.ones(1), torch.ones(1)
    optimizer.step()
    assert w.item() == 0.5
    assert v.item() == pytest.approx(0.9)
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.item() == 0
    optimizer.zero_grad()
    assert w.grad is None
    for bad, kind in (
        (lambda: torch.optim.SGD([], lr=1), ValueError),
        (lambda: torch.optim.SGD(w, lr=1), TypeError),
        (lambda: torch.optim.SGD([w], lr=-1), ValueError),
        (lambda: torch.optim.SGD([w + 1], lr=1), ValueError),
        (lambda: torch.optim.SGD([3], lr=1), TypeError),
        (lambda: torch.optim.SGD([w], lr=1, nesterov=True), ValueError),
        (lambda: torch.optim.Adam([w], betas=(1.0, 0.9)), ValueError),
        (lambda: optimizer.add_param_group({"params": w}), ValueError),
        (lambda: torch.optim.SGD([{"params": {w}}], lr=1), TypeError),
    ):
        with pytest.raises(kind):
            bad()


def test_closure_hooks_and_version() -> None:
    torch: Any = antorcha
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=torch.tensor(0.1))
    seen = []
    optimizer.register_step_pre_hook(lambda *a: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *a: seen.append("post"))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    before = w._version
    with torch.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 2
    assert seen == ["pre", "post"]
    assert w._version > before
    assert torch.allclose(w.detach(), torch.full((2,), 0.8))
    kept = (w * w).sum()
    optimizer.step(closure)
    with pytest.raises(RuntimeError, match=r"modified|version|inplace"):
        kept.backward()


def test_scheduler_before_optimizer_warns() -> None:
    torch: Any = antorcha
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
