"""``torch.autograd.grad_mode``: PyTorch's name for :mod:`antorcha.autograd.modes`."""

from __future__ import annotations

from antorcha.autograd.modes import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from antorcha.errors import explain_missing

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled",
           "set_multithreading_enabled"]  # fmt: skip

explain_missing("torch.autograd.grad_mode", globals())
