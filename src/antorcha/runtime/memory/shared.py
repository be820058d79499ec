"""Memory that processes share: segments, and the storages that lie in them.

A `Segment` is a file without a name (``memfd_create``) that this process has mapped. The kernel
counts who has it open or mapped and frees it with the last of them, however they end: there is no
name in /dev/shm that could be left behind, nor is the memory limited by that file system's size.
A process gives a segment to another by its file descriptor (``antorcha.multiprocessing.parcels``).

Small storages are put side by side in one segment, the arena, so that a model's many parameters do
not need a descriptor each. Invariants: a storage in shared memory has its segment for `owner`; in
each process there is one `Segment` for each file, and one storage for each place in it, so what is
received twice is one storage; a forked child begins an arena of its own.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

from antorcha.core.forks import held_over_forks
from antorcha.errors import GraphError, MissingFeature
from antorcha.lang.native import Extern, bind, i32, i64, native, ptr, raw
from antorcha.runtime.cpython import NONE, PyLong_AsLongLong, fast_def, new_reference
from antorcha.runtime.memory import storage as S
from antorcha.runtime.memory.storage_changes import move

__all__ = [
    "Segment", "attach", "is_shared", "map_file", "new_shared", "segment_of", "sendable",
    "share",
]  # fmt: skip

SMALL: Final = 256 << 10  # bytes; a larger storage has a segment of its own
ARENA: Final = 1 << 20
ALIGNMENT: Final = 64
PROT_READ, PROT_WRITE = 1, 2
MAP_SHARED, MAP_PRIVATE = 1, 2
_mmap = Extern("mmap", i64, i64, i64, i32, i32, i32, i64)
_munmap = Extern("munmap", i32, i64, i64)


@native
def py_unmap(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(address, nbytes)"""
    _munmap(PyLong_AsLongLong(args[0]), PyLong_AsLongLong(args[1]))
    return new_reference(raw(NONE))


_unmap: Callable[[int, int], None] = bind(fast_def("unmap", py_unmap.spec().addr))


class Segment:
    """A file that is mapped: where, its descriptor (-1 if it was closed), its name if it has one,
    how many bytes it has and how many are in use."""

    __slots__ = ("__weakref__", "address", "fd", "filename", "nbytes", "pieces", "used")

    def __init__(self, fd: int, nbytes: int, *, private: bool = False) -> None:
        self.address, self.fd = 0, -1
        self.filename: str | None = None
        self.nbytes, self.used = nbytes, 0
        self.pieces: weakref.WeakValueDictionary[int, S.Storage] = weakref.WeakValueDictionary()
        flags = MAP_PRIVATE if private else MAP_SHARED
        address = _mmap(0, max(nbytes, 1), PROT_READ | PROT_WRITE, flags, fd, 0)
        if address in (-1, (1 << 64) - 1):
            raise MemoryError(f"{nbytes} bytes of shared memory cannot be mapped")
        self.address, self.fd = address, fd

    def storage(self, offset: int, nbytes: int) -> S.Storage:
        """The storage at that place."""
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise GraphError(f"{nbytes} bytes at {offset} are outside of a shared segment")
        found = self.pieces.get(offset)
        if found is None or found.nbytes != nbytes:
            found = self.pieces[offset] = S.wrap(self.address + offset, nbytes, self)
        return found

    def close(self) -> None:
        """Closes the descriptor; the memory stays mapped, and can no longer be sent."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(
        self, unmap: Callable[..., None] = _unmap, close: Callable[[int], None] = os.close
    ) -> None:  # (at the interpreter's end there are no globals)
        if self.address:
            unmap(self.address, max(self.nbytes, 1))
        if self.fd >= 0:
            close(self.fd)


_lock = held_over_forks(threading.RLock())
_arena: Segment | None = None
_known: weakref.WeakValueDictionary[tuple[int, int], Segment] = weakref.WeakValueDictionary()


def _new_segment(nbytes: int) -> Segment:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("antorcha", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        os.ftruncate(fd, nbytes)
        return _know(Segment(fd, nbytes))
    except BaseException:
        os.close(fd)
        raise


def _know(segment: Segment) -> Segment:
    status = os.fstat(segment.fd)
    _known[status.st_dev, status.st_ino] = segment
    return segment


def attach(fd: int, *, keep: bool = True) -> Segment:
    """The segment of a file descriptor, which it takes over.

    Without `keep` the descriptor is closed: what is kept for long should not use up descriptors.
    """
    status = os.fstat(fd)
    with _lock:
        found = _known.get((status.st_dev, status.st_ino))
        if found is None or found.nbytes < status.st_size:  # (a file may have grown)
            try:
                found = _know(Segment(fd, status.st_size))
            except BaseException:
                os.close(fd)
                raise
            if not keep:
                found.close()
        elif keep and found.fd < 0:
            found.fd = fd
        else:
            os.close(fd)
        return found


def new_shared(nbytes: int) -> S.Storage:
    """A storage in shared memory, all zeros."""
    global _arena
    if nbytes > SMALL:
        return _new_segment(nbytes).storage(0, nbytes)
    taken = max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
    with _lock:
        if _arena is None or _arena.used + taken > ARENA:
            _arena = _new_segment(ARENA)
        offset = _arena.used
        _arena.used += taken
        return _arena.storage(offset, nbytes)


def _base(storage: S.Storage) -> S.Storage:
    """The storage whose memory this is: of a tensor's ``.data`` that tensor's."""
    owner = storage.owner
    whole: Any = owner.obj if isinstance(owner, memoryview) else None
    return whole if isinstance(whole, S.Storage) and whole.ptr == storage.ptr else storage


def segment_of(storage: S.Storage) -> Segment | None:
    """The segment that a storage lies in; None if its memory is the process's own."""
    owner = _base(storage).owner
    return owner if isinstance(owner, Segment) else None


def is_shared(storage: S.Storage) -> bool:
    """Do other processes, once they have it, see what is written to it?"""
    return segment_of(storage) is not None


def share(storage: S.Storage) -> None:
    """Moves a storage into shared memory, in its place: every tensor over it goes along.

    BufferError if its memory is in use by an array or a running kernel.
    """
    if not is_shared(storage):
        _move(storage)


def sendable(storage: S.Storage) -> tuple[Segment, int]:
    """The segment and the place in it that give another process this storage.

    What is not in shared memory yet moves there. Where it cannot, as an array shows its memory, and
    where the segment's descriptor is closed, the place is a copy's.
    """
    segment = segment_of(storage)
    if segment is not None and segment.fd >= 0:
        return segment, storage.ptr - segment.address
    try:
        moved = _move(storage)
    except BufferError:
        moved = new_shared(storage.nbytes)
        S.copy_bytes(moved, storage)
    return moved.owner, moved.ptr - moved.owner.address


def _move(storage: S.Storage) -> S.Storage:
    if not storage.ptr and storage.nbytes:
        raise MissingFeature("share_memory_: a meta storage has no data to share")
    base = _base(storage)
    home = new_shared(base.nbytes)
    segment: Segment = home.owner
    move(base, home, 0 if base is storage else 1)
    segment.pieces[base.ptr - segment.address] = base
    if base is not storage:
        move(storage, S.wrap(base.ptr, storage.nbytes, memoryview(base)))
    return base


def map_file(filename: str, shared: bool, nbytes: int) -> S.Storage:
    """A storage over a file's first bytes. If it is shared, writes go to the file, which is made or
    grows where it must."""
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        fd = os.open(filename, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise GraphError(
            f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from None
    try:
        size = os.fstat(fd).st_size
        if size < nbytes:
            if not shared:
                raise GraphError(
                    f"file <{filename}> size <{size}> is smaller than the required mapping size "
                    f"<{nbytes}>"
                )
            os.ftruncate(fd, nbytes)
        segment = Segment(fd, nbytes, private=not shared)
    except BaseException:
        os.close(fd)
        raise
    segment.filename = os.fspath(filename)
    if not shared:
        segment.close()  # what is written stays here: nobody is to be given the file in its place
    return segment.storage(0, nbytes)


def _begin_anew() -> None:
    global _arena
    _arena = None


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_anew)
