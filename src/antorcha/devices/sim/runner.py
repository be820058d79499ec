"""Runs the threads of a grid on the CPU, block after block.

A kernel's threads suspend where they wait (``lang/native/lower/grid.py``). The threads of a block
are started, and later resumed, in an order that changes with every block and every barrier, so that
a kernel which counts on an order is found out. Shared memory is poisoned before each block.
"""

from __future__ import annotations

from antorcha.devices.sim.memory import POISON, arena
from antorcha.devices.sim.tiles import end_tiles
from antorcha.lang.native import (
    Extern,
    bool_,
    constant,
    func,
    i64,
    memset,
    native,
    ptr,
    raw,
    static,
    u8,
    u64,
    void,
)
from antorcha.lang.native.bulk_copies import phase_of
from antorcha.lang.native.grid import ENDED, FOR_BLOCK, FOR_PHASE, FOR_WARP, WARP, GridThread

SHARED_BYTES = 227 << 10  # of a block at most, as on an H100
MOST_THREADS = 1024  # of a block
MULTIPROCESSORS = 2  # that plans are made for: blocks which take one tile after another take some

resume = Extern("llvm.coro.resume", void, raw)
destroy = Extern("llvm.coro.destroy", void, raw)
finished = Extern("llvm.coro.done", bool_, raw)
STEPS = (1, 7, 31, 61, 127, 251, 509, 911)  # through a block's threads; few numbers are multiples


@native
def advance(t: ptr[GridThread]) -> void:
    """Runs a thread on to where it waits next, or ends."""
    arena.thread = t.number
    resume(t.frame)
    if finished(t.frame):
        t.waits = ENDED


@native
def place_thread(
    t: ptr[GridThread], k: i64, b: i64, grid: ptr[i64], shared: raw
) -> void:  # fmt: skip
    """Fills in a thread's record. ``grid``: threads of a block (3), blocks (3)."""
    x, y = grid[0], grid[1]
    t.index[0], t.index[1], t.index[2] = k % x, k // x % y, k // (x * y)
    x, y = grid[3], grid[4]
    t.block[0], t.block[1], t.block[2] = b % x, b // x % y, b // (x * y)
    for d in range(3):
        t.threads[d] = grid[d]
        t.blocks[d] = grid[3 + d]
    t.shared = shared
    t.shared_bytes = 0
    t.waits = ENDED
    t.frame = None
    t.number = k
    t.copies_begun = 0
    t.copies_done = 0
    t.groups_made = 0
    t.products_begun = 0
    t.products_done = 0
    t.product_groups_made = 0
    t.tiles_begun = 0
    t.tiles_done = 0


@native
def stride_of(n: i64, turn: i64) -> i64:
    """A step through n threads that visits each once."""
    step = constant(i64, STEPS)[turn % static(len(STEPS))]
    if n % step == 0:
        step = i64(1)
    return step


@native
def run_block(
    kernel: func[raw, raw, raw], words: raw, b: i64, grid: ptr[i64], records: ptr[GridThread],
    shared: raw, turn: i64,
) -> i64:  # fmt: skip
    """0, or 1 where threads wait for one another in vain."""
    n = grid[0] * grid[1] * grid[2]
    step = stride_of(n, turn)
    at = turn % n
    waiting = i64(0)
    for _k in range(n):
        t = records + at
        place_thread(t, at, b, grid, shared)
        arena.block = b
        arena.thread = at
        t.frame = kernel(words, raw(t))
        if t.frame is not None:
            waiting += 1
            if finished(t.frame):
                t.waits = ENDED
        at = (at + step) % n
    if waiting == 0:
        return 0
    stuck = run_waiting(records, n, turn)
    for k in range(n):
        if (records + k).frame is not None:
            destroy((records + k).frame)
    return stuck


@native
def run_waiting(records: ptr[GridThread], n: i64, turn: i64) -> i64:
    """Resumes the threads of a block until all have ended: a warp when all its lanes wait for one
    another, the block when all its threads do, one whose phase has ended. Tiles are copied where
    nobody can go on without."""
    ended = i64(0)
    rounds = turn
    while ended < n:
        moved = i64(0)
        for_block = i64(0)
        ended = i64(0)
        for w in range(0, n, WARP):
            last = min(w + WARP, n)
            together = i64(0)
            for k in range(w, last):
                waits = (records + k).waits
                ended += 1 if waits == ENDED else 0
                for_block += 1 if waits == FOR_BLOCK else 0
                together += 1 if waits == FOR_WARP else 0
                if waits == FOR_PHASE:
                    moved += resume_after_phase(records + k)
            if together == last - w:
                moved += 1
                resume_all(records + w, last - w, rounds)
        if for_block == n:
            moved += 1
            resume_all(records, n, rounds)
        if moved == 0:
            for k in range(n):
                moved += end_tiles(records + k)
        if moved == 0 and ended < n:
            return 1
        rounds += 1
    return 0


@native
def resume_after_phase(t: ptr[GridThread]) -> i64:
    """1 where the phase that a thread waits for has ended: the thread goes on."""
    if phase_of(ptr[u64](raw(i64(t.shown)))) == t.parity:
        return 0
    advance(t)
    return 1


@native
def resume_all(records: ptr[GridThread], n: i64, turn: i64) -> void:
    step = stride_of(n, turn)
    at = turn % n
    for _k in range(n):
        advance(records + at)
        at = (at + step) % n


@native(level="O1")
def run_blocks(
    kernel: func[raw, raw, raw], words: raw, grid: ptr[i64], records: ptr[GridThread],
    shared: raw, turn: i64,
) -> i64:  # fmt: skip
    """0; or 1 + the number of the block whose threads wait for one another in vain."""
    count = grid[3] * grid[4] * grid[5]
    for b in range(count):
        stuck = run_block(kernel, words, b, grid, records, shared, turn + b)
        used = records.shared_bytes
        if used > 0:
            memset(shared, u8(POISON), used)
        if stuck != 0:
            return b + 1
    return 0
