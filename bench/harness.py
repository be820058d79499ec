"""How a row is measured.

A row's setup runs once for each library, with `torch` bound to it. Its statement is compiled into a
loop by `timeit` (no call, no look-up of ours is in the time) and the loops of the two libraries run
in turns, so that a slow moment of the machine falls on both. A row's figure is the median of the
turns. Between turns the harness sleeps a little: a library's threads may spin for some milliseconds
after its last kernel, and would take the other one's cores.
"""

from __future__ import annotations

import functools
import gc
import statistics
import time
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

THREADS = 2
TURN_SECONDS = 0.1  # one turn's loop is made at least this long
REST_SECONDS = 0.03


@dataclass(frozen=True)
class Row:
    """One thing to measure. `target` is PyTorch's time over antorcha's, and what we must reach.
    `calls`: how often the statement runs in a turn; None: as often as it takes to time it.
    `moved`, `operations`: bytes that must be read and written, arithmetic that must be done."""

    group: str
    name: str
    statement: str
    setup: str = ""
    target: float | None = None
    turns: int = 9
    calls: int | None = None
    moved: float | None = None
    operations: float | None = None


@dataclass
class Measured:
    """Seconds for one statement (None: the library is not here, or cannot run it)."""

    row: Row
    antorcha: float | None
    pytorch: float | None
    problem: str = ""

    @property
    def ratio(self) -> float | None:
        """PyTorch's time over antorcha's; above 1, antorcha is faster."""
        return self.pytorch / self.antorcha if self.pytorch and self.antorcha else None

    @property
    def floor(self) -> float | None:
        """Seconds that the row's bytes and operations take this machine at its best."""
        row = self.row
        if row.moved is None and row.operations is None:
            return None
        return max((row.moved or 0) / bandwidth(), (row.operations or 0) / peak())

    @property
    def reached(self) -> bool | None:
        """Whether the target is met; None when there is none, or nothing to compare."""
        if self.row.target is None or self.ratio is None:
            return None
        return self.ratio >= self.row.target


def measure(row: Row, libraries: dict[str, ModuleType]) -> Measured:
    """Time `row` on each library of ``{"antorcha": module, "pytorch": module}``."""
    loops: dict[str, Callable[[], float]] = {}
    problems = []
    for name, torch in libraries.items():
        try:
            loops[name] = _loop(row, torch)
        except Exception as error:  # a row that one library cannot run must not end the others
            problems.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
    times: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(row.turns):
        # Who goes first changes from turn to turn: the first finds the caches of another program.
        for name in sorted(loops, reverse=turn % 2 == 1):
            time.sleep(REST_SECONDS)
            times[name].append(loops[name]())
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    return Measured(row, medians.get("antorcha"), medians.get("pytorch"), "; ".join(problems))


def _loop(row: Row, torch: ModuleType) -> Callable[[], float]:
    """A function that runs the row's statement often enough to time it: seconds for one."""
    names: dict[str, Any] = {"torch": torch}
    exec(compile(row.setup, f"<setup of {row.name}>", "exec"), names)
    timer = timeit.Timer(row.statement, globals=names)
    timer.timeit(row.calls or 3)  # compiles kernels, makes plans, fills the allocator's cache
    number = row.calls or _number_of_calls(timer)

    def run() -> float:
        gc.collect()
        return timer.timeit(number) / number

    return run


def _number_of_calls(timer: timeit.Timer) -> int:
    """How many make a turn of `TURN_SECONDS` or a little more."""
    number = 1
    while (took := timer.timeit(number)) < TURN_SECONDS / 4 and number < 10**7:
        number *= 4
    return max(1, round(number * TURN_SECONDS / took)) if took < TURN_SECONDS else number


@functools.cache
def bandwidth() -> float:
    """Bytes a second that `THREADS` threads read and write, copying more than caches hold."""
    source = np.ones(2**25)
    halves = np.array_split(np.empty_like(source), THREADS), np.array_split(source, THREADS)

    def copy() -> None:
        list(threads.map(np.copyto, *halves))

    with ThreadPoolExecutor(THREADS) as threads:
        return 2 * source.nbytes / _best(copy)


@functools.cache
def peak() -> float:
    """float32 operations a second of a large product, by NumPy's BLAS."""
    a = np.ones((2048, 2048), np.float32)
    return 2 * 2048**3 / _best(lambda: a @ a)


def _best(work: Callable[[], object]) -> float:
    return min(timeit.repeat(work, number=1, repeat=7))


def libraries() -> dict[str, ModuleType]:
    """antorcha, and PyTorch where it is installed, both at `THREADS` threads."""
    import antorcha
    from antorcha.runtime.call import native

    native.finish()  # what is measured is how calls are once all is compiled
    found: dict[str, ModuleType] = {"antorcha": antorcha}
    try:
        import torch

        found["pytorch"] = torch
    except ImportError:
        pass
    for library in found.values():
        library.set_num_threads(THREADS)
    return found
