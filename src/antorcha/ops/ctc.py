"""``ctc_loss``: connectionist temporal classification.

Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with
recurrent neural networks" (2006).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.lazy import np
from antorcha.errors import ArgumentError, MissingFeature, ShapeError, ValueRangeError
from antorcha.lang.layer_kernels import Ctc
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Int, Tensor
from antorcha.ops.memory import constant
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

REDUCTIONS = ("none", "mean", "sum")


def _refusal(log_probs: Layout, targets: Layout) -> Callable[[str, int], BaseException]:
    """What is raised for values that a kernel finds to be wrong."""
    steps, _, classes = log_probs.shape
    here = "(while checking arguments for ctc_loss_cpu)"

    def refuse(what: str, value: int) -> BaseException:
        where, name = what.split()[-1], f"{what.split()[-1]}_lengths"
        if what.startswith("negative"):
            text = f"Expected {name} to have non-negative values, but got {value}"
        elif where == "input":
            text = f"Expected {name} to have value at most {steps}, but got value {value} {here}"
        elif where == "labels":
            text = (
                f"Expected targets to have at least {value} labels, the sum of target_lengths, but "
                f"got {targets.shape[0]}"
            )
        elif where == "target":
            text = (
                f"Expected tensor to have size at least {value} at dimension 1, but got targets of "
                f"size {tuple(targets.shape)} {here}"
            )
        else:
            text = f"targets must be labels from 0 to {classes - 1}"
        return ShapeError(f"ctc_loss: {text}")

    return refuse


@kernel(function=False, method=False, out=False, name="ctc_losses", node="CtcLossBackward0")
def ctc_losses(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor,
               blank: Int, zero_infinity: Bool):  # fmt: skip
    """Each sample's loss: minus the log probability of its target."""
    what = Ctc(blank, zero_infinity, _refusal(log_probs, targets))
    return Planned(what, [((log_probs.shape[1],), log_probs.dtype)])


@ctc_losses.derivative
def _(g, out, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    given = log_probs, targets, input_lengths, target_lengths
    return T.ctc_losses_backward(g, out, *given, blank, zero_infinity), None, None, None


@kernel(function=False, method=False, out=False)
def ctc_losses_backward(
    grad: Tensor, losses: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Tensor,
    target_lengths: Tensor, blank: Int, zero_infinity: Bool,
):  # fmt: skip
    """The gradient of ``ctc_losses``, of log probabilities that come from ``log_softmax``: as
    PyTorch's it holds the softmax's share, which a ``log_softmax`` behind it leaves alone."""
    what = Ctc(blank, zero_infinity, _refusal(log_probs, targets), gradient=True)
    return Planned(what, [(tuple(log_probs.shape), log_probs.dtype)])


@composite(method=False, out=False, aliases=("nn.functional.ctc_loss",))
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: Int = 0,
    reduction: Any = "mean", zero_infinity: Bool = False,
):  # fmt: skip
    """Connectionist temporal classification: minus the log probability that inputs, one label or
    blank a time step, read as the targets once repeats are joined and blanks taken out.

    Args:
        log_probs (Tensor): ``(T, N, C)`` or ``(T, C)``, as ``log_softmax`` gives them
        targets (Tensor): labels ``(N, S)``, or all targets joined ``(sum(target_lengths))``
        input_lengths (Tensor or tuple): ``(N)``, each at most T
        target_lengths (Tensor or tuple): ``(N)``
        blank (int): the label that stands for nothing. Default: 0
        reduction (str): ``'mean'`` (of losses divided by their target's length), ``'sum'`` or
            ``'none'``
        zero_infinity (bool): count impossible targets as a loss of 0. Default: False

    >>> x = torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> torch.nn.functional.ctc_loss(x, torch.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """
    how = _reduction(reduction)
    layout = log_probs._layout
    if layout.ndim not in (2, 3):
        raise ShapeError(
            f"ctc_loss: log_probs must be (T, N, C) or (T, C), got {tuple(layout.shape)}"
        )
    if layout.dtype.name not in ("float32", "float64"):
        raise MissingFeature.of_dtype("ctc_loss", layout.dtype, "use float32")
    if targets._layout.dtype.name not in ("int64", "int32"):
        raise ShapeError(f"ctc_loss: targets must be integers, not {targets._layout.dtype}")
    if not 0 <= blank < layout.shape[-1]:
        raise ShapeError(f"ctc_loss: blank must be in label range, but got {blank}")
    x = log_probs if layout.ndim == 3 else T.unsqueeze(log_probs, 1)
    n = x._layout.shape[1]
    ins = _lengths("input_lengths", input_lengths, n, layout.device)
    outs = _lengths("target_lengths", target_lengths, n, layout.device)
    labels = targets
    if labels._layout.ndim not in (1, 2):
        raise ShapeError(f"ctc_loss: targets must be 1D or 2D, got {tuple(labels._layout.shape)}")
    if labels._layout.ndim == 2 and labels._layout.shape[0] != n:
        raise ShapeError(
            f"ctc_loss: Expected targets of batch size {n}, but got {tuple(labels._layout.shape)}"
        )
    losses = T.ctc_losses(x, labels, ins, outs, blank, zero_infinity)
    if zero_infinity:
        losses = T.where(T.isinf(losses), T.zeros_like(losses), losses)
    if how == "mean":
        return T.mean(T.div(losses, T.to_dtype(T.clamp(outs, min=1), layout.dtype)))
    if how == "sum":
        return T.sum(losses)
    return losses if layout.ndim == 3 else T.squeeze(losses, 0)


def _reduction(given: _Any) -> str:
    if isinstance(given, str) and given in REDUCTIONS:
        return given
    if isinstance(given, int) and 0 <= given < 3:
        return REDUCTIONS[given]
    raise ValueRangeError(f"{given} is not a valid value for reduction")


def _lengths(name: str, given: _Any, n: int, device: _Any) -> _Any:
    if isinstance(given, TensorType):
        if given._layout.dtype.kind not in "iu":
            raise ShapeError(f"ctc_loss: {name} must be integral, not {given._layout.dtype}")
        result = T.reshape(T.to_dtype(given, dtypes.int64), (-1,))
    else:
        given = given if isinstance(given, (tuple, list)) else (given,)
        if not all([hasattr(v, "__index__") for v in given]):
            raise ArgumentError(f"ctc_loss: {name} must be integers, got {given!r}")
        result = constant(np.array([int(v) for v in given], np.int64), device)
    if result._layout.numel != n:
        raise ShapeError(
            f"ctc_loss: {name} must be of size batch_size {n}, got {result._layout.numel}"
        )
    return result


@ctc_loss.errors
def _(make):
    x, labels = make(5, 2, 4), make.ints((2, 3), 3) + 1
    yield (x, labels, (5, 5), (3,)), {}, RuntimeError, "target_lengths must be of size"
    yield (x, labels, (6, 5), (3, 3)), {}, RuntimeError, "at most 5"
    yield (x, labels, (5, 5), (3, 4)), {}, RuntimeError, "size at least 4"
    yield (x, labels, (5, 5), (3, 3), 4), {}, RuntimeError, "blank must be in label range"
