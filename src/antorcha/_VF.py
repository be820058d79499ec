# ruff: noqa: N999  (PyTorch's name)
"""``torch._VF``: the functions of ``torch`` under the name by which PyTorch's layers call them."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module("antorcha"), name)
