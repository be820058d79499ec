"""The parts of the native path: whether they can run here, what they need compiled, and how they
are put in place.

Importing this compiles nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from antorcha.core.lazy import lazy
from antorcha.lang.native import Spec
from antorcha.runtime.call import plan
from antorcha.runtime.call.native import (
    calls,
    checking,
    dealloc,
    freelist,
    keys,
    layouts,
    method,
    methods,
    mode,
    operators,
    places,
    plans,
    slots,
    tensors,
    walk,
)

invariants = lazy("antorcha.runtime.call.native.invariants")
SWITCH = 0.2  # seconds


def why_not() -> str:
    """What does not hold here of what the parts rely on; empty when all does."""
    for part in (slots, tensors, layouts, plans, freelist, dealloc):
        found: str = part.why_not()
        if found:
            return found
    return ""


def placed() -> list[Spec]:
    """The functions that `install` puts in place."""
    return [
        *[dealloc.dealloc.spec(WHAT=what) for what in (dealloc.TENSOR, dealloc.NODE)],
        freelist.py_next.spec(), layouts.py_forget.spec(), layouts.py_recent.spec(),
        *mode.placed(), *operators.placed(),
    ]  # fmt: skip


def called() -> list[Spec]:
    """The functions that are put in place when something is called for the second time, or
    differentiated."""
    return [
        tensors.py_result.spec(), calls.py_flush.spec(), calls.py_put.spec(),
        *[calls.py_quick.spec(FORM=form) for form in (keys.FUNCTION, keys.INDEX)],
        *[
            calls.py_words.spec(FORM=keys.FUNCTION, WITHOUT=what)
            for what in (places.NOTHING_LEFT_OUT, places.THE_SIZE, places.ALL_SIZES)
        ],
        calls.py_words.spec(FORM=keys.INDEX, WITHOUT=places.NOTHING_LEFT_OUT),
        *method.placed(), walk.py_walk.spec(),
    ]  # fmt: skip


def install() -> None:
    """Puts the native path in the place of the Python one, which may have run until now."""
    with _uninterrupted():
        freelist.install()
        dealloc.install()
        tensors.install()
        layouts.install()
        plans.install()
        mode.install()
        operators.install()
        methods.install()
        if checking.CHECKED:
            checking.install(invariants.check_result)
        plan.flush()  # those made until now are run in Python


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Other threads do not come in between. (Each step is right if they do, as they may where this
    waits; but a call then meets some parts and not others.)"""
    before = sys.getswitchinterval()
    sys.setswitchinterval(max(before, SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
