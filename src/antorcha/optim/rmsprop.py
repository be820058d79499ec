"""RMSprop."""

from __future__ import annotations

from typing import Any, ClassVar

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

__all__ = ["RMSprop", "rmsprop"]

_STEPS = {
    (False, False): optim_step.rmsprop,
    (False, True): optim_step.rmsprop_momentum,
    (True, False): optim_step.rmsprop_centered,
    (True, True): optim_step.rmsprop_centered_momentum,
}


class RMSprop(StepOptimizer):
    r"""RMSprop: steps divided by the root of a running mean of squared gradients.

    ``v = alpha*v + (1 - alpha)*g^2;  p -= lr * g / (sqrt(v) + eps)``. ``centered`` subtracts the
    squared running mean of g from v; with momentum the quotients go through a buffer.

    Tieleman & Hinton, lecture 6.5 (2012); centred: Graves (2013).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 1e-2
        alpha (float): how slowly v moves. Default: 0.99
        eps (float): added to the denominator. Default: 1e-8
        weight_decay (float): L2 penalty. Default: 0
        momentum (float): Default: 0
        centered (bool): divide by the standard deviation. Default: False
        maximize (bool): step along the gradient instead of against it. Default: False
        foreach (bool): accepted; a step is always fused
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> w.grad = torch.tensor([2.])
    >>> torch.optim.RMSprop([w], lr=0.01).step()
    >>> w.detach()
    tensor([0.9000])
    """

    _added: ClassVar[dict[str, Any]] = {"momentum": 0, "centered": False, **StepOptimizer._added}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, group: Group, p: Tensor) -> State:
        state = {"step": scalar(0.0, group, p), "square_avg": zeros(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros(p)
        if group["centered"]:
            state["grad_avg"] = zeros(p)
        return state

    def _settings(self, group: Group) -> Any:
        momentum, centered = number(group["momentum"], group), bool(group["centered"])
        lr, alpha = learning_rate(group), number(group["alpha"], group)
        decay = number(group["weight_decay"], group)
        numbers = [lr, alpha, 1 - alpha, number(group["eps"], group), decay]
        flags = {"maximize": group["maximize"], "decay": decay != 0}
        names = ["square_avg"]
        if centered:
            flags["near"] = 1 - alpha < 0.5
            names.append("grad_avg")
        if momentum > 0:
            numbers.append(momentum)
            names.append("momentum_buffer")
        fused = _STEPS[centered, momentum > 0]
        return fused, names, numbers, fused.flags(**flags)

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        fused, names, numbers, flags = settings
        self._count(run, p, state)
        run(fused, [p, grad, *[state[name] for name in names]], numbers, flags)


rmsprop = functional(
    RMSprop,
    "square_avgs:square_avg grad_avgs:grad_avg momentum_buffer_list:momentum_buffer "
    "state_steps:step",
    "foreach maximize differentiable capturable has_complex",
    "lr alpha eps weight_decay momentum centered",
)
