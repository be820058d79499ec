"""Resampling with NumPy: all results at once, tap by tap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.lang.kernels import Resample
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]


def compute_resample(what: Resample, outs: Sequence[Layout]) -> Callable[[list[Any]], list[Array]]:
    def compute(values: list[Any]) -> list[Array]:
        lines = np.moveaxis(values[0], what.dim, -1)
        if what.weights is None:
            found = lines[..., what.places[0]]
        else:
            found = _sums(lines, what.places, what.weights)
        return [np.moveaxis(found, -1, what.dim)]

    return compute


def _sums(lines: Array, places: Array, weights: Array) -> Array:
    total = np.zeros((*lines.shape[:-1], places.shape[1]), np.result_type(lines, weights))
    for t, (at, weight) in enumerate(zip(places, weights, strict=True)):
        part = lines[..., np.maximum(at, 0)] * weight
        total = np.where(at < 0, total, part if t == 0 else total + part)
    return total
