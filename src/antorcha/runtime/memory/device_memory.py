"""Memory of devices, kept for the next tensor: what ``alloc`` is for the host.

A device whose work runs in streams (a GPU) has a home here, and each of its streams a pool. A block
belongs to the pool of the stream that was current when it was taken. When it is given back, the
stream may still be at work on it; what that stream is given next comes after, so the pool's next
tensor may have it at once. Small blocks are kept by size class; large ones go to the device's own
allocator, which hands them out in the order of a stream, too.

A size in a device's memory is written as one word, as ``room`` gives it: the bytes, the device's
number from bit 48 on, and the sign, which no number of bytes has. So what allocates for the host
allocates for devices.

Invariants: everything here is touched only under the interpreter lock. `now` names the thread and
the home for which the device's driver has been made ready, and whose `pool` is that of the thread's
current stream; whoever changes one of the three sets `now.thread` to 0, and the next who needs it
asks `switch`. A home stays for good; it is `dead` once its device is gone, as in a forked child.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from antorcha.lang.native import (
    Global,
    array,
    bind,
    func,
    i32,
    i64,
    inline,
    local,
    make_immortal,
    native,
    ptr,
    raw,
    ref,
    struct,
    u32,
    u64,
    void,
)
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    PyThreadState_Get,
    PyThreadState_GetID,
    failed,
    fast_def,
    new_reference,
)
from antorcha.runtime.memory.alloc import aligned_alloc, class_bytes, size_class

DEVICE_SHIFT = 48
MOST_DEVICES = 64
DEVICE_SIZES = -(1 << 62)
"""Sizes below are in a device's memory."""
GRAIN = 512
"""Bytes that blocks are counted in."""
SMALL_ROOM = 1 << 20
"""The largest block, in bytes, that is kept here."""
SMALL_CLASSES = 57
REMEMBERED = 4
"""Launches of a stream that errors name."""

take_t = func[i32, ptr[i64], i64, raw]
give_t = func[i32, i64, raw]
launch_t = func[i32, raw, u32, u32, u32, u32, u32, u32, u32, raw, ptr[raw], raw]
send_t = func[i32, i64, raw, i64, raw]
fetch_t = func[i32, raw, i64, i64, raw]
wait_t = func[i32, raw]


@struct
class MemoryCounts:
    """What tensors hold, and held at most; all that was ever taken and given back."""

    current: i64
    peak: i64
    allocated: i64
    freed: i64


@struct
class ReportPage:
    """Words in a device's memory for what kernels find wrong in data, one for each launch."""

    address: i64
    copy: ptr[i64]  # that the host reads
    used: i64
    room: i64
    reports: ptr[i64]  # which launch each word is for
    codes: ptr[raw]  # of the program that launched it; null: nobody knows
    lines: ptr[i64]  # where in that


@struct
class DevicePool:
    """A stream's memory."""

    home: raw
    stream: raw  # the driver's handle
    page: ptr[ReportPage]  # null: none yet
    captured: i64  # 1 while a graph is captured from it
    replayed: i64  # 1 where graphs may have reported something since it was last waited for
    launches: i64
    last: array[i64, REMEMBERED]  # numbers of the launches' names
    kept: array[raw, SMALL_CLASSES]


@struct
class PooledBlock:
    """An allocation; ``room``: the bytes it counts for."""

    next: raw
    pool: raw
    address: i64
    room: i64
    size_class: i64  # -1: a large one


@struct
class DeviceHome:
    number: i64
    pool: raw  # of the current stream; see `now`
    take: take_t
    give: give_t
    launch: launch_t
    send: send_t  # a copy from the host, in a stream's order
    fetch: fetch_t  # a copy to the host, in a stream's order
    wait: wait_t  # until a stream's work is done
    window: raw  # pinned memory of the host for small copies; null while somebody uses it
    special: i64  # reasons why Python allocates: a capture, a limit
    dead: i64
    late: raw  # large blocks that wait for the driver
    bytes: MemoryCounts
    blocks: MemoryCounts


@struct
class ReadyDevice:
    thread: u64  # 0: nobody
    home: raw


homes = Global("antorcha_device_homes", raw, MOST_DEVICES)
now = Global("antorcha_device_now", ReadyDevice)
spare_blocks = Global("antorcha_device_blocks", raw)
python_switch = Global("antorcha_device_switch", raw)
python_take = Global("antorcha_device_take", raw)


def room(nbytes: int, number: int) -> int:
    """The word of a size in the memory of device ``number``."""
    return -(1 << 63) + (number << DEVICE_SHIFT) + nbytes


@inline
def running_thread():
    return PyThreadState_GetID(PyThreadState_Get())


@native
def is_ready(home: ptr[DeviceHome]) -> bool:
    """May the running thread use the device at once?"""
    return now.home == raw(home) and now.thread == running_thread()


@native(export=True)
def get_ready(number: i64) -> raw:
    """The home of a device, which is ready for the running thread; null with an exception. May run
    Python."""
    while not is_ready(ptr[DeviceHome](homes[number])):  # (another thread may run meanwhile)
        args = local(raw)
        args[0] = PyLong_FromLongLong(number)
        if args[0] is None:
            return None
        done = PyObject_Vectorcall(python_switch[0], args, 1, None)
        Py_DecRef(args[0])
        if done is None:
            return None
        Py_DecRef(done)
    return homes[number]


# ---- counting
@inline
def count_in(counts, amount):
    counts.current += amount
    counts.allocated += amount
    counts.peak = max(counts.peak, counts.current)


@inline
def count_out(counts, amount):
    counts.current -= amount
    counts.freed += amount


# ---- blocks
@native
def new_block() -> raw:
    """A record of a block, or null."""
    o = spare_blocks[0]
    if o is not None:
        spare_blocks[0] = ptr[PooledBlock](o).next
        return o
    return aligned_alloc(64, 64)  # (not by `allocate`, which counts what tensors hold)


@native
def spare(block: ptr[PooledBlock]) -> void:
    block.next = spare_blocks[0]
    spare_blocks[0] = raw(block)


@native
def give_late(home: ptr[DeviceHome]) -> void:
    """Gives large blocks back that had to wait. The device is ready."""
    while home.late is not None and home.special == 0:
        block = ptr[PooledBlock](home.late)
        home.late = block.next
        home.give(block.address, ptr[DevicePool](block.pool).stream)
        spare(block)


@native(export=True, level="O2")
def take_block(home: ptr[DeviceHome], nbytes: i64) -> raw:
    """A block of the current stream; null where the driver has none. The device is ready, and
    nothing special about it."""
    pool = ptr[DevicePool](home.pool)
    count = (max(nbytes, i64(1)) + GRAIN - 1) & -GRAIN
    c = i64(-1)
    size = count
    found = raw(0)
    if count <= SMALL_ROOM:
        c = size_class(count)
        size = class_bytes(c)
        found = pool.kept[c]
    elif home.late is not None:
        give_late(home)
    if found is not None:
        pool.kept[c] = ptr[PooledBlock](found).next
    else:
        found = new_block()
        if found is None:
            return None
        fresh = ptr[PooledBlock](found)
        fresh.pool = raw(pool)
        fresh.size_class = c
        if home.take(ref(fresh.address), size, pool.stream) != 0:
            spare(fresh)
            return None
    block = ptr[PooledBlock](found)
    block.room = count
    count_in(home.bytes, count)
    count_in(home.blocks, 1)
    return found


@native(export=True, level="O2")
def give_block(o: raw) -> void:
    """Takes a block back, in its stream's order."""
    block = ptr[PooledBlock](o)
    pool = ptr[DevicePool](block.pool)
    home = ptr[DeviceHome](pool.home)
    if home.dead != 0:
        spare(block)
        return
    count_out(home.bytes, block.room)
    count_out(home.blocks, 1)
    if block.size_class >= 0:
        block.next = pool.kept[block.size_class]
        pool.kept[block.size_class] = o
    elif home.special == 0 and is_ready(home) and not failed():  # (a driver may be in Python)
        home.give(block.address, pool.stream)
        spare(block)
    else:
        block.next = home.late
        home.late = o


@native(export=True)
def asked_python(home: ptr[DeviceHome], nbytes: i64) -> raw:
    """A storage that Python allocates: in a capture, under a limit, or after a failure, of which it
    tells; null with an exception."""
    args = local(raw, 2)
    args[0] = PyLong_FromLongLong(home.number)
    args[1] = PyLong_FromLongLong(nbytes)
    result = raw(0)
    if args[0] is not None and args[1] is not None:
        result = PyObject_Vectorcall(python_take[0], args, 2, None)
    for k in range(2):
        if args[k] is not None:
            Py_DecRef(args[k])
    return result


@native
def note_launch(pool: ptr[DevicePool], name: i64) -> void:
    """Notes the number of the name of what was launched, for errors."""
    pool.last[pool.launches % REMEMBERED] = name
    pool.launches += 1


# ---- for Python
@native
def py_enter(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(address of a home, of its pool): the driver is ready for this thread."""
    home = raw(PyLong_AsLongLong(args[0]))
    ptr[DeviceHome](home).pool = raw(PyLong_AsLongLong(args[1]))
    now.home = home
    now.thread = running_thread()
    return new_reference(raw(NONE))


@native
def py_empty_pool(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(address of a pool): gives what it keeps back to the driver, which is ready."""
    pool = ptr[DevicePool](raw(PyLong_AsLongLong(args[0])))
    home = ptr[DeviceHome](pool.home)
    for c in range(SMALL_CLASSES):
        while pool.kept[c] is not None:
            block = ptr[PooledBlock](pool.kept[c])
            pool.kept[c] = block.next
            home.give(block.address, pool.stream)
            spare(block)
    give_late(home)
    return new_reference(raw(NONE))


@native
def py_give(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(address of a block): see `give_block`."""
    give_block(raw(PyLong_AsLongLong(args[0])))
    return new_reference(raw(NONE))


@functools.cache
def _builtin(name: str) -> Callable[..., None]:
    function = {"enter": py_enter, "empty_pool": py_empty_pool, "give": py_give}[name]
    result: Callable[..., None] = bind(fast_def(name, function.spec().addr))
    return result


def enter(home: int, pool: int) -> None:
    """The driver is ready for this thread, whose current stream's pool it is (addresses)."""
    _builtin("enter")(home, pool)


def empty_pool(pool: int) -> None:
    """Gives what a pool keeps back to the driver, which is ready."""
    _builtin("empty_pool")(pool)


def give(block: int) -> None:
    """Gives a block back that a storage had."""
    _builtin("give")(block)


def leave() -> None:
    """The current thread, stream or device is another: who needs one asks again."""
    now.bytes[:] = 0


class ForeignRecord:
    """A record of a native type, whose address machine code has: a new one, which stays for good,
    with every word 0, or the one at an address."""

    def __init__(self, kind: Any, address: int = 0) -> None:
        self.kind, self.address = kind, address
        if not address:
            self.address = ctypes.addressof(make_immortal(ctypes.create_string_buffer(kind.size)))

    def word(self, name: str, at: int = 0) -> ctypes.c_int64:
        """A field's word, or one of several, to be read and written as ``.value``."""
        start = self.address + self.kind.fields[name][0] + 8 * at
        return ctypes.c_int64.from_address(start)


def install(switch: Callable[[int], None], take: Callable[[int, int], Any]) -> None:
    """Tells the machine code who makes a device ready, and who allocates where it cannot."""
    python_switch.refer_to(switch)
    python_take.refer_to(take)


def put_home(number: int, address: int) -> None:
    """A device's home, from now on; 0: it has none."""
    homes.bytes.view("int64")[number] = address
    leave()
