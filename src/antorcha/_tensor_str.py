"""``torch._tensor_str``: the parts of a tensor's text, for classes that print otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.errors import explain_missing
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import printing
from antorcha.tensor.convert import to_array
from antorcha.tensor.printing import get_printoptions, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


class _Options:
    """The options of printing, as attributes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(printing._options, name)


PRINT_OPTS = _Options()


def _tensor_str(self: Tensor, indent: int) -> str:
    """The nested brackets alone, for a text that starts in column `indent`."""
    return printing.format_contents(
        to_array(self), dtype=self._layout.dtype, indent=indent, options=printing._options
    )


def _add_suffixes(
    tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool
) -> str:  # fmt: skip
    """The text with ``, suffix`` for each, and the closing bracket."""
    return printing.with_suffixes(
        tensor_str, suffixes, indent, printing._options, force_newline=force_newline
    )


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """``repr(tensor)``, of a subclass as of a plain tensor."""
    return Tensor.__repr__(self)


_str_intern = _str

explain_missing("torch._tensor_str", globals())
