"""Numbers, sizes and shapes as people read them; escaped text for HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence


def count_text(count: int) -> str:
    """A count: exact while it is short, then with its unit.

    >>> count_text(7850), count_text(1_230_000_000)
    ('7,850', '1.23 G')
    """
    if count < 10_000_000:
        return f"{count:,}"
    for unit, scale in (("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if count < 1000 * scale or unit == "T":
            return f"{count / scale:.3g} {unit}" if count < 1e15 else f"{count / scale:.3e} {unit}"
    raise AssertionError


def shape_text(shape: Sequence[int]) -> str:
    """A shape as a tuple.

    >>> shape_text([3]), shape_text([2, 3])
    ('(3,)', '(2, 3)')
    """
    return str(tuple([int(size) for size in shape]))


def cut(text: str, width: int) -> str:
    """The text, its end replaced by an ellipsis where it is longer than `width`.

    >>> cut("abcdef", 4), cut("abc", 4)
    ('abc…', 'abc')
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def plural(count: int, word: str) -> str:
    """A count with its noun.

    >>> plural(1, "leaf"), plural(2, "node"), plural(3, "leaf")
    ('1 leaf', '2 nodes', '3 leaves')
    """
    if count == 1:
        return f"1 {word}"
    many = {"leaf": "leaves", "copy": "copies"}.get(word, word + "s")
    return f"{count:,} {many}"


def escaped(text: object) -> str:
    """Text as it may stand in HTML and SVG, in attributes too; what XML cannot hold is replaced."""
    kept = "".join([c if c in "\n\t\xa0" or c.isprintable() else "\N{REPLACEMENT CHARACTER}"
                    for c in str(text)])  # fmt: skip
    return html.escape(kept, quote=True)
