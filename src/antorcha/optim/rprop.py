"""Rprop."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.ops import optim_step
from antorcha.optim.frame import (
    Group,
    Run,
    State,
    StepOptimizer,
    filled,
    functional,
    number,
    scalar,
    zeros,
)
from antorcha.optim.optimizer import check
from antorcha.runtime.tensor import Tensor

__all__ = ["Rprop", "rprop"]


class Rprop(StepOptimizer):
    r"""Rprop: steps along the gradient's sign, each element with a step size of its own.

    The size grows while the sign stays (``* etas[1]``) and shrinks when it changes
    (``* etas[0]``; that element then rests for a step). It is for whole data sets, not for batches.

    Riedmiller & Braun, "A direct adaptive method for faster backpropagation learning: the RPROP
    algorithm" (1993).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the first step size. Default: 1e-2
        etas (pair of float): the factors of shrinking and growing. Default: (0.5, 1.2)
        step_sizes (pair of float): the least and the largest step size. Default: (1e-6, 50)
        capturable (bool): count steps on the GPU, so that a CUDA graph can hold a step.
            Default: False
        foreach (bool): accepted; a step is always fused
        maximize (bool): step along the gradient instead of against it. Default: False
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1., -2.])
    >>> torch.optim.Rprop([w], lr=0.1).step()
    >>> w.detach()
    tensor([0.9000, 1.1000])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueRangeError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, group: Group, p: Tensor) -> State:
        size = filled(p, number(group["lr"]))
        return {"step": scalar(0.0, group, p), "prev": zeros(p), "step_size": size}

    def _settings(self, group: Group) -> Any:
        numbers = [number(value) for value in (*group["etas"], *group["step_sizes"])]
        return numbers, optim_step.rprop.flags(maximize=group["maximize"])

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        self._count(run, p, state)
        run(optim_step.rprop, [p, grad, state["prev"], state["step_size"]], *settings)


rprop = functional(
    Rprop, "prevs:prev step_sizes:step_size state_steps:step",
    "foreach capturable maximize differentiable has_complex",
    "step_size_min step_size_max etaminus etaplus",
)  # fmt: skip
