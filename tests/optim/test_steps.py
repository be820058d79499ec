"""Optimizers and schedules: the same numbers as PyTorch, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha import optim

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.3, "maximize": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.05, "maximize": True, "amsgrad": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
]


def run(torch: Any, name: str, options: dict[str, Any], steps: int = 6) -> Any:
    """Some steps on a small problem; the parameters after each."""
    start = np.linspace(-1, 1, 12).reshape(3, 4)
    w = torch.tensor(start, requires_grad=True)
    b = torch.tensor(np.ones(4), requires_grad=True)
    optimizer = getattr(torch.optim, name)([{"params": [w]}, {"params": [b]}], **options)
    seen = []
    for k in range(steps):
        optimizer.zero_grad()
        ((w * w).sum() * (k + 1) + (w.sum(0) * b).sin().sum()).backward()
        optimizer.step()
        seen.append(np.concatenate([w.detach().numpy().ravel(), b.detach().numpy()]))
    return np.array(seen), optimizer


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_steps_are_pytorchs(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    ours, first = run(antorcha, name, options)
    theirs, second = run(torch, name, options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
    a, b = first.state_dict(), second.state_dict()
    assert a["param_groups"] == b["param_groups"]
    for k in b["state"]:
        for key, value in b["state"][k].items():
            if value is None:
                continue
            np.testing.assert_allclose(
                np.asarray(a["state"][k][key].tolist()), np.asarray(value.tolist()), rtol=1e-12
            )


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_a_checkpoint_goes_on_where_it_stopped(name: str, options: dict[str, Any]) -> None:
    whole, _ = run(antorcha, name, options, 6)
    assert np.isfinite(whole).all()
    w = antorcha.tensor([1.0, -2.0], requires_grad=True)
    make = getattr(optim, name)
    one = make([w], **options)

    def step(optimizer: Any, p: Any) -> None:
        optimizer.zero_grad()
        (p**3).sum().backward()
        optimizer.step()

    step(one, w)
    copied = w.detach().clone().requires_grad_(True)
    two = make([copied], **options)
    two.load_state_dict(one.state_dict())
    for _ in range(3):
        step(one, w)
        step(two, copied)
    assert antorcha.equal(w, copied)


SCHEDULES = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("LinearLR", {"start_factor": 0.2, "total_iters": 4}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
    ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    ("LambdaLR", {"lr_lambda": lambda k: 0.95**k}),
    ("MultiplicativeLR", {"lr_lambda": lambda k: 0.95}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12}),
]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_schedules_are_pytorchs(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    rates = []
    for lib in (antorcha, torch):
        w = lib.tensor([1.0], requires_grad=True)
        optimizer = lib.optim.SGD([w], lr=0.3, momentum=0.9)
        schedule = getattr(lib.optim.lr_scheduler, name)(optimizer, **options)
        seen = [schedule.get_last_lr()]
        for _ in range(11):
            w.grad = lib.ones(1)
            optimizer.step()
            schedule.step()
            seen.append(schedule.get_last_lr())
        rates.append(seen)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


@pytest.mark.oracle
def test_plateau_and_sequence() -> None:
    torch = pytest.importorskip("torch")
    rates = []
    for lib in (antorcha, torch):
        s = lib.optim.lr_scheduler
        optimizer = lib.optim.SGD([lib.tensor([1.0], requires_grad=True)], lr=0.3)
        plateau = s.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
        seen = []
        for metric in (3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.5, 1.5, 1.5):
            plateau.step(metric)
            seen.append(optimizer.param_groups[0]["lr"])
        optimizer = lib.optim.SGD([lib.tensor([1.0], requires_grad=True)], lr=0.3)
        both = s.SequentialLR(
            optimizer,
            [s.ConstantLR(optimizer, 0.1, 20), s.ExponentialLR(optimizer, 0.5)],
            milestones=[3],
        )
        for _ in range(6):
            optimizer.step()
            both.step()
            seen.append(optimizer.param_groups[0]["lr"])
        rates.append(seen)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


def test_errors_say_what_is_wrong() -> None:
    w = antorcha.tensor([1.0], requires_grad=True)
    with pytest.raises(ValueError, match="Invalid learning rate"):
        optim.SGD([w], lr=-1)
    with pytest.raises(ValueError, match="empty parameter list"):
        optim.SGD([], lr=1)
    with pytest.raises(TypeError, match="iterable"):
        optim.SGD(w, lr=1)
    with pytest.raises(ValueError, match="more than one"):
        optim.SGD([{"params": [w]}, {"params": [w]}], lr=1)
    with pytest.raises(ValueError, match="non-leaf"):
        optim.SGD([w * 2], lr=1)
