"""Muon: momentum whose steps are orthogonal matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from antorcha.autograd import no_grad
from antorcha.errors import ShapeError, ValueRangeError
from antorcha.ops import optim_step
from antorcha.ops.kinds.record import T
from antorcha.optim._adafactor import refuse_complex
from antorcha.optim.frame import Group, Run, State, StepOptimizer, functional, number, zeros
from antorcha.runtime.tensor import Tensor

__all__ = ["Muon"]

# The polynomial of Keller Jordan's post, https://kellerjordan.github.io/posts/muon/: as steep at 0
# as it can be while the singular values stay near 1.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


class Muon(StepOptimizer):
    r"""Muon: momentum, orthogonalised, for the matrices of hidden layers.

    ``buf = lerp(buf, g, 1 - momentum);  u = lerp(g, buf, momentum)`` (or ``buf``, without
    ``nesterov``); ``p = (1 - lr*weight_decay)*p - lr*r*O(u)``, where ``O`` pushes the singular
    values to 1 by Newton-Schulz iterations in bfloat16: ``x = a*x + (b*A + c*A@A) @ x``, ``A = x @
    x.T``. The ratio r is ``sqrt(max(1, rows/columns))``.

    Other parameters (biases, embeddings) go to another optimizer, such as AdamW.

    Jordan, "Muon: an optimizer for hidden layers in neural networks" (2024); Liu et al., "Muon is
    scalable for LLM training" (2025).

    Args:
        params (iterable): parameters or groups of them: real matrices
        lr (float or Tensor): the learning rate. Default: 1e-3
        weight_decay (float): decays the weights themselves. Default: 0.1
        momentum (float): Default: 0.95
        nesterov (bool): Default: True
        ns_coefficients (three floats): a, b, c above. Default: (3.4445, -4.775, 2.0315)
        eps (float): the least norm that u is divided by. Default: 1e-7
        ns_steps (int): how many iterations. Default: 5
        adjust_lr_fn (str, optional): 'original' (r as above) or 'match_rms_adamw'
            (r is ``0.2 * sqrt(max(rows, columns))``). Default: None, the original

    >>> w = torch.nn.Parameter(torch.zeros(2, 2))
    >>> w.grad = torch.tensor([[3., 0.], [0., 0.]])
    >>> torch.optim.Muon([w], lr=0.1).step()
    >>> (w.detach()[0, 0] < -0.05).item(), w.detach()[1, 1].item()
    (True, 0.0)
    """

    _added: ClassVar[dict[str, Any]] = {}
    _scalars: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueRangeError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueRangeError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueRangeError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueRangeError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueRangeError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueRangeError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{p.size()}"
                    )

    def _start(self, group: Group, p: Tensor) -> State:
        refuse_complex("Muon", p)
        return {"momentum_buffer": zeros(p)}

    def _settings(self, group: Group) -> Any:
        if group["ns_steps"] >= 100:
            raise ValueRangeError(
                "Number of steps must be less than 100 for computational efficiency"
            )
        if len(group["ns_coefficients"]) != 3:
            raise ValueRangeError("Coefficients must be a tuple of exactly 3 values")
        return group, number(group["lr"]), number(group["momentum"])

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        group, lr, momentum = settings
        refuse_complex("Muon", p)
        if grad.ndim != 2:
            raise ShapeError(f"Muon: the gradient must be a 2D matrix, not {tuple(grad.shape)}")
        with no_grad():
            buf = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(buf, momentum) if group["nesterov"] else buf
            update = _orthogonal(update, group).to(p.dtype)
            size = lr * _ratio(group["adjust_lr_fn"], *p.shape)
            run(optim_step.along, [p, update], (1 - lr * group["weight_decay"], size), 0)


def _orthogonal(x: Tensor, group: Group) -> Any:
    """Near the orthogonal matrix with x's singular vectors; its singular values lie around 1."""
    a, b, c = group["ns_coefficients"]
    tall = x.size(0) > x.size(1)
    y: Any = x.bfloat16()
    if tall:
        y = y.T
    y = y / y.norm().clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        gram = y @ y.T
        y = T.addmm(y, T.addmm(gram, gram, gram, beta=b, alpha=c), y, beta=a)
    return y.T if tall else y


def _ratio(how: str | None, rows: int, columns: int) -> float:
    """What the learning rate is multiplied by for a matrix of this size."""
    if how == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


muon = functional(
    Muon, "muon_momentum_bufs:momentum_buffer", "foreach",
    "lr weight_decay momentum nesterov ns_coefficients ns_steps eps adjust_lr_fn has_complex",
)  # fmt: skip
