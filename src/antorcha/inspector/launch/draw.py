"""What a warp touched of an operand, as a drawing: elements in their segments, coloured by thread.

A line is a part of a segment of memory. Elements that each thread touched first are strong, later
ones weak. Lines in which nothing was touched are left out.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from antorcha.inspector.forms import escaped
from antorcha.inspector.launch.facts import SEGMENT, BufferFacts, LaunchFacts, WarpAccess
from antorcha.inspector.launch.words import LaunchWords
from antorcha.inspector.numbers import ending, grouped
from antorcha.inspector.tensor import svg

WIDTH = 320.0
_MARGIN, _CELL, _LINE = 44.0, 17.0, 17.0  # the number of a line's first element; a box
_PER_LINE, _LINES = 16, 12  # boxes of a line; lines that are drawn
_GAP = 5.0  # between segments
_STRONG, _WEAK = 0.4, 0.15

STYLE = (
    ".ant-inspect svg .lane{font-size:9px;text-anchor:middle}"
    ".ant-inspect svg .place{font-size:8.5px;text-anchor:end;fill:var(--ant-muted)}"
    ".ant-inspect .box{fill:none;stroke:var(--ant-line);stroke-width:.6}"
    ".ant-inspect .segment{fill:none;stroke:var(--ant-muted)}"
)


class MapLine(NamedTuple):
    """A part of a segment; ``start`` is the element of its first box."""

    segment: int
    start: int
    boxes: int


class Toucher(NamedTuple):
    """A thread that touched an element, as its ``number``-th."""

    thread: int
    number: int
    first: bool


def draw(facts: LaunchFacts, access: WarpAccess, words: LaunchWords) -> str:
    """The drawing as SVG, and how much it leaves out."""
    operand = next(each for each in facts.operands if each.name == access.operand)
    touched = _touched(access)
    lines = sorted({_line_of(element, operand) for element in touched})
    shown, cut = lines[:_LINES], lines[_LINES:]
    pieces, y = [], 2.0
    for _, group in groupby(shown, key=lambda line: line.segment):
        part = list(group)
        height, boxes = _LINE * len(part), max(line.boxes for line in part)
        for k, line in enumerate(part):
            pieces.append(_line(line, y + k * _LINE, touched, words))
        pieces.append(svg.tag("rect", x=_MARGIN, y=y, width=_CELL * boxes, height=height,
                              rx=2, class_="segment"))  # fmt: skip
        y += height + _GAP
    label = words("map label", name=access.operand)
    return svg.drawing("".join(pieces), WIDTH, y, label, "ant-warp") + _left_out(
        access, cut, touched, operand, words
    )


def _touched(access: WarpAccess) -> dict[int, list[Toucher]]:
    """Who touched each element."""
    first = set(access.first)
    found: dict[int, list[Toucher]] = {}
    for own in access.threads:
        for k, element in enumerate(own.elements):
            is_first = k == 0 or (element in first and _follows(own.elements, k))
            found.setdefault(element, []).append(Toucher(own.thread, k, is_first))
    return found


def _follows(elements: tuple[int, ...], k: int) -> bool:
    """Is it one of the elements of a wide first access?"""
    return elements[k] - elements[0] == k


def _line_of(element: int, operand: BufferFacts) -> MapLine:
    """Where an element is drawn."""
    of_segment = max(SEGMENT // operand.itemsize, 1)
    boxes = min(_PER_LINE, of_segment)
    segment, at = divmod(element + operand.misaligned // operand.itemsize, of_segment)
    return MapLine(segment, element - at % boxes, boxes)


def _line(line: MapLine, y: float, touched: dict[int, list[Toucher]], words: LaunchWords) -> str:
    start = max(line.start, 0)  # (the memory before an operand is not its own)
    pieces = [svg.text(ending(start, 7), _MARGIN - 5, y + 11.5, class_="place mono")]
    for k in range(line.boxes):
        x = _MARGIN + k * _CELL
        who = touched.get(line.start + k)
        if who is None:
            pieces.append(svg.tag("rect", x=x, y=y, width=_CELL, height=_LINE, class_="box"))
            continue
        pieces.append(
            svg.titled("rect", _says(line.start + k, who, words), x=x, y=y, width=_CELL,
                       height=_LINE, class_="box", style=_fill(who))
        )  # fmt: skip
        number = str(who[0].thread) if len(who) == 1 else f"×{len(who)}"
        pieces.append(svg.text(number, x + _CELL / 2, y + 11.5, class_="lane mono",
                               pointer_events="none"))  # fmt: skip
    return "".join(pieces)


def _fill(who: list[Toucher]) -> str:
    """The colour of the thread, around the circle of hues; grey where there are several."""
    hue, saturation = who[0].thread * 360 / 32, 75 if len(who) == 1 else 0
    strength = _STRONG if any(each.first for each in who) else _WEAK
    return f"fill:hsl({hue:g},{saturation}%,50%);fill-opacity:{strength}"


def _says(element: int, who: list[Toucher], words: LaunchWords) -> str:
    """What a box says when it is pointed at."""
    threads = _runs([each.thread for each in who])
    said = words("by thread" if len(who) == 1 else "by threads", element=element, threads=threads)
    return said + words("its number", number=who[0].number + 1) if len(who) == 1 else said


def _runs(numbers: list[int]) -> str:
    """Ascending numbers, with those that follow one another as a range.

    >>> _runs([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    parts = []
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(parts)


def _left_out(
    access: WarpAccess, cut: list[MapLine], touched: dict[int, list[Toucher]],
    operand: BufferFacts, words: LaunchWords,
) -> str:  # fmt: skip
    said = []
    if cut:
        hidden = set(cut)
        count = sum([_line_of(element, operand) in hidden for element in touched])
        segments = len({line.segment for line in cut})
        said.append(words("cut", elements=grouped(count), segments=grouped(segments)))
    more = sum([own.more for own in access.threads])
    if more:
        said.append(words("cut threads", elements=grouped(more)))
    return svg.tag("p", escaped(" ".join(said)), class_="muted") if said else ""
