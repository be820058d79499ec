"""Sort and Search on arrays of MLX's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.emit import Unsupported
from antorcha.devices.mps.expressions import Array, Compute, is_float
from antorcha.devices.mps.indexing import chosen_places
from antorcha.devices.mps.library import mx
from antorcha.devices.mps.memory import replaced_at
from antorcha.devices.mps.moves import first_where
from antorcha.lang.kernels import Bins, Distinct, Search, Sort
from antorcha.runtime.memory.layout import Layout


def compute_sort(what: Sort, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    layout = ins[0]
    shape = tuple(outs[0].shape)
    if layout.dtype.kind == "c" or not layout.numel:
        raise Unsupported(f"sorting {layout.numel} elements of {layout.dtype}")

    def compute(values: list[Any]) -> list[Array]:
        (a,) = values
        a = a.reshape(-1) if what.dim is None else a
        if not a.ndim:
            return [a, mx.zeros((), mx.int64)][: len(outs)]
        d = what.dim or 0
        index = _picked(what, a, d, shape)
        found = mx.take_along_axis(a, index, d)
        return [each.reshape(shape) for each in (found, index.astype(mx.int64))[: len(outs)]]

    return compute


def _picked(what: Sort, a: Array, d: int, shape: tuple[int, ...]) -> Array:
    """The indices along d of the elements that are wanted."""
    order = order_of(a, d, what.descending)
    if what.kind == "sort":
        return order
    if what.kind == "top":
        return mx.take(order, mx.arange(shape[d]), d)
    if what.kind == "kth":
        return mx.take(order, mx.array([what.rank]), d)
    if what.kind == "mode":
        return _commonest(a, d, order)
    nan = mx.isnan(a) if is_float(a) else mx.zeros(a.shape, mx.bool_)
    numbers = mx.sum(mx.logical_not(nan).astype(mx.int32), d, keepdims=True)
    if what.kind == "nanmedian":
        at = mx.maximum(numbers - 1, 0) // 2
    else:
        at = mx.where(numbers < a.shape[d], numbers, (a.shape[d] - 1) // 2)
    return mx.take_along_axis(order, at, d)


def order_of(x: Array, axis: int, descending: bool) -> Array:
    """The indices that sort along an axis; equals keep their order, NaN is greatest."""
    if x.dtype == mx.bool_:
        x = x.astype(mx.uint8)
    if not descending:
        return mx.argsort(x, axis).astype(mx.int32)
    back = [slice(None)] * x.ndim
    back[axis] = slice(None, None, -1)
    turned = mx.argsort(x[tuple(back)], axis).astype(mx.int32)
    return x.shape[axis] - 1 - turned[tuple(back)]


def _commonest(a: Array, d: int, order: Array) -> Array:
    order = mx.moveaxis(order, d, -1)
    rows = mx.take_along_axis(mx.moveaxis(a, d, -1), order, -1)
    n = rows.shape[-1]
    first = mx.ones((*rows.shape[:-1], 1), mx.bool_)
    new = mx.concatenate([first, rows[..., 1:] != rows[..., :-1]], -1)
    place = mx.arange(n, dtype=mx.int32)
    start = mx.cummax(mx.where(new, place, 0), axis=-1)
    last = mx.argmax(place - start, -1, keepdims=True)  # how many equals came before
    return mx.moveaxis(mx.take_along_axis(order, last, -1), -1, d)


def compute_search(what: Search, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    shape = tuple(outs[0].shape)
    if not ins[0].numel or not outs[0].numel:
        raise Unsupported("a search for nothing, or in nothing")

    def compute(values: list[Any]) -> list[Array]:
        edges, x, *sorter = values
        n = edges.shape[-1]
        for order in sorter:
            if first_where((order < 0) | (order >= n)) is not None:
                raise what.refuse()
            edges = mx.take_along_axis(edges, order, -1)
        lines = edges.reshape(-1, n)
        wanted = x.reshape(lines.shape[0], -1)
        low = mx.zeros(wanted.shape, mx.int32)
        high = mx.full(wanted.shape, n, mx.int32)
        for _ in range(n.bit_length()):
            middle = (low + high) // 2
            edge = mx.take_along_axis(lines, mx.minimum(middle, n - 1), -1)
            behind = (edge > wanted) if what.right else (edge >= wanted)
            going = low < high
            low = mx.where(going & mx.logical_not(behind), middle + 1, low)
            high = mx.where(going & behind, middle, high)
        return [low.reshape(shape)]

    return compute


# ---- distinct values and counts
def compute_distinct(what: Distinct, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    layout = ins[0]
    if what.dim is not None or layout.dtype.kind == "c" or not layout.numel:
        raise Unsupported("distinct slices, complex numbers, or nothing")

    def compute(values: list[Any]) -> list[Array]:
        x = values[0].reshape(-1)
        n = x.size
        order = mx.arange(n, dtype=mx.int32) if what.consecutive else order_of(x, 0, False)
        line = mx.take(x, order, 0)
        new = mx.concatenate([mx.ones((1,), mx.bool_), line[1:] != line[:-1]])
        group = mx.cumsum(new.astype(mx.int32)) - 1
        starts = chosen_places(new)
        ends = mx.concatenate([starts[1:], mx.array([n], mx.int64)])
        inverse = replaced_at(mx.zeros((n,), mx.int32), order, group)
        inverse = inverse.reshape(values[0].shape).astype(mx.int64)
        return [mx.take(line, starts, 0), inverse, ends - starts]

    return compute


def compute_bins(what: Bins, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    if not ins[0].numel:
        raise Unsupported("counts of nothing")

    def compute(values: list[Any]) -> list[Array]:
        x, *weights = values
        if first_where(x < 0) is not None:
            raise what.refuse()
        count = max(int(mx.max(x).item()) + 1, what.least)
        given = weights[0].astype(mx.float32) if weights else mx.ones((x.size,), mx.int32)
        return [mx.zeros((count,), given.dtype).at[x.astype(mx.int32)].add(given)]

    return compute
