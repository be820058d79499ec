"""Contexts: those of ``multiprocessing``, whose queues, pipes and pools carry tensors."""

from __future__ import annotations

import multiprocessing
from typing import Any

from antorcha.multiprocessing import parcels, pool, queue

__all__ = ["get_context"]


class _Sharing:
    """What a context makes that carries tensors."""

    def Queue(self: Any, maxsize: int = 0) -> queue.Queue:
        """A queue between processes."""
        return queue.Queue(maxsize, ctx=self.get_context())

    def JoinableQueue(self: Any, maxsize: int = 0) -> queue.JoinableQueue:
        """A queue that can be joined."""
        return queue.JoinableQueue(maxsize, ctx=self.get_context())

    def SimpleQueue(self: Any) -> queue.SimpleQueue:
        """A queue without a limit and without threads."""
        return queue.SimpleQueue(ctx=self.get_context())

    def Pipe(self, duplex: bool = True) -> tuple[parcels.Connection, parcels.Connection]:
        """Two connected ends."""
        return parcels.Pipe(duplex)

    def Pool(
        self: Any, processes: int | None = None, initializer: Any = None, initargs: Any = (),
        maxtasksperchild: int | None = None,
    ) -> pool.Pool:  # fmt: skip
        """Worker processes that calls are handed to."""
        return pool.Pool(
            processes, initializer, initargs, maxtasksperchild, context=self.get_context()
        )


def _with_sharing(method: str) -> Any:
    base = type(multiprocessing.get_context(method))
    return type(base.__name__, (_Sharing, base), {"__module__": __name__})()


_contexts: dict[str, Any] = {}


def get_context(method: str | None = None) -> Any:
    """The context of a start method: ``"fork"``, ``"spawn"`` or ``"forkserver"``.

    It is a context of ``multiprocessing`` whose queues, pipes and pools carry tensors in shared
    memory. None means the method that ``set_start_method`` chose, or the system's own.
    ValueError for a method that there is not.
    """
    if method is None:
        method = multiprocessing.get_start_method()
    if method not in _contexts:
        _contexts[method] = _with_sharing(method)
    return _contexts[method]
