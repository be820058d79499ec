"""``torch.return_types``: the named tuples that ops with several results give."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.ops.kinds.return_types import ALL

__all__ = sorted(ALL)

globals().update(ALL)
explain_missing("torch.return_types", globals())
