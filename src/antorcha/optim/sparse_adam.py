"""SparseAdam: Adam for sparse gradients, which antorcha does not have yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.errors import MissingFeature, ValueRangeError
from antorcha.optim.frame import check_betas
from antorcha.optim.optimizer import Optimizer
from antorcha.runtime.tensor import Tensor

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    r"""Adam that updates only the elements whose gradient a sparse tensor lists.

    ``m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g^2;``
    ``p -= lr * sqrt(1 - beta2^t)/(1 - beta1^t) * m/(sqrt(v) + eps)``, where g has an element.

    antorcha has no sparse gradients yet: the optimizer can be made, and its checkpoints read; a
    step over a dense gradient is refused, as in PyTorch.

    Kingma & Ba, "Adam: a method for stochastic optimization" (2014).

    Args:
        params (iterable): parameters or groups of them, dense and real
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (pair of float): how slowly m and v move. Default: (0.9, 0.999)
        eps (float): added to the denominator. Default: 1e-8
        maximize (bool): step along the gradient instead of against it. Default: False

    See https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html.

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
        found = [
            [k, n] for k, group in enumerate(self.param_groups)
            for n, p in enumerate(group["params"]) if p._layout.dtype.kind == "c"
        ]  # fmt: skip
        if found:
            raise ValueRangeError(
                f"Complex params at indices {found}: SparseAdam does not support complex parameters"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Refuses dense gradients: there are no others yet."""
        loss = self._loss(closure)
        if any(p._grad is not None for group in self.param_groups for p in group["params"]):
            raise MissingFeature(  # a RuntimeError too, as in PyTorch
                "SparseAdam does not support dense gradients, please consider Adam instead "
                "(antorcha has no sparse gradients yet)"
            )
        return loss


def sparse_adam(*args: Any, **kwargs: Any) -> None:
    """The functional form of :class:`~torch.optim.SparseAdam`: it needs sparse gradients."""
    raise MissingFeature("sparse_adam: antorcha has no sparse gradients yet; adam takes dense ones")
