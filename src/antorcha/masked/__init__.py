"""``torch.masked``: functions of the elements at which a mask is True, and `MaskedTensor`, which
keeps data and mask together."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.masked._ops import (
    _input_mask,
    _output_mask,
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from antorcha.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from antorcha.masked.maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum",
    "is_masked_tensor", "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

explain_missing("torch.masked", globals())
