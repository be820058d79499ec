"""Gather, Scatter and Bags with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.lang.kernels import Bags, Gather, Scatter
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]
Compute = Callable[[list[Any]], list[Array]]
FOLDS: dict[str, Any] = {
    "add": np.add, "mean": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
FOLDS_OF_BOOLS: dict[str, Any] = FOLDS | {
    "add": np.logical_or, "mean": np.logical_or, "multiply": np.logical_and,
}  # fmt: skip


def compute_gather(what: Gather, outs: Sequence[Layout]) -> Compute:
    shape = tuple(outs[0].shape)

    def compute(values: list[Any]) -> list[Array]:
        x, *indices = values
        if not indices[0].size:
            return [np.empty(shape, x.dtype)]
        x = np.atleast_1d(x) if what.dims else x.reshape(-1)
        seen, where = positions(what, x, indices)
        found = seen[where]
        if what.at is not None:
            count = where[0].ndim
            found = np.moveaxis(found, range(count), range(what.at, what.at + count))
        return [found.reshape(shape)]

    return compute


def positions(
    what: Gather | Scatter, x: Array, indices: list[Array]
) -> tuple[Array, tuple[Array, ...]]:
    """x seen so that NumPy's index of it, the second, begins with its first dim."""
    dims = what.dims or (0,)
    found = [_checked(what, x.shape[d], k, index)
             for k, (d, index) in enumerate(zip(dims, indices, strict=True))]  # fmt: skip
    if what.at is None:
        index = np.atleast_1d(found[0])
        where: list[Any] = [*np.indices(index.shape, sparse=True)]
        where[dims[0]] = index
        return x, tuple(where)
    others = [d for d in range(x.ndim) if d not in dims]
    return np.transpose(x, (*dims, *others)), tuple(np.broadcast_arrays(*found))


def _checked(what: Gather | Scatter, size: int, k: int, index: Array) -> Array:
    """The positions in a dim of that size that the k-th index tensor says."""
    bad = (index < (-size if what.negative else 0)) | (index >= size)
    if bad.any():
        raise what.refuse(int(index[bad][0]), k)
    return np.where(index < 0, index + size, index) if what.negative else index


def compute_scatter(what: Scatter, outs: Sequence[Layout]) -> Compute:
    def compute(values: list[Any]) -> list[Array]:
        x, *rest = values
        source = rest.pop(what.source - 1)
        result = np.array(x, order="C")
        if rest[0].size:
            target = result if result.ndim and what.dims else result.reshape(-1)
            if not what.dims:
                source, rest = source.reshape(-1), [rest[0].reshape(-1)]
            seen, where = positions(what, target, rest)
            _fold(what, seen, *_written(what, seen, where, source))
        return [result]

    return compute


def _written(
    what: Scatter, seen: Array, where: tuple[Array, ...], source: Any
) -> tuple[tuple[Array, ...], Any]:
    """The positions that are written to, and the source's elements for them."""
    if what.at is None:
        if isinstance(source, np.ndarray):
            source = np.atleast_1d(source)[tuple([slice(n) for n in where[what.dims[0]].shape])]
        return where, source
    common, others = where[0].shape, seen.shape[len(where) :]
    if not common and source.ndim > len(others):  # the dim of the one index
        source = np.squeeze(source, what.at)
    wide = np.broadcast_to(source, (*others[: what.at], *common, *others[what.at :]))
    wide = np.moveaxis(wide, range(what.at, what.at + len(common)), range(len(common)))
    keep = np.ones(common, bool) if what.skipped is None else where[0] != what.skipped
    return tuple([index[keep] for index in where]), wide[keep]


def _fold(what: Scatter, out: Array, where: tuple[Array, ...], source: Any) -> None:
    if what.fold == "set":
        out[where] = source
        return
    if not what.own:
        least, most = _bounds(out.dtype)
        out[where] = {"max": least, "min": most, "multiply": 1}.get(what.fold, 0)
    folds = FOLDS_OF_BOOLS if out.dtype.kind == "b" else FOLDS
    folds[what.fold].at(out, where, source)
    if what.fold == "mean":
        count = np.full(out.shape, int(what.own), np.int64)
        np.add.at(count, where, 1)
        count[count == 0] = 1
        if out.dtype.kind in "iu":
            np.floor_divide(out, count, out=out, casting="unsafe")
        else:
            np.divide(out, count.astype(out.dtype), out=out)


def _bounds(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min, info.max
    return (False, True) if dtype.kind == "b" else (-np.inf, np.inf)


def compute_bags(what: Bags, outs: Sequence[Layout]) -> Compute:
    count = outs[0].shape[0]

    def compute(values: list[Any]) -> list[Array]:
        x, index, *rest = values
        bad = (index < 0) | (index >= len(x))
        if bad.any():
            raise what.refuse(int(index[bad][0]), 0)
        starts = np.arange(count) * what.size if what.size is not None else rest.pop(0)
        ends = [*starts[1:], len(index)]
        kept = np.ones(len(index), bool) if what.skipped is None else index != what.skipped
        result = np.zeros((count, x.shape[1]), x.dtype)
        best = np.full(result.shape, -1, np.int64)
        for b, (lo, hi) in enumerate(zip(starts, ends, strict=True)):
            chosen = lo + np.flatnonzero(kept[lo:hi])
            rows = x[index[chosen]] * rest[0][chosen, None] if rest else x[index[chosen]]
            if not len(chosen):
                continue
            if what.fold == "max":
                first = np.argmax(rows, 0)
                best[b] = chosen[first]
                result[b] = np.take_along_axis(rows, first[None], 0)[0]
            else:
                result[b] = rows.sum(0) if what.fold == "sum" else rows.mean(0)
        return [result, best][: len(outs)]

    return compute
