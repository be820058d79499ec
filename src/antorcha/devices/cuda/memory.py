"""Memory of a GPU, taken and given back in the order of a stream, and pinned memory of the host.

A block belongs to the stream that was current when it was taken. It goes back in that stream's
order, after all that the stream was given before, so nothing is waited for; the driver's pool keeps
it for the next. What another stream reads must be told (``Tensor.record_stream``).
"""

from __future__ import annotations

import bisect
import ctypes
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from antorcha.core.forks import held_over_forks
from antorcha.core.lazy import lazy
from antorcha.devices.cuda import driver
from antorcha.devices.cuda.streams import EventHandle, StreamHandle
from antorcha.errors import OutOfMemoryError
from antorcha.runtime.memory.device_copies import note_pinned
from antorcha.runtime.memory.device_memory import (
    GRAIN,
    ForeignRecord,
    MemoryCounts,
    PooledBlock,
    empty_pool,
    give,
)
from antorcha.runtime.memory.storage import POOLED, Storage, base_of
from antorcha.runtime.memory.storage_changes import hand_over

if TYPE_CHECKING:
    from antorcha.devices.cuda.gpu import Gpu

gpus = lazy("antorcha.devices.cuda.gpu")
RELEASE_THRESHOLD, RESERVED_NOW, RESERVED_MOST = 4, 5, 6
"""Numbers of ``CUmemPool_attribute``."""
PORTABLE = 1
LEAST_PINNED = 4096


class Counter:
    """How much of something there is and was: the words of a ``MemoryCounts``."""

    def __init__(self, record: ForeignRecord, field: str) -> None:
        names = MemoryCounts.fields
        self.words = {name: record.word(field, k) for k, name in enumerate(names)}

    def add(self, amount: int) -> None:
        """More of it was handed out."""
        now = self.words["current"].value + amount
        self.words["current"].value = now
        self.words["allocated"].value += amount
        self.words["peak"].value = max(self.words["peak"].value, now)

    def take(self, amount: int) -> None:
        """It came back."""
        self.words["current"].value -= amount
        self.words["freed"].value += amount

    def set(self, **values: int) -> None:
        """Sets words."""
        for name, value in values.items():
            self.words[name].value = value

    @property
    def current(self) -> int:
        return self.words["current"].value

    @property
    def peak(self) -> int:
        return self.words["peak"].value

    def as_dict(self) -> dict[str, int]:
        """By PyTorch's names."""
        return {name: self.words[name].value for name in ("current", "peak", "allocated", "freed")}


class BlockHome(Protocol):
    """Where blocks come from and go back to."""

    def release(self, block: GpuBlock) -> None: ...


class GpuBlock:
    """Owns an allocation, which is given back when the last storage over it goes."""

    __slots__ = ("__weakref__", "address", "home", "nbytes", "others", "stream")

    def __init__(self, home: BlockHome, address: int, nbytes: int, stream: StreamHandle) -> None:
        self.home, self.address, self.nbytes, self.stream = home, address, nbytes, stream
        self.others: list[StreamHandle] = []

    def used_by(self, stream: StreamHandle) -> None:
        """Another stream reads or writes it: what it is doing then ends before the block goes."""
        if stream is not self.stream and stream not in self.others:
            self.others.append(stream)

    def __del__(self) -> None:
        self.home.release(self)


class DeviceMemory:
    """The memory of a GPU: the driver's pool in a stream's order, or, where a GPU has none, its
    plain allocator, which waits for the GPU when something is given back."""

    def __init__(self, gpu: Gpu, has_pool: bool) -> None:
        self.gpu, self.host = gpu, pinned
        self.bytes, self.blocks = Counter(gpu.home, "bytes"), Counter(gpu.home, "blocks")
        self.retries = self.failures = 0
        self._limit: int | None = None
        self.waiting: list[tuple[int, StreamHandle, list[StreamHandle]]] = []
        self.plain_peak = 0
        self.pool: int | None = None
        self.captures = 0  # under way on this GPU
        self._special = gpu.home.word("special")
        self.lock = held_over_forks(threading.RLock())
        if has_pool:
            d = gpu.driver
            self.pool = d.number("cuDeviceGetDefaultMemPool", gpu.number, kind=ctypes.c_void_p)
            keep = ctypes.c_uint64(2**64 - 1)  # until it is asked for
            d.call("cuMemPoolSetAttribute", self.pool, RELEASE_THRESHOLD, ctypes.byref(keep))

    @property
    def limit(self) -> int | None:
        """The most bytes that this process may use; None: all."""
        return self._limit

    @limit.setter
    def limit(self, nbytes: int | None) -> None:
        self._special.value += (nbytes is not None) - (self._limit is not None)
        self._limit = nbytes

    def capture_begins(self) -> None:
        """What is given back from now on is given back after the capture; Python allocates."""
        self.captures += 1
        self._special.value += 1

    # ---- taking and giving back
    def allocate(self, nbytes: int) -> GpuBlock:
        """Memory for the current stream; undefined contents."""
        stream = self.gpu.stream
        if stream.capture is not None:
            return stream.capture.pool.allocate(nbytes, stream)
        room = -(-max(nbytes, 1) // GRAIN) * GRAIN
        address = self._take(room, nbytes, stream)
        self.count(room)
        return GpuBlock(self, address, room, stream)

    def count(self, room: int) -> None:
        """Notes that a block was handed out."""
        with self.lock:
            self.bytes.add(room)
            self.blocks.add(1)

    def uncount(self, room: int) -> None:
        """Notes that a block came back."""
        with self.lock:
            self.bytes.take(room)
            self.blocks.take(1)

    def _take(self, room: int, asked: int, stream: StreamHandle) -> int:
        d = self.gpu.driver
        self.gpu.use()
        out = ctypes.c_uint64()
        if self.limit is not None and self.bytes.current + room > self.limit:
            self.fail(asked, f"; this process may use {in_words(self.limit)}")
        for again in (False, True):
            self.retries += again
            if self.pool is not None:
                status = d.status("cuMemAllocAsync", ctypes.byref(out), room, stream.handle)
            else:
                status = d.status("cuMemAlloc_v2", ctypes.byref(out), room)
            if status == driver.SUCCESS:
                return out.value
            if status != driver.OUT_OF_MEMORY:
                raise self.gpu.fault("cuMemAllocAsync", status)
            self.empty_cache()  # (the pool keeps what it has got of the system for it)
        self.fail(asked)

    def lasting(self, nbytes: int) -> GpuBlock:
        """Memory of this library's own, counted as nobody's, which is never given back."""
        self.gpu.use()
        address = self.gpu.driver.number("cuMemAlloc_v2", nbytes, kind=ctypes.c_uint64)
        return GpuBlock(_Kept(), address, nbytes, self.gpu.default)

    def steady(self, nbytes: int) -> GpuBlock:
        """Memory that all streams read: it goes back when the whole GPU is done."""
        self.gpu.use()
        address = self.gpu.driver.number("cuMemAlloc_v2", max(nbytes, 1), kind=ctypes.c_uint64)
        return GpuBlock(_Steady(self), address, nbytes, self.gpu.default)

    def release(self, block: GpuBlock) -> None:
        """Takes a block back, in its stream's order."""
        if self.gpu.driver.forked:
            return
        self.uncount(block.nbytes)
        if self.captures:  # (what is given back now is no part of the graph)
            self.waiting.append((block.address, block.stream, block.others))
        else:
            self._give_back(block.address, block.stream, block.others)

    def _give_back(self, address: int, stream: StreamHandle, others: list[StreamHandle]) -> None:
        d = self.gpu.driver
        self.gpu.use()
        for other in others:
            stream.wait_for_stream(other)
        if self.pool is not None:
            d.status("cuMemFreeAsync", address, stream.handle)  # (no error can be told from here)
        else:
            d.status("cuMemFree_v2", address)

    def capture_ended(self) -> None:
        """Gives back what was to be given back during a capture."""
        self.captures -= 1
        self._special.value -= 1
        while self.waiting and not self.captures:
            self._give_back(*self.waiting.pop())

    def empty_cache(self) -> None:
        """Gives the pool's unused memory back to the system."""
        self.gpu.use()
        if self.pool is None or self.captures:
            return
        self.gpu.make_ready()
        for stream in self.gpu.all_streams():
            empty_pool(stream.pool.address)
        self.gpu.driver.call("cuCtxSynchronize")
        self.gpu.driver.call("cuMemPoolTrimTo", self.pool, 0)

    def show_to(self, other: Gpu) -> None:
        """Lets another GPU's copies read the pool's memory."""
        if self.pool is not None:
            access = (ctypes.c_int * 3)(1, other.number, 3)  # a device, which, read and write
            self.gpu.driver.call("cuMemPoolSetAccess", self.pool, access, 1)

    # ---- questions
    def free_and_total(self) -> tuple[int, int]:
        """Bytes of the GPU that nobody uses, and all of them."""
        self.gpu.use()
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.gpu.driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def reserved(self, most: bool = False) -> int:
        """Bytes that the pool has of the system, now or at most."""
        if self.pool is None:
            return self.bytes.peak if most else self.bytes.current
        which = RESERVED_MOST if most else RESERVED_NOW
        out = ctypes.c_uint64()
        d = self.gpu.driver
        d.call("cuMemPoolGetAttribute", self.pool, which, ctypes.byref(out))
        return out.value

    def reset_peaks(self) -> None:
        """The most from now on."""
        for counter in (self.bytes, self.blocks):
            counter.set(peak=counter.current)
        if self.pool is not None:
            zero = ctypes.c_uint64(0)
            d = self.gpu.driver
            d.call("cuMemPoolSetAttribute", self.pool, RESERVED_MOST, ctypes.byref(zero))

    def reset_totals(self) -> None:
        """Counts from now on."""
        for counter in (self.bytes, self.blocks):
            counter.set(allocated=0, freed=0)
        self.retries = self.failures = 0

    def fail(self, asked: int, why: str = "") -> NoReturn:
        """Raises that there is no memory, who holds it, and what would help."""
        self.failures += 1
        free, total = self.free_and_total()
        reserved = self.reserved()
        error = OutOfMemoryError(
            "CUDA out of memory. Tried to allocate {asked}. GPU {index} has a total capacity of "
            "{total} of which {free} is free{why}. Tensors of this process hold {held} in {count} "
            "blocks, and {kept} more is kept for reuse. What helps: a smaller batch; no_grad() "
            "where no gradient is needed; del of tensors that are not; autocast; "
            "torch.utils.checkpoint; gradients by parts of the batch.",
            reason="memory", asked=in_words(asked), index=self.gpu.index, total=in_words(total),
            free=in_words(free), why=why, held=in_words(self.bytes.current),
            count=self.blocks.current, kept=in_words(max(reserved - self.bytes.current, 0)),
        )  # fmt: skip
        error.error_code = driver.OUT_OF_MEMORY
        raise error

    def own(self, storage: Storage) -> GpuBlock:
        """The owner of a storage in this memory, to which the streams that use it are told."""
        hand_over(storage, self._adopted)
        owner: GpuBlock = storage.owner
        return owner

    def stream_of(self, storage: Storage) -> StreamHandle | None:
        """The stream that a storage's memory was taken on; None where it is not this memory's."""
        storage = base_of(storage)
        if storage.flags & POOLED:
            return self._stream_of(ForeignRecord(PooledBlock, storage._block))  # type: ignore[attr-defined]
        return storage.owner.stream if isinstance(storage.owner, GpuBlock) else None

    def _stream_of(self, block: ForeignRecord) -> StreamHandle:
        pool = block.word("pool").value
        return next(s for s in self.gpu.all_streams() if s.pool.address == pool)

    def _adopted(self, address: int) -> GpuBlock:
        block = ForeignRecord(PooledBlock, address)
        stream = self._stream_of(block)
        where, room = block.word("address").value, block.word("room").value
        return GpuBlock(_Pooled(self, address), where, room, stream)


class _Pooled:
    """The home of a block of a stream's pool."""

    def __init__(self, memory: DeviceMemory, record: int) -> None:
        self.memory, self.record = memory, record

    def release(self, block: GpuBlock) -> None:
        """Takes a block back, when the other streams that used it are done."""
        gpu = self.memory.gpu
        if gpu.driver.forked:
            return
        for other in block.others:
            block.stream.wait_for_stream(other)
        give(self.record)


class _Kept:
    """The home of blocks that stay."""

    def release(self, block: GpuBlock) -> None:
        """Nothing: the context takes it along when the process ends."""


class _Steady:
    """The home of blocks that all streams read."""

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory

    def release(self, block: GpuBlock) -> None:
        """Takes a block back: the GPU is waited for."""
        gpu = self.memory.gpu
        if gpu.driver.forked:
            return
        gpu.use()
        if not self.memory.captures:  # (else it stays: it may be part of the graph)
            gpu.driver.status("cuCtxSynchronize")
            gpu.driver.status("cuMemFree_v2", block.address)


def in_words(nbytes: int) -> str:
    """A size as PyTorch writes it: 20.00 MiB."""
    size, unit = float(nbytes), "bytes"
    for each in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, each
    return f"{nbytes} bytes" if unit == "bytes" else f"{size:.2f} {unit}"


# ---- pinned memory of the host
class PinnedBlock:
    """Owns pinned memory, which a GPU copies from and to by itself; kept for the next when it is
    given back, and not used again before the copies under way are done."""

    __slots__ = ("__weakref__", "address", "events", "nbytes", "room")

    def __init__(self, address: int, nbytes: int, room: int) -> None:
        self.address, self.nbytes, self.room = address, nbytes, room
        self.events: list[EventHandle] = []

    def view(self) -> Any:
        """The bytes."""
        return (ctypes.c_char * self.nbytes).from_address(self.address)

    def used_by(self, stream: StreamHandle) -> None:
        """A copy of that stream reads or writes it."""
        event = EventHandle()
        event.record(stream)
        self.events = [each for each in self.events if not each.done()]
        self.events.append(event)

    def __del__(self) -> None:
        pinned.release(self)


class FreePinned(NamedTuple):
    """Pinned memory that no tensor uses, and the copies that may still be under way."""

    address: int
    events: list[EventHandle]


class PinnedMemory:
    """Pinned memory of this process: to pin a page takes long, so what was given back is kept."""

    def __init__(self) -> None:
        self.free: dict[int, list[FreePinned]] = {}
        self.starts: list[int] = []
        self.blocks: dict[int, weakref.ref[PinnedBlock]] = {}
        self.held = self.kept = 0
        self.lock = held_over_forks(threading.RLock())

    def allocate(self, nbytes: int) -> PinnedBlock:
        """Pinned memory; undefined contents."""
        room = max(1 << (max(nbytes, 1) - 1).bit_length(), LEAST_PINNED)
        with self.lock:
            address = self._from_kept(room)
            if not address:
                here = gpus.gpu()
                here.use()
                address = here.driver.number("cuMemHostAlloc", room, PORTABLE, kind=ctypes.c_void_p)
                note_pinned(address, room)
            block = PinnedBlock(address, nbytes, room)
            bisect.insort(self.starts, address)
            self.blocks[address] = weakref.ref(block)
            self.held += room
            return block

    def _from_kept(self, room: int) -> int:
        waiting = self.free.get(room, [])
        for k, each in enumerate(waiting):
            if all([event.done() for event in each.events]):
                del waiting[k]
                self.kept -= room
                return each.address
        return 0

    def release(self, block: PinnedBlock) -> None:
        """Takes a block back."""
        with self.lock:
            k = bisect.bisect_left(self.starts, block.address)
            if k == len(self.starts) or self.starts[k] != block.address:
                return  # (of before `forget`)
            del self.starts[k], self.blocks[block.address]
            self.held -= block.room
            self.kept += block.room
            free = self.free.setdefault(block.room, [])
            free.append(FreePinned(block.address, block.events))

    def block_at(self, address: int) -> PinnedBlock | None:
        """The block that an address lies in."""
        with self.lock:
            k = bisect.bisect_right(self.starts, address) - 1
            if k < 0:
                return None
            block = self.blocks[self.starts[k]]()
            if block is None or address >= block.address + block.room:
                return None
            return block

    def empty_cache(self) -> None:
        """Gives memory that no tensor uses back to the system."""
        d = driver.found()
        with self.lock:
            for room, free in self.free.items():
                for each in free:
                    for event in each.events:
                        event.synchronize()
                    if d is not None and not d.forked:
                        gpus.gpu().use()
                        d.call("cuMemFreeHost", each.address)
                    self.kept -= room
            self.free.clear()

    def forget(self) -> None:
        """Begins anew (for tests)."""
        self.free.clear()
        self.starts.clear()
        self.blocks.clear()
        self.held = self.kept = 0


pinned = PinnedMemory()
