"""What ran, and when: records of calls, written by machine code while a profile is on.

A record is eight words: what ran, when it began and ended, how much memory tensors held before and
after. ``write`` fills the next free one as a call ends (Python, which may be stopped on the way,
begins one and completes it); that costs little more than reading the clock. Nesting, names and sums
are worked out afterwards, from the list that ``stop`` gives.

Kernels are seen without a word on their way: while a profile is on, every launch (``launch.py``)
has ``stand_in`` in the place of its kernel, which writes a record around the real one. When no
profile is on, nothing here runs.

Owns: chunks of records, kept for the next profile; the objects that records name, until they are
taken. Invariants: numbers of records only grow, so one that a late thread completes after ``stop``
is known to be of the past; a record's mark is written last, and 0 in one that is not there.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from antorcha.lang.native import (
    Extern,
    Global,
    atomic_add,
    atomic_load,
    atomic_store,
    bind,
    cas,
    cycles,
    i32,
    i64,
    local,
    native,
    pause,
    prefetch,
    ptr,
    raw,
    ref,
    struct,
    u64,
    void,
)
from antorcha.runtime import launched
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    TRUE,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    PyTuple_New,
    PyTuple_SetItem,
    drop_one,
    fast_def,
    new_reference,
)
from antorcha.runtime.launch import kernel_t
from antorcha.runtime.memory import alloc

NOTHING, OP, NODE, BLOCK, KERNEL = range(5)
"""Kinds of records: none; a call of an op, named by a string; a run of a node, by its op; a block
that the user names; a kernel, by the address of its launch's description."""
KIND_BITS, KIND = 3, 7
CHUNK, CHUNKS = 1 << 14, 1 << 10
KEPT = 32  # chunks that serve the next profile; what a very long one took besides goes back
WORDS = 8  # of a record


@struct
class TraceEntry:
    """A record in memory: one line of a cache."""

    mark: i64  # its kind, and above it the number of the node that it has made, or that runs
    what: raw
    noted: raw  # an object, or null
    begun: i64  # ticks of `clock`
    ended: i64  # 0 while it runs
    before: i64  # bytes that all tensors hold
    after: i64
    thread: i64


@struct
class State:
    on: i64
    next: i64  # the number of the next record
    base: i64  # of the first of this profile
    lock: i64
    lost: i64  # records for which there was no room
    cycles: i64  # does `clock` count cycles?


class Record(NamedTuple):
    """A record as Python sees it."""

    kind: int
    what: Any
    noted: Any
    begun: int
    ended: int
    before: int
    after: int
    thread: int
    number: int


SHAPES, COLLECT = 1, 2
"""What is noted of each call: its arguments; what a Python function collects."""
state = Global("antorcha_trace", State)
wanted = Global("antorcha_trace_wanted", i64)
collector = Global("antorcha_trace_collector", raw)
chunks = Global("antorcha_trace_chunks", raw, CHUNKS)
clock_gettime = Extern("clock_gettime", i32, i32, ptr[i64])
get_thread = Extern("PyThread_get_thread_ident", u64)
MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)
_CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


_labels: dict[str, str] = {}
_SHOWN = {
    "to_dtype": "_to_copy", "full_layout": "full", "index_view": "slice", "__getitem__": "slice",
}  # fmt: skip


def label_of(name: str) -> str:
    """An op's name in a profile: PyTorch's. Always the same object, which is never freed."""
    return _labels.setdefault(name, "aten::" + _SHOWN.get(name, name))


# ---- writing
@native
def clock() -> i64:
    """Ticks: nanoseconds, or cycles of the processor where these are of one length."""
    if state.cycles != 0:
        return cycles()
    now = local(i64, 2)
    clock_gettime(MONOTONIC, now)
    return now[0] * 1000000000 + now[1]


@native(noinline=True)
def new_chunk(c: i64) -> raw:
    """The chunk of that number, made by whoever comes first; null: there is no memory."""
    while not cas(ref(state.lock), 0, 1, "acquire"):
        pause()
    chunk = chunks[c]
    if chunk is None:
        chunk = alloc.aligned_alloc(64, CHUNK * TraceEntry.size)
        if chunk is not None:
            entries = ptr[TraceEntry](chunk)
            for k in range(CHUNK):
                (entries + k).mark = NOTHING
            chunks[c] = chunk
    atomic_store(ref(state.lock), 0, "release")
    return chunk


@native
def free_chunk(c: i64) -> bool:
    """Gives a chunk back; False: there is none of that number."""
    chunk = chunks[c]
    chunks[c] = None
    if chunk is not None:
        alloc.system_free(chunk)
    return chunk is not None


@native
def entry_at(number: i64) -> ptr[TraceEntry]:
    """The record of that number, which is of this profile, or null."""
    k = number - state.base
    if k < 0 or k >= CHUNK * CHUNKS:
        return ptr[TraceEntry](raw(0))
    chunk = chunks[k // CHUNK]
    if chunk is None:
        return ptr[TraceEntry](raw(0))
    return ptr[TraceEntry](chunk) + k % CHUNK


@native
def new_entry() -> ptr[TraceEntry]:
    """The next record, or null: there is no room, or no profile."""
    if state.on == 0:
        return ptr[TraceEntry](raw(0))
    number = atomic_add(ref(state.next), 1)
    k = number - state.base
    if k < CHUNK * CHUNKS and chunks[k // CHUNK] is None:
        new_chunk(k // CHUNK)
    entry = entry_at(number)
    if entry is None:
        atomic_add(ref(state.lost), 1)
    else:
        prefetch(entry + 2, 1)  # (records to come are memory that nobody has used lately)
    return entry


@native
def held() -> i64:
    """Bytes that tensors hold."""
    return alloc.state.live - alloc.state.shelved


@native
def write(kind: i64, what: raw, noted: raw, node: i64, begun: i64, before: i64) -> void:
    """A whole record of what ends now. Takes over the references (of a kernel, which may run
    without the interpreter lock, there are none)."""
    now = clock()
    entry = new_entry()
    if entry is None:
        if kind != KERNEL:
            drop_one(what)
            drop_one(noted)
        return
    entry.what = what
    entry.noted = noted
    entry.begun = begun
    entry.ended = now
    entry.before = before
    entry.after = held()
    entry.thread = i64(get_thread())
    atomic_store(ref(entry.mark), (node << KIND_BITS) | kind, "release")


@native
def stand_in(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    """Runs the kernel whose address lies before its description, and writes a record."""
    before = held()
    begun = clock()
    code = kernel_t((desc - 1)[0])(bufs, desc)
    write(KERNEL, raw(desc), None, -1, begun, before)
    return code


# ---- builtins
@native
def py_begin(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(kind, what, noted or None): the number of a new record, which is running; -1: none."""
    number = state.next
    entry = new_entry()
    if entry is None:
        return PyLong_FromLongLong(-1)
    entry.what = new_reference(args[1])
    entry.noted = None
    if args[2] != raw(NONE):
        entry.noted = new_reference(args[2])
    entry.ended = 0
    entry.thread = i64(get_thread())
    entry.before = held()
    entry.begun = clock()
    mark = (i64(-1) << KIND_BITS) | PyLong_AsLongLong(args[0])
    atomic_store(ref(entry.mark), mark, "release")
    return PyLong_FromLongLong(number)


@native
def py_end(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(record, number of a node or -1)."""
    now = clock()
    number = PyLong_AsLongLong(args[0])
    entry = ptr[TraceEntry](raw(0))
    if number >= 0:
        entry = entry_at(number)
    if entry is not None:
        entry.ended = now
        entry.after = held()
        entry.mark = (PyLong_AsLongLong(args[1]) << KIND_BITS) | (entry.mark & KIND)
    return new_reference(raw(NONE))


@native
def py_ticks(_self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    return PyLong_FromLongLong(clock())


@native
def py_note(_self: raw, args: ptr[raw], nargs: i64) -> raw:
    """(name, function, its arguments): the function's result; its run is written down."""
    before = held()
    begun = clock()
    result = PyObject_Vectorcall(args[1], args + 2, nargs - 2, None)
    write(BLOCK, new_reference(args[0]), None, -1, begun, before)
    return result


@native
def py_free(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(number of a chunk): is there one? It is given back."""
    return new_reference(raw(TRUE) if free_chunk(PyLong_AsLongLong(args[0])) else raw(FALSE))


@native
def py_take(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """The k-th record of the last profile, taken out, as a tuple; None where there is none."""
    entry = entry_at(state.base + PyLong_AsLongLong(args[0]))
    mark = i64(NOTHING)
    if entry is not None:
        mark = atomic_load(ref(entry.mark), "acquire")
    if mark == NOTHING:
        return new_reference(raw(NONE))
    result = PyTuple_New(WORDS + 1)
    if result is None:
        return result
    entry.mark = NOTHING
    kind = mark & KIND
    PyTuple_SetItem(result, 0, PyLong_FromLongLong(kind))
    words = ptr[i64](entry)
    for k in range(3, WORDS):
        PyTuple_SetItem(result, k, PyLong_FromLongLong(words[k]))
    PyTuple_SetItem(result, WORDS, PyLong_FromLongLong(mark >> KIND_BITS))
    if kind == KERNEL:
        PyTuple_SetItem(result, 1, PyLong_FromLongLong(i64(entry.what)))
        PyTuple_SetItem(result, 2, new_reference(raw(NONE)))
    else:
        PyTuple_SetItem(result, 1, entry.what)
        noted = entry.noted
        if noted is None:
            noted = new_reference(raw(NONE))
        PyTuple_SetItem(result, 2, noted)
    return result


# ---- a profile
begin_record: Callable[[int, Any, Any], int]
"""``begin(kind, what, noted)``: a new record's number. Made with the first profile, as the next."""
end_record: Callable[[int, int], None]  # ``end(number, node)``
_take: Callable[[int], Any]
note: Callable[..., Any]  # ``note(name, function, *given)``: runs it, and writes that down
_free: Callable[[int], bool]
_ticks: Callable[[], int]
_start = (0, 0)  # the clock, and the same in nanoseconds, when the profile began


def now() -> int:
    """Nanoseconds of the system's clock that only goes forward."""
    return time.clock_gettime_ns(MONOTONIC)


def prepare() -> None:
    """Compiles what a profile needs, and chooses the clock."""
    global begin_record, end_record, note, _free, _take, _ticks
    if "_take" in globals():
        return
    begin_record = bind(fast_def("begin", py_begin.spec().addr))
    end_record = bind(fast_def("end", py_end.spec().addr))
    _ticks = bind(fast_def("ticks", py_ticks.spec().addr))
    stand_in.spec().addr  # noqa: B018
    state.store(cycles=int(_has_even_cycles()))
    note = bind(fast_def("note", py_note.spec().addr))
    _free = bind(fast_def("free", py_free.spec().addr))
    _take = bind(fast_def("take", py_take.spec().addr))


def _has_even_cycles() -> bool:
    """Does the kernel itself tell the time by the processor's cycles? Then they are of one length,
    and the same on every core."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        with open(_CLOCKSOURCE, encoding="ascii") as file:
            return file.read().strip() == "tsc"
    except OSError:
        return False


def start(notes: int = 0, collect: Callable[..., Any] | None = None) -> None:
    """From now on records are written. notes: SHAPES, COLLECT; see ``native.profiled.noted``."""
    global _start
    prepare()
    wanted.np[0] = notes
    if collect is not None and _collecting != [collect]:
        _collecting[:] = [collect]
        collector.refer_to(collect)
    launched.watch(stand_in.spec().addr)
    state.store(base=int(state.next), lost=0)
    _start = _ticks(), now()
    state.store(on=1)


_collecting: list[Any] = []


def stop() -> tuple[list[Record], int]:
    """The records, by when they began, in nanoseconds of `now`, and how many were lost. No more are
    written."""
    state.store(on=0)
    ticks, end = _ticks(), now()
    launched.watch(0)
    count = min(int(state.next) - int(state.base), CHUNK * CHUNKS)
    first, started = _start
    length = (end - started) / max(ticks - first, 1)  # of a tick
    records = []
    for k in range(count):
        taken = _take(k)
        if taken is not None and taken[3] >= first:  # (what began before belongs to nobody)
            kind, what, noted, begun, ended, *rest = taken
            begun = started + int((begun - first) * length)
            ended = started + int((ended - first) * length) if ended else 0
            records.append(Record(kind, what, noted, begun, ended, *rest))
    for c in range(KEPT, CHUNKS):
        if not _free(c):
            break
    records.sort(key=lambda record: (record.begun, -record.ended))
    return records, int(state.lost)


def _after_fork() -> None:
    """A forked child is not profiled: the records are its parent's."""
    state.store(on=0, lock=0)
    launched.watch(0)


os.register_at_fork(after_in_child=_after_fork)
