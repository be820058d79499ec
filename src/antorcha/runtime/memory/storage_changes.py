"""What changes a storage's memory: its size, its place, who gives it back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from antorcha.errors import ArgumentError
from antorcha.lang.native import bind, i64, memcpy, native, ptr, raw, void
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyLong_AsLongLong,
    PyObject_GC_Track,
    PyObject_GC_UnTrack,
    complain,
    complaint,
    failed,
    fast_def,
    new_reference,
)
from antorcha.runtime.memory.alloc import allocate, class_bytes, release, size_class
from antorcha.runtime.memory.storage import (
    ELSEWHERE,
    NO_MEMORY,
    OWNED,
    POOLED,
    Storage,
    StorageObject,
    checked_size,
)


def _cannot_resize(first: Any, _second: Any, number: int) -> BaseException:
    why = (
        "its memory is in use by a NumPy array, a memoryview or a running kernel"
        if first.flags & OWNED
        else "its memory belongs to another object (NumPy array, file, buffer); clone() it first"
    )
    return BufferError(f"a storage of {first.nbytes} bytes cannot become {number} bytes: {why}")


def _cannot_move(first: Any, _second: Any, _number: int) -> BaseException:
    return BufferError(
        f"a storage of {first.nbytes} bytes cannot move to shared memory: its memory is in use by "
        "a NumPy array, a memoryview, a tensor's .data or a running kernel"
    )


CANNOT_RESIZE = complaint(_cannot_resize)
CANNOT_MOVE = complaint(_cannot_move)


@native
def py_resize(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(storage, nbytes), checked by `resize`."""
    o = args[0]
    s = ptr[StorageObject](o)
    nbytes = PyLong_AsLongLong(args[1])
    if failed():
        return None
    Py_IncRef(NONE)
    if nbytes == s.nbytes or (s.ptr is None and s.owner is None):
        s.nbytes = nbytes
        return raw(NONE)
    if s.flags & OWNED == 0 or s.pins != 0:
        complain(CANNOT_RESIZE, o, NONE, nbytes)
    elif class_bytes(size_class(nbytes)) == class_bytes(size_class(s.nbytes)):
        s.nbytes = nbytes
        return raw(NONE)
    else:
        block = allocate(nbytes)
        if block is not None:
            memcpy(block, s.ptr, min(nbytes, s.nbytes))
            release(s.ptr)
            s.ptr = block
            s.nbytes = nbytes
            return raw(NONE)
        complain(NO_MEMORY, NONE, NONE, nbytes)
    Py_DecRef(NONE)
    return None


@native
def track(s: ptr[StorageObject]) -> void:
    """Tells the collector of a storage if it has an owner, and only then."""
    PyObject_GC_UnTrack(raw(s))
    if s.owner is not None:
        PyObject_GC_Track(raw(s))


@native
def swap(s: ptr[StorageObject], other: ptr[StorageObject]) -> void:
    """Two storages take over each other's memory; versions stay."""
    address = s.ptr
    nbytes = s.nbytes
    flags = s.flags
    owner = s.owner
    block = s.block
    s.ptr = other.ptr
    s.nbytes = other.nbytes
    s.flags = other.flags
    s.owner = other.owner
    s.block = other.block
    other.ptr = address
    other.nbytes = nbytes
    other.flags = flags
    other.owner = owner
    other.block = block
    track(s)
    track(other)


@native
def py_move(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(storage, home, pins), checked by `move`: they exchange their memory."""
    s = ptr[StorageObject](args[0])
    home = ptr[StorageObject](args[1])
    pins = PyLong_AsLongLong(args[2])
    if failed():
        return None
    if s.pins > pins or s.nbytes != home.nbytes:
        complain(CANNOT_MOVE, args[0], NONE, 0)
        return None
    memcpy(home.ptr, s.ptr, s.nbytes)
    swap(s, home)
    return new_reference(raw(NONE))


@native
def py_exchange(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(storage, other), checked by `exchange`."""
    swap(ptr[StorageObject](args[0]), ptr[StorageObject](args[1]))
    return new_reference(raw(NONE))


@native
def py_hand_over(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(storage, owner), checked by `hand_over`."""
    s = ptr[StorageObject](args[0])
    s.flags = s.flags & ~POOLED
    s.owner = new_reference(args[1])
    PyObject_GC_Track(args[0])
    return new_reference(raw(NONE))


# ---- for Python
@functools.cache
def _resize() -> Any:
    return bind(fast_def("resize", py_resize.spec().addr))


@functools.cache
def _move() -> Any:
    return bind(fast_def("move", py_move.spec().addr))


@functools.cache
def _exchange() -> Any:
    return bind(fast_def("exchange", py_exchange.spec().addr))


@functools.cache
def _hand_over() -> Any:
    return bind(fast_def("hand_over", py_hand_over.spec().addr))


def resize(storage: Storage, nbytes: int) -> None:
    """Changes the size in place; the contents stay, what is new is uninitialised."""
    if type(storage) is not Storage:
        raise ArgumentError(f"resize: a Storage is needed, not {type(storage).__name__}")
    _resize()(storage, checked_size("resize", nbytes))


def move(storage: Storage, home: Storage, pins: int = 0) -> None:
    """Moves the contents into another storage's memory, which becomes this storage's own.

    `home` takes over the old memory. BufferError if more than `pins` readers may be looking at it.
    """
    if type(storage) is not Storage or type(home) is not Storage or not home.ptr:
        raise ArgumentError("move: two storages with memory are needed")
    _move()(storage, home, pins)


def exchange(storage: Storage, other: Storage) -> None:
    """Two storages in a device's memory take over each other's; versions stay."""
    if not (storage.flags & other.flags & ELSEWHERE):
        raise ArgumentError("exchange: two storages in a device's memory are needed")
    _exchange()(storage, other)


def hand_over(storage: Storage, make_owner: Callable[[int], Any]) -> None:
    """A storage whose memory would go back to a device's pool has an owner from now on, which sees
    to that: `make_owner` gets the address of the block (``device_memory.PooledBlock``)."""
    if storage.flags & POOLED:
        _hand_over()(storage, make_owner(storage._block))  # type: ignore[attr-defined]
