"""Compaction on a GPU: where what is chosen among many goes, in order.

Elements are counted in chunks, one a block; one block adds the counts up; then each block knows
where what it chooses begins, and each of its threads, by a scan of the block.
"""

from __future__ import annotations

from antorcha.devices.gpu.frame import THREADS, GridStep
from antorcha.lang.native import i32, i64, inline, native, ptr, static, u16, void
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    block,
    device_pointer,
    shared,
    swap_lanes,
    thread,
)

CHOSEN_EACH = 8
"""Neighbouring elements that a thread looks at."""
CHUNK = THREADS * CHOSEN_EACH
SCAN_THREADS = 1024


@inline
def block_scan(count, threads):
    """Of what the threads of a block count (i32): the sum before this thread, the sum of all."""
    t = thread()
    lane = t % WARP
    before, total = i32(0), count + 0
    for mask in static((1, 2, 4, 8, 16)):
        other = swap_lanes(total, mask)
        if lane & mask != 0:
            before += other
        total += other
    warps = static(threads // WARP)
    sums = shared(i32, warps)
    barrier()  # what an earlier scan left has been read
    if lane == 0:
        sums[t // WARP] = total
    barrier()
    whole = i32(0)
    for w in static(range(warps)):
        one = sums[w]
        if w < t // WARP:
            before += one
        whole += one
    return before, whole


@inline
def leave_count(counts, count):
    """Writes how many the block's threads have counted."""
    _before, whole = block_scan(count, THREADS)
    if thread() == 0:
        counts[1 + i64(block())] = i64(whole)


@inline
def choose(flags, picks):
    """Where the chunk's ``flags`` (shared) are set, in order, into ``picks``; gives how many."""
    barrier()
    first = thread() * CHOSEN_EACH
    count = i32(0)
    for k in static(range(CHOSEN_EACH)):
        count += i32(flags[first + k])
    before, whole = block_scan(count, THREADS)
    for k in static(range(CHOSEN_EACH)):
        if flags[first + k] != 0:
            picks[before] = u16(first + k)
            before += 1
    barrier()
    return whole


@inline
def number(flags, ranks):
    """How many of the chunk's ``flags`` (shared) are set before each, into ``ranks``."""
    barrier()
    first = thread() * CHOSEN_EACH
    count = i32(0)
    for k in static(range(CHOSEN_EACH)):
        count += i32(flags[first + k])
    before, _whole = block_scan(count, THREADS)
    for k in static(range(CHOSEN_EACH)):
        ranks[first + k] = u16(before)
        before += i32(flags[first + k])
    barrier()


@native
def add_up_grid(words: ptr[i64], *, LIMITED) -> void:
    """One block: counts become the sums of those before them, and the sum of all stands in front.
    Where it is ``LIMITED`` and greater, the sum is the status. Words: the counts, (the status,) how
    many, (the limit)."""
    sums = device_pointer(i64, words[0])
    counts = sums + 1
    n = words[static(1 + LIMITED)]
    carry = i64(0)
    begin = i64(0)
    while begin < n:
        at = begin + i64(thread())
        count = i32(0)
        if at < n:
            count = i32(counts[at])
        before, whole = block_scan(count, SCAN_THREADS)
        if at < n:
            counts[at] = carry + i64(before)
        carry += i64(whole)
        begin += SCAN_THREADS
    if thread() == 0:
        sums[0] = carry
        if LIMITED and carry > words[3]:
            device_pointer(i64, words[1])[0] = carry


def chunks_of(count: int) -> int:
    """Blocks that look at so many elements."""
    return max(-(-count // CHUNK), 1)


def bytes_of_counts(count: int) -> int:
    """The counts of so many elements' chunks, and their sum."""
    return 8 * (chunks_of(count) + 1)


def add_up(count: int, counts: int, status: int | None = None, limit: int = 0) -> GridStep:
    """The step that adds up the counts of so many elements' chunks, in buffer ``counts``."""
    limited = status is not None
    operands = (counts,) if status is None else (counts, status)
    words = (chunks_of(count), limit) if limited else (chunks_of(count),)
    return GridStep(
        add_up_grid, {"LIMITED": int(limited)}, (1,), SCAN_THREADS, operands, words
    )  # fmt: skip
