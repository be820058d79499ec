"""AdamW."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.optim.adam import Adam
from antorcha.optim.frame import functional

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    r"""Adam whose weight decay shrinks the weights themselves: ``p *= 1 - lr * weight_decay``.

    Loshchilov & Hutter, "Decoupled weight decay regularization" (2017).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (pair of float): Default: (0.9, 0.999)
        eps (float): added to the denominator. Default: 1e-8
        weight_decay (float): Default: 1e-2
        amsgrad (bool): divide by the largest v so far. Default: False
        maximize (bool): step along the gradient instead of against it. Default: False
        foreach, fused (bool): accepted; a step is always fused
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> w.grad = torch.zeros(1)
    >>> torch.optim.AdamW([w], lr=0.1, weight_decay=0.5).step()
    >>> w.detach()
    tensor([0.9500])
    """

    _added: ClassVar[dict[str, Any]] = {**Adam._added, "decoupled_weight_decay": True}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


adamw = functional(
    AdamW,
    "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq max_exp_avg_sqs:max_exp_avg_sq state_steps:step",
    "foreach capturable differentiable fused grad_scale found_inf has_complex",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
)
