"""What a tensor's layout says: ``x.size(0)``, ``x.stride(0)``, ``len(x)``, ``x.data_ptr()``; and
``x.shape[0]``, without the interpreter.

Owns nothing. Each is a method (``method.py``) whose Python function serves every other call: other
arguments, a dim that is out of range, a subclass, a mode in which somebody else has a say.
"""

from __future__ import annotations

from antorcha.lang.native import Extern, i32, i64, local, native, ptr, raw
from antorcha.runtime.call.native.keys import size_type, slice_type
from antorcha.runtime.call.native.layouts import LayoutObject, has_dims, tuple_new
from antorcha.runtime.call.native.mode import mode_word
from antorcha.runtime.call.native.tensors import TensorObject, is_whole, offset_of
from antorcha.runtime.cpython import (
    Py_DecRef,
    PyErr_Clear,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_Size,
    failed,
    int_type,
    int_value,
    new_reference,
    type_of,
)
from antorcha.runtime.memory.storage import StorageObject

PySlice_Unpack = Extern("PySlice_Unpack", i32, raw, ptr[i64], ptr[i64], ptr[i64])
PySlice_AdjustIndices = Extern("PySlice_AdjustIndices", i64, i64, ptr[i64], ptr[i64], i64)
PyTuple_GetSlice = Extern("PyTuple_GetSlice", raw, raw, i64, i64)
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
    count = PyTuple_Size(items)
    at = int_value(index)
    if at == -1 and failed():  # it has more than 64 bits
        PyErr_Clear()
        return None
    if at < 0:
        at += count
    if at < 0 or at >= count:
        return None
    return new_reference(PyTuple_GetItem(items, at))


@native
def items_at(items: raw, index: raw) -> raw:
    """The same by a slice without a step, as a Size."""
    first, last, step = local(i64), local(i64), local(i64)
    if PySlice_Unpack(index, first, last, step) != 0 or step[0] != 1:
        PyErr_Clear()
        return None
    PySlice_AdjustIndices(PyTuple_Size(items), first, last, 1)
    args = local(raw, 2)
    args[0] = size_type[0]
    args[1] = PyTuple_GetSlice(items, first[0], last[0])
    if args[1] is None:
        return args[1]
    result = PyObject_Vectorcall(tuple_new[0], args, 2, None)
    Py_DecRef(args[1])
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
        if PyTuple_Size(layout.shape) == 0:
            return None
        return new_reference(PyTuple_GetItem(layout.shape, 0))
    if KIND == CONTIGUOUS:
        return new_reference(layout.contiguous)
    return address(o, layout)
