"""Slices folded into slices, by an index or by the lengths of segments. One record per op."""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.shapes import normalize_dim
from antorcha.errors import DtypeError, MissingFeature, OutOfRange, ShapeError
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Bool, Dim, Int, Number, OptTensor, Str, Tensor
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

REDUCES = ("prod", "mean", "amax", "amin")


@composite()
def index_reduce(
    input: Tensor, dim: Dim, index: Tensor, source: Tensor, reduce: Str, *,
    include_self: Bool = True,
):  # fmt: skip
    """``input`` with the slices of ``source`` folded into those that ``index`` names, along
    ``dim``: by ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.

    ``include_self=False``: what is folded into loses its own value first.

    >>> index, source = torch.tensor([0, 0, 1]), torch.tensor([4., 2., 3.])
    >>> torch.index_reduce(torch.ones(2), 0, index, source, "prod")
    tensor([8., 3.])
    """
    if reduce not in REDUCES:
        raise ShapeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    layout, given = input._layout, source._layout
    d = normalize_dim(dim, layout.ndim, op="index_reduce")
    _check_index(layout, d, index._layout, given)
    if given.ndim:
        places = T.reshape(index, [-1 if k == d else 1 for k in range(given.ndim)])
        places = T.expand(places, given.shape)
    else:
        places = T.reshape(index, ())
    return T.scatter_reduce(input, dim, places, source, reduce, include_self=include_self)


def _check_index(layout: Layout, d: int, index: Layout, source: Layout) -> None:
    if index.ndim > 1:
        raise OutOfRange(
            f"index_reduce_(): Index is supposed to be a vector, but got dim: {index.ndim} with "
            f"type: {index.dtype} and size: {list(index.shape)}"
        )
    if index.dtype not in (dtypes.int32, dtypes.int64):
        raise DtypeError(
            f"index_reduce_(): Expected dtype int32/int64 for index but got: {index.dtype}"
        )
    if source.dtype is not layout.dtype:
        raise DtypeError(
            f"index_reduce_(): self ({layout.dtype}) and source ({source.dtype}) must have the "
            "same scalar type"
        )
    n = source.shape[d] if source.ndim else 1
    if index.numel != n:
        raise ShapeError(
            f"index_reduce_(): Number of indices ({index.numel}) should be equal to "
            f"source.size(dim): ({n}), for dim: {d}"
        )
    if [*layout.shape[:d], *layout.shape[d + 1 :]] != [*source.shape[:d], *source.shape[d + 1 :]]:
        raise ShapeError(
            "index_reduce: source tensor shape must match self tensor shape, excluding the "
            f"specified dimension. Got self.shape = {list(layout.shape)} source.shape = "
            f"{list(source.shape)}"
        )


@index_reduce.samples
def _(make):
    for reduce in REDUCES:
        yield make(3, 4), 0, make.ints((2,), 3), make(2, 4), reduce
    yield (make(3, 4), 1, make.ints((2,), 4), make(3, 2), "mean"), {"include_self": False}
    yield (make(3), 0, make.ints((2,), 3), make(2), "sum"), {}, RuntimeError, "one of prod"
    yield (make(3), 0, make.ints((1,), 3), make(2), "mean"), {}, RuntimeError, "Number of indices"


FOLDS = {
    "sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0), "max": ("amax", -math.inf),
    "amax": ("amax", -math.inf), "min": ("amin", math.inf), "amin": ("amin", math.inf),
}  # fmt: skip
"""How the elements of a segment are folded, and what a segment of none gives."""


@composite(method=False, aliases=("_segment_reduce",))
def segment_reduce(
    data: Tensor, reduce: Str, *, lengths: OptTensor = None, indices: OptTensor = None,
    offsets: OptTensor = None, axis: Int = 0, unsafe: Bool = False, initial: Number = None,
):  # fmt: skip
    """The segments of ``data`` along ``axis``, each folded by ``"sum"``, ``"mean"``, ``"prod"``,
    ``"max"`` or ``"min"``.

    ``lengths`` says how long the segments are, one after the other, or ``offsets`` where they begin
    and where the last one ends; for each position before ``axis``. ``initial`` is folded into each.

    >>> torch.segment_reduce(torch.tensor([1., 2., 3.]), "sum", lengths=torch.tensor([1, 2]))
    tensor([1., 5.])
    """
    layout = data._layout
    if layout.dtype.kind != "f":
        raise MissingFeature(
            f'segment_reduce: "_segment_reduce_cpu" not implemented for {layout.dtype}'
        )
    if reduce not in FOLDS:
        raise ShapeError(
            f"segment_reduce: reduce argument must be either sum, prod, mean, amax or amin, got "
            f"{reduce}"
        )
    d = normalize_dim(axis, layout.ndim, op="segment_reduce")
    lengths = _lengths(layout, d, lengths, indices, offsets, unsafe)
    by, empty = FOLDS[reduce]
    lead, width = math.prod(layout.shape[:d]), math.prod(layout.shape[d + 1 :])
    number = lengths._layout.shape[-1]
    places = T.expand(T.reshape(_segments(layout, d, lengths), (-1, 1)), (-1, width))
    value = empty if initial is None else initial
    start = T.full_layout((lead * (number + 1), width), value, layout.dtype, layout.device)
    result = T.scatter_reduce(start, 0, places, T.reshape(data, (-1, width)), by)
    result = T.slice(T.reshape(result, (lead, number + 1, width)), 1, 0, number)
    if reduce == "mean":
        # as PyTorch: the initial value is summed, not counted
        counts = T.reshape(lengths, (lead, number, 1))
        result = result / (counts if initial is None else T.clamp(counts, min=1))
    return T.reshape(T.contiguous(result), (*layout.shape[:d], number, *layout.shape[d + 1 :]))


def _segments(layout: Layout, d: int, lengths: TensorType) -> _Any:
    """The number of the segment that each position along dim ``d`` is in, counted over the dims
    before it, too. What lies behind the last segment is in one more."""
    number, size = lengths._layout.shape[-1], layout.shape[d]
    ends = T.reshape(T.cumsum(lengths, -1), (-1, number))
    lead = ends._layout.shape[0]
    positions = T.contiguous(T.expand(T.arange(size, device=layout.device), (lead, size)))
    first = T.arange(lead, device=layout.device) * (number + 1)
    return T.searchsorted(T.contiguous(ends), positions, right=True) + T.unsqueeze(first, 1)


def _lengths(
    layout: Layout, d: int, lengths: _Any, indices: _Any, offsets: _Any, unsafe: bool
) -> TensorType:
    """How long the segments are, checked."""
    if indices is not None:
        raise ShapeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise ShapeError("segment_reduce(): Either lengths or offsets must be defined.")
    name, given = ("offsets", offsets) if lengths is None else ("lengths", lengths)
    if given._layout.dtype not in (dtypes.int32, dtypes.int64):
        raise MissingFeature(
            f'segment_reduce: "_segment_reduce_{name}_cpu" not implemented for '
            f"{given._layout.dtype}"
        )
    if given._layout.ndim != d + 1 or given._layout.shape[:d] != layout.shape[:d]:
        raise ShapeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {d}: "
            f"data of shape {list(layout.shape)}, {name} of shape {list(given._layout.shape)}."
        )
    found: TensorType = T.diff(offsets) if lengths is None else lengths
    if unsafe:
        return found
    if bool(T.any(T.lt(found, 0))):
        raise ShapeError("segment_reduce(): lengths contains negative value!")
    if not bool(T.all(T.eq(T.sum(found, -1), layout.shape[d]))):
        raise ShapeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe."
        )
    return found


@segment_reduce.samples
def _(make):
    for reduce in ("sum", "mean", "max", "min", "prod"):
        lengths = make.ints((1,), 1) + 2
        yield (make(4, 2), reduce), {"lengths": T.cat([lengths, lengths])}
    yield (make(4), "sum"), {"lengths": make.ints((2,), 1)}, RuntimeError, "to sum to"
    yield (make(4), "sum"), {}, RuntimeError, "lengths or offsets"
