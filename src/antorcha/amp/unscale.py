"""What a gradient scaler computes: the gradients' division with a look for overflow, and the new
scale. PyTorch shows both as ops (``_amp_foreach_non_finite_check_and_unscale_``,
``_amp_update_scale_``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.ops import tensor_lists
from antorcha.ops.kinds.record import T
from antorcha.ops.update_step import UpdateSet, runs_together
from antorcha.runtime.tensor import Tensor


def check_and_unscale(
    grads: Sequence[Tensor], inv_scale: Tensor, found_inf: Tensor | None = None
) -> Tensor:
    """Multiplies gradients in place by ``inv_scale``; 1.0 where one was inf or NaN, else 0.0.
    (What overflows is known from the gradients as they came.)"""
    values: list[Any] = [g._values() if getattr(g, "is_sparse", False) else g for g in grads]
    found = tensor_lists.overflows(values)
    for group in tensor_lists.groups_of(values):
        tensor_lists.scale(group, inv_scale)
    return found if found_inf is None else T.maximum(found_inf, found)


def update_scale(
    scale: Tensor, tracker: Tensor, found: Sequence[Tensor], growth: float, backoff: float,
    interval: int,
) -> None:  # fmt: skip
    """The scale and the number of steps in a row, after a step; ``found``: 1.0 where a gradient
    overflowed. The scale never becomes inf."""
    layout = scale._layout
    if runs_together(layout.device) and layout.dtype is dtypes.float32:
        most = found[0]
        for each in found[1:]:
            most = T.maximum(most, each)
        numbers = growth, backoff, float(interval)
        tensor_lists.scale_step.together([UpdateSet((scale, tracker), (most,))], numbers, 0)
        return
    if any([float(each) for each in found]):
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
