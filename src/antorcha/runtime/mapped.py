"""Files as memory: a storage over a mapped file, of which nothing is read before it is used."""

from __future__ import annotations

import mmap
import os

import numpy as np

from antorcha.errors import GraphError
from antorcha.runtime.storage import Storage, is_readonly, new_storage, wrap


def map_file(path: str, shared: bool, nbytes: int) -> Storage:
    """A storage over the first bytes of a file.

    With ``shared``, writes go to the file, which is made, or made longer, where it has fewer
    bytes. Otherwise they stay in this process (pages are copied when they are first written to).
    Raises OSError, and RuntimeError for a file that is shorter.
    """
    if not nbytes:
        return new_storage(0)
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
    try:
        size = os.fstat(handle).st_size
        if shared and size < nbytes:
            os.ftruncate(handle, nbytes)
        elif size < nbytes:
            raise GraphError(
                f"the file {path} has {size:,} bytes: no {nbytes:,} bytes can be mapped from it"
            )
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        pages = mmap.mmap(handle, nbytes, access=access)
    finally:
        os.close(handle)
    address: int = np.frombuffer(pages, np.uint8).__array_interface__["data"][0]
    return wrap(address, nbytes, memoryview(pages))


def part(storage: Storage, start: int, nbytes: int) -> Storage:
    """A storage over some bytes of another, whose memory stays where it is meanwhile."""
    pinned = memoryview(storage)  # before the address is read
    address = storage.ptr + start if nbytes else 0
    return wrap(address, nbytes, pinned, is_readonly(storage))
