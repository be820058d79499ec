"""Adam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from antorcha.errors import ValueRangeError
from antorcha.ops import optim_step
from antorcha.optim.frame import (
    Group,
    Run,
    State,
    StepOptimizer,
    check_betas,
    check_fused,
    functional,
    learning_rate,
    number,
    run_counted,
    scalar,
    weight_decay,
    zeros,
)
from antorcha.optim.optimizer import check
from antorcha.optim.together import log_of
from antorcha.runtime.tensor import Tensor

__all__ = ["Adam", "adam"]


class Adam(StepOptimizer):
    r"""Adam: steps divided by a running estimate of the gradient's size.

    ``m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g^2;``
    ``p -= lr/(1 - beta1^t) * m / (sqrt(v)/sqrt(1 - beta2^t) + eps)``.

    Kingma & Ba, "Adam: a method for stochastic optimization" (2014); amsgrad: Reddi et al., "On the
    convergence of Adam and beyond" (2018).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (pair of float): how slowly m and v move. Default: (0.9, 0.999)
        eps (float): added to the denominator. Default: 1e-8
        weight_decay (float): L2 penalty, added to the gradient. Default: 0
        amsgrad (bool): divide by the largest v so far. Default: False
        maximize (bool): step along the gradient instead of against it. Default: False
        decoupled_weight_decay (bool): decay the weights themselves, as AdamW. Default: False
        foreach, fused (bool): accepted; a step is always fused
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1., -2.])
    >>> torch.optim.Adam([w], lr=0.1).step()
    >>> w.detach()
    tensor([0.9000, 1.1000])
    """

    _added: ClassVar[dict[str, Any]] = {
        "amsgrad": False, **StepOptimizer._added, "fused": None, "decoupled_weight_decay": False,
    }  # fmt: skip

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueRangeError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check(lr=lr, eps=eps)
        check_betas(betas)
        check(weight_decay=weight_decay)
        _check_kinds(betas, bool(foreach and not capturable))
        defaults = {
            "lr": lr, "betas": tuple([b.squeeze() if isinstance(b, Tensor) else b for b in betas]),
            "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_fused(self, fused, differentiable, foreach)

    def _start(self, group: Group, p: Tensor) -> State:
        state = {"step": scalar(0.0, group, p), "exp_avg": zeros(p), "exp_avg_sq": zeros(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros(p)
        return state

    def _settings(self, group: Group) -> Any:
        beta1, beta2 = number(group["betas"][0], group), number(group["betas"][1], group)
        decay, share, of_decay = weight_decay(group)
        flags = optim_step.adam.flags(  # amsgrad has the same ones
            maximize=group["maximize"], near=1 - beta1 < 0.5, **of_decay
        )
        numbers = (
            learning_rate(group), beta1, beta2, 1 - beta1, 1 - beta2, log_of(beta1, group),
            log_of(beta2, group), number(group["eps"], group), decay, share,
        )  # fmt: skip
        return numbers, bool(group["amsgrad"]), flags

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        numbers, amsgrad, flags = settings
        step = self._count(run, p, state)
        tensors = [p, grad, state["exp_avg"], state["exp_avg_sq"]]
        if amsgrad:
            tensors.append(state["max_exp_avg_sq"])
        fused = optim_step.adam_amsgrad if amsgrad else optim_step.adam
        run_counted(run, fused, tensors, (state["step"],), (step,), numbers, flags)


def _check_kinds(betas: Sequence[Any], foreach: bool) -> None:
    """Betas are two floats or two tensors of one element."""
    tensors = [isinstance(beta, Tensor) for beta in betas[:2]]
    if tensors[0] != tensors[1] or not all(
        tensor or isinstance(beta, float) for tensor, beta in zip(tensors, betas, strict=False)
    ):
        raise ValueRangeError("betas must be either both floats or both Tensors")
    for k, beta in enumerate(betas[:2]):
        if tensors[k] and foreach:
            raise ValueRangeError(
                f"betas[{k}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if tensors[k] and beta.numel() != 1:
            raise ValueRangeError(f"Tensor betas[{k}] must be 1-element")


adam = functional(
    Adam,
    "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq max_exp_avg_sqs:max_exp_avg_sq state_steps:step",
    "foreach capturable differentiable fused grad_scale found_inf has_complex "
    "decoupled_weight_decay",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
)
