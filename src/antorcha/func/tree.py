"""Nested tuples, lists and dicts of values, taken apart and put together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

LEAF = "*"
_DICTS = (dict, OrderedDict, defaultdict)


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves in order, and the structure that `unflatten` takes; structures may be compared.

    >>> flatten({"a": 1, "b": (2, [3])})[0]
    [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _collect(tree, leaves)


def _collect(tree: Any, leaves: list[Any]) -> Any:
    kind = type(tree)
    if kind in _DICTS:
        keys = tuple(tree)
        factory = tree.default_factory if kind is defaultdict else None
        children = tuple([_collect(tree[key], leaves) for key in keys])
        return kind, (keys, factory), children
    if kind in (tuple, list) or (isinstance(tree, tuple) and hasattr(kind, "_fields")):
        return kind, None, tuple([_collect(each, leaves) for each in tree])
    if tree is None:
        return LEAF_NONE
    leaves.append(tree)
    return LEAF


LEAF_NONE = "None"


def unflatten(leaves: Sequence[Any], structure: Any) -> Any:
    """The tree of that structure with those leaves."""
    return _build(iter(leaves), structure)


def _build(leaves: Any, structure: Any) -> Any:
    if structure is LEAF:
        return next(leaves)
    if structure is LEAF_NONE:
        return None
    kind, context, children = structure
    values = [_build(leaves, child) for child in children]
    if kind in _DICTS:
        keys, factory = context
        pairs = zip(keys, values, strict=True)
        return defaultdict(factory, pairs) if kind is defaultdict else kind(pairs)
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def map_tree(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with ``fn`` of each leaf."""
    leaves, structure = flatten(tree)
    return unflatten([fn(each) for each in leaves], structure)


def spread(prefix: Any, structure: Any) -> list[Any] | None:
    """One value of ``prefix`` for each leaf of the structure: the prefix has the structure's shape
    down to some depth, and its value there holds for all leaves below. None where it does not fit.

    >>> spread((0, None), flatten(([1, 2], 3))[1])
    [0, 0, None]
    """
    if structure is LEAF:
        return None if isinstance(prefix, (tuple, list, dict)) else [prefix]
    if structure is LEAF_NONE:
        return [] if not isinstance(prefix, (tuple, list, dict)) else None
    kind, context, children = structure
    if not isinstance(prefix, (tuple, list, dict)):
        return [prefix] * count(structure)
    if kind in _DICTS:
        if type(prefix) not in _DICTS or set(prefix) != set(context[0]):
            return None
        parts = [prefix[key] for key in context[0]]
    else:
        if type(prefix) is not kind or len(prefix) != len(children):
            return None
        parts = list(prefix)
    found: list[Any] = []
    for part, child in zip(parts, children, strict=True):
        values = spread(part, child)
        if values is None:
            return None
        found += values
    return found


def count(structure: Any) -> int:
    """How many leaves it has."""
    if structure is LEAF or structure is LEAF_NONE:
        return int(structure is LEAF)
    return sum([count(child) for child in structure[2]])


def shown(structure: Any) -> str:
    """The structure as text, ``*`` for a leaf."""
    if structure is LEAF or structure is LEAF_NONE:
        return str(structure)
    kind, context, children = structure
    texts = [shown(child) for child in children]
    if kind in _DICTS:
        pairs = zip(context[0], texts, strict=True)
        return "{" + ", ".join([f"{key!r}: {text}" for key, text in pairs]) + "}"
    inner = ", ".join(texts)
    return f"[{inner}]" if kind is list else f"({inner}{',' * (len(texts) == 1)})"
