"""The names that a program has for tensors: those of the caller's variables, and of a model."""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import FrameType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from antorcha.inspector.explain.site import libraries
from antorcha.runtime.tensor import Tensor

_NAMES = 5000  # names looked through
_INSIDE = 200  # items looked at of one list, dictionary or object
_DEEP = 4  # steps from a name to a tensor: a.b["c"][0] is three
_LOOKS = 20_000  # values looked at in all
_CALLS = 200  # frames that variables are looked for in
_KEYS = (str, int, float, bool, bytes, type(None))
_HEAP = 1 << 9  # of a class's flags: a program made it, not the interpreter


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
    """The local and global names of a frame."""
    if frame is None:
        return {}
    found = dict(frame.f_globals)
    if frame.f_locals is not frame.f_globals:
        found.update(_locals_of(frame))
    return found


def _locals_of(frame: FrameType) -> dict[str, Any]:
    """The local names of a frame, and nothing that keeps their values alive later.

    Up to Python 3.12 a function's frame keeps the dictionary that it is asked for, and with it
    every value: it is emptied again unless somebody else has it too.
    """
    theirs = frame.f_locals
    found = dict(theirs)
    kept = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED) and type(theirs) is dict
    if kept and sys.getrefcount(theirs) <= 3:  # the frame, `theirs`, the argument
        theirs.clear()
    return found


def names_around(frame: FrameType | None) -> dict[str, Any]:
    """The names that a frame sees, then the variables of the functions that called it, in antorcha
    and libraries excepted. A variable that an inner one hides is called ``function(): name``."""
    found = names_of(frame)
    calls = 0
    while frame is not None and frame.f_back is not None and calls < _CALLS:
        frame, calls = frame.f_back, calls + 1
        if _is_foreign(frame) or not has_plain_locals(frame):
            continue
        for name, value in _locals_of(frame).items():
            if name not in found:
                found[name] = value
            elif found[name] is not value and is_tensor(value):
                found[f"{frame.f_code.co_name}(): {name}"] = value
    return found


def has_plain_locals(frame: FrameType) -> bool:
    """Are its variables in a dictionary, not in a mapping of the program's own, which may do
    anything?"""
    return type(frame.f_locals).__name__ in ("dict", "FrameLocalsProxy")


def _is_foreign(frame: FrameType) -> bool:
    """Is it a frame of antorcha's, or of a library's?"""
    package = frame.f_globals.get("__name__", "")
    ours = type(package) is str and package.partition(".")[0] == __name__.partition(".")[0]
    return ours or frame.f_code.co_filename.startswith(("<frozen", *libraries()))


def named_tensors(names: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that names lead to, with the code that reaches each: themselves, then what is in
    lists, dictionaries, modules and other objects, gradients, the shorter way first.

    A tensor with a short name is not told again by a longer one. Names that begin with "_" (a
    notebook's old results) come last, and are not looked into.
    """
    items = [(name, value) for name, value in list(names.items())[:_NAMES] if type(name) is str]
    items.sort(key=lambda item: item[0].startswith("_"))
    level, seen, told, looks = items, set[int](), set[int](), 0
    for depth in range(_DEEP + 1):
        inside: list[tuple[str, Any]] = []
        tensors: list[int] = []
        for label, value in level:
            looks += 1
            if looks > _LOOKS:
                return
            if is_tensor(value):
                if id(value) in told:
                    continue
                tensors.append(id(value))
                yield label, value
                grad = field(value, "_grad")
                inside += [(f"{label}.grad", grad)] if grad is not None else []
            elif depth < _DEEP and id(value) not in seen:
                held = _held(label, value)
                seen.update([id(value)] if held else [])  # (in `names`, so it stays alive)
                inside += held
        told.update(tensors)
        level = inside


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


def _held(label: str, value: Any) -> list[tuple[str, Any]]:
    """What a value holds, with the code that reaches it. No code of the value's is run: containers
    are read by the builtin types' methods, objects by the fields that they store."""
    kind = type(value)
    if issubclass(kind, tuple) and type(named := _attributes(kind).get("_fields")) is tuple:
        fields = zip(named, tuple.__iter__(value), strict=False)
        return [(f"{label}.{name}", each) for name, each in fields]
    if kind in (list, tuple, deque):
        return [(f"{label}[{k}]", each) for k, each in enumerate(islice(value, _INSIDE))]
    if label.startswith("_"):
        return []
    if issubclass(kind, dict):
        items = list(islice(dict.items(value), _INSIDE))
        return [(f"{label}[{key!r}]", each) for key, each in items if type(key) in _KEYS]
    if module_fields(value) is not None:
        own = [(name, each) for name, each in _stored(value) if not name.startswith("_")]
        return [*named_in_module(label, value),
                *[(f"{label}.{name}", each) for name, each in own]]  # fmt: skip
    if issubclass(kind, (type, ModuleType, FunctionType)):
        return []
    return [(f"{label}.{name}", each) for name, each in _stored(value)]


def _attributes(kind: type) -> Mapping[str, Any]:
    """What a class itself defines, whatever its metaclass says."""
    found: Mapping[str, Any] = type.__dict__["__dict__"].__get__(kind)
    return found


def _stored(value: Any) -> list[tuple[str, Any]]:
    """The fields that an object stores, in its dictionary and in its slots."""
    found: dict[str, Any] = {}
    try:
        own = object.__getattribute__(value, "__dict__")
        found = dict(list(own.items())[:_INSIDE]) if type(own) is dict else {}
    except Exception:  # it has none
        pass
    for cls in type.mro(type(value)):
        if not type.__dict__["__flags__"].__get__(cls) & _HEAP:
            continue
        for name, slot in _attributes(cls).items():
            if type(slot) is MemberDescriptorType:
                with suppress(AttributeError):  # (it has no value yet)
                    found.setdefault(name, slot.__get__(value))
    return [(name, each) for name, each in found.items() if type(name) is str]


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
