"""What launches of libraries share in machine code: scratch memory, and other launches' kernels."""

from __future__ import annotations

import ctypes
from typing import Any

from antorcha.lang.native import func, i64, native, ptr, raw
from antorcha.runtime.cpython import Py_DecRef, PyObject_Vectorcall
from antorcha.runtime.launch import AGAIN
from antorcha.runtime.memory.device_memory import (
    DEVICE_SHIFT,
    DeviceHome,
    get_ready,
)
from antorcha.runtime.memory.storage import StorageObject, make_storage

kernel_t = func[i64, ptr[raw], ptr[i64]]


@native
def take_scratch(home: ptr[DeviceHome], room: i64) -> raw:
    """A storage of that size in a device's memory; null with an exception."""
    scratch = make_storage(room)
    if scratch is not None and get_ready(home.number) is None:
        Py_DecRef(scratch)
        return raw(0)
    return scratch


@native
def bytes_of(room: i64) -> i64:
    """The size, without the device's number."""
    return room & ((i64(1) << DEVICE_SHIFT) - 1)


@native
def place_of(scratch: raw) -> raw:
    """Where a storage's memory is; null where there is none."""
    if scratch is None:
        return raw(0)
    return ptr[StorageObject](scratch).ptr


@native
def run_other(kernel: kernel_t, bufs: ptr[raw], desc: ptr[i64]) -> i64:
    """Runs another launch's kernel, and does what it asks for; -1 with an exception."""
    code = kernel(bufs, desc)
    while code == AGAIN:
        done = PyObject_Vectorcall(ptr[raw](desc)[0], ptr[raw](0), 0, None)
        if done is None:
            return i64(-1)
        Py_DecRef(done)
        code = kernel(bufs, desc)
    return code


# ---- for Python
def address_of(function: Any) -> int:
    """Where a function of a library's is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
