"""Pooling on a GPU: a thread computes a result, or the gradient of an element.

Where windows start and how many elements they have or, the other way round, which windows an
element is in, is said by tables along each of three axes: one form for sliding and adaptive
windows. A gradient is the sum over an element's windows, in their order, so it is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.devices.emit import NUMBERS, Unsupported
from antorcha.devices.gpu.frame import (
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    nested,
    offsets_of,
    operand_place,
    position,
    position_columns,
)
from antorcha.lang.kernels import Pooling
from antorcha.lang.native import (
    f32,
    i32,
    i64,
    inline,
    native,
    ptr,
    static,
    trunc_div,
    void,
)
from antorcha.lang.native.grid import device_pointer, resident_blocks
from antorcha.lang.native.types import Ty
from antorcha.lang.windows import Windows
from antorcha.runtime.memory.layout import Layout

OWN_WORDS = 24  # of a step, before its dims


class PoolingGrid(GridTemplate):
    """What a pooling kernel is compiled for. ``sized``: averages divide by their windows' sizes,
    not by one number."""

    threads = THREADS

    def __init__(
        self, kind: str, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, dims: int,
        sized: bool,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.kind, self.dims, self.sized = kind, dims, sized
        self.T = NUMBERS[ins[0].dtype.name]
        self.sum_type = f32 if self.T.half else self.T
        self.least = float("-inf") if self.T.kind == "f" else self.T.bounds()[0]

    def __native_key__(self) -> str:
        flags = f"{self.kind}|{self.dims}|{self.sized}|{self.threads}"
        return f"{self.operands_key()}|{flags}"


# The own words: the tables' address; the number of elements of the result; the divisor; then groups
# of three, one word for each axis: strides of three kinds, the steps between a window's elements,
# where three tables begin.
@inline
def axis_words(P, words, group):
    """Words of a group, one for each axis."""
    return [P.I(words[P.head + 3 + 3 * group + a]) for a in static(range(3))]


@inline
def table_entries(P, words, which, places):
    """What table ``which`` of each axis says at places along them."""
    tables = device_pointer(i32, words[P.head])
    begins = axis_words(P, words, static(4 + which))
    return [P.I(tables[begins[a] + places[a]]) for a in static(range(3))]


@inline
def own_offsets(P, words, i):
    """The operands' offsets at element i of the result, then its positions along the axes."""
    return offsets_of(P, words, static(P.head + OWN_WORDS), P.dims, static(P.nops + 3), i)


@inline
def along(a, b):
    """The sum of products over the axes."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def quotient(P, total, divisor):
    """A sum by a divisor (i64), as the sum's type divides."""
    if P.sum_type.kind == "f":
        return total / P.sum_type(divisor)
    return trunc_div(total, P.sum_type(divisor))


@native
def window_grid(words: ptr[i64], *, P) -> void:
    """Maxima or averages. Strides: the input's, those of places in a plane."""
    i = position(P, 1)
    if i < P.I(words[P.head + 1]):
        at = own_offsets(P, words, i)
        where = [at[P.nops + a] for a in static(range(3))]
        starts = table_entries(P, words, 0, where)
        counts = table_entries(P, words, 1, where)
        strides, numbers, steps = [axis_words(P, words, k) for k in static((0, 1, 3))]
        by = [strides[a] * steps[a] for a in static(range(3))]
        number_by = [numbers[a] * steps[a] for a in static(range(3))]
        x = operand_place(P, words, P.nout) + (at[P.nout] + along(starts, strides))
        total = P.T(P.least) if P.kind == "max" else P.sum_type(0)
        first = along(starts, numbers)
        best = first
        for d in range(counts[0]):
            for h in range(counts[1]):
                off = P.I(d) * by[0] + P.I(h) * by[1]
                number = first + P.I(d) * number_by[0] + P.I(h) * number_by[1]
                for _w in range(counts[2]):
                    v = P.T(x[off])
                    if P.kind == "max":
                        if (v > total) | (v != v):
                            total = v
                            best = number
                    else:
                        total = total + P.sum_type(v)
                    off += by[2]
                    number += number_by[2]
        if P.kind == "average":
            divisor = words[P.head + 2]
            if P.sized:
                sizes = table_entries(P, words, 2, where)
                divisor = i64(sizes[0]) * i64(sizes[1]) * i64(sizes[2])
            total = quotient(P, total, divisor)
        out = operand_place(P, words, 0)
        out[at[0]] = P.types[0](total)
        if P.nout == 2:
            second = operand_place(P, words, 1)
            second[at[1]] = i64(best)


@native
def window_gradient_grid(words: ptr[i64], *, P) -> void:
    """The gradient of an element. Strides: those of the results' gradient, of the maxima's places,
    of places in a plane."""
    resident_blocks(4)  # (with 8, of 32 registers a thread, some would go to memory)
    i = position(P, 1)
    if i < P.I(words[P.head + 1]):
        at = own_offsets(P, words, i)
        where = [at[P.nops + a] for a in static(range(3))]
        firsts = table_entries(P, words, 0, where)
        counts = table_entries(P, words, 1, where)
        strides, place_strides, numbers = [axis_words(P, words, k) for k in static(range(3))]
        g = operand_place(P, words, 1) + (at[1] + along(firsts, strides))
        total = P.sum_type(0)
        if P.kind == "max gradient":
            me = i64(along(where, numbers))
            places = operand_place(P, words, 2) + (at[2] + along(firsts, place_strides))
        for d in range(counts[0]):
            for h in range(counts[1]):
                off = P.I(d) * strides[0] + P.I(h) * strides[1]
                if P.kind == "max gradient":
                    place_off = P.I(d) * place_strides[0] + P.I(h) * place_strides[1]
                for w in range(counts[2]):
                    if P.kind == "max gradient":
                        if places[place_off] == me:
                            total = total + P.sum_type(P.T(g[off]))
                        place_off += place_strides[2]
                    else:
                        divisor = words[P.head + 2]
                        if P.sized:
                            window = [firsts[0] + P.I(d), firsts[1] + P.I(h), firsts[2] + P.I(w)]
                            sizes = table_entries(P, words, 2, window)
                            divisor = i64(sizes[0]) * i64(sizes[1]) * i64(sizes[2])
                        total = total + quotient(P, P.sum_type(P.T(g[off])), divisor)
                    off += strides[2]
        out = operand_place(P, words, 0)
        out[at[0]] = P.types[0](total)


# ------------------------------------------------------------------------------------ planning
def plan_pooling(what: Pooling, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    windows, out = what.windows, outs[0]
    if windows is None:
        raise Unsupported("a gradient that does not say its windows")
    if ins[0].dtype.name not in NUMBERS:
        raise Unsupported(f"pooling of {ins[0].dtype}")
    if not out.numel:
        return GridPlan(())
    backwards = "gradient" in what.kind
    tables, begins = _tables(what.kind, windows)
    lead = out.ndim - what.dims
    shape = (*out.shape[:lead], *(1,) * (3 - what.dims), *out.shape[lead:])
    columns = [_in_three(o.strides, lead) for o in outs]
    columns += [[*i.strides[:lead], 0, 0, 0] for i in ins]
    sizes, columns = nested(shape, [*columns, *position_columns(shape, range(lead, lead + 3))])
    strides = [_in_three(i.strides, lead)[lead:] for i in ins]
    _, h, w = windows.axes
    numbers = [h.size * w.size, w.size, 1]
    kinds = [strides[0], strides[-1], numbers] if backwards else [strides[0], numbers, [0] * 3]
    own = [n for each in kinds for n in each] + [a.step for a in windows.axes] + begins
    words = (out.numel, windows.divisor or 1, *own, *dim_words(sizes, columns))
    index = index_type((*outs, *ins), max(out.numel, windows.inside))
    template = PoolingGrid(what.kind, outs, ins, index, len(sizes), windows.divisor is None)
    step = GridStep(
        window_gradient_grid if backwards else window_grid, {"P": template},
        blocks_for(out.numel), THREADS, tuple(range(len(outs) + len(ins) + 1)), words,
    )  # fmt: skip
    return GridPlan((step,), constants=(tables,))


def _tables(kind: str, windows: Windows) -> tuple[Any, list[int]]:
    """The tables of a kernel: first places, counts and sizes along each axis; where each begins."""
    axes = windows.axes
    if "gradient" not in kind:
        found = [[a.starts for a in axes], [a.counts for a in axes]]
    elif kind == "average gradient" and any([a.step != 1 for a in axes]):
        raise Unsupported("averages of windows with gaps")
    else:
        found = _windows_of_elements(windows)
    every = [np.asarray(t, np.int64) for t in (*found[0], *found[1], *map(windows.sizes, axes))]
    tables = np.concatenate(every)
    if tables.size and tables.max() >= 1 << 31:
        raise Unsupported("windows of that size")
    ends = np.cumsum([len(t) for t in every]).tolist()
    return tables.astype(np.int32), [0, *ends[:-1]]


def _in_three(strides: Sequence[int], lead: int) -> list[int]:
    """Strides with those of three axes at the end."""
    return [*strides[:lead], *[0] * (3 - len(strides) + lead), *strides[lead:]]


def _windows_of_elements(windows: Windows) -> list[list[Any]]:
    """For each axis, the first window that may hold each element; then how many do."""
    firsts, counts = [], []
    for axis in windows.axes:
        starts = np.asarray(axis.starts, np.int64)
        ends = starts + (np.asarray(axis.counts, np.int64) - 1) * axis.step
        if (np.diff(starts) < 0).any() or (np.diff(ends) < 0).any():
            raise Unsupported("windows that are not in order")
        places = np.arange(axis.size)
        first = np.searchsorted(ends, places, "left")
        firsts.append(first)
        counts.append(np.maximum(np.searchsorted(starts, places, "right") - first, 0))
    return [firsts, counts]
