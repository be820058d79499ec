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
# to load a compiler. The parts are imported when they are wanted: compiling them takes seconds.)
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from antorcha import config
from antorcha.core.forks import held_over_forks
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.errors import warn
from antorcha.lang.native import Spec
from antorcha.lang.native import engine as compiler
from antorcha.lang.native.ahead import Ahead
from antorcha.runtime import launch_with, objects
from antorcha.runtime.call import path
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import PLAIN, Tensor

_here = "antorcha.runtime.call.native"
_method, _mode = lazy(f"{_here}.method"), lazy(f"{_here}.mode")
_operators, _parts = lazy(f"{_here}.operators"), lazy(f"{_here}.parts")
_profiled, _tensors = lazy(f"{_here}.profiled"), lazy(f"{_here}.tensors")
_walk = lazy(f"{_here}.walk")

ACTIVE = False
"""Does the native path run? Once it does, it does for good."""
_reason: str | None = None  # why it never will; empty when nothing is against it; None: not asked
_lock = held_over_forks(threading.RLock())
offs: list[None] = []  # one for each ``off()`` that somebody is within


def why_not() -> str:
    """Why the native path does not run here, or never will; empty when it does, or will."""
    global _reason
    with _lock:
        if _reason is None:
            _reason = _why_not()
        return _reason


def _why_not() -> str:
    if config.call_path == "python":
        return "ANTORCHA_CALL=python"
    if not objects.NATIVE:
        return "objects are made otherwise than machine code would make them"
    found: str = _parts.why_not()
    return found


# ---- from the Python path to the native one
def wake() -> None:
    """The first plan is made: from here on, or as soon as it is compiled, the native path runs."""
    if ACTIVE or _reason:
        return
    if config.call_path == "auto" and is_to_be_compiled():
        _ahead.start()
    else:
        _install()


def finish() -> None:
    """Has the native path run from here on, if it can, whatever must be compiled for that."""
    _ahead.stop()
    for spec in _wanted():
        _ = spec.addr
    _install()


def is_awaited() -> bool:
    """Does the Python path run only until the native one is compiled?"""
    return not (ACTIVE or _reason)


@cache
def is_to_be_compiled() -> bool:
    """Must any of it be compiled, or could all be read from the disk when this was first asked?"""
    if compiler.compiled:  # an empty cache: do not look for what is not there
        return True
    return not (
        all([compiler.load_stored(spec) for spec in _parts.placed()])
        and all([compiler.is_stored(spec) for spec in _parts.called()])
    )


def _wanted() -> Iterator[Spec]:
    """The functions of it."""
    if not why_not():
        yield from (*_parts.placed(), *_parts.called())


def _install() -> None:
    global ACTIVE
    with _lock:
        if ACTIVE or why_not():
            return
        _parts.install()
        _mode.off.np[0] = len(offs)
        ACTIVE = True
        hooks.native_runs()


def _failed(error: Exception) -> None:
    """It could not be compiled in the background."""
    global _reason
    _reason = f"{type(error).__name__}: {error}"
    warn(
        f"antorcha could not compile its native call path, and goes on in Python: {_reason}. "
        "ANTORCHA_CALL=native compiles it at the first call, and shows where that fails."
    )


@contextmanager
def off() -> Iterator[None]:
    """The Python path alone, in all threads: to compare the two."""
    with _lock:
        offs.append(None)
        _tell_offs()
    try:
        yield
    finally:
        with _lock:
            offs.pop()
            _tell_offs()


def _tell_offs() -> None:
    if ACTIVE:
        _mode.off.np[0] = len(offs)


def engine(*python: Callable[..., Any]) -> Callable[..., Any] | None:
    """The native backward pass, which falls back on these functions (``walk.install``); None
    where it does not run."""
    if not ACTIVE:
        return None
    found: Callable[..., Any] = _walk.install(*python)
    return found


def running(fresh: Callable[..., Any], out: Layout) -> Callable[..., Tensor]:
    """`fresh`, with a tensor of that layout made around its storage."""
    wake()
    if ACTIVE:
        result: Callable[..., Tensor] | None = _tensors.running(fresh, out)
        if result is not None:
            return result
    return launch_with.running(fresh, Tensor, "_storage", {"_layout": out, **PLAIN})


def serve_operators(cls: type[Tensor]) -> None:
    """Makes the operators of a subclass of Tensor, if they are its own, go before those of Tensor
    where CPython has them do so; its methods are Python's."""
    if ACTIVE:
        _operators.serve(cls)


def watched_method(
    method: Callable[..., Any], asked: Callable[..., Any]
) -> Callable[..., Any] | None:
    """A method that runs `method` for plain arguments, `asked` for others; None where machine code
    does not run."""
    if not ACTIVE:
        return None
    found: Callable[..., Any] = _method.watched_method_of(method, asked)
    return found


def watch() -> Callable[..., Any] | None:
    """Compiles the routines for calls while a profile is on; gives the backward pass for then."""
    finish()
    if not ACTIVE:
        return None
    found: Callable[..., Any] = _profiled.install()
    return found


_ahead = Ahead(_wanted, _install, _failed)
if config.call_path != "auto":
    _install()
