"""Adagrad and RMSprop: learning rates that adapt to each element's gradients."""

from __future__ import annotations

from typing import Any

from antorcha.lang import expr as E
from antorcha.ops.record import T
from antorcha.ops.update import update
from antorcha.optim.optimizer import Group, Optimizer, check, gradients


@update
def adagrad_step(p, total, g, lr, decay, eps, maximize, decays):  # type: ignore[no-untyped-def]
    """total + g * g; p - lr * g / (sqrt(total) + eps)."""
    d = -g if maximize else g
    if decays:
        d = d + p * decay
    total = total + d * d
    return p + d / (E.sqrt(total) + eps) * -lr, total


class Adagrad(Optimizer):
    """Adagrad: each element's step is divided by the root of its squared gradients' sum.

    Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.
    See https://docs.pytorch.org/docs/stable/generated/torch.optim.Adagrad.html.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check("learning rate", lr, lr >= 0.0)
        check("lr_decay", lr_decay, lr_decay >= 0.0)
        check("weight_decay", weight_decay, weight_decay >= 0.0)
        check("initial_accumulator_value", initial_accumulator_value,
              initial_accumulator_value >= 0.0)  # fmt: skip
        check("epsilon", eps, eps >= 0.0)
        super().__init__(
            params,
            {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
             "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
             "maximize": maximize, "differentiable": differentiable, "fused": fused},
        )  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                start = group["initial_accumulator_value"]
                self.state[p] = {"step": 0, "sum": T.full_like(p.detach(), start)}

    def update(self, group: Group) -> None:
        decay, eps = float(group["weight_decay"]), float(group["eps"])
        for param, grad in gradients(group):
            state = self.state[param]
            state["step"] += 1
            lr = float(group["lr"]) / (1 + (state["step"] - 1) * group["lr_decay"])
            flags = (bool(group["maximize"]), decay != 0)
            adagrad_step((param, state["sum"]), (grad,), (lr, decay, eps), flags)


@update
def rmsprop_step(p, square, buf, mean, g, lr, alpha, eps, decay, momentum, maximize, decays, centered):  # type: ignore[no-untyped-def]  # noqa: E501
    """square: the running mean of g * g; p - lr * g / (sqrt(square) + eps), with momentum."""
    d = -g if maximize else g
    if decays:
        d = d + p * decay
    square = square * alpha + d * d * (1 - alpha)
    within = square
    if centered:
        mean = mean + (d - mean) * (1 - alpha)
        within = square - mean * mean
    buf = buf * momentum + d / (E.sqrt(within) + eps)
    return p + buf * -lr, square, buf, mean


class RMSprop(Optimizer):
    """RMSprop: gradients divided by a running root mean square of themselves.

    Hinton, lecture 6 of "Neural Networks for Machine Learning", 2012; ``centered`` subtracts the
    squared mean, as in Graves, "Generating Sequences With Recurrent Neural Networks", 2013.
    See https://docs.pytorch.org/docs/stable/generated/torch.optim.RMSprop.html.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check("learning rate", lr, lr >= 0.0)
        check("epsilon", eps, eps >= 0.0)
        check("momentum", momentum, momentum >= 0.0)
        check("weight_decay", weight_decay, weight_decay >= 0.0)
        check("alpha", alpha, alpha >= 0.0)
        super().__init__(
            params,
            {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
             "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
             "maximize": maximize, "differentiable": differentiable},
        )  # fmt: skip

    def update(self, group: Group) -> None:
        decay = float(group["weight_decay"])
        momentum = float(group["momentum"])
        centered = bool(group["centered"])
        for param, grad in gradients(group):
            state = self.state[param]
            if not state:
                state["step"] = 0
                state["square_avg"] = T.zeros_like(param)
                if momentum:
                    state["momentum_buffer"] = T.zeros_like(param)
                if centered:
                    state["grad_avg"] = T.zeros_like(param)
            state["step"] += 1
            square = state["square_avg"]
            buffer = state.get("momentum_buffer")
            mean = state.get("grad_avg")
            spare = T.zeros_like(param) if buffer is None or mean is None else None
            numbers = (float(group["lr"]), float(group["alpha"]), float(group["eps"]), decay,
                       momentum)  # fmt: skip
            flags = (bool(group["maximize"]), decay != 0, centered)
            buffer = spare if buffer is None else buffer
            mean = T.zeros_like(param) if mean is None else mean
            rmsprop_step((param, square, buffer, mean), (grad,), numbers, flags)
