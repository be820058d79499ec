"""Adamax."""

from __future__ import annotations

from typing import Any

from antorcha.ops import optim_step
from antorcha.optim.frame import (
    Group,
    Run,
    State,
    StepOptimizer,
    check_betas,
    functional,
    learning_rate,
    number,
    run_counted,
    scalar,
    zeros,
)
from antorcha.optim.optimizer import check
from antorcha.optim.together import log_of
from antorcha.runtime.tensor import Tensor

__all__ = ["Adamax", "adamax"]


class Adamax(StepOptimizer):
    r"""Adamax: Adam with the largest recent gradient in place of the root mean square.

    ``m = beta1*m + (1 - beta1)*g;  u = max(beta2*u, |g| + eps);  p -= lr/(1 - beta1^t) * m/u``.

    Kingma & Ba, "Adam: a method for stochastic optimization" (2014), section 7.

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 2e-3
        betas (pair of float): how slowly m and u move. Default: (0.9, 0.999)
        eps (float): added to the gradient's size. Default: 1e-8
        weight_decay (float): L2 penalty. Default: 0
        foreach (bool): accepted; a step is always fused
        maximize (bool): step along the gradient instead of against it. Default: False
        differentiable (bool): let autograd record the step. Default: False
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1., -2.])
    >>> torch.optim.Adamax([w], lr=0.1).step()
    >>> w.detach()
    tensor([0.9000, 1.1000])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps)
        check_betas(betas)
        check(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, group: Group, p: Tensor) -> State:
        return {"step": scalar(0.0, group, p), "exp_avg": zeros(p), "exp_inf": zeros(p)}

    def _settings(self, group: Group) -> Any:
        beta1, beta2 = number(group["betas"][0], group), number(group["betas"][1], group)
        decay = number(group["weight_decay"], group)
        flags = optim_step.adamax.flags(
            maximize=group["maximize"], decay=decay != 0, near=1 - beta1 < 0.5
        )
        numbers = (
            learning_rate(group), beta1, beta2, 1 - beta1, log_of(beta1, group),
            number(group["eps"], group), decay,
        )  # fmt: skip
        return numbers, flags

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        known = (self._count(run, p, state),)
        tensors = [p, grad, state["exp_avg"], state["exp_inf"]]
        run_counted(run, optim_step.adamax, tensors, (state["step"],), known, *settings)


adamax = functional(
    Adamax, "exp_avgs:exp_avg exp_infs:exp_inf state_steps:step",
    "foreach maximize differentiable capturable has_complex", "eps beta1 beta2 lr weight_decay",
)  # fmt: skip
