"""``torch._dynamo.decorators``: the marks, under the name of their file."""

from __future__ import annotations

from antorcha._dynamo import (
    disable,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    set_stance,
)
from antorcha.errors import explain_missing

__all__ = ["disable", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic",
           "set_stance"]  # fmt: skip

explain_missing("torch._dynamo.decorators", globals())
