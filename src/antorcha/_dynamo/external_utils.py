"""``torch._dynamo.external_utils``: what libraries ask of it."""

from __future__ import annotations

from antorcha.compiler import is_compiling
from antorcha.errors import explain_missing

__all__ = ["is_compiling"]

explain_missing("torch._dynamo.external_utils", globals())
