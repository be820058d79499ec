"""``torch.optim.swa_utils``: averages of a model's weights along training.

See https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from antorcha.autograd import no_grad
from antorcha.errors import ValueRangeError
from antorcha.nn.module import Module
from antorcha.nn.norm import _BatchNorm
from antorcha.ops.kinds.record import T
from antorcha.optim.lr_base import LRScheduler, each_group
from antorcha.optim.optimizer import Optimizer

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueRangeError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that moves averages, in place: ``average = decay*average + (1 - decay)*value``.

    Args:
        decay (float): from 0 to 1. Default: 0.999
    """
    _check_decay(decay)

    def ema_update(averages: Any, values: Any, num_averaged: Any) -> None:
        _move(averages, values, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that moves equally weighted averages, in place."""

    def swa_update(averages: Any, values: Any, num_averaged: Any) -> None:
        _move(averages, values, 1 / (float(num_averaged) + 1))

    return swa_update


def _move(averages: Any, values: Any, share: float) -> None:
    """Moves each average by a share of the way to the value."""
    with no_grad():
        for average, value in zip(averages, values, strict=True):
            if average.dtype.is_floating_point or average.dtype.is_complex:
                average.lerp_(value, share)
            else:
                average.copy_(average * (1 - share) + value * share)


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """A function of an average and a value: ``decay*average + (1 - decay)*value``.

    Args:
        decay (float): from 0 to 1. Default: 0.999
    """
    _check_decay(decay)

    def ema_update(average: Any, value: Any, num_averaged: Any) -> Any:
        with no_grad():
            return decay * average + (1 - decay) * value

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """A function of an average, a value and the number of values so far: the new average."""

    def swa_update(average: Any, value: Any, num_averaged: Any) -> Any:
        with no_grad():
            return average + (value - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's along training.

    The first :meth:`update_parameters` copies the parameters, later ones average. The buffers are
    copied, or averaged too (``use_buffers``); :func:`update_bn` computes batch norm's anew.

    Izmailov et al., "Averaging weights leads to wider optima and better generalization" (2018).

    Args:
        model (Module): whose parameters are averaged
        device (optional): where the copy lies
        avg_fn (callable, optional): (average, value, number so far) -> average. Default: equal
            weights
        multi_avg_fn (callable, optional): the same in place, for lists of tensors
        use_buffers (bool): average buffers too. Default: False

    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> average = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    3.0
    """

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError(
                "AveragedModel: Only one of avg_fn and multi_avg_fn should be provided"
            )
        self.module: Any = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", T.full((), 0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the model's present parameters into the average."""
        pairs = [
            (average.detach(), value.detach().to(average.device))
            for average, value in zip(
                self._averaged(self.module), self._averaged(model), strict=False
            )
        ]
        if self.n_averaged == 0:
            for average, value in pairs:
                average.copy_(value)
        elif self.multi_avg_fn is not None:
            for averages, values in _alike(pairs):
                self.multi_avg_fn(averages, values, self.n_averaged.to(averages[0].device))
        else:
            avg_fn = self.avg_fn or get_swa_avg_fn()
            for average, value in pairs:
                average.copy_(avg_fn(average, value, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(other.detach())
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Any]:
        if self.use_buffers:
            return itertools.chain(model.parameters(), model.buffers())
        return model.parameters()


def _alike(pairs: list[tuple[Any, Any]]) -> Iterable[tuple[list[Any], list[Any]]]:
    """Pairs of tensors as two lists for each device and dtype."""
    groups: dict[Any, tuple[list[Any], list[Any]]] = {}
    for average, value in pairs:
        averages, values = groups.setdefault((average.device, average.dtype), ([], []))
        averages.append(average)
        values.append(value)
    return groups.values()


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of a model's batch norms in one pass over data.

    Args:
        loader (iterable): batches: a tensor, or a list or tuple that starts with one
        model (Module): the model
        device (optional): where the batches are moved
    """
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    with no_grad():
        for module in momenta:
            module.reset_running_stats()
            module.momentum = None  # an average of all batches
        model.train()
        for batch in loader:
            first = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(first if device is None else first.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rate of each group to a fixed one, at which weights are averaged.

    Args:
        optimizer (Optimizer): whose learning rates change
        swa_lr (float or list): where the rates go
        anneal_epochs (int): how long it takes. Default: 10
        anneal_strategy (str): 'cos' or 'linear'. Default: 'cos'
        last_epoch (int): where to go on. Default: -1

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
    >>> for _ in range(3): optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: Any = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for value, group in zip(
            each_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True
        ):
            group["swa_lr"] = value
        if anneal_strategy not in ("cos", "linear"):
            raise ValueRangeError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueRangeError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How far the rate has gone at the share t of the time."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def _rates(self) -> list[Any]:
        step, epochs = self._step_count - 1, max(1, self.anneal_epochs)
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = [self.anneal_func(max(0, min(1, at / epochs))) for at in (step - 1, step)]
        rates = []
        for group in self.optimizer.param_groups:
            lr, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
