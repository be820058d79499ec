"""``torch.masked.maskedtensor``: `MaskedTensor`, and what makes one."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.masked.maskedtensor.core import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]

explain_missing("torch.masked.maskedtensor", globals())
