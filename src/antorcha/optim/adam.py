"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.ops import optim_step
from antorcha.ops.record import T
from antorcha.optim.optimizer import Optimizer, as_reals, check, number, refuse_differentiable
from antorcha.runtime.tensor import Tensor


class Adam(Optimizer):
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
        foreach, fused, capturable: accepted; a step is always one fused kernel a parameter
        differentiable (bool): not supported

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html.

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.grad = torch.tensor([1., -2.])
    >>> torch.optim.Adam([w], lr=0.1).step()
    >>> w.detach()
    tensor([0.9000, 1.1000])
    """

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
        check(lr=lr, eps=eps)
        for k, beta in enumerate(betas):
            if not 0.0 <= float(beta) < 1.0:
                raise ValueRangeError(f"Invalid beta parameter at index {k}: {beta}")
        check(weight_decay=weight_decay)
        refuse_differentiable(differentiable)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("amsgrad", "maximize", "capturable", "differentiable",
                         "decoupled_weight_decay"):  # fmt: skip
                group.setdefault(name, False)
            group.setdefault("foreach", None)
            group.setdefault("fused", None)
            for p in group["params"]:
                kept = self.state.get(p, {})
                if kept and not isinstance(kept["step"], Tensor):
                    kept["step"] = T.full((), float(kept["step"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient."""
        loss = self._loss(closure)
        for group in self.param_groups:
            numbers = _settings(group)
            for p in group["params"]:
                if p._grad is not None:
                    self._update(group, p, numbers)
        return loss

    def _start(self, group: dict[str, Any], p: Any) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        state: dict[str, Any] = self.state[p]
        state["step"] = T.full((), 0.0)
        state["exp_avg"] = T.zeros_like(p.detach())
        state["exp_avg_sq"] = T.zeros_like(p.detach())
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = T.zeros_like(p.detach())
        return state

    def _update(self, group: dict[str, Any], p: Any, numbers: tuple[Any, ...]) -> None:
        lr, beta1, beta2, eps, decay, flags = numbers
        state = self.state[p] or self._start(group, p)
        step = self._advance(state)
        tensors = [p, p._grad, state["exp_avg"], state["exp_avg_sq"]]
        fused = optim_step.adam
        if group["amsgrad"]:
            tensors.append(state["max_exp_avg_sq"])
            fused = optim_step.adam_amsgrad
        if p._layout.dtype.kind == "c":
            tensors = as_reals(tensors)
        size = lr / (1 - beta1**step)
        root = (1 - beta2**step) ** 0.5
        fused(tensors, (1 - beta1, beta2, 1 - beta2, size, root, eps, decay), flags)


def _settings(group: dict[str, Any]) -> tuple[Any, ...]:
    """A group's numbers and flags as the kernels take them."""
    lr, decay = number(group["lr"]), number(group["weight_decay"])
    beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
    decoupled = bool(group["decoupled_weight_decay"]) and decay != 0
    flags = optim_step.adam.flags(  # amsgrad has the same ones
        maximize=group["maximize"], decay=decay != 0 and not decoupled, decoupled=decoupled,
        near=1 - beta1 < 0.5,
    )  # fmt: skip
    return lr, beta1, beta2, number(group["eps"]), 1 - lr * decay if decoupled else decay, flags


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
        foreach, fused, capturable: accepted; a step is always one fused kernel a parameter
        differentiable (bool): not supported

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html.

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> w.grad = torch.zeros(1)
    >>> torch.optim.AdamW([w], lr=0.1, weight_decay=0.5).step()
    >>> w.detach()
    tensor([0.9500])
    """

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
