"""Indexing: ``x[...]`` and ``x[...] = value``."""

from __future__ import annotations

from typing import Any

from antorcha.ops.record import T
from antorcha.runtime.tensor import Tensor


def getitem(self: Tensor, index: Any) -> Any:
    raise NotImplementedError("indexing is on its way")


def bind() -> None:
    Tensor.__getitem__ = getitem  # type: ignore[attr-defined]


_ = T
