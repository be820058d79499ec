"""RAdam."""

from __future__ import annotations

from typing import Any, ClassVar

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
    scalar,
    weight_decay,
    zeros,
)
from antorcha.optim.optimizer import check
from antorcha.optim.together import log_of
from antorcha.runtime.tensor import Tensor

__all__ = ["RAdam", "radam"]


class RAdam(StepOptimizer):
    r"""RAdam: Adam that starts as momentum and is rectified while it has seen few gradients.

    ``m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g^2;``
    ``r = 2/(1 - beta2) - 1;  r_t = r - 2*t*beta2^t/(1 - beta2^t)``; if ``r_t > 5``:
    ``p -= lr * m/(1 - beta1^t) * sqrt(1 - beta2^t)/(sqrt(v) + eps)``
    ``* sqrt((r_t - 4)*(r_t - 2)*r / ((r - 4)*(r - 2)*r_t))``, else ``p -= lr * m/(1 - beta1^t)``.

    Liu et al., "On the variance of the adaptive learning rate and beyond" (2019).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (pair of float): how slowly m and v move. Default: (0.9, 0.999)
        eps (float): added to the denominator. Default: 1e-8
        weight_decay (float): L2 penalty. Default: 0
        decoupled_weight_decay (bool): decay the weights themselves, as AdamW. Default: False
        foreach (bool): accepted; a step is always fused
        maximize (bool): step along the gradient instead of against it. Default: False
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1., -2.])
    >>> torch.optim.RAdam([w], lr=0.1).step()
    >>> w.detach()
    tensor([0.9000, 1.2000])
    """

    _added: ClassVar[dict[str, Any]] = {**StepOptimizer._added, "decoupled_weight_decay": False}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps)
        check_betas(betas)
        check(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, group: Group, p: Tensor) -> State:
        return {"step": scalar(0.0, group, p), "exp_avg": zeros(p), "exp_avg_sq": zeros(p)}

    def _settings(self, group: Group) -> Any:
        beta1, beta2 = number(group["betas"][0], group), number(group["betas"][1], group)
        decay, share, of_decay = weight_decay(group)
        flags = {"maximize": group["maximize"], "near": 1 - beta1 < 0.5, **of_decay}
        lr, eps = learning_rate(group), number(group["eps"], group)
        logs = [log_of(beta, group) for beta in (beta1, beta2)]
        return lr, beta1, beta2, eps, decay, share, flags, *logs

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        lr, beta1, beta2, eps, decay, share, flags, log1, log2 = settings
        fused = optim_step.radam
        tensors = [p, grad, state["exp_avg"], state["exp_avg_sq"]]
        longest = 2 / (1 - beta2) - 1
        step = self._count(run, p, state)
        if step is None:
            known = (lr, beta2, 1 - beta1, 1 - beta2, log1, log2, longest, eps, decay, share)
            packed = fused.flags(**flags, rectified=True, judged=True)
            run(fused, tensors, known, packed, (state["step"],))
            return
        unseen = 1 - beta2**step
        length = longest - 2 * step * beta2**step / unseen
        rectified = length > 5.0
        rectify = 1.0
        if rectified:
            rectify = (
                (length - 4) * (length - 2) * longest
                / ((longest - 4) * (longest - 2) * length)
            ) ** 0.5  # fmt: skip
        numbers = (
            1 - beta1, beta2, 1 - beta2, 1 - beta1**step, lr, unseen**0.5, rectify, eps,
            optim_step.less(decay, lr, share),
        )  # fmt: skip
        run(fused, tensors, numbers, fused.flags(**flags, rectified=rectified, judged=False))


radam = functional(
    RAdam, "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq state_steps:step",
    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
    "beta1 beta2 lr weight_decay eps",
)  # fmt: skip
