"""Views of parts: slices, rows, diagonals, windows, splits, any strides. One record per op."""

from __future__ import annotations

import builtins
from typing import Any as _Any

from antorcha.core.indexing import plan_index
from antorcha.core.shapes import clamped, extent, normalize_dim
from antorcha.errors import OutOfRange, ShapeError, ValueRangeError
from antorcha.ops.kinds.kernel import view
from antorcha.ops.kinds.params import to_int
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Dim, Int, Ints, OptInt, Tensor
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


@view(function=False, method=False)
def slice(input: Tensor, dim: Dim = 0, start: OptInt = None, end: OptInt = None, step: Int = 1):
    """The elements ``start:end:step`` along a dim, a view: ``x[start:end:step]``."""
    if input.ndim == 0:
        raise OutOfRange("slice() cannot be applied to a 0-dim tensor.")
    d = normalize_dim(dim, input.ndim, op="slice")
    if step <= 0:
        raise ValueRangeError("slice: slice step must be positive")
    size = input.shape[d]
    first, last = clamped(start, size, 0), clamped(end, size, size)
    count = max(0, -((first - last) // step))
    shape = (*input.shape[:d], count, *input.shape[d + 1 :])
    stride = input.strides[d] * step if step <= input.shape[d] else input.strides[d]
    strides = (*input.strides[:d], stride, *input.strides[d + 1 :])
    return shape, strides, first * input.strides[d]


@slice.derivative
def _(g, dim, start, end, step, input_layout):
    return T.slice_backward(g, input_layout.shape, dim, start, end, step)


@slice.samples
def _(make):
    yield make(5, 4), 0, 1, 4, 2
    yield make(5, 4), 1, 2, 2, 1
    yield make(5, 4), 0, -3


@view()
def select(input: Tensor, dim: Dim, index: Int):
    """The slice at ``index`` along ``dim``: a view with one dim less.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """
    if input.ndim == 0:
        raise OutOfRange("select: select() cannot be applied to a 0-dim tensor.")
    d = normalize_dim(dim, input.ndim, op="select")
    n = input.shape[d]
    if not -n <= index < n:
        raise OutOfRange(
            "select: index {given} is out of bounds for dimension {dim} with size {size} (tensor "
            "of shape {0.shape})",
            reason="index", op="select", operands=(input,), given=index, dim=d, size=n,
        )  # fmt: skip
    shape = (*input.shape[:d], *input.shape[d + 1 :])
    return shape, (*input.strides[:d], *input.strides[d + 1 :]), index % n * input.strides[d]


@select.derivative
def _(g, dim, index, input_layout):
    return T.select_backward(g, input_layout.shape, dim, index)


@select.samples
def _(make):
    yield make(3, 4), 0, 1
    yield make(3, 4), -1, -1
    yield (make(3, 4), 0, 3), {}, IndexError, "out of bounds"
    yield (make(), 0, 0), {}, IndexError, "0-dim"


@composite(out=False)
def narrow(input: Tensor, dim: Dim, start: Any, length: Int):
    """``length`` elements from ``start`` (a number or a 0-dim tensor) along ``dim``: a view.

    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    layout = input._layout
    if layout.ndim == 0:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    d = normalize_dim(dim, layout.ndim, op="narrow")
    n = layout.shape[d]
    if isinstance(start, TensorType) and (
        start._layout.ndim or start._layout.dtype.kind not in "iu"
    ):
        raise ShapeError(
            f"narrow: start must be an 0-dim integral Tensor, not one of shape "
            f"{tuple(start._layout.shape)} and dtype {start._layout.dtype}"
        )
    start = to_int("narrow", "start", start)
    if length < 0:
        raise ShapeError(f"narrow(): length must be non-negative, not {length}.")
    if not -n <= start <= n:
        raise OutOfRange(f"narrow: start {start} is out of range for dim {d}: expected {-n} to {n}")
    first = start + n if start < 0 else start
    if first + length > n:
        raise ShapeError(
            f"narrow: start ({first}) + length ({length}) exceeds dimension size ({n})."
        )
    return T.slice(input, d, first, first + length, 1)


@narrow.samples
def _(make):
    yield make(3, 4), 1, 1, 2
    yield make(3, 4), 0, -2, 2
    yield (make(3, 4), 1, 1, 4), {}, RuntimeError, "exceeds dimension size"
    yield (make(3, 4), 1, 5, 1), {}, IndexError, "out of range"
    yield (make(3, 4), 1, 1.5, 1), {}, TypeError, "narrow: start must be an int"
    yield (make(3, 4), 1, None, 1), {}, TypeError, "narrow: start must be an int"
    yield (make(3, 4), 1, make(2), 1), {}, RuntimeError, "0-dim integral"


@view(function=False, method=False)
def alias(input: Tensor):
    """The same tensor as a view of itself."""
    return input.shape, input.strides, 0


alias.derivative(lambda g: g)
alias.batching = "leading"


@alias.samples
def _(make):
    yield (make(3, 4),)


# ------------------------------------------------------------------------------------- x[...]
def spelled(index: tuple[_Any, ...]) -> _Any:
    """The index that a key stands for: slices are (slice, start, stop, step) in it."""
    items = tuple([builtins.slice(*i[1:]) if type(i) is tuple else i for i in index])
    return items[0] if len(items) == 1 and type(items[0]) is builtins.slice else items


def steps_of(layout: Layout, index: tuple[_Any, ...]) -> _Any:
    return plan_index(layout.shape, layout.strides, 0, spelled(index)).steps


def last_step(values: list[_Any], inplace: bool) -> str:
    """The last of the ops that an index stands for gives the node its name."""
    step: str = steps_of(values[0]._layout, values[1])[-1][0]
    return step


# (not outlined: an index is part of what its calls have in common)
@view(function=False, method=False, nodes=last_step, outlined=False)
def index_view(input: Tensor, index: Any):
    """``input[index]`` for ints, slices, None and ``...``, as one view; see ``tensor.indexing``."""
    result = plan_index(input.shape, input.strides, 0, spelled(index))
    return result.shape, result.strides, result.offset


@index_view.derivative
def _(g, input_layout, index):
    return T.embed_view(g, tuple(input_layout.shape), "index_view", (index,))


@index_view.batches
def _(batch, run, input, index):
    return run(batch.whole(input), ((builtins.slice, None, None, None), *index))


@index_view.samples
def _(make):
    yield make(3, 4), (1, None)
    yield make(3, 4), ((builtins.slice, 0, 2, None), ...)


# ------------------------------------------------------------------------------ any strides
def check_inside(input: TensorType, size: _Any, stride: _Any, offset: int) -> None:
    if len(size) != len(stride):
        raise ShapeError(
            f"as_strided: mismatch in length of strides and shape: size {tuple(size)}, "
            f"stride {tuple(stride)}"
        )
    if any(s < 0 for s in stride):
        raise ShapeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(stride)}"
        )
    if any(n < 0 for n in size):
        raise ShapeError(f"as_strided: Trying to create tensor with negative dimension: {size}")
    if offset < 0:
        raise ShapeError(f"as_strided: Tensor: invalid storage offset {offset}")
    item = input._layout.itemsize
    need = (offset + extent(size, stride)[1] + 1) * item if 0 not in size else 0
    if need > input._storage.nbytes:
        raise ShapeError(
            f"as_strided: setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{offset}, and itemsize {item} requiring a storage size of {need} are out of bounds "
            f"for storage of size {input._storage.nbytes}"
        )


@composite(out=False)
def as_strided(input: Tensor, size: Ints, stride: Ints, storage_offset: Int = None):
    """A view of the operand's storage with any size, strides and offset (in elements).

    Raises RuntimeError when it would reach outside of the storage.

    >>> torch.as_strided(torch.arange(9.).reshape(3, 3), (2, 2), (1, 2), 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    at = input._offset if storage_offset is None else storage_offset
    check_inside(input, size, stride, at)
    return T.strided_view(input, size, stride, at - input._offset)


@as_strided.samples
def _(make):
    yield make(3, 4), (2, 2), (4, 1), 1
    yield make(6), (3, 3), (1, 1)
    yield make(3, 4).t(), (2, 3), (1, 2)
    yield (make(3, 4), (4, 4), (4, 1)), {}, RuntimeError, "out of bounds"
    yield (make(3, 4), (2,), (1, 1)), {}, RuntimeError, "mismatch in length"


@view(function=False, method=False, node="as_strided")
def strided_view(input: Tensor, size: Ints, stride: Ints, delta: Int):
    """What ``as_strided`` runs: the offset counts from the operand's."""
    return size, stride, delta


@strided_view.derivative
def _(g, input_layout, stride, delta):
    return T.as_strided_backward(g, input_layout, stride, delta)


@strided_view.batches
def _(batch, run, input, size, stride, delta):
    whole = batch.whole(input)
    return run(whole, (batch.size, *size), (whole._layout.strides[0], *stride), delta)


# --------------------------------------------------------------------------- diagonals, windows
@view()
def diagonal(input: Tensor, offset: Int = 0, dim1: Dim = 0, dim2: Dim = 1):
    """The diagonal of dims ``dim1`` and ``dim2`` as a last dim, a view; ``offset`` > 0 is above.

    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    a = normalize_dim(dim1, input.ndim, op="diagonal")
    b = normalize_dim(dim2, input.ndim, op="diagonal")
    if a == b:
        raise ShapeError(
            f"diagonal dimensions cannot be identical {dim1}, {dim2} (shape {tuple(input.shape)})"
        )
    if offset >= 0:
        count, first = min(input.shape[a], input.shape[b] - offset), offset * input.strides[b]
    else:
        count, first = min(input.shape[a] + offset, input.shape[b]), -offset * input.strides[a]
    count = max(count, 0)
    rest = [d for d in range(input.ndim) if d not in (a, b)]
    strides = [input.strides[d] for d in rest] + [input.strides[a] + input.strides[b]]
    return [input.shape[d] for d in rest] + [count], strides, first if count else 0


@diagonal.derivative
def _(g, input_layout, offset, dim1, dim2):
    return T.embed_view(g, tuple(input_layout.shape), "diagonal", (offset, dim1, dim2))


@diagonal.samples
def _(make):
    yield (make(3, 4),)
    yield make(2, 3, 4), 1, 0, 2
    yield make(3, 3), -1
    yield (make(3, 3), 0, 1, 1), {}, RuntimeError, "cannot be identical"
    yield (make(3),), {}, IndexError, "out of range"


@view(function=False)
def unfold(input: Tensor, dimension: Dim, size: Int, step: Int):
    """All windows of ``size`` elements along a dim, ``step`` apart, as a new last dim: a view.

    >>> torch.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    d = normalize_dim(dimension, input.ndim, op="unfold")
    n = input.shape[d] if input.ndim else 1
    stride = input.strides[d] if input.ndim else 1
    if size < 0:
        raise ShapeError(f"unfold: size is {size} but must be >= 0")
    if size > n:
        raise ShapeError(
            f"unfold: maximum size for tensor at dimension {d} is {n} but size is {size}"
        )
    if step <= 0:
        raise ShapeError(f"unfold: step is {step} but must be > 0")
    count = (n - size) // step + 1
    if input.ndim == 0:
        return (size,), (1,), 0
    shape = (*input.shape[:d], count, *input.shape[d + 1 :], size)
    return shape, (*input.strides[:d], stride * step, *input.strides[d + 1 :], stride), 0


@unfold.derivative
def _(g, input_layout, dimension, size, step):
    base = input_layout.like(shape=tuple(input_layout.shape))
    _, strides, _ = unfold.apply_fn([base, dimension, size, step])
    result = None
    for at in range(0, max(size, 1), step):  # so many elements of a window meet none of the next
        part = T.narrow(g, -1, at, min(step, size - at))
        where = tuple(part._layout.shape), tuple(strides), at * strides[-1]
        if result is None:
            result = T.embed_strided(part, base.numel, *where[1:])
        else:
            T.add_(T.strided_view(result, *where), part)
    return T.view(result, tuple(base.shape))


@unfold.samples
def _(make):
    yield make(7), 0, 3, 2
    yield make(3, 6), 1, 3, 1
    yield make(6, 2), 0, 2, 3
    yield make(2, 11), 1, 7, 2
    yield (make(3), 0, 4, 1), {}, RuntimeError, "maximum size"
