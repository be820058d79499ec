"""NAdam."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.ops import optim_step
from antorcha.optim.frame import (
    Group,
    Run,
    State,
    StepOptimizer,
    check_betas,
    check_count,
    functional,
    learning_rate,
    number,
    run_counted,
    scalar,
    weight_decay,
    zeros,
)
from antorcha.optim.optimizer import check
from antorcha.optim.together import JoinedSteps, log_of
from antorcha.runtime.tensor import Tensor

__all__ = ["NAdam", "nadam"]


class NAdam(StepOptimizer):
    r"""NAdam: Adam with Nesterov momentum.

    ``m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g^2;``
    ``mu_t = beta1 * (1 - 0.96^(t*momentum_decay)/2);  d = sqrt(v/(1 - beta2^t)) + eps;``
    ``p -= lr * ((1 - mu_t)/(1 - mu_1...mu_t) * g + mu_(t+1)/(1 - mu_1...mu_(t+1)) * m) / d``.

    Dozat, "Incorporating Nesterov momentum into Adam" (2016).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 2e-3
        betas (pair of float): how slowly m and v move. Default: (0.9, 0.999)
        eps (float): added to the denominator. Default: 1e-8
        weight_decay (float): L2 penalty. Default: 0
        momentum_decay (float): how fast the momentum reaches beta1. Default: 4e-3
        decoupled_weight_decay (bool): decay the weights themselves, as AdamW. Default: False
        foreach (bool): accepted; a step is always fused
        maximize (bool): step along the gradient instead of against it. Default: False
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1., -2.])
    >>> torch.optim.NAdam([w], lr=0.1).step()
    >>> w.detach()
    tensor([0.8944, 1.1056])
    """

    _added: ClassVar[dict[str, Any]] = {**StepOptimizer._added, "decoupled_weight_decay": False}
    _scalars: ClassVar[tuple[str, ...]] = ("step", "mu_product")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps)
        check_betas(betas)
        check(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, group: Group, p: Tensor) -> State:
        return {
            "step": scalar(0.0, group, p), "mu_product": scalar(1.0, group, p), "exp_avg": zeros(p),
            "exp_avg_sq": zeros(p),
        }  # fmt: skip

    def _settings(self, group: Group) -> Any:
        beta1, beta2 = number(group["betas"][0], group), number(group["betas"][1], group)
        decay, share, of_decay = weight_decay(group)
        flags = optim_step.nadam.flags(maximize=group["maximize"], near=1 - beta1 < 0.5, **of_decay)
        momentum_decay = number(group["momentum_decay"], group)
        numbers = (
            learning_rate(group), beta1, beta2, 1 - beta1, 1 - beta2, log_of(beta2, group),
            number(group["eps"], group), decay, share, momentum_decay,
        )  # fmt: skip
        return numbers, (beta1, momentum_decay), flags

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        numbers, of_momentum, flags = settings
        counts = (state["step"], state["mu_product"])
        if type(run) is JoinedSteps and run.capturable:
            for each in counts:
                check_count("NAdam", p, each)
            run.before(optim_step.nadam_count, counts, of_momentum)
            known: tuple[Any, ...] = (None, None)
        else:
            step = self._advance(state)
            state["mu_product"].mul_(optim_step.nadam_momentum(step, *of_momentum))
            known = step, number(state["mu_product"])
        tensors = [p, grad, state["exp_avg"], state["exp_avg_sq"]]
        run_counted(run, optim_step.nadam, tensors, counts, known, numbers, flags)


nadam = functional(
    NAdam, "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq mu_products:mu_product state_steps:step",
    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
    "beta1 beta2 lr weight_decay momentum_decay eps",
)  # fmt: skip
