"""``torch.utils``: so far ``data``, ``dlpack``, ``hooks`` and ``serialization``."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import no_such_name

_LAZY = (
    "_pytree",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "hooks",
    "model_zoo",
    "serialization",
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.utils.{name}")
    raise no_such_name("torch.utils", name, _LAZY)
