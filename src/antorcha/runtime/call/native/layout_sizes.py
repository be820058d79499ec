"""A layout's sizes and strides as numbers, and what follows from them.

Owns nothing. A tensor's fields may be set to anything: `has_dims` says whether it can be read.
"""

from __future__ import annotations

from antorcha.lang.native import Global, array, i64, native, ptr, raw, struct, u8, void
from antorcha.runtime.call.native.keys import size_type
from antorcha.runtime.cpython import (
    HEADER,
    PyErr_Clear,
    failed,
    int_value,
    tuple_item,
    tuple_size,
    tuple_type,
    type_of,
)

MOST_DIMS = 12
LARGEST = 1 << 40
"""Sizes and strides are less, and so are their products, or the layout is for Python to make."""


layout_type = Global("antorcha_layout_type", raw)


@struct
class LayoutObject:
    """A Layout's fields, every one an object."""

    head: array[u8, HEADER]
    contiguous: raw
    device: raw
    dtype: raw
    family: raw
    form: raw
    high: raw
    itemsize: raw
    low: raw
    nbytes: raw
    ndim: raw
    numbers: raw
    numel: raw
    shape: raw
    strides: raw


@struct
class Sizes:
    """How something is to lie: a layout's parts as numbers."""

    like: raw  # a layout of the same dtype and device
    ndim: i64
    shape: array[i64, MOST_DIMS]
    strides: array[i64, MOST_DIMS]


# ---- reading layouts
@native
def has_dims(layout: raw) -> bool:
    """Is it a layout whose sizes and strides may be read? (A tensor's fields may be anything.)"""
    if type_of(layout) != layout_type[0]:
        return False
    fields = ptr[LayoutObject](layout)
    if fields.shape is None or fields.strides is None or fields.form is None:
        return False
    known = type_of(fields.shape) == size_type[0] and type_of(fields.strides) == raw(tuple_type)
    return known and tuple_size(fields.shape) == tuple_size(fields.strides)


@native
def number_at(numbers: raw, k: i64) -> i64:
    """An item of a layout's tuple of ints."""
    return int_value(tuple_item(numbers, k))


@native
def read_sizes(layout: raw, sizes: ptr[Sizes]) -> bool:
    """A layout as numbers; False: there are too many."""
    fields = ptr[LayoutObject](layout)
    sizes.like = layout
    sizes.ndim = tuple_size(fields.shape)
    if sizes.ndim > MOST_DIMS:
        return False
    for k in range(sizes.ndim):
        sizes.shape[k] = number_at(fields.shape, k)
        sizes.strides[k] = number_at(fields.strides, k)
    if failed():  # more than 64 bits
        PyErr_Clear()
        return False
    return True


@native
def is_that(layout: raw, sizes: ptr[Sizes]) -> bool:
    """Does a layout say just this?"""
    fields = ptr[LayoutObject](layout)
    like = ptr[LayoutObject](sizes.like)
    if fields.dtype != like.dtype or fields.device != like.device:
        return False
    if tuple_size(fields.shape) != sizes.ndim:
        return False
    for k in range(sizes.ndim):
        if number_at(fields.shape, k) != sizes.shape[k]:
            return False
        if number_at(fields.strides, k) != sizes.strides[k]:
            return False
    return True


# ---- what follows from sizes and strides
@native
def count_of(sizes: ptr[Sizes]) -> i64:
    """How many elements; -1: a size or a stride is below 0, or they are too large for here."""
    count, reach = i64(1), i64(1)
    for k in range(sizes.ndim):
        n, step = sizes.shape[k], sizes.strides[k]
        if n < 0 or step < 0 or n >= LARGEST or step >= LARGEST:
            return -1
        if n > 0 and (count >= LARGEST // n or step >= LARGEST // n):
            return -1
        count *= n
        reach += max(n - 1, i64(0)) * step
    return count if reach < LARGEST else i64(-1)


@native
def highest(sizes: ptr[Sizes], count: i64) -> i64:
    """One past the highest element touched; 0 when there is none."""
    high = i64(count > 0)
    if count > 0:
        for k in range(sizes.ndim):
            high += (sizes.shape[k] - 1) * sizes.strides[k]
    return high


@native
def lie_row_major(sizes: ptr[Sizes]) -> void:
    """Gives them the strides of ``shapes.contiguous_strides``."""
    step = i64(1)
    for back in range(sizes.ndim):
        k = sizes.ndim - 1 - back
        sizes.strides[k] = step
        step *= max(sizes.shape[k], i64(1))


@native
def is_row_major(sizes: ptr[Sizes]) -> bool:
    """Has it the strides of ``shapes.contiguous_strides``?"""
    step = i64(1)
    for back in range(sizes.ndim):
        k = sizes.ndim - 1 - back
        if sizes.strides[k] != step:
            return False
        step *= max(sizes.shape[k], i64(1))
    return True


@native
def is_contiguous(sizes: ptr[Sizes], count: i64) -> bool:
    """``shapes.is_contiguous``: dims of one element may have any stride."""
    step = i64(1)
    for back in range(sizes.ndim):
        k = sizes.ndim - 1 - back
        if sizes.shape[k] != 1:
            if sizes.strides[k] != step and count > 0:
                return False
            step *= sizes.shape[k]
    return True


@native
def kind_of(sizes: ptr[Sizes]) -> i64:
    """What ``layout.Form`` says of sizes and strides, as a number: which are 0, 1 or more."""
    kind = sizes.ndim
    for k in range(sizes.ndim):
        kind = kind * 4 + min(sizes.shape[k], i64(2))
    if is_row_major(sizes):
        return kind
    for k in range(sizes.ndim):
        kind = kind * 4 + min(sizes.strides[k], i64(2))
    return ~kind
