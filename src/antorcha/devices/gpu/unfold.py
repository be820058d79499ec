"""Unfold on a GPU: columns of an image's blocks, and their sums.

A thread writes what all taps of one block see in one channel, for neighbouring blocks lie side by
side in the columns. Backwards a thread adds what the columns have of one element, in the order of
the taps. There are three axes; those that the images lack have one element, one tap and one block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.emit import Unsupported
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
from antorcha.lang.kernels import Unfold
from antorcha.lang.native import bool_, f32, i64, inline, native, ptr, static, void
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout


class UnfoldGrid(GridTemplate):
    """What unfolding or its inverse is compiled for."""

    threads = THREADS

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, dims: int, dilated: bool
    ) -> None:
        super().__init__(outs, ins, index)
        self.dims, self.dilated = dims, dilated
        self.part = self.parts[0] or self.types[0]
        self.sum_type = f32 if self.part.half else self.part

    def __native_key__(self) -> str:
        return f"{self.operands_key()}|{self.dims}|{self.dilated}|{self.threads}"


# The own words: the number of threads' elements; for each axis the image's size and stride, taps,
# dilation, padding, stride of blocks, blocks, the columns' stride for a tap, and for a block.
@inline
def axis_words(P, words, which):
    """A word of each axis."""
    return [P.I(words[P.head + 1 + 9 * a + which]) for a in static(range(3))]


@inline
def own_offsets(P, words, i):
    """The operands' offsets at a thread's element, then its positions along the axes."""
    return offsets_of(P, words, static(P.head + 28), P.dims, 5, i)


@inline
def value_or_zero(P, words, x, off, inside):
    """The image's element, or zero; of complex numbers both parts."""
    if P.parts[1] is None:
        value = P.types[1](0)
        if inside:
            value = x[off]
        return value
    pair = [P.parts[1](0), P.parts[1](0)]
    if inside:
        given = load_element(P, words, 1, x, off)
        pair[0] = given[0]
        pair[1] = given[1]
    return pair


@native
def unfold_grid(words: ptr[i64], *, P) -> void:
    """A thread: a block of a channel."""
    i = position(P, 1)
    if i < P.I(words[P.head]):
        y, x = operand_place(P, words, 0), operand_place(P, words, 1)
        at = own_offsets(P, words, i)
        size, stride, taps, dilation, padding, step = [
            axis_words(P, words, k) for k in static(range(6))
        ]
        tap_stride = axis_words(P, words, 7)
        begin = [at[2 + a] * step[a] - padding[a] for a in static(range(3))]
        for a in range(taps[0]):
            pa = begin[0] + P.I(a) * dilation[0]
            for b in range(taps[1]):
                pb = begin[1] + P.I(b) * dilation[1]
                inside = pa >= 0 and pa < size[0] and pb >= 0 and pb < size[1]
                off = at[1] + pa * stride[0] + pb * stride[1]
                to = at[0] + P.I(a) * tap_stride[0] + P.I(b) * tap_stride[1]
                pc = begin[2]
                for _c in range(taps[2]):
                    here = inside and pc >= 0 and pc < size[2]
                    value = value_or_zero(P, words, x, off + pc * stride[2], here)
                    store_element(P, 0, y, to, value)
                    pc += dilation[2]
                    to += tap_stride[2]


@inline
def blocks_over(P, place, taps, dilation, step, blocks):
    """The first and the last block that may have an element, whose place counts the padding."""
    reach = place - (taps - 1) * dilation
    low = P.I(0)
    if reach > 0:
        low = (reach + step - 1) // step
    return low, min(place // step, blocks - 1)


@inline
def add_column(P, words, y, off, totals):
    value = load_element(P, words, 1, y, off)
    parts = [value] if P.parts[1] is None else value
    for k in static(range(len(parts))):
        if P.sum_type is bool_:
            totals[k] = totals[k] | parts[k]
        else:
            totals[k] = totals[k] + P.sum_type(parts[k])


@native
def fold_grid(words: ptr[i64], *, P) -> void:
    """A thread: an element of an image. The later a block, the earlier the tap that sees it."""
    i = position(P, 1)
    if i < P.I(words[P.head]):
        x, y = operand_place(P, words, 0), operand_place(P, words, 1)
        at = own_offsets(P, words, i)
        taps, dilation, padding, step, blocks, tap_stride, block_stride = [
            axis_words(P, words, k) for k in static(range(2, 9))
        ]
        place = [at[2 + a] + padding[a] for a in static(range(3))]
        ends = [
            blocks_over(P, place[a], taps[a], dilation[a], step[a], blocks[a])
            for a in static(range(3))
        ]
        totals = [P.sum_type(0) for k in static(range(1 if P.parts[0] is None else 2))]
        oa = ends[0][1]
        while oa >= ends[0][0]:
            ra = place[0] - oa * step[0]
            ob = ends[1][1]
            while ob >= ends[1][0]:
                rb = place[1] - ob * step[1]
                oc = ends[2][1]
                while oc >= ends[2][0]:
                    rc = place[2] - oc * step[2]
                    ta, tb, tc = ra, rb, rc
                    meets = True
                    if P.dilated:
                        ta, tb, tc = ra // dilation[0], rb // dilation[1], rc // dilation[2]
                        meets = (
                            ta * dilation[0] == ra and tb * dilation[1] == rb
                            and tc * dilation[2] == rc
                        )  # fmt: skip
                    if meets:
                        off = ta * tap_stride[0] + tb * tap_stride[1] + tc * tap_stride[2]
                        off += oa * block_stride[0] + ob * block_stride[1] + oc * block_stride[2]
                        add_column(P, words, y, at[1] + off, totals)
                    oc -= 1
                ob -= 1
            oa -= 1
        store_element(P, 0, x, at[0], totals[0] if P.parts[0] is None else totals)


def plan_unfold(what: Unfold, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    (out,), (given,) = outs, ins
    if not out.numel:
        return GridPlan(())
    image, columns = (out, given) if what.back else (given, out)
    axes = image.ndim - 2
    if axes > 3:
        raise Unsupported(f"{axes} axes")
    filled = [(1,) * (3 - axes) + tuple(n) for n in (
        image.shape[2:], what.kernel_size, what.dilation, what.stride, what.blocks)]  # fmt: skip
    size, taps, dilation, step, blocks = filled
    zeros = (0,) * (3 - axes)
    padding, stride = (*zeros, *what.padding), (*zeros, *image.strides[2:])
    n_stride, row_stride, block_stride = columns.strides
    tap_strides = [row_stride * math.prod(taps[a + 1 :]) for a in range(3)]
    block_strides = [block_stride * math.prod(blocks[a + 1 :]) for a in range(3)]
    channel_stride = row_stride * math.prod(taps)
    if what.back:
        shape = (*image.shape[:2], *size)
        lies = [[*image.strides[:2], *stride], [n_stride, channel_stride, 0, 0, 0]]
    else:
        shape = (*image.shape[:2], *blocks)
        lies = [[n_stride, channel_stride, *block_strides], [*image.strides[:2], 0, 0, 0]]
    sizes, lies = nested(shape, [*lies, *position_columns(shape, (2, 3, 4))])
    own: list[int] = []
    for a in range(3):
        own += [size[a], stride[a], taps[a], dilation[a], padding[a], step[a], blocks[a],
                tap_strides[a], block_strides[a]]  # fmt: skip
    count = math.prod(shape)
    reach = max([s + 2 * p for s, p in zip(size, padding, strict=True)])
    index = index_type((out, given), max(count, reach))
    template = UnfoldGrid(outs, ins, index, len(sizes), dilation != (1, 1, 1))
    words = (count, *own, *dim_words(sizes, lies))
    kernel = fold_grid if what.back else unfold_grid
    return GridPlan((
        GridStep(kernel, {"P": template}, blocks_for(count), THREADS, (0, 1), words),
    ))  # fmt: skip
