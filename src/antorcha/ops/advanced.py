"""``x[tensors]``: index and index_put, and what masks and lists become before they run."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core.indexing import AdvancedIndex, advanced_position, broadcast_indices
from antorcha.core.loops import result_strides
from antorcha.core.shapes import Size, broadcast_strides, contiguous_strides, view_strides
from antorcha.errors import ArgumentError, DtypeError, OutOfRange, ShapeError, warn
from antorcha.lang.kernels import Gather, Scatter
from antorcha.ops.index import outside, zeros_like_layout
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Ints, Tensor, Tensors
from antorcha.ops.memory import strides_of_format
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


# ------------------------------------------------------------------------------------ x[tensors]
def advanced(input: Layout, indices: _Any, dims: tuple[int, ...]) -> tuple[int, Size]:
    """Where the dims of the index tensors stand in the result, and their common shape."""
    for each in indices:
        if each.dtype.name not in ("int64", "int32"):
            raise OutOfRange(
                "tensors used as indices must be long, int, byte or bool tensors, not {0.dtype}",
                reason="index dtype", operands=(each,),
            )  # fmt: skip
    common = Size(broadcast_indices([each.shape for each in indices]))
    return advanced_position([AdvancedIndex(d, None) for d in dims]), common


@kernel(function=False, method=False, out=False, node="index")
def index_at(input: Tensor, indices: Tensors, dims: Ints):
    """``input[indices]``, the index tensors standing at ``dims``; they broadcast together."""
    position, common = advanced(input, indices, dims)
    kept = [n for d, n in enumerate(input.shape) if d not in dims]
    shape = (*kept[:position], *common, *kept[position:])
    strides = [s for d, s in enumerate(input.strides) if d not in dims]
    strides[position:position] = [0] * len(common)
    after = len(shape) - position - len(common)
    views = [(shape, tuple(strides))]
    for each in indices:
        wide = (1,) * (position + len(common) - each.ndim) + tuple(each.shape) + (1,) * after
        steps = view_strides(each.shape, each.strides, wide) or contiguous_strides(wide)
        views.append((wide, tuple(
            [0 if n == 1 != m else s for n, m, s in zip(wide, shape, steps, strict=True)]
        )))  # fmt: skip
    out = L.layout(shape, tuple(result_strides(shape, views)), input.dtype, input.device)
    refuse = outside("index", input, *dims)
    return Planned(Gather(tuple(dims), position, refuse, negative=True), [out])


@index_at.derivative
def _(g, input_layout, indices, dims):
    zeros = zeros_like_layout(input_layout)
    return T.index_put_at_(zeros, g, indices, dims, True), *[None] * len(indices)


def _in_batch(batch: _Any, indices: _Any, dims: _Any) -> _Any:
    """The index tensors into a batch, which example it is first, and their dims; how many dims they
    have, in front, and where an example's result has them."""
    count = max([each._layout.ndim for each in indices])
    rows = T.arange(batch.size, device=indices[0].device)
    which = [T.reshape(rows, (batch.size, *[1] * count))]
    which += [batch.beside(each, count) for each in indices]
    position = advanced_position([AdvancedIndex(d, None) for d in dims])
    return which, (0, *[d + 1 for d in dims]), range(1, count + 1), position


@index_at.batches
def _(batch, run, input, indices, dims):
    if not any([batch.has(each) for each in indices]):
        return run(batch.whole(input), indices, tuple([d + 1 for d in dims]))
    which, places, front, position = _in_batch(batch, indices, dims)
    result = run(batch.whole(input), which, places)
    return T.movedim(result, tuple(front), tuple([d + position for d in front]))


@kernel(function=False, method=False, out=False, inplace=True, node="index_put")
def index_put_at(
    input: Tensor, values: Tensor, indices: Tensors, dims: Ints, accumulate: Bool = False
):
    """``input`` with ``values`` written (or added) at ``input[indices]``; they broadcast to it."""
    position, common = advanced(input, indices, dims)
    if input.dtype is not values.dtype:
        raise DtypeError(
            "Index put requires the source and destination dtypes match, got "
            f"{input.dtype} for the destination and {values.dtype} for the source."
        )
    kept = [n for d, n in enumerate(input.shape) if d not in dims]
    shape = (*kept[:position], *common, *kept[position:])
    lead = values.ndim - len(shape)
    have = tuple(values.shape[max(lead, 0) :])
    if any(n != 1 for n in values.shape[: max(lead, 0)]) or not fits(have, shape):
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            f"indexing result of shape {list(shape)}"
        )
    strides = strides_of_format(input.shape, input.strides, "preserve")
    out = L.layout(input.shape, strides, input.dtype, input.device)
    steps = tuple(broadcast_strides(have, values.strides[max(lead, 0) :], shape))
    wide = L.layout(shape, steps, values.dtype, values.device)
    refuse = outside("index_put", input, *dims)
    what = Scatter("add" if accumulate else "set", tuple(dims), position, refuse, negative=True)
    return Planned(what, [out], ins=[input, wide, *indices])


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Does a shape broadcast to another as it stands?"""
    tail = target[len(target) - len(shape) :]
    return all(n in (1, m) for n, m in zip(shape, tail, strict=True))


@index_put_at.derivative
def _(g, values_layout, indices, dims, accumulate, needs):
    mine = new = None
    rest = [None] * len(indices)
    if needs[0]:
        zero = T.full_layout((), 0, g._layout.dtype, g._layout.device)
        mine = g if accumulate else T.index_put_at(g, zero, indices, dims)
    if needs[1]:
        new = T.index_at(g, indices, dims)
        while new._layout.ndim < values_layout.ndim:
            new = T.unsqueeze(new, 0)
    return mine, new, *rest


@index_put_at.batches
def _(batch, run, input, values, indices, dims, accumulate):
    which, places, front, position = _in_batch(batch, indices, dims)
    ndim = len(front) + input._layout.ndim - len(dims)
    moved = T.movedim(
        batch.beside(values, ndim), tuple([d + position for d in front]), tuple(front)
    )
    return run(batch.whole(input), moved, which, places, accumulate)


# ------------------------------------------------------------------------------ masks and lists
def mask_indices(mask: TensorType, sizes: tuple[int, ...], dim: int) -> tuple[TensorType, ...]:
    """A mask as the index tensors that choose the same elements."""
    shape = tuple(mask._layout.shape)
    if shape != sizes:
        raise OutOfRange(
            f"The shape of the mask {list(shape)} at index {dim} does not match the shape of the "
            f"indexed tensor {list(sizes)} at index {dim}"
        )
    if mask._layout.dtype.name != "bool":
        warn_byte()
    return T.nonzero(mask, as_tuple=True)  # type: ignore[no-any-return]


def warn_byte() -> None:
    warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
        UserWarning,
    )


def standing(layout: Layout, indices: _Any) -> tuple[list[TensorType], tuple[int, ...]]:
    """The integer tensors of ``index_put``'s list and the dims at which they stand."""
    if not isinstance(indices, (tuple, list)):
        raise ArgumentError(
            f"index_put(): argument 'indices' must be tuple of Tensors, not "
            f"{type(indices).__name__}"
        )
    tensors: list[TensorType] = []
    dims: list[int] = []
    at = 0
    for each in indices:
        if each is None:
            at += 1
            continue
        if not isinstance(each, TensorType):
            raise ArgumentError(
                "index_put(): argument 'indices' must be a tuple of Tensors or None, not "
                f"{type(each).__name__}"
            )
        if each._layout.dtype.name in ("bool", "uint8"):
            span = each._layout.ndim
            found = mask_indices(each, tuple(layout.shape[at : at + span]), at)
        else:
            span, found = 1, (each,)
        tensors += found
        dims += range(at, at + span)
        at += span
    if at > layout.ndim:
        raise OutOfRange(
            f"too many indices for tensor of dimension {layout.ndim} (got {at}): index_put on "
            f"shape {tuple(layout.shape)}"
        )
    if not tensors:
        raise ArgumentError("index_put(): there is no tensor among the indices")
    return tensors, tuple(dims)


@composite(out=False)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: Bool = False):
    """``input`` with ``values`` written at ``input[indices]``; ``accumulate`` adds them.

    ``indices`` is a tuple of integer tensors, masks or None, one per dim; they broadcast together,
    and ``values`` broadcasts to what they choose.
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html.

    >>> x = torch.zeros(3)
    >>> torch.index_put(x, (torch.tensor([0, 0]),), torch.tensor([1., 2.]), accumulate=True)
    tensor([3., 0., 0.])
    """
    tensors, dims = standing(input._layout, indices)
    return T.index_put_at(input, values, tensors, dims, accumulate)


@index_put.samples
def _(make):
    yield make(3, 4), (make.ints((2,), 3),), make(4)
    yield make(3, 4), (make.ints((2,), 3), make.ints((2,), 4)), make(2), True
    yield (make(3), (make.ints((2,), 1) + 3,), make(2)), {}, IndexError, "index 3 is out of bounds"


@composite(out=False, name="index_put_")
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: Bool = False):
    """In-place form of :func:`antorcha.index_put`; gives the changed tensor."""
    tensors, dims = standing(input._layout, indices)
    return T.index_put_at_(input, values, tensors, dims, accumulate)
