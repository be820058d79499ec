"""Arrange, Range and Check on arrays of MLX's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.emit import Unsupported
from antorcha.devices.mps.expressions import Array, Compute
from antorcha.devices.mps.library import mx
from antorcha.lang.kernels import Arrange, Check, Range
from antorcha.runtime.memory.layout import Layout


def compute_arrange(what: Arrange, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    def compute(values: list[Any]) -> list[Array]:
        (x,) = values
        if what.backwards:
            steps = [slice(None, None, -1 if d in what.backwards else 1) for d in range(x.ndim)]
            x = x[tuple(steps)]
        x = x.transpose(what.order) if x.ndim else x
        if not what.triangle:
            return [x]
        rows = mx.arange(x.shape[-2], dtype=mx.int64)[:, None]
        columns = mx.arange(x.shape[-1], dtype=mx.int64)
        distance = columns - rows
        lower = what.triangle == "lower"
        keep = distance <= what.diagonal if lower else distance >= what.diagonal
        return [mx.where(keep, x, mx.zeros_like(x))]

    return compute


def compute_range(what: Range, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    start, step, n = what.start, what.step, outs[0].numel
    if not (isinstance(start, int) and isinstance(step, int)) or what.end is not None:
        raise Unsupported("a range in float64")

    def compute(values: list[Any]) -> list[Array]:
        k = mx.arange(n, dtype=mx.int64)
        return [(k * mx.array(step, mx.int64) + mx.array(start, mx.int64)).reshape(outs[0].shape)]

    return compute


def compute_check(what: Check, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    def compute(values: list[Any]) -> list[Array]:
        (v,) = values
        wrong = (v < what.low) | (v >= what.high)
        if what.besides is not None:
            wrong = wrong & (v != what.besides)
        first = first_where(wrong)
        if first is not None:
            raise what.refuse(int(v.reshape(-1)[first].item()))
        return []

    return compute


def first_where(wrong: Array) -> int | None:
    """The first place in row-major order where a condition holds. It waits for the device."""
    if not wrong.size:
        return None
    flat = wrong.reshape(-1)
    place = int(
        mx.where(mx.any(flat), mx.argmax(flat.astype(mx.int32)).astype(mx.int64), -1).item()
    )
    return None if place < 0 else place
