"""Who else uses a tensor's memory: found when asked, held by nobody.

The names of the caller are looked through first, and what one step away they hold (lists,
dictionaries, modules). Only if more tensors hold the storage than were found there is the
collector asked who does: one walk over its objects. Only words are kept of what is found.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from antorcha.lazy import lazy, np
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.runtime import storage as S
else:
    S = lazy("antorcha.runtime.storage")

_NAMES = 5000  # names looked through
_INSIDE = 200  # items looked at of one list or dictionary
_SHOWN = 12  # others that are told one by one


@dataclass(frozen=True)
class Sharer:
    """Somebody else with the same memory. ``kind``: "view" (or base: the same storage),
    "alias" (the same memory by another storage, as ``.data``, with a version of its own),
    "array" (NumPy's)."""

    name: str
    kind: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int | None
    dtype: str
    is_base: bool = False


@dataclass(frozen=True)
class Sharing:
    """What was found. ``saved``: values that graphs keep of the storage for backward. ``more``:
    sharers that are not in the list. ``searched``: was the collector asked?"""

    name: str
    others: tuple[Sharer, ...] = ()
    more: int = 0
    saved: int = 0
    searched: bool = False


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


def find(
    tensor: Tensor, names: Mapping[str, Any] | None, name: str | None, search: bool
) -> Sharing:
    """Who shares the memory of `tensor`, by name where `names` has one."""
    storage = tensor._storage
    known: dict[int, tuple[str, Tensor]] = {}
    others: list[Sharer] = []
    own = name or ""
    for label, value in _reachable(names or {}):
        if value is tensor:
            own = own or label
        elif isinstance(value, Tensor) and value._storage is storage:
            known.setdefault(id(value), (label, value))
        else:
            others += _by_address(label, value, storage)
    base = tensor._base
    if base is not None and base is not tensor and base._storage is storage:
        known.setdefault(id(base), ("", base))
    saved = 0
    # What one holder, a name and the call count for differs between versions of Python.
    holder = [object()]
    alike = holder[0]
    ask = search and sys.getrefcount(storage) > sys.getrefcount(alike) + len(known)
    if ask:
        saved = _ask_collector(storage, tensor, known)
    shared = [_sharer(label, value, base) for label, value in known.values()]
    shared = sorted(shared, key=lambda s: (not s.is_base, not s.name)) + others
    known.clear()
    more = max(len(shared) - _SHOWN, 0)
    return Sharing(own, tuple(shared[:_SHOWN]), more, saved, search)


def _ask_collector(storage: Any, tensor: Tensor, known: dict[int, tuple[str, Tensor]]) -> int:
    """Adds the tensors that hold the storage; gives how many saved values do."""
    saved = 0
    for holder in gc.get_referrers(storage):
        if issubclass(type(holder), Tensor):
            if holder is not tensor:
                known.setdefault(id(holder), ("", holder))
        elif type(holder) is tuple and len(holder) == 4 and holder[1] is storage:
            saved += 1  # runtime.call.node.Saved
    return saved


def _sharer(label: str, value: Tensor, base: Tensor | None) -> Sharer:
    lay = value._layout
    return Sharer(
        label, "view", tuple(lay.shape), lay.strides, value._offset, lay.dtype.name, value is base
    )


def _by_address(label: str, value: Any, storage: Any) -> list[Sharer]:
    """A tensor or an array over the same addresses, though by another storage."""
    if not storage.ptr or not storage.nbytes:
        return []
    if type(value) is np.ndarray:
        low, high = np.lib.array_utils.byte_bounds(value)
        if high <= storage.ptr or low >= storage.ptr + storage.nbytes or not value.size:
            return []
        size = max(value.itemsize, 1)
        strides = tuple([s // size for s in value.strides])
        return [Sharer(label, "array", value.shape, strides, None, value.dtype.name)]
    if isinstance(value, Tensor):
        theirs, lay = value._storage, value._layout
        if theirs.ptr < storage.ptr + storage.nbytes and storage.ptr < theirs.ptr + theirs.nbytes:
            return [Sharer(label, "alias", tuple(lay.shape), lay.strides, value._offset,
                           lay.dtype.name)]  # fmt: skip
    return []


def _reachable(names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Tensors and arrays that names lead to: themselves, in lists and dictionaries, in modules.

    Plain names first; those that begin with "_" (a notebook's old results) last.
    """
    items = [(name, value) for name, value in list(names.items())[:_NAMES] if type(name) is str]
    items.sort(key=lambda item: item[0].startswith("_"))
    for label, value in items:
        if _interests(value):
            yield label, value
    seen: set[int] = set()
    for label, value in items:
        yield from _inside(label, value, seen)


def _interests(value: Any) -> bool:
    kind = type(value)
    return (issubclass(kind, Tensor) and _is_whole(value)) or kind is np.ndarray


def _is_whole(tensor: Any) -> bool:
    """Has it all its fields? (``object.__new__`` makes tensors without any.)"""
    try:
        return bool(tensor._layout is not None and tensor._storage is not None)
    except AttributeError:
        return False


def _inside(label: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind in (list, tuple):
        for k, item in enumerate(value[:_INSIDE]):
            if _interests(item):
                yield f"{label}[{k}]", item
    elif kind is dict and not label.startswith("_"):
        for key, item in list(value.items())[:_INSIDE]:
            if type(key) is str and _interests(item):
                yield f"{label}[{key!r}]", item
    elif not issubclass(kind, type):  # (isinstance would ask the object)
        yield from _inside_module(label, value, seen)


def _inside_module(label: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """The parameters, buffers and parts of an ``nn.Module``, read from its fields."""
    try:
        fields = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return
    if type(fields) is not dict or "_parameters" not in fields or "_modules" not in fields:
        return
    if id(value) in seen or len(seen) > _NAMES:
        return
    seen.add(id(value))
    for table in ("_parameters", "_buffers"):
        for key, item in list((fields.get(table) or {}).items())[:_INSIDE]:
            if _interests(item):
                yield f"{label}.{key}", item
    for key, part in list(fields["_modules"].items())[:_INSIDE]:
        yield from _inside_module(f"{label}.{key}", part, seen)
