"""``torch.utils``: so far ``data``, ``dlpack`` and ``hooks``."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import MissingName, did_you_mean

_LAZY = ("data", "dlpack", "hooks")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.utils.{name}")
    text = f"module 'torch.utils' has no attribute {name!r}."
    raise MissingName(text, name, lambda: did_you_mean(name, _LAZY))
