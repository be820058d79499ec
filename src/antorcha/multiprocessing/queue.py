"""Queues of ``multiprocessing`` that carry tensors in shared memory."""

from __future__ import annotations

from multiprocessing import queues
from typing import Any

from antorcha.errors import explain_missing
from antorcha.multiprocessing.parcels import Connection, Parcel, Pipe, unpack

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]


def _replace_pipe(queue: Any) -> None:
    queue._reader.close()
    queue._writer.close()
    queue._reader, queue._writer = Pipe(duplex=False)


class Queue(queues.Queue):  # type: ignore[type-arg]
    """``multiprocessing.Queue``; tensors come out over the memory that they went in with.

    What was put in can be taken out after the process that put it there has ended.
    """

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        _replace_pipe(self)
        self._reset()  # type: ignore[attr-defined]  # it keeps the pipe's methods

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object in."""
        super().put(Parcel(obj), block, timeout)


class JoinableQueue(queues.JoinableQueue):  # type: ignore[type-arg]
    """``multiprocessing.JoinableQueue``, likewise."""

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        _replace_pipe(self)
        self._reset()  # type: ignore[attr-defined]

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object in."""
        super().put(Parcel(obj), block, timeout)


class SimpleQueue(queues.SimpleQueue):  # type: ignore[type-arg]
    """``multiprocessing.SimpleQueue``, likewise."""

    _reader: Connection
    _writer: Connection
    _rlock: Any
    _wlock: Any

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        _replace_pipe(self)
        self._poll = self._reader.poll

    def get(self) -> Any:
        """Takes the next object out; waits for one."""
        with self._rlock:
            parcel = self._reader.recv_parcel()
        return unpack(*parcel)

    def put(self, obj: Any) -> None:
        """Puts an object in."""
        with self._wlock:
            self._writer.send(obj)


explain_missing("torch.multiprocessing.queue", globals())
