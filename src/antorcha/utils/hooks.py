"""``torch.utils.hooks``: the handle that registering a hook gives."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.hooks import RemovableHandle

__all__ = ["RemovableHandle"]

explain_missing("torch.utils.hooks", globals())
