"""``torch.cpu``: the CPU, asked in the way of the other devices. Its work is done in order.

See https://docs.pytorch.org/docs/stable/cpu.html.
"""

from __future__ import annotations

import contextlib
from typing import Any

from antorcha.errors import explain_missing

__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count",
           "is_available", "is_initialized", "set_device", "stream", "synchronize"]  # fmt: skip


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1: however many cores there are, it is one device.

    >>> torch.cpu.device_count(), torch.cpu.current_device()
    (1, 'cpu')
    """
    return 1


def current_device() -> str:
    """``'cpu'``."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing to choose: there is one."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for: an op is done when its call returns."""


class Stream:
    """The CPU's one stream of work."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for: work is done in order."""

    def record_event(self) -> None:
        """Nothing to record: work is done in order."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for: work is done in order."""


class Event:
    """A point in the CPU's work, which is done when it is reached."""

    def query(self) -> bool:
        """True: what came before is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing to record: work is done in order."""

    def synchronize(self) -> None:
        """Nothing to wait for: work is done in order."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for: work is done in order."""


_current = Stream()


def current_stream(device: Any = None) -> Stream:
    """The CPU's stream."""
    return _current


class StreamContext(contextlib.AbstractContextManager[Any]):
    """A context in which work goes to a stream: there is one."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __exit__(self, *_: object) -> None:
        """Leaves; nothing has changed."""


def stream(stream: Any) -> StreamContext:
    """A context in which work goes to a stream: there is one."""
    return StreamContext(stream)


explain_missing("torch.cpu", globals())
