"""Compiles in a thread of its own what the program will want later, while the program runs.

LLVM works without the interpreter lock, so this takes another core; only the lowering, which is
Python, takes turns with the program. The program's own kernels come first: they are met in bursts,
so nothing is compiled ahead while it compiles, nor within `PAUSE` of that. One function is compiled
at a time, under the engine's lock: who needs LLVM meanwhile waits for one function at most.

The thread rests over a fork, and goes on in the parent; the child has none until ``start`` is
called there. It ends before the process does: LLVM must not be at work when its library is torn
down. What has been compiled by then is on the disk, and the next process goes on from there.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from antorcha.core.forks import held_over_forks, rests_over_forks
from antorcha.lang.native import progress
from antorcha.lang.native.engine import compile_ahead

if TYPE_CHECKING:
    from antorcha.lang.native.function import Spec

PAUSE = 0.1  # seconds since the program last compiled
LOOK = 0.02  # seconds between two looks at that
TURN = 0.002  # seconds between two functions, for who waits for the engine's lock
SWITCH = 0.0005  # seconds
_all: weakref.WeakSet[Ahead] = weakref.WeakSet()


class Ahead:
    """Functions to compile: `wanted` names them, in the thread; once all are loaded the thread
    calls `ready`, or `failed` with what went wrong."""

    def __init__(
        self,
        wanted: Callable[[], Iterable[Spec]],
        ready: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._wanted, self._ready, self._failed = wanted, ready, failed
        self._thread: threading.Thread | None = None
        self._starting = held_over_forks(threading.Lock())
        self._stop = threading.Event()
        self.done = self.resting = False
        _all.add(self)

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begins, or goes on where it was stopped; does nothing where it runs or is done."""
        with self._starting:
            if self.done or self.running:
                return
            self._stop = threading.Event()
            thread = threading.Thread(target=self._run, name=progress.SILENT, daemon=True)
            with contextlib.suppress(RuntimeError):  # no more threads, or none so late
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        """Returns when the thread has ended: at most a function later."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        try:
            with _quick_turns():
                if self._turn() and self._compile(list(self._wanted())):
                    self._ready()
                    self.done = True
        except Exception as error:  # the program can do without, and is told
            self.done = True
            self._failed(error)

    def _compile(self, wanted: list[Spec]) -> bool:
        """Compiles and loads functions, each after those that it links to; False if stopped."""
        pending, met = wanted[::-1], set(wanted)
        for spec in pending:  # grows
            if not self._turn():
                return False
            more = [each for each in compile_ahead(spec) if each not in met]
            met.update(more)
            pending += more
        for spec in reversed(pending):
            if not self._turn():
                return False
            _ = spec.addr
        return True

    def _turn(self) -> bool:
        """Waits until the program compiles nothing; False if it is time to stop."""
        stopped = self._stop.wait(TURN)
        while not stopped and not progress.shown.idle(PAUSE):
            stopped = self._stop.wait(LOOK)
        return not stopped


@contextlib.contextmanager
def _quick_turns() -> Iterator[None]:
    """A thread that wants the interpreter lock waits for it as long as the program computes in
    Python, up to the switch interval: after every call of LLVM, of which there are thousands."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    ours = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:  # the program has not set another
            sys.setswitchinterval(before)


# ---- forks and the end
def _rest() -> None:
    for each in list(_all):
        each.resting = each.running
        each.stop()


def _go_on() -> None:
    for each in list(_all):
        if each.resting:
            each.resting = False
            each.start()


def _end() -> None:
    for each in list(_all):
        each.stop()


rests_over_forks(_rest, _go_on)
atexit.register(_end)
