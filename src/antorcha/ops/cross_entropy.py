"""cross_entropy and nll_loss: one op forward, one kernel backward.

With class indices the forward checks the targets, is one row program (log-softmax, the picked and
the smoothed loss of every row, in one pass over the row in cache), and a fold that adds the rows up
and divides. What is saved is the log-softmax; the backward is one row program over it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.device import backend
from antorcha.errors import DtypeError, OutOfRange, ShapeError, ValueRangeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Check, Gather, Launch, Pointwise, Reduce
from antorcha.ops.kinds.arguments import Arguments
from antorcha.ops.kinds.operands import common_device
from antorcha.ops.kinds.pointwise import UnsupportedDtype
from antorcha.ops.kinds.record import Op, T, composite
from antorcha.ops.kinds.rows import Row, describe, rows
from antorcha.ops.kinds.steps import Steps, in_steps
from antorcha.ops.kinds.types import Bool, Float, Int, OptTensor, Shape, Str, Tensor
from antorcha.ops.loss import reduction_of
from antorcha.runtime.call.plan import MANY, Plan, make
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

NN = "nn.functional"


def _out_of_range(target: int, tensor: int = 0) -> OutOfRange:
    return OutOfRange(
        "nll_loss: Target {given} is out of bounds: the classes are numbered from 0 along the "
        "class dim of the input.",
        reason="class", op="nll_loss", given=target,
    )  # fmt: skip


def total_of(mean: bool, loss: E.Expr, weight: E.Expr) -> Reduce:
    """The losses and weights of rows, of expressions over the inputs -> the sum of the losses, for
    a mean by that of the weights, and that of the weights."""
    wide = dtypes.float64
    s, w, more_s, more_w = [E.input_(k, wide) for k in range(4)]
    lift = (E.cast(loss, wide), E.cast(weight, wide))
    finish = (s / w if mean else s, w)
    return Reduce((0,), (0.0, 0.0), lift, (s + more_s, w + more_w), finish, "total")


def losses_of_rows(ignored: int, smoothing: float) -> Callable[..., _Any]:
    """The row function: log-softmax, loss and weight of a row, given its target."""

    def row(x: E.Expr, t: E.Expr, *weights: E.Expr) -> tuple[E.Expr, ...]:
        y = x - E.detach(x.amax())
        logp = y - E.log(E.exp(y).sum())
        here = E.position() == t
        counts = t != ignored
        share = weights[0] if weights else E.const(1.0, logp.dtype)
        weight = E.where(here, share, 0).sum() if weights else share
        weight = E.where(counts, weight, 0)
        loss = -(E.where(here, logp, 0).sum()) * weight
        if smoothing:
            smooth = -((logp * share).sum()) / E.length(logp.dtype)
            loss = loss * (1 - smoothing) + smooth * smoothing
        loss = E.where(counts, loss, 0)
        return logp, loss, weight

    return row


class Losses:
    """What the two plans share: the layouts of the results and of what is between."""

    def __init__(self, op: Op, given: Arguments) -> None:
        common_device(op.name, given.tensors)
        self.input, self.target, self.weight = given.seen[:3]
        self.dim = class_dim(self.input)
        shape, dtype = tuple(self.input.shape), self.input.dtype
        self.classes = shape[self.dim] if shape else 1
        self.work = dtypes.float32 if dtype.itemsize < 4 else dtype
        self.ignored, self.reduction = given.statics["ignore_index"], given.statics["reduction"]
        self.each = self.laid(shape[: self.dim] + shape[self.dim + 1 :], self.work)
        self.keeps = self.reduction == "none"
        self.result = self.laid(self.each.shape if self.keeps else (), dtype)
        self.where = backend(self.input.device)

    def laid(self, shape: Sequence[int], dtype: dtypes.dtype) -> Layout:
        return L.contiguous(tuple(shape), dtype, self.input.device)

    def flat(self, dtype: dtypes.dtype) -> Layout:
        """A number of each row."""
        return self.laid((self.each.numel,), dtype)

    def total(self, loss: E.Expr, weight: E.Expr, ins: Sequence[Layout]) -> Launch:
        """Adds up losses and weights of rows, which are expressions over the inputs."""
        kinds = (self.work if self.keeps else self.result.dtype, self.work)
        outs = [L.layout(ins[0].shape, (0,), dtype, self.input.device) for dtype in kinds]
        return self.where.compile(total_of(self.reduction == "mean", loss, weight), outs, ins)


def plan_of_logits(op: Op, given: Arguments, outs: _Any) -> Plan:
    """Plans losses of logits. The results: the loss, the sum of the weights, and log-softmax; users
    see the first."""
    what = Losses(op, given)
    each, keeps, work, where, dim = what.each, what.keeps, what.work, what.where, what.dim
    logp = what.laid(what.input.shape, what.input.dtype)
    rows_first = where.compile(
        *describe(
            rows_of(given, dim),
            [logp, _along(what.result if keeps else each, dim), _along(each, dim)],
        )
    )
    check = where.compile(
        Check(0, what.classes, _out_of_range, what.ignored), (), [what.target]
    )  # fmt: skip
    flat = what.flat(work)
    then_total = what.total(E.input_(0, work), E.input_(1, work), [flat, flat])

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        steps.into(check, *ins[2:4])
        weights = steps.room(each.nbytes)
        if keeps:
            steps.into(rows_first, *outs[4:], *outs[:2], *weights, *ins)
            steps.into(then_total, *steps.room(8), *outs[2:4], *weights, *weights)
        else:
            losses = steps.room(each.nbytes)
            steps.into(rows_first, *outs[4:], *losses, *weights, *ins)
            steps.into(then_total, *outs[:4], *losses, *weights)

    made = (what.result, what.laid((), work), logp)
    count = 2 * len(given.layouts)
    return make(op, MANY, made, into=in_steps(where, len(made), 0, count, write).into)


def plan_of_logs(op: Op, given: Arguments, outs: _Any) -> Plan:
    """Plans losses of log-probabilities, of which only the targets' are read. The results: the
    loss, and the sum of the weights; users see the first."""
    what, t = Losses(op, given), E.input_(0, dtypes.int64)
    where, dim, kind = what.where, what.dim, what.input.dtype
    places, flat, target = [what.flat(of) for of in (dtypes.int64, kind, what.target.dtype)]
    clamp = where.compile(Pointwise((E.where(t == what.ignored, 0, t),)), [places], [target])
    shape = [*what.each.shape]
    shape.insert(dim, 1)
    index, found = [what.laid(shape, of) for of in (dtypes.int64, kind)]
    pick = where.compile(Gather((dim,), None, _out_of_range), [found], [what.input, index])
    share = None
    if what.weight is not None:
        share = where.compile(Gather((0,), 0, _out_of_range), [flat], [what.weight, places])
    ins = [target, flat] if share is None else [target, flat, flat]
    loss, weight = loss_of_target(kind, what.work, what.ignored, share is not None)
    lone = where.compile(Pointwise((loss,)), [flat], ins) if what.keeps else None
    total = what.total(loss, weight, ins)

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        chosen, logs = steps.room(places.nbytes), steps.room(flat.nbytes)
        steps.into(clamp, *chosen, *ins[2:4])
        steps.into(pick, *logs, *ins[:2], *chosen)
        of_rows = [*ins[2:4], *logs]
        if share is not None:
            shares = steps.room(flat.nbytes)
            steps.into(share, *shares, *ins[4:6], *chosen)
            of_rows += shares
        if lone is not None:
            steps.into(lone, *outs[:2], *of_rows)
        steps.into(total, *(steps.room(8) if what.keeps else outs[:2]), *outs[2:4], *of_rows)

    made, count = (what.result, what.laid((), what.work)), 2 * len(given.layouts)
    return make(op, MANY, made, into=in_steps(where, len(made), 0, count, write).into)


def loss_of_target(
    dtype: dtypes.dtype, work: dtypes.dtype, ignored: int, has_weight: bool
) -> tuple[E.Expr, E.Expr]:
    """A row's loss and weight, of its target, the logarithm there, and the class's weight."""
    counts = E.input_(0, dtypes.int64) != ignored
    share = E.cast(E.input_(2, dtype), work) if has_weight else E.const(1.0, work)
    loss = -E.cast(E.input_(1, dtype), work) * share
    return E.where(counts, loss, 0), E.where(counts, share, 0)


def rows_of(given: Arguments, dim: int) -> Row:
    """The rows' program: log-softmax, a loss and a weight for each."""
    layout, target, weight = given.seen[:3]
    ins = [(layout, layout.dtype), (_along(target, dim), dtypes.int64)]
    if weight is not None:
        ins.append((_weight_along(weight, layout, dim), layout.dtype))
    fn = losses_of_rows(given.statics["ignore_index"], given.statics["smoothing"])
    return Row(fn, dim, tuple(layout.shape), ins, [])


def class_dim(layout: Layout) -> int:
    """Which dim of the input counts the classes."""
    return 1 if layout.ndim > 1 else 0


def _along(small: _Any, dim: int) -> _Any:
    """A layout without the class dim as one with size 1 there."""
    shape, strides = list(small.shape), list(small.strides)
    shape.insert(dim, 1)
    strides.insert(dim, 0)
    return L.layout(tuple(shape), tuple(strides), small.dtype, small.device)


def _weight_along(weight: _Any, layout: Layout, dim: int) -> _Any:
    """The weight of each class as a layout that broadcasts against the input's."""
    shape = tuple([n if d == dim else 1 for d, n in enumerate(layout.shape)])
    strides = tuple([weight.strides[0] if d == dim else 0 for d in range(layout.ndim)])
    return L.layout(shape, strides, weight.dtype, weight.device)


def nll_of_logits(
    input: Tensor, target: Tensor, weight: OptTensor, reduction: Str, ignore_index: Int,
    smoothing: Float,
) -> None:  # fmt: skip
    """``nll_loss(log_softmax(input))``; also gives the sum of the weights and the log-softmax."""


def nll_of_logs(
    input: Tensor, target: Tensor, weight: OptTensor, reduction: Str, ignore_index: Int,
    smoothing: Float,
) -> None:  # fmt: skip
    """The losses of log-probabilities; also gives the sum of the weights."""


nll_of_logits, nll_of_logs = [
    Op(
        fn, plan, function=False, method=False, out=False, node="nll_loss",
        returns=lambda loss, *rest: loss,
    )
    for fn, plan in ((nll_of_logits, plan_of_logits), (nll_of_logs, plan_of_logs))
]  # fmt: skip


@nll_of_logits.derivative
def _(
    g: _Any, out1: TensorType, out2: TensorType, target: TensorType, weight: TensorType | None,
    reduction: str, ignore_index: int, smoothing: float,
) -> tuple[OptTensor, ...]:  # fmt: skip
    of_loss, _, of_logs = g
    total = out1 if reduction == "mean" else None
    found = None
    if of_loss is not None:
        size = tuple(out2._layout.shape)
        found = T.nll_backward(of_loss, out2, target, weight, total, size, ignore_index, smoothing)
    if of_logs is not None:  # second order: the gradient above was made from the log-softmax
        more = T.log_softmax_backward(of_logs, out2, class_dim(out2._layout))
        found = more if found is None else found + more
    return found, None, None


@nll_of_logs.derivative
def _(
    g: _Any, out1: TensorType, input_layout: Layout, target: TensorType,
    weight: TensorType | None, reduction: str, ignore_index: int, smoothing: float,
) -> tuple[OptTensor, ...]:  # fmt: skip
    if g[0] is None:  # (the sum of the weights is a constant)
        return None, None, None
    total = out1 if reduction == "mean" else None
    return gradient_of_logs(g[0], input_layout, target, weight, total, ignore_index), None, None


def gradient_of_logs(
    grad: _Any, layout: Layout, target: _Any, weight: _Any, total: _Any, ignored: int
) -> _Any:
    """Zeros, but for the targets' places; ``total`` divides them (the mean)."""
    dim = class_dim(layout)
    counts = T.ne(target, ignored)
    place = T.where(counts, target, T.full_layout((), 0, dtypes.int64, layout.device))
    value = T.neg(grad if total is None else T.div(grad, total))
    if weight is not None:
        value = T.mul(value, T.index_at(weight, [place], (0,)))
    value = T.where(counts, T.to_dtype(value, layout.dtype), 0)
    zero = T.full_layout((), 0, layout.dtype, layout.device)
    zeros = T.expand(zero, tuple(layout.shape))
    return T.scatter_src(zeros, dim, T.unsqueeze(place, dim), T.unsqueeze(value, dim))


def _losses_of_examples(
    batch: _Any, run: _Any, input: _Any, target: _Any, weight: _Any, reduction: str, ignored: int,
    smoothing: float,
) -> _Any:  # fmt: skip
    """The batching rule: the rows of all examples, summed up for each."""
    if batch.has(weight):
        return batch.one_by_one(run, (input, target, weight, reduction, ignored, smoothing))
    x, t = batch.whole(input), batch.whole(target)
    shape = t._layout.shape
    if len(shape) > 1:
        x, t = T.flatten(x, 0, 1), T.flatten(t, 0, 1)
    t = T.contiguous(t)
    losses = T.reshape(run(x, t, weight, "none", ignored, smoothing), tuple(shape))
    if reduction == "none" or (len(shape) == 1 and reduction == "sum"):
        return losses
    dims = tuple(range(1, len(shape)))
    if reduction == "sum":
        return T.sum(losses, dims)
    counts = T.ne(t, ignored)
    weights = counts if weight is None else counts * T.index_select(weight, 0, T.where(
        counts, T.flatten(t), 0))  # fmt: skip
    weights = T.reshape(T.to_dtype(weights, losses._layout.dtype), tuple(shape))
    return T.sum(losses, dims) / T.sum(weights, dims) if dims else losses / weights


for _each in (nll_of_logits, nll_of_logs):
    _each.batches(_losses_of_examples)


@rows(function=False, method=False, out=False)
def nll_backward(
    grad: Tensor, logs: OptTensor, target: Tensor, weight: OptTensor, total: OptTensor, size: Shape,
    ignore_index: Int, smoothing: Float,
):  # fmt: skip
    """The gradient of the logits, given their log-softmax ``logs``; without, of the
    log-probabilities. ``total`` divides it (the mean)."""
    layout = L.contiguous(size, grad.dtype, grad.device) if logs is None else logs
    dim, dtype = class_dim(layout), layout.dtype
    ins = [(_along(grad, dim) if grad.ndim or layout.ndim == 1 else grad, dtype)]
    ins += [(logs, dtype)] if logs is not None else []
    ins.append((_along(target, dim), dtypes.int64))
    ins += [(_weight_along(weight, layout, dim), dtype)] if weight is not None else []
    ins += [(total, dtype)] if total is not None else []

    def row(g: E.Expr, *rest: E.Expr) -> E.Expr:
        given = iter(rest)
        logp = next(given) if logs is not None else None
        t = next(given)
        w = next(given) if weight is not None else None
        scale = g if total is None else g / next(given)
        scale = E.where(t != ignore_index, scale, 0)
        return _row_gradient(scale, logp, E.position() == t, w, smoothing)

    return Row(row, dim, size, ins, [(size, dtype)])


def _row_gradient(
    scale: E.Expr, logp: E.Expr | None, here: E.Expr, w: E.Expr | None, smoothing: float
) -> E.Expr:
    """One row's gradient; ``here`` is the target's place."""
    one = E.const(1.0, scale.dtype)
    count = E.length(scale.dtype)
    hit = E.where(here, one if w is None else w, 0) * (1 - smoothing)
    if smoothing:
        hit = hit + (one if w is None else w) * smoothing / count
    if logp is None:
        return -(hit * scale)
    mass = one if w is None else hit.sum()  # what the row's targets sum to
    return (E.exp(logp) * mass - hit) * scale


@nll_backward.derivative
def _(g, grad, logs, target, weight, total, size, ignore_index, smoothing):
    rest = (target, weight, total, size, ignore_index, smoothing)
    ones = T.ones_like(grad)
    shares = g * T.nll_backward(ones, logs, *rest)
    dims = (class_dim(g._layout),) if grad._layout.ndim else None
    to_grad = T.sum(shares) if dims is None else T.sum(shares, dims)
    to_logs = None
    if logs is not None:
        to_logs = g * (T.nll_backward(grad, logs, *rest) - T.nll_backward(grad, None, *rest))
    return to_grad, to_logs, None, None, None


# --------------------------------------------------------------------------------- what users call
def _checked_target(name: str, input: _Any, target: _Any, weight: _Any) -> _Any:
    """The target, laid out in order, after PyTorch's checks."""
    layout, own = input._layout, target._layout
    if layout.ndim == 0:
        raise ValueRangeError(f"{name}: Expected 1 or more dimensions (got 0)")
    if layout.dtype.kind != "f":
        raise UnsupportedDtype.of_dtype(name, layout.dtype)
    if layout.ndim > 1 and own.ndim and own.shape[0] != layout.shape[0]:
        raise ValueRangeError(
            "{op}: Expected input batch_size ({rows}) to match target batch_size ({targets}).",
            reason="batch", op=name, operands=(layout, own), rows=layout.shape[0],
            targets=own.shape[0],
        )  # fmt: skip
    if own.dtype.name not in ("int64", "uint8"):
        raise DtypeError(
            "{op}: expected scalar type Long but found {1.dtype} for the target: class indices are "
            "int64; cast with {fix}.",
            reason="class dtype", op=name, operands=(layout, own), fix="target.long()",
        )  # fmt: skip
    dim = class_dim(layout)
    want = tuple(layout.shape[:dim]) + tuple(layout.shape[dim + 1 :])
    if tuple(own.shape) != want:
        raise ShapeError(
            "{op}: Expected target size {wanted}, got {got}, for input of shape {0.shape}",
            reason="class shape", op=name, operands=(layout, own), wanted=list(want),
            got=list(own.shape),
        )  # fmt: skip
    if weight is not None and (
        weight._layout.ndim != 1 or weight._layout.numel != layout.shape[dim]
    ):
        raise ShapeError(
            f"{name}: weight tensor should be defined either for all {layout.shape[dim]} classes "
            f"or no classes but got weight tensor of shape: {list(weight._layout.shape)}"
        )
    if weight is not None and weight._layout.dtype is not layout.dtype:
        raise DtypeError(
            f"{name}: expected scalar type {layout.dtype} but found {weight._layout.dtype} for the "
            f"weight: it has the dtype of the input; cast with weight.to({layout.dtype})."
        )
    return target if own.contiguous else T.contiguous(target)


@composite(namespace=NN, out=False)
def nll_loss(
    input: Tensor, target: Tensor, weight: OptTensor = None, size_average: Bool = None,
    ignore_index: Int = -100, reduce: Bool = None, reduction: Str = "mean",
):  # fmt: skip
    """The negative log-probability of the target class; ``input`` (N, C, ...) holds logarithms.

    ``reduction="mean"`` divides by the sum of the weights of the targets that count.

    >>> torch.nn.functional.nll_loss(torch.tensor([[-1., -2.]]), torch.tensor([1]))
    tensor(2.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    target = _checked_target("nll_loss", input, target, weight)
    return T.nll_of_logs(input, target, weight, reduction, ignore_index, 0.0)


@composite(namespace=NN, out=False)
def cross_entropy(
    input: Tensor, target: Tensor, weight: OptTensor = None, size_average: Bool = None,
    ignore_index: Int = -100, reduce: Bool = None, reduction: Str = "mean",
    label_smoothing: Float = 0.0,
):  # fmt: skip
    """``nll_loss(log_softmax(input, 1), target)``: ``input`` (N, C, ...) holds logits.

    ``target`` holds class indices (N, ...), or probabilities of the shape of ``input``.

    >>> torch.nn.functional.cross_entropy(torch.tensor([[1., 2.]]), torch.tensor([1]))
    tensor(0.3133)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ShapeError(
            f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
        )
    if target._layout.dtype.kind == "f" and target._layout.shape == input._layout.shape:
        if ignore_index >= 0:
            raise ShapeError(
                "cross_entropy: ignore_index is not supported for floating point target, but is "
                f"{ignore_index}"
            )
        return _with_probabilities(input, target, weight, reduction, label_smoothing)
    target = _checked_target("cross_entropy", input, target, weight)
    return T.nll_of_logits(input, target, weight, reduction, ignore_index, label_smoothing)


def _with_probabilities(
    input: _Any, target: _Any, weight: _Any, reduction: str, smoothing: float
) -> _Any:
    layout = input._layout
    dim = class_dim(layout)
    classes = layout.shape[dim]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    losses = T.log_softmax(input, dim) * target
    if weight is not None:
        losses = losses * T.view(weight, (classes, *(1,) * (layout.ndim - 1 - dim)))
    if reduction == "none":
        return T.neg(T.sum(losses, dim))
    total = T.neg(T.sum(losses))
    return total / (layout.numel // max(classes, 1)) if reduction == "mean" else total


@cross_entropy.samples
@nll_loss.samples
def _(make):
    yield make(5, 4), make.ints((5,), 4)
    yield (make(2, 4, 3), make.ints((2, 3), 4)), {"reduction": "none"}
    yield (make(5, 4), make.ints((5,), 4)), {"reduction": "sum", "ignore_index": 1}


@cross_entropy.errors
@nll_loss.errors
def _(make):
    yield (make(2, 3), make.ints((2,), 4, 3)), {}, IndexError, "out of bounds"
    yield (make(2, 3), make.ints((3,), 2)), {}, ValueError, "batch_size"
