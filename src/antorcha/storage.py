"""``torch.storage``: the two faces of a storage, and what pickles call."""

from __future__ import annotations

import io
from typing import Any

from antorcha.errors import explain_missing
from antorcha.serialization import load
from antorcha.tensor.storages import UntypedStorage
from antorcha.tensor.typed_storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(content: bytes) -> Any:
    """A storage that PyTorch pickled, by Python's own pickle."""
    return load(io.BytesIO(content), weights_only=False)


explain_missing("torch.storage", globals())
