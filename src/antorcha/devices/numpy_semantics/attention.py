"""Attention with NumPy: all scores at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.lang.kernels import Attention
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]


def compute_attention(
    what: Attention, outs: Sequence[Layout]
) -> Callable[[list[Any]], list[Array]]:
    def compute(values: list[Any]) -> list[Array]:
        query, key, value = values
        scores = np.matmul(query, np.swapaxes(key, -2, -1)) * query.dtype.type(what.scale)
        if what.causal:
            scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
        top = scores.max(-1, keepdims=True)
        if what.causal:
            top = np.where(top == -np.inf, 0, top)
        with np.errstate(all="ignore"):
            weights = np.exp(scores - top)
            total = weights.sum(-1, keepdims=True)
            weights = weights / (np.where(total == 0, 1, total) if what.causal else total)
        return [np.matmul(weights.astype(query.dtype), value)]

    return compute
