"""What a program does beyond its own memory: files that it writes, programs that it starts, lines
that it asks for.

While the learner moves a number, its program runs again many times; one with effects must not. So
they are noted in each run by audit events (https://peps.python.org/pep-0578/), and refused
in a run that nobody asked for.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from antorcha import config

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = frozenset({
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink",
    "os.chmod", "os.chown", "os.utime", "os.system", "os.exec", "os.fork", "os.forkpty",
    "os.posix_spawn", "os.spawn", "os.startfile", "os.kill", "os.killpg", "signal.pthread_kill",
    "subprocess.Popen", "socket.connect", "socket.bind", "socket.sendto", "sqlite3.connect",
    "webbrowser.open", "urllib.Request", "shutil.rmtree", "shutil.move", "shutil.copyfile",
})  # fmt: skip


class Refused(BaseException):
    """A program that runs because a number is moved was about to have an effect."""


class EffectsWatch:
    """Notes effects between `begin` and `end`. There is one in a process: hooks stay for ever."""

    def __init__(self) -> None:
        self.seen = False  # has the program had an effect?
        self._watches = False
        self._refuses = False
        sys.addaudithook(self._hear)

    def begin(self, *, refuse: bool) -> None:
        """A program begins; `refuse`: end it before the first effect."""
        self.seen, self._refuses, self._watches = False, refuse, True

    def end(self) -> None:
        """The program is over."""
        self._watches = False

    def note(self) -> None:
        """The program has an effect. Raises `Refused` where it must not."""
        if self._watches:
            self.seen = True
            if self._refuses:
                raise Refused

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._watches:
            return
        if event == "open":
            if given[2] & _WRITES and not isinstance(given[0], int) and not _is_ours(given[0]):
                self.note()
        elif event in _EVENTS and not (given and _is_ours(given[0])):
            self.note()


def _is_ours(path: Any) -> bool:
    """Does a path belong to what is kept for speed alone: compiled kernels and modules?"""
    try:
        text = os.fsdecode(path)
    except TypeError:
        return False
    kept = config.cache_dir
    return (
        f"{os.sep}__pycache__" in text or text == os.devnull
        or (bool(kept) and (text.startswith(kept) or text == os.path.dirname(kept)))
    )  # fmt: skip
