"""The modes of a thread: one word that says whether gradients are recorded and by what rules.

Almost always every thread is in the default mode (word 0). ``busy`` counts the reasons to look
closer: the threads that are in another mode, the blocks of ``hear_every_call``, one while a
profile is on, one while the default device is not the CPU, plus the tensors of
``note_stale_views``. While it is 0 the call path skips the thread-local look-up, which would cost
as much as the rest of the key. ``special`` counts the reasons that are no mode of a thread, but for
the profile, which is ``watched``.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any

from antorcha.core.forks import held_over_forks

NO_GRAD = 1  # operations are not recorded
INFERENCE = 2  # nor are versions kept: results are inference tensors (always with NO_GRAD)
ANOMALY = 4  # nodes remember the line that made them; NaN gradients are errors
AUTOCAST_CPU, AUTOCAST_CUDA, AUTOCAST_MPS = 16, 32, 2048
# arguments may be cast first: those on that device
AUTOCAST = AUTOCAST_CPU | AUTOCAST_CUDA | AUTOCAST_MPS
SAVED_HOOKS = 64  # saved tensors go through the user's pack hook
TAPE = 128  # plans that run are noted (runtime.call.tape)
INTERCEPT = 512  # plans are run by whoever asked for it (runtime.call.intercepting)
SYMBOLS = 1024  # plans are made with symbols for sizes, noted and not run (with TAPE)
ORIGINS = 256  # nodes remember the line that made them, and nothing else (see ANOMALY)

PLAIN = NO_GRAD  # any bit above this one needs the careful path


class _ThreadModes(threading.local):
    word: int = 0


state = _ThreadModes()
busy: int = 0
profiled: int = 0  # 1 while a profile is on, in whatever thread; ``busy`` counts it
special: int = 0
subclasses: bool = False  # may arguments be of a class with ``__torch_function__``?
batched: int = 0  # how many batches of vmap run, in whatever threads
duals: int = 0  # how many threads are in a level of forward-mode differentiation
sparse: bool = False  # has anybody made a sparse tensor? (Then calls without a plan look for them.)
blocks: list[tuple[type, int, int]] = []
"""The context managers that do no more than to set and clear bits: (class, set, cleared)."""
_lock = held_over_forks(threading.RLock())  # a collection inside of it may end a stale base


def _count(more: int, more_special: int) -> None:
    """The one that changes ``busy`` and ``special``. (The native path keeps ``busy`` and the words
    of threads itself, and puts its own in place of this, ``state``, ``set_word`` and ``busy``.)"""
    global busy, special
    busy += more  # no other thread comes in between: nothing is called
    special += more_special


count = _count


def _set_word(word: int) -> int:
    """Puts this thread in the mode ``word``; gives the old one."""
    old = state.word
    if old != word:
        if not old:
            count(1, 0)
        elif not word:
            count(-1, 0)
        state.word = word
    return old


def _set_word_locked(word: int) -> int:
    with _lock:
        return _set_word(word)


_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
set_word = _set_word if _HAS_GIL else _set_word_locked


def watch(on: bool) -> None:
    """A profile begins, or is over."""
    global profiled
    with _lock:
        more = int(on) - profiled
        count(more, 0)
        profiled += more


def note_default_device(more: int) -> None:
    """New tensors are (1), or are no longer (-1), made on another device than the CPU: what is
    known of calls that name no device holds for the CPU."""
    with _lock:
        count(more, more)


_stale_bases: set[Any] = set()


def note_stale_views(base: Any) -> None:
    """A tensor that has views starts to require a gradient by a write: its views must too, though
    nothing on them says so. Calls look at the base of each operand while this one lives."""

    def gone(ref: Any) -> None:
        with _lock:
            _stale_bases.discard(ref)
            count(-1, -1)

    with _lock:
        _stale_bases.add(weakref.ref(base, gone))
        count(1, 1)


def grad_enabled() -> bool:
    return not state.word & NO_GRAD


def wants_gradient(*tensors: Any) -> bool:
    """Are operations on such tensors recorded, or followed in forward mode?"""
    return bool(duals) or (grad_enabled() and any([t.requires_grad for t in tensors]))


def others_asked() -> bool:
    """Have others than the op a say in a call (``hooks``): classes, batches, duals, sparse ones?"""
    return bool(sparse or subclasses or batched or duals)


_lookers = 0


def look_at_arguments(more: int) -> None:
    """Calls in Python look at their arguments' classes while there is a reason to: 1 adds one, -1
    takes it away. (The native path serves none but Tensor and Parameter anyway.)"""
    global _lookers, subclasses
    with _lock:
        _lookers += more
        subclasses = _lookers > 0


def count_batches(more: int) -> None:
    """A function begins (1), or has ended (-1), to run for a batch of examples."""
    global batched
    with _lock:
        batched += more


def count_duals(more: int) -> None:
    """A level of dual tensors begins (1), or has ended (-1)."""
    global duals
    with _lock:
        duals += more


def hear_every_call(more: int) -> None:
    """The same for blocks in which somebody hears of all calls, whatever their arguments."""
    with _lock:
        look_at_arguments(more)
        count(more, more)
