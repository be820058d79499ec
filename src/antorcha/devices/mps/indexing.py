"""Gather, Scatter, Select and Replace on arrays of MLX's.

Indices are checked before they are used, for which the device is waited for: MLX reads anywhere. A
write whose index names a place twice keeps the last element: for each place the last number of an
element that goes there is found, by a maximum, whatever order the GPU works in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.emit import Unsupported
from antorcha.devices.mps.expressions import TABLE, Array, Compute, cast, is_float
from antorcha.devices.mps.library import in_mlx, mx
from antorcha.devices.mps.moves import first_where
from antorcha.lang.kernels import Gather, Replace, Scatter, Select
from antorcha.runtime.memory.layout import Layout


def positions(what: Gather | Scatter, size: int, k: int, index: Array) -> Array:
    """The positions in a dim of that size that the k-th index tensor says, checked."""
    index = index.astype(mx.int64)
    bad = (index < (-size if what.negative else 0)) | (index >= size)
    first = first_where(bad)
    if first is not None:
        raise what.refuse(int(index.reshape(-1)[first].item()), k)
    return mx.where(index < 0, index + size, index) if what.negative else index


def linear(what: Gather | Scatter, shape: Sequence[int], indices: Sequence[Array]) -> Array:
    """Where in the indexed dims, taken as one, the index tensors lead."""
    dims = what.dims or (0,)
    found: Any = None
    for k, (d, index) in enumerate(zip(dims, indices, strict=True)):
        at = positions(what, shape[d], k, index)
        found = at if found is None else found * shape[d] + at
    return found


def compute_gather(what: Gather, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    shape = tuple(outs[0].shape)
    kind = in_mlx(outs[0].dtype)

    def compute(values: list[Any]) -> list[Array]:
        x, *indices = values
        if not math.prod(shape) and not all([i.size for i in indices]):
            return [mx.zeros(shape, kind)]
        x = (x.reshape(1) if not x.ndim else x) if what.dims else x.reshape(-1)
        if what.at is None:
            (d,) = what.dims
            index = indices[0].reshape(indices[0].shape or (1,))
            at = positions(what, x.shape[d], 0, index)
            if not math.prod(shape):
                return [mx.zeros(shape, kind)]
            seen = x[tuple([slice(None) if k == d else slice(n) for k, n in enumerate(at.shape)])]
            return [mx.take_along_axis(seen, at, d).reshape(shape)]
        places = linear(what, x.shape, indices)
        if not math.prod(shape):
            return [mx.zeros(shape, kind)]
        found = mx.take(_table(x, what.dims or (0,)), places, 0)
        count = places.ndim
        if what.at:
            rest = range(count, found.ndim)
            found = found.transpose([*rest[: what.at], *range(count), *rest[what.at :]])
        return [found.reshape(shape)]

    return compute


def _table(x: Array, dims: Sequence[int]) -> Array:
    """x with its indexed dims as one, which is the first."""
    others = [d for d in range(x.ndim) if d not in dims]
    size = math.prod([x.shape[d] for d in dims])
    return x.transpose([*dims, *others]).reshape(size, *[x.shape[d] for d in others])


# ---- writing
def compute_scatter(what: Scatter, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    shape = tuple(outs[0].shape)
    t = outs[0].dtype
    sums = what.fold in ("add", "mean")
    if what.fold != "set" and t.itemsize == 8 and not sums:
        raise Unsupported(f"{what.fold} of {t}: Metal changes at most four bytes at once")

    def compute(values: list[Any]) -> list[Array]:
        x, *rest = values
        source = rest.pop(what.source - 1)
        if not rest[0].size:
            return [x]
        flat = x.reshape(-1) if not x.ndim or not what.dims else x
        if not hasattr(source, "ndim"):
            source = mx.array(source, x.dtype)
        source = cast(source, t)
        if what.at is None:
            rows, places, given = _by_element(what, flat, rest[0], source)
        else:
            rows, places, given = _by_slice(what, flat, rest, source)
        if t.kind == "c" and what.fold != "set":  # the parts are added each by itself
            done = _folded(what, rows.view(mx.float32), places, given.view(mx.float32))
            done = done.view(mx.complex64)
        else:
            done = _folded(what, rows, places, given)
        return [_restored(what, done, flat.shape).reshape(shape)]

    return compute


def _by_element(what: Scatter, x: Array, index: Array, source: Array) -> tuple[Array, Array, Array]:
    """Every element alone: the elements, a place for each of the source's, and these."""
    d = what.dims[0]
    index = index.reshape(index.shape or (1,))
    at = positions(what, x.shape[d], 0, index)
    places: Any = mx.array(0, mx.int64)
    for k, n in enumerate(x.shape):
        step = at if k == d else mx.arange(at.shape[k], dtype=mx.int64).reshape(
            [-1, *[1] * (at.ndim - k - 1)]
        )  # fmt: skip
        places = places * n + step
    if source.ndim:
        source = source[tuple([slice(n) for n in at.shape])]
    given = mx.broadcast_to(source, at.shape)
    return x.reshape(-1, 1), mx.broadcast_to(places, at.shape).reshape(-1), given.reshape(-1, 1)


def _by_slice(
    what: Scatter, x: Array, indices: list[Array], source: Array
) -> tuple[Array, Array, Array]:
    """Rows of the dims that are not indexed, a place for each of the source's, and these."""
    dims, at = what.dims or (0,), what.at or 0
    if not what.dims:
        source, indices = source.reshape(-1), [indices[0].reshape(-1)]
    places = linear(what, x.shape, indices)
    others = [n for d, n in enumerate(x.shape) if d not in dims]
    common = places.shape
    if not common and source.ndim > len(others):  # the dim of the one index
        source = mx.squeeze(source, at)
    wide = mx.broadcast_to(source, (*others[:at], *common, *others[at:]))
    count = len(common)
    wide = wide.transpose([*range(at, at + count), *range(at), *range(at + count, wide.ndim)])
    places = places.reshape(-1)
    if what.skipped is not None:  # what goes to a row beyond the last is dropped
        skipped = mx.broadcast_to(indices[0], common).reshape(-1) == what.skipped
        places = mx.where(skipped, math.prod([x.shape[d] for d in dims]), places)
    rows = _table(x, dims)
    return rows.reshape(rows.shape[0], -1), places, wide.reshape(places.size, -1)


def _restored(what: Scatter, rows: Array, shape: Sequence[int]) -> Array:
    """The rows as x lies."""
    if what.at is None or not what.dims:
        return rows.reshape(shape)
    others = [d for d in range(len(shape)) if d not in what.dims]
    order = [*what.dims, *others]
    back = sorted(range(len(order)), key=lambda k: order[k])
    return rows.reshape([shape[d] for d in order]).transpose(back)


def _folded(what: Scatter, rows: Array, places: Array, given: Array) -> Array:
    """The rows after the source's have been written to their places or folded into them."""
    n, kind = rows.shape[0], rows.dtype
    places = places.astype(mx.int32)
    if what.fold == "set":
        last = (
            mx.full((n + 1,), -1, mx.int32)
            .at[places]
            .maximum(mx.arange(places.size, dtype=mx.int32))[:n]
        )
        chosen = mx.take(given, mx.maximum(last, 0), 0)
        return mx.where((last >= 0)[:, None], chosen, rows)
    wide = mx.float32 if is_float(rows) else kind if kind.size == 8 else mx.int32
    fold = "or" if kind == mx.bool_ and what.fold in ("add", "mean") else what.fold
    fold = {"or": "max", "multiply": "min"}.get(fold, fold) if kind == mx.bool_ else fold
    spare = mx.zeros((1, rows.shape[1]), wide)  # where what is skipped goes
    base, given = mx.concatenate([rows.astype(wide), spare], 0), given.astype(wide)
    times = mx.zeros((n + 1,), mx.int32).at[places].add(mx.ones((places.size,), mx.int32))
    if not what.own:
        base = mx.where((times > 0)[:, None], _nothing(fold, kind, wide), base)
    done = _accumulated(fold, base, places, given)[:n]
    if kind == mx.bool_:
        return done != 0
    done = done if is_float(rows) else done.astype(kind)  # (sums of integers go round)
    if fold == "mean":
        count = mx.maximum(times[:n] + int(what.own), 1).astype(done.dtype)[:, None]
        count = mx.broadcast_to(count, done.shape)
        done = TABLE["div" if is_float(rows) else "floordiv"](done, count)
    return done.astype(kind)


def _nothing(fold: str, kind: Any, wide: Any) -> Array:
    """What a fold starts from: the value that changes nothing."""
    if fold in ("max", "min"):
        if wide == mx.float32:
            return mx.array(-math.inf if fold == "max" else math.inf, wide)
        if kind == mx.bool_:
            return mx.array(int(fold == "min"), wide)
        limits = mx.iinfo(kind)
        return mx.array(limits.min if fold == "max" else limits.max, wide)
    return mx.array(int(fold == "multiply"), wide)


def _accumulated(fold: str, base: Array, places: Array, given: Array) -> Array:
    if fold in ("add", "mean"):
        if base.dtype.size == 8:
            return base + sums_by_place(base.shape[0], places, given)
        return base.at[places].add(given)
    if fold == "multiply":
        return base.at[places].multiply(given)
    found = base.at[places].maximum(given) if fold == "max" else base.at[places].minimum(given)
    if not is_float(base):
        return found
    nan = mx.zeros(base.shape, mx.int32).at[places].maximum(mx.isnan(given).astype(mx.int32))
    return mx.where((nan > 0) | mx.isnan(base), math.nan, found)


def sums_by_place(n: int, places: Array, given: Array) -> Array:
    """For each of n places the sum of the rows of integers that go there: the differences of
    running sums, which are exact, as integers go round."""
    order = mx.argsort(places)
    ones = mx.ones((places.size,), mx.int32)
    ends = mx.cumsum(mx.zeros((n,), mx.int32).at[places].add(ones))
    none = mx.zeros((1, given.shape[1]), given.dtype)
    running = mx.concatenate([none, mx.cumsum(mx.take(given, order, 0), axis=0)], 0)
    starts = mx.concatenate([mx.zeros((1,), mx.int32), ends[:-1]])
    return mx.take(running, ends, 0) - mx.take(running, starts, 0)


# ---- masks
def compute_select(what: Select, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    def compute(values: list[Any]) -> list[Array]:
        mask = values[-1]
        shape = mask.shape
        if not what.positions:
            shape = mx.broadcast_arrays(*values)[0].shape
            mask = mx.broadcast_to(mask, shape)
        places = chosen_places((mask != 0).reshape(-1))
        if not what.positions:
            return [mx.take(mx.broadcast_to(values[0], shape).reshape(-1), places, 0)]
        found = []
        for n in reversed(shape):
            found.append(places % n)
            places = places // n
        if not found:
            return [mx.zeros((0, places.size), mx.int64)]
        return [mx.stack(found[::-1]).astype(mx.int64)]

    return compute


def chosen_places(mask: Array) -> Array:
    """Where a mask of one dim holds. It waits for the device, to learn how many these are."""
    n = mask.size
    if not n:
        return mx.zeros((0,), mx.int64)
    before = mx.cumsum(mask.astype(mx.int32))
    count = int(before[-1].item())
    places = mx.zeros((n + 1,), mx.int32)
    places[mx.where(mask, before - 1, n)] = mx.arange(n, dtype=mx.int32)
    return places[:count].astype(mx.int64)


def compute_replace(what: Replace, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    shape = tuple(outs[0].shape)
    t = outs[0].dtype

    def compute(values: list[Any]) -> list[Array]:
        x, mask, source = values
        keep = mx.broadcast_to(mask, shape)
        x = mx.broadcast_to(x, shape)
        if not keep.size:
            return [x]
        before = mx.cumsum(keep.reshape(-1).astype(mx.int32))
        count = int(before[-1].item())
        if count > source.size:
            raise what.refuse(count, source.size)
        if not count:
            return [x]
        at = mx.clip(before - 1, 0, source.size - 1)
        return [mx.where(keep, mx.take(cast(source, t).reshape(-1), at, 0).reshape(shape), x)]

    return compute
