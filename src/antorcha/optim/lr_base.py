"""LRScheduler: the base of the learning rate schedulers.

A scheduler is stepped after the optimizer. ``get_lr`` gives the learning rates for ``last_epoch``,
usually from the present ones: recurrences, so that schedulers can be chained and others may change
the rates too. The recurrences are PyTorch's, in Python floats: the rates agree to the last bit.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from antorcha.errors import ArgumentError, ValueRangeError, warn
from antorcha.optim.optimizer import Optimizer
from antorcha.runtime.tensor import Tensor

_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
    "schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
    "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler."
)


def each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A setting for each group: a sequence of them, or one for all (tensors copied)."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * count
    if len(value) != count:
        raise ValueRangeError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {count}."
        )
    return [v.clone() if isinstance(v, Tensor) else v for v in value]


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """A setting of every group (tensors copied)."""
    found = [group[key] for group in optimizer.param_groups]
    return [v.clone() if isinstance(v, Tensor) else v for v in found]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Changes a setting; one that is a tensor keeps its place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def _overridden(optimizer: Optimizer) -> bool:
    """Has this one optimizer a step of its own that does not say when it is called?"""
    step = vars(optimizer).get("step")
    return step is not None and not hasattr(step, "_wrapped_by_lr_sched")


def _notice_steps(optimizer: Optimizer) -> None:
    """Lets a step without hooks (set on the optimizer itself, or of a class that wraps another
    optimizer) say when it is called; others do."""
    optimizer._opt_called = False
    if hasattr(optimizer.step, "_wrapped_by_lr_sched") or hasattr(optimizer.step, "hooked"):
        return
    own, found = optimizer.step, weakref.ref(optimizer)

    @functools.wraps(own)
    def step(*args: Any, **kwargs: Any) -> Any:
        owner = found()
        if owner is not None:
            owner._opt_called = True
        return own(*args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step  # type: ignore[method-assign]


class LRScheduler:
    """Base class of the schedulers: override :meth:`get_lr`.

    Args:
        optimizer (Optimizer): whose learning rates change
        last_epoch (int): -1 to start; otherwise where to go on. Default: -1

    >>> class Halved(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = Halved(optimizer)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for k, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{k}] when resuming "
                    "scheduler with last_epoch >= 0: load the optimizer's state first"
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _notice_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[Any]:
        """The learning rate of each group for ``last_epoch``."""
        if not self._get_lr_called_within_step:
            warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
            )
        return self._rates()

    def _rates(self) -> list[Any]:
        """The learning rates that the schedulers of this package compute."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The learning rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch and sets the learning rates."""
        if self._step_count == 1:
            if _overridden(self.optimizer):
                warn(_OVERRIDDEN, UserWarning)
            elif not self.optimizer._opt_called:
                warn(_ORDER, UserWarning)
        self._step_count += 1
        if epoch is not None:
            warn(_EPOCH, UserWarning)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            values = self.get_lr() if epoch is None or closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        self._set(values)

    def _set(self, values: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def _present(self) -> list[Any]:
        return values_of(self.optimizer, "lr")

    def _scaled(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what :meth:`state_dict` gave."""
        self.__dict__.update(state_dict)
