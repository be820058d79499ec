"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.errors import ValueRangeError
from antorcha.ops import optim_step
from antorcha.optim.frame import (
    Group,
    Run,
    State,
    StepOptimizer,
    check_fused,
    functional,
    in_place,
    number,
    zeros,
)
from antorcha.optim.optimizer import check
from antorcha.runtime.tensor import Tensor

__all__ = ["SGD", "sgd"]


class SGD(StepOptimizer):
    r"""Stochastic gradient descent.

    ``g += weight_decay * p;  buf = momentum * buf + (1 - dampening) * g;  p -= lr * buf``
    (the first buffer is the gradient; without momentum ``p -= lr * g``). With ``nesterov`` the step
    is along ``g + momentum * buf``.

    Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013).

    Args:
        params (iterable): parameters or groups of them
        lr (float or Tensor): the learning rate. Default: 1e-3
        momentum (float): Default: 0
        dampening (float): Default: 0
        weight_decay (float): L2 penalty. Default: 0
        nesterov (bool): Default: False
        maximize (bool): step along the gradient instead of against it. Default: False
        foreach, fused (bool): accepted; a step is always fused
        differentiable (bool): let autograd record the step. Default: False

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1., 2.])
    >>> torch.optim.SGD([w], lr=0.1, momentum=0.9).step()
    >>> w.detach()
    tensor([0.9000, 0.8000])
    """

    _added: ClassVar[dict[str, Any]] = {
        "nesterov": False, "maximize": False, "foreach": None, "differentiable": False,
        "fused": False,
    }  # fmt: skip
    _scalars: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueRangeError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_fused(self, fused, differentiable, foreach)

    def _state_of(self, group: Group, p: Tensor) -> State:
        return self.state[p] if group["momentum"] else {}

    def _settings(self, group: Group) -> Any:
        lr, decay = number(group["lr"], group), number(group["weight_decay"], group)
        momentum, rate = number(group["momentum"], group), 1.0 - group["dampening"]
        flags = {"maximize": group["maximize"], "decay": decay != 0}
        if not momentum:
            return False, (lr, decay), optim_step.sgd.flags(**flags), None
        packed = optim_step.sgd_momentum.flags(**flags, nesterov=group["nesterov"])
        return True, (lr, momentum, rate, decay), packed, (lr, momentum, decay)

    def _update_all(self, run: Run, group: Group, params: list[Tensor], settings: Any) -> None:
        momentum, numbers, flags, _ = settings
        if not momentum and run is in_place:
            params = optim_step.sgd.stateless(params, numbers, flags)
        super()._update_all(run, group, params, settings)

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        momentum, numbers, flags, first = settings
        if not momentum:
            run(optim_step.sgd, [p, grad], numbers, flags)
        elif (buf := state.get("momentum_buffer")) is not None:
            run(optim_step.sgd_momentum, [p, grad, buf], numbers, flags)
        else:
            buf = state["momentum_buffer"] = zeros(grad)
            run(optim_step.sgd_first, [p, grad, buf], first, flags)  # it has the same flags

    def _update_sparse(self, p: Tensor, grad: Any, state: State, group: Group) -> None:
        """The same with a sparse gradient: the momentum buffer is sparse, too."""
        lr, momentum = number(group["lr"]), group["momentum"]
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])  # refused: the sum would be dense
        if momentum:
            buf = state.get("momentum_buffer")
            if buf is None:
                buf = state["momentum_buffer"] = grad.detach().clone()
            else:
                buf.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buf, alpha=momentum) if group["nesterov"] else buf
        p.add_(grad, alpha=-lr)


sgd = functional(
    SGD, "momentum_buffer_list:momentum_buffer",
    "has_sparse_grad foreach fused grad_scale found_inf",
    "weight_decay momentum lr dampening nesterov maximize",
)  # fmt: skip
