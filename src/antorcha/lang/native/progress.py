"""Says on a terminal that kernels are being compiled, when that takes a while.

A first run compiles for seconds; without a word the program seems to hang. After half a second of
compiling, a line counts the kernels. It stands behind the cursor, so that a half-written line of
the program stays, and is there only while a kernel is compiled: the program, whose thread waits for
that, never writes into it. Other threads could; where there are any, a whole line is written once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from antorcha import config

AFTER = 0.5  # seconds of compiling before the first word
PAUSE = 1.0  # seconds without any, after which the next begins anew
SILENT = "antorcha compiles ahead"  # the name of a thread that never writes

_SAVE, _RESTORE, _CLEAR = "\x1b7", "\x1b8", "\x1b[K"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"  # a line too long for the terminal is cut


class Progress:
    """What has been compiled without a pause. Used under the engine's lock: by one thread."""

    def __init__(self) -> None:
        self.count = 0
        self.busy = 0.0
        self.ended = 0.0
        self.depth = 0
        self.said = False

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Around the compilation of one kernel."""
        if self.depth:  # a kernel compiled for the sake of another
            self.count += 1
            yield
            return
        begin = time.perf_counter()
        if begin - self.ended > PAUSE:
            self.count, self.busy, self.said = 0, 0.0, False
        self.depth = 1
        self.count += 1
        drawn = self._draw() if config.progress and self.busy >= AFTER else None
        try:
            yield
        finally:
            if drawn is not None:
                _write(drawn, _RESTORE + _CLEAR)
            self.depth = 0
            self.ended = time.perf_counter()
            self.busy += self.ended - begin

    def idle(self, seconds: float) -> bool:
        """Has nothing been compiled for that long?"""
        return not self.depth and time.perf_counter() - self.ended > seconds

    def _draw(self) -> Any:
        """Show the line; return the stream that it is to be taken from again."""
        stream = sys.stderr
        if not _is_terminal(stream):
            return None
        text = f"antorcha: compiling kernels, once ({self.count})"
        real = stream is sys.__stderr__ and os.environ.get("TERM", "dumb") != "dumb"
        if real and len([t for t in threading.enumerate() if t.name != SILENT]) == 1:
            _write(stream, f"{_SAVE}{_NO_WRAP}{text}{_WRAP}")
            return stream
        if not self.said:
            self.said = True
            text = "antorcha: compiling kernels, once; later runs find them on disk\n"
            _write(stream, (_fresh_line(stream) if real else "") + text)
        return None


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _fresh_line(stream: Any) -> str:
    """Goes to the next line, unless the cursor is at the start of one: as many spaces as a line has
    places end in this line only if they began at its start."""
    try:
        return " " * os.get_terminal_size(stream.fileno()).columns + "\r" + _CLEAR
    except (OSError, ValueError):
        return ""


def _write(stream: Any, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # who cannot be told misses nothing
        stream.write(text)
        stream.flush()


shown = Progress()  # of what the program waits for
