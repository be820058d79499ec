"""What ``tensor[index]`` means, worked out on shapes and strides alone.

An index is read from left to right over the dims. Integers, slices, None and ``...`` make a view:
`basic_index` gives its layout at once. Lists, masks and index tensors cannot: `plan_index` makes
the view that the basic part of the index asks for, and lists which index stands at which dim of it.

PyTorch's meaning, which differs from NumPy's: an integer among index tensors is taken first, as a
view; a list of lists is a tuple of lists; a step must be positive. Nothing here knows a Tensor: it
is anything with `shape`, `dtype` and a length. `dtype.kind` must read as NumPy's ('b', 'i', ...).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from antorcha.core.lazy import lazy, np
from antorcha.core.shapes import INT64_MAX, Ints, broadcast_shapes, nested_items, nested_shape
from antorcha.errors import ArgumentError, OutOfRange, ShapeError, ValueRangeError, shown, warn

if TYPE_CHECKING:
    import numpy as np

alloc = lazy("antorcha.runtime.memory.alloc")
Layout = tuple[Ints, Ints, int]  # (shape, strides, offset)
Step = tuple[Any, ...]

_NO_INDEX: Final = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte tensors "
    "are valid indices (got {})"
)


class AdvancedIndex(NamedTuple):
    """An index tensor (or array) that stands at `dim` of the view.

    It covers `span` dims: a mask as many as it has, any other index one.
    """

    dim: int
    index: Any
    span: int = 1

    @property
    def is_mask(self) -> bool:
        """Whether it chooses by True and False; uint8 counts as such, as PyTorch has it."""
        return _is_mask(self.index)


class IndexPlan(NamedTuple):
    """An index, worked out: a view, and what remains to be gathered from the view.

    `steps` make the same view one PyTorch op at a time, each on the result of the one before:
    ``("select", dim, index)``, ``("slice", dim, start, stop, step)``, ``("unsqueeze", dim)`` and,
    where the index changes nothing, ``("alias",)``. Without `advanced` the view is the result.
    """

    shape: Ints
    strides: Ints
    offset: int
    steps: tuple[Step, ...]
    advanced: tuple[AdvancedIndex, ...]


# The common case -------------------------------------------------------------------------------


def basic_index(shape: Ints, strides: Ints, offset: int, index: Any) -> Layout | None:
    """Layout of the view ``tensor[index]``, or None when the index is an advanced one.

    >>> basic_index((2, 3, 4), (12, 4, 1), 0, (1, slice(None), 2))
    ((3,), (4,), 14)
    >>> basic_index((2, 3, 4), (12, 4, 1), 0, [0, 1]) is None
    True
    """
    if type(index) is int and shape:  # what loops over a tensor do
        position = checked_position(index, shape[0], 0)
        return shape[1:], strides[1:], offset + position * strides[0]
    items = index if type(index) is tuple else (index,)
    ndim = len(shape)
    sizes: list[int] = []
    steps: list[int] = []
    dim = 0
    for place, item in enumerate(items):
        kind = type(item)
        if kind is slice:
            if dim >= ndim:
                raise _too_many(items, shape)
            start, size, step = slice_range(item, shape[dim])
            offset += start * strides[dim]
            sizes.append(size)
            steps.append(_scaled(strides[dim], step))
            dim += 1
        elif item is None:
            sizes.append(1)
            steps.append(shape[dim] * strides[dim] if dim < ndim else 1)
        elif item is Ellipsis:
            later = items[place + 1 :]
            if any(_is_advanced(other) for other in later):
                return None
            stop = max(ndim - _consumed(later), dim)
            sizes += shape[dim:stop]
            steps += strides[dim:stop]
            dim = stop
        else:
            integer = item if kind is int else as_integer(item)
            if integer is None:
                return None
            if dim >= ndim:
                raise _too_many(items, shape)
            offset += checked_position(integer, shape[dim], dim) * strides[dim]
            dim += 1
    return (*sizes, *shape[dim:]), (*steps, *strides[dim:]), offset


def checked_position(index: int, size: int, dim: int) -> int:
    """An integer index counted from the start, or an error that names index, dim and size.

    >>> checked_position(-1, 4, 0)
    3
    """
    position = index + size if index < 0 else index
    if 0 <= position < size:
        return position
    text = "index {given} is out of bounds for dimension {dim} with size {size}"
    raise OutOfRange(
        text + " (expected {low}..{high})" if size else text, reason="index", given=index,
        dim=dim, size=size, low=-size, high=size - 1,
    )  # fmt: skip


def slice_range(item: slice, size: int) -> tuple[int, int, int]:
    """First position, number of positions and step of a slice of a dim.

    >>> slice_range(slice(1, None, 2), 6), slice_range(slice(9, 3), 6)
    ((1, 3, 2), (6, 0, 1))
    """
    if item.start is None and item.stop is None and item.step is None:
        return 0, size, 1
    try:
        start, stop, step = item.indices(size)
    except TypeError as error:
        raise ArgumentError(str(error)) from None
    except ValueError:
        step = 0
    if step <= 0:
        raise ValueRangeError(
            "step must be greater than zero" + ("; use torch.flip(x, dims)" if step < 0 else "")
        )
    return start, (stop - start + step - 1) // step if stop > start else 0, step


def as_integer(item: Any) -> int | None:
    """The integer that an index stands for, None if it is no integer.

    Beside int: NumPy's integers, 0-dim integer tensors (uint8 is a mask) and any ``__index__``.
    """
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        return None
    if hasattr(item, "dtype"):
        mask_like = item.dtype.kind == "b" or (_is_tensor(item) and item.dtype.name == "uint8")
        if item.shape != () or mask_like or item.dtype.kind not in "iu":
            return None
    return int(item.__index__())


# The general case ------------------------------------------------------------------------------


def plan_index(shape: Ints, strides: Ints, offset: int, index: Any) -> IndexPlan:
    """Work out any index; see `IndexPlan`.

    >>> plan_index((2, 3, 4), (12, 4, 1), 0, (0, [2, 1])).advanced
    (AdvancedIndex(dim=0, index=array([2, 1]), span=1),)
    """
    items = tuple(_as_index(item) for item in _as_tuple(index))
    view = _View(shape, strides, offset)
    if _consumed(items) > len(shape):
        raise _too_many(items, shape)
    if len(items) == 1 and type(index) is slice:
        view.slice(index, even_if_whole=True)  # PyTorch: x[:] is a slice, x[:, :] an alias
    else:
        for place, item in enumerate(items):
            view.apply(item, items[place + 1 :])
    return view.plan()


class _View:
    """A view that grows item by item; `dim` is where the next item applies.

    The lists hold the whole view at any time, so the steps' dims can be read off.
    """

    def __init__(self, shape: Ints, strides: Ints, offset: int) -> None:
        self.shape = list(shape)
        self.strides = list(strides)
        self.offset = offset
        self.dim = 0
        self.removed = 0  # dims of the tensor that integers took, less those that None added
        self.steps: list[Step] = []
        self.advanced: list[AdvancedIndex] = []

    def plan(self) -> IndexPlan:
        if not self.steps and not self.advanced:
            self.steps.append(("alias",))
        return IndexPlan(
            tuple(self.shape),
            tuple(self.strides),
            self.offset,
            tuple(self.steps),
            tuple(self.advanced),
        )

    def apply(self, item: Any, later: Sequence[Any]) -> None:
        if item is None:
            self.unsqueeze()
        elif item is Ellipsis:
            self.dim = max(len(self.shape) - _consumed(later), self.dim)
        elif isinstance(item, slice):
            self.slice(item)
        elif isinstance(item, bool):
            self.unsqueeze()
            self.dim -= 1
            self.add_advanced(_flag_index(item))
        elif isinstance(item, int):
            self.select(item)
        else:
            self.add_advanced(item)

    def select(self, index: int) -> None:
        dim = self.dim
        position = checked_position(index, self.shape[dim], dim + self.removed)
        self.steps.append(("select", dim, position))
        self.offset += position * self.strides[dim]
        del self.shape[dim], self.strides[dim]
        self.removed += 1

    def slice(self, item: slice, *, even_if_whole: bool = False) -> None:
        dim = self.dim
        start, size, step = slice_range(item, self.shape[dim])
        if even_if_whole or not _takes_all(item, self.shape[dim]):
            stop = start if size == 0 else start + (size - 1) * step + 1
            self.steps.append(("slice", dim, start, stop, step))
        self.offset += start * self.strides[dim]
        self.shape[dim] = size
        self.strides[dim] = _scaled(self.strides[dim], step)
        self.dim += 1

    def unsqueeze(self) -> None:
        dim = self.dim
        inside = dim < len(self.shape)
        stride = self.shape[dim] * self.strides[dim] if inside else 1
        self.shape.insert(dim, 1)
        self.strides.insert(dim, stride)
        self.steps.append(("unsqueeze", dim))
        self.dim += 1
        self.removed -= 1

    def add_advanced(self, index: Any) -> None:
        span = 1
        if _is_mask(index):
            span = len(index.shape)
            covered = tuple(self.shape[self.dim : self.dim + span])
            if covered != tuple(index.shape):
                raise OutOfRange(
                    "mask of shape {shape} does not match the sizes {covered} at dimension {dim} "
                    "of the indexed tensor",
                    reason="mask shape", shape=tuple(index.shape), covered=covered,
                    dim=self.dim + self.removed,
                )  # fmt: skip
        elif index.dtype.kind not in "iu":
            raise OutOfRange(
                "tensors used as indices must be integer or bool tensors, got {shape} {dtype}",
                reason="index dtype", shape=tuple(index.shape), dtype=index.dtype.name,
            )  # fmt: skip
        self.advanced.append(AdvancedIndex(self.dim, index, span))
        self.dim += span


def _as_tuple(index: Any) -> tuple[Any, ...]:
    """The items of an index; a list that cannot be one index tensor is a tuple of items.

    PyTorch 2.13's rule, taken from old NumPy, and its warning.
    """
    if isinstance(index, tuple):
        return index
    if isinstance(index, (list, range)) and len(index) < 32 and any(map(_is_item, index)):
        warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated; "
            "use x[tuple(seq)] instead of x[seq].",
            UserWarning,
        )
        return tuple(index)
    return (index,)


def _is_item(item: Any) -> bool:
    """Whether an element of a list shows that the list stands for a tuple of indices."""
    if item is None or item is Ellipsis:
        return True
    return isinstance(item, (list, tuple, range, slice)) or _is_tensor(item)


def _as_index(item: Any) -> Any:
    """One item as None, Ellipsis, slice, bool, int or index tensor; anything else is an error."""
    if item is None or item is Ellipsis or isinstance(item, (bool, slice)):
        return item
    integer = as_integer(item)
    if integer is not None:
        return integer
    if hasattr(item, "dtype") and hasattr(item, "shape"):
        if item.shape == () and _is_mask(item):
            return bool(item)
        return item
    if _is_list(item):
        return _list_index(item)
    kind = type(item).__name__
    if isinstance(item, (str, bytes)):
        raise ArgumentError(_NO_INDEX.format(kind))
    raise OutOfRange(_NO_INDEX.format(kind))


def _list_index(items: Sequence[Any]) -> np.ndarray[Any, Any]:
    """A (nested) list of numbers as an array: bools are a mask, the rest is int64. (Floats lose
    what is behind the point, as in PyTorch's ``LongTensor([0.5])``.)"""
    shape, _ = nested_shape("index", items, _holds_others)
    alloc.check_plausible(8 * math.prod(shape))
    flat = nested_items("index", items, shape, _holds_others)
    try:
        array = np.asarray(flat)
        array = array.reshape((*shape, *array.shape[1:]))
    except ValueError as error:
        raise ValueRangeError(f"index list is not rectangular: {error}") from None
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ArgumentError(
            f"an index list must hold integers or bools, got {array.dtype.name}: {shown(items)}"
        )
    return array.astype(np.int64)


def _is_list(item: Any) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, (str, bytes))


def _holds_others(item: Any) -> bool:
    if isinstance(item, (list, tuple)):
        return True
    if isinstance(item, (str, bytes, dict, set)) or hasattr(item, "dtype"):
        return False
    return hasattr(item, "__len__") and hasattr(item, "__getitem__")


def _flag_index(flag: bool) -> np.ndarray[Any, Any]:
    """The index of a new dim of size 1 that keeps it (True) or makes it empty (False)."""
    return np.zeros(1 if flag else 0, np.int64)


# Parts -----------------------------------------------------------------------------------------


def _is_tensor(item: Any) -> bool:
    """Whether it is a tensor or an array; NumPy's scalars, which have no length, are not."""
    return hasattr(item, "dtype") and hasattr(item, "shape") and hasattr(item, "__len__")


def _is_mask(item: Any) -> bool:
    kind = item.dtype.kind
    return bool(kind == "b" or (kind == "u" and item.dtype.name == "uint8"))


def _is_advanced(item: Any) -> bool:
    if item is None or item is Ellipsis or type(item) in (int, slice):
        return False
    return as_integer(item) is None


def _consumed(items: Sequence[Any]) -> int:
    """How many dims of the tensor the items take: masks several, None, `...` and bools none."""
    count = 0
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, bool):
            continue
        count += len(item.shape) if hasattr(item, "dtype") and _is_mask(item) else 1
    return count


def _takes_all(item: slice, size: int) -> bool:
    """Whether PyTorch skips a slice: it compares what is written, so ``-size:`` is not skipped."""
    start = 0 if item.start is None else item.start.__index__()
    stop = size if item.stop is None else item.stop.__index__()
    step = 1 if item.step is None else item.step.__index__()
    return bool(start == 0 and stop >= size and step == 1)


def _scaled(stride: int, step: int) -> int:
    """Stride of a slice; a step that would overflow it reaches one element only: any will do."""
    scaled = stride * step
    return scaled if scaled <= INT64_MAX else stride


def _too_many(items: Sequence[Any], shape: Ints) -> OutOfRange:
    if not shape and len(items) == 1 and isinstance(items[0], int):
        return OutOfRange(
            "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor "
            "to a number"
        )
    return OutOfRange(
        "too many indices for tensor of dimension {ndim}: {given} indices for shape {0.shape}",
        reason="too many", operands=(shape,), ndim=len(shape), given=_consumed(items),
    )  # fmt: skip


# Where the gathered dims go --------------------------------------------------------------------


def advanced_position(advanced: Sequence[AdvancedIndex]) -> int:
    """The dim of the result at which the dims of the index tensors stand.

    In place of the dims they index when these are neighbours; in front when others lie between.

    >>> advanced_position([AdvancedIndex(1, None), AdvancedIndex(2, None)])
    1
    >>> advanced_position([AdvancedIndex(1, None), AdvancedIndex(3, None)])
    0
    """
    first = advanced[0].dim
    expected = first
    for entry in advanced:
        if entry.dim != expected:
            return 0
        expected += entry.span
    return first


def advanced_result_shape(
    shape: Ints, advanced: Sequence[AdvancedIndex], index_shape: Sequence[int]
) -> Ints:
    """Shape of the result: the view's, with `index_shape` in place of the indexed dims.

    `index_shape` is what the index tensors broadcast to (see `broadcast_indices`).
    """
    gone = {dim for entry in advanced for dim in range(entry.dim, entry.dim + entry.span)}
    kept = [size for dim, size in enumerate(shape) if dim not in gone]
    position = advanced_position(advanced)
    return (*kept[:position], *index_shape, *kept[position:])


def broadcast_indices(index_shapes: Sequence[Sequence[int]]) -> Ints:
    """The common shape of the index tensors (of a mask: the count of its True elements, as 1-D)."""
    try:
        return broadcast_shapes(*index_shapes)
    except ShapeError:
        shown = ", ".join(str(list(shape)) for shape in index_shapes)
        raise OutOfRange(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shown}"
        ) from None
