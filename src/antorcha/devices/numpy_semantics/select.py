"""Select, Replace and Bins with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.lang.kernels import Bins, Replace, Select
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]
Compute = Callable[[list[Any]], list[Array]]


def compute_select(what: Select, outs: Sequence[Layout]) -> Compute:
    def compute(values: list[Any]) -> list[Array]:
        if not what.positions:
            x, mask = np.broadcast_arrays(*values)
            return [x[mask]]
        (mask,) = values
        found = np.nonzero(np.atleast_1d(mask))
        if mask.ndim == 0:
            return [np.empty((0, len(found[0])), np.int64)]
        return [np.stack(found).astype(np.int64)]

    return compute


def compute_replace(what: Replace, outs: Sequence[Layout]) -> Compute:
    shape = tuple(outs[0].shape)

    def compute(values: list[Any]) -> list[Array]:
        x, mask, source = values
        keep = np.broadcast_to(mask, shape)
        count = int(np.count_nonzero(keep))
        if count > source.size:
            raise what.refuse(count, source.size)
        result = np.array(np.broadcast_to(x, shape), order="C")
        result[keep] = source.reshape(-1)[:count]
        return [result]

    return compute


def compute_bins(what: Bins, outs: Sequence[Layout]) -> Compute:
    dtype = outs[0].dtype.np

    def compute(values: list[Any]) -> list[Array]:
        x, *weights = values
        if x.size and (x < 0).any():
            raise what.refuse()
        wide = weights[0].astype(np.float64) if weights else None
        return [np.bincount(x.astype(np.int64), wide, what.least).astype(dtype)]

    return compute
