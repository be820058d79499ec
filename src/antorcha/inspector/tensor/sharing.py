"""Who else uses a tensor's memory: found when asked, held by nobody.

The names of the caller are looked through first, and what is a few steps away from them (in lists,
dictionaries, modules, other objects). Only if more tensors hold the storage than were found there
is the collector asked who does: one walk over its objects. Only words are kept of what is found.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antorcha.core.lazy import lazy, np
from antorcha.inspector.naming import named_tensors
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.runtime.memory import storage as S
else:
    S = lazy("antorcha.runtime.memory.storage")

_NAMES = 5000  # names looked through
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


def find(
    tensor: Tensor, names: Mapping[str, Any] | None, name: str | None, search: bool
) -> Sharing:
    """Who shares the memory of `tensor`, by name where `names` has one."""
    storage = tensor._storage
    known: dict[int, tuple[str, Tensor]] = {}
    others: list[Sharer] = []
    own = name or ""
    for label, value in named_tensors(names or {}):
        if value is tensor:
            own = own or label
        elif value._storage is storage:
            known.setdefault(id(value), (label, value))
        elif value._storage.ptr and _meets(storage, *_span(value._storage)):
            others.append(_sharer(label, value, "alias"))
    others += _arrays(names or {}, storage)
    base = tensor._base
    if base is not None and base is not tensor and base._storage is storage:
        known.setdefault(id(base), (f"{own}._base" if own else "", base))
    saved = 0
    # What one holder, a name and the call count for differs between versions of Python.
    holder = [object()]
    alike = holder[0]
    ask = search and sys.getrefcount(storage) > sys.getrefcount(alike) + len(known)
    if ask:
        saved = _ask_collector(storage, tensor, known)
    shared = [_sharer(label, value, "view", value is base) for label, value in known.values()]
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


def _sharer(label: str, value: Tensor, kind: str, is_base: bool = False) -> Sharer:
    layout = value._layout
    return Sharer(
        label, kind, tuple(layout.shape), layout.strides, value._offset, layout.dtype.name, is_base
    )


def _arrays(names: Mapping[str, Any], storage: S.Storage) -> list[Sharer]:
    """NumPy's arrays over the same addresses, among the names themselves."""
    found = []
    for label, value in list(names.items())[:_NAMES]:
        if type(value) is not np.ndarray or type(label) is not str or not value.nbytes:
            continue
        if _meets(storage, *np.lib.array_utils.byte_bounds(value)):
            strides = tuple([s // value.itemsize for s in value.strides])
            found.append(Sharer(label, "array", value.shape, strides, None, value.dtype.name))
    return found


def _span(storage: S.Storage) -> tuple[int, int]:
    return storage.ptr, storage.ptr + storage.nbytes


def _meets(storage: S.Storage, low: int, high: int) -> bool:
    """Do these addresses and the storage's have some in common?"""
    begin, end = _span(storage)
    return begin != 0 and low < end and begin < high
