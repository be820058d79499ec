"""Copies between a device's memory and the host's, in the order of the current stream.

A small copy goes through memory that is not the caller's: to the device through the machine's
stack, so that the driver has read it when it returns, wherever the data came from; to the host
through the home's window, which is pinned and so is written by the device itself. From other pinned
memory a device reads by itself, so that is waited for; of memory that is not pinned the driver has
a copy when it returns. The interpreter lock is released while a stream is waited for.
"""

from __future__ import annotations

from antorcha.lang.native import Global, i32, i64, local, memcpy, native, ptr, raw, u8
from antorcha.runtime.cpython import PyEval_RestoreThread, PyEval_SaveThread
from antorcha.runtime.launch import AGAIN
from antorcha.runtime.memory.device_memory import DeviceHome, DevicePool, ReportPage

WINDOW = 1 << 20
"""Bytes of a home's window."""
BY_STACK = 4096
"""Bytes that are sent through the stack."""
MOST_SENT = 1 << 20
"""Bytes that are sent while the interpreter lock is held."""
pinned = Global("antorcha_pinned_memory", i64, 2)  # between which addresses all of it lies


@native(export=True)
def send(home: ptr[DeviceHome], at: i64, data: raw, nbytes: i64) -> i64:
    """Copies to a device that is ready, so that the data may change afterwards; gives the driver's
    status, or AGAIN where Python has to say why it cannot be."""
    pool = ptr[DevicePool](home.pool)
    if pool.captured != 0:
        return AGAIN
    if nbytes <= BY_STACK:
        passed = local(u8, BY_STACK)
        memcpy(raw(passed), data, nbytes)
        return i64(home.send(at, raw(passed), nbytes, pool.stream))
    status = home.send(at, data, nbytes, pool.stream)
    if status == 0 and i64(data) >= pinned[0] and i64(data) < pinned[1]:
        token = PyEval_SaveThread()
        status = home.wait(pool.stream)
        PyEval_RestoreThread(token)
    return i64(status)


@native
def has_report(page: ptr[ReportPage], count: i64) -> bool:
    """Is something wrong, by the copy of a page?"""
    found = i64(0)
    for k in range(count):
        found = found | page.copy[k]
    return found != 0


@native(export=True)
def fetch(home: ptr[DeviceHome], to: raw, at: i64, nbytes: i64) -> i64:
    """Copies from a device that is ready when all is done that the current stream was given; gives
    the driver's status, or AGAIN where Python has to wait, as it has an error to raise."""
    pool = ptr[DevicePool](home.pool)
    if pool.captured != 0 or pool.replayed != 0:
        return AGAIN
    stream, page, window = pool.stream, pool.page, home.window
    home.window = None
    through = window is not None and nbytes <= WINDOW
    count = i64(0) if page is None else page.used
    status = i32(0)
    if count > 0:
        status = home.fetch(raw(page.copy), page.address, 8 * count, stream)
    if status == 0 and through:
        status = home.fetch(window, at, nbytes, stream)
    token = PyEval_SaveThread()
    if status == 0 and not through:  # (it waits: the memory is not pinned)
        status = home.fetch(to, at, nbytes, stream)
    if status == 0:
        status = home.wait(stream)
    PyEval_RestoreThread(token)
    if window is not None:
        home.window = window
    if status != 0:
        return i64(status)
    if count > 0:
        if has_report(page, count):
            return AGAIN
        if page.used == count:  # (another thread may have launched something)
            page.used = 0
    if through:
        memcpy(to, window, nbytes)
    return 0


def note_pinned(address: int, nbytes: int) -> None:
    """Pinned memory has been made there."""
    known = pinned.bytes.view("int64")
    known[0] = min(int(known[0]) or address, address)
    known[1] = max(int(known[1]), address + nbytes)
