"""``ctc_loss``: connectionist temporal classification.

A target of S labels is written with blanks around each label: 2S + 1 *states*. ``alpha[n, t, s]``
is the log probability of every way to read inputs 0 .. t that ends in state s; ``beta`` of every
way to read the rest. Each time step is worked out for all samples and states at once.

Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with
recurrent neural networks" (2006).
"""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.lazy import Array, np
from antorcha.errors import ArgumentError, MissingFeature, ShapeError, ValueRangeError
from antorcha.lang.kernels import Host
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Int, Tensor
from antorcha.ops.memory import constant
from antorcha.runtime.tensor import Tensor as TensorType

REDUCTIONS = ("none", "mean", "sum")


class _States:
    """Each sample's labels with blanks between, and which states may be reached from where."""

    def __init__(self, labels: Array, target_lengths: Array, blank: int) -> None:
        n, longest = labels.shape
        self.labels = np.full((n, 2 * longest + 1), blank, np.int64)
        self.labels[:, 1::2] = labels
        place = np.arange(2 * longest + 1)
        self.inside = place <= 2 * target_lengths[:, None]
        self.labels[~self.inside] = blank
        self.skips = np.zeros(self.labels.shape, np.bool_)  # from two states before
        self.skips[:, 2:] = self.labels[:, 2:] != self.labels[:, :-2]
        self.last = 2 * target_lengths

    def emitted(self, log_probs: Array) -> Array:
        """The log probability of each state's label: (T, N, states)."""
        found = np.take_along_axis(log_probs, self.labels[None], 2)
        return np.where(self.inside, found, -np.inf).astype(log_probs.dtype)


def _moved(a: Array, by: int) -> Array:
    """``a`` moved along the states; minus infinity comes in."""
    result = np.full_like(a, -np.inf)
    if by > 0:
        result[:, by:] = a[:, :-by]
    else:
        result[:, :by] = a[:, -by:]
    return result


def _alpha(emitted: Array, states: _States) -> Array:
    alpha = np.full_like(emitted, -np.inf)
    for t in range(len(emitted)):
        if t == 0:
            alpha[0, :, :2] = emitted[0, :, :2]
            continue
        old = alpha[t - 1]
        ways = np.logaddexp(old, _moved(old, 1))
        if old.shape[1] > 2:
            ways = np.logaddexp(ways, np.where(states.skips, _moved(old, 2), -np.inf))
        alpha[t] = ways + emitted[t]
    return alpha


def _beta(emitted: Array, states: _States, input_lengths: Array) -> Array:
    beta = np.full_like(emitted, -np.inf)
    place = np.arange(emitted.shape[2])
    ends = (place == states.last[:, None]) | (place == states.last[:, None] - 1)
    may_skip = np.zeros_like(states.skips)
    may_skip[:, :-2] = states.skips[:, 2:]
    for t in reversed(range(len(emitted))):
        here = np.where(ends & (input_lengths == t + 1)[:, None], emitted[t], -np.inf)
        if t + 1 < len(emitted):
            new = beta[t + 1]
            ways = np.logaddexp(new, _moved(new, -1))
            if new.shape[1] > 2:
                ways = np.logaddexp(ways, np.where(may_skip, _moved(new, -2), -np.inf))
            here = np.where((t + 1 < input_lengths)[:, None], ways + emitted[t], here)
        beta[t] = here
    return beta


def _states_of(targets: Array, input_lengths: Array, target_lengths: Array, blank: int,
               steps: int, classes: int) -> _States:  # fmt: skip
    """The states, of arguments whose values are checked."""
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths.size and lengths.min() < 0:
            raise ShapeError(
                f"ctc_loss: Expected {name} to have non-negative values, but got {lengths.min()}"
            )
    if input_lengths.size and input_lengths.max() > steps:
        raise ShapeError(
            f"ctc_loss: Expected input_lengths to have value at most {steps}, but got value "
            f"{input_lengths.max()} (while checking arguments for ctc_loss_cpu)"
        )
    longest = int(target_lengths.max()) if target_lengths.size else 0
    labels = np.zeros((len(target_lengths), longest), np.int64)
    if targets.ndim == 1:
        if target_lengths.sum() > len(targets):
            raise ShapeError(
                f"ctc_loss: Expected targets to have at least {target_lengths.sum()} labels, the "
                f"sum of target_lengths, but got {len(targets)}"
            )
        labels[np.arange(longest) < target_lengths[:, None]] = targets[: target_lengths.sum()]
    else:
        if longest > targets.shape[1]:
            raise ShapeError(
                f"ctc_loss: Expected tensor to have size at least {longest} at dimension 1, but "
                f"got targets of size {tuple(targets.shape)} (while checking arguments for "
                "ctc_loss_cpu)"
            )
        labels[:] = targets[:, :longest]
        labels[np.arange(longest) >= target_lengths[:, None]] = 0
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise ShapeError(f"ctc_loss: targets must be labels from 0 to {classes - 1}")
    return _States(labels, target_lengths, blank)


@kernel(function=False, method=False, out=False, name="ctc_losses", node="CtcLossBackward0")
def ctc_losses(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor,
               blank: Int, zero_infinity: Bool):  # fmt: skip
    """Each sample's loss: minus the log probability of its target."""
    steps, n, classes = log_probs.shape

    def run(lp: Array, labels: Array, ins: Array, outs: Array) -> Array:
        states = _states_of(labels, ins, outs, blank, steps, classes)
        nothing = np.where(outs == 0, 0.0, np.inf)
        if not steps or not n:
            return nothing.astype(lp.dtype)
        with np.errstate(all="ignore"):
            alpha = _alpha(states.emitted(lp), states)
            return _losses(alpha, states, ins, nothing).astype(lp.dtype)

    return Planned(Host(run), [((n,), log_probs.dtype)])


def _losses(alpha: Array, states: _States, ins: Array, nothing: Array) -> Array:
    samples = np.arange(len(ins))
    end = np.maximum(ins - 1, 0)
    in_blank = alpha[end, samples, states.last]
    in_label = np.where(
        states.last > 0, alpha[end, samples, np.maximum(states.last - 1, 0)], -np.inf
    )
    return np.where(ins == 0, nothing, -np.logaddexp(in_blank, in_label))


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
    steps, n, classes = log_probs.shape

    def run(g: Array, loss: Array, lp: Array, labels: Array, ins: Array, outs: Array) -> Array:
        if not steps or not n:
            return np.zeros_like(lp)
        states = _states_of(labels, ins, outs, blank, steps, classes)
        with np.errstate(all="ignore"):
            emitted = states.emitted(lp)
            both = _alpha(emitted, states) + _beta(emitted, states, ins)
            share = np.exp(both + loss[:, None] - emitted)
            share = np.where(np.isneginf(both) & ~np.isposinf(loss)[:, None], 0, share)
            summed = np.zeros_like(lp)
            for t in range(steps):
                np.add.at(summed[t], (np.arange(n)[:, None], states.labels),
                          np.where(states.inside, share[t], 0))  # fmt: skip
            result = (np.exp(lp) - summed) * g[:, None]
        result[np.arange(steps)[:, None] >= ins] = 0
        if zero_infinity:
            result[:, np.isposinf(loss)] = 0
        return result

    return Planned(Host(run), [(tuple(log_probs.shape), log_probs.dtype)])


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
