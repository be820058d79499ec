"""Searching, sorting and sets, by the array API standard.

See https://data-apis.org/array-api/latest/API_specification/searching_functions.html.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from antorcha.array_api.arrays import like, number, operands, plain, wrapped
from antorcha.array_api.types import beside_number
from antorcha.core import dtypes as d
from antorcha.errors import ArgumentError, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the largest element is, along an axis; among all where it is None."""
    return like(T.argmax(plain(x), axis, keepdims), x)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the smallest element is, along an axis; among all where it is None."""
    return like(T.argmin(plain(x), axis, keepdims), x)


def nonzero(x: Any, /) -> Any:
    """The indices of what is not zero, an array for each dim.

    >>> xp.nonzero(xp.asarray([0, 3, 4]))
    (Array([1, 2]),)
    """
    if not x._layout.ndim:
        raise ShapeError("nonzero: an array of one dim and more is wanted, not one of none")
    return like(tuple(T.nonzero(plain(x), as_tuple=True)), x)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where elements of ``x2`` would go in the sorted vector ``x1``.

    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]), side="right")
    Array([2, 2])
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    a, b = operands("searchsorted", x1, x2)
    b = b if isinstance(b, Tensor) else number(b, a)
    order = None if sorter is None else T.to_dtype(plain(sorter), d.int64)
    return like(T.searchsorted(a, b, right=side == "right", sorter=order), x1, x2)


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """``x1`` where the condition holds, else ``x2``.

    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    Array([1, 0])
    """
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        where_ = condition._layout.device
        numbers = [wrapped(T.full_layout((), each, d.scalar_dtype(type(each)), where_))
                   for each in (x1, x2)]  # fmt: skip
        return where(condition, *numbers)
    a, b = operands("where", x1, x2)
    for one, other in ((a, b), (b, a)):
        if not isinstance(one, Tensor):
            wide = beside_number(other._layout.dtype, one)
            a = T.full_layout((), a, wide, other._layout.device) if one is a else a
            b = T.full_layout((), b, wide, other._layout.device) if one is b else b
    a, b = operands("where", a, b)
    return like(T.where(plain(condition), a, b), condition, x1, x2)


# ------------------------------------------------------------------------------------- sorting
def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order, along an axis."""
    return like(T.sort(plain(x), axis, descending, stable=stable)[0], x)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The indices that would put the elements in order, along an axis.

    >>> xp.argsort(xp.asarray([3, 1, 2]))
    Array([1, 2, 0])
    """
    return like(T.sort(plain(x), axis, descending, stable=stable)[1], x)


# ---------------------------------------------------------------------------------------- sets
class UniqueAllResult(NamedTuple):
    """What ``unique_all`` gives."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """What ``unique_counts`` gives."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """What ``unique_inverse`` gives."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAllResult:
    """The distinct elements in order, where each comes first, which of them each element is, and
    how often each comes. (Each NaN is one of its own.)

    >>> xp.unique_all(xp.asarray([3, 1, 3])).counts
    Array([1, 2])
    """
    flat = T.flatten(plain(x))
    ordered, at = _in_order(flat)
    count = flat._layout.numel
    if not count:
        empty = T.zeros((0,), dtype=d.int64, device=flat._layout.device)
        inverse = T.reshape(T.clone(empty), tuple(x._layout.shape))
        found = UniqueAllResult(T.clone(flat), empty, inverse, T.clone(empty))
        return like(found, x)  # type: ignore[no-any-return]
    first = T.cat([T.ones((1,), dtype=d.bool_), T.ne(ordered[1:], ordered[:-1])], 0)
    groups = T.sub(T.cumsum(T.to_dtype(first, d.int64), 0), 1)
    starts = T.nonzero(first, as_tuple=True)[0]
    ends = T.cat([starts[1:], T.full_layout((1,), count, d.int64, starts._layout.device)], 0)
    inverse = T.scatter_(T.empty_like(groups), 0, at, groups)
    found = UniqueAllResult(
        ordered[first], at[first], T.reshape(inverse, tuple(x._layout.shape)), T.sub(ends, starts)
    )
    return like(found, x)  # type: ignore[no-any-return]


def _in_order(flat: Tensor) -> tuple[Tensor, Tensor]:
    """The elements in order, and where they were; complex numbers by their real parts first."""
    if flat._layout.dtype.kind != "c":
        ordered, at = T.sort(flat, 0, False, stable=True)
        return ordered, at
    at = T.sort(T.imag(flat), 0, False, stable=True)[1]
    at = at[T.sort(T.real(flat)[at], 0, False, stable=True)[1]]
    return flat[at], at


def unique_counts(x: Any, /) -> UniqueCountsResult:
    """The distinct elements in order, and how often each comes."""
    found = unique_all(x)
    return UniqueCountsResult(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverseResult:
    """The distinct elements in order, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Any:
    """The distinct elements in order."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Which elements of ``x1`` are among those of ``x2``?

    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2, 4]))
    Array([False,  True, False])
    """
    a, b = operands("isin", x1, x2)
    a = a if isinstance(a, Tensor) else number(a, b)
    b = b if isinstance(b, Tensor) else number(b, a)
    a, b = operands("isin", a, b)
    return like(T.isin(a, b, invert=invert), x1, x2)
