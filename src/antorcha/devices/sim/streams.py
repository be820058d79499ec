"""Orders of work on the simulated GPU: streams, and events in them.

While a program has a stream of its own, or a copy that does not wait is under way, nothing that a
stream is given is done before somebody asks for it: a wait, an event, a synchronise, or the host,
which reads (``.cpu()``, ``.item()``, printing) when the current stream is done. Who forgets to wait
finds memory that was never written, or that is nobody's any more, each time; on a GPU only now and
then. Otherwise what is asked for is done at once.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from antorcha.core.device import Device
from antorcha.core.forks import held_over_forks
from antorcha.core.hooks import set_stream_of
from antorcha.errors import DeviceError, MissingFeature
from antorcha.runtime.memory.storage import base_of

if TYPE_CHECKING:
    from antorcha.runtime.tensor import Tensor

Work = Callable[[], None]
_lock = held_over_forks(threading.RLock())


class Point:
    """A point in an order of work: has all that comes before it been done?"""

    __slots__ = ("passed",)

    def __init__(self) -> None:
        self.passed = False

    def pass_by(self) -> None:
        """It has."""
        self.passed = True


class WorkQueue:
    """What a stream was given and has not done, the oldest first."""

    def __init__(self) -> None:
        self.work: deque[Work] = deque()

    def give(self, work: Work, at_once: bool = True) -> None:
        """Takes some work; it is done now where it may be (``at_once``) and nothing else waits. No
        lock is taken: what the collector finds gives memory back from within anything."""
        if at_once and not is_delayed():
            work()
            return
        self.work.append(work)
        _busy[self] = None

    def mark(self) -> Point:
        """The end of what it was given so far."""
        point = Point()
        self.give(point.pass_by)
        return point

    def wait_for(self, point: Point, other: WorkQueue) -> None:
        """What comes next waits for a point in another's order."""
        self.give(lambda: other.run(point))

    def run(self, to: Point | None = None) -> None:
        """Does the work, all of it or as far as a point. What raises is over, too."""
        with _lock:
            while self.work and not (to is not None and to.passed):
                try:
                    self.work.popleft()()
                finally:
                    if not self.work:
                        _busy.pop(self, None)
                        if self.work:  # (given meanwhile)
                            _busy[self] = None


_busy: dict[WorkQueue, None] = {}
_own: weakref.WeakSet[Stream] = weakref.WeakSet()
"""The queues with work, and the streams of programs."""
default = WorkQueue()


def is_delayed() -> bool:
    """Does work wait until somebody asks for it?"""
    return bool(_busy or _own)


class _CurrentStream(threading.local):
    """A thread's current stream."""

    def __init__(self) -> None:
        self.stream: Stream | None = None


_here = _CurrentStream()


def current() -> WorkQueue:
    """What the thread's current stream was given."""
    return default if _here.stream is None else _here.stream._stream


def synchronize(device: Any = None) -> None:
    """Does all that any stream was given."""
    while _busy:
        next(iter(_busy)).run()


def release_after(release: Work, home: WorkQueue, others: list[WorkQueue] | None) -> None:
    """Has memory given back in the order of its stream, when others that use it have come as far as
    they have been asked to; None: all of them."""
    if is_delayed():
        for other in [*_busy] if others is None else others:
            home.wait_for(other.mark(), other)
    home.give(release)


class Stream:
    """An order of work on the simulated GPU, as ``torch.cuda.Stream`` is on a real one.

    >>> import antorcha as torch
    >>> x, side = torch.ones(2).to("sim"), torch.sim.Stream()
    >>> with torch.sim.stream(side):
    ...     y = x + 1
    >>> y  # nobody has waited
    tensor([nan, nan], device='sim')
    >>> torch.sim.current_stream().wait_stream(side)
    >>> y
    tensor([2., 2.], device='sim')
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        if device is not None and Device(device).type != "sim":
            raise DeviceError(f"torch.sim.Stream: a stream of sim is not for {Device(device)}")
        self._stream, self.priority, self.device = WorkQueue(), priority, Device("sim")
        self._outside: list[Stream | None] = []
        _own.add(self)
        set_stream_of("sim", _on_stream_of)

    def wait_event(self, event: Event) -> None:
        """What comes next in this stream waits for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What comes next in this stream waits for what another was given so far."""
        self._stream.wait_for(stream._stream.mark(), stream._stream)

    def record_event(self, event: Event | None = None) -> Event:
        """Marks the end of what the stream was given so far: by a new event, if none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Is all its work done?"""
        return not self._stream.work

    def synchronize(self) -> None:
        """Does its work."""
        self._stream.run()

    def __enter__(self) -> Stream:
        self._outside.append(_here.stream)
        _here.stream = self
        return self

    def __exit__(self, *_: object) -> None:
        _here.stream = self._outside.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._stream is other._stream

    def __hash__(self) -> int:
        return hash(self._stream)


class DefaultStream(Stream):
    """The stream that is there from the beginning: it delays nothing."""

    def __init__(self) -> None:
        self._stream, self.priority, self.device = default, 0, Device("sim")
        self._outside = []


@contextlib.contextmanager
def _on_stream_of(tensor: Tensor) -> Iterator[None]:
    """See ``hooks.stream_of``."""
    if not is_delayed():
        set_stream_of("sim", None)
    owner = base_of(tensor._storage).owner
    before, queue = current(), getattr(owner, "queue", None)
    if queue is None or queue is before:
        yield
        return
    there = DefaultStream()
    there._stream = queue
    queue.wait_for(before.mark(), before)
    with there:
        yield
    before.wait_for(queue.mark(), queue)


class Event:
    """A point in a stream of the simulated GPU. It has no clock: times cannot be asked for."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self._point: Point | None = None
        self._queue = default

    def record(self, stream: Stream | None = None) -> None:
        """Marks the end of what a stream, by default the current one, was given so far."""
        self._queue = current() if stream is None else stream._stream
        self._point = self._queue.mark()

    def wait(self, stream: Stream | None = None) -> None:
        """What comes next in a stream, by default the current one, waits for the event."""
        if self._point is not None:
            (current() if stream is None else stream._stream).wait_for(self._point, self._queue)

    def query(self) -> bool:
        """Is the work before it done? True where it was never recorded."""
        return self._point is None or self._point.passed

    def synchronize(self) -> None:
        """Does the work before it."""
        if self._point is not None:
            self._queue.run(self._point)

    def elapsed_time(self, end_event: Event) -> float:
        """Not available: the simulator has no clock."""
        raise MissingFeature("torch.sim.Event.elapsed_time: the simulated GPU has no clock")


def current_stream(device: Any = None) -> Stream:
    """The stream that work on ``sim`` is given to, in this thread."""
    return DefaultStream() if _here.stream is None else _here.stream


def default_stream(device: Any = None) -> Stream:
    """The stream that is there from the beginning."""
    return DefaultStream()


def stream(stream: Stream) -> Stream:
    """A block inside which a stream is the current one."""
    return stream
