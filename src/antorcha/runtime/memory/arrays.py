"""Arrays and lists to memory: where a NumPy array's is, and Python's numbers written to ours.

The address is that of the array interface's C struct
(https://numpy.org/doc/stable/reference/arrays.interface.html), which ``__array_struct__`` gives in
a capsule: asking ``__array_interface__`` or ``ctypes.data`` takes twenty times as long.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.lang.native import Extern, bind, f32, f64, i8, i32, i64, native, ptr, raw, struct
from antorcha.runtime.cpython import (
    FALSE,
    TRUE,
    PyErr_Clear,
    PyFloat_AsDouble,
    PyList_GetItem,
    PyList_Size,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    failed,
    fast_def,
    float_type,
    int_object,
    int_type,
    int_value,
    list_type,
    new_reference,
    type_of,
)

if TYPE_CHECKING:
    import numpy as np

PyCapsule_GetPointer = Extern("PyCapsule_GetPointer", raw, raw, raw)


@struct
class ArrayInterface:
    two: i32  # what it says it is
    ndim: i32
    kind: i8
    itemsize: i32
    flags: i32
    shape: raw
    strides: raw
    data: raw


@native
def py_data(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(capsule) -> the address."""
    interface = ptr[ArrayInterface](PyCapsule_GetPointer(args[0], None))
    if interface is None:
        return None
    return PyLong_FromLongLong(i64(interface.data))


_data: Callable[[Any], int] = bind(fast_def("data", py_data.spec().addr))


# ---- lists of numbers
FLOATS, INTS = 1, 2
"""What a list holds: Python floats, or ints."""


@native
def kind_of_items(items: raw) -> i64:
    """FLOATS or INTS where a list holds nothing else; 0: neither, or nothing."""
    count = PyList_Size(items)
    if count == 0:
        return 0
    kind = type_of(PyList_GetItem(items, 0))
    for k in range(1, count):
        if type_of(PyList_GetItem(items, k)) != kind:
            return 0
    if kind == raw(float_type):
        return FLOATS
    return INTS if kind == raw(int_type) else 0


@native
def row_of(data: raw, k: i64, length: i64) -> raw:
    """The k-th list in a list, of that length; null where it is none. A length below 0: the list
    itself."""
    if length < 0:
        return data
    row = PyList_GetItem(data, k)
    if type_of(row) != raw(list_type) or PyList_Size(row) != length:
        return None
    return row


@native
def py_kind(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(list) -> what it, or the lists of one length in it, holds."""
    data = args[0]
    rows, length = i64(1), i64(-1)
    if PyList_Size(data) > 0 and type_of(PyList_GetItem(data, 0)) == raw(list_type):
        rows, length = PyList_Size(data), PyList_Size(PyList_GetItem(data, 0))
    kind = i64(0)
    for k in range(rows):
        row = row_of(data, k, length)
        if row is None:
            return int_object(0)
        found = kind_of_items(row)
        if found == 0 or (k > 0 and found != kind):
            return int_object(0)
        kind = found
    return int_object(kind)


@native
def fill_row(items: raw, kind: i64, at: raw, *, T) -> bool:
    """Writes the numbers of a list that holds nothing else; False: one is beyond 64 bits."""
    out = ptr[T](at)
    for k in range(PyList_Size(items)):
        item = PyList_GetItem(items, k)
        if kind == FLOATS:
            out[k] = T(PyFloat_AsDouble(item))
        else:
            value = PyLong_AsLongLong(item)
            if value == -1 and failed():
                PyErr_Clear()
                return False
            out[k] = T(value)
    return True


@native
def py_fill(_self: raw, args: ptr[raw], _nargs: i64, *, T) -> raw:
    """(list, rows or -1, their length, kind, address) -> was it filled? (Other threads may have
    changed the list since it was looked at.)"""
    data = args[0]
    rows, length = int_value(args[1]), int_value(args[2])
    kind = int_value(args[3])
    at = raw(PyLong_AsLongLong(args[4]))
    ok = PyList_Size(data) == (length if rows < 0 else rows)
    for k in range(max(rows, 1)):
        if ok:
            row = row_of(data, k, length if rows >= 0 else -1)
            ok = row is not None and kind_of_items(row) == kind
            ok = ok and fill_row(row, kind, at, T=T)
            at = at + length * T.size
    return new_reference(raw(TRUE) if ok else raw(FALSE))


_kind: Callable[[list[Any]], int] = bind(fast_def("kind", py_kind.spec().addr))
FILLED = {"float32": f32, "float64": f64, "int64": i64}
"""The dtypes that numbers are written to here: floats to floats, ints to all."""


@functools.cache
def _filler(dtype: str) -> Callable[..., bool]:
    filler: Callable[..., bool] = bind(fast_def("fill", py_fill.spec(T=FILLED[dtype]).addr))
    return filler


def kind_of(data: list[Any]) -> int:
    """What a list, or the lists of one length in it, holds: FLOATS, INTS, or neither (0)."""
    return _kind(data)


def fill(data: list[Any], shape: tuple[int, ...], kind: int, dtype: str, address: int) -> bool:
    """Writes the numbers of a list of that kind and shape to memory; False: it is not so (any
    more), or a number is beyond 64 bits."""
    rows = shape[0] if len(shape) == 2 else -1
    return _filler(dtype)(data, rows, shape[-1], kind, address)


# ---- arrays
def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of an array's first element."""
    return _data(array.__array_struct__)
