"""``torch._dynamo.backends``: their names."""

from __future__ import annotations

from antorcha._dynamo import list_backends, lookup_backend, register_backend
from antorcha.errors import explain_missing

__all__ = ["list_backends", "lookup_backend", "register_backend"]

explain_missing("torch._dynamo.backends", globals())
