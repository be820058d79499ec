"""Learning rate schedulers beside PyTorch's: 30 steps, two groups, state to and fro."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import antorcha


class Halving:
    """A callable with state of its own, which goes into a scheduler's state."""

    def __init__(self, factor: float = 0.9) -> None:
        self.factor = factor

    def __call__(self, epoch: float) -> float:
        return float(self.factor**epoch)


def schedulers(library: Any) -> dict[str, Callable[[Any], Any]]:
    s, swa = library.optim.lr_scheduler, library.optim.swa_utils
    return {
        "step": lambda o: s.StepLR(o, 3),
        "multistep": lambda o: s.MultiStepLR(o, [2, 5, 5]),
        "exponential": lambda o: s.ExponentialLR(o, 0.9),
        "cosine": lambda o: s.CosineAnnealingLR(o, 7, 0.01),
        "lambda": lambda o: s.LambdaLR(o, lambda e: 0.95**e),
        "lambdas": lambda o: s.LambdaLR(o, [lambda e: 0.95**e, Halving()]),
        "multiplicative": lambda o: s.MultiplicativeLR(o, lambda e: 0.95),
        "onecycle": lambda o: s.OneCycleLR(o, [0.5, 0.7], total_steps=31),
        "threephase": lambda o: s.OneCycleLR(o, 0.5, epochs=4, steps_per_epoch=8,
                                             three_phase=True, anneal_strategy="linear"),
        "linear": lambda o: s.LinearLR(o),
        "constant": lambda o: s.ConstantLR(o),
        "polynomial": lambda o: s.PolynomialLR(o, 10, 2.0),
        "restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.001),
        "cyclic": lambda o: s.CyclicLR(o, 0.01, [0.3, 0.4], 4, 7),
        "cyclic2": lambda o: s.CyclicLR(o, 0.01, 0.3, 5, mode="triangular2"),
        "cyclicexp": lambda o: s.CyclicLR(o, 0.01, 0.3, 5, mode="exp_range", gamma=0.97,
                                          cycle_momentum=False),
        "cyclicfn": lambda o: s.CyclicLR(o, 0.01, 0.3, 5, scale_fn=Halving(),
                                         scale_mode="iterations"),
        "sequential": lambda o: s.SequentialLR(
            o, [s.LinearLR(o, 0.1), s.CosineAnnealingLR(o, 10), s.ExponentialLR(o, 0.9)], [5, 12]),
        "chained": lambda o: s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.9)]),
        "nested": lambda o: s.SequentialLR(
            o, [s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.9)]), s.StepLR(o, 4)],
            [6]),
        "plateau": lambda o: s.ReduceLROnPlateau(o, patience=2, cooldown=1, min_lr=[0.0, 0.01]),
        "plateaumax": lambda o: s.ReduceLROnPlateau(o, "max", patience=1, threshold_mode="abs"),
        "swa": lambda o: swa.SWALR(o, [0.05, 0.01], 8),
        "swalinear": lambda o: swa.SWALR(o, 0.05, 0, "linear"),
    }  # fmt: skip


def build(library: Any, optimizer: str, lr: Any) -> Any:
    params = [library.nn.Parameter(library.zeros(1)) for _ in range(2)]
    rate = library.tensor(lr) if isinstance(lr, list) else lr
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.25}]
    settings = {"momentum": 0.9} if optimizer == "SGD" else {}
    return getattr(library.optim, optimizer)(groups, lr=rate, **settings)


def plain(value: Any) -> Any:
    """What state holds, without the library's tensors and modules."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def metric(epoch: int) -> float:
    return 1 / (1 + min(epoch, 8)) + 0.01 * math.sin(epoch)


@pytest.mark.oracle
@pytest.mark.parametrize("name", list(schedulers(antorcha)))
def test_every_step_to_the_last_bit_and_state_to_and_fro(name: str) -> None:
    torch = pytest.importorskip("torch")
    for optimizer, lr in itertools.product(("SGD", "Adam"), (0.1, [0.125])):
        optimizers = [build(library, optimizer, lr) for library in (antorcha, torch)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            makers = [schedulers(library)[name] for library in (antorcha, torch)]
            pair = [make(one) for make, one in zip(makers, optimizers, strict=True)]
            for epoch in range(30):
                args = (metric(epoch),) if name.startswith("plateau") else ()
                for one, scheduler in zip(optimizers, pair, strict=True):
                    one.step()
                    scheduler.step(*args)
                mine, theirs = [scheduler.get_last_lr() for scheduler in pair]
                assert plain(mine) == plain(theirs), (optimizer, lr, epoch)
                keys = ("momentum", "betas", "initial_lr", "max_lr", "min_lr", "swa_lr")
                mine, theirs = [
                    [[plain(g.get(key)) for key in keys] for g in o.param_groups]
                    for o in optimizers
                ]
                assert mine == theirs, (optimizer, lr, epoch)
                if epoch in (2, 14):
                    mine, theirs = [scheduler.state_dict() for scheduler in pair]
                    assert plain(mine) == plain(theirs), (optimizer, lr, epoch)
                    if not isinstance(lr, list):  # tensors do not go over as they are
                        pair = exchanged(optimizers, pair, name)


def exchanged(optimizers: list[Any], pair: list[Any], name: str) -> list[Any]:
    """Fresh schedulers of both libraries, each with the other's state."""
    torch = pytest.importorskip("torch")
    states = [pickle.loads(pickle.dumps(scheduler.state_dict())) for scheduler in pair]
    fresh = []
    for library, one, state in zip((antorcha, torch), optimizers, reversed(states), strict=True):
        groups = [dict(group) for group in one.param_groups]
        scheduler = schedulers(library)[name](one)
        for group, before in zip(one.param_groups, groups, strict=True):
            group.update(before)
        scheduler.load_state_dict(copy.deepcopy(state))
        one._opt_called = True
        fresh.append(scheduler)
    return fresh


@pytest.mark.oracle
def test_names_and_refusals() -> None:
    torch = pytest.importorskip("torch")
    assert set(antorcha.optim.lr_scheduler.__all__) == set(torch.optim.lr_scheduler.__all__)
    assert set(antorcha.optim.swa_utils.__all__) == set(torch.optim.swa_utils.__all__)
    bad: list[Callable[[Any, Any, Any], Any]] = [
        lambda s, swa, o: s.StepLR(3, 1),
        lambda s, swa, o: s.StepLR(o, 3, last_epoch=5),
        lambda s, swa, o: s.LambdaLR(o, [lambda e: 1]),
        lambda s, swa, o: s.MultiplicativeLR(o, 3),
        lambda s, swa, o: s.ConstantLR(o, 2.0),
        lambda s, swa, o: s.LinearLR(o, 0.0),
        lambda s, swa, o: s.LinearLR(o, 0.5, 2.0),
        lambda s, swa, o: s.CosineAnnealingWarmRestarts(o, 0),
        lambda s, swa, o: s.CosineAnnealingWarmRestarts(o, 2, 0),
        lambda s, swa, o: s.CosineAnnealingWarmRestarts(o, 2, 1, "0"),
        lambda s, swa, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1),
        lambda s, swa, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
        lambda s, swa, o: s.CyclicLR(o, [0.1], 0.2),
        lambda s, swa, o: s.OneCycleLR(o, 0.1),
        lambda s, swa, o: s.OneCycleLR(o, 0.1, total_steps=-1),
        lambda s, swa, o: s.OneCycleLR(o, 0.1, total_steps=5, pct_start=2.0),
        lambda s, swa, o: s.OneCycleLR(o, 0.1, total_steps=5, anneal_strategy="sine"),
        lambda s, swa, o: s.ReduceLROnPlateau(o, "mid"),
        lambda s, swa, o: s.ReduceLROnPlateau(o, factor=1.5),
        lambda s, swa, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
        lambda s, swa, o: s.ReduceLROnPlateau(3),
        lambda s, swa, o: s.SequentialLR(o, [], []),
        lambda s, swa, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]),
        lambda s, swa, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
        lambda s, swa, o: s.ChainedScheduler([]),
        lambda s, swa, o: s.ChainedScheduler([3]),
        lambda s, swa, o: swa.SWALR(o, 0.1, -1),
        lambda s, swa, o: swa.SWALR(o, 0.1, anneal_strategy="sine"),
        lambda s, swa, o: swa.get_ema_avg_fn(2.0),
        lambda s, swa, o: swa.get_ema_multi_avg_fn(-1.0),
    ]
    for k, make in enumerate(bad):
        found = []
        for library in (torch, antorcha):
            with pytest.raises(Exception) as error:
                make(library.optim.lr_scheduler, library.optim.swa_utils,
                     build(library, "SGD", 0.1))  # fmt: skip
            found.append(error.type)
        assert issubclass(found[1], found[0]), (k, found)


@pytest.mark.oracle
def test_a_step_that_was_overridden() -> None:
    """Before the scheduler was made: no warning. After: PyTorch's."""
    torch = pytest.importorskip("torch")
    for library in (antorcha, torch):
        for before, stepped, warned in (
            (True, True, None),
            (True, False, "before `optimizer.step"),
            (False, True, "overridden"),
        ):  # fmt: skip
            optimizer = build(library, "SGD", 0.1)
            if before:
                optimizer.step = types.MethodType(lambda self: 3, optimizer)
            scheduler = library.optim.lr_scheduler.StepLR(optimizer, 1)
            if not before:
                optimizer.step = types.MethodType(lambda self: 3, optimizer)
            if stepped:
                optimizer.step()
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                scheduler.step()
            assert len(seen) == (warned is not None), (library.__name__, before, stepped)
            assert warned is None or warned in str(seen[0].message)
