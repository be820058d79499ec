"""Traces for a browser: the Trace Event Format that ``chrome://tracing`` and Perfetto read.

The format is described in "Trace Event Format" (Google, docs.google.com/document/d/1CvAClvFfyA5R-
PhYUmn5OOQtYMH4h6I0nSsKchNAySU). Times are microseconds.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

from antorcha.core.files import write_whole
from antorcha.profiler.events import EventList, FunctionEvent


def write(events: EventList, path: str) -> None:
    """Writes the trace, compressed if the path ends in ``.gz``. The file is whole or not there."""
    write_whole(path, json.dumps(trace_of(events)))


def trace_of(events: EventList) -> dict[str, Any]:
    """The whole trace as a JSON object."""
    about = events.metadata
    user = about.get("user", {})
    tids = _numbers(events)
    return {
        "schemaVersion": 1,
        "deviceProperties": [],
        "host_name": socket.gethostname(),
        "displayTimeUnit": "ms",
        "traceName": "antorcha profiler",
        "profile_memory": int(events.profile_memory),
        "with_flops": int(events.with_flops),
        **user,
        "traceEvents": [*_names(events, tids), *_spans(events, tids), *_arrows(events, tids)],
    }


def _numbers(events: EventList) -> dict[int, int]:
    """A small number for each thread, the main one's first. (Python's own idents are addresses:
    Perfetto reads 32 bits, and would lay all threads that do not fit on one track.)"""
    threads = list(dict.fromkeys([event.thread for event in [*events, *events.kernels]]))
    threads.sort(key=lambda thread: events.metadata.get("threads", {}).get(thread) != "MainThread")
    return {thread: os.getpid() + k for k, thread in enumerate(threads)}


def _names(events: EventList, tids: dict[int, int]) -> Iterator[dict[str, Any]]:
    """What the process and its threads are called."""
    pid = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": pid, "ts": 0,
           "args": {"name": "python"}}  # fmt: skip
    known = events.metadata.get("threads", {})
    for thread, tid in tids.items():
        name = known.get(thread, "a thread that has ended")
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0,
               "args": {"name": f"{name} ({thread})"}}  # fmt: skip


def _spans(events: EventList, tids: dict[int, int]) -> Iterator[dict[str, Any]]:
    pid = os.getpid()
    ops = [event for event in events if not event.is_kernel]
    for event in sorted([*ops, *events.kernels], key=lambda e: e.time_range.start):
        start = event.time_range.start
        if event.name == "[memory]":
            yield {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": pid,
                   "tid": tids[event.thread], "ts": start,
                   "args": {"Bytes": event.cpu_memory_usage, "Device Type": 0}}  # fmt: skip
            continue
        yield {"ph": "X", "cat": _category(event), "name": event.name, "pid": pid,
               "tid": tids[event.thread], "ts": start, "dur": event.cpu_time_total,
               "args": _arguments(event, tids)}  # fmt: skip


def _category(event: FunctionEvent) -> str:
    if event.is_kernel:
        return "kernel"
    return "user_annotation" if event.is_user_annotation else "cpu_op"


def _arguments(event: FunctionEvent, tids: dict[int, int]) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": event.id}
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
    if event.fwd_thread is not None:
        args["Fwd thread id"] = tids.get(event.fwd_thread, event.fwd_thread)
    if event.input_shapes:
        args["Input Dims"] = event.input_shapes
        args["Input type"] = event.input_dtypes
        args["Concrete Inputs"] = [str(value) for value in event.concrete_inputs]
    if event.stack:
        args["Call stack"] = ";".join(event.stack)
    if event.module_hierarchy:
        args["Module Hierarchy"] = event.module_hierarchy
    if event.bytes_allocated or event.bytes_freed:
        args["Bytes allocated"], args["Bytes freed"] = event.bytes_allocated, event.bytes_freed
    if event.flops:
        args["Flops"] = event.flops
    parent = event.cpu_parent
    if event.is_kernel and parent is not None:
        args["Launched by"] = parent.name
        for kernel in parent.kernels:
            if kernel.start == event.time_range.start:
                args.update(kernel.details)
    return args


def _arrows(events: EventList, tids: dict[int, int]) -> Iterator[dict[str, Any]]:
    """From each call to the node that it has made: forward to backward."""
    pid = os.getpid()
    calls: dict[int, FunctionEvent] = {}
    for event in events:
        if event.sequence_nr >= 0 and event.scope != 1:
            calls.setdefault(event.sequence_nr, event)
    for event in events:
        call = calls.get(event.sequence_nr) if event.scope == 1 else None
        if call is not None:
            both = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.sequence_nr, "pid": pid}
            yield {"ph": "s", **both, "tid": tids[call.thread], "ts": call.time_range.start}
            yield {"ph": "f", **both, "tid": tids[event.thread], "ts": event.time_range.start,
                   "bp": "e"}  # fmt: skip
