"""Modules that are imported when they are first used, so that ``import antorcha`` stays quick.

NumPy takes most of the import's time, the runtime loads machine code; neither is needed until the
first tensor. A file that needs NumPy says ``from antorcha.core.lazy import np``.

A process that forks while a thread imports a module leaves its child that module half imported, and
locked for ever. So `load_deferred` imports, before a fork (``forks``), every module that a call may
be the first to import: those that `lazy` stands for, and those imported by their names, `BY_NAME`.
Functions have no import statements but of packages that need not be installed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import time
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

BY_NAME: Final = (
    "antorcha.devices.cpu", "antorcha.devices.meta", "antorcha.devices.reference",
    "antorcha.autograd.anomaly", "antorcha.profiler.session",
    "antorcha.nn", "antorcha.compiler.eager", "antorcha.backends",  # (packages before their users)
    "antorcha.overrides", "antorcha.linalg", "antorcha.nn.utils", "antorcha.optim",
    "antorcha.optim.lr_scheduler", "antorcha.random", "antorcha.serialization",
    "antorcha.utils.serialization", "antorcha.special", "antorcha.utils.data", "linecache",
    "llvmlite.binding",
)  # fmt: skip
"""What is imported by its name without `lazy`: devices, attributes of packages (and what those
modules import)."""
TRIES = 300
_deferred: dict[str, None] = dict.fromkeys(BY_NAME)


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """The collector rests. Importing makes many objects and next to no garbage: to look for that
    takes a sixth of the time until a program's first result."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def imported(name: str) -> ModuleType:
    """``importlib.import_module``, without collecting; it waits where two threads that import would
    wait for each other (CPython tells one of them so, which may try again)."""
    with without_collecting():
        for _ in range(TRIES):
            try:
                return importlib.import_module(name)
            except RuntimeError as error:
                if type(error).__name__ != "_DeadlockError":
                    raise
                time.sleep(0.01)
        return importlib.import_module(name)


class LazyModule(ModuleType):
    """Stands for a module: the first attribute asked for imports it. Each attribute is kept, so the
    next look-up is an ordinary one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(imported(self.__name__), name)
        self.__dict__[name] = value
        return value


def lazy(name: str, *, before_forks: bool = True) -> Any:
    """The module of that name, imported at its first use. Do not keep what may be rebound in it.

    It is imported before a fork, too, unless `before_forks` is False: for what commands and reports
    want, and no op's call, so that programs do not load it.
    """
    if before_forks:
        _deferred[name] = None
    return LazyModule(name)


def load_deferred() -> None:
    """Imports every module whose import is deferred; waits for those that a thread is importing."""
    while names := list(_deferred):  # (imported modules may defer others)
        for name in names:
            with contextlib.suppress(Exception):  # whoever uses it is told
                imported(name)
            _deferred.pop(name, None)


if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

__all__ = [
    "BY_NAME", "Array", "LazyModule", "imported", "lazy", "load_deferred", "np",
    "without_collecting",
]  # fmt: skip
Array: TypeAlias = "np.ndarray[Any, Any]"
