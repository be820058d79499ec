"""``torch.cuda.amp.common``."""

from __future__ import annotations

from antorcha import cuda
from antorcha.errors import explain_missing

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Is there no CUDA device to autocast for?"""
    return not cuda.is_available()


explain_missing("torch.cuda.amp.common", globals())
