"""CPython as native code sees it: the C functions called, where an object's fields lie, and how
types and builtins are made from machine code.  Nothing else in antorcha names a C-API symbol twice.

Only functions that CPython exports on 3.11 to 3.14 are used.  Two facts of layout are relied on,
and checked at import: an object's own fields begin at object.__basicsize__, and the word before
them is its type (true of ordinary and of free-threaded builds).  Reference counts are changed only
by the functions below: in line where the count is found to be the object's first word, by CPython's
functions elsewhere (free-threaded and debug builds).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.errors import NativeError
from antorcha.lang.native import (
    Extern,
    ExternData,
    Global,
    PyMethodDef,
    f64,
    func,
    i32,
    i64,
    inline,
    local,
    make_immortal,
    method_def,
    native,
    ptr,
    raw,
    u8,
    u32,
    u64,
    void,
)
from antorcha.lang.native.digest import digest_of

HEADER: int = object.__basicsize__
"""Bytes before an object's own fields."""
TYPE_WORD: int = HEADER // 8 - 1
"""Index, in 8-byte words, of an object's type."""
HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()


def _check_layout() -> None:
    for sample in (object(), 1.5, "text", []):
        word = ctypes.c_void_p.from_address(id(sample) + 8 * TYPE_WORD).value
        if word != id(type(sample)):
            raise NativeError(
                f"this Python ({sys.version.split()[0]}) lays objects out in a way that "
                "antorcha's native runtime does not know"
            )


_check_layout()


def _counts_in_first_word() -> bool:
    if not HAS_GIL or hasattr(sys, "gettotalrefcount") or sys.byteorder != "little":
        return False
    sample = object()
    count = ctypes.c_int64.from_address(id(sample))
    before = count.value
    held = [sample] * 5
    return before >= 1 and count.value - before == len(held)


IN_LINE: bool = _counts_in_first_word()
IMMORTALS: bool = sys.version_info >= (3, 12)
"""Objects whose count, seen as an i32, is negative are never freed, and never counted."""


def _one_digit() -> int:
    """What the first own word of an int says where one digit follows, and the int is above 0; -1:
    they lie otherwise."""
    samples = [1, 200, 1000, 2**30 - 1]
    heads = {ctypes.c_int64.from_address(id(n) + HEADER).value for n in samples}
    others = {ctypes.c_int64.from_address(id(n) + HEADER).value for n in (0, -1, -(2**29), 2**30)}
    digits = [ctypes.c_uint32.from_address(id(n) + HEADER + 8).value for n in samples]
    known = len(heads) == 1 and not heads & others and digits == samples
    return heads.pop() if known else -1


ONE_DIGIT: int = _one_digit()


def _tuple_items() -> int:
    """Where a tuple's items lie, right behind its length or a hash; -1: they lie otherwise."""
    at = tuple.__basicsize__
    samples: list[tuple[object, ...]] = [(), (1.5,), (None, "text", 1.5)]
    for each in samples:
        items = (ctypes.c_void_p * len(each)).from_address(id(each) + at)
        size = ctypes.c_ssize_t.from_address(id(each) + HEADER).value
        if size != len(each) or list(items) != [id(item) for item in each]:
            return -1
    return at


TUPLE_ITEMS: int = _tuple_items()

# ---- references and attributes
_inc_ref = Extern("Py_IncRef", void, raw)
_dec_ref = Extern("Py_DecRef", void, raw)
_dealloc = Extern("_Py_Dealloc", void, raw)
_new_reference = Extern("_Py_NewReference", void, raw)
NONE = ExternData("_Py_NoneStruct", u8)
TRUE = ExternData("_Py_TrueStruct", u8)
FALSE = ExternData("_Py_FalseStruct", u8)

# ---- numbers
int_type = ExternData("PyLong_Type", u8)
float_type = ExternData("PyFloat_Type", u8)
PyLong_AsLongLong = Extern("PyLong_AsLongLong", i64, raw)
zero = Global("antorcha_zero", raw)  # the object 0, of which there is one
zero.refer_to(0)
PyLong_FromLongLong = Extern("PyLong_FromLongLong", raw, i64)
PyFloat_AsDouble = Extern("PyFloat_AsDouble", f64, raw)
PyFloat_FromDouble = Extern("PyFloat_FromDouble", raw, f64)
PyComplex_RealAsDouble = Extern("PyComplex_RealAsDouble", f64, raw)
PyComplex_ImagAsDouble = Extern("PyComplex_ImagAsDouble", f64, raw)

# ---- tuples and lists (which take over what is put into them)
PyTuple_New = Extern("PyTuple_New", raw, i64)
PyTuple_SetItem = Extern("PyTuple_SetItem", i32, raw, i64, raw)
PyTuple_GetItem = Extern("PyTuple_GetItem", raw, raw, i64)
PyTuple_Size = Extern("PyTuple_Size", i64, raw)
PyList_New = Extern("PyList_New", raw, i64)
PyList_SetItem = Extern("PyList_SetItem", i32, raw, i64, raw)
PyList_GetItem = Extern("PyList_GetItem", raw, raw, i64)
PyList_Size = Extern("PyList_Size", i64, raw)
empty_tuple = Global("antorcha_empty_tuple", raw)  # of which there is one
empty_tuple.refer_to(())
tuple_type = ExternData("PyTuple_Type", u8)
list_type = ExternData("PyList_Type", u8)

# ---- calls and errors
PyObject_Vectorcall = Extern("PyObject_Vectorcall", raw, raw, ptr[raw], i64, raw)
PyErr_Occurred = Extern("PyErr_Occurred", raw)
PyErr_Clear = Extern("PyErr_Clear", void)
PyObject_GetAttr = Extern("PyObject_GetAttr", raw, raw, raw)
PyErr_SetObject = Extern("PyErr_SetObject", void, raw, raw)

# ---- threads
PyEval_SaveThread = Extern("PyEval_SaveThread", raw)
PyEval_RestoreThread = Extern("PyEval_RestoreThread", void, raw)
PyThreadState_Get = Extern("PyThreadState_Get", raw)
PyThreadState_GetID = Extern("PyThreadState_GetID", u64, raw)

# ---- objects and the collector
PyObject_GC_New = Extern("_PyObject_GC_New", raw, raw)
PyObject_Init = Extern("PyObject_Init", raw, raw, raw)
PyObject_GC_Del = Extern("PyObject_GC_Del", void, raw)
PyObject_GC_Track = Extern("PyObject_GC_Track", void, raw)
PyObject_GC_UnTrack = Extern("PyObject_GC_UnTrack", void, raw)
PyGC_Enable = Extern("PyGC_Enable", i32)
PyGC_Disable = Extern("PyGC_Disable", i32)
COLLECTS_AT_ONCE: bool = sys.version_info < (3, 12)
"""May an allocation collect garbage, and so run any finalizer? (Later ones leave that to the
interpreter, between two instructions.)"""
PyObject_ClearWeakRefs = Extern("PyObject_ClearWeakRefs", void, raw)
PyBuffer_FillInfo = Extern("PyBuffer_FillInfo", i32, raw, raw, raw, i64, i32, i32)


@inline
def type_of(o):
    """The type of an object (borrowed)."""
    return ptr[raw](o)[TYPE_WORD]


@inline
def Py_IncRef(o):
    """Holds an object once more; null is let be."""
    if not IN_LINE:
        _inc_ref(o)
    elif o is not None:
        if IMMORTALS:
            low = ptr[i32](o)
            if low[0] >= 0:
                low[0] += 1
        else:
            ptr[i64](o)[0] += 1


@native
def Py_DecRef(o: raw) -> void:
    """Drops a reference; null is let be."""
    if not IN_LINE:
        _dec_ref(o)
    elif o is not None:
        if IMMORTALS:
            low = ptr[i32](o)
            if low[0] >= 0:
                low[0] -= 1
                if low[0] == 0:
                    _dealloc(o)
        else:
            count = ptr[i64](o)
            count[0] -= 1
            if count[0] == 0:
                _dealloc(o)


@inline
def hold(o, times):
    """Holds an object that is there for ever (None, False, a small int) so many times more."""
    if IN_LINE:
        if not IMMORTALS:
            ptr[i64](o)[0] += times
    else:
        for _ in range(times):
            _inc_ref(o)


@inline
def unhold(o, times):
    """Takes back what `hold` did."""
    if IN_LINE:
        if not IMMORTALS:
            ptr[i64](o)[0] -= times
    else:
        for _ in range(times):
            _dec_ref(o)


@inline
def revive(o):
    """Makes a dead object that was kept, with its type, one that is held once."""
    if IN_LINE:
        ptr[i64](o)[0] = 1
    else:
        _new_reference(o)


@inline
def is_held_once(o):
    """Does nobody hold it but who asks? No, where that cannot be told."""
    if not IN_LINE:
        return i64(0) == 1
    return ptr[i32](o)[0] == 1 if IMMORTALS else ptr[i64](o)[0] == 1


@inline
def integer(o):
    """An int's value, as PyLong_AsLongLong says it: the commonest one at a glance."""
    return i64(0) if o == zero[0] else PyLong_AsLongLong(o)


@inline
def tuple_size(o):
    """PyTuple_Size of what is known to be a tuple."""
    return ptr[i64](o + HEADER)[0] if TUPLE_ITEMS >= 0 else PyTuple_Size(o)


@inline
def tuple_item(o, k):
    """PyTuple_GetItem (borrowed), of what is known to be a tuple that has as many items."""
    return ptr[raw](o + TUPLE_ITEMS)[k] if TUPLE_ITEMS >= 0 else PyTuple_GetItem(o, k)


@inline
def put_item(o, k, item):
    """PyTuple_SetItem, where nothing is yet, of a new tuple: it takes the reference over."""
    if TUPLE_ITEMS >= 0:
        ptr[raw](o + TUPLE_ITEMS)[k] = item
    else:
        PyTuple_SetItem(o, k, item)


@native
def int_value(o: raw) -> i64:
    """The value of what is known to be an int (no subclass), as PyLong_AsLongLong says it."""
    if o == zero[0]:
        return 0
    if ONE_DIGIT >= 0 and ptr[i64](o + HEADER)[0] == ONE_DIGIT:
        return i64(ptr[u32](o + (HEADER + 8))[0])
    return PyLong_AsLongLong(o)


@inline
def failed():
    """Is an exception set?"""
    return PyErr_Occurred() is not None


# ---- errors: native code names a complaint, Python words it
Complaint = Callable[[Any, Any, int], BaseException]
_complaints: dict[int, Complaint] = {}
reporter = Global("antorcha_reporter", raw, 1)
visit_t = func[i32, raw, raw]


def complaint(function: Complaint) -> int:
    """Registers what makes an exception of (object, object or None, number); gives its number. It
    follows from the name: code on disk has it, whatever was imported before."""
    kind = int(digest_of(f"{function.__module__}.{function.__qualname__}", 6), 16)
    if _complaints.setdefault(kind, function) is not function:
        raise NativeError(f"two complaints have the number {kind}: give one another name")
    return kind


def _report(kind: int, first: Any, second: Any, number: int) -> BaseException:
    return _complaints[kind](first, second, number)


reporter.refer_to(_report)


@native(export=True)
def complain(kind: i64, first: raw, second: raw, number: i64) -> void:
    """Sets the Python exception of complaint `kind`; first and second are objects."""
    args = local(raw, 4)
    args[0] = PyLong_FromLongLong(kind)
    args[1] = first
    args[2] = second
    args[3] = PyLong_FromLongLong(number)
    if args[0] is not None and args[3] is not None:
        raise_object(PyObject_Vectorcall(reporter[0], args, 4, None))
    if args[0] is not None:
        Py_DecRef(args[0])
    if args[3] is not None:
        Py_DecRef(args[3])


@native
def raise_object(error: raw) -> void:
    """Raises an exception object, and drops it; null means that making it failed and raised."""
    if error is not None:
        PyErr_SetObject(type_of(error), error)
        Py_DecRef(error)


# ---- references
@native
def new_reference(o: raw) -> raw:
    """The object itself, held once more."""
    Py_IncRef(o)
    return o


@native
def drop_one(o: raw) -> void:
    """Drops a reference, if there is one."""
    if o is not None:
        Py_DecRef(o)


@native
def drop_all(items: ptr[raw], count: i64) -> void:
    """Drops the references that are there, each taken out first: its end may run any code."""
    for k in range(count):
        o = items[k]
        if o is not None:
            items[k] = None
            Py_DecRef(o)


@native
def pair_of(a: raw, b: raw) -> raw:
    """A tuple of two, whose references it takes over; null with an exception."""
    result = raw(0)
    if a is not None and b is not None:
        result = PyTuple_New(2)
    if result is None:
        drop_one(a)
        drop_one(b)
        return result
    PyTuple_SetItem(result, 0, a)
    PyTuple_SetItem(result, 1, b)
    return result


@native
def int_object(value: i64) -> raw:
    """PyLong_FromLongLong: the commonest one at a glance."""
    return new_reference(zero[0]) if value == 0 else PyLong_FromLongLong(value)


@native
def tuple_of(numbers: ptr[i64], count: i64) -> raw:
    """A tuple of ints; null with an exception."""
    return filled_tuple(PyTuple_New(count), numbers, count)


@native
def filled_tuple(result: raw, numbers: ptr[i64], count: i64) -> raw:
    """A new tuple, also of a subclass, filled with ints, or null; null with an exception."""
    if result is None:
        return result
    for k in range(count):
        number = int_object(numbers[k])
        if number is None:
            Py_DecRef(result)
            return number
        put_item(result, k, number)
    return result


# ---- builtins
def fast_def(name: str, address: int, doc: str = "") -> PyMethodDef:
    """A METH_FASTCALL definition; `address` takes (self, args: ptr[raw], nargs: i64) -> raw."""
    return method_def(name, address, doc=f"{name}($module, /, *args)\n--\n\n{doc}" if doc else name)


# ---- types
TP_DEALLOC, TP_DOC, TP_CLEAR, TP_TRAVERSE, TP_MEMBERS = 52, 56, 51, 71, 72
TP_CALL, TP_DESCR_GET, TP_HASH, TP_RICHCOMPARE = 50, 54, 59, 67
VECTORCALL, METHOD_DESCRIPTOR = 1 << 11, 1 << 17  # flags
BF_GETBUFFER, BF_RELEASEBUFFER = 1, 2
_DISALLOW_INSTANTIATION, _IMMUTABLE, _HAVE_GC, _DEFAULT = 1 << 7, 1 << 8, 1 << 14, 1 << 18
OBJECT, LONGLONG, SSIZE = 6, 17, 19  # member kinds
READONLY = 1


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("pointer", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_type_from_spec = ctypes.pythonapi.PyType_FromSpec
_type_from_spec.restype = ctypes.py_object
_type_from_spec.argtypes = [ctypes.c_void_p]


def make_type(
    name: str,
    size: int,
    members: Sequence[tuple[str, int, int, int, str]],
    slots: Sequence[tuple[int, int]],
    doc: str | None,
    more_flags: int = 0,
) -> type:
    """A type that only native code can instantiate, with the collector's support.

    members: (name, kind, offset, flags, doc); slots: (slot number, address).
    """
    table = (_Member * (len(members) + 1))()
    for k, (member, kind, offset, flags, text) in enumerate(members):
        table[k] = _Member(member.encode(), kind, offset, flags, text.encode() or None)
    text_of_doc = ctypes.create_string_buffer((doc or "").encode())
    pairs = [(TP_MEMBERS, ctypes.addressof(table)), *slots]
    if doc is not None:
        pairs.append((TP_DOC, ctypes.addressof(text_of_doc)))
    filled = (_Slot * (len(pairs) + 1))(*[_Slot(a, b) for a, b in pairs])
    flags = _DEFAULT | _HAVE_GC | _IMMUTABLE | _DISALLOW_INSTANTIATION | more_flags
    spec = _Spec(name.encode(), size, 0, flags, ctypes.addressof(filled))
    result: type = _type_from_spec(ctypes.addressof(spec))
    for each in (table, text_of_doc, filled, spec, result):
        make_immortal(each)
    return result
