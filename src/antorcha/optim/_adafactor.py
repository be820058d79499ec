"""Adafactor."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.autograd import no_grad
from antorcha.core.dtypes import finfo
from antorcha.errors import DtypeError, ValueRangeError
from antorcha.ops import optim_step
from antorcha.optim.frame import Group, Run, State, StepOptimizer, functional, number, scalar
from antorcha.runtime.tensor import Tensor

__all__ = ["Adafactor", "adafactor"]


class Adafactor(StepOptimizer):
    r"""Adafactor: Adam's running squares kept as a row and a column, for little memory.

    For a matrix: ``R = lerp(R, mean over columns of g^2);  C = lerp(C, mean over rows of g^2);``
    ``v = R C / mean(R)``; for a vector ``v = lerp(v, g^2)``, each by the share ``t^beta2_decay``.
    ``u = g / sqrt(max(v, eps1^2));  u /= max(1, rms(u)/d);``
    ``p -= max(eps2, rms(p)) * min(lr, 1/sqrt(t)) * u``.

    Shazeer & Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018).

    Args:
        params (iterable): parameters or groups of them, real
        lr (float or Tensor): bound of the relative step, and the weight decay's factor.
            Default: 1e-2
        beta2_decay (float): how fast the squares slow down, at most 0. Default: -0.8
        eps (pair of float): the least root mean square of g (None: the dtype's epsilon), and of the
            parameter. Default: (None, 1e-3)
        d (float): the largest root mean square of an update. Default: 1.0
        weight_decay (float): decays the weights themselves. Default: 0
        foreach (bool): accepted, a hint
        maximize (bool): step along the gradient instead of against it. Default: False

    >>> w = torch.nn.Parameter(torch.ones(2, 2))
    >>> w.grad = torch.ones(2, 2)
    >>> torch.optim.Adafactor([w], lr=0.1).step()
    >>> w.detach()[0]
    tensor([0.9000, 0.9000])
    """

    _added: ClassVar[dict[str, Any]] = {"foreach": None}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueRangeError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueRangeError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueRangeError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueRangeError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueRangeError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueRangeError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueRangeError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, group: Group, p: Tensor) -> State:
        refuse_complex("Adafactor", p)
        state = {"step": scalar(0.0, group)}
        shape = list(p.shape)
        if len(shape) > 1:
            state["row_var"] = p.new_zeros([*shape[:-1], 1])
            state["col_var"] = p.new_zeros([*shape[:-2], 1, shape[-1]])
        else:
            state["variance"] = p.new_zeros(shape)
        return state

    def _settings(self, group: Group) -> Any:
        lr, decay = number(group["lr"]), number(group["weight_decay"])
        numbers = lr, decay, group["beta2_decay"], *group["eps"], group["d"]
        return numbers, bool(group["maximize"])

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        (lr, decay, beta2_decay, eps1, eps2, d), maximize = settings
        refuse_complex("Adafactor", p)
        if eps1 is None:
            eps1 = finfo(p.dtype).eps
        step = self._advance(state)
        with no_grad():
            if maximize:
                grad = -grad
            size = max(eps2, _rms(p)) * min(lr, 1 / step**0.5)
            square = _mean_square(grad, state, step**beta2_decay, eps1)
            update = square.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
            numbers = (1 - lr * decay if decay else 1.0, size / max(1.0, _rms(update) / d))
            run(optim_step.along, [p, update], numbers, 0)


def _rms(x: Tensor) -> float:
    """The root mean square."""
    norm: float = x.norm(2).item()
    return norm / float(x.numel() ** 0.5)


def _mean_square(grad: Tensor, state: State, share: float, eps1: float) -> Any:
    """The running mean of the squared gradient, moved on by the share; a tensor of its own."""
    if grad.ndim <= 1:
        return state["variance"].lerp_(grad * grad, share).clone()
    row, column = state["row_var"], state["col_var"]
    for mean, dim in ((row, -1), (column, -2)):
        norm = grad.norm(dim=dim, keepdim=True)
        mean.lerp_(norm.square_().div_(grad.size(dim)), share)
    return (row @ column).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))


def refuse_complex(name: str, p: Tensor) -> None:
    """Raises RuntimeError for a complex parameter."""
    if p._layout.dtype.kind == "c":
        raise DtypeError(f"{name} does not support complex parameters")


adafactor = functional(
    Adafactor, "row_vars:row_var col_vars:col_var variances:variance state_steps:step",
    "foreach grad_scale found_inf has_complex",
    "d lr beta2_decay weight_decay eps1 eps2 maximize",
)  # fmt: skip
