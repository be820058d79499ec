"""``torch.fx.passes``: what is done with graphs."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import no_such_name

_LAZY = ("shape_prop", "split_module")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.fx.passes.{name}")
    raise no_such_name("torch.fx.passes", name, _LAZY)
