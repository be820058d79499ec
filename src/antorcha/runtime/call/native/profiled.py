"""Calls while a profile is on: the native path, with a record around what it serves.

The routine is that of ``calls``, compiled a second time, with PROFILED; the first profile compiles
it. What they do not serve goes on to Python, which writes its own record
(``autograd.profiler``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.lang.native import i64, local, native, ptr, raw
from antorcha.runtime.call.native import nodes, places, slots, walk
from antorcha.runtime.call.native.calls import try_call
from antorcha.runtime.call.native.dealloc import NodeObject
from antorcha.runtime.call.native.keys import FUNCTION, INDEX, str_type
from antorcha.runtime.call.native.nodes import is_node
from antorcha.runtime.call.native.places import SERVED, Quick
from antorcha.runtime.call.native.tensors import TensorObject, is_whole
from antorcha.runtime.call.node import Node
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    PyErr_Clear,
    PyList_GetItem,
    PyList_Size,
    PyLong_AsLongLong,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_New,
    PyTuple_SetItem,
    PyTuple_Size,
    drop_one,
    float_type,
    int_type,
    list_type,
    new_reference,
    tuple_type,
    type_of,
)
from antorcha.runtime.trace import COLLECT, OP, SHAPES, clock, collector, held, wanted, write


# ---- what is noted of a call's arguments
@native
def note_of(o: raw) -> raw:
    """A tensor's layout; a number, or a dim's name, itself; None of what else there is."""
    kind = type_of(o)
    if is_whole(o):
        return new_reference(ptr[TensorObject](o).layout)
    if kind == raw(int_type) or kind == raw(float_type) or kind == raw(str_type):
        return new_reference(o)
    return new_reference(raw(NONE))


@native
def notes_of_list(o: raw) -> raw:
    """The same of a list's or a tuple's items, as a tuple; null with an exception."""
    is_list = type_of(o) == raw(list_type)
    count = PyList_Size(o) if is_list else PyTuple_Size(o)
    result = PyTuple_New(count)
    if result is not None:
        for k in range(count):
            PyTuple_SetItem(
                result, k, note_of(PyList_GetItem(o, k) if is_list else PyTuple_GetItem(o, k))
            )
    return result


@native
def notes_of(args: ptr[raw], count: i64) -> raw:
    result = PyTuple_New(count)
    if result is None:
        return result
    for k in range(count):
        kind = type_of(args[k])
        if kind == raw(list_type) or kind == raw(tuple_type):
            each = notes_of_list(args[k])
            if each is None:
                Py_DecRef(result)
                return each
            PyTuple_SetItem(result, k, each)
        else:
            PyTuple_SetItem(result, k, note_of(args[k]))
    return result


@native(noinline=True)
def noted(args: ptr[raw], count: i64) -> raw:
    """What a record keeps of a call, or null: the notes of its arguments, or what ``collect(notes
    or None)`` makes of them. A profile raises nothing: what fails is left out."""
    notes = raw(0)
    if wanted[0] & SHAPES != 0:
        notes = notes_of(args, count)
        if notes is None:
            PyErr_Clear()
    if wanted[0] & COLLECT != 0:
        given = local(raw)
        given[0] = notes if notes is not None else raw(NONE)
        result = PyObject_Vectorcall(collector[0], given, 1, None)
        drop_one(notes)
        notes = result
        if notes is None:
            PyErr_Clear()
    return notes


# ---- calls
@native
def number_of(result: raw) -> i64:
    """The number of the node that a result has, or the first of several; -1: it has none."""
    first = result
    if result is None:  # with an exception
        return -1
    if type_of(first) == raw(tuple_type) and PyTuple_Size(first) > 0:
        first = PyTuple_GetItem(first, 0)
    if not is_whole(first):
        return -1
    fn = ptr[TensorObject](first).fn
    if fn is None or fn == raw(NONE) or not is_node(fn):
        return -1
    seq = ptr[NodeObject](fn).seq
    if seq is None or type_of(seq) != raw(int_type):
        return -1
    return PyLong_AsLongLong(seq)


@native(level="O2")
def try_quick(
    quick: ptr[Quick], args: ptr[raw], nargs: i64, names: raw, result: ptr[raw], *, FORM
) -> i64:
    """``calls.try_call``, with a record of what it serves."""
    notes = raw(0)
    if wanted[0] != 0:
        count = nargs
        if names is not None:
            count += PyTuple_Size(names)
        notes = noted(args, count)
    before = held()
    begun = clock()
    what = try_call(quick, args, nargs, names, result, FORM=FORM, PROFILED=True)
    if what == SERVED:
        write(OP, new_reference(quick.label), notes, number_of(result[0]), begun, before)
    else:
        drop_one(notes)
    return what


# ---- setting up
_walk: list[Callable[..., Any]] = []


def install() -> Callable[..., Any]:
    """Compiles the routines, and tells the native path where they are. Gives the backward pass with
    a record around each node."""
    if _walk:
        return _walk[0]
    nodes.node_type.refer_to(Node)
    for form in (FUNCTION, INDEX):
        at = places.profiled_calls.addr + slots.WORD * form
        slots.word(at).value = try_quick.spec(FORM=form).addr
    _walk.append(walk.profiled())
    return _walk[0]
