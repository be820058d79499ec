"""Functions and methods of one tensor and arguments by value: ``x.exp()``, ``x.sum(0)``,
``x.view(4, 3)``, ``x[1:3, None]``.

Each op that has been met has a builtin of its own (``Quick``): the Python short cut that it stands
for, and PLACES places for plans, found by the tensor's layout and the values of the rest:
integers and bools; in an index integers, slices, None and ``...``.
What is not there, and all other arguments, the short cut serves, and then teaches. A place owns
what it names; ``flush`` empties all.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from antorcha import modes
from antorcha.lang.native import (
    METH_FASTCALL,
    METH_KEYWORDS,
    Extern,
    ExternData,
    array,
    bind,
    i64,
    local,
    method_def,
    native,
    ptr,
    raw,
    ref,
    struct,
    u8,
    u64,
    void,
)
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call import short
from antorcha.runtime.call.native import record
from antorcha.runtime.call.native.operators import (
    NOT_HERE,
    NOT_KNOWN,
    SERVED,
    is_default_mode,
)
from antorcha.runtime.call.native.record import Recording, attach, recording
from antorcha.runtime.call.native.tensors import (
    Making,
    TensorObject,
    int_type,
    is_whole,
    make_result,
    making_of,
    new_tensor,
)
from antorcha.runtime.cpython import (
    FALSE,
    HEADER,
    NONE,
    TRUE,
    Py_DecRef,
    Py_IncRef,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_Size,
    failed,
    fast_def,
    tuple_type,
    type_of,
)
from antorcha.runtime.storage import StorageObject, wrap
from antorcha.runtime.tensor import Tensor

MOST = 16  # words of a key; an argument is one, a slice four
PLACES = 16
INT, BOOL, NOTHING, DOTS, SLICE = range(1, 6)
slice_type = ExternData("PySlice_Type", u8)
DOTS_OBJECT = ExternData("_Py_EllipsisObject", u8)
PyErr_Clear = Extern("PyErr_Clear", void)


@struct
class Key:
    layout: raw
    count: i64
    mixed: i64  # a hash of the rest
    kinds: array[i64, MOST]
    values: array[i64, MOST]


@struct
class Place:
    """A plan, and the arguments that it is for; `run` is null while there is none."""

    key: Key
    run: raw  # the storage of a Making; of a view: its layout
    record: raw  # the storage of a Recording, or null
    view: i64  # is it a view?
    delta: i64  # of a view: what to add to the offset
    missed: i64  # the hash of the arguments that were looked for in vain last


@struct
class Quick:
    python: raw  # the short cut
    teach: raw  # called with the arguments that the short cut has served
    places: array[Place, PLACES]


@struct
class SliceObject:
    head: array[u8, HEADER]
    start: raw
    stop: raw
    step: raw


@native(export=True)
def add_word(key: ptr[Key], o: raw) -> bool:
    """Adds an argument to a key; False: it is not for here."""
    kind = i64(INT)
    value = i64(0)
    if type_of(o) == raw(int_type):
        value = PyLong_AsLongLong(o)
        if value == -1 and failed():
            PyErr_Clear()
            return False
    elif o == raw(NONE):
        kind = NOTHING
    elif o == raw(TRUE) or o == raw(FALSE):
        kind = BOOL
        value = i64(o == raw(TRUE))
    elif o == raw(DOTS_OBJECT):
        kind = DOTS
    else:
        return False
    if key.count >= MOST:
        return False
    key.kinds[key.count] = kind
    key.values[key.count] = value
    key.count += 1
    key.mixed = i64((u64(key.mixed) ^ u64(value * 8 + kind)) * 0x9E3779B97F4A7C15)
    return True


@native(export=True)
def add_item(key: ptr[Key], o: raw) -> bool:
    """Adds an item of an index to a key: what makes a view; False: it is not for here."""
    if o == raw(TRUE) or o == raw(FALSE):
        return False
    if type_of(o) != raw(slice_type):
        return add_word(key, o)
    s = ptr[SliceObject](o)
    if key.count >= MOST:
        return False
    key.kinds[key.count] = SLICE
    key.values[key.count] = 0
    key.count += 1
    key.mixed += SLICE
    return add_word(key, s.start) and add_word(key, s.stop) and add_word(key, s.step)


@native(export=True)
def read_key(args: ptr[raw], nargs: i64, key: ptr[Key], *, INDEX) -> i64:
    """The place's number; -1: these arguments are not for here."""
    if nargs < 1 or not is_whole(args[0]):
        return -1
    key.layout = ptr[TensorObject](args[0]).layout
    key.count = 0
    key.mixed = i64(key.layout) >> 4
    if not INDEX:
        for k in range(1, nargs):
            if args[k] == raw(NONE) or args[k] == raw(DOTS_OBJECT) or not add_word(key, args[k]):
                return -1
    elif nargs != 2:
        return -1
    elif type_of(args[1]) == raw(tuple_type):
        for k in range(PyTuple_Size(args[1])):
            if not add_item(key, PyTuple_GetItem(args[1], k)):
                return -1
        key.mixed += 1  # x[(1,)] and x[1] are one thing, but two keys
        if key.count >= MOST:
            return -1
        key.kinds[key.count] = 0
        key.values[key.count] = 0
        key.count += 1
    elif not add_item(key, args[1]):
        return -1
    return i64(u64(key.mixed) * 0x9E3779B97F4A7C15 >> 40 & (PLACES - 1))


@native(export=True)
def is_key(have: ptr[Key], key: ptr[Key]) -> bool:
    if have.mixed != key.mixed or have.layout != key.layout or have.count != key.count:
        return False
    for k in range(key.count):
        if have.values[k] != key.values[k] or have.kinds[k] != key.kinds[k]:
            return False
    return True


@native(export=True)
def try_quick(quick: ptr[Quick], args: ptr[raw], nargs: i64, made: ptr[raw], *, INDEX) -> i64:
    """The result in `made`, or null with an exception, where it says SERVED."""
    key = local(Key)
    number = read_key(args, nargs, key, INDEX=INDEX)
    if number < 0 or not is_default_mode():
        return NOT_HERE
    place = ref(quick.places[number])
    if place.run is None or not is_key(ref(place.key), key):
        known = place.missed == key.mixed
        place.missed = key.mixed
        return NOT_KNOWN if known else NOT_HERE
    a = args[0]
    x = ptr[TensorObject](a)
    run, how = place.run, place.record
    if place.view != 0 and not has_counts(a):
        return NOT_HERE
    graph = x.rg != raw(FALSE) and how is not None
    mask = i64(0)
    if graph:
        operands = local(raw, MOST_OPERANDS)
        operands[0] = a
        for k in range(1, MOST_OPERANDS):
            operands[k] = None
        mask = recording(ptr[Recording](ptr[StorageObject](how).ptr), operands)
        if mask < 0:
            return NOT_KNOWN if mask == -1 else NOT_HERE
        Py_IncRef(how)
    Py_IncRef(run)
    out = raw(0)
    if place.view != 0:
        out = new_view(a, run, place.delta)
    else:
        given = local(raw, 2)
        given[0] = x.storage
        given[1] = x.offset
        out = make_result(ptr[Making](ptr[StorageObject](run).ptr), given, 2)
    if graph:
        if out is not None:
            kept = ptr[Recording](ptr[StorageObject](how).ptr)
            out = attach(kept, a, None, None, mask, out)
        Py_DecRef(how)
    Py_DecRef(run)
    made[0] = out
    return SERVED


@native
def py_quick(self: raw, args: ptr[raw], nargs: i64, names: raw, *, INDEX) -> raw:
    quick = ptr[Quick](ptr[StorageObject](self).ptr)
    what = i64(NOT_HERE)
    made = local(raw)
    if names is None:
        what = try_quick(quick, args, nargs, made, INDEX=INDEX)
        if what == SERVED:
            return made[0]
    result = PyObject_Vectorcall(quick.python, args, nargs, names)
    if what != NOT_KNOWN or result is None:
        return result
    done = PyObject_Vectorcall(quick.teach, args, nargs, None)
    if done is None:
        Py_DecRef(result)
        return done
    Py_DecRef(done)
    return result


# ---- views
@native(export=True)
def put_number(field: ptr[raw], value: i64) -> bool:
    """Puts a number into a field, whose old value it drops; False with an exception."""
    number = PyLong_FromLongLong(value)
    if number is None:
        return False
    old = field[0]
    field[0] = number
    if old is not None:
        Py_DecRef(old)
    return True


@native
def is_count(o: raw) -> bool:
    return o is None or type_of(o) == raw(int_type)


@native(export=True)
def has_counts(a: raw) -> bool:
    """Are the fields of a tensor and of its base such that a view of it can be counted?"""
    x = ptr[TensorObject](a)
    if not is_count(x.seen) or x.base is None:
        return False
    if x.base == raw(NONE):
        return True
    return is_whole(x.base) and is_count(ptr[TensorObject](x.base).seen)


@native(export=True)
def new_view(a: raw, layout: raw, delta: i64) -> raw:
    """``short.quick_view``: a view's tensor, its base counted, outside of any graph."""
    x = ptr[TensorObject](a)
    base = x.base
    seen = ptr[StorageObject](x.storage).version
    if base == raw(NONE):
        base = a
    elif x.seen is not None:
        own = PyLong_AsLongLong(x.seen)
        if own < 0:
            seen = own
    views = i64(0)
    if ptr[TensorObject](base).seen is not None:
        views = PyLong_AsLongLong(ptr[TensorObject](base).seen)
    offset = PyLong_AsLongLong(x.offset) + delta
    if failed():
        return None
    if not put_number(ref(ptr[TensorObject](base).seen), views + 1):
        return None
    Py_IncRef(x.storage)
    made = new_tensor(layout, x.storage)
    if made is None:
        return made
    t = ptr[TensorObject](made)
    if not put_number(ref(t.offset), offset) or not put_number(ref(t.seen), seen):
        Py_DecRef(made)
        return None
    Py_IncRef(base)
    Py_DecRef(t.base)
    t.base = base
    return made


# ---- filling the places
@native
def put(place: ptr[Place], key: ptr[Key], run: raw, how: raw, view: i64, delta: i64) -> void:
    """Takes over references to `run` and `how`; drops what was there, which may run any code."""
    old_layout, old_run, old_how = place.key.layout, place.run, place.record
    Py_IncRef(key.layout)
    place.key.layout = key.layout
    place.key.count = key.count
    place.key.mixed = key.mixed
    for k in range(MOST):
        place.key.kinds[k] = key.kinds[k]
        place.key.values[k] = key.values[k]
    place.run = run
    place.record = how
    place.view = view
    place.delta = delta
    if old_run is not None:
        Py_DecRef(old_layout)
        Py_DecRef(old_run)
    if old_how is not None:
        Py_DecRef(old_how)


@native
def py_learn(self: raw, args: ptr[raw], nargs: i64, *, INDEX) -> raw:
    """(run or layout, storage of a Recording or None, is it a view, delta, *the call's own)."""
    quick = ptr[Quick](ptr[StorageObject](self).ptr)
    key = local(Key)
    number = read_key(args + 4, nargs - 4, key, INDEX=INDEX)
    view = PyLong_AsLongLong(args[2])
    delta = PyLong_AsLongLong(args[3])
    if failed():
        return None
    if number >= 0:
        how = args[1]
        if how == raw(NONE):
            how = raw(0)
        else:
            Py_IncRef(how)
        Py_IncRef(args[0])
        put(ref(quick.places[number]), key, args[0], how, view, delta)
    Py_IncRef(raw(NONE))
    return raw(NONE)


@native
def py_flush(self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    quick = ptr[Quick](ptr[StorageObject](self).ptr)
    for k in range(PLACES):
        place = ref(quick.places[k])
        old_layout, old_run, old_how = place.key.layout, place.run, place.record
        place.key.layout = None
        place.run = None
        place.record = None
        if old_run is not None:
            Py_DecRef(old_layout)
            Py_DecRef(old_run)
        if old_how is not None:
            Py_DecRef(old_how)
    Py_IncRef(raw(NONE))
    return raw(NONE)


_flush_def = fast_def("flush", py_flush.spec().addr, "Empties the places.")


def quick_of(
    name: str,
    python: Callable[..., Any],
    find: Callable[..., plans.Plan | None],
    *,
    index: bool = False,
) -> Callable[..., Any]:
    """A builtin in front of `python`, with no plans yet.

    `find` gives the plan of a call that `python` has served. `index`: the call is ``x[i]``.
    """
    memory = (ctypes.c_int64 * (Quick.size // 8))()
    learn: Any = None

    def teach(*args: Any) -> None:
        plan = find(*args)
        if plan is None:
            return
        if plan.kind == plans.VIEW:
            learn(plan.out, record.storage_of(plan), 1, plan.delta, *args)
        else:
            run = making_of(plan.run)
            if plan.kind == plans.FRESH and run is not None:
                learn(run, record.storage_of(plan), 0, 0, *args)

    memory[0], memory[1] = id(python), id(teach)
    storage = wrap(ctypes.addressof(memory), Quick.size, (memory, python, teach))
    learn = bind(fast_def("learn", py_learn.spec(INDEX=index).addr), storage)
    plans.on_flush(bind(_flush_def, storage))
    flags = METH_FASTCALL | METH_KEYWORDS
    made: Callable[..., Any] = bind(
        method_def(name, py_quick.spec(INDEX=index).addr, flags), storage
    )
    return made


def plan_of(op: Any, a: Tensor, *args: Any) -> plans.Plan | None:
    """The plan that the short cut of an op has found for such a call."""
    found: plans.Plan | None = op.short_plans.get((a._layout, *args))
    return found if found is not None or args else op.short_plans.get(a._layout)


def upgrade(op: Any) -> None:
    """Puts a builtin in the place of an op's short cut, once: in the function and the methods."""
    methods = short.methods.get(op.name, ())
    python = op.quick if op.quick is not None and op.most > 2 else methods and methods[0][1]
    if id(op) in _upgraded or op.__module__ != "antorcha" or not python or modes.subclasses:
        return
    _upgraded.add(id(op))
    quick = quick_of(op.name, python, functools.partial(plan_of, op))
    if op.quick is not None:
        op.quick = quick
    for name, old in methods:
        if Tensor.__dict__.get(name) is old:
            setattr(Tensor, name, _method(quick, old))


_upgraded: set[int] = set()


def _method(quick: Callable[..., Any], old: Callable[..., Any]) -> Callable[..., Any]:
    """A method that calls the builtin, and looks like the one before."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return quick(self, *args, **kwargs)
        return quick(self, *args) if args else quick(self)

    return named_as(method, old)


def named_as(new: Callable[..., Any], old: Callable[..., Any]) -> Callable[..., Any]:
    """`new`, which looks like `old`."""
    new.__name__, new.__qualname__ = old.__name__, old.__qualname__
    new.__module__, new.__doc__ = old.__module__, old.__doc__
    return new


def install() -> None:
    """Tells the short cuts, and puts a builtin in front of ``x[i]``."""
    short.upgrade = upgrade
    python, find = short.reading or (None, None)
    if python is None or find is None or Tensor.__dict__.get("__getitem__") is not python:
        return
    quick = quick_of("__getitem__", python, find, index=True)

    def getitem(self: Tensor, index: Any) -> Any:
        return quick(self, index)

    setattr(Tensor, "__getitem__", named_as(getitem, python))  # noqa: B010
