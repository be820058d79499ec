"""Finding things: nonzero, unique, searchsorted, counts, and tables looked up by index."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.device import backend
from antorcha.core.lazy import np
from antorcha.core.shapes import contiguous_strides
from antorcha.core.structs import struct
from antorcha.errors import ArgumentError, DtypeError, OutOfRange, ShapeError, ValueRangeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import (
    Bins,
    Check,
    Distinct,
    Gather,
    Reduce,
    Scatter,
    Search,
    Select,
)
from antorcha.ops.index import outside
from antorcha.ops.kinds.arguments import Arguments
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.params import to_ints
from antorcha.ops.kinds.record import Op, T, composite, sparse_gradients
from antorcha.ops.kinds.rows import Row, describe
from antorcha.ops.kinds.steps import Steps, in_steps
from antorcha.ops.kinds.types import Any, Bool, Int, OptTensor, Str, Tensor
from antorcha.ops.memory import constant
from antorcha.runtime.call.plan import FRESH, Plan, make
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


# ------------------------------------------------------------------------------------- nonzero
@kernel(function=False, method=False, out=False)
def nonzero_columns(input: Tensor):
    """The position of every nonzero element: a row per dim."""
    return Planned(Select("nonzero", positions=True), [((0, 0), dtypes.int64)])


@composite()
def nonzero(input: Tensor, *, as_tuple: Bool = False):
    """The position of every nonzero element, one a row; ``as_tuple`` gives a tensor per dim.

    >>> torch.nonzero(torch.tensor([1, 0, 1]))
    tensor([[0],
            [2]])
    """
    if as_tuple:
        some = input if input._layout.ndim else T.unsqueeze(input, 0)
        return T.unbind(T.nonzero_columns(T.contiguous(some)), 0)
    result = T.t(T.nonzero_columns(T.contiguous(input)))
    result._base = None  # the columns are nobody else's
    return result


@nonzero.samples
def _(make):
    yield (make.bools((3, 4)),)
    yield (make.bools((3, 4)),), {"as_tuple": True}
    yield (make.ints((5, 40), 2),)
    yield (make.bools((130,)),)


@composite()
def nonzero_static(input: Tensor, *, size: Int, fill_value: Int = -1):
    """The positions of the first ``size`` nonzero elements, one a row; where there are fewer, rows
    of ``fill_value`` follow.

    >>> torch.nonzero_static(torch.tensor([1, 0, 1]), size=3)
    tensor([[ 0],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise ShapeError(f"nonzero_static: 'size' must be an non-negative integer, but got {size}")
    found = T.slice(T.nonzero(input), 0, 0, size)
    short = size - found._layout.shape[0]
    return T.contiguous(T.constant_pad_nd(found, (0, 0, 0, short), fill_value))


@nonzero_static.samples
def _(make):
    yield (make.bools((3, 4)),), {"size": 4}
    yield (make.bools((3,)),), {"size": 5, "fill_value": 9}
    yield (make.bools((3,)),), {"size": -1}, RuntimeError, "non-negative"


@composite(method=False, out=False)
def unravel_index(indices: Tensor, shape: Any):
    """Where elements counted row by row lie in a tensor of a shape: a tensor of positions for each
    dim.

    >>> torch.unravel_index(torch.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    layout = indices._layout
    if layout.dtype.kind not in "iu":
        raise ArgumentError(
            f"unravel_index: expected 'indices' to be integer dtype, but got {layout.dtype}"
        )
    if not isinstance(shape, (int, tuple, list)):
        raise ArgumentError(
            f"unravel_index: expected 'shape' to be int or sequence of ints, but got {type(shape)}"
        )
    sizes = to_ints("unravel_index", "shape", shape)
    if any(n < 0 for n in sizes):
        raise ValueRangeError(
            f"unravel_index: 'shape' cannot have negative values, but got {tuple(sizes)}"
        )
    strides, ends = [
        constant(np.array(each, dtype=np.int64), layout.device)
        for each in (contiguous_strides(sizes), sizes)
    ]
    places = T.remainder(T.floor_divide(T.unsqueeze(indices, -1), strides), ends)
    return T.unbind(places, -1)


@unravel_index.samples
def _(make):
    yield make.ints((3, 4), 24), (2, 3, 4)
    yield make.ints((3,), 5), 5
    yield (make(3), (2, 3)), {}, TypeError, "integer dtype"


@composite(out=False)
def argwhere(input: Tensor):
    """The position of every nonzero element, one a row.

    >>> torch.argwhere(torch.tensor([[1, 0], [0, 1]]))
    tensor([[0, 0],
            [1, 1]])
    """
    return T.nonzero(input)


@argwhere.samples
def _(make):
    yield (make.bools((3, 4)),)


# ---------------------------------------------------------------------------------- embeddings
def check_rows(op: str, indices: Layout) -> None:
    if indices.dtype.name not in ("int64", "int32"):
        raise DtypeError(
            "{op}: Expected tensor for argument 'indices' to have one of the following scalar "
            "types: Long, Int; but got {0.dtype} instead",
            reason="integer index", op=op, operands=(indices,),
        )  # fmt: skip


@kernel(method=False, out=False)
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: Int = -1, scale_grad_by_freq: Bool = False,
    sparse: Bool = False,
):  # fmt: skip
    """The rows of ``weight`` at the indices, whose shape the result has in front.

    The row ``padding_idx`` gets no gradient; ``scale_grad_by_freq`` divides a row's gradient by how
    often it was taken; with ``sparse`` the gradient of ``weight`` is a sparse tensor. See
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html.

    >>> torch.embedding(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1, 0, 1]))
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """
    check_rows("embedding", indices)
    if weight.ndim != 2:
        raise ShapeError(f"embedding: 'weight' must be 2-D, not {tuple(weight.shape)}")
    out = L.contiguous((*indices.shape, weight.shape[1]), weight.dtype, weight.device)
    return Planned(Gather((0,), 0, outside("embedding", weight, 0)), [out])


@embedding.batches
def _(batch, run, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    if not batch.has(weight):
        return run(weight, batch.whole(indices), padding_idx, scale_grad_by_freq, sparse)
    if scale_grad_by_freq or sparse:
        return batch.one_by_one(run, (weight, indices, padding_idx, scale_grad_by_freq, sparse))
    rows = T.index_at(weight, (indices,), (0,))
    if padding_idx < 0:
        return rows
    pads = T.unsqueeze(T.eq(indices, padding_idx), -1)
    return T.where(pads, rows.detach(), rows)


@embedding.derivative
def _(g, weight_layout, indices, padding_idx, scale_grad_by_freq, sparse):
    return table_gradient(g, indices, weight_layout, padding_idx, scale_grad_by_freq, sparse), None


def table_gradient(
    g: _Any, indices: _Any, table: Layout, padding_idx: int, by_freq: bool, sparse: bool
) -> _Any:
    """A table's gradient, of that of the rows that the indices have taken."""
    if sparse:
        shape = tuple(table.shape)
        return sparse_gradients.of_embedding(g, indices, shape, padding_idx, by_freq)
    return T.embedding_backward(g, indices, table.shape[0], padding_idx, by_freq)


@embedding.samples
def _(make):
    yield make(5, 3), make.ints((4,), 5)
    yield make(5, 3), make.ints((2, 2), 4), 4
    yield (make(3, 2), make.ints((2,), 1) + 3), {}, IndexError, "index 3 is out of bounds"


@composite(function=False, method=False, out=False)
def embedding_backward(
    g: Tensor, indices: Tensor, num_weights: Int, padding_idx: Int, scale_grad_by_freq: Bool
):
    """The gradient of ``embedding``'s table: each row of ``g`` added where it came from."""
    layout = g._layout
    if scale_grad_by_freq:
        count = T.bincount(T.reshape(indices, (-1,)), minlength=num_weights)
        often = T.to_dtype(T.index_at(count, [indices], (0,)), layout.dtype)
        g = T.div(g, T.unsqueeze(often, -1))
    result = T.full_layout((num_weights, layout.shape[-1]), 0, layout.dtype, layout.device)
    return T.embedding_add_(result, g, indices, padding_idx)


@kernel(function=False, method=False, inplace=True)
def embedding_add(input: Tensor, rows: Tensor, indices: Tensor, padding_idx: Int):
    """``input`` with each of ``rows`` added at its index, but for the index ``padding_idx``."""
    refuse = outside("embedding_backward", input, 0)
    skipped = padding_idx if padding_idx >= 0 else None
    what = Scatter("add", (0,), 0, refuse, skipped=skipped)
    return Planned(what, [L.contiguous(tuple(input.shape), input.dtype, input.device)])


@embedding_add.derivative
def _(g, indices, padding_idx, needs):
    if not needs[1]:
        return g, None, None
    taken = T.embedding(g, indices)
    if padding_idx >= 0:
        taken = T.where(T.unsqueeze(T.eq(indices, padding_idx), -1), 0, taken)
    return g, taken, None


def plan_one_hot(op: Op, given: Arguments, outs: _Any) -> Plan:
    """Plans a check of the least and the greatest class, and a row program."""
    input, classes = given.seen
    shape = (*input.shape, classes)
    out = L.contiguous(shape, dtypes.int64, input.device)
    each = L.layout((*input.shape, 1), (*input.strides, 0), input.dtype, input.device)
    where = backend(input.device)
    row = Row(_hot, input.ndim, shape, [(each, dtypes.int64)], [])
    hot = where.compile(*describe(row, [out]))
    end = L.contiguous((1,), dtypes.int64, input.device)
    ends = L.layout(each.shape, (0,) * each.ndim, dtypes.int64, input.device)
    look = where.compile(_least_and_greatest(each.ndim), [ends, ends], [each])
    check = where.compile(Check(0, classes, NoClass(classes)), [], [end])

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        if input.numel:
            least, greatest = steps.room(end.nbytes), steps.room(end.nbytes)
            steps.into(look, *least, *greatest, *ins)
            steps.into(check, *least)
            steps.into(check, *greatest)
        steps.into(hot, *outs, *ins)

    launch = in_steps(where, 1, out.nbytes, 2, write)
    return make(op, FRESH, (out,), fresh=launch.fresh, into=launch.into)


def _least_and_greatest(ndim: int) -> Reduce:
    """The ends of all integers."""
    x, y, low, high = [E.input_(k, dtypes.int64) for k in (0, 1, 2, 3)]
    lift = (E.input_(0, dtypes.int64), E.input_(0, dtypes.int64))
    start = (np.iinfo(np.int64).max, np.iinfo(np.int64).min)
    merge = (E.minimum(x, low), E.maximum(y, high))
    return Reduce(tuple(range(ndim)), start, lift, merge, (x, y))


def _hot(given: _Any) -> _Any:
    return E.cast(E.position() == given, dtypes.int64)


@struct
class NoClass:
    """The exception for an element that is no class."""

    count: int

    def __call__(self, given: int) -> ShapeError:
        if given < 0:
            return ShapeError("one_hot: Class values must be non-negative.")
        return ShapeError(
            "one_hot: Class values must be smaller than num_classes: {given} is not smaller than "
            "{count}.",
            reason="one-hot class", op="one_hot", given=given, count=self.count,
        )  # fmt: skip


def _one_hot_of(input: Tensor, num_classes: Int) -> None:
    """What ``one_hot`` runs once the number of classes is known."""


one_hot_of = Op(
    _one_hot_of,
    plan_one_hot,
    name="one_hot_of",
    function=False,
    method=False,
    out=False,
    batching="leading",
)


@composite(function=False, method=False, out=False)
def one_hot(input: Tensor, num_classes: Int = -1):
    """Rows of zeros with a one at the index that each element is.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html.
    """
    layout = input._layout
    if layout.dtype.name != "int64":
        raise DtypeError(
            "one_hot is only applicable to index tensor (int64), not {0.dtype}.",
            reason="integer index", op="one_hot", operands=(layout,),
        )  # fmt: skip
    if layout.numel == 0 and num_classes <= 0:
        raise ShapeError("one_hot: Can not infer total number of classes from empty tensor.")
    if num_classes < -1 or (num_classes == 0 and layout.numel):
        raise ShapeError(f"one_hot: num_classes should be positive, not {num_classes}")
    if num_classes == -1:
        num_classes = int(T.max(input).item()) + 1
    return T.one_hot_of(input, max(num_classes, 0))


# -------------------------------------------------------------------------------------- counts
@kernel(function=False, method=False, out=False)
def counts_of(input: Tensor, weights: OptTensor, minlength: Int):
    """What ``bincount`` runs."""
    if input.ndim != 1 or input.dtype.kind not in "iu":
        raise ShapeError(
            "bincount only supports 1-d non-negative integral inputs, not "
            f"{tuple(input.shape)} {input.dtype}"
        )
    if minlength < 0:
        raise ShapeError("bincount: minlength should be >= 0")
    if minlength >= 1 << 60:
        raise ShapeError(f"bincount: minlength is too large: {minlength}")
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        raise ShapeError(
            f"bincount: weights should be 1-d and have the same length as input, not "
            f"{tuple(weights.shape)}"
        )
    single = weights is not None and weights.dtype.name == "float32"
    result = dtypes.int64 if weights is None else dtypes.float32 if single else dtypes.float64
    return Planned(Bins("bincount", minlength, negative), [((0,), result)])


def negative() -> ShapeError:
    return ShapeError("bincount only supports 1-d non-negative integral inputs.")


counts_of.has_no_derivative("bincount")


@composite(out=False)
def bincount(input: Tensor, weights: OptTensor = None, minlength: Int = 0):
    """How often each non-negative integer occurs, or the sum of its weights.

    >>> torch.bincount(torch.tensor([4, 3, 6, 3, 4]))
    tensor([0, 0, 0, 2, 2, 0, 1])
    """
    few = None if weights is None else T.contiguous(weights)
    return T.counts_of(T.contiguous(input), few, minlength)


@bincount.samples
def _(make):
    yield (make.ints((10,), 5),)
    yield (make.ints((10,), 5),), {"minlength": 8}
    yield make.ints((10,), 5), make.ints((10,), 7)
    yield (make(3),), {}, RuntimeError, "non-negative integral"


# ---------------------------------------------------------------------------------- searchsorted
@kernel(function=False, method=False)
def places_in(sequence: Tensor, values: Tensor, out_int32: Bool, right: Bool, sorter: OptTensor):
    """What ``searchsorted`` and ``bucketize`` run."""
    if sequence.ndim != 1 and tuple(sequence.shape[:-1]) != tuple(values.shape[:-1]):
        raise ShapeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of"
            " boundaries tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(sequence.shape)} and input value tensor {list(values.shape)}"
        )
    if sequence.dtype is not values.dtype:
        raise DtypeError(
            "searchsorted(): boundary tensor and input value tensor should have same dtype, but "
            f"got boundary tensor {sequence.dtype} and input value tensor {values.dtype}"
        )
    if sorter is not None and tuple(sorter.shape) != tuple(sequence.shape):
        raise ShapeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
            f"tensor {list(sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    result = dtypes.int32 if out_int32 else dtypes.int64
    return Planned(Search(right, bad_sorter), [(tuple(values.shape), result)])


@places_in.batches
def _(batch, run, sequence, values, out_int32, right, sorter):
    alone = not batch.has(sequence) and not batch.has(sorter)
    if sequence._layout.ndim == 1 and alone:
        return run(sequence, T.contiguous(batch.whole(values)), out_int32, right, sorter)
    whole = batch.whole(values)
    if sequence._layout.ndim == 1:  # of which each example has one, for all its values
        whole = T.reshape(whole, (batch.size, -1))
    places = run(
        T.contiguous(batch.whole(sequence)), T.contiguous(whole), out_int32, right,
        None if sorter is None else T.contiguous(batch.whole(sorter)),
    )  # fmt: skip
    return T.reshape(places, (batch.size, *values._layout.shape))


def bad_sorter() -> ShapeError:
    return ShapeError("torch.searchsorted(): sorter index out of range")


@composite(method=False)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: Bool = False, right: Bool = False,
    side: Str = None, sorter: OptTensor = None,
):  # fmt: skip
    """Where values would have to be put into a sorted sequence (along its last dim).

    ``side`` says whether before (``"left"``) or behind equal elements.

    >>> torch.searchsorted(torch.tensor([1, 3, 5, 7]), torch.tensor([3, 6]))
    tensor([1, 3])
    """
    if side is not None and side not in ("left", "right"):
        raise ShapeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise ShapeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while"
            " right was True"
        )
    layout = sorted_sequence._layout
    if layout.ndim == 0:
        raise ShapeError("torch.searchsorted(): input value can't be scalar boundaries")
    order = None if sorter is None else T.contiguous(sorter)
    values = T.contiguous(as_values("searchsorted", input, layout))
    right = right or side == "right"
    return T.places_in(T.contiguous(sorted_sequence), values, out_int32, right, order)


def as_values(op: str, value: _Any, layout: Layout) -> _Any:
    """The values to place: a tensor, or a number with the boundaries' dtype."""
    if isinstance(value, TensorType):
        return value
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"{op}(): the values must be a Tensor or a number, not {value!r:.60}")
    return constant(np.asarray(value).astype(layout.dtype.np), layout.device)


@searchsorted.samples
def _(make):
    yield make.ints((6,), 10).sort()[0], make.ints((3, 2), 10)
    yield (make.ints((3, 6), 10).sort(1)[0], make.ints((3, 2), 10)), {"right": True}


@composite()
def bucketize(input: Any, boundaries: Tensor, *, out_int32: Bool = False, right: Bool = False):
    """The number of the interval between sorted boundaries in which each value lies.

    >>> torch.bucketize(torch.tensor([3, 6]), torch.tensor([1, 3, 5]))
    tensor([1, 3])
    """
    layout = boundaries._layout
    if layout.ndim != 1:
        raise ShapeError(f"bucketize: boundaries tensor must be 1 dimension, not {layout.ndim}")
    values = T.contiguous(as_values("bucketize", input, layout))
    return T.places_in(T.contiguous(boundaries), values, out_int32, right, None)


@bucketize.samples
def _(make):
    yield make.ints((3, 2), 10), make.ints((6,), 10).sort()[0]


# ------------------------------------------------------------------------------- sets of values
@kernel(function=False, method=False, out=False)
def unique_parts(input: Tensor, dim: Int, consecutive: Bool, inverse: Bool, counts: Bool):
    """Values, inverse and counts, which may be empty unless wanted; ``dim`` is -1 for the flattened
    tensor."""
    what = Distinct("unique", None if dim < 0 else dim, consecutive, inverse, counts)
    return Planned(what, [((0,), input.dtype), ((0,), dtypes.int64), ((0,), dtypes.int64)])


unique_parts.has_no_derivative("unique")


def chosen(found: _Any, return_inverse: bool, return_counts: bool) -> _Any:
    values, inverse, counts = found
    result: tuple[_Any, ...] = (values,)
    if return_inverse:
        result += (inverse,)
    if return_counts:
        result += (counts,)
    return result if len(result) > 1 else values


def in_front(values: TensorType, dim: int) -> TensorType:
    """The same tensor, lying as if ``dim`` were its first."""
    result = T.movedim(T.contiguous(T.movedim(values, dim, 0)), 0, dim)
    result._base = None
    return result  # type: ignore[no-any-return]


def unique_dim(input: TensorType, dim: _Any, op: str) -> int:
    if dim is None:
        return -1
    ndim = input._layout.ndim
    if not -max(ndim, 1) <= dim < max(ndim, 1):
        raise OutOfRange(
            f"{op}: Dimension out of range (expected to be in range of [{-max(ndim, 1)}, "
            f"{max(ndim, 1) - 1}], but got {dim})"
        )
    return -1 if ndim == 0 else int(dim % ndim)


@composite(out=False)
def unique(
    input: Tensor, sorted: Bool = True, return_inverse: Bool = False, return_counts: Bool = False,
    dim: Any = None,
):  # fmt: skip
    """The distinct elements (or slices along ``dim``), in order.

    ``return_inverse`` adds where each element went, ``return_counts`` how often each occurs.

    >>> torch.unique(torch.tensor([1, 3, 2, 3]))
    tensor([1, 2, 3])
    """
    d = unique_dim(input, dim, "unique")
    x = T.contiguous(input) if d < 0 else input
    found = T.unique_parts(x, d, False, return_inverse, return_counts)
    if dim is not None and input._layout.ndim > 1:  # PyTorch puts the dim in front, and back
        found = (in_front(found[0], dim), *found[1:])
    return chosen(found, return_inverse, return_counts)


@unique.samples
def _(make):
    yield (make.ints((3, 4), 5),)
    yield (make.ints((6, 2), 2),), {"dim": 0}
    yield (make.ints((100,), 9),), {"return_inverse": True, "return_counts": True}


@composite(out=False)
def unique_consecutive(
    input: Tensor, return_inverse: Bool = False, return_counts: Bool = False, dim: Any = None
):
    """The elements (or slices along ``dim``) without those equal to the one before.

    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 3, 1, 1, 2]))
    tensor([1, 2, 3, 1, 2])
    """
    d = unique_dim(input, dim, "unique_consecutive")
    x = T.contiguous(input) if d < 0 else input
    found = T.unique_parts(x, d, True, return_inverse, return_counts)
    if dim is not None and input._layout.ndim > 1:
        found = (in_front(found[0], dim), *found[1:])
    return chosen(found, return_inverse, return_counts)


@unique_consecutive.samples
def _(make):
    yield (make.ints((4, 10), 2),), {"return_inverse": True, "return_counts": True}
    yield (make.ints((10,), 2),)
