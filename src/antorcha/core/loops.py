"""Loops over the elements of several operands: which dim is inside of which, and which are one.

The order of dims is also what gives a fresh result its strides, so it is PyTorch's to the last
case. Pure functions over tuples of ints, as in `shapes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.shapes import (
    Ints,
    broadcast_strides,
    channels_last_strides,
    contiguous_strides,
    is_channels_last,
    is_contiguous,
    is_dense,
    strides_in_order,
)

Layout = tuple[Sequence[int], Sequence[int]]  # (shape, strides)


def result_strides(shape: Sequence[int], operands: Sequence[Layout]) -> Ints:
    """Strides of an elementwise op's fresh result: the operands' order of dims is kept.

    PyTorch's rule (ATen/TensorIterator.cpp). `operands` are (shape, strides) of every input in
    argument order, Python scalars included as ``((), ())``; they broadcast to `shape`. An operand
    of another dtype is seen converted (by PyTorch on the CPU): give its `dense_strides`.

    >>> result_strides((2, 3), [((2, 3), (1, 2))])
    (1, 2)
    """
    shape = tuple(shape)
    if len(shape) < 2:
        return (1,) * len(shape)
    # Almost every call: row-major operands never ask for another order, unless a size is 0.
    if 0 not in shape and all(tuple(steps) == contiguous_strides(own) for own, steps in operands):
        return contiguous_strides(shape)
    if all(tuple(own) == shape for own, _ in operands):
        fast = _same_shape_strides(shape, operands)
        if fast is not None:
            return fast
    order = _loop_order(shape, [broadcast_strides(own, steps, shape) for own, steps in operands])
    if order == list(range(len(shape) - 1, -1, -1)):
        return contiguous_strides(shape)
    return strides_in_order(shape, order)


def _same_shape_strides(shape: Ints, operands: Sequence[Layout]) -> Ints | None:
    """``fast_set_up``: operands that all have the result's shape and agree on a layout."""
    if all(is_contiguous(shape, strides) for _, strides in operands):
        return contiguous_strides(shape)
    if len(shape) == 4 and all(is_channels_last(shape, strides) for _, strides in operands):
        return channels_last_strides(shape)
    first = tuple(operands[0][1])
    if all(tuple(strides) == first for _, strides in operands) and is_dense(shape, first):
        return first
    return None


def dense_strides(shape: Sequence[int], strides: Sequence[int]) -> Ints:
    """Strides of ``empty_like(tensor)``: its own if dense, else its order of dims without gaps."""
    if is_dense(shape, strides):
        return tuple(strides)
    order = _loop_order(tuple(shape), [strides])
    return strides_in_order([size or 1 for size in shape], order)


def _loop_order(shape: Ints, operand_strides: Sequence[Sequence[int]]) -> list[int]:
    """Dims from the innermost loop to the outermost (``reorder_dimensions``).

    An insertion sort and not `sorted`: the comparison may be undecided, so is no total order, and
    the outcome depends on which pairs are compared.
    """
    order = list(range(len(shape) - 1, -1, -1))
    for start in range(1, len(order)):
        later = start
        for earlier in range(start - 1, -1, -1):
            verdict = _compare_dims(shape, operand_strides, order[earlier], order[later])
            if verdict > 0:
                order[earlier], order[later] = order[later], order[earlier]
                later = earlier
            elif verdict < 0:
                break
    return order


def _compare_dims(
    shape: Ints, operand_strides: Sequence[Sequence[int]], inner: int, outer: int
) -> int:
    """-1 when `inner` is right to be the inner one, 1 when they must swap, 0 when undecided."""
    for strides in operand_strides:
        inner_step, outer_step = strides[inner], strides[outer]
        if inner_step == 0 or outer_step == 0:  # broadcast: this operand has no opinion
            continue
        if inner_step != outer_step:
            return -1 if inner_step < outer_step else 1
        if shape[inner] > shape[outer]:
            return 1
    return 0


def collapse(
    shape: Sequence[int], strides_list: Sequence[Sequence[int]]
) -> tuple[Ints, list[Ints]]:
    """Merge neighbouring dims that every operand walks with one stride, and drop dims of size 1.

    The order of dims is kept, innermost last; what is left may be ``()``, one element.

    >>> collapse((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
    ((2, 12), [(12, 1), (0, 1)])
    """
    sizes: list[int] = []
    columns: list[list[int]] = []  # per kept dim, outermost first: the operands' strides
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        column = [strides[dim] for strides in strides_list]
        if sizes and all(
            outer == inner * size for outer, inner in zip(columns[-1], column, strict=True)
        ):
            sizes[-1] *= size
            columns[-1] = column
        else:
            sizes.append(size)
            columns.append(column)
    merged = [tuple(column[k] for column in columns) for k in range(len(strides_list))]
    return tuple(sizes), merged


def collapse_dims(
    dims: Sequence[int], operands: Sequence[Any], shape: Sequence[int]
) -> tuple[list[int], list[list[int]]]:
    """`collapse` of some dims alone, in this order, over operands (layouts) of that shape: sizes,
    and each operand's strides, outermost first."""
    sizes, columns = collapse(
        [shape[d] for d in dims], [[o.strides[d] for d in dims] for o in operands]
    )
    return list(sizes), [list(c) for c in columns]
