"""Select and Replace on a GPU: what a mask chooses, in order.

See ``compact`` for how a block finds where its part begins. The block's chosen elements are listed
in shared memory first, so that what is written lies together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.core.shapes import broadcast_shapes, broadcast_strides
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.compact import (
    CHOSEN_EACH,
    CHUNK,
    add_up,
    bytes_of_counts,
    choose,
    chunks_of,
    leave_count,
)
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    DynamicPlan,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    load_element,
    offsets_of,
    operand_place,
    store_element,
)
from antorcha.lang.kernels import Replace, Select
from antorcha.lang.native import i32, i64, inline, native, ptr, static, u8, u16, void
from antorcha.lang.native.grid import block, device_pointer, shared, thread
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout


class MaskGrid(GridTemplate):
    """What a kernel that reads a mask is compiled for. ``dims``: of the mask and what lies beside
    it; ``own_dims``: of the positions, or of Replace's source."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Any, mask: int, dims: int,
        own_dims: int,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.mask, self.dims, self.own_dims = len(outs) + mask, dims, own_dims
        self.own = self.head + 1  # after the counts
        self.dim_words = self.own + 2
        self.last_words = self.dim_words + dims * (1 + self.nops)

    def __native_key__(self) -> str:
        return f"{self.operands_key()}|{self.mask},{self.dims},{self.own_dims}"


@inline
def places_at(P, words, i):
    """The offsets of all operands at an element of the mask."""
    return offsets_of(P, words, P.dim_words, P.dims, P.nops, i)


@inline
def is_chosen(P, words, i):
    """Is the mask's element not zero?"""
    at = places_at(P, words, i)
    value = load_element(P, words, P.mask, operand_place(P, words, P.mask), at[P.mask])
    if P.parts[P.mask] is not None:
        return (value[0] != 0) | (value[1] != 0)
    return value != static(P.types[P.mask])(0)


@inline
def flags_of_chunk(P, words, n, flags):
    """Which of the chunk's elements are chosen."""
    base = P.I(block()) * CHUNK
    for k in static(range(CHOSEN_EACH)):
        slot = thread() + static(k * THREADS)
        i = base + P.I(slot)
        flag = u8(0)
        if i < n and is_chosen(P, words, i):
            flag = u8(1)
        flags[slot] = flag


@native
def count_chosen_grid(words: ptr[i64], *, P) -> void:
    """Counts what the mask chooses in each chunk. Words: the elements of the mask, then see
    `MaskGrid`."""
    n = P.I(words[P.own])
    count = i32(0)
    for k in static(range(CHOSEN_EACH)):
        i = P.I(block()) * CHUNK + P.I(thread() + static(k * THREADS))
        if i < n and is_chosen(P, words, i):
            count += 1
    leave_count(device_pointer(i64, words[P.head]), count)


@native
def take_chosen_grid(words: ptr[i64], *, P, POSITIONS) -> void:
    """Writes what the mask chooses: elements, or with ``POSITIONS`` a row of them per dim. Words:
    the elements of the mask, how many are chosen."""
    n, total = P.I(words[P.own]), P.I(words[P.own + 1])
    flags, picks = shared(u8, CHUNK), shared(u16, CHUNK)
    flags_of_chunk(P, words, n, flags)
    count = choose(flags, picks)
    begin = P.I(device_pointer(i64, words[P.head])[1 + i64(block())])
    out = operand_place(P, words, 0)
    r = thread()
    while r < count:
        i = P.I(block()) * CHUNK + P.I(picks[r])
        to = begin + P.I(r)
        if POSITIONS:
            for back in static(range(P.own_dims)):
                size = P.I(words[P.last_words + back])
                above = i // size if back < P.own_dims - 1 else P.I(0)
                out[static(P.I)(P.own_dims - 1 - back) * total + to] = i64(i - above * size)
                i = above
        else:
            x = operand_place(P, words, P.nout)
            value = load_element(P, words, P.nout, x, places_at(P, words, i)[P.nout])
            store_element(P, 0, out, to, value)
        r += static(THREADS)


@native
def replace_chosen_grid(words: ptr[i64], *, P) -> void:
    """Copies the elements that are not chosen, and writes the source's to the others, unless it has
    too few. Words: the elements of the mask, those of the source."""
    n, given = P.I(words[P.own]), words[P.own + 1]
    sums = device_pointer(i64, words[P.head])
    flags, picks = shared(u8, CHUNK), shared(u16, CHUNK)
    flags_of_chunk(P, words, n, flags)
    count = choose(flags, picks)
    if sums[0] <= given:
        base = P.I(block()) * CHUNK
        begin = P.I(sums[1 + i64(block())])
        out, x = operand_place(P, words, 0), operand_place(P, words, P.nout)
        source = operand_place(P, words, P.nout + 2)
        for k in static(range(CHOSEN_EACH)):
            slot = thread() + static(k * THREADS)
            i = base + P.I(slot)
            if i < n and flags[slot] == 0:
                at = places_at(P, words, i)
                value = load_element(P, words, P.nout, x, at[P.nout])
                store_element(P, 0, out, at[0], value)
        r = thread()
        while r < count:
            at = places_at(P, words, base + P.I(picks[r]))
            where = offsets_of(P, words, P.last_words, P.own_dims, 1, begin + P.I(r))[0]
            value = load_element(P, words, P.nout + 2, source, where)
            store_element(P, 0, out, at[0], value)
            r += static(THREADS)


# --------------------------------------------------------------------------------------- planning
class Masked:
    """A mask of ``shape`` (number ``mask`` of the inputs) and what lies beside it: ``strides`` of
    every operand along the shape's dims."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], mask: int, shape: Sequence[int],
        strides: Sequence[Sequence[int]], own_dims: int, own_words: Sequence[int],
    ) -> None:  # fmt: skip
        self.n = math.prod(shape)
        self.operands = len(outs) + len(ins)
        sizes, columns = collapse(shape, strides)
        if max(len(sizes), own_dims) > MOST_DIMS:
            raise Unsupported("a mask of so many dims")
        self.words = (*dim_words(sizes, columns), *own_words)
        index = index_type((*outs, *ins), max(self.n, ins[-1].numel) * max(len(shape), 1))
        types = tuple([o.dtype for o in (*outs, *ins)])
        key = types, len(outs), index, mask, len(sizes), own_dims
        self.grid = kept(
            _templates, key, lambda _: MaskGrid(outs, ins, index, mask, len(sizes), own_dims),
            MOST_KEPT,
        )  # fmt: skip

    def step(self, kernel: Any, counts: int, number: int, **static: Any) -> GridStep:
        """A step with a block for each chunk. ``number``: the second of its own words."""
        return GridStep(
            kernel, {"P": self.grid, **static}, blocks_for(chunks_of(self.n), 1), THREADS,
            (*range(self.operands), counts), (self.n, number, *self.words),
        )  # fmt: skip


def plan_select(what: Select, outs: Sequence[Layout], ins: Sequence[Any]) -> DynamicPlan:
    mask = ins[-1]
    shape = broadcast_shapes(*[i.shape for i in ins], op=what.name)
    strides = [broadcast_strides(i.shape, i.strides, shape) for i in ins]
    if mask.ndim > MOST_DIMS:  # (told here, for the second stage cannot turn back)
        raise Unsupported(f"{mask.ndim} dims")
    counts = len(ins)
    first = Masked((), ins, len(ins) - 1, shape, strides, 0, ())
    steps = (first.step(count_chosen_grid, counts, 0), add_up(first.n, counts))

    def layouts(numbers: Sequence[int]) -> list[Layout]:
        size = (mask.ndim, *numbers) if what.positions else tuple(numbers)
        return [L.contiguous(size, outs[0].dtype, outs[0].device)]

    def rest(numbers: Sequence[int]) -> GridPlan:
        (found,) = layouts(numbers)
        if not found.numel:
            return GridPlan(())
        none = (0,) * len(shape)
        sizes = tuple(reversed(shape)) if what.positions else ()
        second = Masked((found,), ins, len(ins) - 1, shape, [none, *strides], len(sizes), sizes)
        return GridPlan(
            (second.step(take_chosen_grid, counts + 1, *numbers, POSITIONS=what.positions),)
        )

    return DynamicPlan(GridPlan(steps, (bytes_of_counts(first.n),)), 0, 1, layouts, rest)


def plan_replace(what: Replace, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    x, mask, source = ins
    shape = outs[0].shape
    near = [broadcast_strides(i.shape, i.strides, shape) for i in (x, mask)]
    none = (0,) * len(shape)
    sizes, columns = collapse(source.shape, [source.strides])
    found = Masked(
        outs, ins, 1, shape, [outs[0].strides, *near, none], len(sizes), dim_words(sizes, columns)
    )
    if not found.n:
        return GridPlan(())
    counts, status = found.operands, found.operands + 1
    short = source.numel < found.n  # else it has enough for any mask
    steps = (
        found.step(count_chosen_grid, counts, 0),
        add_up(found.n, counts, status if short else None, source.numel),
        found.step(replace_chosen_grid, counts, source.numel),
    )
    room = (bytes_of_counts(found.n), *((8,) if short else ()))
    return GridPlan(
        steps, room, 1 if short else None,
        (lambda wanted: what.refuse(wanted, source.numel)) if short else None,
    )  # fmt: skip


_templates: dict[Any, MaskGrid] = {}
