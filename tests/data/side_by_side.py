"""Runs the same program on antorcha and on PyTorch, and compares all that it saw."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import antorcha

PROGRAMS = {file.name for file in Path(__file__).parent.glob("*.py")}


def same(program: Callable[[Any], Any]) -> None:
    """The program gives, warns and raises the same with each library, seeded alike.

    What each default generator gives afterwards is compared too: not one draw more or less.
    """
    import torch

    mine, theirs = observe(program, antorcha), observe(program, torch)
    for ours, other in zip(mine[1], theirs[1], strict=False):
        if ours[2] in PROGRAMS:  # where PyTorch may point into itself
            other[2] = ours[2]
    assert mine == theirs


def observe(program: Callable[[Any], Any], torch: Any) -> Any:
    """The program's result, made comparable; its warnings; the random stream after it."""
    torch.manual_seed(1234)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(program(torch), torch)
        except Exception as error:
            result = raised(error)
    said = [
        [w.category, str(w.message).split(" object at ")[0], Path(w.filename).name] for w in caught
    ]
    return result, said, torch.rand(3).tolist()


def raised(error: Exception) -> Any:
    """The builtin classes that the error belongs to, and its text."""
    kinds = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
    return [k for k in kinds if k not in ("Exception", "BaseException", "object")], str(error)


def plain(value: Any, torch: Any) -> Any:
    """Tensors as (dtype, shape, strides, numbers); containers with their class names."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.stride(), value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, [(k, plain(v, torch)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v, torch) for v in value]
    return type(value).__name__, repr(value)
