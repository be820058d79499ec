"""Adagrad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.ops import optim_step
from antorcha.ops.record import T
from antorcha.optim.optimizer import Optimizer, as_reals, check, number, refuse_differentiable


class Adagrad(Optimizer):
    r"""Adagrad: steps divided by the root of the sum of all squared gradients.

    ``s += g^2;  p -= lr/(1 + (t - 1)*lr_decay) * g / (sqrt(s) + eps)``.

    Duchi, Hazan & Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization" (2011).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 1e-2
        lr_decay (float): Default: 0
        weight_decay (float): L2 penalty. Default: 0
        initial_accumulator_value (float): where s starts. Default: 0
        eps (float): added to the denominator. Default: 1e-10
        maximize (bool): step along the gradient instead of against it. Default: False
        foreach, fused: accepted; a step is always one fused kernel for each parameter

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.Adagrad.html.

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> w.grad = torch.tensor([3.])
    >>> torch.optim.Adagrad([w], lr=0.1).step()
    >>> w.detach()
    tensor([0.9000])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay)
        if not initial_accumulator_value >= 0.0:
            raise ValueRangeError(
                f"Invalid initial_accumulator_value value: {initial_accumulator_value}"
            )
        check(eps=eps)
        refuse_differentiable(differentiable)
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            start = group["initial_accumulator_value"]
            for p in group["params"]:
                value = complex(start, start) if p._layout.dtype.kind == "c" else start
                self.state[p]["step"] = T.full((), 0.0)
                self.state[p]["sum"] = T.full_like(p.detach(), value)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient."""
        loss = self._loss(closure)
        for group in self.param_groups:
            lr, decay = number(group["lr"]), number(group["weight_decay"])
            eps = number(group["eps"])
            flags = optim_step.adagrad.flags(maximize=group["maximize"], decay=decay != 0)
            for p in group["params"]:
                if p._grad is None:
                    continue
                state = self.state[p]
                step = self._advance(state)
                rate = lr / (1 + (step - 1) * group["lr_decay"])
                optim_step.adagrad(as_reals([p, p._grad, state["sum"]]), (rate, eps, decay), flags)
        return loss
