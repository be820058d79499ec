"""``torch.utils.serialization.config``: the defaults of ``torch.save`` and ``torch.load``.

>>> torch.utils.serialization.config.save.compute_crc32
True
"""

from __future__ import annotations

import mmap as _mmap
from typing import Any


class load:
    """What ``torch.load`` does where it is not told."""

    mmap = False
    """Are files mapped rather than read?"""
    endianness: Any = None
    """The byte order (a ``LoadEndianness``) of files that do not say theirs; None: little."""
    mmap_flags: int | None = getattr(_mmap, "MAP_PRIVATE", None)
    """``mmap.MAP_PRIVATE``, or ``mmap.MAP_SHARED``: writes to tensors go to the file."""
    calculate_storage_offsets = False
    """Accepted; where storages lie is read from the file's directory, which is quick."""


class save:
    """How ``torch.save`` writes."""

    compute_crc32 = True
    """Does each record have its sum? PyTorch and antorcha load it without, too."""
    storage_alignment = 64
    """The bytes of which each record begins at a multiple."""
    use_pinned_memory_for_d2h = False
    """Accepted: there is no pinned memory."""
