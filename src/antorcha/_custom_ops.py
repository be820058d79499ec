"""``torch._custom_ops``: older names of what ``torch.library`` does, as libraries import them."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.library import get_ctx, impl_abstract

__all__ = ["get_ctx", "impl_abstract"]

explain_missing("torch._custom_ops", globals())
