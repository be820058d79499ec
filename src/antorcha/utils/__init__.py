"""``torch.utils``: so far ``data``, ``dlpack`` and ``hooks``."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import no_such_name

_LAZY = ("_python_dispatch", "data", "dlpack", "hooks")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.utils.{name}")
    raise no_such_name("torch.utils", name, _LAZY)
