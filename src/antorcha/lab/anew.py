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
import logging
import os
import random
import signal
import sys
import threading
import warnings
from types import ModuleType
from typing import Any

import antorcha
from antorcha.autograd import set_grad_enabled
from antorcha.dtypes import float32, set_default_dtype
from antorcha.tensor.printing import set_printoptions

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
        self._numpy: dict[str, Any] = {}  # how NumPy prints

    def restore(self) -> None:
        """Put back what a program may have set; give random numbers a fresh seed."""
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
        gc.enable()
        _silence_timers()
        self._restore_libraries()

    def _restore_libraries(self) -> None:
        antorcha.seed()
        set_grad_enabled(True)
        set_default_dtype(float32)
        set_printoptions(profile="default")
        random.seed()
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed()
            numpy.set_printoptions(**self._numpy_defaults(numpy))
        matplotlib = sys.modules.get("matplotlib")
        if matplotlib is not None:
            backend = matplotlib.rcParams["backend"]
            matplotlib.rcdefaults()
            matplotlib.rcParams["backend"] = backend

    def _numpy_defaults(self, numpy: ModuleType) -> dict[str, Any]:
        """How NumPy prints before any program touched it."""
        if not self._numpy:
            self._numpy.update(numpy.get_printoptions())
        return dict(self._numpy)

    def threads(self) -> list[str]:
        """Names of the threads that programs started and that go on."""
        new = set(threading.enumerate()) - self._threads
        own = [each for each in new if not type(each).__module__.startswith("zmq.")]
        return sorted([each.name for each in own if each.is_alive()])


def _silence_timers() -> None:
    """An alarm of the last program must not ring in the next."""
    if hasattr(signal, "setitimer"):
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            with contextlib.suppress(OSError):
                signal.setitimer(timer, 0)
