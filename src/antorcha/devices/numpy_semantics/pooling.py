"""Pooling with NumPy: all windows at once, tap by tap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from antorcha.errors import ShapeError
from antorcha.lang.kernels import Pooling
from antorcha.lang.windows import Windows
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]


def outside_of_plane() -> ShapeError:
    return ShapeError("max_pool: an index is outside of its plane")


def compute_pooling(what: Pooling, outs: Sequence[Layout]) -> Callable[[list[Any]], list[Array]]:
    layout = outs[0]
    shape = tuple(layout.shape)
    cut = layout.ndim - what.dims
    lead, inside = math.prod(shape[:cut]), math.prod(shape[cut:])

    def planes(x: Array, size: int) -> Array:
        return np.reshape(x, (lead, size))

    def compute(values: list[Any]) -> list[Array]:
        windows = what.windows
        if what.kind == "max gradient":
            g, places = [planes(v, math.prod(v.shape[cut:])) for v in values]
            found = [_scattered(g, places, inside)]
        elif what.kind == "average gradient":
            assert windows is not None
            found = [_spread(planes(values[0], windows.results), windows)]
        else:
            assert windows is not None
            found = _forward(what.kind, planes(values[0], windows.inside), windows)
        return [each.reshape(shape) for each in found[: len(outs)]]

    return compute


def _forward(kind: str, x: Array, windows: Windows) -> list[Array]:
    """The results, and where the maxima are in their planes."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x
    lowest: Any = -np.inf if wide.dtype.kind == "f" else np.iinfo(wide.dtype).min
    acc = np.full((len(x), windows.results), lowest if kind == "max" else 0, wide.dtype)
    best = np.broadcast_to(windows.bases(), acc.shape).copy()
    for spot, ok in _taps(windows) if acc.size else ():
        v = wide[:, np.where(ok, spot, 0)]
        if kind == "max":
            better = ((v > acc) | (v != v)) & ok
            acc = np.where(better, v, acc)
            best = np.where(better, spot, best)
        else:
            acc = acc + np.where(ok, v, 0)
    if kind == "average":
        size = windows.divisors()
        acc = acc / size if acc.dtype.kind == "f" else np.trunc(acc / size)
    return [acc.astype(x.dtype), best]


def _scattered(g: Array, places: Array, inside: int) -> Array:
    """Each result's gradient at the element that it was."""
    result = np.zeros((len(g), inside), g.dtype)
    if places.size and (places.min() < 0 or places.max() >= inside):
        raise outside_of_plane()
    np.add.at(result, (np.broadcast_to(np.arange(len(g))[:, None], places.shape), places), g)
    return result


def _spread(g: Array, windows: Windows) -> Array:
    """Each result's gradient shared out among its window."""
    result = np.zeros((len(g), windows.inside), g.dtype)
    share = g / windows.divisors()
    for spot, ok in _taps(windows):
        where: Any = (slice(None), spot[ok])
        np.add.at(result, where, share[:, ok].astype(result.dtype))
    return result


def _taps(windows: Windows) -> Iterator[tuple[Array, Array]]:
    """For each tap of the longest window: where it is for every result, and whether it counts."""
    bases = windows.bases()
    counts = [windows.counts(k) for k in range(3)]
    steps = windows.steps()
    for tap in np.ndindex(*windows.most):
        ok = np.ones(bases.shape, bool)
        for k in range(3):
            ok &= tap[k] < counts[k]
        yield bases + sum([t * s for t, s in zip(tap, steps, strict=True)]), ok
