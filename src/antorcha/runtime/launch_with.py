"""Launches with something around them: an object made of the output, a write that is counted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from antorcha.lang.native import bind, i64, local, native, ptr, raw, ref, struct
from antorcha.runtime.cpython import (
    FALSE,
    TRUE,
    Py_DecRef,
    Py_IncRef,
    fast_def,
    type_of,
)
from antorcha.runtime.launch import py_launch, storage_of
from antorcha.runtime.memory.storage import Storage, StorageObject, storage_type
from antorcha.runtime.objects import NATIVE, Recipe, build, maker, recipe_words, words_in_memory


@struct
class StorageMaking:
    """What `run` is bound to: a plan, and the recipe of the object that holds its output."""

    plan: raw  # the launch's own storage
    head: Recipe


@native
def py_run(self: raw, args: ptr[raw], nargs: i64) -> raw:
    making = ptr[StorageMaking](ptr[StorageObject](self).ptr)
    out = local(raw)
    out[0] = py_launch(making.plan, args, nargs, FRESH=True)
    if out[0] is None:
        return None
    result = build(ref(making.head), out)
    Py_DecRef(out[0])
    return result


WRITE_ARGS = 6


@native
def py_write(self: raw, args: ptr[raw], nargs: i64) -> raw:
    """into, over the first operand, whose version goes up. False, and nothing done, where that
    takes thought: another operand in the same memory, an inference tensor."""
    storage = args[0]
    if nargs < 2 or nargs > WRITE_ARGS or type_of(storage) != storage_type[0]:
        return py_launch(self, args, nargs, FRESH=False)  # complains
    s = ptr[StorageObject](storage)
    simple = s.version >= 0
    for k in range(2, nargs):
        o = args[k]
        if type_of(o) == storage_type[0]:
            simple = simple and s.ptr != ptr[StorageObject](o).ptr
    if not simple:
        Py_IncRef(FALSE)
        return raw(FALSE)
    given = local(raw, WRITE_ARGS + 2)
    given[0] = storage
    given[1] = args[1]
    for k in range(nargs):
        given[k + 2] = args[k]
    done = py_launch(self, given, nargs + 2, FRESH=False)
    if done is None:
        return done
    Py_DecRef(done)
    s.version += 1
    Py_IncRef(TRUE)
    return raw(TRUE)


@functools.cache
def _write() -> Any:
    return fast_def(
        "write",
        py_write.spec().addr,
        "write(storage, offset, ..): into(storage, offset, storage, offset, ..), and counts the "
        "version; False, and nothing done, where an operand shares the memory.",
    )


@functools.cache
def _launch() -> Any:
    return fast_def(
        "launch",
        py_run.spec().addr,
        "launch(storage, offset, ..., number, ...): fresh, and an object made around the new "
        "storage.",
    )


def running(
    fresh: Callable[..., Any], cls: type, field: str, constants: Mapping[str, Any]
) -> Callable[..., Any]:
    """`fresh`, with its storage put into the slot ``field`` of a new ``cls``; ``constants`` are the
    other slots' values. One native call, where `fresh` is a launch's own."""
    plan = storage_of(fresh, "fresh")
    if NATIVE and plan is not None:
        words = recipe_words(cls, (field,), constants)
        memory = words_in_memory([id(plan), *words], plan, cls, *constants.values())
        result: Callable[..., Any] = bind(_launch(), memory)
        return result
    make = maker(cls, (field,), constants)
    return lambda *flat: make(fresh(*flat))


def writing(into: Callable[..., None]) -> Callable[..., bool]:
    """`into` over its own first operand: see `_write`."""
    plan = storage_of(into, "into")
    if plan is not None:
        result: Callable[..., bool] = bind(_write(), plan)
        return result

    def write(storage: Storage, offset: int, *rest: Any) -> bool:
        others = [each for each in rest if type(each) is Storage]
        if storage.version < 0 or storage in others or storage.ptr in [o.ptr for o in others]:
            return False
        into(storage, offset, storage, offset, *rest)
        storage.version += 1
        return True

    return write
