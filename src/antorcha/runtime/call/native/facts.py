"""What a tensor's layout says: ``x.size(0)``, ``x.stride(0)``, ``len(x)``, ``x.data_ptr()``; and
``x.shape[0]``, without the interpreter.

Owns nothing. Each is a method (``method.py``) whose Python function serves every other call: other
arguments, a dim that is out of range, a subclass, a mode in which somebody else has a say.
"""

from __future__ import annotations

from antorcha.lang.native import Extern, i32, i64, local, native, ptr, raw
from antorcha.runtime.call.native.keys import size_type, slice_type
from antorcha.runtime.call.native.layout_sizes import LayoutObject, has_dims
from antorcha.runtime.call.native.mode import mode_word
from antorcha.runtime.call.native.tensors import TensorObject, is_whole, offset_of
from antorcha.runtime.cpython import (
    PyErr_Clear,
    PyLong_FromLongLong,
    failed,
    int_type,
    int_value,
    new_reference,
    put_item,
    tuple_item,
    tuple_size,
    type_of,
)
from antorcha.runtime.memory.storage import StorageObject
from antorcha.runtime.objects import PyType_GenericAlloc

PySlice_Unpack = Extern("PySlice_Unpack", i32, raw, ptr[i64], ptr[i64], ptr[i64])
PySlice_AdjustIndices = Extern("PySlice_AdjustIndices", i64, i64, ptr[i64], ptr[i64], i64)
SIZE, STRIDE, LENGTH, CONTIGUOUS, DATA_PTR, ITEM = range(6)
"""What is asked: of a dim, the first two."""
METHODS = {
    "size": SIZE, "stride": STRIDE, "__len__": LENGTH, "is_contiguous": CONTIGUOUS,
    "data_ptr": DATA_PTR,
}  # fmt: skip


@native
def item_at(items: raw, index: raw) -> raw:
    """An item of a tuple, by an int that may count from the end; null without an exception where it
    is none, or out of range."""
    if type_of(index) != raw(int_type):
        return None
    count = tuple_size(items)
    at = int_value(index)
    if at == -1 and failed():  # it has more than 64 bits
        PyErr_Clear()
        return None
    if at < 0:
        at += count
    if at < 0 or at >= count:
        return None
    return new_reference(tuple_item(items, at))


@native
def items_at(items: raw, index: raw) -> raw:
    """The same by a slice without a step, as a Size."""
    first, last, step = local(i64), local(i64), local(i64)
    if PySlice_Unpack(index, first, last, step) != 0 or step[0] != 1:
        PyErr_Clear()
        return None
    count = PySlice_AdjustIndices(tuple_size(items), first, last, 1)
    result = PyType_GenericAlloc(size_type[0], count)
    if result is not None:
        for k in range(count):
            put_item(result, k, new_reference(tuple_item(items, first[0] + k)))
    return result


@native
def size_item(args: ptr[raw], nargs: i64) -> raw:
    """``shape[i]``, ``shape[i:j]``; null without an exception where it is for Python."""
    if nargs != 2 or type_of(args[0]) != size_type[0]:
        return None
    if type_of(args[1]) == raw(slice_type):
        return items_at(args[0], args[1])
    return item_at(args[0], args[1])


@native
def address(o: raw, layout: ptr[LayoutObject]) -> raw:
    """Where a tensor's elements begin; null without an exception where that is too far away."""
    if layout.itemsize is None or type_of(layout.itemsize) != raw(int_type):
        return None
    offset = offset_of(o)
    if offset < 0:
        return None
    start = i64(ptr[StorageObject](ptr[TensorObject](o).storage).ptr)
    return PyLong_FromLongLong(start + offset * int_value(layout.itemsize))


@native
def fact(args: ptr[raw], nargs: i64, *, KIND) -> raw:
    """The answer; null without an exception where it is for Python."""
    o = args[0]
    if nargs != (2 if KIND <= STRIDE else 1) or not is_whole(o) or mode_word() < 0:
        return None
    t = ptr[TensorObject](o)
    if not has_dims(t.layout):
        return None
    layout = ptr[LayoutObject](t.layout)
    if KIND == SIZE:
        return item_at(layout.shape, args[1])
    if KIND == STRIDE:
        return item_at(layout.strides, args[1])
    if KIND == LENGTH:
        if tuple_size(layout.shape) == 0:
            return None
        return new_reference(tuple_item(layout.shape, 0))
    if KIND == CONTIGUOUS:
        return new_reference(layout.contiguous)
    return address(o, layout)
