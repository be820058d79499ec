"""``torch._C._functorch``: what libraries ask of the tensors that ``vmap`` passes on."""

from __future__ import annotations

from typing import Any

from antorcha.core import absent
from antorcha.tensor.batched import Example


def get_unwrapped(tensor: Any) -> Any:
    """The tensor itself: transforms wrap nothing."""
    return tensor


def is_batchedtensor(tensor: Any) -> bool:
    """Is it one example of a batch, as a function under ``vmap`` sees it?"""
    return isinstance(tensor, Example)


def is_gradtrackingtensor(tensor: Any) -> bool:
    """False: ``grad`` passes the function plain tensors."""
    return False


__getattr__ = absent.names("torch._C._functorch", globals())
