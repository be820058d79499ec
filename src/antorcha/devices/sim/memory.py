"""The simulator's memory: addresses that mean nothing to the host, and checks of every access.

An address is ``TAG`` plus an offset in an arena; the tag makes it one that no process has, so that
host code which takes it for its own stops at once, and device code cannot leave the arena by
accident. ``reach`` turns an address into where the bytes lie. For each 16 bytes of the arena a
byte says how many of them, from the first, belong to an allocation.

Addresses without the tag are the kernel's own: its frame, shared memory, tables, a launch's words.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from antorcha.devices.sim import streams
from antorcha.lang.native import Global, array, i64, native, ptr, raw, struct, u8, void
from antorcha.runtime.memory.alloc import OutOfMemory
from antorcha.runtime.memory.storage import Storage, base_of, wrap

TAG = 1 << 62
ARENA = 1 << 34  # bytes of address space wanted; pages are taken when they are written
LEAST_ARENA = 1 << 20
GRAIN = 16
ALIGNED = 256  # as a GPU's allocator gives it
GAP = 64  # bytes between allocations that belong to none
POISON = 0xFF  # NaN as a float, -1 as an integer
NOWHERE_BYTES = 4096
STATE_WORDS = 11  # of `ArenaState`, before `nowhere`


@struct
class Access:
    """A thread's access to memory; ``nbytes`` is negative where it wrote."""

    address: i64
    nbytes: i64
    block: i64
    thread: i64


@struct
class ArenaState:
    """Where the arena is; the first access that was outside of every allocation; and, while
    somebody looks, all accesses (``room``: as many as there is room for)."""

    base: raw
    shadow: ptr[u8]
    fault_address: i64
    fault_bytes: i64
    faults: i64
    accesses: ptr[Access]
    room: i64
    count: i64
    block: i64  # who runs now
    thread: i64
    limit: i64  # bytes of address space that there are
    nowhere: array[u8, NOWHERE_BYTES]  # what such an access gets


arena = Global("antorcha_sim_arena", ArenaState)


@native(noinline=True)
def note(address: i64, nbytes: i64) -> void:
    """Notes an access; what there is no room for is counted."""
    k = arena.count
    if k < arena.room:
        each = arena.accesses + k
        each.address = address
        each.nbytes = nbytes
        each.block = arena.block
        each.thread = arena.thread
    arena.count = k + 1


@native(export=True)
def reach(p: raw, nbytes: i64) -> raw:
    """Where the bytes lie that p names: so many are read, or, below 0, written."""
    address = i64(p)
    if address < TAG:
        return p
    if arena.room > 0:
        note(address, nbytes)
    offset = address - TAG
    size = abs(nbytes)
    ok = offset + size <= arena.limit
    if ok:
        grain = offset >> 4
        start = offset & 15
        end = start + size
        while ok and end > 0:
            ok = i64(arena.shadow[grain]) >= min(end, i64(GRAIN)) and start < GRAIN
            grain += 1
            end -= GRAIN
            start = i64(0)
    if ok:
        return arena.base + offset
    if arena.faults == 0:
        arena.fault_address = address
        arena.fault_bytes = size
    arena.faults += 1
    return raw(arena.nowhere)


class SimulatedMemory:
    """The arena's allocator: freed blocks are kept by size and given again, poisoned."""

    def __init__(self) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self.limit = ARENA
        while True:
            try:
                self._room = mmap.mmap(-1, self.limit, flags=flags)
                self._marks = mmap.mmap(-1, self.limit // GRAIN, flags=flags)
                break
            except OSError:  # a process whose address space is bounded
                self.limit //= 2
                if self.limit < LEAST_ARENA:
                    raise OutOfMemory("sim: there is no address space for its memory") from None
        self.data = np.frombuffer(self._room, np.uint8)
        self.shadow = np.frombuffer(self._marks, np.uint8)
        self.state = arena.bytes[: STATE_WORDS * 8].view(np.int64)
        self.state[:2] = self.data.ctypes.data, self.shadow.ctypes.data
        self.state[10] = self.limit
        self.top = ALIGNED
        self.live: dict[int, int] = {}  # address -> bytes
        self.free: dict[int, list[int]] = {}  # room in bytes -> offsets
        self.used = self.peak = 0
        self.lock = threading.RLock()

    def allocate(self, nbytes: int) -> int:
        """The address of fresh memory, poisoned."""
        room = -(-(nbytes + GAP) // ALIGNED) * ALIGNED
        with self.lock:
            kept = self.free.get(room)
            if kept:
                offset = kept.pop()
            else:
                offset = self.top
                if offset + room > self.limit:
                    raise OutOfMemory(
                        f"sim: {nbytes} bytes do not fit; {self.used} of {self.limit} are in use"
                    )
                self.top += room
            self.data[offset : offset + nbytes] = POISON
            whole, rest = divmod(nbytes, GRAIN)
            first = offset // GRAIN
            self.shadow[first : first + whole] = GRAIN
            if rest:
                self.shadow[first + whole] = rest
            self.live[TAG + offset] = nbytes
            self.used += nbytes
            self.peak = max(self.peak, self.used)
            return TAG + offset

    def release(self, address: int) -> None:
        """Takes memory back."""
        with self.lock:
            nbytes = self.live.pop(address)
            offset = address - TAG
            first = offset // GRAIN
            self.shadow[first : first + -(-nbytes // GRAIN)] = 0
            self.used -= nbytes
            self.free.setdefault(-(-(nbytes + GAP) // ALIGNED) * ALIGNED, []).append(offset)

    def bytes_at(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        """The memory itself, for copies from and to the host."""
        offset = address - TAG
        if offset < 0 or offset + nbytes > self.limit:
            raise MemoryError(f"sim: {address:#x} is no address of the simulator's")
        return self.data[offset : offset + nbytes]

    def take_fault(self) -> tuple[int, int, int] | None:
        """How many accesses were outside of all allocations since last asked: their number, the
        first one's address and bytes."""
        address, nbytes, count = map(int, self.state[2:5])
        if not count:
            return None
        self.state[4] = 0
        return count, address, nbytes

    @contextlib.contextmanager
    def noting(self, room: np.ndarray[Any, Any]) -> Iterator[None]:
        """Notes accesses in an array of `Access` meanwhile; ``state[7]`` counts them."""
        self.state[5:8] = room.ctypes.data, len(room), 0
        try:
            yield
        finally:
            self.state[6] = 0

    def allocation_of(self, address: int) -> tuple[int, int]:
        """Where the allocation that an address lies in begins, and its bytes; (0, 0) for none."""
        with self.lock:
            starts = [a for a, nbytes in self.live.items() if a <= address < a + max(nbytes, 1)]
            return (starts[0], self.live[starts[0]]) if starts else (0, 0)

    def around(self, address: int) -> str:
        """What lies at an address, in words."""
        with self.lock:
            below = [a for a in self.live if a <= address]
            if not below:
                return "before all allocations"
            start = max(below)
            past = address - start - self.live[start]
            where = "after" if past >= 0 else "inside"
            return f"{abs(past)} bytes {where} the end of an allocation of {self.live[start]} bytes"


memory = SimulatedMemory()


class DeviceBlock:
    """Owns an allocation: it is given back when the last storage over it goes, in the order of the
    stream that was current when it was taken. ``shared``: all streams read it."""

    __slots__ = ("__weakref__", "address", "others", "queue")

    def __init__(self, nbytes: int, shared: bool = False) -> None:
        self.address, self.queue = memory.allocate(nbytes), streams.current()
        self.others: list[streams.WorkQueue] | None = None if shared else []

    def used_by(self, queue: streams.WorkQueue) -> None:
        """Another stream reads or writes it: what it was given is done before the block goes."""
        if self.others is not None and queue is not self.queue:
            self.others.append(queue)

    def __del__(self) -> None:
        address = self.address
        streams.release_after(lambda: memory.release(address), self.queue, self.others)


# ---- memory of the host that copies do not wait for
class PinnedRoom:
    """Owns memory of the host that the simulated GPU copies from, and to, when it comes to it."""

    def __init__(self, nbytes: int) -> None:
        self.bytes = np.full(nbytes, POISON, np.uint8)


def new_pinned(nbytes: int) -> Storage:
    """A storage in such memory, which nobody has written."""
    room = PinnedRoom(nbytes)
    return wrap(room.bytes.ctypes.data, nbytes, room)


def is_pinned(storage: Storage) -> bool:
    """Is it such memory, or a part of it?"""
    return isinstance(base_of(storage).owner, PinnedRoom)
