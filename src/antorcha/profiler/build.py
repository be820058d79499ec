"""From records to events: what ran inside of what, whose memory it was, which call a node is of.

Records come in the order in which calls began, those of all threads in one list. In a thread they
nest by time. Memory is counted for the whole process: what changes between two moments (a record's
beginning or end) belongs to what was running in the thread of the second, or to nobody: that is a
``[memory]`` event, a tensor that was freed (or made) between calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from time import time_ns
from typing import Any, NamedTuple

from antorcha.core.dtypes import dtype
from antorcha.profiler import names
from antorcha.profiler.events import EventList, FunctionEvent, Kernel
from antorcha.profiler.session import Noted, Recorded
from antorcha.runtime import trace
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.trace import BLOCK, KERNEL, NODE, Record

FORWARD, BACKWARD, USER = 0, 1, 7  # scopes, as PyTorch numbers them


class _Item:
    """A record in its place."""

    __slots__ = ("children", "end", "event", "freed", "gained", "parent", "record")

    def __init__(self, record: Record, parent: _Item | None) -> None:
        self.record, self.parent = record, parent
        self.children: list[_Item] = []
        self.end = record.ended
        self.gained = self.freed = 0
        self.event: FunctionEvent | None = None


def build(seen: Recorded, *, memory: bool = False, flops: bool = False, shapes: bool = False,
          metadata: dict[str, Any] | None = None) -> EventList:  # fmt: skip
    """The events of a session. `shapes`: show them (they may have been noted for `flops` only)."""
    items = _nest(seen)
    freed_between, changes = _count_memory(items, seen)
    builder = _Builder(seen, shapes, flops)
    for item in items:
        builder.add(item)
    events, kernels = builder.events, builder.kernels
    if memory:
        events += [builder.memory_event(*each) for each in freed_between]
        events.sort(key=lambda event: event.time_range.start)
        metadata = {**(metadata or {}), "memory": builder.timeline(changes)}
    for k, event in enumerate([*events, *[e for e in kernels if e.cpu_parent is not None]]):
        event.id = k
    about = {
        "calendar_ns": time_ns() - trace.now() + seen.started, "started_ns": seen.started,
        "ended_ns": seen.ended, "threads": seen.threads, "lost": seen.lost, **(metadata or {}),
    }  # fmt: skip
    return EventList(
        events, profile_memory=memory, with_flops=flops, kernels=kernels, metadata=about
    )


# ---- nesting
def _nest(seen: Recorded) -> list[_Item]:
    """The records with their parents, in order."""
    items: list[_Item] = []
    open_in: dict[int, list[_Item]] = {}
    for record in seen.records:
        stack = open_in.setdefault(record.thread, [])
        while stack and stack[-1].end and stack[-1].end <= record.begun:
            stack.pop()
        item = _Item(record, stack[-1] if stack else None)
        if item.parent is not None:
            item.parent.children.append(item)
        stack.append(item)
        items.append(item)
    for item in items:  # (parents come first)
        if not item.end:  # it was running when the profile ended, or nobody could tell its end
            item.end = item.parent.end if item.parent is not None else seen.ended
    return items


# ---- memory
def _moments(items: list[_Item]) -> Iterator[tuple[int, int, _Item, bool]]:
    """(time, bytes held, item, does it begin?) of one thread, in order."""
    stack: list[_Item] = []
    for item in items:
        while stack and stack[-1] is not item.parent:
            last = stack.pop()
            if last.record.ended:
                yield last.end, last.record.after, last, False
        yield item.record.begun, item.record.before, item, True
        stack.append(item)
    while stack:
        last = stack.pop()
        if last.record.ended:
            yield last.end, last.record.after, last, False


_Change = tuple[int, int, _Item | None]
"""When what tensors hold has changed, to how many bytes, and by whom (None: between the calls)."""


def _count_memory(
    items: list[_Item], seen: Recorded
) -> tuple[list[tuple[int, int, int]], list[_Change]]:
    """Gives each item what it has allocated and freed itself. What remains, as (time, bytes,
    thread); and all changes in order."""
    by_thread: dict[int, list[_Item]] = {}
    for item in items:
        by_thread.setdefault(item.record.thread, []).append(item)
    between: list[tuple[int, int, int]] = []
    changes: list[_Change] = [(seen.started, seen.live[0], None)]
    last = seen.live[0]
    order = merge(*[_moments(each) for each in by_thread.values()], key=lambda moment: moment[0])
    for time, held, item, begins in order:
        owner = item.parent if begins else item
        change, last = held - last, held
        if change:
            changes.append((time, held, owner))
        if owner is None:
            if change:
                between.append((time, change, item.record.thread))
        elif change > 0:
            owner.gained += change
        else:
            owner.freed -= change
    if seen.live[1] != last:
        thread = items[-1].record.thread if items else 0
        between.append((seen.ended, seen.live[1] - last, thread))
        changes.append((seen.ended, seen.live[1], None))
    return between, changes


# ---- events
class _Kernel(NamedTuple):
    """What is known of a launch."""

    name: str
    details: dict[str, Any]
    flops: int


class _Builder:
    def __init__(self, seen: Recorded, shapes: bool, flops: bool) -> None:
        self.seen, self.shapes, self.flops = seen, shapes, flops
        self.events: list[FunctionEvent] = []
        self.kernels: list[FunctionEvent] = []
        self.calls: dict[int, _Item] = {}  # by the number of the node that they have made
        self.known: dict[int, _Kernel] = {}  # by the address of the launch's description

    def us(self, time: int) -> float:
        return (time - self.seen.started) / 1e3

    def add(self, item: _Item) -> None:
        """Makes the item's event; its parent has one."""
        record = item.record
        event = item.event = FunctionEvent(
            0, self.name_of(record), record.thread, self.us(record.begun), self.us(item.end)
        )
        if item.parent is not None:
            event.cpu_parent = item.parent.event
        event.bytes_allocated, event.bytes_freed = item.gained, item.freed
        event.cpu_memory_usage = item.gained - item.freed
        if record.kind == KERNEL:
            self.add_kernel(event, record)
        else:
            self.events.append(event)
            if event.cpu_parent is not None:
                event.cpu_parent.cpu_children.append(event)
            self.add_notes(event, record.noted)
            self.link(event, item)
        parent = event.cpu_parent
        while parent is not None:  # its memory is part of theirs
            parent.cpu_memory_usage += event.cpu_memory_usage
            parent = parent.cpu_parent

    def kernel_of(self, record: Record) -> _Kernel:
        found = self.known.get(record.what)
        if found is None:
            what = self.seen.kernels.get(record.what)
            found = self.known[record.what] = _Kernel(
                names.kernel_name(what), names.kernel_details(what), names.kernel_flops(what)
            )
        return found

    def name_of(self, record: Record) -> str:
        if record.kind == KERNEL:
            return self.kernel_of(record).name
        return str(getattr(record.what, "node_name", record.what))

    def add_kernel(self, event: FunctionEvent, record: Record) -> None:
        about = self.kernel_of(record)
        event.is_kernel = True
        if self.flops:
            event.flops = about.flops
        self.kernels.append(event)
        parent = event.cpu_parent
        if parent is None:  # launched by no op that anybody has heard of
            self.events.append(event)
        else:
            start = event.time_range.start
            parent.kernels.append(Kernel(event.name, 0, event.cpu_time_total, start, about.details))
            parent.flops += event.flops
            event.stack, event.module_hierarchy = parent.stack, parent.module_hierarchy
            # PyTorch's ops count what their kernels hold as their own, and so do these
            parent.bytes_allocated += event.bytes_allocated
            parent.bytes_freed += event.bytes_freed

    def add_notes(self, event: FunctionEvent, noted: Any) -> None:
        """Shapes, stack and module."""
        arguments = noted
        if isinstance(noted, Noted):
            arguments = noted.arguments
            event.stack = names.stack_of(noted.frames) if noted.frames else []
            event.module_hierarchy = names.hierarchy_of(noted.modules)
        if arguments is None:
            return
        shapes = [_shape(each) for each in arguments]
        if self.flops:
            event.flops += names.call_flops(event.name, shapes)
        if self.shapes:
            event.input_shapes = shapes
            event.input_dtypes = [_dtype(each) for each in arguments]
            event.concrete_inputs = [_value(each) for each in arguments]

    def link(self, event: FunctionEvent, item: _Item) -> None:
        """Calls and the nodes that they have made know each other by number."""
        record = item.record
        if record.kind == BLOCK:
            event.scope, event.is_user_annotation = USER, True
            return
        number = event.sequence_nr = record.number
        if number < 0:
            return
        made_by = self.calls.get(number)
        if record.kind == NODE:
            event.scope = BACKWARD
            if made_by is not None and made_by.event is not None:
                event.fwd_thread = made_by.record.thread
                event.stack = made_by.event.stack
                event.module_hierarchy = made_by.event.module_hierarchy
        elif made_by is None:
            self.calls[number] = item
        elif not _is_within(item, made_by):  # it gave back a tensor that it had not made
            event.sequence_nr = -1

    def timeline(self, changes: list[_Change]) -> list[tuple[float, int, str]]:
        """Changes of memory with the names of calls rather than of their kernels."""
        found = []
        for time, held, item in changes:
            while item is not None and item.record.kind == KERNEL and item.parent is not None:
                item = item.parent
            found.append((self.us(time), held, self.name_of(item.record) if item else ""))
        return found

    def memory_event(self, time: int, change: int, thread: int) -> FunctionEvent:
        event = FunctionEvent(0, "[memory]", thread, self.us(time), self.us(time))
        event.cpu_memory_usage = change
        event.bytes_allocated, event.bytes_freed = max(change, 0), max(-change, 0)
        return event


def _is_within(item: _Item, other: _Item) -> bool:
    at: _Item | None = item
    while at is not None and at is not other:
        at = at.parent
    return at is other


def _shape(note: Any) -> list[Any]:
    if isinstance(note, Layout):
        return list(note.shape)
    return [_shape(each) for each in note] if isinstance(note, tuple) and _tensors(note) else []


def _tensors(note: tuple[Any, ...]) -> bool:
    return any([isinstance(each, Layout) for each in note])


def _dtype(note: Any) -> str:
    if isinstance(note, Layout):
        kind: dtype = note.dtype
        return kind.name
    return "" if note is None or isinstance(note, tuple) else "Scalar"


def _value(note: Any) -> Any:
    if isinstance(note, tuple):
        return [] if _tensors(note) else list(note)
    return "" if note is None or isinstance(note, Layout) else note
