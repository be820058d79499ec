"""A process that begins anew: what programs may have changed in it, put back before the next one.

`Beginning` remembers the process as it was before any program ran. A program may replace
``sys.stdout``, patch builtins, fill the environment, set alarms, or leave threads; the next one
finds nothing of that. What cannot be undone (a thread that goes on) is told of, so that the next
program can be given another process.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import locale
import logging
import os
import random
import signal
import socket
import sys
import threading
import time
import warnings
from types import ModuleType
from typing import Any

from antorcha.lab.settings import SettingsKeeper

_HOOKS = ("stdin", "stdout", "stderr", "excepthook", "displayhook", "unraisablehook",
          "breakpointhook")  # fmt: skip


class Beginning:
    """The process as it is now; `restore` puts it back."""

    def __init__(self) -> None:
        self._builtins = dict(vars(builtins))
        self._hooks = {name: getattr(sys, name) for name in _HOOKS}
        self._environment = dict(os.environ)
        self._warnings = warnings.filters[:]
        self._recursion = sys.getrecursionlimit()
        self._threads = set(threading.enumerate())
        self._handlers = list(logging.root.handlers)
        self._level = logging.root.level
        self._handled = {number: signal.getsignal(number) for number in _signals()}
        self._umask = _umask()
        self._threading = threading.excepthook
        self._switching = sys.getswitchinterval()
        self._locale = locale.setlocale(locale.LC_ALL)
        self._numpy: dict[str, Any] = {}  # how NumPy prints, and minds errors
        self._settings = SettingsKeeper()
        self._touched = False

    def touch(self) -> None:
        """Something of the learner's ran since the last `restore`."""
        self._touched = True

    def begin(self) -> None:
        """Put back what may be set since the last program was over: nothing, mostly."""
        if self._touched:
            self.restore()

    def restore(self) -> None:
        """Put back what a program may have set; give random numbers a fresh seed."""
        self._touched = False
        for name in vars(builtins).keys() - self._builtins.keys():
            del vars(builtins)[name]
        vars(builtins).update(self._builtins)
        for name, value in self._hooks.items():
            setattr(sys, name, value)
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(self._recursion)
        os.environ.clear()
        os.environ.update(self._environment)
        warnings.resetwarnings()  # (Python then also forgets what it has warned of)
        warnings.filters = self._warnings[:]
        logging.root.handlers[:] = self._handlers
        logging.root.setLevel(self._level)
        logging.disable(logging.NOTSET)
        gc.enable()
        _silence_timers()
        self._restore_process()
        self._restore_libraries()
        self._settings.restore()

    def _restore_process(self) -> None:
        for number, handler in self._handled.items():
            if signal.getsignal(number) is not handler:
                with contextlib.suppress(OSError, ValueError, TypeError):
                    signal.signal(number, handler)
        os.umask(self._umask)
        if hasattr(time, "tzset"):
            time.tzset()  # (what the environment says is put back already)
        socket.setdefaulttimeout(None)
        threading.excepthook = self._threading
        sys.setswitchinterval(self._switching)
        if locale.setlocale(locale.LC_ALL) != self._locale:
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, self._locale)

    def _restore_libraries(self) -> None:
        random.seed()
        multiprocessing = sys.modules.get("multiprocessing")
        if multiprocessing is not None:  # (it may be set once)
            multiprocessing.set_start_method(None, force=True)
        decimal = sys.modules.get("decimal")
        if decimal is not None:
            decimal.setcontext(decimal.Context())
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed()
            before = self._numpy_defaults(numpy)
            numpy.set_printoptions(**before["print"])
            numpy.seterr(**before["errors"])
        matplotlib = sys.modules.get("matplotlib")
        if matplotlib is not None:
            backend = matplotlib.rcParams["backend"]
            matplotlib.rcdefaults()
            matplotlib.rcParams["backend"] = backend

    def _numpy_defaults(self, numpy: ModuleType) -> dict[str, Any]:
        """How NumPy prints, and minds errors, before any program touched it."""
        if not self._numpy:
            self._numpy.update(print=numpy.get_printoptions(), errors=numpy.geterr())
        return self._numpy

    def threads(self) -> list[str]:
        """Names of the threads that programs started and that go on."""
        new = set(threading.enumerate()) - self._threads
        own = [each for each in new if not type(each).__module__.startswith("zmq.")]
        return sorted([each.name for each in own if each.is_alive()])


def _signals() -> set[int]:
    """Those that a program may handle. (Interrupts are the kernel's: it sets them for each run.)"""
    return {int(number) for number in signal.valid_signals()} - {int(signal.SIGINT)}


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


def _silence_timers() -> None:
    """An alarm of the last program must not ring in the next."""
    if hasattr(signal, "setitimer"):
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            with contextlib.suppress(OSError):
                signal.setitimer(timer, 0)
