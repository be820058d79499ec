"""Arrays in other shapes and orders, by the array API standard.

See https://data-apis.org/array-api/latest/API_specification/manipulation_functions.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.array_api.arrays import axes_of, like, operands, plain
from antorcha.array_api.types import dtype_of
from antorcha.core import shapes
from antorcha.core.dtypes import int64
from antorcha.errors import ArgumentError, ShapeError, ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

DEFAULT_INDEX = int64


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The array in another dtype; ``copy=False`` gives the array itself where it has it.

    >>> xp.astype(xp.asarray([1.5]), xp.int32)
    Array([1], dtype=torch.int32)
    """
    if x._layout.dtype.kind == "c" and dtype.kind != "c":
        raise ArgumentError("astype: a complex array has no real dtype; take xp.real or xp.abs")
    result = plain(x) if device is None else plain(x).to(device)
    if dtype is not dtype_of(x):
        return like(T.to_dtype(result, dtype), x)
    return like(T.clone(result), x) if copy else x


def broadcast_arrays(*arrays: Any) -> Any:
    """The arrays, expanded to their common shape."""
    return like(tuple(T.broadcast_tensors(*[plain(each) for each in arrays])), *arrays)


def broadcast_shapes(*shapes_: Any) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    >>> xp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return tuple(shapes.broadcast_shapes(*shapes_))
    except ShapeError as error:
        raise ValueRangeError(str(error)) from None


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """The array, expanded to a shape."""
    return like(T.broadcast_to(plain(x), tuple(shape)), x)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """The arrays one behind the other along an axis; all in a row where it is None."""
    given = operands("concat", *arrays)
    if axis is None:
        given, axis = [T.flatten(each) for each in given], 0
    return like(T.cat(given, axis), *arrays)


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """The arrays along a new axis."""
    return like(T.stack(operands("stack", *arrays), axis), *arrays)


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """The slices of an array along an axis."""
    return like(tuple(T.unbind(plain(x), axis)), x)


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    """The array with further axes of size 1.

    >>> xp.expand_dims(xp.ones((2, 3)), (0, -1)).shape
    torch.Size([1, 2, 3, 1])
    """
    axes = axis if isinstance(axis, tuple) else (axis,)
    ndim = x._layout.ndim + len(axes)
    result = plain(x)
    places = [shapes.normalize_dim(each, ndim, op="expand_dims") for each in axes]
    if len(set(places)) < len(places):
        raise ValueRangeError(f"expand_dims: an axis appears more than once in {axis}")
    for each in sorted(places):
        result = T.unsqueeze(result, each)
    return like(result, x)


def squeeze(x: Any, /, axis: Any) -> Any:
    """The array without these axes, which have size 1."""
    axes = shapes.normalize_dims(axis, x._layout.ndim, op="squeeze")
    if any([x._layout.shape[each] != 1 for each in axes]):
        raise ValueRangeError(
            f"squeeze: not all of the axes {axis} have size 1 in {tuple(x.shape)}"
        )
    return like(T.squeeze(plain(x), axes), x)


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """The array with its order along axes reversed: all where none is named."""
    axes = shapes.normalize_dims(axes_of(axis), x._layout.ndim, op="flip")
    return like(T.flip(plain(x), axes) if axes else T.clone(plain(x)), x)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """The array with some axes in other places."""
    return like(T.movedim(plain(x), source, destination), x)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """The array with its axes in another order."""
    return like(T.permute(plain(x), tuple(axes)), x)


def matrix_transpose(x: Any, /) -> Any:
    """The transposes of a stack of matrices."""
    if x._layout.ndim < 2:
        raise ShapeError(f"matrix_transpose: 2 dims and more are wanted, not {tuple(x.shape)}")
    return like(T.transpose(plain(x), -2, -1), x)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Each element, or slice along an axis, several times.

    >>> xp.repeat(xp.asarray([1, 2]), 2)
    Array([1, 1, 2, 2])
    """
    counts = repeats
    if isinstance(repeats, Tensor):
        counts = T.to_dtype(plain(repeats), DEFAULT_INDEX)
    result = plain(x) if axis is not None else T.flatten(plain(x))
    return like(T.repeat_interleave(result, counts, 0 if axis is None else axis), x)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """The elements in another shape: a view where it can be, unless ``copy`` says.

    >>> xp.reshape(xp.arange(6), (2, 3)).shape
    torch.Size([2, 3])
    """
    result = T.contiguous(T.clone(plain(x))) if copy else plain(x)
    if copy is False:
        try:
            return like(T.view(result, tuple(shape)), x)
        except ShapeError as error:
            raise ValueRangeError(f"reshape: this needs a copy, and copy=False: {error}") from None
    return like(T.reshape(result, tuple(shape)), x)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """The elements moved along axes; what leaves at one end comes in at the other."""
    moves, axes = shift, axis
    if axis is not None:
        axes = axis if isinstance(axis, (tuple, list)) else (axis,)
        moves = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    result = T.roll(plain(x), moves, () if axes is None else tuple(axes))
    return like(result, x)


def tile(x: Any, repetitions: Any, /) -> Any:
    """The array side by side with itself, so many times along each axis."""
    return like(T.tile(plain(x), tuple(repetitions)), x)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The slices at a vector of indices along an axis.

    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0]))
    Array([7, 5])
    """
    if axis is None:
        if x._layout.ndim != 1:
            raise ValueRangeError("take: of an array of several dims, an axis must be named")
        axis = 0
    at = T.to_dtype(plain(indices), DEFAULT_INDEX)
    axis = shapes.normalize_dim(axis, x._layout.ndim, op="take")
    return like(plain(x)[(*[slice(None)] * axis, at)], x, indices)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements at indices along an axis, which broadcast to the array along the others."""
    at = T.to_dtype(plain(indices), DEFAULT_INDEX)
    size = x._layout.shape[axis]
    at = T.where(T.lt(at, 0), T.add(at, size), at)
    return like(T.take_along_dim(plain(x), at, axis), x, indices)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours along an axis, ``n`` times."""
    given = [each if each is None else plain(each) for each in (prepend, append)]
    return like(T.diff(plain(x), n, axis, *given), x)
