"""``torch._dynamo._trace_wrapped_higher_order_op``: TransformGetItemToIndex, for mask functions."""

from __future__ import annotations

from antorcha.errors import explain_missing


class TransformGetItemToIndex:
    """A context around functions of a mask that are batched: PyTorch's needs it to index with a
    tensor there. Nothing changes here."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves; nothing changes."""


explain_missing("torch._dynamo._trace_wrapped_higher_order_op", globals())
