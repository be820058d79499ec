"""``torch.autograd.profiler``: which ops ran, forward and backward, and how long they took.

While a profile is on, the thread is in the PROFILER mode: each call of an op and each run of a node
enters and leaves an event. Off, it costs nothing.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from antorcha import modes
from antorcha.autograd import engine
from antorcha.autograd.profiler_events import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
)
from antorcha.errors import GraphError
from antorcha.ops.record import Op
from antorcha.runtime.call import path
from antorcha.runtime.tensor import Tensor

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "profile", "record_function"]

_SHOWN = {"to_dtype": "_to_copy", "full_layout": "full", "copy_": "copy_"}


class _Active(threading.local):
    profile: profile | None = None


_active = _Active()


class _Observed:
    """An event that lasts as long as the block."""

    __slots__ = ("event", "name", "shapes")

    def __init__(self, name: str, shapes: list[list[int]]) -> None:
        self.name, self.shapes = name, shapes
        self.event: FunctionEvent | None = None

    def __enter__(self) -> None:
        running = _active.profile
        if running is not None:
            self.event = running.begin(self.name, self.shapes)

    def __exit__(self, *_: object) -> None:
        running = _active.profile
        if running is not None and self.event is not None:
            running.end(self.event)


def _observe_call(op: Any, args: tuple[Any, ...]) -> _Observed:
    running = _active.profile
    shapes = []
    if running is not None and running.record_shapes:
        shapes = [list(a._layout.shape) if isinstance(a, Tensor) else [] for a in args]
    name = op.name
    if isinstance(op, Op) or hasattr(op, "op"):
        name = "aten::" + _SHOWN.get(name, name)
    return _Observed(name, shapes)


def _observe_node(name: str) -> _Observed:
    return _Observed(name, [])


path.observe = _observe_call
engine.observe = _observe_node


class profile:
    """Records the ops that run in this thread inside the block.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.profiler.profile.

    >>> with torch.autograd.profiler.profile() as prof:
    ...     y = torch.ones(2) * 2
    >>> table = prof.key_averages().table(sort_by="self_cpu_time_total")
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes
        self.entered = False
        self.function_events: EventList | None = None
        self._open: list[FunctionEvent] = []
        self._events: list[FunctionEvent] = []

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise GraphError("Profiler context manager is not reentrant")
        if _active.profile is not None:
            raise GraphError("Can't start Kineto profiler: a profiler is already running here")
        self.entered = True
        _active.profile = self
        self._start = perf_counter_ns()
        modes.set_word(modes.state.word | modes.PROFILER)
        return self

    def __exit__(self, *_: object) -> None:
        if not self.enabled:
            return
        modes.set_word(modes.state.word & ~modes.PROFILER)
        _active.profile = None
        self.function_events = EventList(self._events, self.record_shapes)

    def begin(self, name: str, shapes: list[list[int]]) -> FunctionEvent:
        """An event starts, inside of the one that is open."""
        event = FunctionEvent(
            len(self._events) + 1, name, threading.get_ident(), self._now(), shapes
        )
        if self._open:
            event.cpu_parent = self._open[-1]
            event.cpu_parent.cpu_children.append(event)
        self._events.append(event)
        self._open.append(event)
        return event

    def end(self, event: FunctionEvent) -> None:
        """An event ends, and whatever an exception has left open inside of it."""
        while self._open and self._open.pop() is not event:
            pass
        event.time_range = Interval(event.time_range.start, self._now())

    def _now(self) -> float:
        return (perf_counter_ns() - self._start) / 1e3

    def _ended(self) -> EventList:
        if self.function_events is None:
            raise GraphError("Profiler didn't finish running")
        return self.function_events

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """The events of each name added up."""
        return self._ended().key_averages(*args, **kwargs)

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        return self._ended().total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Every event, as a text table."""
        return self._ended().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for ``chrome://tracing``."""
        self._ended().export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        return self._ended().self_cpu_time_total

    def __str__(self) -> str:
        return (
            "<unfinished torch.autograd.profile>"
            if self.function_events is None
            else str(self.function_events)
        )

    __repr__ = __str__


class record_function:
    """Names a block of code, or a function, in the profile.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.profiler.record_function.html.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        self._observed = _Observed(self.name, [])
        self._observed.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._observed.__exit__(*error)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return fn(*args, **kwargs)

        return inner
