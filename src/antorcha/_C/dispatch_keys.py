"""``torch._C.DispatchKey`` and the guards that turn keys off for a block.

PyTorch finds an operator's kernel by such keys. Operators written in Python (``torch.library``)
have kernels by device and, of the other keys, for autocast (``AutocastCPU``): those can be turned
off.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Iterable, Iterator
from typing import Final

from antorcha.errors import ArgumentError, MissingFeature

_DEVICES = "CPU CUDA XPU MPS HPU XLA MTIA PrivateUse1 Meta"
DispatchKey = enum.Enum(  # type: ignore[misc]
    "DispatchKey",
    [
        "Undefined", *_DEVICES.split(), "BackendSelect", "Python", "PythonDispatcher",
        "PythonTLSSnapshot", "Functionalize", "ADInplaceOrView", "Autograd", "AutogradOther",
        *[f"Autograd{device}" for device in _DEVICES.split()],
        *[f"Autocast{device}" for device in _DEVICES.split()[:-1]],
        "CompositeImplicitAutograd", "CompositeExplicitAutograd",
        "CompositeExplicitAutogradNonFunctional",
    ],
    module="torch._C",
)  # fmt: skip
"""PyTorch's keys, as far as programs name them."""


class DispatchKeySet:
    """A set of dispatch keys.

    >>> from antorcha._C import DispatchKey, DispatchKeySet
    >>> both = DispatchKeySet(DispatchKey.AutocastCPU) | DispatchKeySet(DispatchKey.CPU)
    >>> both.has(DispatchKey.CPU), both.has(DispatchKey.CUDA)
    (True, False)
    """

    def __init__(self, keys: DispatchKey | Iterable[DispatchKey]) -> None:
        self._keys = frozenset([keys] if isinstance(keys, DispatchKey) else keys)
        if not all([isinstance(key, DispatchKey) for key in self._keys]):
            raise ArgumentError(f"DispatchKeySet: expected DispatchKey, got {keys!r}")

    def has(self, key: DispatchKey) -> bool:
        """Is the key in the set?"""
        return key in self._keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """The set with one key more."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(self._keys - {key})

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __iter__(self) -> Iterator[DispatchKey]:
        return iter(sorted(self._keys, key=lambda key: int(key.value)))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join([key.name for key in self])})"


class _Excluded(threading.local):
    keys: Final[list[DispatchKeySet]]

    def __init__(self) -> None:
        self.keys = []


_excluded = _Excluded()


def is_excluded(key: str) -> bool:
    """Has a block around this turned off the key of that name?"""
    return any([keys.has(DispatchKey[key]) for keys in _excluded.keys])


class ExcludeDispatchKeyGuard:
    """Inside the block the autocast kernels of a set of keys are not used."""

    def __init__(self, keys: DispatchKeySet) -> None:
        others = [key.name for key in keys if not key.name.startswith("Autocast")]
        if others:
            raise MissingFeature(
                f"torch._C._ExcludeDispatchKeyGuard: only autocast can be turned off, not "
                f"{', '.join(others)}"
            )
        self._set = keys

    def __enter__(self) -> None:
        _excluded.keys.append(self._set)

    def __exit__(self, *_: object) -> None:
        _excluded.keys.pop()
