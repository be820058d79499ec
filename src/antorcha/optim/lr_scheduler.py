"""``torch.optim.lr_scheduler``: learning rates that change as training goes on.

See https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate.
"""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from antorcha.errors import ArgumentError, ValueRangeError, explain_missing
from antorcha.ops.kinds.pages import name_pages
from antorcha.optim.lr_base import LRScheduler, set_value, values_of
from antorcha.optim.lr_policies import CyclicLR, OneCycleLR, ReduceLROnPlateau
from antorcha.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
_LRScheduler = LRScheduler  # the old name


class _ByFunction(LRScheduler):
    """Schedulers whose factor is a function of the epoch, one for all groups or one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas: list[Callable[[int], float]] = [lr_lambda] * count
        else:
            if len(lr_lambda) != count:
                raise ValueRangeError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        for fn in self.lr_lambdas:
            if not callable(fn):
                raise ArgumentError(f"lr_lambda should be a function, but got {type(fn).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of the functions only callable objects' attributes."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else dict(fn.__dict__)
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what :meth:`state_dict` gave."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for fn, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                fn.__dict__.update(kept)


class LambdaLR(_ByFunction):
    """The initial rate times a function of the epoch.

    Args:
        optimizer (Optimizer): whose learning rates change
        lr_lambda (function or list): epoch -> factor
        last_epoch (int): where to go on. Default: -1

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5 ** epoch).get_last_lr()
    [1.0]
    """

    def _rates(self) -> list[Any]:
        return [lr * fn(self.last_epoch)
                for fn, lr in zip(self.lr_lambdas, self.base_lrs, strict=True)]  # fmt: skip


class MultiplicativeLR(_ByFunction):
    """The present rate times a function of the epoch, at each epoch.

    Args: as :class:`LambdaLR`.

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def _rates(self) -> list[Any]:
        if self._is_initial:
            return self._present()
        return [group["lr"] * fn(self.last_epoch)
                for fn, group in zip(self.lr_lambdas, self.optimizer.param_groups,
                                     strict=True)]  # fmt: skip


class StepLR(LRScheduler):
    """The rate times ``gamma`` every ``step_size`` epochs.

    Args:
        optimizer (Optimizer): whose learning rates change
        step_size (int): how often
        gamma (float): Default: 0.1
        last_epoch (int): where to go on. Default: -1

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> for _ in range(3): optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._present()
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [lr * factor for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times ``gamma`` at each of the epochs in ``milestones``.

    Args:
        optimizer (Optimizer): whose learning rates change
        milestones (iterable of int): the epochs
        gamma (float): Default: 0.1
        last_epoch (int): where to go on. Default: -1

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = lr_scheduler.MultiStepLR(optimizer, [1, 2])
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch not in self.milestones:
            return self._present()
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times ``factor`` for the first ``total_iters`` epochs, then as it was.

    Args:
        optimizer (Optimizer): whose learning rates change
        factor (float): Default: 1/3
        total_iters (int): Default: 5
        last_epoch (int): where to go on. Default: -1

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0 <= factor <= 1.0:
            raise ValueRangeError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return (
            self._scaled(1.0 / self.factor)
            if self.last_epoch == self.total_iters else self._present()
        )  # fmt: skip

    def _get_closed_form_lr(self) -> list[Any]:
        over = self.last_epoch >= self.total_iters
        return [lr * (self.factor + over * (1 - self.factor)) for lr in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that goes in a line from one value to another: a warm-up.

    Args:
        optimizer (Optimizer): whose learning rates change
        start_factor (float): Default: 1/3
        end_factor (float): Default: 1.0
        total_iters (int): how many epochs it takes. Default: 5
        last_epoch (int): where to go on. Default: -1

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueRangeError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if not 0 <= end_factor <= 1.0:
            raise ValueRangeError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1.0 + rise / before)

    def _get_closed_form_lr(self) -> list[Any]:
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [lr * (self.start_factor + rise * done / self.total_iters) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate times ``gamma`` every epoch.

    Args:
        optimizer (Optimizer): whose learning rates change
        gamma (float): the factor
        last_epoch (int): where to go on. Default: -1

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        return self._present() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial rate times ``(1 - epoch/total_iters)^power``, then 0.

    Args:
        optimizer (Optimizer): whose learning rates change
        total_iters (int): Default: 5
        power (float): Default: 1.0
        last_epoch (int): where to go on. Default: -1

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((now / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * left**self.power for lr in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """The rate falls from the initial one to ``eta_min`` along half a cosine, and rises again.

    ``eta_min + (lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2``. Loshchilov & Hutter, "SGDR:
    stochastic gradient descent with warm restarts" (2016).

    Args:
        optimizer (Optimizer): whose learning rates change
        T_max (int): epochs from the top to the bottom
        eta_min (float): the bottom. Default: 0
        last_epoch (int): where to go on. Default: -1

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        at, low, top = self.last_epoch, self.eta_min, self.T_max
        groups = self.optimizer.param_groups
        if self._is_initial:
            return self._present()
        if self._step_count == 1 and at > 0:
            return [low + (lr - low) * (1 + math.cos(at * math.pi / top)) / 2
                    for lr in self.base_lrs]  # fmt: skip
        if (at - 1 - top) % (2 * top) == 0:  # at the bottom the ratio below would be 0/0
            return [group["lr"] + (lr - low) * (1 - math.cos(math.pi / top)) / 2
                    for lr, group in zip(self.base_lrs, groups, strict=True)]  # fmt: skip
        ratio = (1 + math.cos(math.pi * at / top)) / (1 + math.cos(math.pi * (at - 1) / top))
        return [ratio * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (lr - self.eta_min) * wave / 2 for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that jumps back to the top after ``T_0`` epochs, then ``T_0*T_mult``, ...

    Args:
        optimizer (Optimizer): whose learning rates change
        T_0 (int): the first period
        T_mult (int): each period is this many times the one before. Default: 1
        eta_min (float): the bottom. Default: 0
        last_epoch (int): where to go on. Default: -1

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if type(T_0) is not int or T_0 <= 0:
            raise ValueRangeError(f"Expected positive integer T_0, but got {T_0}")
        if type(T_mult) is not int or T_mult < 1:
            raise ValueRangeError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueRangeError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i: float = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        return [
            self.eta_min + (lr - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
            for lr in self.base_lrs
        ]

    def step(self, epoch: float | None = None) -> None:
        """Goes on by an epoch, or to ``epoch``, which need not be whole."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._restart(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        self._set(self.get_lr())
        self._get_lr_called_within_step = False

    def _restart(self, epoch: float) -> None:
        """Where in which period an epoch lies."""
        if epoch < 0:
            raise ValueRangeError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            power = self.T_mult**n
            self.T_cur = epoch - self.T_0 * (power - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * power


class _OfSchedulers(LRScheduler):
    """Schedulers made of schedulers."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        for k, each in enumerate(schedulers):
            if not hasattr(each, "optimizer"):
                raise ArgumentError(
                    f"{name} at index {k} should have `optimizer` as its attribute."
                )
            if isinstance(each, ReduceLROnPlateau):
                raise ValueRangeError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{k} in the given schedulers sequence."
                )
            if each.optimizer is not optimizer:
                raise ValueRangeError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(each).__name__} at index {k} has {each.optimizer}, which is "
                    f"different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; the schedulers' own states."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [each.state_dict() for each in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what :meth:`state_dict` gave."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for each, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            each.load_state_dict(state)


class SequentialLR(_OfSchedulers):
    """One scheduler after the other, changing at the epochs in ``milestones``.

    Args:
        optimizer (Optimizer): whose learning rates change
        schedulers (list): one more than there are milestones
        milestones (list of int): the epochs
        last_epoch (int): where to go on. Default: -1

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> warm_up = lr_scheduler.ConstantLR(optimizer, 0.5)
    >>> parts = [warm_up, lr_scheduler.ExponentialLR(optimizer, 0.9)]
    >>> scheduler = lr_scheduler.SequentialLR(optimizer, parts, milestones=[1])
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [1.0]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if len(schedulers) < 1:
            raise ValueRangeError(
                "SequentialLR expects at least one scheduler, but got no scheduler."
            )
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueRangeError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                "the number of milestone points, but got number of schedulers "
                f"{len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self._undo(self)  # each of them took a first step when it was made
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self, scheduler: Any) -> None:
        if hasattr(scheduler, "_schedulers"):
            for each in scheduler._schedulers:
                self._undo(each)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Steps the scheduler whose turn it is."""
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[k]
        if k > 0 and self._milestones[k - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_OfSchedulers):
    """Several schedulers stepped together: their effects multiply.

    Args:
        schedulers (sequence): the schedulers
        optimizer (Optimizer, optional): Default: that of the first

    >>> from antorcha.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> warm_up = lr_scheduler.ConstantLR(optimizer, 0.5)
    >>> parts = [warm_up, lr_scheduler.ExponentialLR(optimizer, 0.5)]
    >>> scheduler = lr_scheduler.ChainedScheduler(parts)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueRangeError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        self.optimizer = optimizer or schedulers[0].optimizer
        self._check(self.optimizer, schedulers)
        self._schedulers = schedulers
        self._last_lr = values_of(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Steps every scheduler."""
        for each in self._schedulers:
            each.step()
        self._last_lr = values_of(self.optimizer, "lr")


explain_missing("torch.optim.lr_scheduler", globals())
name_pages("torch.optim.lr_scheduler", {name: globals()[name] for name in __all__})
