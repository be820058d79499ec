"""Subclasses of Tensor and ``__torch_function__``."""

from __future__ import annotations

from typing import Any

from antorcha import modes
from antorcha.runtime.tensor import Parameter, Tensor, bare


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor (sharing memory and history) as an instance of a subclass of Tensor."""
    made = object.__new__(cls)
    for name in ("_layout", "_storage", "_offset", "_rg", "_fn", "_nr", "_grad", "_base", "_extra"):
        setattr(made, name, getattr(self, name))
    if self._base is not None:
        made._seen = self._seen
    return made


def bind() -> None:
    Tensor.as_subclass = as_subclass  # type: ignore[attr-defined]


_ = (modes, Parameter, bare)
