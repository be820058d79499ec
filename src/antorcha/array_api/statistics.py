"""Sums, means, the largest and the smallest: the folds of the array API standard.

See https://data-apis.org/array-api/latest/API_specification/statistical_functions.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.array_api.arrays import axes_of, like, plain
from antorcha.core import dtypes as d
from antorcha.core import shapes
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T


def _sum_dtype(x: Any, dtype: Any) -> Any:
    """The dtype of a sum: of small integers, the default one of their kind."""
    own = x._layout.dtype
    if dtype is not None or own.kind not in "iu":
        return dtype or (d.int64 if own.kind == "b" else own)
    return d.int64 if own.kind == "i" else d.uint64


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    return shapes.normalize_dims(axes_of(axis), x._layout.ndim)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum of the elements, along axes.

    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0)
    Array([4, 6])
    """
    chosen = _sum_dtype(x, dtype)
    if axis == ():
        return like(T.to_dtype(T.clone(plain(x)), chosen), x)
    return like(T.sum(plain(x), axes_of(axis), keepdims, dtype=chosen), x)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product of the elements, along axes.

    >>> xp.prod(xp.asarray([[1, 2], [3, 4]]))
    Array(24)
    """
    chosen = _sum_dtype(x, dtype)
    result = T.to_dtype(plain(x), chosen)
    for each in sorted(_axes(x, axis), reverse=True):
        result = T.prod(result, each, keepdims, dtype=chosen)
    return like(T.clone(result) if result is x else result, x)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean of the elements, along axes."""
    if axis == ():
        return like(T.clone(plain(x)), x)
    return like(T.mean(plain(x), axes_of(axis), keepdims), x)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance of the elements, along axes: over the count less ``correction``.

    >>> xp.var(xp.asarray([1., 2., 3.]), correction=1)
    Array(1.)
    """
    if axis == ():
        return like(T.zeros_like(plain(x)), x)
    return like(T.var(plain(x), axes_of(axis), correction=correction, keepdim=keepdims), x)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation of the elements, along axes."""
    if axis == ():
        return like(T.zeros_like(plain(x)), x)
    return like(T.std(plain(x), axes_of(axis), correction=correction, keepdim=keepdims), x)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest element, along axes."""
    return _extreme("max", x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest element, along axes."""
    return _extreme("min", x, axis, keepdims)


def _extreme(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    if not x._layout.numel and 0 in [x._layout.shape[each] for each in _axes(x, axis)]:
        raise ValueRangeError(f"{name}: there is none of no elements, in shape {tuple(x.shape)}")
    if axis == ():
        return like(T.clone(plain(x)), x)
    op = T.amax if name == "max" else T.amin
    return like(op(plain(x), () if axis is None else axes_of(axis), keepdims), x)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Are all elements, along axes, other than zero?"""
    if axis == ():
        return like(T.to_dtype(plain(x), d.bool_), x)
    return like(T.all(T.to_dtype(plain(x), d.bool_), axes_of(axis), keepdims), x)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Is any element, along axes, other than zero?"""
    if axis == ():
        return like(T.to_dtype(plain(x), d.bool_), x)
    return like(T.any(T.to_dtype(plain(x), d.bool_), axes_of(axis), keepdims), x)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements, along axes, are not zero.

    >>> xp.count_nonzero(xp.asarray([0, 3, 4]))
    Array(2)
    """
    return sum(like(T.ne(plain(x), 0), x), axis=axis, keepdims=keepdims)


def _running(
    op: Any, start: int, x: Any, axis: int | None, dtype: Any, include_initial: bool
) -> Any:
    if axis is None:
        if x._layout.ndim != 1:
            raise ValueRangeError("of an array of several dims, an axis must be named")
        axis = 0
    result = op(plain(x), axis, dtype=_sum_dtype(x, dtype))
    if include_initial:
        shape = list(result._layout.shape)
        shape[axis] = 1
        first = T.full_layout(tuple(shape), start, result._layout.dtype, result._layout.device)
        result = T.cat([first, result], axis)
    return like(result, x)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """The sums of the elements up to each, along an axis.

    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6])
    """
    return _running(T.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """The products of the elements up to each, along an axis."""
    return _running(T.cumprod, 1, x, axis, dtype, include_initial)
