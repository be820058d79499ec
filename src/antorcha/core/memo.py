"""Bounded tables of what was worked out once. A full table is emptied whole, and fills again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

V = TypeVar("V")


def keep(table: dict[Any, V], key: Any, value: V, most: int) -> V:
    """Puts a value into a table of at most that many, and gives it."""
    if len(table) >= most:
        table.clear()
    table[key] = value
    return value


def kept(table: dict[Any, V], key: Any, make: Callable[[Any], V], most: int) -> V:
    """What the table has for a key; ``make(key)``, kept from now on, where it has nothing."""
    found = table.get(key)
    return keep(table, key, make(key), most) if found is None else found
