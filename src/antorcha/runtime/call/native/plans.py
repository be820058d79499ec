"""Plans of calls at sizes never met, made by machine code for the nodes that record them.

A node asks its plan how the operands and the results lay, and which arguments were given by value;
it runs nothing. Such a plan has these few fields made of a call's words; all else is as in the plan
of the outline, the one with symbols (``outline.Outline.plan``), and ``run``, ``fresh``, ``into``
are not set.

Invariants: a History never changes, and lives as long as the Sized that names it.
"""

from __future__ import annotations

from typing import Any

from antorcha.lang.native import (
    Extern,
    Global,
    array,
    i32,
    i64,
    native,
    ptr,
    raw,
    struct,
    u8,
)
from antorcha.runtime.call.native.tensors import TensorObject
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.cpython import (
    HEADER,
    NONE,
    Py_DecRef,
    PyTuple_New,
    drop_one,
    int_object,
    new_reference,
    put_item,
    tuple_of,
)
from antorcha.runtime.objects import PyType_GenericAlloc, field_offset

PyDict_New = Extern("PyDict_New", raw)
PyDict_Copy = Extern("PyDict_Copy", raw, raw)
PyDict_SetItem = Extern("PyDict_SetItem", i32, raw, raw, raw)


@struct
class PlanObject:
    """A Plan's fields, every one an object; null is a field that is not set."""

    head: array[u8, HEADER]
    allocate: raw
    delta: raw
    family: raw
    fresh: raw
    into: raw
    keeps: raw
    kind: raw
    makers: raw
    numbers: raw
    op: raw
    out: raw
    outline: raw
    outs: raw
    post: raw
    post_names: raw
    record: raw
    replays: raw
    rule: raw
    run: raw
    sequence: raw
    statics: raw
    tensors: raw
    vjp: raw


@struct
class Static:
    """An argument by value that has sizes in it: a tuple of `count` words, or (-1) a number."""

    name: raw
    at: i64
    count: i64


@struct
class History:
    """How calls at sizes never met are recorded."""

    how: raw  # the storage of a Recording
    plan: raw  # the outline's
    tensors: i64
    statics: i64
    static: ptr[Static]
    deltas: i64  # where the words begin with what each view adds to the offset; -1: it is no view
    several: i64  # is it several views?


plan_type = Global("antorcha_plan_class", raw)


@native
def objects_of(items: ptr[raw], count: i64) -> raw:
    """A tuple of objects, None in the place of null; null with an exception."""
    result = PyTuple_New(count)
    if result is not None:
        for k in range(count):
            o = items[k]
            put_item(result, k, new_reference(raw(NONE) if o is None else o))
    return result


@native
def layouts_of(operands: ptr[raw], count: i64) -> raw:
    """A tuple of tensors' layouts, None in the place of null; null with an exception."""
    result = PyTuple_New(count)
    if result is not None:
        for k in range(count):
            o = operands[k]
            layout = raw(NONE) if o is None else ptr[TensorObject](o).layout
            put_item(result, k, new_reference(layout))
    return result


@native
def put_static(statics: raw, static: ptr[Static], words: ptr[i64]) -> bool:
    """Puts one into a dict; False with an exception."""
    if static.count < 0:
        value = int_object(words[static.at])
    else:
        value = tuple_of(words + static.at, static.count)
    ok = value is not None
    if ok:
        ok = PyDict_SetItem(statics, static.name, value) == 0
        Py_DecRef(value)
    return ok


@native
def statics_of(history: ptr[History], words: ptr[i64]) -> raw:
    """The arguments by value; null with an exception."""
    like = ptr[PlanObject](history.plan).statics
    if history.statics == 0:
        return new_reference(like)
    result = PyDict_Copy(like)
    ok = result is not None
    for k in range(history.statics):
        ok = ok and put_static(result, history.static + k, words)
    if not ok:
        drop_one(result)
        return None
    return result


@native
def copy_of(o: raw) -> raw:
    """A new reference to a field, if it is set."""
    return new_reference(raw(NONE) if o is None else o)


@native
def new_plan(
    history: ptr[History], words: ptr[i64], numbers: raw, layouts: ptr[raw], results: i64,
    operands: ptr[raw],
) -> raw:  # fmt: skip
    """A plan for operands of these sizes, whose numbers it takes over; null with an exception."""
    o = PyType_GenericAlloc(plan_type[0], 0)
    if o is None:
        Py_DecRef(numbers)
        return o
    plan, like = ptr[PlanObject](o), ptr[PlanObject](history.plan)
    plan.numbers = numbers
    plan.family = copy_of(like.family)
    plan.keeps = copy_of(like.keeps)
    plan.kind = copy_of(like.kind)
    plan.op = copy_of(like.op)
    plan.outline = copy_of(like.outline)
    plan.post_names = copy_of(like.post_names)
    plan.record = copy_of(like.record)
    plan.replays = copy_of(like.replays)
    plan.rule = copy_of(like.rule)
    plan.out = new_reference(layouts[0])
    plan.outs = objects_of(layouts, results)
    plan.tensors = layouts_of(operands, history.tensors)
    plan.statics = statics_of(history, words)
    plan.vjp = PyDict_New()
    if history.deltas >= 0:
        plan.delta = int_object(words[history.deltas])
    else:
        plan.delta = copy_of(like.delta)
    if history.several != 0:
        plan.post = tuple_of(words + history.deltas, results)
    else:
        plan.post = copy_of(like.post)
    ok = plan.outs is not None and plan.tensors is not None and plan.statics is not None
    ok = ok and plan.vjp is not None and plan.delta is not None and plan.post is not None
    if not ok:
        Py_DecRef(o)
        return None
    return o


def why_not() -> str:
    """What of Plan does not lie as `PlanObject` says; empty when all does."""
    fields: dict[str, Any] = PlanObject.fields
    for name, (offset, _) in fields.items():
        if name != "head" and field_offset(Plan, name) != offset:
            return f"Plan.{name} is elsewhere"
    return ""


def install() -> None:
    """Tells the machine code what plans are."""
    plan_type.refer_to(Plan)
