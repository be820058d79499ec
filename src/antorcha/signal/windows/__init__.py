"""``torch.signal.windows``: see `antorcha.signal.windows.windows`."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.signal.windows.windows import (
    bartlett,
    blackman,
    cosine,
    exponential,
    gaussian,
    general_cosine,
    general_hamming,
    hamming,
    hann,
    kaiser,
    nuttall,
)

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip

explain_missing("torch.signal.windows", globals())
