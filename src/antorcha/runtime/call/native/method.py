"""How Python reaches the native path: ``x.exp()`` and ``torch.exp(x)`` go to machine code at once.

A ``Method`` stands in a class's dictionary as a function would. It is called with the instance as
first argument, without a bound method in between (Py_TPFLAGS_METHOD_DESCRIPTOR), and passes the
call on to ``calls.py_quick``, or reads one element (``elements``), what the layout says
(``facts``), or all elements as an array (``arrays``). It owns the builtin that it
calls, and the Python function that it looks like.

An op is an object that can be called. Once it has a builtin, the slot ``tp_call`` of its class
holds ``op_call``, which passes calls without keywords on, and leaves the others to the interpreter.
"""

from __future__ import annotations

import copyreg
import ctypes
import sys
from collections.abc import Callable
from types import BuiltinMethodType
from typing import Any

from antorcha.core.shapes import Size
from antorcha.lang.native import (
    Extern,
    ExternData,
    Global,
    Spec,
    array,
    bind,
    func,
    i32,
    i64,
    native,
    ptr,
    raw,
    struct,
    u8,
    void,
)
from antorcha.runtime.call.native import arrays, facts
from antorcha.runtime.call.native.arrays import array_of
from antorcha.runtime.call.native.calls import py_quick, serve_or
from antorcha.runtime.call.native.elements import METHODS, element
from antorcha.runtime.call.native.facts import fact, size_item
from antorcha.runtime.call.native.keys import FUNCTION, INDEX, device_type, dtype_type, str_type
from antorcha.runtime.call.native.mode import reasons
from antorcha.runtime.call.native.slots import CALL, ITEMS, word
from antorcha.runtime.call.native.tensors import parameter_type, tensor_type
from antorcha.runtime.cpython import (
    FALSE,
    HEADER,
    METHOD_DESCRIPTOR,
    NONE,
    OBJECT,
    READONLY,
    SSIZE,
    TP_CALL,
    TP_CLEAR,
    TP_DEALLOC,
    TP_DESCR_GET,
    TP_HASH,
    TP_RICHCOMPARE,
    TP_TRAVERSE,
    TRUE,
    VECTORCALL,
    Py_DecRef,
    PyObject_GC_Del,
    PyObject_GC_New,
    PyObject_GC_Track,
    PyObject_GC_UnTrack,
    PyObject_GetAttr,
    PyObject_Vectorcall,
    PyTuple_Size,
    drop_all,
    failed,
    fast_def,
    float_type,
    int_type,
    int_value,
    make_type,
    new_reference,
    type_of,
    visit_t,
)
from antorcha.runtime.memory.storage import storage_type
from antorcha.runtime.tensor import Tensor

PyCFunction_GetSelf = Extern("PyCFunction_GetSelf", raw, raw)
PyMethod_New = Extern("PyMethod_New", raw, raw, raw)
PyObject_Hash = Extern("PyObject_Hash", i64, raw)
NOT_IMPLEMENTED = ExternData("_Py_NotImplementedStruct", u8)
EQ, NE = 2, 3  # CPython's numbers for comparisons
FIELDS = ("quick", "wrapped", "asked", "name", "qualname", "doc")


@struct
class MethodObject:
    head: array[u8, HEADER]
    vectorcall: raw
    quick: raw  # the storage that the builtin is bound to
    wrapped: raw  # the function that it looks like
    asked: raw  # of a method that is watched: what asks the arguments' classes first
    name: raw
    qualname: raw
    doc: raw


method_type = Global("antorcha_method_type", raw)


@native
def method_vectorcall(self: raw, args: ptr[raw], nargsf: i64, names: raw, *, FORM) -> raw:
    nargs = nargsf & 0x7FFFFFFFFFFFFFFF  # without PY_VECTORCALL_ARGUMENTS_OFFSET
    m = ptr[MethodObject](self)
    return serve_or(m.quick, args, nargs, names, m.wrapped, FORM=FORM)


@native
def element_vectorcall(self: raw, args: ptr[raw], nargsf: i64, names: raw, *, KIND) -> raw:
    if nargsf & 0x7FFFFFFFFFFFFFFF == 1 and names is None:
        result = element(args[0], KIND=KIND)
        if result is not None or failed():
            return result
    return PyObject_Vectorcall(ptr[MethodObject](self).wrapped, args, nargsf, names)


@native
def fact_vectorcall(self: raw, args: ptr[raw], nargsf: i64, names: raw, *, KIND) -> raw:
    if names is None:
        nargs = nargsf & 0x7FFFFFFFFFFFFFFF
        result = size_item(args, nargs) if KIND == facts.ITEM else fact(args, nargs, KIND=KIND)
        if result is not None or failed():
            return result
    return PyObject_Vectorcall(ptr[MethodObject](self).wrapped, args, nargsf, names)


@native
def array_vectorcall(self: raw, args: ptr[raw], nargsf: i64, names: raw) -> raw:
    if nargsf & 0x7FFFFFFFFFFFFFFF == 1 and names is None:
        result = array_of(args[0])
        if result is not None or failed():
            return result
    return PyObject_Vectorcall(ptr[MethodObject](self).wrapped, args, nargsf, names)


@native
def is_plain(o: raw) -> bool:
    """Is it of a class that is not to be asked, and holds no others?"""
    kind = type_of(o)
    if kind == tensor_type[0] or kind == parameter_type[0] or o == raw(NONE):
        return True
    if kind == raw(int_type) or kind == raw(float_type) or kind == raw(str_type):
        return True
    return kind == type_of(raw(TRUE)) or kind == dtype_type[0] or kind == device_type[0]


@native
def watched_vectorcall(self: raw, args: ptr[raw], nargsf: i64, names: raw) -> raw:
    """Runs a method of Python's where nobody is to be asked."""
    nargs = nargsf & 0x7FFFFFFFFFFFFFFF
    count = nargs
    if names is not None:
        count += PyTuple_Size(names)
    plain = reasons.special == 0
    for k in range(count):
        plain = plain and is_plain(args[k])
    m = ptr[MethodObject](self)
    return PyObject_Vectorcall(m.wrapped if plain else m.asked, args, nargsf, names)


@native
def method_hash(self: raw) -> i64:
    """That of the function: see `method_compare`."""
    return PyObject_Hash(ptr[MethodObject](self).wrapped)


@native
def function_of(o: raw) -> raw:
    """The function that is looked like; null: it is that of no method."""
    found = o
    while type_of(found) == method_type[0]:
        found = ptr[MethodObject](found).wrapped
    return found


@native
def method_compare(self: raw, other: raw, op: i32) -> raw:
    """It equals the function in whose place it is: a class may keep methods in a set,
    ``{torch.Tensor.clone, ..}``, before they are replaced, and look there for its ``func``."""
    if op != EQ and op != NE:
        return new_reference(raw(NOT_IMPLEMENTED))
    same = function_of(self) == function_of(other)
    return new_reference(raw(TRUE) if same == (op == EQ) else raw(FALSE))


@native
def method_get(self: raw, instance: raw, _owner: raw) -> raw:
    if instance is None or instance == raw(NONE):
        return new_reference(self)
    return PyMethod_New(self, instance)


@native
def py_new_method(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(what FIELDS says, or None; the address of what is called)."""
    o = PyObject_GC_New(method_type[0])
    if o is None:
        return o
    m = ptr[MethodObject](o)
    m.vectorcall = raw(int_value(args[len(FIELDS)]))
    fields = ptr[raw](o + HEADER) + 1
    for k in range(len(FIELDS)):
        fields[k] = new_reference(args[k])
    PyObject_GC_Track(o)
    return o


@native
def method_traverse(o: raw, visit: visit_t, arg: raw) -> i32:
    fields = ptr[raw](o + HEADER) + 1
    r = visit(type_of(o), arg)
    for k in range(len(FIELDS)):
        if r == 0 and fields[k] is not None:
            r = visit(fields[k], arg)
    return r


@native
def method_clear(o: raw) -> i32:
    fields = ptr[raw](o + HEADER) + 1
    drop_all(fields + 1, len(FIELDS) - 1)  # all but the storage, which a call may need
    return i32(0)


@native
def method_dealloc(o: raw) -> void:
    PyObject_GC_UnTrack(o)
    method_clear(o)
    Py_DecRef(ptr[MethodObject](o).quick)
    kind = type_of(o)
    PyObject_GC_Del(o)
    Py_DecRef(kind)


def _make_type() -> type:
    at = {name: field[0] for name, field in MethodObject.fields.items()}
    members = [
        ("__vectorcalloffset__", SSIZE, at["vectorcall"], READONLY, ""),
        ("__wrapped__", OBJECT, at["wrapped"], READONLY, "the method in Python"),
        ("__name__", OBJECT, at["name"], READONLY, ""),
        ("__qualname__", OBJECT, at["qualname"], READONLY, ""),
        ("__doc__", OBJECT, at["doc"], READONLY, ""),
    ]
    address = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    assert address is not None
    slots = [
        (TP_DEALLOC, method_dealloc.spec().addr),
        (TP_TRAVERSE, method_traverse.spec().addr),
        (TP_CLEAR, method_clear.spec().addr),
        (TP_DESCR_GET, method_get.spec().addr),
        (TP_CALL, address),
        (TP_HASH, method_hash.spec().addr),
        (TP_RICHCOMPARE, method_compare.spec().addr),
    ]
    flags = METHOD_DESCRIPTOR | VECTORCALL
    return make_type("antorcha.Method", MethodObject.size, members, slots, None, flags)


def placed() -> list[Spec]:
    """The functions behind methods and ops that have a builtin."""
    natives = (
        method_dealloc, method_traverse, method_clear, method_get, py_new_method, op_call,
        array_vectorcall, watched_vectorcall, method_hash, method_compare,
    )  # fmt: skip
    return [
        *[each.spec() for each in natives],
        *[method_vectorcall.spec(FORM=form) for form in (FUNCTION, INDEX)],
        *[element_vectorcall.spec(KIND=kind) for kind in METHODS.values()],
        *[fact_vectorcall.spec(KIND=kind) for kind in (facts.ITEM, *facts.METHODS.values())],
    ]


_made: list[Callable[..., Any]] = []


def _reduced(method: Any) -> tuple[Any, ...]:
    """Pickled by name, as functions are."""
    owner = Size if method.__qualname__.startswith("Size.") else Tensor
    return getattr, (owner, method.__name__)


def method_of(quick: BuiltinMethodType, python: Any, form: int = FUNCTION) -> Any:
    """A method that calls the builtin `quick`, and looks like the function `python`. form: as in
    ``methods.quick_of``."""
    return _method(quick.__self__, python, method_vectorcall.spec(FORM=form).addr)


def element_method_of(python: Any, kind: int) -> Any:
    """A method that gives a tensor's only element as that kind of number (``elements``), and looks
    like the function `python`, which serves all other calls."""
    return _method(None, python, element_vectorcall.spec(KIND=kind).addr)


def fact_method_of(python: Any, kind: int) -> Any:
    """A method that says what the layout says (``facts``), and looks like the function `python`,
    which serves all other calls."""
    return _method(None, python, fact_vectorcall.spec(KIND=kind).addr)


def array_method_of(python: Any, _kind: int) -> Any:
    """A method that gives an array over a tensor's memory (``arrays``), and looks like the function
    `python`, which serves all other calls."""
    if not arrays.install():
        return python
    return _method(None, python, array_vectorcall.spec().addr)


def watched_method_of(python: Any, asked: Any) -> Any:
    """A method that calls `python` where all arguments are plain, else `asked`, whose name it
    has."""
    return _method(None, python, watched_vectorcall.spec().addr, asked)


def _method(storage: Any, python: Any, address: int, asked: Any = None) -> Any:
    if not _made:
        cls = _make_type()
        method_type.refer_to(cls)
        copyreg.pickle(cls, _reduced)
        _made.append(bind(fast_def("new_method", py_new_method.spec().addr)))
    like = asked or python
    names = like.__name__, like.__qualname__, like.__doc__
    return _made[0](storage, python, asked, *names, address)


# ---- calls of ops
call_t = func[raw, raw, raw, raw]
called_by_python = Global("antorcha_op_called_by_python", call_t)
native_name = Global("antorcha_native_name", raw)  # "native"


@native
def op_call(self: raw, args: raw, names: raw) -> raw:
    """``op(*args, **names)``."""
    if names is None:
        builtin = PyObject_GetAttr(self, native_name[0])
        if builtin is None:
            return builtin
        if builtin != raw(NONE):
            quick = PyCFunction_GetSelf(builtin)
            result = raw(0)
            if quick is not None and type_of(quick) == storage_type[0]:
                items = ptr[raw](args + ITEMS)
                result = py_quick(quick, items, PyTuple_Size(args), None, FORM=FUNCTION)
            elif not failed():
                result = called_by_python[0](self, args, names)
            Py_DecRef(builtin)
            return result
        Py_DecRef(builtin)
    return called_by_python[0](self, args, names)


class _Callable:
    def __call__(self) -> None: ...


def call_natively(cls: type) -> None:
    """Puts `op_call` into a class of ops whose instances are called by a Python function."""
    by_python = word(id(_Callable) + CALL).value
    if word(id(cls) + CALL).value == by_python:
        word(called_by_python.addr).value = by_python
        native_name.refer_to(sys.intern("native"))
        word(id(cls) + CALL).value = op_call.spec().addr
