"""The last of what a program printed, in memory that outlives its process.

What the child prints travels by messages, a few times a second. A process that dies in between
(``os._exit``, a segmentation fault, a kill) takes with it what was not sent yet. So every write is
also copied into a small file that parent and child both map: the parent, which knows how much has
come, reads the rest there.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path

SIZE = 1 << 20  # bytes kept of each stream: what a busy machine may not have sent yet
_HEAD = 8  # bytes of the number of all that was written


def _path(folder: Path, stream: str) -> Path:
    return folder / f"tail-{stream}"


class Tail:
    """The writing end, in the child: a ring of the last `SIZE` bytes of one stream."""

    def __init__(self, folder: Path, stream: str) -> None:
        number = os.open(_path(folder, stream), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.ftruncate(number, _HEAD + SIZE)
            self._map = mmap.mmap(number, _HEAD + SIZE)
        finally:
            os.close(number)

    def add(self, text: str) -> None:
        """Note what is being written."""
        data = text.encode("utf-8", "replace")
        total = int.from_bytes(self._map[:_HEAD], "little")
        begin = total + max(len(data) - SIZE, 0)
        kept = data[-SIZE:]
        place = begin % SIZE
        first = kept[: SIZE - place]
        self._map[_HEAD + place : _HEAD + place + len(first)] = first
        self._map[_HEAD : _HEAD + len(kept) - len(first)] = kept[len(first) :]
        self._map[:_HEAD] = (total + len(data)).to_bytes(_HEAD, "little")

    def clear(self) -> None:
        """Begin anew: all that was written has been sent."""
        self._map[:_HEAD] = bytes(_HEAD)


def unsent(folder: Path, stream: str, received: int) -> str:
    """What a process that died had written to a stream beyond the bytes `received` of it; of more
    than `SIZE` bytes, the last."""
    data = b""
    with contextlib.suppress(OSError):
        data = _path(folder, stream).read_bytes()
    total = int.from_bytes(data[:_HEAD], "little")
    count = min(max(total - received, 0), SIZE, max(len(data) - _HEAD, 0))
    place = (total - count) % SIZE
    ring = data[_HEAD:]
    return (ring[place:] + ring[:place])[:count].decode("utf-8", "replace")
