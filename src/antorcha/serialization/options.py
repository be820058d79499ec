"""What can be set about saving and loading: byte order, sums, mapping, places of storages."""

from __future__ import annotations

import enum
import mmap
import threading
from collections.abc import Callable
from typing import Any

from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.utils.serialization import config


class LoadEndianness(enum.Enum):
    """The byte order of a file that does not say its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order taken for files that do not say theirs; None: little."""
    found: LoadEndianness | None = config.load.endianness
    return found


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order taken for files that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise ArgumentError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Does ``torch.save`` write the sum of each record? Default: True."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Says whether ``torch.save`` writes the sum of each record: programs that unpack zip files
    want it, ``torch.load`` does not."""
    config.save.compute_crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int | None:
    """How ``torch.load(mmap=True)`` maps: ``mmap.MAP_PRIVATE`` (default) or ``MAP_SHARED``."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """Sets how ``torch.load(mmap=True)`` maps, for good or for a ``with`` block.

    Args:
        flags (int): ``mmap.MAP_PRIVATE``: writes to loaded tensors stay in this process;
            ``mmap.MAP_SHARED``: they go to the file

    >>> import mmap
    >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        known = (getattr(mmap, "MAP_PRIVATE", None), getattr(mmap, "MAP_SHARED", None))
        if flags not in known or flags is None:
            raise ValueRangeError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        config.load.mmap_flags = self.prev


class _Local(threading.local):
    skip_data = False


local = _Local()


class skip_data:
    """A context in which storages' bytes are neither written nor read.

    ``torch.save`` leaves zeros in their place; ``torch.load`` gives tensors with uninitialised
    memory.

    >>> import io
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = local.skip_data
        local.skip_data = True

    def __exit__(self, *_: object) -> None:
        local.skip_data = self._before


# ---- places of storages
Package = tuple[int, Callable[[Any], "str | None"], Callable[[Any, str], Any]]
packages: list[Package] = []
BUILT_IN = 20
"""The priority of the places that antorcha knows."""


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Adds a way to name where a storage is, and to bring it there.

    Args:
        priority (int): lower ones are asked first; antorcha's own places have 20
        tagger: storage -> its place (str), or None
        deserializer: (storage, place) -> a storage there, or None

    See https://docs.pytorch.org/docs/stable/notes/serialization.html.
    """
    packages.append((priority, tagger, deserializer))
    packages.sort(key=lambda each: each[0])
