"""Range on a GPU: a thread works out a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.frame import (
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    operand_place,
    position,
    store_element,
)
from antorcha.lang.kernels import Range
from antorcha.lang.native import bitcast, f64, i64, inline, native, ptr, static, void
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout


class RangeGrid(GridTemplate):
    """What a range is compiled for. ``wide``: in what its numbers are worked out, i64 or f64;
    ``with_end``: the second half is counted from the end."""

    threads = THREADS

    def __init__(self, outs: Sequence[Layout], wide: Ty, with_end: bool) -> None:
        super().__init__(outs, ())
        self.wide, self.with_end = wide, with_end

    def __native_key__(self) -> str:
        return f"{self.operands_key()}|{self.wide}|{self.with_end}|{self.threads}"


@inline
def number_at(P, words, n, k):
    """Number k of n. Words: the start, the step and the end."""
    if P.wide is f64:
        start, step, end = [bitcast(f64, words[P.head + 2 + w]) for w in static(range(3))]
    else:
        start, step, end = [words[P.head + 2 + w] for w in static(range(3))]
    value = start + P.wide(k) * step
    if P.with_end and k >= n // 2:
        value = end - P.wide(n - 1 - k) * step
    return value


@native
def range_grid(words: ptr[i64], *, P) -> void:
    """Words: how many numbers, the output's stride; the start, the step and the end."""
    k = position(P, 1)
    n = words[P.head]
    out = operand_place(P, words, 0)
    if k < n:
        value = number_at(P, words, n, k)
        if P.parts[0] is None:
            store_element(P, 0, out, k * words[P.head + 1], value)
        else:
            store_element(P, 0, out, k * words[P.head + 1], [value, P.wide(0)])


def plan_range(what: Range, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    (out,) = outs
    if not out.numel:
        return GridPlan(())
    numbers = (what.start, what.step, 0 if what.end is None else what.end)
    whole = what.end is None and isinstance(what.start, int) and isinstance(what.step, int)
    if whole and not all([-(1 << 63) <= n < 1 << 63 for n in numbers]):
        raise Unsupported("numbers of more than 64 bits")
    template = RangeGrid(outs, i64 if whole else f64, what.end is not None)
    given = np.array(numbers, np.int64 if whole else np.float64).view(np.int64)
    step = GridStep(
        range_grid, {"P": template}, blocks_for(out.numel), THREADS, (0,),
        (out.numel, out.strides[0], *given.tolist()),
    )  # fmt: skip
    return GridPlan((step,))
