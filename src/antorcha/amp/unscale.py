"""What a gradient scaler computes: the gradients' division with a look for overflow, and the new
scale. PyTorch shows both as ops (``_amp_foreach_non_finite_check_and_unscale_``,
``_amp_update_scale_``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


def check_and_unscale(
    grads: Sequence[Tensor], inv_scale: Tensor, found_inf: Tensor | None = None
) -> Tensor:
    """Multiplies gradients in place by ``inv_scale``; 1.0 where one was inf or NaN, else 0.0.
    (What overflows is known from the gradients as they came.)"""
    if found_inf is None:
        found_inf = T.zeros_like(inv_scale)
    for grad in grads:
        values: Any = grad
        if getattr(grad, "is_sparse", False):
            values = values._values()
        finite = T.all(T.isfinite(values))
        found_inf = T.maximum(found_inf, T.to_dtype(T.logical_not(finite), dtypes.float32))
        T.mul_(values, inv_scale)
    return found_inf


def update_scale(
    scale: Tensor, tracker: Tensor, overflow: bool, growth: float, backoff: float, interval: int
) -> None:
    """The scale and the number of steps in a row, after a step. The scale never becomes inf."""
    if overflow:
        scale.fill_(float(scale) * backoff)
        tracker.fill_(0)
        return
    steps = int(tracker) + 1
    if steps == interval:
        grown = T.mul(scale, growth)
        if T.isfinite(grown).item():
            scale.copy_(grown)
        steps = 0
    tracker.fill_(steps)
