"""Keys: a call's arguments as words, by which its plan is found.

A tensor's word is its layout, a number's is its value, that of a string, a dtype, a device or a
memory format is the object itself; a tuple or a list is its length and then its items; the last
word is the mode, where that makes a difference. Each word has a kind, so that 1, 1.0 and True
differ. Keyword arguments follow, each after its name. What is none of these (a subclass, an array,
a tensor whose fields were tampered with) has no key: the call is for Python.

Owns nothing; the tensors and objects in a key are the caller's.
"""

from __future__ import annotations

from antorcha.core import dtypes
from antorcha.core.device import Device
from antorcha.core.formats import memory_format
from antorcha.core.shapes import Size
from antorcha.lang.native import (
    ExternData,
    Global,
    array,
    f64,
    i64,
    local,
    native,
    ptr,
    raw,
    struct,
    u8,
    u64,
    void,
)
from antorcha.runtime.call.native.tensors import (
    TensorObject,
    is_whole,
    parameter_type,
    tensor_type,
)
from antorcha.runtime.cpython import (
    FALSE,
    HEADER,
    NONE,
    TRUE,
    PyErr_Clear,
    PyFloat_AsDouble,
    PyList_GetItem,
    PyList_Size,
    failed,
    float_type,
    int_type,
    int_value,
    list_type,
    tuple_item,
    tuple_size,
    tuple_type,
    type_of,
    zero,
)

MOST = 24  # words of a key
MOST_TENSORS = 8
MOST_NUMBERS = 3
INT, BOOL, NOTHING, DOTS, SLICE, FLOAT, TENSOR, GRAD, OBJECT, ITEMS, NAME, TUPLE_END = range(1, 13)
LOOSE_INT, LOOSE_FLOAT, MODE, FAMILY, FORM, GRAD_FORM, SIZE, ANY_SIZE = range(13, 21)
FUNCTION, INDEX = range(2)
"""How arguments are read: those of an operator, function or method, of ``x[i]``."""
slice_type = ExternData("PySlice_Type", u8)
str_type = ExternData("PyUnicode_Type", u8)
DOTS_OBJECT = ExternData("_Py_EllipsisObject", u8)
dtype_type = Global("antorcha_dtype_type", raw)
device_type = Global("antorcha_device_type", raw)
format_type = Global("antorcha_format_type", raw)  # torch.memory_format, a str
size_type = Global("antorcha_size_type", raw)  # torch.Size, a tuple


@struct
class Key:
    """Its first four fields are also those of what is found by it."""

    count: i64
    mixed: i64  # a hash
    kinds: array[i64, MOST]
    values: array[i64, MOST]
    tensors: i64
    graph: i64  # does one of them want a gradient?
    given: array[raw, MOST_TENSORS]  # the tensors, in order; no part of what is compared
    numbers: i64
    loose: array[raw, MOST_NUMBERS]  # numbers that the kernel gets, whatever their value
    listed: i64  # is there a list among the arguments? (Any code may change it, and end its items.)
    shape: i64  # are integers sizes just now?


@struct
class SliceObject:
    head: array[u8, HEADER]
    start: raw
    stop: raw
    step: raw


@native
def begin_key(key: ptr[Key]) -> void:
    key.count = 0
    key.tensors = 0
    key.graph = 0
    key.numbers = 0
    key.listed = 0
    key.shape = 0
    key.mixed = 0


@native
def mixed_with(mixed: i64, kind: i64, value: i64) -> i64:
    """The hash of one more word."""
    product = (u64(mixed) ^ u64(value * 32 + kind)) * 0x9E3779B97F4A7C15
    return i64(product ^ product >> 29)


@native
def add_word(key: ptr[Key], kind: i64, value: i64) -> bool:
    """False: there are too many."""
    if key.count >= MOST:
        return False
    key.kinds[key.count] = kind
    key.values[key.count] = value
    key.count += 1
    key.mixed = mixed_with(key.mixed, kind, value)
    return True


@native
def add_tensor(key: ptr[Key], o: raw) -> bool:
    """Adds a tensor; False: it is not for here."""
    if key.tensors >= MOST_TENSORS or not is_whole(o):
        return False
    key.given[key.tensors] = o
    key.tensors += 1
    kind = i64(TENSOR)
    if ptr[TensorObject](o).rg != raw(FALSE):
        kind = GRAD
        key.graph = 1
    return add_word(key, kind, i64(ptr[TensorObject](o).layout))


@native
def add_plain(key: ptr[Key], o: raw) -> bool:
    """Adds a number, None or ``...``; False: it is none of these."""
    if type_of(o) == raw(int_type):
        value = int_value(o)
        if value == -1 and failed():
            PyErr_Clear()
            return False
        return add_word(key, SIZE if key.shape != 0 else INT, value)
    if o == raw(NONE):
        return add_word(key, NOTHING, 0)
    if o == raw(TRUE) or o == raw(FALSE):
        return add_word(key, BOOL, i64(o == raw(TRUE)))
    if o == raw(DOTS_OBJECT):
        return add_word(key, DOTS, 0)
    return False


@native
def add_argument(key: ptr[Key], o: raw) -> bool:
    """Adds an argument that is no sequence; False: it is not for here."""
    kind = type_of(o)
    if kind == raw(float_type):
        bits = PyFloat_AsDouble(o)
        word = local(i64)
        ptr[f64](word)[0] = bits
        return add_word(key, FLOAT, word[0])
    named = kind == raw(str_type) or kind == format_type[0]
    if named or kind == dtype_type[0] or kind == device_type[0]:
        return add_word(key, OBJECT, i64(o))
    return add_plain(key, o) or add_tensor(key, o)


@native
def add_any(key: ptr[Key], o: raw) -> bool:
    """Adds an argument, also a tuple or a list of plain ones; False: it is not for here."""
    kind = type_of(o)
    if kind == tensor_type[0] or kind == parameter_type[0]:
        return add_tensor(key, o)
    if kind == raw(int_type):
        return add_plain(key, o)
    if kind == raw(tuple_type) or kind == size_type[0]:
        count = tuple_size(o)
        ok = add_word(key, ITEMS, count)
        for k in range(count):
            ok = ok and add_argument(key, tuple_item(o, k))
        return ok
    if kind == raw(list_type):
        key.listed = 1
        count = PyList_Size(o)
        ok = add_word(key, ITEMS, count)
        for k in range(count):
            ok = ok and add_argument(key, PyList_GetItem(o, k))
        return ok
    return add_argument(key, o)


@native
def add_index(key: ptr[Key], o: raw) -> bool:
    """Adds an item of an index to a key; False: it is not for here."""
    if o == raw(TRUE) or o == raw(FALSE):
        return False
    if type_of(o) == tensor_type[0]:
        return add_tensor(key, o)
    if type_of(o) != raw(slice_type):
        return add_plain(key, o)
    s = ptr[SliceObject](o)
    return (
        add_word(key, SLICE, 0)
        and add_plain(key, s.start)
        and add_plain(key, s.stop)
        and add_plain(key, s.step)
    )


@native
def read_index(key: ptr[Key], args: ptr[raw], nargs: i64, names: raw) -> bool:
    """The key of ``x[i]``; False: it is not for here."""
    begin_key(key)
    if names is not None or nargs != 2 or not add_tensor(key, args[0]):
        return False
    index = args[1]
    if type_of(index) != raw(tuple_type):
        return add_index(key, index)
    ok = True
    for k in range(tuple_size(index)):
        ok = ok and add_index(key, tuple_item(index, k))
    return ok and add_word(key, TUPLE_END, 0)  # x[(1,)] and x[1] are one thing, but two keys


@native
def add_loose(key: ptr[Key], o: raw) -> bool:
    """Adds an argument of which, if it is a number, only the type matters, and that it is the int
    0, by which not all ops divide."""
    kind = i64(0)
    if type_of(o) == raw(float_type):
        kind = LOOSE_FLOAT
    elif type_of(o) == raw(int_type):
        kind = LOOSE_INT
    if kind == 0 or key.numbers >= MOST_NUMBERS:
        return add_any(key, o)
    key.loose[key.numbers] = o
    key.numbers += 1
    return add_word(key, kind, i64(o == zero[0]))


@native
def add_shape(key: ptr[Key], o: raw) -> bool:
    """Adds an argument whose integers are sizes."""
    key.shape = 1
    ok = add_any(key, o)
    key.shape = 0
    return ok


@native
def read_call(
    key: ptr[Key], args: ptr[raw], nargs: i64, names: raw, loose: i64, shapes: i64
) -> bool:
    """The key of a call; keyword arguments follow the others. loose: a bit for each positional
    argument that may be a number which the kernel gets; shapes: for each that is one, or a part of
    one. False: the call is not for here."""
    begin_key(key)
    ok = True
    for k in range(nargs):
        if k < 63 and loose >> k & 1 != 0:
            ok = ok and add_loose(key, args[k])
        elif k < 63 and shapes >> k & 1 != 0:
            ok = ok and add_shape(key, args[k])
        else:
            ok = ok and add_any(key, args[k])
    if names is not None:
        for k in range(tuple_size(names)):
            ok = ok and add_word(key, NAME, i64(tuple_item(names, k)))
            ok = ok and add_any(key, args[nargs + k])
    return ok


@native
def is_key(have: ptr[Key], key: ptr[Key]) -> bool:
    """Are they the same?"""
    if have.mixed != key.mixed or have.count != key.count:
        return False
    for k in range(key.count):
        if have.values[k] != key.values[k] or have.kinds[k] != key.kinds[k]:
            return False
    return True


def install() -> None:
    """Tells the machine code which objects are compared as such."""
    dtype_type.refer_to(dtypes.dtype)
    device_type.refer_to(Device)
    format_type.refer_to(memory_format)
    size_type.refer_to(Size)
