"""How Python reaches the native path: ``x.exp()`` and ``torch.exp(x)`` go to machine code at once.

A ``Method`` stands in a class's dictionary as a function would. It is called with the instance as
first argument, without a bound method in between (Py_TPFLAGS_METHOD_DESCRIPTOR), and passes the
call on to ``calls.py_quick``, or reads one element (``elements``). It owns the builtin that it
calls, and the Python function that it looks like.

An op is an object that can be called. Once it has a builtin, the slot ``tp_call`` of its class
holds ``op_call``, which passes calls without keywords on, and leaves the others to the interpreter.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable
from __future__ import annotations

import copyreg
import ctypes
import sys
from collections.abc import Callable
from typing import Any

from antorcha.lang.native import (
    Extern,
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
from antorcha.runtime.call.native.calls import py_quick
from antorcha.runtime.call.native.elements import METHODS, element
from antorcha.runtime.call.native.slots import CALL, ITEMS, word
from antorcha.runtime.cpython import (
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
    TP_TRAVERSE,
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
    int_value,
    make_type,
    new_reference,
    type_of,
    visit_t,
)
from antorcha.runtime.storage import storage_type
from antorcha.runtime.tensor import Tensor

PyCFunction_GetSelf = Extern("PyCFunction_GetSelf", raw, raw)
PyMethod_New = Extern("PyMethod_New", raw, raw, raw)
FIELDS = ("quick", "wrapped", "name", "qualname", "doc")


@struct
class MethodObject:
    head: array[u8, HEADER]
    vectorcall: raw
    quick: raw  # the storage that the builtin is bound to
    wrapped: raw
    name: raw
    qualname: raw
    doc: raw


method_type = Global("antorcha_method_type", raw)


@native
def method_vectorcall(self: raw, args: ptr[raw], nargsf: i64, names: raw, *, INDEX) -> raw:
    nargs = nargsf & 0x7FFFFFFFFFFFFFFF  # without PY_VECTORCALL_ARGUMENTS_OFFSET
    return py_quick(ptr[MethodObject](self).quick, args, nargs, names, INDEX=INDEX)


@native
def element_vectorcall(self: raw, args: ptr[raw], nargsf: i64, names: raw, *, KIND) -> raw:
    if nargsf & 0x7FFFFFFFFFFFFFFF == 1 and names is None:
        made = element(args[0], KIND=KIND)
        if made is not None or failed():
            return made
    return PyObject_Vectorcall(ptr[MethodObject](self).wrapped, args, nargsf, names)


@native
def method_get(self: raw, instance: raw, _owner: raw) -> raw:
    if instance is None or instance == raw(NONE):
        return new_reference(self)
    return PyMethod_New(self, instance)


@native
def py_new_method(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(storage of a Quick or None, function, name, qualified name, documentation, the address of
    what is called)."""
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
    ]
    flags = METHOD_DESCRIPTOR | VECTORCALL
    return make_type("antorcha.Method", MethodObject.size, members, slots, None, flags)


def placed() -> list[Spec]:
    """The functions behind methods and ops that have a builtin."""
    natives = (
        method_dealloc, method_traverse, method_clear, method_get, py_new_method, op_call,
    )  # fmt: skip
    return [
        *[each.spec() for each in natives],
        *[method_vectorcall.spec(INDEX=index) for index in (False, True)],
        *[element_vectorcall.spec(KIND=kind) for kind in METHODS.values()],
    ]


_made: list[Callable[..., Any]] = []


def _reduced(method: Any) -> tuple[Any, ...]:
    """Pickled by name, as functions are."""
    return getattr, (Tensor, method.__name__)


def method_of(quick: Callable[..., Any], python: Any, index: bool = False) -> Any:
    """A method that calls the builtin `quick`, and looks like the function `python`. index: as in
    ``methods.quick_of``."""
    return _method(quick.__self__, python, method_vectorcall.spec(INDEX=index).addr)


def element_method_of(python: Any, kind: int) -> Any:
    """A method that gives a tensor's only element as that kind of number (``elements``), and looks
    like the function `python`, which serves all other calls."""
    return _method(None, python, element_vectorcall.spec(KIND=kind).addr)


def _method(storage: Any, python: Any, address: int) -> Any:
    if not _made:
        cls = _make_type()
        method_type.refer_to(cls)
        copyreg.pickle(cls, _reduced)
        _made.append(bind(fast_def("new_method", py_new_method.spec().addr)))
    names = python.__name__, python.__qualname__, python.__doc__
    return _made[0](storage, python, *names, address)


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
            made = raw(0)
            if quick is not None and type_of(quick) == storage_type[0]:
                items = ptr[raw](args + ITEMS)
                made = py_quick(quick, items, PyTuple_Size(args), None, INDEX=False)
            elif not failed():
                made = called_by_python[0](self, args, names)
            Py_DecRef(builtin)
            return made
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
