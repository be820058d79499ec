"""Where in a program a node of the graph was made: ``node.stack``.

Nothing is noted by itself: only in anomaly mode, and inside ``antorcha.graph.recording()``, which
also notes the calls of modules around each operation (``watch``).
"""

from __future__ import annotations

import itertools
import linecache
import sys
import threading
import traceback
import weakref
from types import CodeType, FrameType
from typing import Any, NamedTuple

from antorcha.core.cells import cell_of
from antorcha.core.hooks import hooks
from antorcha.errors import ours

_next_call = itertools.count(1).__next__


class SourceLine(NamedTuple):
    """A line of the program, in a function that was running."""

    file: str
    number: int
    function: str

    @property
    def text(self) -> str:
        """The line itself; empty where its source is not known."""
        return linecache.getline(self.file, self.number).strip()


class ModuleCall(NamedTuple):
    """A call of a module; each has a serial number of its own."""

    module: Any  # a weak reference
    serial: int


class Origin:
    """The lines that were running when a node was made (outermost first, without antorcha's own),
    and the calls of modules around it. Its text is that of a traceback."""

    __slots__ = ("calls", "lines")

    def __init__(self, lines: tuple[SourceLine, ...], calls: tuple[ModuleCall, ...]) -> None:
        self.lines, self.calls = lines, calls

    def __str__(self) -> str:
        cells = [cell_of(line.file) for line in self.lines]
        first = next((k for k, cell in enumerate(cells) if cell is not None), 0)  # (not IPython's)
        shown = zip(self.lines[first:], cells[first:], strict=True)
        return "".join([_text_of(line, cell) for line, cell in shown])


def _text_of(line: SourceLine, cell: int | None) -> str:
    """A line as a traceback writes it, a notebook's as IPython does."""
    (text,) = traceback.format_list([(*line, line.text)])
    if cell is None:
        return text
    return text.replace(f'File "{line.file}"', f"Cell In[{cell}]", 1)


class _Watch(threading.local):
    """The calls of modules that this thread is in: those around the last node.

    Their frames are held until the next node, so that no other call can be taken for one of them.
    """

    depth = 0
    code: CodeType | None = None
    around: tuple[tuple[FrameType, ModuleCall], ...] = ()


_watch = _Watch()


def watch(code: CodeType) -> None:
    """From now on this thread's origins say which modules were called: those whose call runs the
    function `code`, as its argument ``self``. Ends with as many ``unwatch()``."""
    _watch.depth += 1
    _watch.code = code


def unwatch() -> None:
    """The end of a ``watch``."""
    _watch.depth -= 1
    if not _watch.depth:
        _watch.code, _watch.around = None, ()


def unwatch_all() -> None:
    """The end of every ``watch`` of this thread."""
    _watch.depth, _watch.code, _watch.around = 0, None, ()


def origin() -> Origin:
    """Of the operation that is being recorded."""
    lines, frames = [], []
    code = _watch.code
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is code:
            frames.append(frame)
        elif not ours(frame):
            where = frame.f_code
            lines.append(SourceLine(where.co_filename, frame.f_lineno or 0, where.co_name))
        frame = frame.f_back
    calls: tuple[ModuleCall, ...] = ()
    if code is not None:
        _watch.around = tuple([_call(frame) for frame in reversed(frames)])
        calls = tuple([call for _, call in _watch.around])
    return Origin(tuple(reversed(lines)), calls)


def _call(frame: FrameType) -> tuple[FrameType, ModuleCall]:
    """The call that runs in a frame."""
    for known in _watch.around:
        if known[0] is frame:
            return known
    return frame, ModuleCall(weakref.ref(frame.f_locals["self"]), _next_call())


hooks.origin = origin
