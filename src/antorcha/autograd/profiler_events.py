"""What a profile has seen: events, lists of them, averages, their table as PyTorch prints it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from antorcha.errors import ValueRangeError

COLUMN = 12  # width of a column of numbers
GAP = "  "


class Interval(NamedTuple):
    """When something ran, in microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


class _Timed:
    """Total, own and average time, and their texts."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return time_text(self.self_cpu_time_total)


class FunctionEvent(_Timed):
    """One call of an op, one run of a node, or one ``record_function`` block."""

    def __init__(
        self, id: int, name: str, thread: int, start: float, shapes: list[list[int]]
    ) -> None:
        self.id, self.name, self.thread = id, name, thread
        self.time_range = Interval(start, start)
        self.input_shapes = shapes
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.count = 1

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self.cpu_time_total - sum([child.cpu_time_total for child in self.cpu_children])

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Timed):
    """The sum of the events of one name."""

    def __init__(self, key: str, shapes: Any = "") -> None:
        self.key, self.input_shapes = key, shapes
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0

    def add(self, other: Any) -> FunctionEventAvg:
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes}>"
        )


class EventList(list[Any]):
    """Events, or their averages."""

    def __init__(self, events: Iterable[Any] = (), with_shapes: bool = False) -> None:
        super().__init__(events)
        self.with_shapes = with_shapes

    @property
    def self_cpu_time_total(self) -> float:
        return float(sum([event.self_cpu_time_total for event in self]))

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:  # fmt: skip
        """The events of one name (and of one set of shapes, if asked) added up."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (event.key, str(event.input_shapes) if group_by_input_shape else "")
            if key not in found:
                found[key] = FunctionEventAvg(*key)
            found[key].add(event)
        return EventList(found.values(), group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """All events added up; nested ones count once in the total."""
        total = FunctionEventAvg("Total", [])
        for event in self:
            total.add(event)
            total.cpu_time_total -= event.cpu_time_total
            total.cpu_time_total += event.self_cpu_time_total
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a text table; ``sort_by`` names a column, e.g. ``"cpu_time_total"``."""
        events = list(self)
        if not events:
            return ""
        if sort_by is not None:
            if not hasattr(events[0], sort_by):
                raise ValueRangeError(
                    f"table: sort_by is 'cpu_time', 'cpu_time_total', 'self_cpu_time_total' or "
                    f"'count', not {sort_by!r}"
                )
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        if top_level_events_only:
            events = [e for e in events if getattr(e, "cpu_parent", None) is None]
        rows = [self._row(event) for event in events[:row_limit]]
        heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                 "# of Calls"]  # fmt: skip
        widths = [min(max(len(row[0]) for row in rows) + 4, max_name_column_width)] + [COLUMN] * 6
        if self.with_shapes:
            heads.append("Input Shapes")
            longest = max(len(row[7]) for row in rows)
            widths.append(min(max(longest + 4, COLUMN), max_shapes_column_width))
        rule = _line(["-" * width for width in widths], widths)
        lines = [rule, _line(heads, widths), rule, *[_line(row, widths) for row in rows], rule]
        if header is not None:
            lines = ["=" * len(rule), header, *lines]
        return "\n".join([*lines, f"Self CPU time total: {time_text(self.self_cpu_time_total)}\n"])

    def _row(self, event: Any) -> list[str]:
        total = self.self_cpu_time_total
        row = [
            event.key, _share(event.self_cpu_time_total, total), event.self_cpu_time_total_str,
            _share(event.cpu_time_total, total), event.cpu_time_total_str, event.cpu_time_str,
            str(event.count),
        ]  # fmt: skip
        return [*row, str(event.input_shapes)] if self.with_shapes else row

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for ``chrome://tracing``."""
        events = [
            {"ph": "X", "cat": "cpu_op", "name": e.name, "pid": os.getpid(), "tid": e.thread,
             "ts": e.time_range.start, "dur": e.cpu_time_total,
             "args": {"Input Dims": e.input_shapes}}
            for e in self
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}, file)

    def __str__(self) -> str:
        return self.table()


def time_text(us: float) -> str:
    """Microseconds with the unit that suits."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _share(us: float, total: float) -> str:
    return f"{us * 100.0 / total:.2f}%" if total else "NaN"


def _line(cells: list[str], widths: list[int]) -> str:
    cut = [c if len(c) <= w else c[: w - 3] + "..." for c, w in zip(cells, widths, strict=True)]
    return GAP.join([c.rjust(w) for c, w in zip(cut, widths, strict=True)]) + GAP
