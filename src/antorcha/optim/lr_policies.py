"""Schedulers with a policy of their own: ReduceLROnPlateau, OneCycleLR, CyclicLR."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from antorcha.errors import ArgumentError, ShapeError, ValueRangeError, warn
from antorcha.optim.lr_base import _EPOCH, LRScheduler, each_group, set_value, values_of
from antorcha.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by ``factor`` when a metric has stopped improving.

    Args:
        optimizer (Optimizer): whose learning rates change
        mode (str): 'min' or 'max': what is better. Default: 'min'
        factor (float): Default: 0.1
        patience (int): epochs without improvement that are allowed. Default: 10
        threshold (float): how much better counts as better. Default: 1e-4
        threshold_mode (str): 'rel' or 'abs'. Default: 'rel'
        cooldown (int): epochs to wait after a reduction. Default: 0
        min_lr (float or list): bound from below. Default: 0
        eps (float): smaller reductions are not made. Default: 1e-8

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    >>> for loss in (1.0, 1.0): scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueRangeError("Factor should be < 1.0.")
        self.factor = factor
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        listed = isinstance(min_lr, (list, tuple))
        if listed and len(min_lr) != len(optimizer.param_groups):
            raise ValueRangeError(
                f"expected {len(optimizer.param_groups)} min_lrs, got {len(min_lr)}"
            )
        self.default_min_lr = None if listed else min_lr
        self.min_lrs = each_group("min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        self._compare_by(mode, threshold, threshold_mode)
        self._reset()

    def _compare_by(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueRangeError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueRangeError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Was there a reduction a short while ago?"""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        down = self.mode == "min"
        if self.threshold_mode == "rel":
            limit = best * (1.0 - self.threshold if down else self.threshold + 1.0)
        else:
            limit = best - self.threshold if down else best + self.threshold
        return a < limit if down else a > limit

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Looks at an epoch's metric and reduces the rates when it has long not improved."""
        current = float(metrics)
        if epoch is not None:
            warn(_EPOCH, UserWarning)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise ShapeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}): change "
                    "`min_lrs` to match"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_value(group, "lr", new)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what ``state_dict`` gave."""
        self.__dict__.update(state_dict)
        self._compare_by(self.mode, self.threshold, self.threshold_mode)


class _WithMomentum(LRScheduler):
    """Schedulers that move the momentum (or beta1) too."""

    use_beta1: bool

    def _start_momentum(self, low: Any, high: Any, last_epoch: int) -> tuple[list[Any], list[Any]]:
        """The bounds for each group; a fresh schedule starts at the upper one."""
        optimizer = self.optimizer
        if not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueRangeError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        highs = each_group("max_momentum", optimizer, high)
        lows = each_group("base_momentum", optimizer, low)
        if last_epoch == -1:
            for group, a, b in zip(optimizer.param_groups, highs, lows, strict=True):
                self._set_momentum(group, a)
                group["max_momentum"], group["base_momentum"] = a, b
        return lows, highs

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class OneCycleLR(_WithMomentum):
    """One cycle: the rate rises to ``max_lr``, then falls far below where it started.

    Stepped after every batch. Smith & Topin, "Super-convergence" (2017).

    Args:
        optimizer (Optimizer): whose learning rates change
        max_lr (float or list): the top
        total_steps (int, optional): the cycle's length; or ``epochs`` and ``steps_per_epoch``
        pct_start (float): the rising part of it. Default: 0.3
        anneal_strategy (str): 'cos' or 'linear'. Default: 'cos'
        cycle_momentum (bool): move momentum (or beta1) the other way? Default: True
        base_momentum, max_momentum (float or list): its bounds. Default: 0.85, 0.95
        div_factor (float): the start is ``max_lr / div_factor``. Default: 25
        final_div_factor (float): the end is the start divided by this. Default: 1e4
        three_phase (bool): fall to the start first, then further. Default: False
        last_epoch (int): where to go on. Default: -1

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0, momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=10)
    >>> round(scheduler.get_last_lr()[0], 6)
    0.04
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self.total_steps = _cycle_length(total_steps, epochs, steps_per_epoch)
        if type(pct_start) is not float or not 0 <= pct_start <= 1:
            raise ValueRangeError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueRangeError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got " + anneal_strategy
            )
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        tops = each_group("max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)
        return (end - start) * share + start

    def _rates(self) -> list[Any]:
        """Also sets the momentum."""
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueRangeError(
                f"Tried to step {at} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        last = len(self._schedule_phases) - 1
        for k, phase in enumerate(self._schedule_phases):
            if at <= phase["end_step"] or k == last:
                break
            start = phase["end_step"]
        share = (at - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal(*ends, share))
        return rates


def _cycle_length(total: int | None, epochs: int | None, each: int | None) -> int:
    if total is not None:
        if type(total) is not int or total <= 0:
            raise ValueRangeError(f"Expected positive integer total_steps, but got {total}")
        return total
    if epochs is None or each is None:
        raise ValueRangeError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", each)):
        if type(value) is not int or value <= 0:
            raise ValueRangeError(f"Expected positive integer {name}, but got {value}")
    return epochs * each


def _phases(total: int, pct: float, three: bool) -> list[dict[str, Any]]:
    """The parts of the cycle: where each ends, from and to which rates and momenta it goes."""

    def phase(end: float, rates: str, momenta: str) -> dict[str, Any]:
        (a, b), (c, d) = rates.split(), momenta.split()
        return {"end_step": end, "start_lr": f"{a}_lr", "end_lr": f"{b}_lr",
                "start_momentum": f"{c}_momentum", "end_momentum": f"{d}_momentum"}  # fmt: skip

    rise = phase(float(pct * total) - 1, "initial max", "max base")
    if not three:
        return [rise, phase(total - 1, "max min", "base max")]
    fall = phase(float(2 * pct * total) - 2, "max initial", "base max")
    return [rise, fall, phase(total - 1, "initial min", "max max")]


class CyclicLR(_WithMomentum):
    """The rate goes up and down between two bounds, again and again.

    Stepped after every batch. Smith, "Cyclical learning rates for training neural networks" (2015).

    Args:
        optimizer (Optimizer): whose learning rates change
        base_lr (float or list): the lower bound
        max_lr (float or list): the upper bound
        step_size_up (int): steps up. Default: 2000
        step_size_down (int, optional): steps down. Default: as up
        mode (str): 'triangular', 'triangular2' (each cycle half as high) or 'exp_range' (the height
            times ``gamma`` at each step). Default: 'triangular'
        gamma (float): Default: 1.0
        scale_fn (callable, optional): the height's factor, in place of ``mode``
        scale_mode (str): is it a function of the 'cycle' or of the 'iterations'? Default: 'cycle'
        cycle_momentum (bool): move momentum (or beta1) the other way? Default: True
        base_momentum, max_momentum (float or list): its bounds. Default: 0.8, 0.9
        last_epoch (int): where to go on. Default: -1

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0, momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 1.0, 3.0, step_size_up=2)
    >>> for _ in range(2): optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [3.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        lows = each_group("base_lr", optimizer, base_lr)
        self.max_lrs = each_group("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueRangeError("mode is invalid and scale_fn is None")
        if last_epoch == -1:
            for lr, group in zip(lows, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(
                base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """The height's factor in a cycle or at a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return float(self.gamma**x)
        return 1.0 if self.mode == "triangular" else 1 / (2.0 ** (x - 1))

    def _rates(self) -> list[Any]:
        """Also sets the momentum."""
        at = self.last_epoch
        cycle = math.floor(1 + at / self.total_size)
        x = 1.0 + at / self.total_size - cycle
        rising = x <= self.step_ratio
        height = x / self.step_ratio if rising else (x - 1) / (self.step_ratio - 1)

        def swing(low: Any, high: Any) -> Any:
            return (
                (high - low) * height * self.scale_fn(cycle if self.scale_mode == "cycle" else at)
            )

        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, high - swing(low, high))
        return [low + swing(low, high)
                for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of ``scale_fn`` only a callable object's attributes."""
        state = super().state_dict()
        fn = state.pop("_scale_fn_custom")
        kept = None if fn is None or isinstance(fn, types.FunctionType) else dict(fn.__dict__)
        return {**state, "_scale_fn_custom": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what :meth:`state_dict` gave."""
        kept = state_dict["_scale_fn_custom"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if kept is not None:
            vars(self._scale_fn_custom).update(kept)
