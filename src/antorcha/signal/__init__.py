"""``torch.signal``: the windows of ``torch.signal.windows``."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.signal import windows

__all__ = ["windows"]

explain_missing("torch.signal", globals())
