"""The memory that tensors hold over the time of a profile: as a picture, and as numbers.

What is held is known where calls, kernels and blocks begin and end; what one of them takes and
gives back within itself is not seen. Blocks of the allocator are counted, which are up to a quarter
larger than what tensors ask for.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, NamedTuple

from antorcha.core.files import write_whole
from antorcha.errors import ValueRangeError
from antorcha.inspector import theme
from antorcha.inspector.forms import escaped
from antorcha.profiler.events import EventList, time_text
from antorcha.profiler.table import memory_text

WIDTH, HEIGHT, TOP, LEFT, RIGHT = 1200, 300, 60, 84, 16
STRIP, GAP = 18, 8  # the row of what ran, and the space above it
COLUMNS = WIDTH - LEFT - RIGHT  # the picture keeps the most of each pixel's time
LARGEST = 5  # rows that are told below the picture
CATEGORIES = 8  # PyTorch's: parameters, optimizer state, .., unknown; here all is unknown
RULES = (
    f".ant-held text{{font:11px {theme.SANS};fill:var(--ant-muted)}}"
    ".ant-held .head{font-size:14px;font-weight:600;fill:var(--ant-fg)}"
    ".ant-held .paper{fill:var(--ant-bg)}.ant-held .grid{stroke:var(--ant-line);stroke-width:1}"
    ".ant-held .held{fill:var(--ant-negative);fill-opacity:.3;stroke:var(--ant-negative)}"
    ".ant-held .peak{fill:var(--ant-bad)}.ant-held .most{fill:var(--ant-fg);font-weight:600}"
    ".ant-held .here{fill:transparent}.ant-held .here:hover{fill:var(--ant-fg);fill-opacity:.25}"
    ".ant-held .op{fill:#efb036}.ant-held .back{fill:#4f93d8}.ant-held .user{fill:#5fb25c}"
    ".ant-held .ran{fill-opacity:.6;stroke:var(--ant-bg);stroke-width:.4}"
    f".ant-held .word{{font:11px {theme.MONO};fill:var(--ant-fg);pointer-events:none}}"
)


class Moment(NamedTuple):
    """A time (microseconds since the profile began), what is held from then on, who changed it."""

    at: float
    held: int
    by: str


def moments(events: EventList) -> list[Moment]:
    """Every change of what tensors hold, the beginning first. Raises ValueError where the profile
    had no ``profile_memory=True``."""
    if not events.profile_memory:
        raise ValueRangeError(
            "export_memory_timeline: the profile has no memory: make it with "
            "profile(profile_memory=True)"
        )
    return [Moment(*each) for each in events.metadata["memory"]]


def memory_timeline(events: EventList, title: str = "") -> str:
    """The memory of tensors over time, as a self-contained SVG: the highest point marked, below it
    what ran.

    >>> with torch.profiler.profile(profile_memory=True) as prof:
    ...     y = torch.ones(1000) * 2
    >>> torch.profiler.memory_timeline(prof.events()).startswith("<svg")
    True
    """
    found = moments(events)
    last = _last(events, found)
    most = max(found, key=lambda moment: moment.held)
    rows = _largest(events)
    base = TOP + HEIGHT
    height = base + GAP + STRIP + 40 + 15 * (len(rows) + 1)
    scale = COLUMNS / last
    summary = (
        f"at most {memory_text(most.held)}, at {time_text(most.at)}"
        + (f" in {most.by}" if most.by else "")
        + f"; {memory_text(found[0].held)} at first, {memory_text(found[-1].held)} at the end"
    )
    top = max(most.held, 1) * 1.08
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ant ant-held" '
        f'viewBox="0 0 {WIDTH} {height}" width="100%" style="min-width: 760px" role="img" '
        f'aria-label="Memory: {escaped(summary)}">',
        theme.style(RULES),
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        f'<text class="head" x="10" y="22">{escaped(title or "What tensors hold")}</text>',
        f'<text x="10" y="42">{escaped(summary)}</text>',
        *_grid(top, last, scale),
        *_area(found, last, scale, top),
        *_peak(most, scale, top),
        *_strip(events, scale, base + GAP),
        *_told(rows, base + GAP + STRIP + 44),
        "</svg>\n",
    ])  # fmt: skip


def _last(events: EventList, found: list[Moment]) -> float:
    ends: list[float] = [event.time_range.end for event in events]
    return max([found[-1].at, *ends, 1e-3])


def _y(held: float, top: float) -> float:
    return TOP + HEIGHT * (1 - held / top)


def _grid(top: float, last: float, scale: float) -> list[str]:
    """Lines for round numbers of bytes, and the times below."""
    step = 1.0
    while top / step > 6:
        step *= 2.0
    parts = []
    for k in range(int(top / step) + 1):
        y = _y(k * step, top)
        parts.append(f'<path class="grid" d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
                     f"{memory_text(int(k * step))}</text>")  # fmt: skip
    for k in range(6):
        anchor = "end" if k == 5 else "middle" if k else "start"
        parts.append(
            f'<text x="{LEFT + k * last / 5 * scale:.1f}" y="{TOP + HEIGHT + GAP + STRIP + 16}" '
            f'text-anchor="{anchor}">{time_text(k * last / 5) if k else 0}</text>'
        )
    return parts


def _area(found: list[Moment], last: float, scale: float, top: float) -> list[str]:
    """The steps, thinned to one for each pixel (its highest), and what each says."""
    kept: list[Moment] = []
    for moment in found:
        if kept and int(moment.at * scale) == int(kept[-1].at * scale):
            if moment.held >= kept[-1].held:
                kept[-1] = moment._replace(at=kept[-1].at)
        else:
            kept.append(moment)
    kept.append(Moment(last, found[-1].held, ""))
    way, parts = f"M{LEFT},{TOP + HEIGHT}", []
    for moment, after in zip(kept, [*kept[1:], kept[-1]], strict=True):
        x, y = LEFT + moment.at * scale, _y(moment.held, top)
        way += f"L{x:.1f},{y:.1f}H{LEFT + after.at * scale:.1f}"
        if after is not moment:
            wide = max((after.at - moment.at) * scale, 0.5)
            says = f"{memory_text(moment.held)} from {time_text(moment.at)} on"
            says += f", by {moment.by}" if moment.by else ""
            parts.append(f'<rect class="here" x="{x:.1f}" y="{TOP}" width="{wide:.1f}" '
                         f'height="{HEIGHT}"><title>{escaped(says)}</title></rect>')  # fmt: skip
    return [f'<path class="held" d="{way}V{TOP + HEIGHT}Z"/>', *parts]


def _peak(most: Moment, scale: float, top: float) -> list[str]:
    x, y = LEFT + most.at * scale, _y(most.held, top)
    words = f"{memory_text(most.held)}{f' {most.by}' if most.by else ''}"
    right = x > WIDTH * 0.7
    return [
        f'<circle class="peak" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>',
        f'<text class="most" x="{x + (-7 if right else 7):.1f}" y="{y - 5:.1f}" '
        f'text-anchor="{"end" if right else "start"}">{escaped(words)}</text>',
    ]


def _strip(events: EventList, scale: float, y: int) -> list[str]:
    """What ran, by its outermost events."""
    parts = []
    for event in events:
        if event.cpu_parent is not None or event.name == "[memory]":
            continue
        kind = "user" if event.is_user_annotation else "back" if event.scope == 1 else "op"
        x, wide = LEFT + event.time_range.start * scale, event.cpu_time_total * scale
        if wide < 0.2:
            continue
        says = f"{event.name}: {time_text(event.cpu_time_total)}"
        parts.append(
            f'<rect class="ran {kind}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{STRIP}">'
            f"<title>{escaped(says)}</title></rect>"
        )
        room = int((wide - 6) / 6.7)
        if room > 3:
            name = event.name if len(event.name) <= room else event.name[: room - 2] + ".."
            parts.append(f'<text class="word" x="{x + 3:.1f}" y="{y + 13}">{escaped(name)}</text>')
    return parts


def _largest(events: EventList) -> list[str]:
    """The ops that took the most for themselves."""
    rows = [row for row in events.key_averages() if row.bytes_allocated > 0]
    rows.sort(key=lambda row: -row.bytes_allocated)
    return [
        f"{row.key}: {memory_text(row.bytes_allocated)} taken, {memory_text(row.bytes_freed)} given"
        f" back, in {row.count} call{'s' if row.count != 1 else ''}"
        for row in rows[:LARGEST]
    ]


def _told(rows: list[str], y: int) -> list[str]:
    head = [f'<text class="most" x="{LEFT}" y="{y}">Who took the most</text>'] if rows else []
    return head + [
        f'<text x="{LEFT}" y="{y + 15 * (k + 1)}">{escaped(row)}</text>'
        for k, row in enumerate(rows)
    ]


# ------------------------------------------------------------------------------------------- files
def export(events: EventList, path: str, device: str | None = None) -> None:
    """Writes the timeline in the form that the path's ending names: see
    :meth:`antorcha.profiler.profile.export_memory_timeline`."""
    if device not in (None, "cpu", "cpu:0"):
        raise ValueRangeError(
            f"export_memory_timeline: memory of {device!r} is not recorded, only that of 'cpu'"
        )
    if path.endswith(".raw.json.gz"):
        write_whole(path, json.dumps(_raw(events)))
    elif path.endswith((".json", ".json.gz")):
        write_whole(path, json.dumps(_columns(events)))
    elif path.endswith(".svg"):
        write_whole(path, memory_timeline(events))
    elif path.endswith((".html", ".htm")):
        head = '<!doctype html><meta charset="utf-8"><title>memory</title>'
        write_whole(path, f"{head}<body style='margin:0'>{memory_timeline(events)}")
    else:
        raise ValueRangeError(
            "export_memory_timeline: write to a .html, .svg, .json, .json.gz or .raw.json.gz file, "
            f"not {path!r}"
        )


def _nanoseconds(events: EventList, us: float) -> int:
    """Of the calendar, as the times of PyTorch's files are."""
    return int(events.metadata["calendar_ns"] + us * 1e3)


def _columns(events: EventList) -> list[Any]:
    """[times in microseconds, a row of bytes for each]: 0, and a column for each category."""
    found = moments(events)
    times = [_nanoseconds(events, moment.at) // 1000 for moment in found]
    return [times, [[0] * CATEGORIES + [moment.held] for moment in found]]


def _raw(events: EventList) -> list[list[int]]:
    """[time in nanoseconds, action (0 there before, 1 made, 3 freed), bytes, category]."""
    found = moments(events)
    result = [[_nanoseconds(events, 0.0), 0, found[0].held, CATEGORIES - 1]]
    for before, after in itertools.pairwise(found):
        change = after.held - before.held
        if change:
            action = 1 if change > 0 else 3
            result.append([_nanoseconds(events, after.at), action, abs(change), CATEGORIES - 1])
    return result
