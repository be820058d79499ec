"""GridSample with NumPy: tap by tap, all places of all images at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from antorcha.lang.layer_kernels import GridSample
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]
CUBIC = -0.75


def _padded(what: GridSample, x: Array, n: int) -> tuple[Array, Array]:
    """Places moved to the border or reflected inside, and how they move with x."""
    slope = np.ones_like(x)
    if what.padding == 0:
        return x, slope
    if what.padding == 2:
        low, span = (0.0, n - 1.0) if what.align else (-0.5, float(n))
        far = abs(x - low)
        turns = np.floor(far / span)
        rest, odd = far - turns * span, turns % 2 == 1
        slope = np.where(odd ^ (x < low), -slope, slope)
        x = np.where(odd, span - rest, rest) + low if span else np.zeros_like(x)
    slope = np.where((x > 0) & (x < n - 1), slope, 0)
    return np.where(x > 0, np.minimum(x, n - 1), 0), slope


def _cubic(k: int, t: Array) -> tuple[Array, Array]:
    """The weight of the k-th of four elements, and its slope."""
    d, sign = (t + 1, t, 1 - t, 2 - t)[k], 1 if k < 2 else -1
    a = CUBIC
    if k in (1, 2):
        weight, slope = ((a + 2) * d - (a + 3)) * d * d + 1, (3 * (a + 2) * d - 2 * (a + 3)) * d
    else:
        weight = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        slope = (3 * a * d - 10 * a) * d + 8 * a
    return weight, slope * sign


def _along(what: GridSample, x: Array, n: int) -> list[tuple[Array, Array, Array]]:
    """The taps along an axis: elements, weights and slopes by x as it was given."""
    scale = (n - 1) / 2 if what.align else n / 2
    x = (x + 1) * scale - (0 if what.align else 0.5)
    if what.mode == 2:
        low = np.floor(x)
        found = [(_padded(what, low + (k - 1), n)[0], *_cubic(k, x - low)) for k in range(4)]
    else:
        x, moves = _padded(what, x, n)
        low = np.floor(x)
        found = [(low, 1 - (x - low), -moves), (low + 1, x - low, moves)]
        if what.mode == 1:
            found = [(np.rint(x), np.ones_like(x), np.zeros_like(x))]
    return [(at, weight, slope * scale) for at, weight, slope in found]


def _taps(
    what: GridSample, places: Array, sizes: Sequence[int]
) -> Iterator[tuple[Array, Array, list[Array]]]:
    """Each tap's element in a plane, weight, and slopes along the axes; 0 where it has none."""
    shape = (places.shape[0], 1, math.prod(places.shape[1:-1]))
    axes = [_along(what, places[..., a].reshape(shape), n) for a, n in enumerate(sizes)]
    for taps in itertools.product(*axes):
        inside = np.all(
            [(at >= 0) & (at < n) for (at, _, _), n in zip(taps, sizes, strict=True)], 0
        )
        index = np.zeros(shape, np.int64)
        for (at, _, _), n in zip(reversed(taps), reversed(sizes), strict=True):
            index = index * n + np.where(inside, at, 0).astype(np.int64)
        weights = [w for _, w, _ in taps]
        slopes = [
            math.prod([weights[b] for b in range(len(taps)) if b != a], start=taps[a][2])
            for a in range(len(taps))
        ]
        yield index, np.where(inside, math.prod(weights), 0), [np.where(inside, s, 0)
                                                               for s in slopes]  # fmt: skip


def compute_grid_sample(
    what: GridSample, outs: Sequence[Layout]
) -> Callable[[list[Any]], list[Array]]:
    shape = tuple(outs[0].shape)

    def compute(values: list[Any]) -> list[Array]:
        places, image = values[-1], shape if what.kind == "images" else values[-2].shape
        rows = (*image[:2], math.prod(image[2:]))
        out = np.zeros(rows if what.kind == "images" else shape, places.dtype)
        flat = out.reshape(*shape[:2], -1) if what.kind == "values" else out
        given = values[0].reshape(*image[:2], -1)
        with np.errstate(all="ignore"):
            for index, weight, slopes in _taps(what, places, image[:1:-1]):
                many = np.broadcast_to(index, (*image[:2], index.shape[2]))
                if what.kind == "images":
                    n, c = np.ogrid[: image[0], : image[1]]
                    np.add.at(out, (n[..., None], c[..., None], many), given * weight)
                    continue
                x = given if what.kind == "values" else values[1].reshape(rows)
                read = np.take_along_axis(x, many, 2)
                if what.kind == "values":
                    flat += np.where(weight == 0, 0, read * weight)
                    continue
                for a, slope in enumerate(slopes):
                    out[..., a] += (given * read * slope).sum(1).reshape(shape[:-1])
        return [out.reshape(shape)]

    return compute
