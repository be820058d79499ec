"""Fresh tensors, made around a kernel's result.

Owns nothing. A tensor is made as ``plan.tensor_maker`` makes it, with every field set, but its
class and fields are known here, not read from a recipe, and its memory comes from ``life``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from antorcha.lang.native import Global, array, bind, i64, native, ptr, raw, struct, u8
from antorcha.runtime.call.native.dealloc import TENSOR, new_object
from antorcha.runtime.cpython import (
    FALSE,
    HEADER,
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyErr_Clear,
    fast_def,
    hold,
    int_type,
    int_value,
    new_reference,
    type_of,
    zero,
)
from antorcha.runtime.launch import py_launch, storage_of
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, StorageObject, storage_type
from antorcha.runtime.objects import field_offset, words_in_memory
from antorcha.runtime.sequence import play, sequence_of
from antorcha.runtime.tensor import Parameter, Tensor


@struct
class TensorObject:
    """A Tensor's fields, every one an object; null is a field that is not set."""

    head: array[u8, HEADER]
    base: raw
    extra: raw
    fn: raw
    grad: raw
    layout: raw
    nr: raw
    offset: raw
    rg: raw
    seen: raw
    storage: raw


@struct
class TensorMaking:
    """What makes a plan's result: a launch or a sequence (its Storage), and the tensor's layout."""

    plan: raw
    layout: raw
    several: i64  # is it a sequence?


@native
def offset_of(o: raw) -> i64:
    """A tensor's offset; -1, without an exception, where it is below 0 or too large."""
    at = int_value(ptr[TensorObject](o).offset)
    if at < 0:
        PyErr_Clear()
        return -1
    return at


tensor_type = Global("antorcha_tensor_type", raw)
parameter_type = Global("antorcha_parameter_type", raw)


@native
def new_tensor(layout: raw, storage: raw) -> raw:
    """A tensor outside of any graph, at the beginning of a storage, whose reference it takes over;
    null with an exception, the storage then dropped."""
    Py_IncRef(layout)  # before anything is allocated, which may run any code
    o = new_object(TENSOR)
    if o is None:
        Py_DecRef(layout)
        Py_DecRef(storage)
        return o
    t = ptr[TensorObject](o)
    t.storage = storage
    t.layout = layout
    hold(zero[0], 2)
    hold(raw(FALSE), 1)
    hold(raw(NONE), 4)
    t.offset = zero[0]
    t.nr = zero[0]
    t.rg = raw(FALSE)
    t.base = raw(NONE)
    t.extra = raw(NONE)
    t.fn = raw(NONE)
    t.grad = raw(NONE)
    return o


@native(export=True)
def tensor_at(layout: raw, storage: raw, offset: raw) -> raw:
    """A tensor outside of any graph, somewhere in a storage; null with an exception."""
    result = new_tensor(layout, new_reference(storage))
    if result is not None and offset != zero[0]:
        t = ptr[TensorObject](result)
        old = t.offset
        t.offset = new_reference(offset)
        Py_DecRef(old)
    return result


@native
def is_whole(o: raw) -> bool:
    """Is it a Tensor or a Parameter, with fields that a call may read? (Fields may be deleted, and
    set to anything.)"""
    kind = type_of(o)
    if kind != tensor_type[0] and kind != parameter_type[0]:
        return False
    x = ptr[TensorObject](o)
    if x.layout is None or x.storage is None or x.offset is None:
        return False
    return type_of(x.storage) == storage_type[0] and type_of(x.offset) == raw(int_type)


# ---- results of plans
@native
def make_result(making: ptr[TensorMaking], args: ptr[raw], nargs: i64) -> raw:
    """Runs a plan; its result as a tensor, or null with an exception."""
    if making.several != 0:
        out = play(making.plan, args, nargs)
    else:
        out = py_launch(making.plan, args, nargs, FRESH=True)
    if out is None:
        return out
    return new_tensor(making.layout, out)


@native
def py_result(self: raw, args: ptr[raw], nargs: i64) -> raw:
    return make_result(ptr[TensorMaking](ptr[StorageObject](self).ptr), args, nargs)


@functools.cache
def _result() -> Any:
    return fast_def(
        "run",
        py_result.spec().addr,
        "run(storage, offset, ..., number, ...): fresh, and a tensor made around the new storage.",
    )


def running(fresh: Callable[..., Any], out: Layout) -> Callable[..., Tensor] | None:
    """A builtin that runs what is behind `fresh`, a launch or a sequence, and gives its result as a
    tensor of that layout; None where `fresh` is something else."""
    launch, sequence = storage_of(fresh, "fresh"), sequence_of(fresh)
    plan = launch or sequence
    if plan is None:
        return None
    words = [id(plan), id(out), int(launch is None)]
    result: Callable[..., Tensor] = bind(_result(), words_in_memory(words, plan, out))
    return result


def making_of(run: Any) -> Storage | None:
    """The Making behind what `running` gave; None for anything else."""
    making = getattr(run, "__self__", None)
    return making if type(making) is Storage and run.__name__ == "run" else None


# ---- setting up
def why_not() -> str:
    """What of Tensor does not lie as `TensorObject` says; empty when all does."""
    for name, (offset, _) in TensorObject.fields.items():
        if name != "head" and field_offset(Tensor, f"_{name}") != offset:
            return f"Tensor._{name} is elsewhere"
    return ""


def install() -> None:
    """Tells the machine code what it makes."""
    tensor_type.refer_to(Tensor)
    parameter_type.refer_to(Parameter)
