"""``torch.utils``: data, checkpoints, measurements and small tools."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import no_such_name

_LAZY = (
    "_python_dispatch",
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "module_tracker",
    "serialization",
    "tensorboard",
    "weak",
)


def __getattr__(name: str) -> Any:
    if name == "swap_tensors":
        return importlib.import_module("antorcha.utils.swap").swap_tensors
    if name in _LAZY:
        return importlib.import_module(f"antorcha.utils.{name}")
    raise no_such_name("torch.utils", name, (*_LAZY, "swap_tensors"))
