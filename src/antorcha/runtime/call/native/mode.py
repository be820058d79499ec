"""The mode of the thread that runs, and ``with torch.no_grad():`` without the interpreter.

Where this runs, threads' modes are kept here, and not in ``modes.state`` and ``modes.busy`` as
Python keeps them: to ask there takes as long as a small kernel, to write there as long as several.
Owns the word of the thread that asked last, with its number (which no later thread gets), the words
of the others in a dict, and `reasons`. In ``modes``, `state` and `busy` are properties that ask
here, and ``set_word`` and ``count`` builtins; ``py_enter`` and ``py_leave`` stand in the classes of
``modes.blocks``.

Invariants: a thread's word is `answer` if that is the thread's, else what `words` has for it, else
what it had before this was set up, else 0; `reasons.busy` counts the threads whose word is not 0.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from antorcha.core import modes
from antorcha.lang.native import (
    Extern,
    Global,
    Spec,
    bind,
    i32,
    i64,
    make_immortal,
    native,
    ptr,
    raw,
    struct,
    u64,
)
from antorcha.runtime import trace
from antorcha.runtime.call.native.slots import MAKE, WORD, word
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    PyErr_Clear,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_GetAttr,
    PyObject_Vectorcall,
    PyThreadState_Get,
    PyThreadState_GetID,
    complain,
    complaint,
    drop_one,
    failed,
    fast_def,
    new_reference,
    zero,
)
from antorcha.runtime.objects import PyType_GenericAlloc, field_offset

PyDict_GetItemWithError = Extern("PyDict_GetItemWithError", raw, raw, raw)
PyDict_DelItem = Extern("PyDict_DelItem", i32, raw, raw)
PyDict_SetItem = Extern("PyDict_SetItem", i32, raw, raw, raw)
PyObject_SetAttr = Extern("PyObject_SetAttr", i32, raw, raw, raw)


@struct
class Answer:
    thread: u64  # 0: none yet
    word: i64


@struct
class Reasons:
    """``modes.busy`` and ``modes.special``, which say the same: to ask there takes long."""

    busy: i64
    special: i64


WATCHED = -2
answer = Global("antorcha_mode_answer", Answer)
reasons = Global("antorcha_mode_reasons", Reasons)
modes_names = Global("antorcha_modes_names", raw)  # the names of the module antorcha.core.modes
special_name = Global("antorcha_special_name", raw)  # "special"
word_name = Global("antorcha_word_name", raw)
before = Global("antorcha_modes_before", raw)  # what `modes.state` was: threads' words until then
words = Global("antorcha_mode_words", raw)  # a dict
off = Global("antorcha_native_off", i64)  # how many have asked for the Python path alone


@native(noinline=True)
def take_over(thread: u64) -> i64:
    """Another thread runs than the one that asked last; -1: its word cannot be read."""
    number = PyLong_FromLongLong(i64(thread))
    if number is None or not put_away():
        PyErr_Clear()
        drop_one(number)
        return -1
    held = PyDict_GetItemWithError(words[0], number)
    if held is not None:
        value = PyLong_AsLongLong(held)
        PyDict_DelItem(words[0], number)
    else:
        value = word_before()
    Py_DecRef(number)
    if value >= 0:
        answer.thread = thread
        answer.word = value
    return value


@native
def put_away() -> bool:
    """Puts the word that is here into the dict; False with an exception."""
    if answer.thread == 0 or answer.word == 0:
        return True
    number, value = PyLong_FromLongLong(i64(answer.thread)), PyLong_FromLongLong(answer.word)
    done = False
    if number is not None and value is not None:
        done = PyDict_SetItem(words[0], number, value) == 0
    drop_one(number)
    drop_one(value)
    if done:
        answer.thread = 0
        answer.word = 0
    return done


@native
def word_before() -> i64:
    """The thread's word from before this was set up, which it has no longer there; -1: it cannot be
    read."""
    held = PyObject_GetAttr(before[0], word_name[0])
    value = i64(-1)
    if held is not None:
        value = PyLong_AsLongLong(held)
        Py_DecRef(held)
    if value > 0 and PyObject_SetAttr(before[0], word_name[0], zero[0]) != 0:
        value = i64(-1)
    if value < 0:
        PyErr_Clear()
    return value


@native
def current_word() -> i64:
    """The thread's mode; -1: it cannot be read."""
    thread = PyThreadState_GetID(PyThreadState_Get())
    return answer.word if answer.thread == thread else take_over(thread)


@native
def mode_word() -> i64:
    """0 in the default mode, NO_GRAD where nothing is recorded; WATCHED less these while a profile
    is on; -1: any other, for Python."""
    if off[0] != 0:
        return -1
    if reasons.busy == 0:
        return 0
    if trace.state.on != 0 and reasons.busy == 1:
        return WATCHED
    if reasons.special != 0:
        return -1
    value = current_word()
    if value != 0 and value != modes.NO_GRAD:
        return -1
    return WATCHED - value if trace.state.on != 0 else value


@native(export=True)
def put_word(value: i64) -> bool:
    """Puts the thread in a mode; False with an exception."""
    old = current_word()
    if old < 0:
        return complain_unread()
    if old == 0 and value != 0:
        reasons.busy += 1
    elif old != 0 and value == 0:
        reasons.busy -= 1
    answer.word = value
    return True


def _unread(_first: Any, _second: Any, _number: int) -> BaseException:
    return MemoryError("the thread's mode cannot be read")


UNREAD = complaint(_unread)


@native(noinline=True)
def complain_unread() -> bool:
    complain(UNREAD, NONE, NONE, 0)
    return False


@native
def py_count(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """In place of ``modes.count``."""
    more = PyLong_AsLongLong(args[0])
    more_special = PyLong_AsLongLong(args[1])
    if failed():
        return None
    number = PyLong_FromLongLong(reasons.special + more_special)
    if number is None:
        return number
    done = PyDict_SetItem(modes_names[0], special_name[0], number)
    Py_DecRef(number)
    if done != 0:
        return None
    reasons.busy += more
    reasons.special += more_special
    return new_reference(raw(NONE))


@native
def py_busy(_self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    return PyLong_FromLongLong(reasons.busy)


@native
def py_set_word(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """The word; gives the old one."""
    value = PyLong_AsLongLong(args[0])
    if value == -1 and failed():
        return None
    old = PyLong_FromLongLong(current_word())
    if old is not None and not put_word(value):
        Py_DecRef(old)
        return None
    return old


# ---- blocks
def _not_entered(first: Any, _second: Any, _number: int) -> BaseException:
    return AttributeError(f"{type(first).__name__}: left without having been entered")


NOT_ENTERED = complaint(_not_entered)
old_at = Global("antorcha_mode_old_at", i64)  # where in the object the slot `_old` is
MOST_CLASSES = 4
made_by_python = Global("antorcha_mode_made_by_python", raw, MOST_CLASSES)


@native
def py_enter(self: raw, _args: ptr[raw], _nargs: i64, *, SET, CLEAR) -> raw:
    """``__enter__``: the word as it is, but for some bits; the old one into ``_old``."""
    now = current_word()
    old = PyLong_FromLongLong(now)
    if old is None or not put_word((now | SET) & ~CLEAR):
        return None
    place = ptr[raw](self + old_at[0])
    before = place[0]
    place[0] = old
    if before is not None:
        Py_DecRef(before)
    return new_reference(raw(NONE))


@native
def py_leave(self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    """``__exit__``: back to the word in ``_old``."""
    old = ptr[raw](self + old_at[0])[0]
    if old is None:
        complain(NOT_ENTERED, self, NONE, 0)
        return None
    value = PyLong_AsLongLong(old)
    if (value == -1 and failed()) or not put_word(value):
        return None
    return new_reference(raw(NONE))


@native
def make(self: raw, args: ptr[raw], nargsf: i64, names: raw, *, CLASS) -> raw:
    """``torch.no_grad()``; with arguments, Python makes it."""
    nargs = nargsf & 0x7FFFFFFFFFFFFFFF  # without PY_VECTORCALL_ARGUMENTS_OFFSET
    if nargs == 0 and names is None:
        return PyType_GenericAlloc(self, 0)
    return PyObject_Vectorcall(made_by_python[CLASS], args, nargs, names)


def placed() -> list[Spec]:
    """The functions that `install` puts in place."""
    blocks = modes.blocks[:MOST_CLASSES]
    return [
        *[py_enter.spec(SET=sets, CLEAR=clears) for _, sets, clears in blocks],
        *[make.spec(CLASS=number) for number in range(len(blocks))],
        *[each.spec() for each in (py_leave, py_current, py_busy, py_count, py_set_word)],
    ]


def _serve(number: int, cls: Any, sets: int, clears: int) -> None:
    """Has a class of ``modes.blocks`` served here."""
    base = cls.__mro__[1]
    old_at.np[0] = field_offset(base, "_old")
    enter = py_enter.spec(SET=sets, CLEAR=clears).addr
    for name, address in (("__enter__", enter), ("__exit__", py_leave.spec().addr)):
        doc = base.__dict__[name].__doc__ or ""
        setattr(cls, name, _descriptor(cls, ctypes.addressof(fast_def(name, address, doc))))
    by_python = make_immortal(functools.partial(type.__call__, cls))
    word(made_by_python.addr + WORD * number).value = id(by_python)
    word(id(cls) + MAKE).value = make.spec(CLASS=number).addr


_descriptor = ctypes.pythonapi.PyDescr_NewMethod
_descriptor.restype = ctypes.py_object
_descriptor.argtypes = [ctypes.py_object, ctypes.c_void_p]


@native
def py_current(_self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    return PyLong_FromLongLong(current_word())


@functools.cache
def current() -> Callable[..., int]:
    """What gives the thread's word."""
    result: Callable[..., int] = bind(fast_def("current", py_current.spec().addr))
    return result


class _NativeState:
    """In place of ``modes.state``."""

    __slots__ = ()
    word: Any  # a property, set by `install`

    def _put(self, word: int) -> None:
        """For a thread that was within ``modes._set_word`` when this took its place: it has counted
        itself."""
        old = modes.set_word(word)
        modes.count(bool(old) - bool(word), 0)


class _Modes(ModuleType):
    """The class of ``modes``, whose `busy` is here."""

    busy: Any  # a property, set by `install`


def install() -> None:
    """Tells the machine code where modes are, and takes the place of what keeps them in Python."""
    modes_names.refer_to(vars(modes))
    special_name.refer_to(sys.intern("special"))
    word_name.refer_to(sys.intern("word"))
    before.refer_to(modes.state)
    words.refer_to({})
    _NativeState.word = property(current(), _NativeState._put, doc="The thread's mode.")
    _Modes.busy = property(bind(fast_def("busy", py_busy.spec().addr)))
    counted = reasons.pointer()
    counted.busy, counted.special = modes.busy, modes.special
    modes.__class__ = _Modes
    modes.state = _NativeState()  # type: ignore[assignment]
    modes.count = bind(fast_def("count", py_count.spec().addr, modes.count.__doc__ or ""))
    modes.set_word = bind(
        fast_def("set_word", py_set_word.spec().addr, modes.set_word.__doc__ or "")
    )
    for number, (cls, sets, clears) in enumerate(modes.blocks[:MOST_CLASSES]):
        _serve(number, cls, sets, clears)
