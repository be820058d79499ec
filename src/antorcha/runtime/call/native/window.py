"""Views that move: ``x[i]``, ``x[i:j]``, ``x[:, i]`` for any i, as in a loop over rows or batches.

The result lies in the same way wherever it begins. So in the key of such a call each integer stands
for any integer, each slice for any of as many elements, and what they add to the offset is worked
out from the sizes and strides at each call. Only integers and slices without a step are for here;
an index outside, and everything else, is for the plans of one index each.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable
from __future__ import annotations

from antorcha.lang.native import i64, native, ptr, raw
from antorcha.runtime.call.native.flat import LayoutObject, layout_type
from antorcha.runtime.call.native.keys import (
    ANY_INT,
    ANY_SLICE,
    INT,
    MODE,
    NOTHING,
    SLICE,
    TUPLE_END,
    Key,
    add_word,
    begin_key,
    size_type,
)
from antorcha.runtime.cpython import (
    PyErr_Clear,
    PyLong_AsLongLong,
    PyTuple_GetItem,
    PyTuple_Size,
    failed,
    tuple_type,
    type_of,
)


@native
def has_dims(layout: raw) -> bool:
    """Is it a layout whose sizes and strides may be read? (A tensor's fields may be anything.)"""
    if type_of(layout) != layout_type[0]:
        return False
    lay = ptr[LayoutObject](layout)
    if lay.shape is None or lay.strides is None:
        return False
    known = type_of(lay.shape) == size_type[0] and type_of(lay.strides) == raw(tuple_type)
    return known and PyTuple_Size(lay.shape) == PyTuple_Size(lay.strides)


@native
def bound(kind: i64, value: i64, size: i64, missing: i64) -> i64:
    """A slice's bound as a place from 0 to `size`; -1: it is not for here."""
    if kind == NOTHING:
        return missing
    if kind != INT:
        return -1
    if value < 0:
        value = max(value + size, 0)
    return min(value, size)


@native
def slide(key: ptr[Key], window: ptr[Key], delta: ptr[i64]) -> bool:
    """The words of an index's key as they are for any place, and what this one adds to the offset;
    False: it is not for here."""
    begin_key(window)
    delta[0] = 0
    if not has_dims(raw(key.values[0])):
        return False
    lay = ptr[LayoutObject](raw(key.values[0]))
    ndim = PyTuple_Size(lay.shape)
    dim = i64(0)
    k = i64(1)
    ok = add_word(window, key.kinds[0], key.values[0])
    while ok and k < key.count:
        kind, value = key.kinds[k], key.values[k]
        if kind == TUPLE_END or kind == MODE:  # noqa: SIM109 (not in the kernel language)
            ok = add_word(window, kind, value)
            k += 1
        elif dim >= ndim:
            ok = False
        else:
            size = PyLong_AsLongLong(PyTuple_GetItem(lay.shape, dim))
            stride = PyLong_AsLongLong(PyTuple_GetItem(lay.strides, dim))
            if kind == INT:
                if value < 0:
                    value += size
                ok = value >= 0 and value < size and add_word(window, ANY_INT, 0)
                delta[0] += value * stride
                k += 1
            elif kind == SLICE and k + 3 < key.count:
                first = bound(key.kinds[k + 1], key.values[k + 1], size, 0)
                last = bound(key.kinds[k + 2], key.values[k + 2], size, size)
                ok = first >= 0 and last >= 0 and key.kinds[k + 3] == NOTHING
                ok = ok and add_word(window, ANY_SLICE, max(last - first, 0))
                delta[0] += first * stride
                k += 4
            else:
                ok = False
            dim += 1
    if failed():
        PyErr_Clear()
        return False
    return ok and dim > 0
