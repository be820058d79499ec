"""Files that are whole or not there: written beside their place, which they take when complete.

A crash, a full disk, or Ctrl+C in the middle leaves the old file as it was, and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block is complete, and not otherwise.

    Permissions stay. A link is followed: what it leads to is replaced. Pipes and devices, which
    nothing can take the place of, are written to when the block is complete. Raises OSError.
    """
    place = os.path.realpath(path)
    mode = _mode(place)
    if mode is None or stat.S_ISREG(mode):
        with _beside(place, mode) as file:
            yield file
    else:
        whole = io.BytesIO()
        yield whole
        with open(place, "wb") as device:
            device.write(whole.getbuffer())


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a text in UTF-8, compressed if the path ends in ``.gz``, whole or not at all."""
    content = text.encode()
    if os.fspath(path).endswith(".gz"):
        import gzip

        content = gzip.compress(content)
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def _beside(place: str, mode: int | None) -> Iterator[BinaryIO]:
    folder, name = os.path.split(place)
    beside = os.path.join(folder, f".{name[:40]}.{os.urandom(6).hex()}.part")
    try:
        # 0o666: the system takes away what the umask says
        handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        with open(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None and mode != os.stat(beside).st_mode:
            os.chmod(beside, stat.S_IMODE(mode))
        os.replace(beside, place)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError) and error.filename == beside:  # a name that nobody knows
            error.filename, error.filename2 = place, None
        raise


_BINARY = getattr(os, "O_BINARY", 0)  # Windows


def _mode(place: str) -> int | None:
    """What kind of file it is, with its permissions; None where there is none."""
    try:
        mode = os.stat(place).st_mode
    except FileNotFoundError:
        return None
    if not os.access(place, os.W_OK):  # a file made read-only is not to be replaced
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)
    return mode
