"""Attention and its gradient with NumPy: all scores at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.lang.kernels import Attention, AttentionGradient
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]


def _scores(query: Array, key: Array, scale: float, causal: bool) -> Array:
    scores: Array = np.matmul(query, np.swapaxes(key, -2, -1)) * query.dtype.type(scale)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return scores


def compute_attention(
    what: Attention, outs: Sequence[Layout]
) -> Callable[[list[Any]], list[Array]]:
    def compute(values: list[Any]) -> list[Array]:
        query, key, value = values
        scores = _scores(query, key, what.scale, what.causal)
        top = scores.max(-1, keepdims=True)
        if what.causal:
            top = np.where(top == -np.inf, 0, top)
        with np.errstate(all="ignore"):
            weights = np.exp(scores - top)
            total = weights.sum(-1, keepdims=True)
            sums = (top + np.log(total))[..., 0]
            weights = weights / (np.where(total == 0, 1, total) if what.causal else total)
        return [np.matmul(weights.astype(query.dtype), value), sums][: max(len(outs), 1)]

    return compute


def compute_attention_gradient(
    what: AttentionGradient, outs: Sequence[Layout]
) -> Callable[[list[Any]], list[Array]]:
    def compute(values: list[Any]) -> list[Array]:
        wide = np.float64 if values[0].dtype == np.float64 else np.float32
        query, key, value, out, sums, grad = [v.astype(wide) for v in values]
        scores = _scores(query, key, what.scale, what.causal)
        with np.errstate(all="ignore"):
            if what.causal:
                sums = np.where(sums == -np.inf, 0, sums)
            weights = np.exp(scores - sums[..., None])
            means = (grad * out).sum(-1, keepdims=True)
            toward = weights * (np.matmul(grad, np.swapaxes(value, -2, -1)) - means)
            toward = toward * wide(what.scale)
            return [
                np.matmul(toward, key),
                np.matmul(np.swapaxes(toward, -2, -1), query),
                np.matmul(np.swapaxes(weights, -2, -1), grad),
            ]

    return compute
