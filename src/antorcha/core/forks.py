"""Forks: what a child needs of the threads that it does not have.

Only the thread that forks lives on in the child. What another one was in the middle of stays as it
was: a lock that it held is held for ever, a module that it was importing is never complete. So
before a fork, threads of ours come to rest, and code that is loaded at first use is loaded
(``lazy.load_deferred``); then all our locks are taken, and given back on both sides afterwards.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from antorcha.core.lazy import load_deferred

__all__ = ["held_over_forks", "rests_over_forks"]

Lock = TypeVar("Lock")
PATIENCE: Final = 10.0  # seconds; then a fork goes on without a lock that is never given back
_rests: list[Callable[[], None]] = []
_locks: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


class _Mine(threading.local):
    """Several threads may fork at once."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self.interrupted = False


_mine = _Mine()


def held_over_forks(lock: Lock) -> Lock:
    """The lock, which forks take first: a child finds it free, and what it guards complete."""
    _locks[id(lock)] = lock
    return lock


def rests_over_forks(rest: Callable[[], None], go_on: Callable[[], None]) -> None:
    """Calls `rest` before a fork, which may wait for a thread, and `go_on` in the parent after it;
    a child has none of its parent's threads."""
    _rests.append(rest)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_parent=go_on)


def _before() -> None:
    try:
        _prepare()
    except KeyboardInterrupt:  # Python ignores what a hook raises: it comes again after the fork
        _mine.interrupted = True
        _prepare()


def _prepare() -> None:
    if len(sys._current_frames()) > 1:  # alone, nobody else can be in the middle of an import
        with _hooks_come_in_pairs():
            for rest in _rests:
                rest()
            load_deferred()
    # Locks come last: a thread that is importing a module may need them to complete it.
    _take_all(list(_locks.values()))


@contextlib.contextmanager
def _hooks_come_in_pairs() -> Iterator[None]:
    """What is imported within the block may register hooks (``logging`` takes a lock before a fork,
    and releases it afterwards). Those for afterwards will run, so those for before it must, too."""
    register: Callable[..., None] = os.register_at_fork
    late: list[Callable[[], Any]] = []

    def noting(**hooks: Callable[[], Any]) -> None:
        register(**hooks)
        if "before" in hooks:
            late.append(hooks["before"])

    os.register_at_fork = noting  # type: ignore[assignment]
    try:
        yield
    finally:
        os.register_at_fork = register
    for hook in reversed(late):
        hook()


def _take_all(locks: list[Any]) -> None:
    """Takes all locks. It never waits for one while it holds another, so they need no order."""
    deadline = time.monotonic() + PATIENCE
    awaited: Any = None
    while True:
        left = deadline - time.monotonic()
        if awaited is not None and awaited.acquire(timeout=max(left, 0)):
            _mine.held.append(awaited)
        for lock in locks:
            if lock is awaited:
                continue
            if lock.acquire(blocking=False):
                _mine.held.append(lock)
            elif left > 0:
                _give_back()
                awaited = lock
                break
        else:
            return


def _after_in_parent() -> None:
    _give_back()
    if _mine.interrupted:
        _mine.interrupted = False
        again = threading.Timer(0.05, _thread.interrupt_main)  # by then the hooks have run
        again.daemon = True
        again.start()


def _after_in_child() -> None:
    _give_back()
    _mine.interrupted = False


def _give_back() -> None:
    while _mine.held:
        _mine.held.pop().release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
