"""Writing a zip archive of aligned, uncompressed records, to anything that can be written to.

Nothing is copied and nothing is sought: a record's size and sum are known before it is written, so
its header is right at once. Records of 4 GB and more have zip64 fields. See
https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from typing import Any, Final

from antorcha.utils.serialization import config

_MOST: Final = 0xFFFFFFFF
_DATE: Final = 0x21  # the first of January 1980
_MADE_BY: Final = 0x031E  # unix, version 3.0
_CHUNK: Final = 1 << 24
_WORTH: Final = 1 << 22  # bytes whose sum takes longer than to begin a thread


def write_all(file: Any, content: Any) -> None:
    """Writes to a file that may take a part at a time, as files without a buffer do."""
    content = memoryview(content)
    while len(content):
        taken = file.write(content)
        content = content[taken if isinstance(taken, int) else len(content) :]


@contextlib.contextmanager
def checksums(contents: Sequence[Any]) -> Iterator[Iterator[int]]:
    """The sums of the contents of records, in their order. Another thread works them out, so that
    one record is summed while the one before it is written: both take about as long."""
    if not config.save.compute_crc32:
        yield iter([0] * len(contents))
    elif sum([len(content) for content in contents]) < _WORTH:
        yield map(zlib.crc32, contents)
    else:
        sums: SimpleQueue[int] = SimpleQueue()
        given_up = threading.Event()

        def work() -> None:
            for content in contents:
                if given_up.is_set():
                    return
                sums.put(zlib.crc32(content))

        thread = threading.Thread(target=work, name="antorcha-save", daemon=True)
        thread.start()
        try:
            yield (sums.get() for _ in contents)
        finally:
            given_up.set()
            thread.join()


class Archive:
    """A zip archive that is being written; ``name`` is the folder of its records."""

    def __init__(self, file: Any, name: str) -> None:
        self.file, self.name, self.at = file, name, 0
        self.directory: list[bytes] = []
        self.digest = hashlib.sha256()
        self.alignment = max(int(config.save.storage_alignment), 1)

    def add(self, path: str, content: Any, total: int | None = None) -> None:
        """Writes a record; ``total``: its sum, where that is known."""
        if total is None:
            total = zlib.crc32(content) if config.save.compute_crc32 else 0
        self._head(path, len(content), total)
        self._write(content)

    def leave(self, path: str, nbytes: int) -> None:
        """Writes a record of zeros, to be filled in later."""
        self._head(path, nbytes, 0)
        zeros = memoryview(bytes(min(nbytes, _CHUNK)))
        for start in range(0, nbytes, _CHUNK):
            self._write(zeros[: nbytes - start])

    def _write(self, content: Any) -> None:
        write_all(self.file, content)
        self.at += len(content)

    def _head(self, path: str, size: int, total: int) -> None:
        name = f"{self.name}/{path}".encode()
        self.digest.update(total.to_bytes(4, "little"))
        start, large = self.at, size >= _MOST
        far = start >= _MOST
        sizes = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
        padding = -(start + 30 + len(name) + len(sizes) + 4) % self.alignment
        extra = sizes + struct.pack("<HH", 0x4246, padding) + b"Z" * padding
        shown = _MOST if large else size
        version = 45 if large or far else 20
        flags = 0 if name.isascii() else 0x800
        common = struct.pack("<HHHHHIII", version, flags, 0, 0, _DATE, total, shown, shown)
        lengths = struct.pack("<HH", len(name), len(extra))
        self._write(b"PK\x03\x04" + common + lengths + name + extra)
        fields = ([size, size] if large else []) + ([start] if far else [])
        extra = struct.pack(f"<HH{len(fields)}Q", 1, 8 * len(fields), *fields) if fields else b""
        tail = struct.pack("<HHHHHII", len(name), len(extra), 0, 0, 0, 0o644 << 16,
                           _MOST if far else start)  # fmt: skip
        entry = b"PK\x01\x02" + struct.pack("<H", _MADE_BY) + common + tail + name + extra
        self.directory.append(entry)

    def close(self) -> None:
        """Writes the directory."""
        start, count = self.at, len(self.directory)
        content = b"".join(self.directory)
        self._write(content)
        if start >= _MOST or count >= 0xFFFF:
            end = self.at
            record = struct.pack("<QHHIIQQQQ", 44, _MADE_BY, 45, 0, 0, count, count, len(content),
                                 start)  # fmt: skip
            self._write(b"PK\x06\x06" + record)
            self._write(b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1))
        few = min(count, 0xFFFF)
        self._write(
            b"PK\x05\x06"
            + struct.pack("<HHHHIIH", 0, 0, few, few, len(content), min(start, _MOST), 0)
        )
