"""Storage: a block of memory that tensors share, and its version.

A Python object whose fields are plain C fields, made, resized and freed by native code.  Its memory
is one of: owned (from the allocator, back to it when the last reference goes), borrowed (somebody
else's, kept alive by `owner`), or none at all (a meta tensor's: only the size).

Invariants: `ptr` is null only for null storages; memory that somebody may be reading (an exported
buffer, a kernel that runs without the interpreter lock) is pinned, and pinned memory never moves;
making a storage runs nobody's code, no finalizer either, unless it fails; a storage can be in a
reference cycle only through `owner`, so only those with one are tracked by the collector.  Storages
that have ended are kept for the next ones, with their type's reference: on the shelf of their size
class the small ones that had memory of their own, and still have it (`state.shelved` are their
bytes), elsewhere the bare objects.  Only who holds the interpreter lock makes or frees a storage,
so that this takes no lock.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.lang.native import (
    Global,
    array,
    atomic_add,
    atomic_sub,
    bind,
    i32,
    i64,
    native,
    ptr,
    raw,
    ref,
    struct,
    u8,
    void,
)
from antorcha.runtime.cpython import (
    BF_GETBUFFER,
    BF_RELEASEBUFFER,
    COLLECTS_AT_ONCE,
    HAS_GIL,
    HEADER,
    LONGLONG,
    NONE,
    OBJECT,
    READONLY,
    SSIZE,
    TP_CLEAR,
    TP_DEALLOC,
    TP_TRAVERSE,
    Py_DecRef,
    Py_IncRef,
    PyBuffer_FillInfo,
    PyGC_Disable,
    PyGC_Enable,
    PyLong_AsLongLong,
    PyObject_ClearWeakRefs,
    PyObject_GC_Del,
    PyObject_GC_New,
    PyObject_GC_Track,
    PyObject_GC_UnTrack,
    complain,
    complaint,
    failed,
    fast_def,
    make_type,
    new_reference,
    revive,
    type_of,
    visit_t,
)
from antorcha.runtime.memory.alloc import (
    CLASSES,
    LARGEST,
    allocate,
    class_bytes,
    clear_shelf,
    limit,
    note_peak,
    out_of_memory,
    release,
    size_class,
    state,
)
from antorcha.runtime.memory.device_memory import (
    DEVICE_SHIFT,
    DEVICE_SIZES,
    MOST_DEVICES,
    DeviceHome,
    PooledBlock,
    asked_python,
    get_ready,
    give_block,
    take_block,
)


@struct
class StorageObject:
    head: array[u8, HEADER]
    ptr: raw
    nbytes: i64
    version: i64
    owner: raw
    flags: i64
    pins: i64  # who may be reading the memory now
    weak: raw
    block: raw  # of a device's memory that `device_memory` keeps


@struct
class FreeObjects:
    """Dead storage objects kept for the next ones, linked by `ptr`."""

    first: raw
    count: i64


OWNED, LOCKED, ELSEWHERE, POOLED = 1, 2, 4, 8
"""Flags: the memory is the allocator's; it must not be written; it is a device's, and its address
is nothing to this process; it goes back to a pool of the device."""
KEEP_OBJECTS = 256
SHELVED_LARGEST = 64 << 10  # bytes of a storage
MOST_SHELVED = 4 << 20  # bytes of all
storage_type = Global("antorcha_storage_type", raw, 1)
spare = Global("antorcha_storage_spare", FreeObjects)
shelf = Global("antorcha_storage_shelf", raw, CLASSES)  # linked by `owner`


def _argument_count(_first: Any, _second: Any, number: int) -> BaseException:
    return ArgumentError(f"new_storage takes one argument, the number of bytes, not {number}")


def _no_memory(_first: Any, _second: Any, number: int) -> BaseException:
    if number < 0:
        return ValueRangeError(f"a storage of {number} bytes: the size is negative")
    return out_of_memory(number)


def _no_data(first: Any, _second: Any, _number: int) -> BaseException:
    if first.flags & ELSEWHERE:
        return BufferError(
            f"a storage of {first.nbytes} bytes in a device's memory cannot be read by this "
            "process; copy the tensor first: .cpu()"
        )
    return BufferError(f"a meta storage ({first.nbytes} bytes) has no data to share")


ARGUMENT_COUNT = complaint(_argument_count)
NO_MEMORY = complaint(_no_memory)
NO_DATA = complaint(_no_data)


# ---- the object's life
@native(noinline=True)
def new_object() -> raw:
    """Collects nothing: whoever makes a storage may hold addresses that a finalizer would free."""
    if not COLLECTS_AT_ONCE:
        return PyObject_GC_New(storage_type[0])
    collects = PyGC_Disable()
    o = PyObject_GC_New(storage_type[0])
    if collects != 0:
        PyGC_Enable()
    return o


@native
def blank_storage() -> raw:
    """A storage object with every field but ptr, nbytes and flags set; null with an exception."""
    o = raw(0)
    if HAS_GIL:
        o = spare.first
    if o is not None:
        spare.first = ptr[StorageObject](o).ptr
        spare.count -= 1
        revive(o)
    else:
        o = new_object()
        if o is None:
            return o
    s = ptr[StorageObject](o)
    s.version = 0
    s.owner = None
    s.pins = 0
    s.weak = None
    return o


@native
def from_shelf(nbytes: i64) -> raw:
    """A storage that has ended, as a new one of that size; null where there is none."""
    if not HAS_GIL or nbytes < 0 or nbytes > SHELVED_LARGEST:
        return None
    c = size_class(nbytes)
    o = shelf[c]
    if o is None:
        return o
    s = ptr[StorageObject](o)
    shelf[c] = s.owner
    state.shelved -= class_bytes(c)
    state.reused += 1
    note_peak()
    revive(o)
    s.nbytes = nbytes
    s.version = 0
    s.owner = None
    return o


@native
def shelve(s: ptr[StorageObject]) -> bool:
    """Keeps a storage that has ended with its memory; False where that is not to be kept."""
    if not HAS_GIL or s.flags != OWNED or s.owner is not None or s.nbytes > SHELVED_LARGEST:
        return False
    c = size_class(s.nbytes)
    more = state.shelved + class_bytes(c)
    if more > MOST_SHELVED or state.cached + more > limit[0]:
        return False
    s.owner = shelf[c]
    shelf[c] = raw(s)
    state.shelved = more
    return True


@native
def py_clear_shelf(_self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    """Ends for good what is on the shelf."""
    for c in range(CLASSES):
        while shelf[c] is not None:
            o = shelf[c]
            s = ptr[StorageObject](o)
            shelf[c] = s.owner
            state.shelved -= class_bytes(c)
            release(s.ptr)
            s.owner = None
            drop_object(o)
    return new_reference(raw(NONE))


@native
def drop_object(o: raw) -> void:
    kind = type_of(o)
    PyObject_GC_Del(o)
    Py_DecRef(kind)


@native(export=True, level="O2")
def make_elsewhere(size: i64) -> raw:
    """`make_storage`, in a device's memory."""
    ready = get_ready(size >> DEVICE_SHIFT & (MOST_DEVICES - 1))
    if ready is None:
        return None
    home = ptr[DeviceHome](ready)
    nbytes = size & ((1 << DEVICE_SHIFT) - 1)
    block = raw(0)
    if home.special == 0:
        block = take_block(home, nbytes)
    if block is None:
        return asked_python(home, nbytes)
    o = blank_storage()
    if o is None:
        give_block(block)
        return None
    s = ptr[StorageObject](o)
    s.ptr = raw(ptr[PooledBlock](block).address)
    s.nbytes = nbytes
    s.flags = ELSEWHERE | POOLED
    s.block = block
    return o


@native(export=True, level="O2")
def make_storage(nbytes: i64) -> raw:
    """A new storage with memory of its own (uninitialised); null with an exception. In a device's
    memory where the size says so (``device_memory.room``)."""
    kept = from_shelf(nbytes)
    if kept is not None:
        return kept
    if nbytes < DEVICE_SIZES:
        return make_elsewhere(nbytes)
    block = allocate(nbytes)
    if block is None:
        complain(NO_MEMORY, NONE, NONE, nbytes)
        return None
    o = blank_storage()
    if o is None:
        release(block)
        return None
    s = ptr[StorageObject](o)
    s.ptr = block
    s.nbytes = nbytes
    s.flags = OWNED
    return o


@native(level="O2")
def storage_dealloc(o: raw) -> void:
    s = ptr[StorageObject](o)
    if s.flags & (OWNED | POOLED) == 0:  # (memory of its own has no owner, nor had it one)
        PyObject_GC_UnTrack(o)
    if s.weak is not None:
        PyObject_ClearWeakRefs(o)
    if shelve(s):
        return
    if s.flags & OWNED != 0:
        release(s.ptr)
    elif s.flags & POOLED != 0:
        give_block(s.block)
    owner = s.owner
    s.owner = None
    if owner is not None:
        Py_DecRef(owner)
    if HAS_GIL and spare.count < KEEP_OBJECTS:
        s.ptr = spare.first
        spare.first = o
        spare.count += 1
    else:
        drop_object(o)


@native
def storage_traverse(o: raw, visit: visit_t, arg: raw) -> i32:
    s = ptr[StorageObject](o)
    r = visit(type_of(o), arg)
    if r == 0 and s.owner is not None:
        r = visit(s.owner, arg)
    return r


@native
def storage_clear(o: raw) -> i32:
    """Breaks a cycle.  The memory may be the owner's, so it is no longer reachable afterwards."""
    s = ptr[StorageObject](o)
    owner = s.owner
    if owner is not None:
        s.owner = None
        s.ptr = None
        s.nbytes = 0
        Py_DecRef(owner)
    return i32(0)


@native
def storage_getbuffer(o: raw, view: raw, flags: i32) -> i32:
    s = ptr[StorageObject](o)
    if (s.ptr is None and s.nbytes > 0) or s.flags & ELSEWHERE != 0:
        ptr[raw](view)[1] = None
        complain(NO_DATA, o, NONE, 0)
        return i32(-1)
    r = PyBuffer_FillInfo(view, o, s.ptr, s.nbytes, i32((s.flags & LOCKED) >> 1), flags)
    if r == 0:
        atomic_add(ref(s.pins), 1)
    return r


@native
def storage_releasebuffer(o: raw, _view: raw) -> void:
    s = ptr[StorageObject](o)
    atomic_sub(ref(s.pins), 1)


# ---- builtins
@native
def py_new_storage(_self: raw, args: ptr[raw], nargs: i64) -> raw:
    if nargs != 1:
        complain(ARGUMENT_COUNT, NONE, NONE, nargs)
        return None
    nbytes = PyLong_AsLongLong(args[0])
    if nbytes == -1 and failed():
        return None
    return make_storage(nbytes)


@native
def py_wrap(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(address, nbytes, owner, flags), checked by `wrap`."""
    address = PyLong_AsLongLong(args[0])
    nbytes = PyLong_AsLongLong(args[1])
    flags = PyLong_AsLongLong(args[3])
    if failed():
        return None
    o = blank_storage()
    if o is None:
        return o
    s = ptr[StorageObject](o)
    s.ptr = raw(address)
    s.nbytes = nbytes
    s.flags = flags
    if args[2] != raw(NONE):
        Py_IncRef(args[2])
        s.owner = args[2]
        PyObject_GC_Track(o)
    return o


def _make_type() -> type:
    offsets = {name: field[0] for name, field in StorageObject.fields.items()}
    members = [
        ("ptr", LONGLONG, offsets["ptr"], READONLY, "address of the first byte; 0 for meta"),
        ("nbytes", LONGLONG, offsets["nbytes"], READONLY, "size in bytes"),
        ("version", LONGLONG, offsets["version"], 0, "how many writes there have been"),
        ("owner", OBJECT, offsets["owner"], READONLY, "what keeps borrowed memory alive, or None"),
        ("flags", LONGLONG, offsets["flags"], READONLY, "1: memory of its own; 2: read-only"),
        ("_block", LONGLONG, offsets["block"], READONLY, ""),
        ("__weaklistoffset__", SSIZE, offsets["weak"], READONLY, ""),
    ]
    slots = [
        (TP_DEALLOC, storage_dealloc.spec().addr),
        (TP_TRAVERSE, storage_traverse.spec().addr),
        (TP_CLEAR, storage_clear.spec().addr),
        (BF_GETBUFFER, storage_getbuffer.spec().addr),
        (BF_RELEASEBUFFER, storage_releasebuffer.spec().addr),
    ]
    doc = "Memory that tensors share: ptr, nbytes, version, owner.  Made by new_storage and wrap."
    result = make_type("antorcha.Storage", StorageObject.size, members, slots, doc)
    storage_type.refer_to(result)
    return result


if TYPE_CHECKING:

    class Storage:
        """Memory that tensors share.  Made by new_storage, wrap and null_storage only."""

        @property
        def ptr(self) -> int:
            """Address of the first byte; 0 for a meta tensor's storage."""

        @property
        def nbytes(self) -> int:
            """Size in bytes."""

        @property
        def owner(self) -> Any:
            """What keeps borrowed memory alive, or None."""

        @property
        def flags(self) -> int:
            """1: memory of its own; 2: read-only."""

        version: int

        def __buffer__(self, flags: int, /) -> memoryview:
            """The bytes, for as long as somebody looks at them."""

else:
    Storage = _make_type()

new_storage: Callable[[int], Storage] = bind(
    fast_def("new_storage", py_new_storage.spec().addr, "A storage of nbytes, uninitialised.")
)
_wrap = bind(fast_def("wrap", py_wrap.spec().addr))
clear_shelf.append(bind(fast_def("clear_shelf", py_clear_shelf.spec().addr)))


def checked_size(op: str, nbytes: int) -> int:
    """A number of bytes; raises for what is none."""
    if type(nbytes) is int and 0 <= nbytes < LARGEST:
        return nbytes
    nbytes = operator.index(nbytes)
    if nbytes < 0:
        raise ValueRangeError(f"{op}: the size, {nbytes} bytes, is negative")
    if nbytes >= LARGEST:
        raise out_of_memory(nbytes)
    return nbytes


def wrap(address: int, nbytes: int, owner: object, readonly: bool = False) -> Storage:
    """A storage over somebody else's memory, which `owner` keeps alive."""
    nbytes = checked_size("wrap", nbytes)
    address = operator.index(address)
    if address < 0 or (address == 0 and nbytes):
        raise ValueRangeError(f"wrap: {address} is not an address of {nbytes} bytes")
    result: Storage = _wrap(address, nbytes, owner, LOCKED if readonly else 0)
    return result


def wrap_elsewhere(address: int, nbytes: int, owner: object) -> Storage:
    """A storage over memory of a device, which `owner` keeps; no host code can look at it."""
    result: Storage = _wrap(address, checked_size("wrap", nbytes), owner, ELSEWHERE)
    return result


def null_storage(nbytes: int) -> Storage:
    """A storage with a size and no memory, for meta tensors."""
    result: Storage = _wrap(0, checked_size("null_storage", nbytes), None, 0)
    return result


def alias(storage: Storage) -> Storage:
    """Another storage over the same memory, with a version of its own.

    The memory stays, and stays where it is, as long as the alias lives.
    """
    if not storage.ptr:
        return null_storage(storage.nbytes)
    if storage.flags & ELSEWHERE:
        return wrap_elsewhere(storage.ptr, storage.nbytes, storage)
    pinned = memoryview(storage)  # before the address is read
    result: Storage = _wrap(storage.ptr, storage.nbytes, pinned, storage.flags & LOCKED)
    return result


rooms: dict[Any, int] = {new_storage: 0}
"""What is to be added to a number of bytes for `make_storage`, by the function that Python calls to
allocate: that of each device which has its memory here (``device_memory.room``)."""


def copy_bytes(target: Storage, source: Storage) -> None:
    """Copies the memory of a storage to one of the same size."""
    np.frombuffer(memoryview(target), np.uint8)[:] = np.frombuffer(memoryview(source), np.uint8)


def is_owned(storage: Storage) -> bool:
    """Is the memory the allocator's (not borrowed, not meta)?"""
    return bool(storage.flags & OWNED)


def is_readonly(storage: Storage) -> bool:
    """Must the memory not be written?"""
    return bool(storage.flags & LOCKED)


def base_of(storage: Storage) -> Storage:
    """The storage that this one is a part of, or itself."""
    while isinstance(storage.owner, Storage):
        storage = storage.owner
    return storage


def as_numpy(
    storage: Storage,
    byte_offset: int,
    shape: tuple[int, ...],
    byte_strides: tuple[int, ...],
    np_dtype: Any,
) -> np.ndarray[Any, Any]:
    """An array over the storage's memory; it keeps the storage, and the memory in its place.

    NumPy checks that the array lies inside the storage (ValueError).
    """
    bytes_of = np.frombuffer(memoryview(storage), np.uint8)  # (it holds the memoryview itself)
    return np.ndarray(shape, np_dtype, bytes_of, byte_offset, byte_strides)


def part(storage: Storage, start: int, nbytes: int) -> Storage:
    """A storage over some bytes of another, whose memory stays where it is meanwhile."""
    if storage.flags & ELSEWHERE:
        return wrap_elsewhere(storage.ptr + start, nbytes, storage)
    pinned = memoryview(storage)  # before the address is read
    address = storage.ptr + start if nbytes else 0
    return wrap(address, nbytes, pinned, is_readonly(storage))
