"""What the terminal shows: the text of all that was printed, bounded, and safe to show.

A program may print anything. Colours, and moves of the cursor within what is shown (progress bars),
go through; all that would do something else to the terminal or to the page (titles, links, the
clipboard, answers typed by the terminal itself) is left out.
"""

from __future__ import annotations

import re

KEPT = 200_000  # characters that a page opened later still sees
BURST = 60_000  # characters shown of what is printed between two refreshes

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


class Screen:
    """The text so far; readers ask for what came since the place they had read to."""

    def __init__(self) -> None:
        self._text = ""
        self._begin = 0  # how many characters were dropped before the first
        self._partial = ""  # an escape sequence whose end has not come yet

    @property
    def end(self) -> int:
        """The place after the last character."""
        return self._begin + len(self._text)

    def write(self, text: str) -> None:
        """Add what a program printed."""
        text = self._partial + text
        partial = _PARTIAL.search(text)
        self._partial = partial[0] if partial else ""
        if partial:
            text = text[: partial.start()]
        self._text += plain(text)
        if len(self._text) > 2 * KEPT:
            cut = _line_begin(self._text, len(self._text) - KEPT)
            self._begin += cut
            self._text = self._text[cut:]

    def since(self, place: int) -> str:
        """The text from `place` on; of very much, the last part."""
        text = self._text[max(place - self._begin, 0) :]
        if len(text) <= BURST:
            return text
        cut = _line_begin(text, len(text) - BURST)
        return f"\x1b[0m\n… {cut:,} …\n" + text[cut:]

    def clear(self) -> None:
        """Forget the text; readers' places stay valid."""
        self._begin = self.end
        self._text = self._partial = ""


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
