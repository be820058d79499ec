"""Parcels: a pickle and the memory that it speaks of, sent from process to process.

A tensor is pickled as its segment of shared memory, the place in it and its layout; none of its
elements is copied once it is in shared memory. The segment travels as a file descriptor. Through a
`Connection`, which is a Unix socket, it goes along with the pickle: the kernel holds it until it is
received, or until the last end of the connection is closed, so nothing is lost if the sender ends
first, and nothing is left over if nobody receives it. Other ways (the arguments of a process, a
queue of the standard library) hand it over as ``multiprocessing`` does, and need the sender alive.

A message is: its length and the number of descriptors, 12 bytes; a byte for each further lot of
descriptors; the pickle.
"""

from __future__ import annotations

import array
import errno
import io
import pickle
import socket
import struct
import threading
from collections.abc import Callable
from multiprocessing import connection as plain
from multiprocessing import reduction
from typing import Any, Final

from antorcha.errors import GraphError
from antorcha.multiprocessing.reductions import reduce_tensor
from antorcha.runtime.memory import shared
from antorcha.runtime.memory.shared import Segment
from antorcha.runtime.tensor import Tensor

__all__ = ["Connection", "Pipe", "pack", "unpack"]

HEADER: Final = struct.Struct("!QI")
LOT: Final = 253  # the most descriptors that one message of a socket may carry
ITEM: Final = array.array("i").itemsize
_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class _ThreadSegments(threading.local):
    """The segments of the pickle that this thread is writing or reading."""

    packing: list[Segment] | None = None
    unpacking: list[Segment] | None = None


_mine = _ThreadSegments()


class _Ready(threading.local):
    """Segments between packing and sending, or receiving and unpacking, of this thread."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []


_ready = _Ready()


class _Packer(reduction.ForkingPickler):
    """Writes tensors of every class as their shared memory."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and type(obj).__reduce_ex__ is Tensor.__reduce_ex__:
            return reduce_tensor(obj)
        return NotImplemented


def pack(obj: Any) -> tuple[bytes, list[Segment]]:
    """The pickle of an object, and the segments that its tensors lie in."""
    before = _mine.packing
    segments = _mine.packing = []
    try:
        file = io.BytesIO()
        _Packer(file, pickle.HIGHEST_PROTOCOL).dump(obj)
        return file.getvalue(), segments
    finally:
        _mine.packing = before


def unpack(data: Any, segments: list[Segment]) -> Any:
    """The object again."""
    before = _mine.unpacking
    _mine.unpacking = segments
    try:
        return pickle.loads(data)
    finally:
        _mine.unpacking = before


def _number(segment: Segment) -> int:
    found = _mine.packing
    assert found is not None
    found.append(segment)
    return len(found) - 1


def _numbered(number: int) -> Segment:
    if _mine.unpacking is None:
        raise GraphError("a pickled tensor in shared memory was read outside of its connection")
    return _mine.unpacking[number]


def _received(descriptor: Any) -> Segment:
    return shared.attach(descriptor.detach())


def reduce_segment(segment: Segment) -> Any:
    """How a segment is pickled."""
    if _mine.packing is not None:
        return _numbered, (_number(segment),)
    return _received, (reduction.DupFd(segment.fd),)


class Connection(plain.Connection):
    """One end of a pipe that carries tensors in shared memory.

    It has the methods of ``multiprocessing.connection.Connection``. Whoever receives keeps the
    segments' descriptors, to send them on, unless `keep` is False.
    """

    keep = True
    _check_closed: Callable[[], None]
    _check_readable: Callable[[], None]
    _check_writable: Callable[[], None]
    _bad_message_length: Callable[[], None]

    def __init__(self, handle: int, readable: bool = True, writable: bool = True) -> None:
        super().__init__(handle, readable, writable)
        self._socket = socket.socket(fileno=handle)

    def _close(self, *_: Any) -> None:
        self._socket.close()

    # ---- objects
    def send(self, obj: Any) -> None:
        """Sends an object."""
        self._check_closed()
        self._check_writable()
        self._send_parcel(*pack(obj))

    def recv(self) -> Any:
        """The next object; EOFError when the other end is closed."""
        return unpack(*self.recv_parcel())

    def recv_parcel(self) -> tuple[Any, list[Segment]]:
        """The next pickle, with its segments."""
        self._check_closed()
        self._check_readable()
        return self._receive(None)

    # ---- bytes: how the base class and queues send, who have packed the object themselves
    def _send_bytes(self, buf: Any) -> None:
        segments, _ready.segments = _ready.segments, []
        self._send_parcel(buf, segments)

    def _recv_bytes(self, maxsize: int | None = None) -> io.BytesIO:
        data, _ready.segments = self._receive(maxsize)
        return io.BytesIO(data)

    # ---- the socket
    def _send_parcel(self, data: Any, segments: list[Segment]) -> None:
        fds = [segment.fd for segment in segments]
        head = HEADER.pack(len(data), len(fds))
        if len(fds) <= LOT:
            sent = self._socket.sendmsg([head, data], _rights(fds)) - len(head)
        else:
            self._socket.sendmsg([head], _rights(fds[:LOT]))
            for start in range(LOT, len(fds), LOT):
                self._socket.sendmsg([b"+"], _rights(fds[start : start + LOT]))
            sent = 0
        if sent < len(data):
            self._socket.sendall(memoryview(data)[sent:])

    def _receive(self, maxsize: int | None) -> tuple[Any, list[Segment]]:
        segments: list[Segment] = []
        head = self._take(HEADER.size, segments)
        length, count = HEADER.unpack(head)
        while len(segments) < count:
            self._take(1, segments)
        if maxsize is not None and length > maxsize:
            self._bad_message_length()
        data = bytearray(length)
        with memoryview(data) as view:
            place = 0
            while place < length:
                got = self._socket.recv_into(view[place:])
                if got == 0:
                    raise EOFError
                place += got
        return data, segments

    def _take(self, count: int, segments: list[Segment]) -> bytes:
        """So many bytes, and the segments whose descriptors come with them."""
        found = b""
        while len(found) < count:
            part, extra, flags, _ = self._socket.recvmsg(
                count - len(found), socket.CMSG_SPACE(LOT * ITEM), _CLOSE_ON_EXEC
            )
            fds = array.array("i")
            for _level, _kind, payload in extra:
                fds.frombytes(payload[: len(payload) // ITEM * ITEM])
            segments += [shared.attach(fd, keep=self.keep) for fd in fds]
            if flags & socket.MSG_CTRUNC:
                raise OSError(
                    errno.EMFILE,
                    "Too many open files: a tensor's shared memory could not be received. Raise "
                    "the limit with `ulimit -n`, or keep fewer tensors that were received",
                )
            if not part:
                raise EOFError
            found += part
        return found


def _rights(fds: list[int]) -> list[Any]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []


class Parcel:
    """An object that is packed when it is pickled, for queues that pickle and send by themselves:
    the segments go with the message that this thread sends next."""

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content

    def __reduce__(self) -> Any:
        data, _ready.segments = pack(self.content)
        return _unpack_ready, (data,)


def _unpack_ready(data: bytes) -> Any:
    segments, _ready.segments = _ready.segments, []
    return unpack(data, segments)


def Pipe(duplex: bool = True) -> tuple[Connection, Connection]:
    """Two connected ends; without `duplex` the first one only receives, the second only sends."""
    first, second = socket.socketpair()
    return (
        Connection(first.detach(), writable=duplex),
        Connection(second.detach(), readable=duplex),
    )


def _reduce_connection(end: Connection) -> Any:
    return _rebuild_connection, (reduction.DupFd(end.fileno()), end.readable, end.writable)


def _rebuild_connection(descriptor: Any, readable: bool, writable: bool) -> Connection:
    return Connection(descriptor.detach(), readable, writable)


reduction.register(Connection, _reduce_connection)
reduction.register(Segment, reduce_segment)
