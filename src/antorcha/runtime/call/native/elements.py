"""Elements as Python numbers: ``x.item()``, ``float(x)``, ``x.tolist()``, without the interpreter.

Owns nothing. What is not a tensor of one element (for a list, of one or two dims, in the host's
memory) of a dtype that machine code has, too, and any mode in which somebody wants to know that
contents are looked at, is for Python. An element in a device's memory is waited for.
"""

from __future__ import annotations

from antorcha.core import dtypes
from antorcha.core.device import CPU
from antorcha.lang.native import (
    Extern,
    Global,
    atomic_add,
    atomic_sub,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    local,
    native,
    ptr,
    raw,
    ref,
    u8,
)
from antorcha.runtime.call.native.layout_sizes import (
    LayoutObject,
    Sizes,
    count_of,
    has_dims,
    highest,
    layout_type,
    read_sizes,
)
from antorcha.runtime.call.native.mode import mode_word
from antorcha.runtime.call.native.slots import WORD, word
from antorcha.runtime.call.native.tensors import TensorObject, is_whole, offset_of
from antorcha.runtime.cpython import (
    FALSE,
    TRUE,
    Py_DecRef,
    PyFloat_FromDouble,
    PyList_New,
    PyList_SetItem,
    int_object,
    int_type,
    int_value,
    new_reference,
    type_of,
)
from antorcha.runtime.memory.device_copies import fetch
from antorcha.runtime.memory.device_memory import DeviceHome, DevicePool, PooledBlock, is_ready
from antorcha.runtime.memory.storage import POOLED, StorageObject

PyLong_FromDouble = Extern("PyLong_FromDouble", raw, f64)
ITEM, FLOAT, INT, INDEX, TRUTH, LIST = range(6)
"""What is wanted: ``item()``, ``float()``, ``int()``, ``operator.index()``, ``bool()``, and
``tolist()``."""
METHODS = {
    "item": ITEM, "__float__": FLOAT, "__int__": INT, "__index__": INDEX, "__bool__": TRUTH,
    "tolist": LIST,
}  # fmt: skip
READ = (
    dtypes.float32, dtypes.float64, dtypes.int64, dtypes.bool_, dtypes.int32, dtypes.uint8,
    dtypes.int16, dtypes.int8, dtypes.float16, dtypes.bfloat16,
)  # fmt: skip
"""The dtypes that are read here."""
F32, F64, I64, B8, I32, U8, I16, I8, F16, BF16 = range(len(READ))
KINDS_READ = len(READ)
LARGEST_ELEMENT = 16  # bytes
dtype_objects = Global("antorcha_element_dtypes", raw, len(READ))
host = Global("antorcha_element_device", raw)


@native
def place_of_element(o: raw, layout: ptr[LayoutObject]) -> raw:
    """Where a tensor's only element is; null where it has not just one, in the host's memory or in
    a pool of a device's."""
    t = ptr[TensorObject](o)
    if layout.numel is None or layout.itemsize is None:
        return None
    if type_of(layout.numel) != raw(int_type) or int_value(layout.numel) != 1:
        return None
    memory = ptr[StorageObject](t.storage)
    if layout.device != host[0] and memory.flags & POOLED == 0:
        return None
    size = int_value(layout.itemsize)
    at = offset_of(o)
    if memory.ptr is None or at < 0 or at >= memory.nbytes // size:
        return None
    return memory.ptr + at * size


@native
def whole_number(value: i64, *, KIND) -> raw:
    if KIND == TRUTH:
        return new_reference(raw(TRUE) if value != 0 else raw(FALSE))
    if KIND == FLOAT:
        return PyFloat_FromDouble(f64(value))
    return int_object(value)


@native
def real_number(value: f64, *, KIND) -> raw:
    """Null without an exception where it is no index."""
    if KIND == TRUTH:
        return new_reference(raw(TRUE) if value != 0.0 else raw(FALSE))
    if KIND == INDEX:
        return None
    if KIND == INT:
        return PyLong_FromDouble(value)
    return PyFloat_FromDouble(value)


@native
def number_of(at: raw, dtype: raw, *, KIND) -> raw:
    """The element there; null with an exception, or without one where it is for Python."""
    if dtype == dtype_objects[F32]:
        return real_number(f64(ptr[f32](at)[0]), KIND=KIND)
    if dtype == dtype_objects[F64]:
        return real_number(ptr[f64](at)[0], KIND=KIND)
    if dtype == dtype_objects[I64]:
        return whole_number(ptr[i64](at)[0], KIND=KIND)
    if dtype == dtype_objects[B8]:
        if KIND == ITEM:
            return new_reference(raw(TRUE) if ptr[u8](at)[0] != 0 else raw(FALSE))
        return whole_number(i64(ptr[u8](at)[0] != 0), KIND=KIND)
    if dtype == dtype_objects[I32]:
        return whole_number(i64(ptr[i32](at)[0]), KIND=KIND)
    if dtype == dtype_objects[U8]:
        return whole_number(i64(ptr[u8](at)[0]), KIND=KIND)
    if dtype == dtype_objects[I16]:
        return whole_number(i64(ptr[i16](at)[0]), KIND=KIND)
    if dtype == dtype_objects[I8]:
        return whole_number(i64(ptr[i8](at)[0]), KIND=KIND)
    if dtype == dtype_objects[F16]:
        return real_number(f64(f32(ptr[f16](at)[0])), KIND=KIND)
    if dtype == dtype_objects[BF16]:
        return real_number(f64(f32(ptr[bf16](at)[0])), KIND=KIND)
    return None


@native
def is_read(dtype: raw) -> bool:
    k = 0
    while k < KINDS_READ and dtype != dtype_objects[k]:
        k += 1
    return k < KINDS_READ


@native
def number_elsewhere(o: raw, at: raw, layout: ptr[LayoutObject], *, KIND) -> raw:
    """The element there in a device's memory; null as `number_of` says it."""
    memory = ptr[StorageObject](ptr[TensorObject](o).storage)
    home = ptr[DeviceHome](ptr[DevicePool](ptr[PooledBlock](memory.block).pool).home)
    dtype, size = layout.dtype, int_value(layout.itemsize)
    seen = local(u8, LARGEST_ELEMENT)
    if not is_read(dtype) or not is_ready(home):
        return None
    if fetch(home, raw(seen), i64(at), size) != 0:  # (Python meets the same, and raises it)
        return None
    return number_of(raw(seen), dtype, KIND=KIND)


@native
def row_of_numbers(at: raw, count: i64, step: i64, dtype: raw) -> raw:
    """A list of elements that are `step` bytes apart; null as `number_of` says it."""
    result = PyList_New(count)
    if result is None:
        return result
    for k in range(count):
        number = number_of(at + k * step, dtype, KIND=ITEM)
        if number is None:
            Py_DecRef(result)
            return number
        PyList_SetItem(result, k, number)
    return result


@native
def rows_of_numbers(at: raw, sizes: ptr[Sizes], size: i64, dtype: raw) -> raw:
    """The same of one or two dims; `size`: an element's bytes."""
    last = sizes.ndim - 1
    count, step = sizes.shape[last], sizes.strides[last] * size
    if last == 0:
        return row_of_numbers(at, count, step, dtype)
    result = PyList_New(sizes.shape[0])
    if result is None:
        return result
    for k in range(sizes.shape[0]):
        row = row_of_numbers(at + k * sizes.strides[0] * size, count, step, dtype)
        if row is None:
            Py_DecRef(result)
            return row
        PyList_SetItem(result, k, row)
    return result


@native
def list_of(o: raw, layout: ptr[LayoutObject]) -> raw:
    """All elements; null with an exception, or without one where it is for Python."""
    t = ptr[TensorObject](o)
    sizes = local(Sizes)
    if layout.device != host[0] or not has_dims(t.layout) or not read_sizes(t.layout, sizes):
        return None
    memory = ptr[StorageObject](t.storage)
    size, at, count = int_value(layout.itemsize), offset_of(o), count_of(sizes)
    if memory.ptr is None or sizes.ndim < 1 or sizes.ndim > 2 or at < 0 or count < 1:
        return None
    if at + highest(sizes, count) > memory.nbytes // size:
        return None
    storage, dtype = new_reference(t.storage), layout.dtype  # making lists may run any code
    atomic_add(ref(memory.pins), 1)
    result = rows_of_numbers(memory.ptr + at * size, sizes, size, dtype)
    atomic_sub(ref(memory.pins), 1)
    Py_DecRef(storage)
    return result


@native(export=True, level="O2")
def element(o: raw, *, KIND) -> raw:
    """The only element, or all; null with an exception, or without one where it is for Python."""
    if not is_whole(o) or mode_word() < 0:
        return None
    if type_of(ptr[TensorObject](o).layout) != layout_type[0]:
        return None
    layout = ptr[LayoutObject](ptr[TensorObject](o).layout)
    if KIND == LIST:
        return list_of(o, layout)
    at = place_of_element(o, layout)
    if at is None:
        return None
    if layout.device != host[0]:
        return number_elsewhere(o, at, layout, KIND=KIND)
    return number_of(at, layout.dtype, KIND=KIND)


def install() -> None:
    """Tells the machine code which dtypes and device it reads."""
    for k, dtype in enumerate(READ):
        word(dtype_objects.addr + WORD * k).value = id(dtype)
    host.refer_to(CPU)
