"""RMSprop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.ops import optim_step
from antorcha.ops.record import T
from antorcha.optim.optimizer import Optimizer, as_reals, check, number, refuse_differentiable

_STEPS = {
    (False, False): optim_step.rmsprop,
    (False, True): optim_step.rmsprop_momentum,
    (True, False): optim_step.rmsprop_centered,
    (True, True): optim_step.rmsprop_centered_momentum,
}


class RMSprop(Optimizer):
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
        foreach, capturable: accepted; a step is always one fused kernel for each parameter

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.RMSprop.html.

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> w.grad = torch.tensor([2.])
    >>> torch.optim.RMSprop([w], lr=0.01).step()
    >>> w.detach()
    tensor([0.9000])
    """

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
        refuse_differentiable(differentiable)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient."""
        loss = self._loss(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    self._update(group, p)
        return loss

    def _update(self, group: dict[str, Any], p: Any) -> None:
        momentum, centered = number(group["momentum"]), bool(group["centered"])
        names = ["square_avg"]
        if centered:
            names.append("grad_avg")
        if momentum > 0:
            names.append("momentum_buffer")
        state = self.state[p]
        if not state:
            state["step"] = T.full((), 0.0)
            for name in ("square_avg", *reversed(names[1:])):
                state[name] = T.zeros_like(p.detach())
        self._advance(state)
        alpha, decay = number(group["alpha"]), number(group["weight_decay"])
        numbers = [number(group["lr"]), alpha, 1 - alpha, number(group["eps"]), decay]
        flags = {"maximize": group["maximize"], "decay": decay != 0}
        if momentum > 0:
            numbers.append(momentum)
        if centered:
            flags["near"] = 1 - alpha < 0.5
        tensors = as_reals([p, p._grad, *[state[name] for name in names]])
        fused = _STEPS[centered, momentum > 0]
        fused(tensors, tuple(numbers), fused.flags(**flags))
