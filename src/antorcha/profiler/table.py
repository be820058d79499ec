"""The text table of a profile, with PyTorch's columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.profiler.events import EventList, time_text

WIDTH = 12  # of a column of numbers
GAP = "  "


def build_table(
    events: EventList,
    row_limit: int,
    widest: tuple[int, int, int],
    header: str | None,
    top_only: bool,
    unit: str | None,
) -> str:
    """`widest`: characters of the columns of names, shapes and source lines, at most."""
    if not events:
        return ""
    total = events.self_cpu_time_total
    chosen = [e for e in events if not (top_only and e.cpu_parent is not None)]
    chosen = chosen if row_limit < 0 else chosen[:row_limit]
    columns = _columns(events, total, widest, unit)
    widths = [column.width for column in columns]
    rule = _line(["-" * width for width in widths], widths)
    lines = [rule, _line([column.head for column in columns], widths), rule]
    for event in chosen:
        lines.append(_line([column.text(event) for column in columns], widths))
        if any([column.head == "Source Location" for column in columns]):
            lines += _more_lines(event, columns, widths)
    lines.append(rule)
    if header is not None:
        lines = ["=" * len(rule), header, *lines]
    return "\n".join([*lines, f"Self CPU time total: {time_text(total, unit)}\n"])


class _Column:
    def __init__(self, head: str, text: Callable[[Any], str], width: int = WIDTH) -> None:
        self.head, self.text, self.width = head, text, width


def _columns(
    events: EventList, total: float, widest: tuple[int, int, int], unit: str | None
) -> list[_Column]:
    names, shapes, sources = widest

    def fitted(texts: list[str], least: int, most: int) -> int:
        return min(max(max([len(text) for text in texts]) + 4, least), most)

    result = [
        _Column("Name", lambda e: str(e.key), fitted([str(e.key) for e in events], 0, names)),
        _Column("Self CPU %", lambda e: _share(e.self_cpu_time_total, total)),
        _Column("Self CPU", lambda e: time_text(e.self_cpu_time_total, unit)),
        _Column("CPU total %", lambda e: _share(e.cpu_time_total, total)),
        _Column("CPU total", lambda e: time_text(e.cpu_time_total, unit)),
        _Column("CPU time avg", lambda e: time_text(e.cpu_time, unit)),
    ]
    if events.profile_memory:
        result.append(_Column("CPU Mem", lambda e: memory_text(e.cpu_memory_usage)))
        result.append(_Column("Self CPU Mem", lambda e: memory_text(e.self_cpu_memory_usage)))
    result.append(_Column("# of Calls", lambda e: str(e.count)))
    if any([e.input_shapes for e in events]):
        width = fitted([str(e.input_shapes) for e in events], WIDTH, shapes)
        result.append(_Column("Input Shapes", lambda e: str(e.input_shapes)[:width], width))
    if any([e.stack for e in events]):
        width = fitted([line for e in events for line in e.stack], WIDTH, sources)
        text = lambda e: _end(e.stack[0], width) if e.stack else ""  # noqa: E731
        result.append(_Column("Source Location", text, width))
    if events.with_flops:
        word, scale = _flops_unit(events)
        result.append(
            _Column(f"Total {word}", lambda e: f"{e.flops / scale:.3f}" if e.flops else "--")
        )
    return result


def _more_lines(event: Any, columns: list[_Column], widths: list[int]) -> list[str]:
    """The further lines of an event's stack, and an empty row."""
    rows = []
    for source in (*event.stack[1:], ""):
        cells = [
            _end(source, column.width) if column.head == "Source Location" else ""
            for column in columns
        ]
        rows.append(_line(cells, widths))
    return rows


def _flops_unit(events: EventList) -> tuple[str, float]:
    most = max([event.flops for event in events])
    words = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
    power = 0
    while most >= 1000 ** (power + 1) and power < len(words) - 1:
        power += 1
    return words[power], 1000.0**power


def memory_text(nbytes: int) -> str:
    """``1.25 KB``; ``0 B``."""
    for power, word in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**power:
            return f"{nbytes / 1024**power:.2f} {word}"
    return f"{nbytes} B"


def _share(us: float, total: float) -> str:
    return f"{us * 100.0 / total:.2f}%" if total else "NaN"


def _end(text: str, width: int) -> str:
    return text if len(text) <= width else "..." + text[3 - width :]


def _line(cells: list[str], widths: list[int]) -> str:
    cut = [c if len(c) <= w else c[: w - 3] + "..." for c, w in zip(cells, widths, strict=True)]
    return GAP.join([c.rjust(w) for c, w in zip(cut, widths, strict=True)]) + GAP
