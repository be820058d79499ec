"""``torch._tensor``: where PyTorch has Tensor, and what Python's pickles of subclasses call."""

from __future__ import annotations

from antorcha.runtime.tensor import Tensor
from antorcha.serialization.rebuild import from_type as _rebuild_from_type_v2

__all__ = ["Tensor", "_rebuild_from_type_v2"]
