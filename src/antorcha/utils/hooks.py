"""``torch.utils.hooks``: the handle that registering a hook gives."""

from __future__ import annotations

from antorcha.autograd.hooks import RemovableHandle
from antorcha.errors import explain_missing

__all__ = ["RemovableHandle"]

explain_missing("torch.utils.hooks", globals())
