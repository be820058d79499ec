"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.ops import optim_step
from antorcha.ops.kinds.record import T
from antorcha.optim.frame import (
    Group,
    Run,
    State,
    StepOptimizer,
    check_count,
    functional,
    learning_rate,
    number,
    scalar,
    zeros,
)
from antorcha.optim.optimizer import check
from antorcha.runtime.tensor import Tensor

__all__ = ["ASGD", "asgd"]


class ASGD(StepOptimizer):
    r"""Averaged stochastic gradient descent.

    ``p = (1 - lambd*eta)*p - eta*g;  eta = lr/(1 + lambd*lr*t)^alpha``. The average of the
    parameters since step ``t0`` is kept as ``ax`` in the optimizer's state.

    Polyak & Juditsky, "Acceleration of stochastic approximation by averaging" (1992).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 1e-2
        lambd (float): decay of the parameters and of the rate. Default: 1e-4
        alpha (float): power of the rate's decay. Default: 0.75
        t0 (float): the step at which averaging starts. Default: 1e6
        weight_decay (float): L2 penalty. Default: 0
        foreach (bool): accepted; a step is always fused
        maximize (bool): step along the gradient instead of against it. Default: False
        differentiable (bool): let autograd record the step. Default: False
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> w.grad = torch.ones(1)
    >>> torch.optim.ASGD([w], lr=0.1, lambd=1.0).step()
    >>> w.detach()
    tensor([0.8000])
    """

    _scalars: ClassVar[tuple[str, ...]] = ("step", "eta", "mu")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check(lr=lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, group: Group, p: Tensor) -> State:
        return {
            "step": scalar(0.0, group, p), "eta": scalar(number(group["lr"]), group, p),
            "mu": scalar(1.0, group, p), "ax": zeros(p),
        }  # fmt: skip

    def _settings(self, group: Group) -> Any:
        decay = number(group["weight_decay"], group)
        flags = {"maximize": group["maximize"], "decay": decay != 0}
        others = [number(group[k]) for k in ("lambd", "alpha", "t0")]
        return decay, flags, learning_rate(group), *others

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        decay, flags, lr, lambd, alpha, t0 = settings
        fused = optim_step.asgd
        tensors = [p, grad, state["ax"]]
        step = self._count(run, p, state)
        if step is None:
            counts = (state["eta"], state["mu"])
            for each in counts:
                check_count("ASGD", p, each)
            run(fused, tensors, (lambd, decay), fused.flags(**flags, averaging=True), counts)
            for_next = (lr, lambd, alpha, t0)
            run.after(optim_step.asgd_count, counts, for_next, (state["step"],))  # type: ignore[attr-defined]
            return
        eta, mu = number(state["eta"]), number(state["mu"])
        numbers = (1 - lambd * eta, eta, mu, decay)
        run(fused, tensors, numbers, fused.flags(**flags, averaging=mu != 1))
        for name, value in (
            ("eta", lr / (1 + lambd * lr * step) ** alpha), ("mu", 1 / max(1, step - t0))
        ):  # fmt: skip
            state[name].copy_(T.full((), value))  # rounded to the default dtype, as PyTorch does


asgd = functional(
    ASGD, "axs:ax mus:mu etas:eta state_steps:step",
    "foreach maximize differentiable capturable has_complex", "lambd lr t0 alpha weight_decay",
)  # fmt: skip
