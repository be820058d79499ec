"""One thread of OpenBLAS where it is done sooner than two.

SciPy's OpenBLAS wakes its threads several times in a factorization, and waits for them in a loop.
For matrices of a few hundred rows that takes longer than the work (QR of 128 rows: 0.65 ms by two
threads, 0.25 ms by one), and very long where another program runs, too.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from antorcha.core.forks import held_over_forks
from antorcha.core.lazy import imported, lazy

ctypes = lazy("ctypes")

LEAST = 1024
"""Elements up to which OpenBLAS takes one thread by itself."""
MOST = 1 << 17
"""Elements from which on several threads are worth their waiting."""
_NAMES = [f"{prefix}openblas_{{}}_num_threads{end}"
          for prefix in ("scipy_", "") for end in ("", "64_")]  # fmt: skip


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], Any]] | None:
    """What gets and what sets the number of threads; None where SciPy's LAPACK is another one."""
    try:
        file = imported("scipy.linalg._flapack").__file__
        library = ctypes.PyDLL(file)  # which also finds what the module is linked with
    except (OSError, ImportError):
        return None
    for name in _NAMES:
        with contextlib.suppress(AttributeError):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


class _OneThread:
    """While somebody is inside, OpenBLAS has one thread; who leaves last gives the others back."""

    def __init__(self) -> None:
        self.lock = held_over_forks(threading.Lock())
        self.inside, self.before = 0, 1

    def __enter__(self) -> None:
        functions = _functions()
        if functions is not None:
            with self.lock:
                if self.inside == 0:
                    self.before = functions[0]()
                    functions[1](1)
                self.inside += 1

    def __exit__(self, *error: object) -> None:
        functions = _functions()
        if functions is not None:
            with self.lock:
                self.inside -= 1
                if self.inside == 0:
                    functions[1](self.before)


_one_thread = _OneThread()
_as_it_is = contextlib.nullcontext()


def threads_for(elements: int, least: int = LEAST) -> contextlib.AbstractContextManager[None]:
    """What LAPACK's functions of SciPy are called in, for a matrix of so many elements."""
    return _one_thread if least < elements <= MOST else _as_it_is
