"""Adadelta."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.ops import optim_step
from antorcha.optim.frame import (
    Group,
    Run,
    State,
    StepOptimizer,
    functional,
    learning_rate,
    number,
    scalar,
    zeros,
)
from antorcha.optim.optimizer import check
from antorcha.runtime.tensor import Tensor

__all__ = ["Adadelta", "adadelta"]


class Adadelta(StepOptimizer):
    r"""Adadelta: steps as large as the steps before, relative to the gradient's size.

    ``v = rho*v + (1 - rho)*g^2;  d = sqrt(u + eps)/sqrt(v + eps) * g;``
    ``u = rho*u + (1 - rho)*d^2;  p -= lr*d``.

    Zeiler, "ADADELTA: an adaptive learning rate method" (2012).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): scales the step. Default: 1.0
        rho (float): how slowly v and u move. Default: 0.9
        eps (float): added under the roots. Default: 1e-6
        weight_decay (float): L2 penalty. Default: 0
        foreach (bool): accepted; a step is always fused
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False
        maximize (bool): step along the gradient instead of against it. Default: False
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> w.grad = torch.ones(1)
    >>> torch.optim.Adadelta([w], lr=10.0).step()
    >>> w.detach()
    tensor([0.9684])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueRangeError(f"Invalid rho value: {rho}")
        check(eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, group: Group, p: Tensor) -> State:
        return {"step": scalar(0.0, group, p), "square_avg": zeros(p), "acc_delta": zeros(p)}

    def _settings(self, group: Group) -> Any:
        lr, rho = learning_rate(group), number(group["rho"], group)
        decay = number(group["weight_decay"], group)
        flags = optim_step.adadelta.flags(maximize=group["maximize"], decay=decay != 0)
        return (lr, rho, 1 - rho, number(group["eps"], group), decay), flags

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        self._count(run, p, state)
        run(optim_step.adadelta, [p, grad, state["square_avg"], state["acc_delta"]], *settings)


adadelta = functional(
    Adadelta, "square_avgs:square_avg acc_deltas:acc_delta state_steps:step",
    "capturable foreach differentiable has_complex", "lr rho eps weight_decay maximize",
)  # fmt: skip
