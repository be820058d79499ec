"""Search on a GPU: a thread finds the place of one value by bisection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, NUMBERS, Unsupported
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    offsets_of,
    operand_place,
    position,
    store_element,
)
from antorcha.lang.kernels import Search
from antorcha.lang.native import i64, native, ptr, void
from antorcha.lang.native.grid import device_pointer
from antorcha.runtime.memory.layout import Layout


class SearchGrid(GridTemplate):
    """What a search is compiled for: operands are places, edges, values, and the positions that put
    edges in order, if there are any. ``dims``: of the values; ``sorter_dims``: of the sorter."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Any, right: bool, dims: int,
        sorter_dims: int,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.T = NUMBERS[ins[0].dtype.name]
        self.right, self.dims, self.sorter_dims = right, dims, sorter_dims
        self.sorted = self.nin == 2
        self.threads = THREADS
        self.own = self.head if self.sorted else self.head + 1  # after the status
        self.dim_words = self.own + 4
        self.sorter_words = self.dim_words + dims * (1 + self.nops)

    def __native_key__(self) -> str:
        return f"{self.operands_key()}|{self.right}|{self.dims},{self.sorter_dims}"


@native
def search_grid(words: ptr[i64], *, P) -> void:
    """Words: values, edges of a line, their stride and the sorter's along it, the values' dims."""
    i = position(P, 1)
    if i < P.I(words[P.own]):
        at = offsets_of(P, words, P.dim_words, P.dims, P.nops, i)
        n, step = P.I(words[P.own + 1]), P.I(words[P.own + 2])
        edges = device_pointer(P.T, words[P.starts[1]]) + at[1]
        value = device_pointer(P.T, words[P.starts[2]])[at[2]]
        lo, hi = P.I(0), n + 0
        while lo < hi:
            middle = (lo + hi) >> 1
            if P.sorted:
                where = middle
            else:
                order = operand_place(P, words, 3)
                where = P.I(order[at[3] + middle * P.I(words[P.own + 3])])
                where = max(min(where, n - 1), 0)
            edge = edges[where * step]
            behind = (edge > value) if P.right else (edge >= value)
            if behind:
                hi = middle
            else:
                lo = middle + 1
        store_element(P, 0, operand_place(P, words, 0), at[0], lo)


@native
def check_sorter_grid(words: ptr[i64], *, P) -> void:
    """The status is 1 where a position is none. Words: positions, edges of a line, the sorter's
    dims."""
    i = position(P, 1)
    if i < P.I(words[P.own]):
        at = offsets_of(P, words, P.sorter_words, P.sorter_dims, 1, i)
        order = i64(operand_place(P, words, 3)[at[0]])
        if order < 0 or order >= words[P.own + 1]:
            device_pointer(i64, words[P.head])[0] = 1


def plan_search(what: Search, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    edges, values, *sorter = ins
    if not all([isinstance(i, Layout) for i in ins]) or edges.dtype.name not in NUMBERS:
        raise Unsupported("lines of such numbers")
    if edges.ndim == 0 or edges.dtype is not values.dtype:
        raise Unsupported("lines that are none")
    shape = values.shape
    none = (0,) * len(shape)

    def of_lines(layout: Layout) -> Sequence[int]:
        """The strides along the values' dims of what lies in lines, where each begins."""
        return none if edges.ndim == 1 else (*layout.strides[:-1], 0)

    sizes, columns = collapse(
        shape, [outs[0].strides, of_lines(edges), values.strides, *[of_lines(s) for s in sorter]]
    )
    sorter_sizes, sorter_columns = collapse(*_dims_of(sorter))
    if max(len(sizes), len(sorter_sizes)) > MOST_DIMS:
        raise Unsupported(f"{len(shape)} dims")
    index = index_type((*outs, *ins), max(values.numel, edges.numel))
    key = tuple([o.dtype for o in (*outs, *ins)]), index, what.right, len(sizes), len(sorter_sizes)
    grid = kept(
        _templates, key,
        lambda _: SearchGrid(outs, ins, index, what.right, len(sizes), len(sorter_sizes)),
        MOST_KEPT,
    )  # fmt: skip
    n = edges.shape[-1]
    count = 3 + len(sorter)
    operands = tuple(range(count + len(sorter)))
    last = (n, edges.strides[-1], sorter[0].strides[-1] if sorter else 0)
    dims = (*dim_words(sizes, columns), *dim_words(sorter_sizes, sorter_columns))

    def step(kernel: Any, number: int) -> GridStep:
        return GridStep(
            kernel, {"P": grid}, blocks_for(number), THREADS, operands, (number, *last, *dims)
        )  # fmt: skip

    steps = [step(check_sorter_grid, s.numel) for s in sorter if s.numel]
    if values.numel:
        steps.append(step(search_grid, values.numel))
    if not sorter:
        return GridPlan(tuple(steps))
    return GridPlan(tuple(steps), (8,), 0, lambda code: what.refuse())


def _dims_of(layouts: Sequence[Layout]) -> tuple[Sequence[int], list[Sequence[int]]]:
    """The shape and strides of the one layout, if there is one."""
    return (layouts[0].shape, [layouts[0].strides]) if layouts else ((), [()])


_templates: dict[Any, SearchGrid] = {}
