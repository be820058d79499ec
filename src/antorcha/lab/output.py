"""What the child prints: streams that behave as a program expects, and speak to the lab alone."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import zmq
from ipykernel.iostream import IOPubThread, OutStream
from zmq.eventloop.zmqstream import ZMQStream

from antorcha.lab.child_names import FOLDER
from antorcha.lab.tail import Tail


class PrivateThread(IOPubThread):  # type: ignore[misc]
    """Takes the output of forked processes by a socket in our folder; ipykernel's own listens on a
    port of the machine."""

    def _setup_pipe_in(self) -> None:
        self._pipe_uuid = os.urandom(16)
        pipe_in = self.socket.context.socket(zmq.PULL)
        pipe_in.linger = 0
        pipe_in.bind(_forked())
        self._pipe_in = ZMQStream(pipe_in, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def _setup_pipe_out(self) -> tuple[Any, Any]:
        context = zmq.Context()  # sockets of the time before the fork are the parent's
        pipe_out = context.socket(zmq.PUSH)
        pipe_out.linger = 3000
        pipe_out.connect(_forked())
        return context, pipe_out


def _forked() -> str:
    return f"ipc://{os.environ[FOLDER]}/forked"


class Output(OutStream):  # type: ignore[misc]
    """``sys.stdout`` and ``sys.stderr``: text, and bytes through ``buffer``, as in any program."""

    errors = "replace"

    def __init__(self, session: Any, pub_thread: Any, name: str, *rest: Any, **how: Any) -> None:
        folder = os.environ.get(FOLDER)  # (not in tests)
        self._tail = Tail(Path(folder), name) if folder else None
        super().__init__(session, pub_thread, name, *rest, **how)

    def write(self, string: str) -> int:
        """Show text; what has no bytes in UTF-8 (half of a surrogate pair) shows as ``?``."""
        if not str.isascii(string):
            string = string.encode("utf-8", "replace").decode("utf-8")
        if self._tail is not None:
            with self._buffer_lock:
                self._tail.add(string)
        super().write(string)
        return len(string)

    def begin(self) -> None:
        """A program begins: send what the last one wrote."""
        self.flush()
        if self._tail is not None:
            self._tail.clear()

    @property
    def buffer(self) -> _Bytes:
        return _Bytes(self)

    def fileno(self) -> int:
        """The number that other programs may write to; what they write is shown."""
        watched = getattr(self, "_original_stdstream_fd", None)  # not in tests, nor everywhere
        return int(super().fileno() if watched is None else watched)

    def close(self) -> None:
        """Show what was written so far; the next program prints, too."""
        self.flush()


class _Bytes(io.RawIOBase):
    """The way in for bytes."""

    def __init__(self, stream: Output) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        whole = bytes(data)
        self._stream.write(whole.decode("utf-8", "replace"))
        return len(whole)

    def flush(self) -> None:
        self._stream.flush()
