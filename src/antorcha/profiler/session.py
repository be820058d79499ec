"""One profile at a time: switching it on and off, and what calls by the Python path write down.

While a session runs, ``modes.profiled`` is 1. The native path then writes a record around each call
that it serves (``call/native/profiled.py``), launches have a stand-in for their kernels
(``runtime/trace.py``), and the Python path and the Python engine call what is defined here. A
session sees all threads of the process, and no forked child.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from antorcha.core import modes
from antorcha.core.forks import held_over_forks
from antorcha.core.hooks import hooks
from antorcha.errors import GraphError
from antorcha.ops.kinds.record import Op
from antorcha.profiler.names import MOST_FRAMES
from antorcha.runtime import launched, trace
from antorcha.runtime.call import native
from antorcha.runtime.call.node import Node
from antorcha.runtime.memory import alloc
from antorcha.runtime.tensor import Tensor

Frames = list[tuple[CodeType, int]]


class ProfileOptions(NamedTuple):
    """What is noted of each call besides its time."""

    shapes: bool = False
    stacks: bool = False
    modules: bool = False


class Noted(NamedTuple):
    """What was noted of a call: a layout or a value for each argument; frames, innermost first;
    the modules that it is part of, outermost first."""

    arguments: tuple[Any, ...] | None
    frames: Frames
    modules: list[Any]


class Recorded(NamedTuple):
    """What a session has seen."""

    records: list[trace.Record]
    kernels: dict[int, Any]  # what each launch computes, by its description's address
    started: int  # nanoseconds of trace.now
    ended: int
    live: tuple[int, int]  # bytes that tensors held at either end
    lost: int
    threads: dict[int, str]  # names of those that live at the end


class ProfileSession:
    """Everything that runs between ``start`` and ``stop``."""

    def __init__(self, options: ProfileOptions) -> None:
        self.options = options
        self.notes = trace.SHAPES * options.shapes
        if options.stacks or options.modules:
            self.notes |= trace.COLLECT

    def start(self) -> None:
        """Raises GraphError (a RuntimeError) where another one runs."""
        global running
        prepare()
        with _lock:
            if running is not None:
                raise GraphError(
                    "profiler: another profile is already running in this process; there can be "
                    "one at a time. Leave its `with` block, or call its stop(), before this one "
                    "starts (inside of it, record_function('name') marks a part)."
                )
            running = self
        try:
            self.live = alloc.stats().live
            self.started = trace.now()
            modes.watch(True)
            trace.start(self.notes, collect)
            hooks.observe_block = observe_block if self.notes else trace.note
        except BaseException:  # Ctrl+C, say
            self.stop()
            raise

    def is_on(self) -> bool:
        return running is self

    def stop(self) -> Recorded | None:
        """What was recorded; None in a forked child, which has no part in it."""
        global running
        with _lock:
            if running is not self:
                return None
            running = None
            records, lost = trace.stop()
            modes.watch(False)
        live = self.live, alloc.stats().live
        threads = {t.ident: t.name for t in threading.enumerate() if t.ident is not None}
        return Recorded(
            records, launched.profiled(), self.started, trace.now(), live, lost, threads
        )


running: ProfileSession | None = None
_lock = held_over_forks(threading.RLock())


def prepare() -> None:
    """Compiles what profiling needs, so that it is not part of what is measured."""
    trace.prepare()
    hooks.profiled_backward = native.watch()


def _after_fork() -> None:
    global running
    if running is not None:
        running = None
        modes.watch(False)


os.register_at_fork(after_in_child=_after_fork)


# ---- what is noted of a call
def collect(arguments: tuple[Any, ...] | None) -> Noted | None:
    """The frames of who calls, and the modules among them."""
    session = running
    if session is None:
        return None
    frames: Frames = []
    modules: list[Any] = []
    frame: FrameType | None = sys._getframe(1)
    wants_modules = session.options.modules
    while frame is not None and len(frames) < MOST_FRAMES:
        code = frame.f_code
        frames.append((code, frame.f_lineno))
        if wants_modules and code.co_name == "__call__":
            owner = frame.f_locals.get("self")
            if hasattr(owner, "_modules") and hasattr(owner, "_parameters"):
                modules.append(owner)
        frame = frame.f_back
    return Noted(arguments, frames, modules[::-1])


def _note(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._layout
    if isinstance(value, (list, tuple)):
        return tuple([_note(each) for each in value])
    return value if type(value) in (int, float, str) else None


def _noted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As ``native.profiled.noted``."""
    session = running
    if session is None or not session.notes:
        return None
    arguments = None
    if session.options.shapes:
        arguments = tuple([_note(each) for each in (*args, *kwargs.values())])
    return collect(arguments) if session.notes & trace.COLLECT else arguments


def _node_of(result: Any) -> int:
    first = result[0] if type(result) is tuple and result else result
    node = first._fn if isinstance(first, Tensor) else None
    return int(node.seq) if isinstance(node, Node) and type(node.seq) is int else -1


# ---- what the Python path calls
def _observe_call(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[..., Any], *given: Any
) -> Any:
    """``run(*given)``, written down as a call of the op."""
    ours = isinstance(op, Op) or hasattr(op, "op")
    label = trace.label_of(op.name) if ours else op.name
    record = trace.begin_record(trace.OP, label, _noted(args, kwargs))
    node = -1
    try:
        result = run(*given)
        node = _node_of(result)
        return result
    finally:
        trace.end_record(record, node)


def _observe_node(node: Any, run: Callable[..., Any], *given: Any) -> Any:
    """``run(*given)``, written down as a run of the node."""
    record = trace.begin_record(trace.NODE, node.op, None)
    try:
        return run(*given)
    finally:
        trace.end_record(record, node.seq)


def observe_block(name: str, run: Callable[..., Any], *given: Any) -> Any:
    """``run(*given)``, written down under a name."""
    record = begin_block(name)
    try:
        return run(*given)
    finally:
        trace.end_record(record, -1)


def begin_block(name: str) -> int:
    """A record of that name, which runs until ``end_block``; -1: there is no profile."""
    return trace.begin_record(trace.BLOCK, name, _noted((), {}))


def end_block(record: int) -> None:
    trace.end_record(record, -1)


hooks.observe_call, hooks.observe_node = _observe_call, _observe_node
hooks.observe_block = observe_block
