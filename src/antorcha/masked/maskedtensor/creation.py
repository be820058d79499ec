"""``masked_tensor`` and ``as_masked_tensor``: as ``torch.tensor`` and ``torch.as_tensor`` are."""

from __future__ import annotations

from typing import Any

from antorcha.masked.maskedtensor.core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A leaf: a copy of ``data`` with a mask.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> torch.masked.masked_tensor(torch.tensor([1., 2.]), torch.tensor([True, False]))
    MaskedTensor(
      [  1.0000,       --]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """``data`` with a mask; gradients flow to it."""
    return MaskedTensor._from_values(data, mask)
