"""What stands for a quantized layer: a class to import and to ask ``isinstance`` of."""

from __future__ import annotations

from typing import Any

from antorcha.errors import MissingFeature
from antorcha.nn.module import Module


def unsupported(where: str, name: str) -> type[Module]:
    """A class of that name; making one raises NotImplementedError."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise MissingFeature(f"{where}.{name}: quantized layers are not supported")

    doc = "A quantized layer of PyTorch, not supported: making one raises NotImplementedError."
    module = where.replace("torch", "antorcha", 1)
    return type(name, (Module,), {"__init__": refuse, "__doc__": doc, "__module__": module})
