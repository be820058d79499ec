"""``torch.nn.attention.bias``: causal masks by name, for queries and keys of unequal numbers.

See https://docs.pytorch.org/docs/stable/nn.attention.bias.html.
"""

from __future__ import annotations

import enum
import importlib
from typing import TYPE_CHECKING, Any

from antorcha.errors import no_such_name

if TYPE_CHECKING:
    from antorcha.nn.attention.causal_bias import CausalBias

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a causal mask begins (UPPER_LEFT) or ends (LOWER_RIGHT)."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


def _bias(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"causal_{variant.name.lower()} only supports 2D tensors")
    result: CausalBias = __getattr__("CausalBias")(variant, *size)
    return result


def causal_upper_left(*size: int) -> CausalBias:
    """The causal mask ``(queries, keys)`` that is ``True`` where ``key <= query``.

    Example::

        causal_upper_left(2, 3)  # [[True, False, False], [True, True, False]]
    """
    return _bias(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask ``(queries, keys)`` whose last query sees every key, as with a cache.

    Example::

        causal_lower_right(2, 3)  # [[True, True, False], [True, True, True]]
    """
    return _bias(CausalVariant.LOWER_RIGHT, size)


def __getattr__(name: str) -> Any:
    if name == "CausalBias":
        found = importlib.import_module("antorcha.nn.attention.causal_bias").CausalBias
        globals()[name] = found
        return found
    raise no_such_name("torch.nn.attention.bias", name, globals())
