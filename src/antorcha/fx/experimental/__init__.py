"""``torch.fx.experimental``: so far ``optimization`` and ``symbolic_shapes``."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import no_such_name

_LAZY = ("optimization", "symbolic_shapes")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.fx.experimental.{name}")
    raise no_such_name("torch.fx.experimental", name, _LAZY)
