"""NumPy's arrays over tensors' memory, and tensors over arrays', without the interpreter.

An array's fields lie in ``PyArrayObject_fields`` as NumPy's C API promises (numpy/ndarraytypes.h;
extensions built for NumPy 1 and 2 read them there), which is checked, and arrays are made by two
functions of its table (``_ARRAY_API``). Owns nothing: an array owns a memoryview of the storage, so
that the memory stays where it is, and a storage owns the array that it lies over. What is unusual
(no elements, other dtypes, subclasses, strides that are no multiple of the element, a tensor that
wants a gradient, other modes) is for Python, in ``tensor.interop`` and ``tensor.convert``.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.core.device import CPU
from antorcha.core.hooks import hooks
from antorcha.lang.native import (
    Extern,
    Global,
    array,
    bind,
    func,
    i32,
    i64,
    local,
    make_immortal,
    native,
    ptr,
    raw,
    ref,
    struct,
    u8,
)
from antorcha.runtime.call.native.elements import host
from antorcha.runtime.call.native.layout_sizes import (
    MOST_DIMS,
    LayoutObject,
    Sizes,
    count_of,
    has_dims,
    highest,
    is_contiguous,
    lie_row_major,
    read_sizes,
)
from antorcha.runtime.call.native.layouts import layout_of
from antorcha.runtime.call.native.mode import mode_word
from antorcha.runtime.call.native.slots import WORD, word
from antorcha.runtime.call.native.tensors import TensorObject, is_whole, new_tensor, offset_of
from antorcha.runtime.cpython import (
    FALSE,
    HEADER,
    NONE,
    Py_DecRef,
    PyObject_GC_Track,
    failed,
    fast_def,
    int_value,
    new_reference,
    type_of,
)
from antorcha.runtime.memory import layout as layouts
from antorcha.runtime.memory.storage import LOCKED, StorageObject, blank_storage

WRITEABLE = 0x0400  # NPY_ARRAY_WRITEABLE
ARRAY_TYPE, FROM_DESCR, SET_BASE = 2, 94, 282
"""Places in NumPy's table: PyArray_Type, PyArray_NewFromDescr, PyArray_SetBaseObject."""
KINDS = (
    dtypes.float32, dtypes.float64, dtypes.int64, dtypes.bool_, dtypes.int32, dtypes.uint8,
    dtypes.int16, dtypes.int8, dtypes.float16, dtypes.complex64, dtypes.complex128,
)  # fmt: skip
"""The dtypes of arrays and tensors that share memory here."""
MOST_KINDS = len(KINDS)


@struct
class ArrayObject:
    """The fields of an array that are read here."""

    head: array[u8, HEADER]
    data: raw
    ndim: i32
    shape: ptr[i64]
    strides: ptr[i64]  # in bytes
    base: raw
    descr: raw
    flags: i32


@struct
class ArrayKind:
    """A dtype of both sides."""

    descr: raw  # NumPy's
    dtype: raw
    layout: raw  # one of that dtype on the CPU


from_descr_t = func[raw, raw, raw, i32, ptr[i64], ptr[i64], raw, i32, raw]
set_base_t = func[i32, raw, raw]
array_type = Global("antorcha_array_type", raw)
kinds = Global("antorcha_array_kinds", ArrayKind, MOST_KINDS)
new_from_descr = Global("antorcha_array_from_descr", from_descr_t)
set_base = Global("antorcha_array_set_base", set_base_t)
PyMemoryView_FromObject = Extern("PyMemoryView_FromObject", raw, raw)


# ---- arrays to tensors
@native
def kind_of(descr: raw) -> raw:
    """A layout on the CPU of NumPy's dtype (borrowed), or null."""
    for k in range(MOST_KINDS):
        if kinds[k].descr == descr:
            return kinds[k].layout
    return None


@native
def sizes_of(a: ptr[ArrayObject], sizes: ptr[Sizes]) -> bool:
    """How a tensor over an array's memory lies; False: it is for Python."""
    sizes.like = kind_of(a.descr)
    if sizes.like is None or i64(a.ndim) > MOST_DIMS:
        return False
    itemsize = int_value(ptr[LayoutObject](sizes.like).itemsize)
    sizes.ndim = i64(a.ndim)
    for k in range(sizes.ndim):
        n, stride = a.shape[k], a.strides[k]
        if n < 1 or (n > 1 and (stride < 0 or stride % itemsize != 0)):
            return False
        sizes.shape[k] = n
        sizes.strides[k] = stride // itemsize if n > 1 else i64(1)
    count = count_of(sizes)
    if count > 0 and is_contiguous(sizes, count):
        lie_row_major(sizes)  # dims of one element may have had any stride
    return count > 0


@native
def py_share(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(array) -> a tensor over its memory; None where it is for Python."""
    o = args[0]
    a = ptr[ArrayObject](o)
    sizes = local(Sizes)
    if mode_word() < 0 or type_of(o) != array_type[0] or not sizes_of(a, sizes):
        return new_reference(raw(NONE))
    layout = layout_of(sizes)
    if layout is None:
        return None if failed() else new_reference(raw(NONE))
    storage = blank_storage()
    if storage is None:
        Py_DecRef(layout)
        return None
    s = ptr[StorageObject](storage)
    s.ptr = a.data
    s.nbytes = int_value(ptr[LayoutObject](layout).nbytes)
    s.flags = 0 if i64(a.flags) & WRITEABLE != 0 else LOCKED
    s.owner = new_reference(o)
    PyObject_GC_Track(storage)
    result = new_tensor(layout, storage)
    Py_DecRef(layout)
    return result


# ---- tensors to arrays
@native
def wants_gradient(t: ptr[TensorObject]) -> bool:
    """Does a tensor want a gradient, or may it, as a view of one that does?"""
    if t.rg != raw(FALSE) or t.base is None:
        return True
    return t.base != raw(NONE) and (
        not is_whole(t.base) or ptr[TensorObject](t.base).rg != raw(FALSE)
    )


@native
def descr_of(layout: ptr[LayoutObject]) -> raw:
    """NumPy's dtype of a layout on the CPU (borrowed), or null."""
    if layout.device != host[0]:
        return None
    for k in range(MOST_KINDS):
        if kinds[k].dtype == layout.dtype:
            return kinds[k].descr
    return None


@native
def array_over(view: raw, s: ptr[StorageObject], sizes: ptr[Sizes], start: i64, descr: raw) -> raw:
    """An array over the memory of a storage, from an element on; it takes over the storage's
    memoryview, which keeps the memory where it is. Null with an exception, or without one where the
    memory does not reach so far."""
    result = raw(0)
    itemsize = int_value(ptr[LayoutObject](sizes.like).itemsize)
    if s.ptr is not None and start + highest(sizes, count_of(sizes)) <= s.nbytes // itemsize:
        for k in range(sizes.ndim):
            sizes.strides[k] *= itemsize
        flags = i32(0) if s.flags & LOCKED != 0 else i32(WRITEABLE)
        result = new_from_descr[0](
            array_type[0], new_reference(descr), i32(sizes.ndim), ref(sizes.shape[0]),
            ref(sizes.strides[0]), s.ptr + start * itemsize, flags, None,
        )  # fmt: skip
    if result is None:
        Py_DecRef(view)
    elif set_base[0](result, view) != i32(0):  # (it takes the view over, whatever happens)
        Py_DecRef(result)
        result = None
    return result


@native
def array_of(o: raw) -> raw:
    """``x.numpy()``: an array over a tensor's memory; null with an exception, or without one where
    it is for Python."""
    result = raw(0)
    t = ptr[TensorObject](o)
    sizes = local(Sizes)
    if not is_whole(o) or mode_word() < 0 or wants_gradient(t) or not has_dims(t.layout):
        return result
    descr = descr_of(ptr[LayoutObject](t.layout))
    if descr is None or not read_sizes(t.layout, sizes) or count_of(sizes) < 1:
        return result
    start = offset_of(o)
    if start < 0:
        return result
    sizes.like = kind_of(descr)
    storage = new_reference(t.storage)  # making objects may run any code
    view = PyMemoryView_FromObject(storage)
    if view is not None:
        result = array_over(view, ptr[StorageObject](storage), sizes, start, descr)
    Py_DecRef(storage)
    return result


# ---- setting up
def why_not() -> str:
    """What of NumPy is not as this file says; empty when all is."""
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for sample in (base[:, 1:, ::2], base[0], np.frombuffer(b"12345678", np.float32)):
        at = {name: id(sample) + offset for name, (offset, _) in ArrayObject.fields.items()}
        dims = word(at["ndim"]).value & 0xFFFFFFFF
        sizes, steps = word(at["shape"]).value, word(at["strides"]).value
        found = (
            word(at["data"]).value,
            tuple([word(sizes + WORD * k).value for k in range(dims)]),
            tuple([word(steps + WORD * k).value for k in range(dims)]),
            word(at["base"]).value,
            word(at["descr"]).value,
            bool(word(at["flags"]).value & WRITEABLE),
        )
        expected = (
            sample.ctypes.data, sample.shape, sample.strides, id(sample.base), id(sample.dtype),
            sample.flags.writeable,
        )  # fmt: skip
        if found != expected:
            return "an array's fields are elsewhere"
    return ""


def _table() -> Any:
    """The addresses of NumPy's C API."""
    for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
        try:
            capsule = importlib.import_module(name)._ARRAY_API
        except (ImportError, AttributeError):
            continue
        address_of = ctypes.pythonapi.PyCapsule_GetPointer
        address_of.restype = ctypes.c_void_p
        address_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
        return address_of(capsule, None)
    return None


@functools.cache
def install() -> bool:
    """Tells the machine code what arrays are; False where they are for Python."""
    table = _table()
    if table is None or why_not():
        return False
    at = {place: word(table + WORD * place).value for place in (ARRAY_TYPE, FROM_DESCR, SET_BASE)}
    if at[ARRAY_TYPE] != id(np.ndarray):
        return False
    array_type.refer_to(np.ndarray)
    word(new_from_descr.addr).value = at[FROM_DESCR]
    word(set_base.addr).value = at[SET_BASE]
    for k, dtype in enumerate(KINDS):
        layout = layouts.contiguous((), dtype, CPU)
        make_immortal(layout)
        place = kinds.addr + 3 * WORD * k
        word(place).value, word(place + WORD).value = id(dtype.np), id(dtype)
        word(place + 2 * WORD).value = id(layout)
    return True


def share(array: Any) -> Any:
    """A tensor over an array's memory; None: that is for Python. (From the first call on, a builtin
    in this function's place.)"""
    hooks.share_array = bind(fast_def("share", py_share.spec().addr)) if install() else None
    return None if hooks.share_array is None else hooks.share_array(array)
