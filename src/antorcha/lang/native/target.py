"""Another door to ``machine.target``. The package also has a function of this name, hence the
class."""

from __future__ import annotations

import sys
import types
from typing import Any

from antorcha.lang.native.machine import Target, target

__all__ = ["Target", "target"]


class _Callable(types.ModuleType):
    def __call__(self) -> Any:
        return target()


sys.modules[__name__].__class__ = _Callable
