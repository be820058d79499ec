"""The thread pool: one for everything, because two pools that spin in one process wreck each other.

`pool_run(job, n, grain, args)` calls job(lo, hi, args) over parts of range(n), on the caller's
thread and on the workers.  Workers spin for a while, then sleep; a job is joined by any worker that
sees it while it is open.  A nested call, and a call while another thread's job runs, runs inline.

One word says everything that the threads must agree on: `state` = generation << 32 | open << 31 |
workers inside.  Invariants: the job's fields change only when no worker is inside and `busy` is
held; a worker reads them only after it is inside; the caller returns only when nobody is inside.  A
forked child has no workers: it starts again with an empty pool.  Workers never touch Python, so the
interpreter may end while they sleep.
"""

from __future__ import annotations

import os

from antorcha import config
from antorcha.config import MAX_THREADS, available_cpus
from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.lang.native import (
    Extern,
    Global,
    address,
    array,
    atomic_add,
    atomic_and,
    atomic_load,
    atomic_store,
    atomic_sub,
    cas,
    func,
    i32,
    i64,
    inline,
    local,
    memset,
    native,
    pause,
    raw,
    ref,
    struct,
    u8,
    u64,
    void,
)

job_t = func[void, i64, i64, raw]


@struct
class Pool:
    state: u64  # generation << 32 | open << 31 | workers inside
    job: job_t
    args: raw
    n: i64
    chunk: i64
    threads: i64  # the caller counts as one
    started: i64  # workers created
    spin: i64
    pad0: array[u8, 64]
    next: i64  # the first index nobody has taken
    pad1: array[u8, 64]
    sleeping: i64
    waiting: i64  # the caller sleeps until the last worker is out
    alive: i64  # workers that have not ended
    pad2: array[u8, 64]
    busy: i64  # a job, or a change of size, is under way
    pad3: array[u8, 56]
    mutex: array[i64, 16]
    wake: array[i64, 16]
    done: array[i64, 16]


OPEN = 1 << 31
INSIDE = OPEN - 1
CHUNKS_PER_THREAD = 4
P = Global("antorcha_pool", Pool)
pthread_create = Extern("pthread_create", i32, raw, raw, raw, raw)
pthread_detach = Extern("pthread_detach", i32, i64)
mutex_init = Extern("pthread_mutex_init", i32, raw, raw)
mutex_lock = Extern("pthread_mutex_lock", i32, raw)
mutex_unlock = Extern("pthread_mutex_unlock", i32, raw)
cond_init = Extern("pthread_cond_init", i32, raw, raw)
cond_wait = Extern("pthread_cond_wait", i32, raw, raw)
cond_broadcast = Extern("pthread_cond_broadcast", i32, raw)
sched_yield = Extern("sched_yield", i32)


@native(noinline=True)
def chunks(job: job_t, args: raw, n: i64, chunk: i64) -> void:
    """Takes parts of range(n) until none is left."""
    while True:
        lo = atomic_add(ref(P.next), chunk, "monotonic")
        if lo >= n:
            return
        job(lo, min(lo + chunk, n), args)


@inline
def generation():
    return atomic_load(ref(P.state), "acquire") >> 32


@inline
def wait_for_job(last):
    """Spins, then sleeps, until the generation is no longer `last`."""
    for _ in range(P.spin):
        if generation() != last:
            return
        pause()
    mutex_lock(ref(P.mutex))
    atomic_add(ref(P.sleeping), 1)
    while atomic_load(ref(P.state)) >> 32 == last:
        cond_wait(ref(P.wake), ref(P.mutex))
    atomic_sub(ref(P.sleeping), 1)
    mutex_unlock(ref(P.mutex))


@inline
def leave():
    """A worker goes out; the last one wakes a sleeping caller."""
    before = atomic_sub(ref(P.state), 1)
    if before & (OPEN | INSIDE) == 1 and atomic_load(ref(P.waiting)) != 0:
        mutex_lock(ref(P.mutex))
        cond_broadcast(ref(P.done))
        mutex_unlock(ref(P.mutex))


@inline
def join_job():
    """Goes inside if the job is open and works until nothing is left; gives its generation."""
    s = atomic_load(ref(P.state), "acquire")
    while s & OPEN != 0:
        if cas(ref(P.state), s, s + 1):
            chunks(P.job, P.args, P.n, P.chunk)
            leave()
            break
        s = atomic_load(ref(P.state), "acquire")
    return s >> 32


@native
def worker(arg: raw) -> raw:
    """A worker's life.  arg = number << 32 | generation at its birth."""
    last = u64(arg) & 0xFFFFFFFF
    number = i64(arg) >> 32
    while True:
        wait_for_job(last)
        if number >= atomic_load(ref(P.threads)):
            break
        last = join_job()
    atomic_sub(ref(P.alive), 1)
    return arg


@native(noinline=True)
def start_workers() -> void:
    """Creates the missing workers; where the system refuses one, the pool stays smaller."""
    thread = local(i64)
    birth = P.state >> 32
    while P.started < P.threads - 1:
        number = P.started + 1
        atomic_add(ref(P.alive), 1)
        if pthread_create(thread, None, address(worker), raw(u64(number) << 32 | birth)) != 0:
            atomic_sub(ref(P.alive), 1)
            atomic_store(ref(P.threads), number)
        else:
            pthread_detach(thread[0])
            P.started = number


@inline
def chunk_size(n, grain):
    """A few parts per thread, of whole cache lines when there are many, and of grain at least."""
    size = n // (P.threads * CHUNKS_PER_THREAD) + 1
    if n > 4096:
        size = (size + 63) & -64
    return size if size >= grain else min(grain, (n + 1) // 2)


@inline
def next_generation(flags):
    """Generations are 32 bits: one that comes round again finds its worker long awake."""
    atomic_store(ref(P.state), ((P.state >> 32) + 1) << 32 | flags)
    if atomic_load(ref(P.sleeping)) > 0:
        mutex_lock(ref(P.mutex))
        cond_broadcast(ref(P.wake))
        mutex_unlock(ref(P.mutex))


@native(noinline=True)
def sleep_until_out() -> void:
    mutex_lock(ref(P.mutex))
    atomic_store(ref(P.waiting), 1)
    while atomic_load(ref(P.state)) & INSIDE != 0:
        cond_wait(ref(P.done), ref(P.mutex))
    atomic_store(ref(P.waiting), 0)
    mutex_unlock(ref(P.mutex))


@inline
def wait_until_out():
    for _ in range(P.spin):
        if atomic_load(ref(P.state), "acquire") & INSIDE == 0:
            return
        pause()
    sleep_until_out()


@native(export=True)
def pool_run(job: job_t, n: i64, grain: i64, args: raw) -> void:
    """job(lo, hi, args) over range(n), in parts of about `grain` or more; returns when done."""
    if n <= 0:
        return
    if P.threads <= 1 or n <= grain or not cas(ref(P.busy), 0, 1, "acquire"):
        job(0, n, args)
        return
    if P.started < P.threads - 1:
        start_workers()
    chunk = chunk_size(n, grain)
    P.job = job
    P.args = args
    P.n = n
    P.chunk = chunk
    P.next = 0
    next_generation(OPEN)
    chunks(job, args, n, chunk)
    atomic_and(ref(P.state), ~OPEN)
    wait_until_out()
    atomic_store(ref(P.busy), 0, "release")


@inline
def pool_threads():
    """How many threads a job may have, for kernels whose results do not depend on it."""
    return atomic_load(ref(P.threads), "monotonic")


@native
def resize_pool(threads: i64, spin: i64) -> void:
    """Waits for the running job; ends the workers that are too many, and waits for their end."""
    while not cas(ref(P.busy), 0, 1, "acquire"):
        sched_yield()
    P.spin = spin
    atomic_store(ref(P.threads), threads)
    if P.started > threads - 1:
        P.started = threads - 1
        next_generation(0)
        while atomic_load(ref(P.alive)) > threads - 1:
            sched_yield()
    atomic_store(ref(P.busy), 0, "release")


@native
def reset_pool(threads: i64, spin: i64) -> void:
    """The pool with no workers: at the start, and in a forked child."""
    P.threads = threads
    P.spin = spin
    P.state = 0
    P.started = 0
    P.sleeping = 0
    P.waiting = 0
    P.alive = 0
    P.busy = 0
    memset(ref(P.mutex), 0, 128)
    memset(ref(P.wake), 0, 128)
    memset(ref(P.done), 0, 128)
    mutex_init(ref(P.mutex), None)
    cond_init(ref(P.wake), None)
    cond_init(ref(P.done), None)


@native
def pool_alive() -> i64:
    """Workers that exist now (they start with the first job that needs them)."""
    return atomic_load(ref(P.alive))


SPIN = 20_000
"""Rounds of waiting before a thread sleeps: about a millisecond, longer than between two ops."""
SPIN_CROWDED = 64
"""The same when there are more threads than cores: who spins keeps another from working."""


class ThreadCountError(ValueRangeError, RuntimeError):
    """A number of threads that no pool has.  PyTorch raises RuntimeError here."""


def set_num_threads(n: int) -> None:
    """Kernels run on n threads from now on, the caller included.  More than cores is allowed."""
    if isinstance(n, bool) or not isinstance(n, int):
        raise ArgumentError(f"set_num_threads: an int is needed, not {type(n).__name__}")
    if n < 1:
        raise ThreadCountError(f"set_num_threads: {n} is not a positive number of threads")
    global _size
    _size = _with_spin(n)
    resize_pool(*_size)


def get_num_threads() -> int:
    """How many threads a kernel may use."""
    return _size[0]  # as `resize_pool` was told: asking it takes longer than planning may


def _with_spin(n: int) -> tuple[int, int]:
    n = min(n, MAX_THREADS)
    return n, SPIN if n <= available_cpus() else SPIN_CROWDED


_size = _with_spin(config.num_threads)
reset_pool(*_size)
os.register_at_fork(after_in_child=lambda: reset_pool(*_size))
