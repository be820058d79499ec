"""Arithmetic of shapes and strides, with PyTorch's meaning.

Pure functions over tuples of ints; nothing here knows a tensor. Strides and offsets count elements.
Where a rule is PyTorch's and not obvious, its source file is named. Functions that can fail take
`op`, the name that opens the message.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Self, SupportsIndex, overload

from antorcha.errors import (
    ArgumentError,
    OutOfRange,
    ShapeError,
    ValueRangeError,
    labelled,
    listed,
    shown,
)

Ints = tuple[int, ...]

INT64_MAX: Final = 2**63 - 1
MOST_DIMS: Final = 64  # of data from outside; NumPy has no more


def is_symbol(x: Any) -> bool:
    """Is it no number, although it may be where a number is said to be: a size that may be any, or
    what is computed from one? (They come from a module that need not be loaded to say no.)"""
    symbols = sys.modules.get("antorcha.core.symbols")
    return symbols is not None and type(x) in (symbols.Symbol, symbols.Ratio)


class Size(tuple[int, ...]):
    """A tensor's shape: a tuple of ints that stays a Size when sliced, added or repeated.

    >>> Size([2, 3]), Size([2, 3])[:1], Size([2, 3]).numel()
    (torch.Size([2, 3]), torch.Size([2]), 6)
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Self:
        items = tuple(sizes)
        for position, item in enumerate(items):
            if type(item) is not int:
                items = _exact_ints(items, position)
                break
        return tuple.__new__(cls, items)

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Size: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> int | Size:
        if isinstance(index, slice):
            return tuple.__new__(Size, tuple.__getitem__(self, index))
        return tuple.__getitem__(self, index)

    def __add__(self, other: Any, /) -> Size:
        if not isinstance(other, tuple):
            raise ArgumentError(
                f"can only concatenate tuple (not {type(other).__name__}) to torch.Size"
            )
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any, /) -> Size:
        # (What a list says of ``+``, and does at ``+=``, is the list's affair.)
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex, /) -> Size:
        return tuple.__new__(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[type[Size], tuple[Ints]]:
        return Size, (tuple(self),)


def _exact_ints(items: Sequence[Any], position: int) -> Ints:
    """Convert items of which the one at `position` is no plain int: a bool, a NumPy integer."""

    sizes = list(items)
    for place, item in enumerate(items[position:], position):
        if is_symbol(item):
            continue
        try:
            sizes[place] = item.__index__()
        except (AttributeError, TypeError):
            raise ArgumentError(
                f"torch.Size() takes an iterable of 'int' (item {place} is '{type(item).__name__}')"
            ) from None
    return tuple(sizes)


def clamped(at: int | None, size: int, otherwise: int) -> int:
    """Where a slice of positive step begins or ends in a dim: `at`, counted from the end if it is
    negative; `otherwise` for None. (What ``slice.indices`` gives, but sizes may be symbols.)

    >>> clamped(-2, 5, 0), clamped(7, 5, 5), clamped(None, 5, 5)
    (3, 5, 5)
    """
    if at is None:
        return otherwise
    if at < 0:
        at += size
    return 0 if at < 0 else size if at > size else at


# Counting --------------------------------------------------------------------------------------


def numel(shape: Sequence[int], op: str = "") -> int:
    """The number of elements, checked: sizes must not be negative nor overflow a 64-bit count.

    >>> numel((2, 3)), numel(()), numel((2, 0))
    (6, 1, 0)
    """
    if min(0, 0, *shape) < 0:  # (no two sizes are compared: they may be symbols)
        raise ShapeError(labelled(op, f"sizes must not be negative, got shape {tuple(shape)}"))
    count = math.prod(shape)
    # With a zero among the sizes the count is 0, but the strides may still overflow.
    if count > INT64_MAX or (count == 0 and math.prod(s or 1 for s in shape) > INT64_MAX):
        raise ShapeError(labelled(op, f"shape {tuple(shape)} has more than 2**63 - 1 elements"))
    return count


def nbytes(shape: Sequence[int], itemsize: int, op: str = "") -> int:
    """The bytes that a tensor of this shape fills, checked like `numel`."""
    count = numel(shape, op) * itemsize
    if count > INT64_MAX:
        raise ShapeError(
            labelled(op, f"shape {tuple(shape)} needs more than 2**63 - 1 bytes ({itemsize} each)")
        )
    return count


def extent(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest element offset that is reached; (0, -1) when there is no element.

    >>> extent((2, 3), (3, 1)), extent((0, 3), (3, 1))
    ((0, 5), (0, -1))
    """
    low = high = 0
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0, -1
        if stride >= 0:
            high += (size - 1) * stride
        else:
            low += (size - 1) * stride
    return low, high


# Dimensions ------------------------------------------------------------------------------------


def normalize_dim(dim: int, ndim: int, op: str = "") -> int:
    """Turn a dimension that may count from the end into one that does not.

    A 0-dim tensor takes 0 and -1, like PyTorch's.

    >>> normalize_dim(-1, 3)
    2
    """
    if dim is True or dim is False:
        raise ArgumentError(labelled(op, f"dim must be an int, not bool ({dim})"))
    if 0 <= dim < ndim:
        return dim
    bound = ndim or 1
    if not -bound <= dim < bound:
        raise OutOfRange(
            "{op}: dim {given} is out of range for a tensor of {ndim} dimension{plural} (expected "
            "{low}..{high})",
            reason="dim", op=op, given=dim, ndim=ndim, low=-bound, high=bound - 1,
            plural="" if ndim == 1 else "s",
        )  # fmt: skip
    return dim + bound if dim < 0 else dim


def normalize_dims(dims: int | Sequence[int] | None, ndim: int, op: str = "") -> Ints:
    """Like `normalize_dim`, for one dim, several, or None for all; a dim may not come twice."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        return (normalize_dim(dims, ndim, op),)
    normal = tuple(normalize_dim(dim, ndim, op) for dim in dims)
    if len(set(normal)) != len(normal):
        twice = next(dim for dim in normal if normal.count(dim) > 1)
        raise ShapeError(labelled(op, f"dim {twice} appears more than once in {tuple(dims)}"))
    return normal


# Broadcasting ----------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Sequence[int], op: str = "") -> Ints:
    """The shape that all broadcast to.

    >>> broadcast_shapes((8, 1, 3), (4, 1))
    (8, 4, 3)
    """
    if not shapes:
        return ()
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return tuple(first)
    ndim = max(map(len, shapes))
    result = [1] * ndim
    for shape in shapes:
        missing = ndim - len(shape)
        for place in range(len(shape) - 1, -1, -1):
            size = shape[place]
            known = result[missing + place]
            if size == known or size == 1:
                continue
            if known != 1:
                raise _broadcast_error(shapes, missing + place, known, size, op)
            result[missing + place] = size
    return tuple(result)


def _broadcast_error(
    shapes: Sequence[Sequence[int]], dim: int, one: int, other: int, op: str
) -> ShapeError:
    return ShapeError(
        "{op}: shapes {shapes} do not broadcast: at dimension {dim}, {one} and {other} differ and "
        "neither is 1",
        reason="broadcast", op=op, operands=shapes, dim=dim, one=one, other=other,
        shapes=listed([tuple(shape) for shape in shapes]),
    )  # fmt: skip


def broadcast_strides(
    shape: Sequence[int], strides: Sequence[int], new_shape: Sequence[int]
) -> Ints:
    """Strides that read a tensor as `new_shape`, to which its shape is known to broadcast.

    A size-1 dimension that stays of size 1 keeps its stride (``TensorIterator::compute_strides``).
    """
    missing = len(new_shape) - len(shape)
    return (0,) * missing + tuple(
        0 if size == 1 and new_shape[missing + dim] != 1 else strides[dim]
        for dim, size in enumerate(shape)
    )


def expand_strides(
    shape: Sequence[int], strides: Sequence[int], new_shape: Sequence[int], op: str = "expand"
) -> tuple[Ints, Ints]:
    """Shape and strides of ``tensor.expand(new_shape)``; -1 keeps a size (ATen/ExpandUtils.cpp).

    >>> expand_strides((3, 1), (1, 1), (2, -1, 4))
    ((2, 3, 4), (0, 1, 0))
    """
    missing = len(new_shape) - len(shape)
    if missing < 0:
        raise ShapeError(
            labelled(
                op,
                f"{len(new_shape)} sizes {tuple(new_shape)} for a tensor of {len(shape)} "
                f"dimensions {tuple(shape)}; expand can add dimensions in front, never drop one",
            )
        )
    sizes = list(new_shape)
    steps = [0] * len(sizes)
    for place in range(len(sizes) - 1, -1, -1):
        target = sizes[place]
        if place < missing:
            if target < 0:
                raise ShapeError(
                    labelled(op, f"size {target} is not allowed for the new dimension {place}")
                )
            # ATen gives a new dimension the stride it would have in a contiguous tensor.
            steps[place] = sizes[place + 1] * steps[place + 1] if shape and target == 1 else 0
            continue
        size = shape[place - missing]
        if target in (-1, size):
            sizes[place], steps[place] = size, strides[place - missing]
        elif size != 1 or target < 0:
            raise ShapeError(
                "{op}: shape {0.shape} does not expand to {new}: at dimension {dim}, size {size} "
                "cannot become {target}{why}",
                reason="expand", op=op, operands=(shape,), new=tuple(new_shape), dim=place,
                size=size, target=target, why=" (only size 1 can)" if target >= 0 else "",
            )  # fmt: skip
    return tuple(sizes), tuple(steps)


# Memory formats --------------------------------------------------------------------------------


def contiguous_strides(shape: Sequence[int]) -> Ints:
    """Row-major strides; a size of 0 counts as 1, as in PyTorch.

    >>> contiguous_strides((2, 3, 4)), contiguous_strides((2, 0, 4))
    ((12, 4, 1), (4, 4, 1))
    """
    strides = [1] * len(shape)
    step = 1
    for dim in range(len(shape) - 1, -1, -1):
        strides[dim] = step
        step *= shape[dim] or 1
    return tuple(strides)


#: number of dims -> the dims of a channels-last tensor from the innermost to the outermost
_CHANNELS_LAST_ORDER: Final[dict[int, Ints]] = {3: (0, 2, 1), 4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}


def channels_last_strides(shape: Sequence[int], op: str = "") -> Ints:
    """Strides of the channels_last format: NHWC for 4 dims, NDHWC for 5 (and HWC for 3).

    >>> channels_last_strides((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    order = _CHANNELS_LAST_ORDER.get(len(shape))
    if order is None:
        raise ShapeError(
            labelled(op, f"channels_last needs a tensor of 4 or 5 dimensions, got {tuple(shape)}")
        )
    return strides_in_order(shape, order)


def strides_in_order(shape: Sequence[int], order: Sequence[int]) -> Ints:
    """Strides without gaps, with `order` naming the dims from the innermost to the outermost.

    >>> strides_in_order((2, 3), (0, 1))
    (1, 2)
    """
    strides = [0] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie in row-major order without gaps.

    The strides of size-1 dims, and of any dim of an empty tensor, do not matter.
    """
    expected = 1
    contiguous = True
    for dim in range(len(shape) - 1, -1, -1):
        size = shape[dim]
        if size == 0:
            return True
        if size != 1:
            contiguous = contiguous and strides[dim] == expected
            expected *= size
    return contiguous


def is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a 4- or 5-dim tensor is contiguous in the channels_last order."""
    ndim = len(shape)
    if ndim != 4 and ndim != 5:
        return False
    expected = 1
    for dim in _CHANNELS_LAST_ORDER[ndim]:
        if shape[dim] != 1:
            if strides[dim] != expected:
                return False
            expected *= shape[dim]
    return True


def suggests_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether ops that keep the memory format (convolution, ...) should answer in channels_last.

    Unlike `is_channels_last` gaps are allowed, and what is both formats at once counts as
    contiguous (c10/core/MemoryFormat.h, ``is_channels_last_strides_2d``).
    """
    ndim = len(shape)
    if (ndim != 4 and ndim != 5) or strides[1] == 0:
        return False
    least = 0
    for dim in _CHANNELS_LAST_ORDER[ndim]:
        if shape[dim] == 0 or strides[dim] < least:
            return False
        if dim == 0 and least == strides[1]:
            return False
        least = strides[dim] * max(shape[dim], 1)
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether some order of the dims makes the tensor contiguous: no overlap and no gap."""
    if is_contiguous(shape, strides):
        return True
    expected = 1
    for stride, size in sorted((strides[d], size) for d, size in enumerate(shape) if size != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def may_overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two indices may reach the same element; False is certain, True is "perhaps".

    From the smallest stride up, each one must step over all that lies below it.
    """
    reach = 0
    steps = [(abs(strides[d]), size) for d, size in enumerate(shape) if size != 1]
    for stride, size in sorted(steps):
        if size == 0:
            return False
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def surely_overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """PyTorch's test before an in-place write: a dimension of several elements has stride 0."""
    if 0 in shape:
        return False
    return any(stride == 0 and size > 1 for size, stride in zip(shape, strides, strict=True))


# Views -----------------------------------------------------------------------------------------


def infer_size(shape: Sequence[int], count: int, op: str = "view") -> Ints:
    """Resolve one -1 in `shape` so that it has `count` elements.

    >>> infer_size((2, -1), 6)
    (2, 3)
    """
    known = 1
    inferred = -1
    for dim, size in enumerate(shape):
        if size == -1:
            if inferred >= 0:
                raise ShapeError(
                    "{op}: only one size can be -1, got {shape}", reason="one -1", op=op,
                    shape=tuple(shape),
                )  # fmt: skip
            inferred = dim
        elif size < 0:
            raise ShapeError(
                labelled(op, f"invalid size {size} at dimension {dim} of {tuple(shape)}")
            )
        else:
            known *= size
    if inferred < 0:
        if known != count:
            raise ShapeError(
                "{op}: shape {shape} has {known} elements, the tensor has {count}",
                reason="count", op=op, shape=tuple(shape), known=known, count=count,
            )  # fmt: skip
        return tuple(shape)
    if known == 0 and count == 0:
        raise ShapeError(
            labelled(
                op, f"-1 in shape {tuple(shape)} could be any size, since the tensor has 0 elements"
            )
        )
    if known == 0 or count % known:
        raise ShapeError(
            "{op}: no size for the -1 in shape {shape} fits: the tensor has {count} elements, not "
            "a multiple of {known}",
            reason="count", op=op, shape=tuple(shape), known=known, count=count,
        )  # fmt: skip
    sizes = list(shape)
    sizes[inferred] = count // known
    return tuple(sizes)


def view_strides(
    shape: Sequence[int], strides: Sequence[int], new_shape: Sequence[int]
) -> Ints | None:
    """Strides that show the same elements as `new_shape`, or None when only a copy can.

    Both shapes must have the same number of elements (ATen's ``computeStride``).

    >>> view_strides((2, 3), (3, 1), (3, 2)), view_strides((3, 2), (1, 3), (6,))
    ((2, 1), None)
    """
    if not shape:
        return (1,) * len(new_shape)
    if 0 in shape:
        same = tuple(shape) == tuple(new_shape)
        return tuple(strides) if same else contiguous_strides(new_shape)
    steps = [0] * len(new_shape)
    view_dim = len(new_shape) - 1
    # A chunk is a run of dims that one stride walks through; the view must split at chunk borders.
    chunk_stride = strides[-1]
    chunk_count = view_count = 1
    for dim in range(len(shape) - 1, -1, -1):
        chunk_count *= shape[dim]
        if dim and (shape[dim - 1] == 1 or strides[dim - 1] == chunk_count * chunk_stride):
            continue
        while view_dim >= 0 and (view_count < chunk_count or new_shape[view_dim] == 1):
            steps[view_dim] = view_count * chunk_stride
            view_count *= new_shape[view_dim]
            view_dim -= 1
        if view_count != chunk_count:
            return None
        if dim:
            chunk_stride = strides[dim - 1]
            chunk_count = view_count = 1
    return tuple(steps) if view_dim < 0 else None


def nested_shape(
    op: str, data: Any, is_sequence: Callable[[Any], bool]
) -> tuple[tuple[int, ...], Any]:
    """The shape of nested sequences as the first one at each depth tells it, and what lies deepest.

    It is known before any item is taken: one that holds itself is an error, and one that says that
    it is endless can be.
    """
    shape: list[int] = []
    while is_sequence(data):
        if len(shape) == MOST_DIMS:
            raise ValueRangeError(
                f"{op}: too many dimensions {type(data).__name__!r}: sequences are nested more "
                f"than {MOST_DIMS} deep, or one holds itself"
            )
        shape.append(len(data))
        if not shape[-1]:
            break
        data = data[0]
    return tuple(shape), data


def nested_items(
    op: str, data: Any, shape: tuple[int, ...], is_sequence: Callable[[Any], bool]
) -> list[Any]:
    """The items of nested sequences in order, if all at one depth are as long as the first is."""
    flat: list[Any] = [data]
    for depth, size in enumerate(shape):
        deeper: list[Any] = []
        for item in flat:
            if not is_sequence(item):
                raise ValueRangeError(
                    "{op}: expected sequence of length {size} at dim {dim} (got {kind} {item}): "
                    "every row needs the same shape",
                    reason="ragged", op=op, size=size, dim=depth, kind=type(item).__name__,
                    item=shown(item),
                )  # fmt: skip
            if len(item) != size:
                raise ValueRangeError(
                    "{op}: expected sequence of length {size} at dim {dim} (got {length}): the "
                    "lists are ragged; every list at this depth needs {size} elements",
                    reason="ragged", op=op, size=size, dim=depth, length=len(item),
                )  # fmt: skip
            deeper.extend(_items(op, item, size))
        flat = deeper
    return flat


def _items(op: str, sequence: Any, size: int) -> list[Any]:
    if isinstance(sequence, (list, tuple)):
        found = list(sequence)
    else:  # its length need not be true
        found = list(itertools.islice(iter(sequence), size + 1))
    if len(found) != size:
        raise ValueRangeError(
            f"{op}: a {type(sequence).__name__} says that it has {size} items, and gives "
            f"{'more' if len(found) > size else len(found)}"
        )
    return found
