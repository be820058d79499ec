"""SparseAdam: Adam for sparse gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.autograd import no_grad
from antorcha.errors import GraphError, ValueRangeError
from antorcha.optim.frame import check_betas, like, zeros
from antorcha.optim.optimizer import Optimizer
from antorcha.runtime.tensor import Tensor

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    r"""Adam that updates only the elements whose gradient a sparse tensor lists.

    ``m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g^2;``
    ``p -= lr * sqrt(1 - beta2^t)/(1 - beta1^t) * m/(sqrt(v) + eps)``, where g has an element.

    Sparse gradients are those of ``nn.Embedding(..., sparse=True)``; dense ones are refused.

    Kingma & Ba, "Adam: a method for stochastic optimization" (2014).

    Args:
        params (iterable): parameters or groups of them, dense and real
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (pair of float): how slowly m and v move. Default: (0.9, 0.999)
        eps (float): added to the denominator. Default: 1e-8
        maximize (bool): step along the gradient instead of against it. Default: False

    >>> torch.optim.SparseAdam([torch.nn.Parameter(torch.ones(1))], lr=0.1).defaults['lr']
    0.1
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueRangeError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueRangeError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueRangeError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        params = {(k, n): p for k, group in enumerate(self.param_groups)
                  for n, p in enumerate(group["params"])}  # fmt: skip
        sparse = [list(at) for at, p in params.items() if p._layout.sparse]
        if sparse:
            raise ValueRangeError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        found = [list(at) for at, p in params.items() if p._layout.dtype.kind == "c"]
        if found:
            raise ValueRangeError(
                f"Complex params at indices {found}: SparseAdam does not support complex parameters"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient: a sparse one.

        Args:
            closure (callable, optional): computes the loss again and returns it
        """
        loss = self._loss(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad is not None]
            if any(not p._grad._layout.sparse for p in params):
                raise GraphError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
            states = [self.state[p] for p in params]
            for p, state in zip(params, states, strict=True):
                if not state:
                    state.update(step=0, exp_avg=zeros(p), exp_avg_sq=zeros(p))
                state["step"] += 1
            sparse_adam(
                params, [p._grad for p in params], [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states], [state["step"] for state in states],
                eps=group["eps"], beta1=group["betas"][0], beta2=group["betas"][1],
                lr=group["lr"], maximize=group.get("maximize", False),
            )  # fmt: skip
        return loss


def sparse_adam(
    params: list[Any], grads: list[Any], exp_avgs: list[Any], exp_avg_sqs: list[Any],
    state_steps: list[int], *, eps: float, beta1: float, beta2: float, lr: Any, maximize: bool,
) -> None:  # fmt: skip
    """The functional form of :class:`~torch.optim.SparseAdam`: one update of ``params`` from lists
    of sparse gradients and of state, in place."""
    lr = lr.squeeze() if isinstance(lr, Tensor) else lr  # (it is computed with in its own dtype)
    with no_grad():
        for p, given, m, v, step in zip(
            params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True
        ):
            grad = (
                -given if maximize else given
            ).coalesce()  # squares of sums, not sums of squares
            g = grad._values()
            if not g.numel():
                continue
            old_m, old_v = m.sparse_mask(grad)._values(), v.sparse_mask(grad)._values()
            more_m = g.sub(old_m).mul(1 - beta1)
            more_v = g.pow(2).sub(old_v).mul(1 - beta2)
            m.add_(like(grad, more_m))
            v.add_(like(grad, more_v))
            size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
            denominator = more_v.add(old_v).sqrt().add(eps)
            p.add_(like(grad, -size * more_m.add(old_m).div(denominator)))
