"""Requests and answers between processes: lists of bytes over TCP, each with its length.

A server answers every connection in a thread of its own. Nothing that arrives is code, or is
unpickled.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Final

Answer = Callable[[list[bytes]], list[bytes]]
_CHUNK: Final = 1 << 20  # bytes of a message that are taken at once
_MOST: Final = 1 << 16  # parts of a message
_PAUSE: Final = 0.02  # seconds until the next try to reach a server


class DistError(RuntimeError):
    """Something that concerns several processes failed."""


class DistNetworkError(DistError):
    """A connection could not be made, or was lost."""


class DistBackendError(DistError):
    """A backend failed."""


def _receive(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(count - len(parts), _CHUNK))
        if not part:
            raise ConnectionResetError("the connection was closed")
        parts += part
    return bytes(parts)


def receive(connection: socket.socket) -> list[bytes]:
    """The next message."""
    (count,) = struct.unpack("<I", _receive(connection, 4))
    if count > _MOST:
        raise ConnectionAbortedError(f"a message of {count} parts")
    sizes = struct.unpack(f"<{count}Q", _receive(connection, 8 * count))
    return [_receive(connection, size) for size in sizes]


def send(connection: socket.socket, message: list[bytes]) -> None:
    """Sends a message."""
    sizes = [len(part) for part in message]
    connection.sendall(struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes) + b"".join(message))


class Link:
    """A connection to a server, which threads take in turns."""

    def __init__(self, host: str, port: int, patience: float) -> None:
        self._lock = threading.Lock()
        self._connection = _connect(host, port, patience)

    def ask(self, request: list[bytes]) -> list[bytes]:
        """The server's answer. Raises DistNetworkError once the connection is lost."""
        with self._lock:
            try:
                send(self._connection, request)
                return receive(self._connection)
            except OSError as error:
                self._connection.close()
                raise DistNetworkError(
                    f"{error}. Connection was likely closed. Did the remote server shutdown or "
                    "crash?"
                ) from None
            except BaseException:  # Ctrl+C: the answer to this would be taken for the next one's
                self._connection.close()
                raise


def _connect(host: str, port: int, patience: float) -> socket.socket:
    """A connection, made as soon as there is a server."""
    deadline = time.monotonic() + patience
    while True:
        try:
            left = max(deadline - time.monotonic(), 0.001)
            connection = socket.create_connection((host, port), left)
        except OSError as error:
            if time.monotonic() + _PAUSE < deadline and not isinstance(error, socket.gaierror):
                time.sleep(_PAUSE)
                continue
            raise DistNetworkError(
                f"The client socket has timed out after {patience * 1000:.0f}ms while trying to "
                f"connect to ({host}, {port}): {error}"
            ) from None
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """Answers requests at a port, until nobody holds it any more."""

    def __init__(self, host: str, port: int, answer: Answer) -> None:
        try:
            address = (host if _is_local(host) else "", port)
            self._listener = socket.create_server(address, backlog=2048)
        except (OSError, OverflowError) as error:
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address. port: "
                f"{port}, message: {error}"
            ) from None
        self.port = int(self._listener.getsockname()[1])
        connections: weakref.WeakSet[Any] = weakref.WeakSet()
        weakref.finalize(self, _end, self._listener, connections)
        _begin(_accept, self._listener, connections, answer)


def _begin(target: Callable[..., None], *args: Any) -> None:
    threading.Thread(target=target, args=args, name="antorcha-store", daemon=True).start()


def _end(listener: socket.socket, connections: weakref.WeakSet[Any]) -> None:
    _close(listener)  # first: what is accepted from here on is closed by who accepts it
    for each in [*connections]:
        _close(each)


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)  # (who waits for it is woken)
    each.close()


def _accept(listener: socket.socket, connections: weakref.WeakSet[Any], answer: Answer) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.add(connection)
            if listener.fileno() < 0:  # the server ended meanwhile, and may not have seen this one
                _close(connection)
                return
            _begin(_serve, connection, answer)


def _serve(connection: socket.socket, answer: Answer) -> None:
    """Answers one connection, until it ends or sends what is no request."""
    with connection, contextlib.suppress(OSError, ValueError, KeyError):
        while True:
            send(connection, answer(receive(connection)))
