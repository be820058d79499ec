"""Resample on a GPU: a thread computes a result; the tables lie in the device's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.devices.emit import TYPES, Unsupported
from antorcha.devices.gpu.frame import (
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    load_element,
    nested,
    offsets_of,
    operand_place,
    position,
    position_columns,
    store_element,
)
from antorcha.lang.kernels import Resample
from antorcha.lang.native import i32, i64, inline, native, ptr, static, void
from antorcha.lang.native.grid import device_pointer
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

FEW = 4  # taps up to which there is code for just so many


class ResampleGrid(GridTemplate):
    """What resampling is compiled for. ``weight``: the weights' type, None where elements are
    copied; ``full``: every place is one."""

    threads = THREADS

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, dims: int, taps: int,
        weight: Ty | None, full: bool,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.dims, self.weight, self.full = dims, weight, full
        self.taps = taps if taps <= FEW else 0  # 0: the words say
        self.sum_type = _sum_type(self.parts[1] or self.types[1], weight)

    def __native_key__(self) -> str:
        flags = f"{self.dims}|{self.taps}|{self.weight}|{self.full}|{self.threads}"
        return f"{self.operands_key()}|{flags}"


def _sum_type(value: Ty, weight: Ty | None) -> Ty | None:
    """The type of products of elements and weights."""
    if weight is None or value is weight:
        return weight
    wide = [t for t in (value, weight) if t.kind == "f"]
    return max(wide, key=lambda t: t.size)


@inline
def add_tap(P, words, x, off, t, at, totals):
    """Adds tap t's products to the totals, of a number or of its two parts."""
    places = device_pointer(i32, words[P.head])
    weights = device_pointer(P.weight, words[P.head + 1])
    row = P.I(t) * P.I(words[P.head + 3]) + at
    place = P.I(places[row])
    if P.full or place >= 0:
        weight = P.sum_type(weights[row])
        value = load_element(P, words, 1, x, off + place * P.I(words[P.head + 5]))
        parts = [value] if P.parts[1] is None else value
        for k in static(range(len(parts))):
            part = P.sum_type(parts[k]) * weight
            totals[k] = part if t == 0 else totals[k] + part


@native
def resample_grid(words: ptr[i64], *, P) -> void:
    """Words: the tables' addresses; the number of results, those along the dim, taps, the input's
    stride along the dim; the dims: size, strides of output and input, positions along the dim."""
    i = position(P, 1)
    if i < P.I(words[P.head + 2]):
        out, x = operand_place(P, words, 0), operand_place(P, words, 1)
        at = offsets_of(P, words, static(P.head + 6), P.dims, 3, i)
        if P.weight is None:
            places = device_pointer(i32, words[P.head])
            place = P.I(places[at[2]])
            value = load_element(P, words, 1, x, at[1] + place * P.I(words[P.head + 5]))
            store_element(P, 0, out, at[0], value)
        else:
            totals = [P.sum_type(0) for k in static(range(1 if P.parts[1] is None else 2))]
            if P.taps:
                for t in static(range(P.taps)):
                    add_tap(P, words, x, at[1], t, at[2], totals)
            else:
                for t in range(P.I(words[P.head + 4])):
                    add_tap(P, words, x, at[1], t, at[2], totals)
            store_element(P, 0, out, at[0], totals if P.parts[1] is not None else totals[0])


def plan_resample(what: Resample, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    (out,), (x,) = outs, ins
    if not out.numel:
        return GridPlan(())
    taps, m = what.places.shape
    if x.shape[what.dim] >= 1 << 31:
        raise Unsupported(f"{x.shape[what.dim]} elements along the dim")
    weight, tables = None, [what.places.astype(np.int32)]
    if what.weights is not None:
        weight = TYPES.get(what.weights.dtype.name)
        mixed = x.dtype is not out.dtype and "c" in (x.dtype.kind, out.dtype.kind)
        if weight is None or mixed:
            raise Unsupported(f"weights of {what.weights.dtype} on {x.dtype}")
        tables.append(what.weights)
    read = list(x.strides)
    read[what.dim] = 0
    sizes, columns = nested(
        out.shape, [out.strides, read, *position_columns(out.shape, [what.dim])]
    )
    index = index_type((out, x), max(out.numel, taps * m))
    full = bool((what.places >= 0).all())
    template = ResampleGrid(outs, ins, index, len(sizes), taps, weight, full)
    words = (out.numel, m, taps, x.strides[what.dim], *dim_words(sizes, columns))
    operands = (0, 1, 2, 3 if weight is not None else 2)
    step = GridStep(resample_grid, {"P": template}, blocks_for(out.numel), THREADS, operands, words)
    return GridPlan((step,), constants=tuple(tables))
