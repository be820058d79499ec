"""``torch.jit.annotations``: the names of types that scripted code uses."""

from __future__ import annotations

import builtins
import types
import typing
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 (programs import them)

from antorcha.errors import ArgumentError, explain_missing

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List",
           "Optional", "Tuple", "Union", "isinstance_of"]  # fmt: skip


class _BroadcastingList:
    """``BroadcastingList2[int]``: a list of two, or one number for both."""

    def __getitem__(self, kind: Any) -> Any:
        return list[kind]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()


def isinstance_of(obj: Any, target_type: Any) -> bool:
    """``torch.jit.isinstance``: `isinstance` that looks into lists, tuples and dictionaries.

    Raises TypeError for a list, tuple or dict that does not say of what.

    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance(["a"], list[int])
    (True, False)
    """
    if isinstance(target_type, tuple):
        return any([isinstance_of(obj, each) for each in target_type])
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    containers = (list, tuple, dict)
    if target_type in containers or (origin in containers and not inner):
        name = (origin or target_type).__name__.capitalize()
        raise ArgumentError(f"Attempted to use {name} without a contained type. "
                            f"Please add a contained type, e.g. {name}[int]")  # fmt: skip
    if origin in (Union, types.UnionType):
        return any([isinstance_of(obj, each) for each in inner])
    if origin is None:
        kind = type(None) if target_type is None else target_type
        return kind is Any or builtins.isinstance(obj, kind)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all([isinstance_of(each, inner[0]) for each in obj])
    if origin is dict:
        return all([isinstance_of(k, inner[0]) and isinstance_of(v, inner[1])
                    for k, v in obj.items()])  # fmt: skip
    if origin is tuple:
        kinds = inner[:1] * len(obj) if inner[1:] == (Ellipsis,) else inner
        return len(kinds) == len(obj) and all(
            [isinstance_of(each, kind) for each, kind in zip(obj, kinds, strict=True)]
        )
    return True


explain_missing("torch.jit.annotations", globals())
