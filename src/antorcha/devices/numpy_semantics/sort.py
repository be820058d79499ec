"""Sort, Distinct and Search with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.lang.kernels import Distinct, Search, Sort
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]
Compute = Callable[[list[Any]], list[Array]]


def compute_sort(what: Sort, outs: Sequence[Layout]) -> Compute:
    shape = tuple(outs[0].shape)

    def compute(values: list[Any]) -> list[Array]:
        (a,) = values
        if what.dim is None:
            a = np.ascontiguousarray(a).reshape(-1)
            if not a.size:
                return [np.full((), np.nan if a.dtype.kind not in "iub" else np.iinfo(a.dtype).min)]
        if not a.ndim:
            return [a, np.zeros((), np.int64)][: len(outs)]
        d = what.dim or 0
        index = _picked(what, a, d, shape)
        found = np.take_along_axis(a, index, d)
        return [each.reshape(shape) for each in (found, index)[: len(outs)]]

    return compute


def _picked(what: Sort, a: Array, d: int, shape: tuple[int, ...]) -> Array:
    """The indices along d of the elements that are wanted."""
    order = order_of(a, d, what.descending)
    if what.kind == "sort":
        return order
    if what.kind == "top":
        return np.take(order, range(shape[d]), d)
    if what.kind == "kth":
        return np.take(order, [what.rank], d)
    if what.kind == "mode":
        return _commonest(a, d, order)
    nan = np.isnan(_comparable(a)) if a.dtype.kind not in "iub" else np.zeros(a.shape, bool)
    numbers = (~nan).sum(d, keepdims=True)
    if what.kind == "nanmedian":
        at = np.maximum(numbers - 1, 0) // 2
    else:
        at = np.where(numbers < a.shape[d], numbers, (a.shape[d] - 1) // 2)
    return np.take_along_axis(order, at, d)


def order_of(array: Array, axis: int, descending: bool) -> Array:
    """The indices that sort an array along an axis; equals keep their order, NaN is greatest."""
    array = _comparable(array)
    if not descending:
        return np.argsort(array, axis=axis, kind="stable")
    flipped = np.flip(np.argsort(np.flip(array, axis), axis=axis, kind="stable"), axis)
    index: Array = array.shape[axis] - 1 - flipped
    return index


def _comparable(array: Array) -> Array:
    """The array in a dtype that NumPy orders well (bfloat16 in float32)."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _commonest(a: Array, d: int, order: Array) -> Array:
    order = np.moveaxis(order, d, -1)
    rows = np.take_along_axis(np.moveaxis(a, d, -1), order, -1)
    n = rows.shape[-1]
    new = np.ones(rows.shape, bool)
    new[..., 1:] = rows[..., 1:] != rows[..., :-1]
    start = np.maximum.accumulate(np.where(new, np.arange(n), 0), -1)
    run = np.arange(n) - start  # how many equals came before, in sorted order
    last = np.argmax(run, -1)[..., None]
    return np.moveaxis(np.take_along_axis(order, last, -1), -1, d)


def compute_distinct(what: Distinct, outs: Sequence[Layout]) -> Compute:
    d = what.dim

    def compute(values: list[Any]) -> list[Array]:
        (x,) = values
        if what.consecutive:
            found = _runs(x, d)
        else:
            found = _sorted_unique(x) if d is None else _unique_rows(x, d)
        return [found[0], found[1].astype(np.int64), found[2].astype(np.int64)]

    return compute


def _sorted_unique(x: Array) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(
        x.reshape(-1), return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, inverse.reshape(x.shape), counts


def _unique_rows(x: Array, d: int) -> tuple[Array, Array, Array]:
    if x.shape[d] == 0:
        return x, np.zeros(0, np.int64), np.zeros(0, np.int64)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=d)
    return values, inverse.reshape(-1), counts


def _runs(x: Array, d: int | None) -> tuple[Array, Array, Array]:
    """Values, inverse and counts of runs of equal elements (or slices)."""
    if d is None:
        rows = x.reshape(-1, 1)
    else:
        rows = np.moveaxis(x, d, 0).reshape(x.shape[d], x.size // max(x.shape[d], 1))
    n = len(rows)
    starts = np.ones(n, np.bool_)
    if n:
        starts[1:] = (rows[1:] != rows[:-1]).any(1)
    inverse = np.cumsum(starts) - 1
    first = np.nonzero(starts)[0]
    counts = np.diff(np.append(first, n))
    values = x.reshape(-1)[first] if d is None else np.take(x, first, d)
    return values, inverse.reshape(x.shape) if d is None else inverse, counts


def compute_search(what: Search, outs: Sequence[Layout]) -> Compute:
    def compute(values: list[Any]) -> list[Array]:
        edges, x, *sorter = values
        for order in sorter:
            if order.size and (order.min() < 0 or order.max() >= edges.shape[-1]):
                raise what.refuse()
            edges = np.take_along_axis(edges, order, -1)
        return [_bisect(edges, x, what.right)]

    return compute


def _bisect(edges: Array, x: Array, right: bool) -> Array:
    """Where values belong, all at once: an element before which a value does not belong is passed,
    as PyTorch does, which decides what NaN means."""
    if not edges.size or not x.size:
        return np.zeros(x.shape, np.int64)
    lines = edges.reshape(-1, edges.shape[-1])
    wanted = x.reshape(len(lines), -1)
    low = np.zeros(wanted.shape, np.int64)
    high = np.full(wanted.shape, edges.shape[-1], np.int64)
    rows = np.arange(len(wanted))[:, None]
    while (low < high).any():
        middle = (low + high) >> 1
        edge = lines[rows, np.minimum(middle, edges.shape[-1] - 1)]
        behind = (edge > wanted) if right else (edge >= wanted)
        going = low < high
        low = np.where(going & ~behind, middle + 1, low)
        high = np.where(going & behind, middle, high)
    return low.reshape(x.shape)
