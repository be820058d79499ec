"""The modes of a thread: one word that says whether gradients are recorded and by what rules.

Almost always every thread is in the default mode (word 0). ``busy`` counts the reasons to look
closer: the threads that are in another mode, plus one once a Tensor subclass exists. While it is 0
the call path skips the thread-local look-up, which would cost as much as the rest of the key.
"""

from __future__ import annotations

import threading

NO_GRAD = 1  # operations are not recorded
INFERENCE = 2  # nor are versions kept: results are inference tensors (always with NO_GRAD)
ANOMALY = 4  # nodes remember the line that made them; NaN gradients are errors
PROFILER = 8  # a profiler wants to hear of every call
AUTOCAST = 16  # arguments may be cast first
DETERMINISTIC = 32  # reserved for deterministic algorithms
SAVED_HOOKS = 64  # saved tensors go through the user's pack hook

PLAIN = NO_GRAD  # any bit above this one needs the careful path


class _ThreadModes(threading.local):
    word: int = 0


state = _ThreadModes()
busy: int = 0
subclasses: bool = False  # has anybody made a subclass of Tensor (other than Parameter)?
_lock = threading.Lock()


def set_word(word: int) -> int:
    """Puts this thread in the mode ``word``; gives the old one."""
    global busy
    old = state.word
    if old != word:
        if (old == 0) != (word == 0):
            with _lock:
                busy += 1 if word else -1
        state.word = word
    return old


def note_subclass() -> None:
    """From now on a call must look at its arguments' types (they may override it)."""
    global busy, subclasses
    with _lock:
        if not subclasses:
            subclasses = True
            busy += 1


rebased: bool = False  # has a write to a view given a base without gradient a history?


def note_rebase() -> None:
    """From now on a view may want a gradient though nothing on it says so: its base tells."""
    global busy, rebased
    with _lock:
        if not rebased:
            rebased = True
            busy += 1


def grad_enabled() -> bool:
    return not state.word & NO_GRAD
