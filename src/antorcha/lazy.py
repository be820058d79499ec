"""Modules that are imported when they are first used, so that ``import antorcha`` stays quick.

NumPy takes most of the import's time, the runtime loads machine code; neither is needed until the
first tensor. A file that needs NumPy says ``from antorcha.lazy import np``.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias


class LazyModule(ModuleType):
    """Stands for a module: the first attribute asked for imports it. Each attribute is kept, so the
    next look-up is an ordinary one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        self.__dict__[name] = value
        return value


def lazy(name: str) -> Any:
    """The module of that name, imported at its first use. Do not keep what may be rebound in it."""
    return LazyModule(name)


if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

__all__ = ["Array", "LazyModule", "lazy", "np"]
Array: TypeAlias = "np.ndarray[Any, Any]"
