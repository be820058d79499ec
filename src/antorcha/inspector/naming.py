"""The names that a program has for tensors: those of the caller's variables, and of a model."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from antorcha.runtime.tensor import Tensor

_NAMES = 5000  # names looked through
_INSIDE = 200  # items looked at of one list or dictionary


def users_frame() -> FrameType | None:
    """The frame of whoever called antorcha."""
    ours = __name__.partition(".")[0]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "")
        if not isinstance(package, str) or package.partition(".")[0] != ours:
            return frame
        frame = frame.f_back
    return None


def names_of(frame: FrameType | None) -> dict[str, Any]:
    """The local and global names of a frame, and nothing that keeps their values alive later.

    Up to Python 3.12 a function's frame keeps the dictionary that it is asked for, and with it
    every value: it is emptied again unless somebody else has it too.
    """
    if frame is None:
        return {}
    found = dict(frame.f_globals)
    if frame.f_locals is not frame.f_globals:
        theirs = frame.f_locals
        found.update(theirs)
        kept = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED) and type(theirs) is dict
        if kept and sys.getrefcount(theirs) <= 3:  # the frame, `theirs`, the argument
            theirs.clear()
    return found


def named_tensors(names: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that names lead to: themselves, in lists and dictionaries, in modules.

    Plain names first; those that begin with "_" (a notebook's old results) last.
    """
    items = [(name, value) for name, value in list(names.items())[:_NAMES] if type(name) is str]
    items.sort(key=lambda item: item[0].startswith("_"))
    for label, value in items:
        if is_tensor(value):
            yield label, value
    for label, value in items:
        yield from _inside(label, value)


def is_tensor(value: Any) -> bool:
    """Is it a tensor with all its fields? (``object.__new__`` makes tensors without any.) Asks the
    type, never the value, which may answer with code of its own."""
    try:
        return issubclass(type(value), Tensor) and bool(
            field(value, "_layout") is not None and field(value, "_storage") is not None
        )
    except AttributeError:
        return False


def field(tensor: Tensor, name: str) -> Any:
    """A tensor's own field, whatever its class makes of attributes."""
    return vars(Tensor)[name].__get__(tensor)


def _inside(label: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if type(value) in (list, tuple):
        for k, item in enumerate(value[:_INSIDE]):
            if is_tensor(item):
                yield f"{label}[{k}]", item
    elif type(value) is dict and not label.startswith("_"):
        for key, item in list(value.items())[:_INSIDE]:
            if type(key) is str and is_tensor(item):
                yield f"{label}[{key!r}]", item
    else:
        yield from named_in_module(label, value)


def module_fields(value: Any) -> dict[str, Any] | None:
    """The fields of an ``nn.Module``, read without asking it; None of anything else."""
    if issubclass(type(value), type):
        return None
    try:
        fields = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return None
    if type(fields) is not dict or "_parameters" not in fields or "_modules" not in fields:
        return None
    return fields


def named_in_module(label: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """The parameters and buffers of a module and of its parts, with their dotted names."""
    waiting, seen = [(label, value)], 0
    while waiting and seen < _NAMES:
        label, value = waiting.pop()
        fields = module_fields(value)
        if fields is None:
            continue
        seen += 1
        start = f"{label}." if label else ""
        for table in ("_parameters", "_buffers"):
            for key, item in list((fields.get(table) or {}).items()):
                if is_tensor(item):
                    yield f"{start}{key}", item
        for key, part in reversed(list(fields["_modules"].items())):
            waiting.append((f"{start}{key}", part))
