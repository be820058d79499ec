"""Sets the methods that are written by hand on Tensor, under the names that users see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from antorcha.runtime.tensor import Tensor


def set_methods(methods: Mapping[str, Callable[..., Any]]) -> None:
    """Makes each function a method; help and tracebacks name it as its users call it.

    A function that is two methods (``dim``, ``ndimension``) has the name of the first.
    """
    done: set[int] = set()
    for name, fn in methods.items():
        setattr(Tensor, name, fn)
        if id(fn) not in done:
            done.add(id(fn))
            fn.__name__ = name
            fn.__qualname__ = f"Tensor.{name}"
