"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.ops import optim_step
from antorcha.ops.record import T
from antorcha.optim.optimizer import Optimizer, as_reals, check, number, refuse_differentiable


class SGD(Optimizer):
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
        foreach, fused: accepted; a step is always one fused kernel for each parameter
        differentiable (bool): not supported

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html.

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1., 2.])
    >>> torch.optim.SGD([w], lr=0.1, momentum=0.9).step()
    >>> w.detach()
    tensor([0.9000, 0.8000])
    """

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
        refuse_differentiable(differentiable)
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("nesterov", "maximize", "differentiable"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)
            group.setdefault("fused", None)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient."""
        loss = self._loss(closure)
        for group in self.param_groups:
            lr, decay = number(group["lr"]), number(group["weight_decay"])
            momentum = number(group["momentum"])
            flags = optim_step.sgd.flags(maximize=group["maximize"], decay=decay != 0)
            for p in group["params"]:
                grad = p._grad
                if grad is None:
                    continue
                if momentum:
                    self._with_momentum(group, p, lr, momentum, decay)
                elif p._layout.dtype.kind == "c":
                    optim_step.sgd(as_reals([p, grad]), (lr, decay), flags)
                else:
                    optim_step.sgd.stateless(p, grad, (lr, decay), flags)
        return loss

    def _with_momentum(
        self, group: dict[str, Any], p: Any, lr: float, momentum: float, decay: float
    ) -> None:
        state = self.state[p]
        flags = {"maximize": group["maximize"], "decay": decay != 0, "nesterov": group["nesterov"]}
        buf = state.get("momentum_buffer")
        if buf is None:
            buf = state["momentum_buffer"] = T.zeros_like(p._grad.detach())
            first = optim_step.sgd_first
            first(as_reals([p, p._grad, buf]), (lr, momentum, decay), first.flags(**flags))
        else:
            rate = 1.0 - group["dampening"]
            later = optim_step.sgd_momentum
            numbers = (lr, momentum, rate, decay)
            later(as_reals([p, p._grad, buf]), numbers, later.flags(**flags))
