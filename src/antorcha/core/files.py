"""Files that are whole or not there: written beside their place, which they take when complete.

A crash, a full disk, or Ctrl+C in the middle leaves the old file as it was, and nothing else. A
process that is killed leaves a ``.part``, which the next one that writes to that place removes.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

from antorcha.core.lazy import lazy

gzip = lazy("gzip")

LARGE = 1 << 24  # bytes
_LOCKS = sys.platform != "win32"  # where a file that is open cannot be removed
if _LOCKS:
    import fcntl


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], durable: bool = True) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block is complete, and not otherwise.

    Permissions stay. A link is followed: what it leads to is replaced. Pipes and devices, which
    nothing can take the place of, are written to when the block is complete. Raises OSError.
    ``durable`` waits for the disk, so that it is true of a machine that loses power, too.
    """
    place = os.path.realpath(path)
    mode = _mode(place)
    if mode is None or stat.S_ISREG(mode):
        with _beside(place, mode, durable) as file:
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
        content = gzip.compress(content)
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def _beside(place: str, mode: int | None, durable: bool) -> Iterator[BinaryIO]:
    folder, name = os.path.split(place)
    start = f".{name[:40]}."
    _remove_abandoned(folder, start)
    beside = ""
    try:
        _let_go(place)
        beside, handle, held = _new_part(folder, start)
        try:
            with open(handle, "w+b") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            if mode is not None and mode != os.stat(beside).st_mode:
                os.chmod(beside, stat.S_IMODE(mode))
            os.replace(beside, place)
        finally:
            if held >= 0:
                os.close(held)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        parts = os.path.join(folder, start)  # names that nobody knows
        if isinstance(error, OSError) and str(error.filename).startswith(parts):
            error.filename, error.filename2 = place, None
        raise


def _let_go(place: str) -> None:
    """Lets the system take the memory that caches a large file whose content is to be replaced: the
    new one fills it again, instead of as much more (which a virtual machine has to ask for)."""
    with contextlib.suppress(OSError, AttributeError), open(place, "rb") as file:
        if os.fstat(file.fileno()).st_size > LARGE:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# ---- parts: files that are being written, or whose writer was killed
_ABANDONED = 24 * 3600.0  # seconds unchanged; for parts of which nobody can tell whether they live


def _new_part(folder: str, start: str) -> tuple[str, int, int]:
    """The path and the handle of a new file, and a handle that holds its lock (-1: there is none).
    Where there are locks, a part is locked until it has taken its place."""
    while True:
        beside = os.path.join(folder, f"{start}{_kernel()}{os.urandom(6).hex()}.part")
        # 0o666: the system takes away what the umask says
        handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        if not _lock(handle):
            return beside, handle, -1
        if _is_at(handle, beside):
            return beside, handle, os.dup(handle)
        os.close(handle)  # another save took it for abandoned, before it was locked


def _remove_abandoned(folder: str, start: str) -> None:
    """Removes the parts that killed processes have left of a file, and none that is being written:
    one of this machine is, as long as it is locked; of another, as long as it changes."""
    pattern = re.compile(re.escape(start) + r"([0-9a-f]{12,24})\.part")
    with contextlib.suppress(OSError), os.scandir(folder or os.curdir) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            if found:
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(entry.path, found[1])


def _remove_if_abandoned(path: str, mark: str) -> None:
    ours = bool(_LOCKS and _kernel()) and len(mark) == 24 and mark.startswith(_kernel())
    if not ours and time.time() - os.stat(path).st_mtime < _ABANDONED:
        return
    handle = os.open(path, os.O_RDWR | _BINARY | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not _LOCKS or (_lock(handle, wait=False) and _is_at(handle, path)):
            os.unlink(path)
    finally:
        os.close(handle)


@functools.cache
def _kernel() -> str:
    """Which running system this is; empty where it does not tell. Only within one does everybody
    see everybody's locks: folders may be shared by machines that do not share those."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:12]
    except OSError:
        return ""


def _lock(handle: int, wait: bool = True) -> bool:
    """Locks an open file until it is closed; False if it is locked, or cannot be."""
    if not _LOCKS:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # (some network file systems have no locks)
        return False
    return True


def _is_at(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


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
