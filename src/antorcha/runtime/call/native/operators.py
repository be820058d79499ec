"""Operators of two tensors, or of a tensor and a number, by plans found from their layouts.

Owns a table for each operator: ENTRIES places, WAYS of them for each hash of the two operands'
kinds (a tensor's layout, a number's type). A place holds a plan that was met with its hash, and
owns what it names; a miss has the Python path serve the call and then puts its plan there
(``teach``); ``flush`` empties all. So the tables are bounded, and what is not there costs a call in
Python.

Invariants: the operator's slot in the types of Tensor and Parameter holds ``binary``, or what the
interpreter has put there since, for whoever sets ``__add__`` anew (a subclass of the user's always
has the interpreter's). ``left`` and ``right`` hold the Python functions. ``binary`` runs a plan in
the default mode and in no_grad mode, and leaves to Python what takes thought: other modes, views
that were written to, inference tensors.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable

from __future__ import annotations

import functools
from typing import Any

from antorcha import modes
from antorcha.lang.native import (
    Global,
    Spec,
    bind,
    func,
    i32,
    i64,
    inline,
    keep_forever,
    local,
    native,
    ptr,
    raw,
    struct,
    u64,
    void,
)
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call import short
from antorcha.runtime.call.native import record, slots
from antorcha.runtime.call.native.checking import CHECKED, checked
from antorcha.runtime.call.native.flat import (
    Flat,
    family_of,
    flat_of,
    run_flat,
    same_shape,
    size_of,
)
from antorcha.runtime.call.native.mode import WATCHED, mode_word
from antorcha.runtime.call.native.record import MOST_OPERANDS, Recording, attach, recording
from antorcha.runtime.call.native.tensors import (
    Making,
    TensorObject,
    is_whole,
    make_result,
    making_of,
    parameter_type,
    tensor_type,
)
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    PyTuple_New,
    PyTuple_SetItem,
    empty_tuple,
    fast_def,
    float_type,
    int_type,
    new_reference,
    type_of,
)
from antorcha.runtime.storage import StorageObject
from antorcha.runtime.tensor import Parameter, Tensor

COMMUTE = ("add", "mul", "and", "or", "xor")  # with a number on the left, too
OPERATORS = ("add", "sub", "mul", "truediv", "matmul", "and", "or", "xor")
COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")  # in the order of CPython's own numbers
"""Those whose plan depends on their operands' kinds alone. (``//`` and ``%`` look whether an
integer divisor is 0, ``**`` has a plan for each exponent.)"""
NAMES = OPERATORS + COMPARISONS + ("rsub",)
RSUB = len(NAMES) - 1  # a number less a tensor: an op of its own
ENTRIES, WAYS = 256, 4


@struct
class Entry:
    """A plan, and the kinds of operands that it is for; null while there is none."""

    a: raw
    b: raw
    run: raw  # the storage that the plan's builtin `run` is bound to: a Making
    record: raw  # a storage with how a graph records it: a Recording; null: it does not
    missed: i64  # a hash of the kinds that were looked for in vain last


compare_t = func[raw, raw, raw, i32]
tables = Global("antorcha_operator_tables", Entry, len(NAMES) * ENTRIES)
left = Global("antorcha_python_left", raw, len(OPERATORS))  # Tensor.__add__
right = Global("antorcha_python_right", raw, len(OPERATORS))  # Tensor.__radd__
python_compare = Global("antorcha_python_compare", compare_t)
teacher = Global("antorcha_teacher", raw)  # `teach`
COUNTS = 5
counts = Global("antorcha_operator_counts", i64, len(NAMES) * COUNTS)  # as ``calls.COUNTED``

SERVED, NOT_KNOWN, NOT_HERE = 0, 1, 2
"""What `try_binary` says: there is a result (or an exception); no plan is known; not for it."""
try_t = func[i64, i64, raw, raw, ptr[raw]]
watched_try = Global("antorcha_watched_try", try_t)  # ``watched.try_operator``


@native
def hash_of(a: raw, b: raw) -> u64:
    return (u64(a) >> 4) * 0x9E3779B97F4A7C15 ^ (u64(b) >> 4) * 0xC2B2AE3D27D4EB4F


@native
def place_of(op: i64, a: raw, b: raw) -> ptr[Entry]:
    """The entry for two kinds; where there is none, the first of the WAYS where it may be."""
    first = tables + (op * ENTRIES + i64(hash_of(a, b) >> 40 & (ENTRIES - WAYS)))
    for k in range(WAYS):
        entry = first + k
        if entry.run is not None and entry.a == a and entry.b == b:
            return entry
    return first


@native
def seat_for(op: i64, a: raw, b: raw) -> ptr[Entry]:
    """Where a plan is put: its own entry, an empty one, or that of another."""
    entry = place_of(op, a, b)
    if entry.run is None or (entry.a == a and entry.b == b):
        return entry
    for k in range(WAYS):
        if (entry + k).run is None:
            return entry + k
    return entry + i64(hash_of(a, b) >> 8 & (WAYS - 1))


@inline
def is_tensor(kind):
    return kind == tensor_type[0] or kind == parameter_type[0]


@native
def try_flat(op: i64, a: raw, other: raw, args: ptr[raw], made: ptr[raw], *, PROFILED) -> i64:
    """As `try_binary`, by a plan for any size, of a layout and another, or a number's type; -1:
    there can be none."""
    first, second, like = family_of(a), other, a
    if first is None:
        return -1
    if other != raw(float_type) and other != raw(int_type):
        second = family_of(other)
        if second is None or not same_shape(a, other):
            return -1
    entry = place_of(op, first, second)
    if entry.run is None or entry.a != first or entry.b != second:
        missed = i64(hash_of(first, second))
        known = entry.missed == missed
        entry.missed = missed
        return NOT_KNOWN if known else NOT_HERE
    run = new_reference(entry.run)
    flat = ptr[Flat](ptr[StorageObject](run).ptr)
    if flat.like == 1:
        like = other
    done = run_flat(flat, args, size_of(a), like, made, PROFILED=PROFILED)
    Py_DecRef(run)
    return SERVED if done else -1


@native(export=True, level="O2")
def try_binary(op: i64, a: raw, b: raw, made: ptr[raw], *, PROFILED=False) -> i64:
    """The result in `made`, or null with an exception, where it says SERVED. PROFILED: for whoever
    writes down that it runs."""
    counted = counts + op * COUNTS
    if not is_whole(a):
        counted[1] += 1
        return NOT_HERE
    word = mode_word()  # before anything is read: it may run code, in a thread's first call
    x = ptr[TensorObject](a)
    other = type_of(b)
    args = local(raw, 4)
    args[0] = x.storage
    args[1] = x.offset
    nargs = i64(3)
    operands = local(raw, MOST_OPERANDS)
    for k in range(MOST_OPERANDS):
        operands[k] = None
    operands[0] = a
    number = b
    graph = x.rg != raw(FALSE)
    if is_whole(b):
        y = ptr[TensorObject](b)
        other = y.layout
        graph = graph or y.rg != raw(FALSE)
        args[2] = y.storage
        args[3] = y.offset
        nargs = 4
        operands[1] = b
        number = raw(0)
    elif other == raw(float_type) or other == raw(int_type):
        args[2] = b
    else:
        counted[1] += 1
        return NOT_HERE
    if word < 0:
        if not PROFILED and word <= WATCHED:
            return watched_try[0](op, a, b, made)
        if word > WATCHED or not PROFILED:
            counted[2] += 1
            return NOT_HERE
        word = WATCHED - word
    entry = place_of(op, x.layout, other)
    if entry.run is None or entry.a != x.layout or entry.b != other:
        if word != 0 or not graph:
            what = try_flat(op, x.layout, other, args, made, PROFILED=PROFILED)
            if what >= 0:
                counted[3 if what != SERVED else 0] += 1
                return what
        # what is met once is not worth the place of what is met often
        missed = i64(hash_of(x.layout, other))
        known = entry.missed == missed
        entry.missed = missed
        counted[3] += 1
        return NOT_KNOWN if known else NOT_HERE
    run, how = entry.run, entry.record
    graph = graph and how is not None and word == 0
    mask = i64(0)
    if graph:
        mask = recording(ptr[Recording](ptr[StorageObject](how).ptr), operands)
        if mask < 0:
            counted[4] += 1
            return NOT_KNOWN if mask == -1 else NOT_HERE
    counted[0] += 1
    Py_IncRef(run)  # while the kernel runs, another thread may empty the place
    if graph:
        Py_IncRef(how)
    made[0] = make_result(ptr[Making](ptr[StorageObject](run).ptr), args, nargs)
    if graph:
        if made[0] is not None:
            kept = ptr[Recording](ptr[StorageObject](how).ptr)
            record_call(kept, operands, number, mask, made)
        Py_DecRef(how)
    Py_DecRef(run)
    return SERVED


@native
def record_call(
    how: ptr[Recording], operands: ptr[raw], number: raw, mask: i64, made: ptr[raw]
) -> void:
    """Records the call on its result; where that fails, the result is dropped."""
    if number is None:
        values = new_reference(empty_tuple[0])
    else:
        values = PyTuple_New(1)
        if values is not None:
            PyTuple_SetItem(values, 0, new_reference(number))
    if values is None or not attach(how, how.plan, operands, values, mask, made, 1):
        Py_DecRef(made[0])
        made[0] = None


@native(export=True)
def told(op: i64, a: raw, b: raw, made: raw) -> raw:
    """`made`, of the Python path, after it has been asked for the plan; null with an exception."""
    if made is None:
        return made
    args = local(raw, 3)
    args[0] = PyLong_FromLongLong(op)
    args[1] = a
    args[2] = b
    done = raw(0)
    if args[0] is not None:
        done = PyObject_Vectorcall(teacher[0], args, 3, None)
        Py_DecRef(args[0])
    if done is None:
        Py_DecRef(made)
        return done
    Py_DecRef(done)
    return made


@native(export=True)
def in_python(op: i64, a: raw, b: raw) -> raw:
    """What a class written in Python does: ``a.__add__(b)``, or ``b.__radd__(a)``."""
    args = local(raw, 2)
    if is_tensor(type_of(a)):
        args[0] = a
        args[1] = b
        return PyObject_Vectorcall(left[op], args, 2, None)
    args[0] = b
    args[1] = a
    return PyObject_Vectorcall(right[op], args, 2, None)


@native
def binary(a: raw, b: raw, *, OP, SWAPPED) -> raw:
    """``a <operator> b``; SWAPPED: which operator does the same of b and a; -1: none does."""
    made = local(raw)
    first, second = a, b
    number = i64(OP)
    if SWAPPED >= 0 and not is_tensor(type_of(a)):  # 2.0 * x
        first, second = b, a
        number = SWAPPED
    what = try_binary(number, first, second, made)
    if what == SERVED:
        return checked(made[0]) if CHECKED else made[0]
    result = in_python(OP, a, b)
    return told(number, first, second, result) if what == NOT_KNOWN else result


@native
def compare(a: raw, b: raw, op: i32) -> raw:
    made = local(raw)
    number = i64(op) + len(OPERATORS)
    what = try_binary(number, a, b, made)
    if what == SERVED:
        return checked(made[0]) if CHECKED else made[0]
    result = python_compare[0](a, b, op)
    return told(number, a, b, result) if what == NOT_KNOWN else result


# ---- filling the tables
@native
def put(entry: ptr[Entry], a: raw, b: raw, run: raw, how: raw) -> void:
    """Takes over the references, and drops what was there: last, for that may run any code."""
    old_a, old_b, old_run, old_how = entry.a, entry.b, entry.run, entry.record
    entry.a = a
    entry.b = b
    entry.run = run
    entry.record = how
    if old_run is not None:
        Py_DecRef(old_a)
        Py_DecRef(old_b)
        Py_DecRef(old_run)
    if old_how is not None:
        Py_DecRef(old_how)


@native
def py_learn(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(operator, kind, kind, storage of a Making, that of a Recording or None): see `teach`."""
    op = PyLong_AsLongLong(args[0])
    for k in range(1, 5):
        Py_IncRef(args[k])
    how = args[4]
    if how == raw(NONE):
        Py_DecRef(how)
        how = raw(0)
    put(seat_for(op, args[1], args[2]), args[1], args[2], args[3], how)
    Py_IncRef(raw(NONE))
    return raw(NONE)


@native
def py_flush(_self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    for k in range(len(NAMES) * ENTRIES):
        put(tables + k, None, None, None, None)
    Py_IncRef(raw(NONE))
    return raw(NONE)


@functools.cache
def _learn() -> Any:
    return bind(fast_def("learn", py_learn.spec().addr))


@functools.cache
def _flush() -> Any:
    return bind(fast_def("flush", py_flush.spec().addr, "Empties every table."))


def teach(number: int, a: Any, b: Any) -> None:
    """After the Python path has served ``a <operator> b``: its plan, if it has one, serves the next
    calls."""
    op = short.operators.get(NAMES[number])
    if op is None:
        return
    other = b._layout if isinstance(b, Tensor) else type(b)
    plan = op.short_plans.get((a._layout, other))
    if plan is None and op.native is not None and not modes.watched:
        # its builtin has served it, and plans nothing (a profile would see two calls)
        op.in_python(a, b)
        plan = op.short_plans.get((a._layout, other))
    run = None if plan is None else making_of(plan.run)
    if plan is not None and run is not None:
        _learn()(number, a._layout, other, run, record.storage_of(plan))
        sides = [a._layout, other] if isinstance(b, Tensor) else [a._layout]
        families = [lay.family for lay in sides]
        if all(families):
            second = families[1] if isinstance(b, Tensor) else other
            _learn()(number, families[0], second, flat_of(plan, sides), None)


# ---- setting up
def _spec_of(operator: str) -> Spec:
    """The function for the slot of an operator."""
    k = OPERATORS.index(operator)
    swapped = k if operator in COMMUTE else RSUB if operator == "sub" else -1
    return binary.spec(OP=k, SWAPPED=swapped)


def placed() -> list[Spec]:
    """The functions that `install` puts in place, and what fills the tables."""
    return [*map(_spec_of, OPERATORS), compare.spec(), py_learn.spec(), py_flush.spec()]


def _as_bound(*names: str) -> bool:
    """Has nobody put another method of that name into Tensor?"""
    return all([Tensor.__dict__.get(name) is short.forms.get(name) for name in names])


def install() -> None:
    """Puts `binary` and `compare` into the types, but where somebody has set an operator."""
    teacher.refer_to(teach)
    for k, name in enumerate(OPERATORS):
        if not _as_bound(f"__{name}__", f"__r{name}__"):
            continue
        for functions, method in ((left, f"__{name}__"), (right, f"__r{name}__")):
            at = functions.addr + slots.WORD * k
            slots.word(at).value = id(keep_forever(Tensor.__dict__[method]))
        address = _spec_of(name).addr
        for cls in (Tensor, Parameter):
            slots.word(slots.number_slot(cls, name)).value = address
    if _as_bound(*[f"__{name}__" for name in COMPARISONS]):
        slots.word(python_compare.addr).value = slots.word(id(Tensor) + slots.RICHCOMPARE).value
        for cls in (Tensor, Parameter):
            slots.word(id(cls) + slots.RICHCOMPARE).value = compare.spec().addr
    plans.on_flush(_flush())
