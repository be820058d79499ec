"""``torch.jit``: scripts and traces run the Python they were made from.

There is no TorchScript here: its language, its graphs and its files. ``script`` and ``trace`` give
objects that behave as PyTorch's do when they are called; what needs the language itself (``save``,
``load``, ``.graph``, ``.code``) raises NotImplementedError. ``is_scripting()`` and ``is_tracing()``
are False everywhere, since Python runs everywhere.

See https://docs.pytorch.org/docs/stable/jit.html.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from antorcha.errors import explain_missing
from antorcha.futures import Future
from antorcha.jit.annotations import isinstance_of as isinstance
from antorcha.jit.modules import (
    CompilationUnit,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
    export_opnames,
    fork,
    freeze,
    jit_module_from_flatbuffer,
    last_executed_optimized_graph,
    load,
    optimize_for_inference,
    run_frozen_optimizations,
    save,
    save_jit_module_to_flatbuffer,
    script,
    trace,
    trace_module,
    wait,
)

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule",
    "ScriptFunction", "ScriptModule", "ScriptWarning", "TopLevelTracedModule", "TracedModule",
    "TracerWarning", "TracingCheckError", "annotate", "enable_onednn_fusion", "export",
    "export_opnames", "fork", "freeze", "fuser", "ignore", "interface", "is_scripting",
    "is_tracing", "isinstance", "jit_module_from_flatbuffer", "last_executed_optimized_graph",
    "load", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution",
    "run_frozen_optimizations", "save", "save_jit_module_to_flatbuffer", "script",
    "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace",
    "trace_module", "unused", "wait",
]  # fmt: skip


class Error(RuntimeError):
    """An error inside TorchScript; nothing raises it here."""


class ScriptWarning(Warning):
    """A warning of the script compiler; nothing gives it here."""


class TracerWarning(Warning):
    """A warning of the tracer; programs filter it, nothing gives it here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing to ignore."""


class TracingCheckError(Exception):
    """A trace that differs from the function; nothing raises it here."""


class Attribute(NamedTuple):
    """A value with the type that TorchScript should give it."""

    value: Any
    type: Any


# ---- where does this code run? In Python. --------------------------------------------------------


def is_scripting() -> bool:
    """False: no code is ever compiled as TorchScript.

    >>> torch.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """False: no operations are recorded."""
    return False


# ---- notes for the script compiler: they change nothing in Python --------------------------------


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value: the type is a note for TorchScript.

    >>> torch.jit.annotate(list[int], [])
    []
    """
    return the_value


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator, with or without arguments: the function stays as it is."""
    return drop if callable(drop) else _same


def unused(fn: Any) -> Any:
    """A decorator: the function stays as it is."""
    return fn


def export(fn: Any) -> Any:
    """A decorator: the method stays as it is."""
    return fn


def script_method(fn: Any) -> Any:
    """A decorator of a ScriptModule's methods: the method stays as it is."""
    return fn


def interface(obj: Any) -> Any:
    """A decorator of a class that lists methods: the class stays as it is."""
    return obj


def _overload(func: Any) -> Any:
    return func


_overload_method = _overload


def _same(fn: Any) -> Any:
    return fn


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: scripts the function while something is traced, which never happens here."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


_script_if_tracing = script_if_tracing


# ---- how TorchScript's graphs are run: there are none --------------------------------------------

_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]
_onednn = False


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Notes how graphs should be specialised, and gives what was noted before."""
    global _strategy
    before, _strategy = _strategy, list(strategy)
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Notes whether oneDNN should fuse graphs; there are none to fuse."""
    global _onednn
    _onednn = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was told."""
    return _onednn


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context in which graphs are optimised, or not: there are none."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A context with one of the fusers of graphs: there are none."""
    yield


class strict_fusion:
    """A context in which what is not fused is an error of the script compiler."""

    def __enter__(self) -> None:
        """Enters; nothing changes."""

    def __exit__(self, *_: object) -> None:
        """Leaves; nothing changes."""


explain_missing("torch.jit", globals())
