"""``torch.utils``: data, checkpoints, measurements and small tools."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import ArgumentError, no_such_name

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


def set_module(obj: Any, mod: str) -> None:
    """Says of a class or function that it is of the module ``mod``, for how it is printed."""
    if not isinstance(mod, str):
        raise ArgumentError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    if name == "swap_tensors":
        return importlib.import_module("antorcha.utils.swap").swap_tensors
    if name in _LAZY:
        return importlib.import_module(f"antorcha.utils.{name}")
    raise no_such_name("torch.utils", name, (*_LAZY, "set_module", "swap_tensors"))
