"""The native call path: the commonest calls of operators, served without the interpreter.

It stands before the Python path and never instead of it. An operator's slot in Tensor's type holds
machine code (``operators``), which looks for the plan that the Python path has made for operands
that lie like these, runs it (``tensors``) and records the call (``record``); in every other case,
an unusual mode, a new layout, an operand that is no tensor or number, Python serves the call.
What all of this relies on in CPython is in one file (``slots``), and checked here, once, when the
first plan is made: where it does not hold, or where ``ANTORCHA_CALL=python`` asks for it, the
Python path runs alone, and ``why_not()`` says why.
"""

# (Imported when the first tensor is made, as everything that is compiled: importing antorcha is not
# to load a compiler.)
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from antorcha import config
from antorcha.runtime import launch, objects
from antorcha.runtime.call.native import (
    checking,
    layouts,
    life,
    methods,
    mode,
    operators,
    plans,
    slots,
    spares,
    tensors,
)
from antorcha.runtime.layout import Layout
from antorcha.runtime.tensor import PLAIN, Tensor


def _why_not() -> str:
    if config.call_path == "python":
        return "ANTORCHA_CALL=python"
    if not objects.NATIVE:
        return "objects are made otherwise than machine code would make them"
    for part in (slots, tensors, layouts, plans, spares, life):
        found = part.why_not()
        if found:
            return found
    return ""


_reason = _why_not()
ACTIVE = not _reason
if ACTIVE:
    spares.install()
    life.install()
    tensors.install()
    layouts.install()
    plans.install()
    mode.install()
    operators.install()
    methods.install()
    if checking.CHECKED:
        from antorcha.runtime.call.native.invariants import check_result

        checking.install(check_result)


def why_not() -> str:
    """Why the native path does not run here; empty when it does."""
    return _reason


@contextmanager
def off() -> Iterator[None]:
    """The Python path alone, in all threads: to compare the two."""
    _turn_off(1)
    try:
        yield
    finally:
        _turn_off(-1)


offs = 0  # how many are within ``off()``


def _turn_off(more: int) -> None:
    global offs
    offs += more
    if ACTIVE:
        mode.off.np[0] = offs


def engine(*python: Callable[..., Any]) -> Callable[..., Any] | None:
    """The native backward pass, which falls back on these functions (``walk.install``); None
    where it does not run."""
    if not ACTIVE:
        return None
    from antorcha.runtime.call.native import walk

    return walk.install(*python)


def running(fresh: Callable[..., Any], out: Layout) -> Callable[..., Tensor]:
    """`fresh`, with a tensor of that layout made around its storage."""
    made = tensors.running(fresh, out) if ACTIVE else None
    if made is not None:
        return made
    return launch.running(fresh, Tensor, "_storage", {"_layout": out, **PLAIN})


def watch() -> Callable[..., Any] | None:
    """Compiles the routines for calls while a profile is on; gives the backward pass for then."""
    if not ACTIVE:
        return None
    from antorcha.runtime.call.native import watched

    return watched.install()
