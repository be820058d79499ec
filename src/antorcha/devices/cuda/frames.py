"""Which line of a program launched what a kernel finds wrong later."""

from __future__ import annotations

import functools
import linecache
import os
from collections.abc import Callable
from types import CodeType

from antorcha.lang.native import Extern, Global, bind, i32, i64, native, ptr, raw, void
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    PyErr_Clear,
    PyLong_AsLongLong,
    PyObject_GetAttr,
    drop_one,
    fast_def,
    new_reference,
)
from antorcha.runtime.memory.device_memory import ReportPage

PyEval_GetFrame = Extern("PyEval_GetFrame", raw)
PyFrame_GetBack = Extern("PyFrame_GetBack", raw, raw)
PyFrame_GetCode = Extern("PyFrame_GetCode", raw, raw)
PyFrame_GetLineNumber = Extern("PyFrame_GetLineNumber", i32, raw)
PyUnicode_Tailmatch = Extern("PyUnicode_Tailmatch", i64, raw, raw, i64, i64, i32)
LONGEST = (1 << 63) - 1
OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


own_folder = Global("antorcha_own_folder", raw)
own_folder.refer_to(OWN)
file_name = Global("antorcha_file_name", raw)
file_name.refer_to("co_filename")


@native
def is_own(code: raw) -> bool:
    """Is it code of this library?"""
    name = PyObject_GetAttr(code, file_name[0])
    if name is None:
        PyErr_Clear()
        return False
    found = PyUnicode_Tailmatch(name, own_folder[0], 0, LONGEST, -1)
    Py_DecRef(name)
    return found == 1


@native(export=True)
def note_frame(page: ptr[ReportPage], at: i64) -> void:
    """Notes, for a word of a page, the innermost frame that is not this library's."""
    drop_one(page.codes[at])
    page.codes[at] = None
    frame = new_reference(PyEval_GetFrame())
    while frame is not None:
        code = PyFrame_GetCode(frame)
        if not is_own(code):
            page.codes[at] = code
            page.lines[at] = i64(PyFrame_GetLineNumber(frame))
            Py_DecRef(frame)
            return
        Py_DecRef(code)
        back = PyFrame_GetBack(frame)
        Py_DecRef(frame)
        frame = back


@native
def py_note(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(address of a page, which word)"""
    note_frame(ptr[ReportPage](raw(PyLong_AsLongLong(args[0]))), PyLong_AsLongLong(args[1]))
    return new_reference(raw(NONE))


@native
def py_drop(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(address of a page): drops what it holds of frames."""
    page = ptr[ReportPage](raw(PyLong_AsLongLong(args[0])))
    for k in range(page.room):
        drop_one(page.codes[k])
        page.codes[k] = None
    return new_reference(raw(NONE))


@functools.cache
def note() -> Callable[[int, int], None]:
    """`note_frame`, for launches by Python."""
    result: Callable[[int, int], None] = bind(fast_def("note", py_note.spec().addr))
    return result


@functools.cache
def drop() -> Callable[[int], None]:
    """What drops the frames of a page that ends."""
    result: Callable[[int], None] = bind(fast_def("drop", py_drop.spec().addr))
    return result


def place_of(code: CodeType, line: int) -> str:
    """A line of a program, in words."""
    text = linecache.getline(code.co_filename, line).strip()
    where = f"{code.co_filename}:{line}, in {code.co_name}"
    return f"{where}: {text}" if text else where
