"""What the terminal shows: the text of all that was printed, bounded, and safe to show.

A program may print anything. Colours, and moves of the cursor within what is shown (progress bars),
go through; all that would do something else to the terminal or to the page (titles, links, the
clipboard, answers typed by the terminal itself) is left out.

What the lab itself says there (that a program ended, and how) is kept as a function of the words to
say it with: every page says it in its own language, and breaks it where its own pane ends. What a
program prints is never broken: the terminal grows as wide as its longest line, and is scrolled.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable
from typing import Any

KEPT = 200_000  # characters that a page opened later still sees
BURST = 60_000  # characters shown of what is printed between two refreshes
WIDEST = 1000  # columns of the terminal at most: longer lines go on in the next row
USUAL = 80  # columns that it has at least: tensors are printed so wide

# What is allowed: SGR (m), cursor moves (A-G), erase in line and in display (K, J).
_ALLOWED = re.compile(r"\x1b\[[0-9;]*[A-GJKm]")
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\Z)"  # OSC, DCS, SOS, PM, APC, with all they hold
    r"|\x1b[ -/]*[0-~]?",  # the rest of the escapes
    re.DOTALL,
)
_CONTROLS = re.compile("[\x00-\x06\x0b-\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_PARTIAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4000})?\Z")


# Where the lab says something: the number of what it says. No program can write these characters.
_SAID = re.compile("\x01(\\d+)\x02")


class Screen:
    """The text so far; readers ask for what came since the place they had read to.

    Args:
        tell: called when there is more of it.
    """

    def __init__(self, tell: Callable[[], None] = lambda: None) -> None:
        self._tell = tell
        self._text = ""
        self._begin = 0  # how many characters were dropped before the first
        self._partial = ""  # an escape sequence whose end has not come yet
        self._said: dict[int, Callable[[Any], str]] = {}  # of what is in the text
        self._count = 0  # of all that was said

    @property
    def end(self) -> int:
        """The place after the last character."""
        return self._begin + len(self._text)

    @property
    def is_empty(self) -> bool:
        return not self._text

    def write(self, text: str) -> None:
        """Add what a program printed."""
        text = self._partial + text
        partial = _PARTIAL.search(text)
        self._partial = partial[0] if partial else ""
        if partial:
            text = text[: partial.start()]
        self._add(plain(text))

    def say(self, line: Callable[[Any], str]) -> None:
        """Add what the lab says: `line` gets the words of the page that shows it."""
        self._said[self._count] = line
        self._count += 1
        self._add(f"\x01{self._count - 1}\x02")

    def _add(self, text: str) -> None:
        self._text += text
        if len(self._text) > 2 * KEPT:
            cut = _line_begin(self._text, len(self._text) - KEPT)
            self._begin += cut
            self._forget(self._text[:cut])
            self._text = self._text[cut:]
        self._tell()

    def since(self, place: int, words: Any = None, width: int = USUAL) -> str:
        """The text from `place` on; of very much, the last part. What the lab says is said with
        `words`, in lines of `width` columns."""
        text = self._text[max(place - self._begin, 0) :]
        if len(text) > BURST:
            cut = _line_begin(text, len(text) - BURST)
            text = f"\x1b[0m\n… {cut:,} …\n" + text[cut:]

        def said(found: re.Match[str]) -> str:
            return folded(self._said[int(found[1])](words), width)

        return _SAID.sub(said, text).translate({1: None, 2: None})

    def cut(self, place: int) -> None:
        """Forget the text after `place`."""
        kept = max(place - self._begin, 0)
        self._forget(self._text[kept:])
        self._text = self._text[:kept]
        self._partial = ""

    def clear(self) -> None:
        """Forget the text; readers' places stay valid."""
        self._begin = self.end
        self._forget(self._text)
        self._text = self._partial = ""

    def _forget(self, text: str) -> None:
        """What was said in that part of the text is not asked for any more."""
        for found in _SAID.finditer(text):
            del self._said[int(found[1])]


def folded(text: str, width: int) -> str:
    """`text` with its lines broken between words. Those that begin with a space are a program's,
    and stay whole.

    >>> folded("It ended early\\n    y = a + b", 9)
    'It ended\\nearly\\n    y = a + b'
    """
    lines = []
    for line in text.split("\n"):
        if len(line) <= width or line.startswith(" "):
            lines.append(line)
        else:
            lines += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def columns(text: str) -> int:
    """Columns that the longest line of a terminal's text takes, `WIDEST` at most.

    >>> columns("abc\\n\\x1b[31mdefg\\x1b[0m\\rhi"), columns("日本")
    (4, 4)
    """
    longest = 0
    for line in re.split(r"[\r\n]", _SEQUENCE.sub("", text)):
        if len(line) > WIDEST:
            return WIDEST
        tabs = len(line.expandtabs())
        wide = 0 if line.isascii() else sum([unicodedata.east_asian_width(c) in "WF" for c in line])
        longest = max(longest, tabs + wide)
    return min(longest, WIDEST)


def _line_begin(text: str, place: int) -> int:
    """The next line's beginning; `place` itself where that is far."""
    return text.find("\n", place, place + 2000) + 1 or place


def plain(text: str) -> str:
    r"""`text` without what a terminal would act on, but for colours and moves of the cursor.

    >>> plain("\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[5nhere\x07\x9b31m")
    '\x1b[31mred\x1b[0m  here\x0731m'
    """
    kept = _SEQUENCE.sub(lambda found: found[0] if _ALLOWED.fullmatch(found[0]) else "", text)
    return _CONTROLS.sub("", kept)
