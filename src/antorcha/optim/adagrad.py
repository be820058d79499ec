"""Adagrad."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.errors import GraphError, ValueRangeError
from antorcha.ops import optim_step
from antorcha.optim.frame import (
    Group,
    Run,
    State,
    StepOptimizer,
    check_fused,
    filled,
    functional,
    like,
    number,
    scalar,
)
from antorcha.optim.optimizer import check
from antorcha.runtime.tensor import Tensor

__all__ = ["Adagrad", "adagrad"]


class Adagrad(StepOptimizer):
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
        foreach, fused (bool): accepted; a step is always fused
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> w.grad = torch.tensor([3.])
    >>> torch.optim.Adagrad([w], lr=0.1).step()
    >>> w.detach()
    tensor([0.9000])
    """

    _added: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

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
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_fused(self, fused, differentiable, foreach)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._start(group, p))

    def _start(self, group: Group, p: Tensor) -> State:
        total = filled(p, self.defaults["initial_accumulator_value"])
        return {"step": scalar(0.0, group), "sum": total}

    def share_memory(self) -> None:
        """Moves the sums of squares to memory that processes share."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _settings(self, group: Group) -> Any:
        lr, decay = number(group["lr"], group), number(group["weight_decay"], group)
        flags = optim_step.adagrad.flags(maximize=group["maximize"], decay=decay != 0)
        return lr, group["lr_decay"], number(group["eps"], group), decay, flags

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        lr, lr_decay, eps, decay, flags = settings
        rate = lr / (1 + (self._advance(state) - 1) * lr_decay)
        run(optim_step.adagrad, [p, grad, state["sum"]], (rate, eps, decay), flags)

    def _update_sparse(self, p: Tensor, grad: Any, state: State, group: Group) -> None:
        """The same where a sparse gradient has elements."""
        if group.get("fused"):
            raise GraphError("`fused` does not support sparse grad or complex param")
        step = self._advance(state)
        if group["weight_decay"]:
            raise GraphError("weight_decay option is not compatible with sparse gradients")
        rate = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        grad = grad.coalesce()  # squares of sums, not sums of squares
        values = grad._values()
        state["sum"].add_(like(grad, values.pow(2)))
        root = state["sum"].sparse_mask(grad)._values().sqrt().add(group["eps"])
        p.add_(like(grad, values / root), alpha=-rate)


adagrad = functional(
    Adagrad, "state_sums:sum state_steps:step",
    "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
    "lr weight_decay lr_decay eps maximize",
)  # fmt: skip
