"""What was measured: ``Measurement`` of a ``TaskSpec``, and how numbers are written."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from antorcha import basics
from antorcha.core.lazy import np
from antorcha.errors import explain_missing

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads",
           "trim_sigfig", "unit_to_english"]  # fmt: skip

_MOST_FIGURES = 4
_LEAST_INTERVAL = 25e-9  # seconds: no measurement is more certain than that
_NOISY, _VERY_NOISY = 0.1, 0.25  # of the median, the interquartile range
_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3),
          "s": ("second", 1)}  # fmt: skip


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """What was run: the arguments of a ``Timer``, but for ``globals``."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            named = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{named}\n{textwrap.indent(self.stmt, '  ')}"
        named = f": {self.sub_label}" if self.sub_label else ""
        return (self.stmt if self.label is None else self.label) + named

    def setup_str(self) -> str:
        """The setup as it is printed; "" where there is none."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join([f"{part}\n" if "\n" in part else part for part in parts if part])


_TASK = tuple([field.name for field in dataclasses.fields(TaskSpec)])


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times of a statement: ``raw_times`` of ``number_per_run`` runs each. It prints itself, has
    statistics per run, and the attributes of its ``task_spec``."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _TASK:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds per run."""
        return [t / self.number_per_run for t in self.raw_times]

    @cached_property
    def _sorted_times(self) -> tuple[float, ...]:
        return tuple(sorted(self.times))

    @cached_property
    def _quartiles(self) -> tuple[float, float, float]:
        if not self.raw_times:
            return -1.0, -1.0, -1.0
        p25, median, p75 = np.quantile(self._sorted_times, [0.25, 0.5, 0.75]).tolist()
        return p25, median, p75

    @property
    def median(self) -> float:
        """The median of the times."""
        return self._quartiles[1]

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return float(np.mean(self._sorted_times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The interquartile range of the times."""
        return self._quartiles[2] - self._quartiles[0]

    @property
    def significant_figures(self) -> int:
        """How many digits of the median are certain, roughly, by the middle half of the times."""
        times = self._sorted_times
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        # 1.645: 90 % of a normal distribution
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Do the times vary suspiciously?"""
        return bool(self._warnings)

    @property
    def _warnings(self) -> tuple[str, ...]:
        if not self.raw_times or self.meets_confidence(_NOISY):
            return ()
        noisy = self.meets_confidence(_VERY_NOISY)
        why = ("This could indicate system fluctuation." if noisy
               else "This suggests significant environmental influence.")  # fmt: skip
        return (
            f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median "
            f"measurement.\n           {why}",
        )

    def meets_confidence(self, threshold: float = _NOISY) -> bool:
        """Is the interquartile range a smaller part of the median than that?"""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What was measured."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, threads = len(self.raw_times), self.task_spec.num_threads
        unit, scale = select_unit(self.median)
        p25, median, p75 = [t / scale for t in self._quartiles]
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{median:.2f} {unit}")
        if count >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({p25:.2f} to {p75:.2f})")
        each = "per measurement," if count > 1 else ","
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs {each} "
            f"{threads} thread{'s' if threads > 1 else ''}"
        )
        return "\n".join([*lines, *self._warnings]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same task as one, of times per run."""
        groups: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            groups.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit that suits a time, and its seconds.

    >>> from torch.utils.benchmark import select_unit
    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    power = int(math.log10(t) // 3) if t > 0 else 0
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(power, "s")
    return unit, _UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """``"microsecond"`` of ``"us"``."""
    return _UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """``x`` with ``n`` significant figures.

    >>> from torch.utils.benchmark import trim_sigfig
    >>> trim_sigfig(1234.5, 2)
    1200.0
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (magnitude(x) - n)
    return float(np.round(np.float32(x / scale)) * np.float32(scale))


def magnitude(x: float) -> int:
    """How many digits there are before the point. (Of 10.000000000000002 there is one, as of 10:
    more than float32 holds is noise.)"""
    return int(np.ceil(np.log10(np.float32(abs(x)))))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in order."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Inside, ops run on that many threads."""
    before = basics.get_num_threads()
    try:
        basics.set_num_threads(n)
        yield
    finally:
        basics.set_num_threads(before)


explain_missing("torch.utils.benchmark.utils.common", globals())
