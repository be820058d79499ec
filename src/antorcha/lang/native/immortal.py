"""Objects that live until the process ends.

Machine code holds addresses that the interpreter knows nothing of, and runs until the very end: the
last storages die when the interpreter is being taken down, after modules have lost their names and
what only a name held is gone. A list in a module is one of those names, so it keeps nothing.
"""

from __future__ import annotations

import ctypes
from typing import TypeVar

T = TypeVar("T")

_own = ctypes.pythonapi.Py_IncRef
_own.restype = None
_own.argtypes = [ctypes.py_object]


def make_immortal(thing: T) -> T:
    """Gives `thing` back with a reference of its own that nobody drops: it is never freed."""
    _own(thing)
    return thing
