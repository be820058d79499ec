"""Bags of embeddings: the sum, mean or maximum of several rows of a table, and other small ops
on rows and channels: ``channel_shuffle``, ``pdist``, ``conv_tbc``."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.errors import MissingFeature, ShapeError
from antorcha.lang.kernels import Bags
from antorcha.ops.index import outside
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Bool, Float, Int, OptTensor, Str, Tensor
from antorcha.ops.lookup import check_rows, table_gradient
from antorcha.runtime.memory.layout import Layout

F = "nn.functional."


@composite(function=False, method=False, out=False)
def bags_of(rows: Tensor, bag: Tensor, kept: Tensor, weights: OptTensor, count: Int, mode: Str):
    """Row ``k`` of ``rows`` goes to bag ``bag[k]``, if ``kept[k]``: the bags' ``mode``."""
    layout = rows._layout
    if mode == "max":
        return _largest(rows, bag, kept, count)
    if weights is not None:
        rows = T.mul(rows, T.unsqueeze(T.to_dtype(weights, layout.dtype), -1))
    rows = T.where(T.unsqueeze(kept, -1), rows, T.zeros_like(rows))
    empty = T.zeros((count, layout.shape[1]), dtype=layout.dtype, device=layout.device)
    total = T.index_add(empty, 0, bag, rows)
    if mode == "sum":
        return total
    none = T.zeros((count,), dtype=layout.dtype, device=layout.device)
    many = T.index_add(none, 0, bag, T.to_dtype(kept, layout.dtype))
    return T.div(total, T.unsqueeze(T.clamp(many, min=1), -1))


def _largest(rows: Tensor, bag: Tensor, kept: Tensor, count: int) -> Tensor:
    """Each bag's largest elements; of equal ones the first gets the gradient."""
    layout = rows._layout
    n, columns = layout.shape
    if n == 0:
        return T.zeros((count, columns), dtype=layout.dtype, device=layout.device)
    still = rows.detach()
    bag = T.expand(T.unsqueeze(bag, -1), (n, columns))
    low = T.full((count, columns), float("-inf"), dtype=layout.dtype, device=layout.device)
    wanted = T.unsqueeze(kept, -1)
    candidates = T.where(wanted, still, T.full_like(still, float("-inf")))
    top = T.scatter_reduce(low, 0, bag, candidates, "amax")
    is_top = T.logical_and(T.eq(still, T.gather(top, 0, bag)), wanted)
    number = T.expand(T.unsqueeze(T.arange(n, device=layout.device), -1), (n, columns))
    number = T.where(is_top, number, T.full_like(number, n))
    none = T.full((count, columns), n, dtype=dtypes.int64, device=layout.device)
    first = T.scatter_reduce(none, 0, bag, number, "amin")
    values = T.gather(rows, 0, T.clamp(first, max=n - 1))
    return T.where(T.lt(first, n), values, T.zeros_like(values))


@bags_of.samples
def _(make):
    bag, kept = make.ints((6,), 3), make.ints((6,), 2) > 0
    for mode in ("sum", "mean", "max"):
        yield make(6, 4), bag, kept, None, 4, mode
    yield make(6, 4), bag, kept, make(6), 4, "sum"


# ------------------------------------------------- where a device folds rows as it reads them
def planned(
    fold: str, weight: Layout, indices: Layout, offsets: Layout | None, weighted: bool, count: int,
    padding_idx: int,
) -> Planned:  # fmt: skip
    """The kernel for bags of joined indices, which begin at ``offsets``, or are of one size."""
    check_rows("embedding_bag", indices)
    size = indices.numel // max(count, 1) if offsets is None else None
    skipped = padding_idx if padding_idx >= 0 else None
    what = Bags(fold, size, weighted, skipped, outside("embedding_bag", weight, 0))
    shape = (count, weight.shape[1])
    numbers = [(shape, dtypes.int64)] if fold == "max" else []
    return Planned(what, [(shape, weight.dtype), *numbers])


@kernel(function=False, method=False, out=False)
def fold_bags(
    weight: Tensor, indices: Tensor, offsets: OptTensor, count: Int, mode: Str, padding_idx: Int,
    scale_grad_by_freq: Bool, sparse: Bool,
):  # fmt: skip
    """The sum or mean of each bag's rows."""
    return planned(mode, weight, indices, offsets, False, count, padding_idx)


@fold_bags.derivative
def _(
    g, weight_layout, indices, offsets, count, mode, padding_idx, scale_grad_by_freq, sparse, needs
):  # fmt: skip
    if mode == "mean":
        kept = T.to_dtype(T.ne(indices, padding_idx), weight_layout.dtype)
        each, by_bag = of_each(kept, indices, offsets, count)
        none = T.full_layout((count,), 0, weight_layout.dtype, weight_layout.device)
        many = T.sum(each, 1) if by_bag is None else T.index_add(none, 0, by_bag, kept)
        g = T.div(g, T.unsqueeze(T.clamp(many, min=1), -1))
    rows, places = rows_of_bags(g, indices, offsets, count)
    to_table = table_gradient(rows, places, weight_layout, padding_idx, scale_grad_by_freq, sparse)
    return to_table, None, None


@kernel(function=False, method=False, out=False)
def weigh_bags(
    weight: Tensor, indices: Tensor, offsets: OptTensor, weights: Tensor, count: Int,
    padding_idx: Int, scale_grad_by_freq: Bool, sparse: Bool,
):  # fmt: skip
    """The sum of each bag's rows, each multiplied by a number."""
    return planned("sum", weight, indices, offsets, True, count, padding_idx)


@weigh_bags.derivative
def _(
    g, weight, indices, offsets, weights, count, padding_idx, scale_grad_by_freq, sparse, needs
):  # fmt: skip
    rows, places = rows_of_bags(g, indices, offsets, count)
    to_table = to_weights = None
    if needs[0]:
        each = T.unsqueeze(T.reshape(weights, tuple(places._layout.shape)), -1)
        rest = weight._layout, padding_idx, scale_grad_by_freq, sparse
        to_table = table_gradient(T.mul(rows, each), places, *rest)
    if needs[3]:
        taken = T.embedding(weight, places)
        found = T.reshape(T.sum(T.mul(rows, taken), -1), tuple(indices._layout.shape))
        to_weights = T.where(T.eq(indices, padding_idx), 0, found)
    return to_table, None, None, to_weights


@kernel(function=False, method=False, out=False, returns=lambda values, numbers: values)
def largest_of_bags(
    weight: Tensor, indices: Tensor, offsets: OptTensor, count: Int, padding_idx: Int
):
    """The largest elements of each bag's rows; also the numbers of their indices."""
    return planned("max", weight, indices, offsets, False, count, padding_idx)


@largest_of_bags.derivative
def _(g, out1, weight_layout, indices, offsets, count, padding_idx):
    zero = T.full_layout((), 0, weight_layout.dtype, weight_layout.device)
    zeros = T.expand(zero, tuple(weight_layout.shape))
    if g[0] is None or not indices._layout.numel:
        return zeros, None, None
    rows = T.to_dtype(T.index_at(indices, [T.clamp(out1, min=0)], (0,)), dtypes.int64)
    return T.scatter_add(zeros, 0, rows, T.where(T.lt(out1, 0), 0, g[0])), None, None


def of_each(values: _Any, indices: _Any, offsets: _Any, count: int) -> tuple[_Any, _Any]:
    """What there is for each index, bag by bag, and None; or as it is, and each one's bag."""
    size = indices._layout.numel // max(count, 1)
    if offsets is None:
        return T.reshape(values, (count, size)), None
    return values, bag_of_each(indices, offsets)


def bag_of_each(indices: _Any, offsets: _Any) -> _Any:
    """The number of each index's bag."""
    places = T.arange(indices._layout.numel, device=indices._layout.device)
    return T.searchsorted(T.to_dtype(offsets, dtypes.int64), places, right=True) - 1


def rows_of_bags(g: _Any, indices: _Any, offsets: _Any, count: int) -> tuple[_Any, _Any]:
    """The bags' gradient for each index's row, and the indices, of the same shape."""
    places, bag = of_each(indices, indices, offsets, count)
    if bag is not None:
        return T.index_select(g, 0, bag), indices
    shape = (*places._layout.shape, g._layout.shape[-1])
    return T.expand(T.unsqueeze(g, 1), shape), places


@fold_bags.samples
def _(make):
    for mode in ("sum", "mean"):
        yield make(5, 3), make.ints((6,), 5), None, 2, mode, -1, False, False
        yield make(5, 3), make.ints((6,), 5), make.ints((1,), 1), 1, mode, 2, False, False


@weigh_bags.samples
def _(make):
    yield make(5, 3), make.ints((6,), 5), None, make(6), 2, 1, False, False
    yield make(5, 3), make.ints((6,), 5), make.ints((1,), 1), make(6), 1, -1, False, False


@largest_of_bags.samples
def _(make):
    yield make(5, 3), make.ints((6,), 5), None, 2, 2
    yield make(5, 3), make.ints((6,), 5), make.ints((1,), 1), 1, -1


@composite(
    method=False,
    out=False,
    aliases=(F + "channel_shuffle", F + "native_channel_shuffle", "native_channel_shuffle"),
)
def channel_shuffle(input: Tensor, groups: Int):
    """Deals the channels of ``(N, C, *)``, which lie in ``groups`` groups, one of each in turn.

    Zhang et al., "ShuffleNet" (2018).

    >>> torch.channel_shuffle(torch.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    shape = tuple(input._layout.shape)
    if len(shape) < 3:
        raise ShapeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}"
        )
    if groups <= 0:
        raise ShapeError(
            f"channel_shuffle: Number of groups to divide channels in must be positive. "
            f"Value of groups:{groups}"
        )
    if shape[1] % groups:
        raise ShapeError(
            "channel_shuffle: Number of channels must be divisible by groups. Got "
            f"{shape[1]} channels and {groups} groups."
        )
    parts = T.reshape(input, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return T.reshape(T.transpose(parts, 1, 2), shape)


@channel_shuffle.samples
def _(make):
    yield make(2, 6, 3), 3
    yield make(1, 4, 2, 2), 2
    yield (make(2, 6, 3), 4), {}, RuntimeError, "divisible by groups"


@composite(method=False, out=False, aliases=(F + "pdist",))
def pdist(input: Tensor, p: Float = 2.0):
    """The ``p`` norm of the difference of every two rows: (0, 1), (0, 2), ..

    >>> torch.pdist(torch.tensor([[0., 0.], [3., 4.], [3., 0.]]))
    tensor([5., 3., 4.])
    """
    layout = input._layout
    if layout.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {layout.ndim}D")
    if layout.dtype.name not in ("float32", "float64"):
        raise MissingFeature(f"pdist only supports floating-point dtypes, not {layout.dtype}")
    if p < 0:
        raise ShapeError("pdist only supports non-negative p values")
    n = layout.shape[0]
    pairs = T.triu_indices(n, n, 1, device=layout.device)
    rows, columns = T.unbind(pairs, 0)
    difference = T.index_select(input, 0, rows) - T.index_select(input, 0, columns)
    return T.linalg_vector_norm(difference, p, (1,))


@pdist.samples
def _(make):
    yield (make(4, 3),)
    yield make(4, 3), 1.0
    yield (make(3),), {}, RuntimeError, "only supports 2D"


@composite(method=False, out=False, aliases=(F + "conv_tbc",))
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: Int = 0):
    """Convolution of sequences ``(time, batch, channels)`` with ``weight`` (taps, in, out).

    >>> torch.conv_tbc(torch.ones(3, 1, 2), torch.ones(2, 2, 1), torch.zeros(1)).flatten()
    tensor([4., 4.])
    """
    x, w = input._layout.shape, weight._layout.shape
    if len(x) != 3 or len(w) != 3 or x[2] != w[1] or tuple(bias._layout.shape) != (w[2],):
        raise ShapeError(
            f"conv_tbc: Input must have 3 dims: time, batch, in_channel; weight (taps, in_channel, "
            f"out_channel); bias (out_channel): got {tuple(x)}, {tuple(w)} and "
            f"{tuple(bias._layout.shape)}"
        )
    result = T.conv1d(T.permute(input, (1, 2, 0)), T.permute(weight, (2, 1, 0)), bias, 1, pad)
    return T.contiguous(T.permute(result, (2, 0, 1)))


@conv_tbc.samples
def _(make):
    yield make(5, 2, 3), make(2, 3, 4), make(4), 1
