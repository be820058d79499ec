"""``torch.fx._compatibility``: the mark of what PyTorch promises to keep. Libraries import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Marked = TypeVar("Marked")


def compatibility(is_backward_compatible: bool) -> Callable[[Marked], Marked]:
    """A decorator that says whether a function's signature will stay, and changes nothing."""

    def mark(fn: Marked) -> Marked:
        return fn

    return mark
