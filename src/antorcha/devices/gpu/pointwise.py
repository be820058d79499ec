"""Pointwise descriptions on a GPU: a thread computes ``EACH`` elements of every output.

The threads of a block take neighbouring elements, and the next ones a block's length on, so that a
warp's loads are together. Dims are collapsed first; operands in one piece need no division.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.complexes import in_memory
from antorcha.devices.emit import MOST_KEPT, Body, Unsupported, body_of, evaluate
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    load_element,
    offsets_of,
    operand_place,
    position,
    store_element,
)
from antorcha.lang import expr as E
from antorcha.lang.kernels import Pointwise
from antorcha.lang.native import i64, native, ptr, static, void
from antorcha.runtime.memory.layout import Layout

EACH = 4  # elements of a thread: enough loads on their way at once


class PointwiseGrid(GridTemplate):
    """What a pointwise kernel is compiled for: its body, and how many dims the operands have."""

    def __init__(
        self, body: Body, outs: Sequence[Layout], ins: Sequence[Any], dims: int, index: Any
    ) -> None:
        super().__init__(outs, ins, index)
        self.body, self.dims, self.threads = body, dims, THREADS
        used = E.inputs_used(*body.exprs)
        self.used = [k in used for k in range(self.nin)]

    def __native_key__(self) -> str:
        return f"{self.body.key}|{self.operands_key()}|{self.dims}"


@native
def pointwise_grid(words: ptr[i64], *, P) -> void:
    """Words: the number of elements; where they do not lie in one piece, each dim's size and
    strides."""
    first = position(P, EACH)
    n = P.I(words[P.head])
    places = [operand_place(P, words, k) for k in static(range(P.nops))]
    for u in static(range(EACH)):
        i = first + static(u * P.threads)
        if i < n:
            if P.dims:
                at = offsets_of(P, words, static(P.head + 1), P.dims, P.nops, i)
            else:
                at = [i for k in static(range(P.nops))]
            values = [
                load_element(P, words, P.nout + k, places[P.nout + k], at[P.nout + k])
                if P.used[k] else None
                for k in static(range(P.nin))
            ]  # fmt: skip
            results = evaluate(P.body, values, 0)
            for k in static(range(P.nout)):
                store_element(P, k, places[k], at[k], results[k])


_templates: dict[Any, PointwiseGrid] = {}


def plan_pointwise(what: Pointwise, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    body = body_of(in_memory(what.exprs, outs, ins))
    shape = outs[0].shape
    numel = outs[0].numel
    columns = [o.strides if isinstance(o, Layout) else (0,) * len(shape) for o in (*outs, *ins)]
    sizes, columns = collapse(shape, columns)
    together = len(sizes) <= 1 and all(
        not isinstance(o, Layout) or list(c) in ([1], [])
        for o, c in zip((*outs, *ins), columns, strict=True)
    )
    dims = 0 if together else len(sizes)
    if dims > MOST_DIMS:
        raise Unsupported(f"{dims} dims")
    index = index_type((*outs, *ins), numel)
    types = tuple([o.dtype if isinstance(o, Layout) else o for o in (*outs, *ins)])
    key = body, types, len(outs), dims, index
    template = kept(
        _templates, key, lambda _: PointwiseGrid(body, outs, ins, dims, index), MOST_KEPT
    )
    words = (numel, *(dim_words(sizes, columns) if dims else ()))
    operands = tuple(range(len(outs) + len(ins)))
    step = GridStep(
        pointwise_grid, {"P": template}, blocks_for(numel, THREADS * EACH), THREADS, operands, words
    )
    return GridPlan((step,) if numel else ())
