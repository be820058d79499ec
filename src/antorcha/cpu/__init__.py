"""``torch.cpu``: the CPU as a device among others, for programs that name none.

It has one device, whose calls are done when they return: streams and events have nothing to wait
for. See https://docs.pytorch.org/docs/stable/cpu.html.
"""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import no_such_name

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count",
    "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """True: there is a CPU."""
    return True


def is_initialized() -> bool:
    """True: the CPU needs no preparation."""
    return True


def device_count() -> int:
    """1, however many cores there are."""
    return 1


def current_device() -> str:
    """``"cpu"``, the only one."""
    return "cpu"


def set_device(device: Any) -> None:
    """There is no other to choose."""


def synchronize(device: Any = None) -> None:
    """Calls are done when they return."""


class Stream:
    """An order of calls: on the CPU, that in which they are made."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Stream) -> None:
        """What that stream was given is done."""

    def record_event(self) -> None:
        """What this stream was given is done."""

    def wait_event(self, event: Event) -> None:
        """What came before the event is done."""


class Event:
    """A point in a stream: on the CPU it has passed when it is recorded."""

    def query(self) -> bool:
        """Is what came before it done?"""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Marks a point in a stream."""

    def synchronize(self) -> None:
        """What came before it is done."""

    def wait(self, stream: Stream | None = None) -> None:
        """What came before it is done."""


_current = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream that ``stream`` chose, or the one there is without."""
    return _current


class StreamContext:
    """Inside, ``current_stream()`` is the given one."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        global _current
        self.before = _current
        if self.stream is not None:
            _current = self.stream

    def __exit__(self, *_: object) -> None:
        global _current
        _current = self.before


def stream(stream: Stream | None) -> StreamContext:
    """A block inside which ``current_stream()`` is the given one."""
    return StreamContext(stream)


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module("antorcha.cpu.amp")
    raise no_such_name("torch.cpu", name, __all__)
