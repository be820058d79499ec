"""``torch.utils.serialization``: how checkpoints are read and written."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.utils.serialization import config

__all__ = ["config"]

explain_missing("torch.utils.serialization", globals())
