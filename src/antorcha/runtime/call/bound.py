"""Tensor's methods and operators, as they were bound to ops: the native path serves these, and not
what a program has set in their places."""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

from antorcha.runtime.tensor import Tensor

methods: dict[str, Callable[..., Any]] = {}
"""Tensor's methods, and what reads its properties, by their names there: ``__add__``, ``exp_``."""
operators: dict[str, Any] = {}
"""The op, or the in-place form of one, behind each operator: that of ``add`` and ``iadd``; ``rsub``
is that of a number less a tensor."""


def is_bound(name: str) -> bool:
    """Is Tensor's method or property the one that was bound (or a builtin that stands for it)?"""
    found = Tensor.__dict__.get(name)
    function = getattr(found, "fget", found)
    if name not in methods or isinstance(function, BuiltinFunctionType):
        return name in methods
    return methods[name] in (function, getattr(function, "__wrapped__", None))
