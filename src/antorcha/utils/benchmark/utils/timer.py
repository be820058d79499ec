"""``Timer``: runs a statement many times and measures it."""

from __future__ import annotations

import enum
import statistics
import textwrap
import timeit
from collections.abc import Callable
from typing import Any

import antorcha
from antorcha.errors import MissingFeature, ValueRangeError, explain_missing
from antorcha.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer
Callback = Callable[[int, float], Any]


class Language(enum.Enum):
    """What a statement is written in; only Python is supported."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement, with ``num_threads`` threads, after a warm-up.

    Args:
        stmt (str): what is measured
        setup (str): what runs before it
        timer: gives the time
        globals (dict): the names that ``stmt`` sees, beside ``torch``
        label, sub_label, description, env (str): printed; ``Compare`` makes tables, rows and
            columns of them
        num_threads (int): Default: 1

    C++ (``language="c++"``, ``global_setup``) and Callgrind are not supported.
    """

    _timer_cls: Any = timeit.Timer

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Any = Language.PYTHON,
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueRangeError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise MissingFeature("Timer: statements in C++ are not compiled; language='python' is")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueRangeError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueRangeError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply "
                "be moved to `setup`."
            )
        self._globals = {"torch": antorcha, **(globals or {})}
        stmt, setup = _flush_left(stmt), _flush_left(setup)
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _timeit(self, number: int) -> float:
        return float(max(self._timer.timeit(number), 1e-9))  # (no clock has less)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One time of ``number`` runs, after a warm-up of a hundredth of them."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not supported, as in PyTorch."""
        raise MissingFeature("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callback | None = None) -> None:
        """Not supported, as in PyTorch."""
        raise MissingFeature("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callback | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Times of as many runs as make the clock's part negligible, for ``min_run_time`` seconds.

        ``callback(number, time)`` hears of each.
        """
        number = self._estimate_block_size(min_run_time)
        return self._measured(
            number, self._times(number, lambda times: True, min_run_time, None, callback)
        )

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callback | None = None,
    ) -> Measurement:  # fmt: skip
        """The same, until the interquartile range is below ``threshold`` of the median, or
        ``max_run_time`` is over."""
        number = self._estimate_block_size(0.05)

        def certain(times: list[float]) -> bool:
            return len(times) > 3 and self._measured(number, times).meets_confidence(threshold)

        return self._measured(
            number, self._times(number, certain, min_run_time, max_run_time, callback)
        )

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> Any:
        """Not supported: instructions are not counted."""
        raise MissingFeature("Timer.collect_callgrind: instructions are not counted")

    def _estimate_block_size(self, min_run_time: float) -> int:
        with set_torch_threads(self._task_spec.num_threads):
            overhead = statistics.median_low([self._timeit(0) for _ in range(5)])
            number = 1
            while True:
                taken = self._timeit(number)
                if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                    return number
                if taken > min_run_time or number * 10 > 2147483647:
                    return number
                number *= 10

    def _times(
        self, number: int, may_stop: Callable[[list[float]], bool], min_run_time: float,
        max_run_time: float | None, callback: Callback | None,
    ) -> list[float]:  # fmt: skip
        times: list[float] = []
        total = 0.0
        with set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or not may_stop(times):
                times.append(self._timeit(number))
                total += times[-1]
                if callback:
                    callback(number, times[-1])
                if max_run_time and total > max_run_time:
                    break
        return times


def _flush_left(code: str) -> str:
    return textwrap.dedent(code).removeprefix("\n").rstrip()


explain_missing("torch.utils.benchmark.utils.timer", globals())
