"""One element as a Python number: ``x.item()``, ``float(x)``, ``bool(x)``, without the interpreter.

Owns nothing. What is not a tensor of one element in the host's memory, of a dtype that C has, too,
and any mode in which somebody wants to know that contents are looked at, is for Python.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable
from __future__ import annotations

from antorcha import dtypes
from antorcha.device import CPU
from antorcha.lang.native import (
    Extern,
    Global,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    native,
    ptr,
    raw,
    u8,
)
from antorcha.runtime.call.native.layouts import LayoutObject, layout_type
from antorcha.runtime.call.native.mode import mode_word
from antorcha.runtime.call.native.slots import WORD, word
from antorcha.runtime.call.native.tensors import TensorObject, is_whole
from antorcha.runtime.cpython import (
    FALSE,
    TRUE,
    PyFloat_FromDouble,
    int_object,
    int_type,
    int_value,
    new_reference,
    type_of,
)
from antorcha.runtime.storage import StorageObject

PyLong_FromDouble = Extern("PyLong_FromDouble", raw, f64)
ITEM, FLOAT, INT, INDEX, TRUTH = range(5)
"""What is wanted: ``item()``, ``float()``, ``int()``, ``operator.index()``, ``bool()``."""
METHODS = {
    "item": ITEM, "__float__": FLOAT, "__int__": INT, "__index__": INDEX, "__bool__": TRUTH,
}  # fmt: skip
READ = (
    dtypes.float32, dtypes.float64, dtypes.int64, dtypes.bool_, dtypes.int32, dtypes.uint8,
    dtypes.int16, dtypes.int8,
)  # fmt: skip
"""The dtypes that are read here."""
F32, F64, I64, B8, I32, U8, I16, I8 = range(len(READ))
dtype_objects = Global("antorcha_element_dtypes", raw, len(READ))
host = Global("antorcha_element_device", raw)


@native
def place_of_element(o: raw, layout: ptr[LayoutObject]) -> raw:
    """Where a tensor's only element is; null where it has not just one, in the host's memory."""
    t = ptr[TensorObject](o)
    if layout.device != host[0] or layout.numel is None or layout.itemsize is None:
        return None
    if type_of(layout.numel) != raw(int_type) or int_value(layout.numel) != 1:
        return None
    memory = ptr[StorageObject](t.storage)
    size = int_value(layout.itemsize)
    at = int_value(t.offset)  # (-1 where it is too large)
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


@native(export=True, level="O2")
def element(o: raw, *, KIND) -> raw:
    """The only element; null with an exception, or without one where it is for Python."""
    if not is_whole(o) or mode_word() < 0:
        return None
    if type_of(ptr[TensorObject](o).layout) != layout_type[0]:
        return None
    layout = ptr[LayoutObject](ptr[TensorObject](o).layout)
    at = place_of_element(o, layout)
    if at is None:
        return None
    dtype = layout.dtype
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
    return None


def install() -> None:
    """Tells the machine code which dtypes and device it reads."""
    for k, dtype in enumerate(READ):
        word(dtype_objects.addr + WORD * k).value = id(dtype)
    host.refer_to(CPU)
