"""The caching allocator: blocks by size class, kept for the next tensor instead of given back.

A large result that comes from the system costs a page fault per 4 kB, two thirds of the time of an
elementwise op; a kept block costs nothing.  So a freed block stays in a list of its size class, up
to a bound on what is kept (not on what is in use); past the bound, the largest kept blocks go back
first.  Blocks of 4 MB and more ask for huge pages.

Invariants: four classes per power of two, so a block is at most a quarter larger than asked;
the memory is aligned to 64 bytes; the 64 bytes before it are the block's own (its class and size);
every list and counter is touched only under one spin lock, never held while the system is called,
so that threads without the interpreter lock may allocate; a forked child starts with the lock free
and lists that are whole.  `shelved` is touched only under the interpreter lock: of the bytes live,
those that storages which have ended hold for the next ones (``storage``).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass

from antorcha.errors import AntorchaError
from antorcha.lang.native import (
    Extern,
    Global,
    atomic_store,
    cas,
    clz,
    i32,
    i64,
    inline,
    native,
    pause,
    ptr,
    raw,
    ref,
    struct,
    void,
)

HEAD = 64
"""Bytes before a block's memory."""
CLASSES = 176
SMALLEST = 64
LARGEST = 1 << 46
"""No tensor is larger: sizes up to here cannot overflow in native code."""
HUGE = 4 << 20
"""From here a block asks for huge pages, and is aligned to one."""
HUGE_PAGE = 2 << 20
MADV_HUGEPAGE = 14


@struct
class Head:
    next: raw  # the next kept block's memory
    size_class: i64
    nbytes: i64


@struct
class Counters:
    lock: i64
    live: i64
    cached: i64
    peak: i64
    hits: i64
    misses: i64
    shelved: i64
    reused: i64  # hits, of what was shelved


kept = Global("antorcha_alloc_kept", raw, CLASSES)
state = Global("antorcha_alloc_state", Counters)
limit = Global("antorcha_alloc_limit", i64)  # of the bytes kept
aligned_alloc = Extern("aligned_alloc", raw, i64, i64)
system_free = Extern("free", void, raw)
madvise = Extern("madvise", i32, raw, i64, i32)
sched_yield = Extern("sched_yield", i32)


@inline
def lock():
    tries = 0
    while not cas(ref(state.lock), 0, 1, "acquire"):
        pause()
        tries += 1
        if tries > 200:  # the holder may not be running
            sched_yield()
            tries = 0


@inline
def unlock():
    atomic_store(ref(state.lock), 0, "release")


@inline
def size_class(nbytes):
    """The smallest class that holds nbytes: class 4k + j holds (4 + j) << (k + 4) bytes."""
    last = max(nbytes, SMALLEST) - 1
    shift = 61 - clz(last)
    return (shift - 4) * 4 + (last >> shift) - 3


@inline
def class_bytes(c):
    return (4 + c % 4) << (c // 4 + 4)


@inline
def free_chain(block):
    """Gives a list of blocks back to the system; not under the lock."""
    while block is not None:
        head = ptr[Head](block - HEAD)
        block = head.next
        system_free(raw(head))


@native(noinline=True)
def evict(room: i64) -> void:
    """Gives back kept blocks, largest first, until `room` more bytes fit under the limit."""
    gone = raw(0)
    lock()
    c = CLASSES - 1
    while c >= 0 and state.cached + state.shelved + room > limit[0]:
        block = kept[c]
        while block is not None and state.cached + state.shelved + room > limit[0]:
            head = ptr[Head](block - HEAD)
            after = head.next
            state.cached -= head.nbytes
            head.next = gone
            gone = block
            block = after
        kept[c] = block
        c -= 1
    unlock()
    free_chain(gone)


@native(noinline=True)
def release_cached() -> void:
    """Gives every kept block back to the system."""
    gone = raw(0)
    lock()
    for c in range(CLASSES):
        block = kept[c]
        while block is not None:
            head = ptr[Head](block - HEAD)
            after = head.next
            head.next = gone
            gone = block
            block = after
        kept[c] = None
    state.cached = 0
    unlock()
    free_chain(gone)


@native(noinline=True)
def fresh_block(c: i64, nbytes: i64) -> raw:
    """A block from the system, or null."""
    align = i64(64)
    if nbytes >= HUGE:
        align = i64(HUGE_PAGE)
    total = (nbytes + HEAD + align - 1) & -align
    block = aligned_alloc(align, total)
    if block is None:
        release_cached()
        block = aligned_alloc(align, total)
        if block is None:
            return block
    if nbytes >= HUGE:
        madvise(block, total, MADV_HUGEPAGE)
    head = ptr[Head](block)
    head.size_class = c
    head.nbytes = nbytes
    return block + HEAD


@inline
def note_peak():
    used = state.live - state.shelved
    if used > state.peak:
        state.peak = used


@inline
def count_in(nbytes):
    state.live += nbytes
    note_peak()


@native(export=True)
def allocate_slow(c: i64, nbytes: i64) -> raw:
    block = fresh_block(c, nbytes)
    if block is not None:
        lock()
        state.misses += 1
        count_in(nbytes)
        unlock()
    return block


@inline
def allocate(nbytes):
    """64-byte aligned memory of at least nbytes, uninitialised; null when there is none."""
    if nbytes < 0 or nbytes >= LARGEST:
        return raw(0)
    c = size_class(nbytes)
    size = class_bytes(c)
    lock()
    block = kept[c]
    if block is None:
        unlock()
        return allocate_slow(c, size)
    kept[c] = ptr[Head](block - HEAD).next
    state.cached -= size
    state.hits += 1
    count_in(size)
    unlock()
    return block


@native(export=True)
def release_slow(block: raw) -> void:
    """For a block that does not fit under the limit: makes room, or gives the block itself back."""
    head = ptr[Head](block - HEAD)
    size = head.nbytes
    if size <= limit[0]:
        evict(size)
        lock()
        if state.cached + state.shelved + size <= limit[0]:
            head.next = kept[head.size_class]
            kept[head.size_class] = block
            state.cached += size
            unlock()
            return
        unlock()
    system_free(raw(head))


@inline
def release(block):
    """Takes back what `allocate` gave."""
    head = ptr[Head](block - HEAD)
    size = head.nbytes
    c = head.size_class
    lock()
    state.live -= size
    if state.cached + state.shelved + size > limit[0]:
        unlock()
        release_slow(block)
    else:
        head.next = kept[c]
        kept[c] = block
        state.cached += size
        unlock()


@native
def allocate_block(nbytes: i64) -> raw:
    """`allocate`, for Python."""
    return allocate(nbytes)


@native
def release_block(block: raw) -> void:
    """`release`, for Python."""
    release(block)


@native
def read_counters(out: ptr[i64]) -> void:
    lock()
    out[0] = state.live - state.shelved
    out[1] = state.cached + state.shelved
    out[2] = state.peak
    out[3] = state.hits + state.reused
    out[4] = state.misses
    unlock()


@native
def start_peak() -> void:
    lock()
    state.peak = state.live - state.shelved
    unlock()


@dataclass(frozen=True)
class AllocatorStats:
    """Bytes in use, kept for reuse, and most ever in use; blocks reused and asked of the system."""

    live: int
    cached: int
    peak: int
    hits: int
    misses: int
    limit: int


class OutOfMemory(AntorchaError, RuntimeError, MemoryError):
    """No memory for a tensor.  PyTorch raises RuntimeError, Python MemoryError: this is both."""


def out_of_memory(nbytes: int) -> OutOfMemory:
    """The error for nbytes that could not be had."""
    held = stats()
    return OutOfMemory(
        "cannot allocate {asked:,} bytes; tensors hold {held:,} bytes and {kept:,} more are kept "
        "for reuse",
        reason="memory", asked=nbytes, held=held.live, kept=held.cached,
    )  # fmt: skip


def stats() -> AllocatorStats:
    """What the allocator holds now."""
    out = (ctypes.c_int64 * 5)()
    read_counters(ctypes.addressof(out))
    live, cached, peak, hits, misses = out
    return AllocatorStats(live, cached, peak, hits, misses, int(limit.np[0]))


clear_shelf: list[Callable[[], object]] = []
"""What has the shelved bytes released."""


def empty_cache() -> None:
    """Gives all memory that no tensor uses back to the system."""
    for clear in clear_shelf:
        clear()
    release_cached()


def reset_peak() -> None:
    """Starts the count of `stats().peak` again from what is live."""
    start_peak()


def set_cache_limit(nbytes: int) -> None:
    """Bounds the bytes kept for reuse; what exceeds it goes back now."""
    if not 0 <= nbytes < LARGEST:
        raise ValueError(f"set_cache_limit: {nbytes} is not a number of bytes from 0 to 2**46")
    limit.np[0] = nbytes
    for clear in clear_shelf:
        clear()
    evict(0)


def default_limit() -> int:
    """A quarter of the machine's memory."""
    return min(max((physical_memory() or 4 << 30) // 4, 64 << 20), LARGEST - 1)


def physical_memory() -> int:
    """Bytes that the machine has; 0 where it does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0


def check_plausible(nbytes: int) -> None:
    """Raises OutOfMemory where the machine has less memory. A system that promises more than it has
    would let a loop begin that can only end with the process."""
    if nbytes > 1 << 30 and (nbytes > LARGEST or 0 < physical_memory() < nbytes):
        raise out_of_memory(nbytes)


def _after_fork() -> None:
    """In a forked child.  The lock is not taken before a fork: a thread that spins on it with the
    interpreter lock would stop the fork.  When some thread was inside, its lists are given up."""
    words = {
        name: ctypes.c_int64.from_address(state.addr + offset)
        for name, (offset, _) in Counters.fields.items()
    }
    if words["lock"].value != 0:
        ctypes.memset(kept.addr, 0, 8 * CLASSES)
        words["cached"].value = 0
    words["lock"].value = 0


limit.np[0] = default_limit()
os.register_at_fork(after_in_child=_after_fork)
