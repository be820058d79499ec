"""What every face for terminals shares: text that the terminal can write, and ``show()``."""

from __future__ import annotations

import io
import sys
import unicodedata
from typing import TYPE_CHECKING

from antorcha.core.lazy import lazy

if TYPE_CHECKING:
    from rich.console import Console

rich_console = lazy("rich.console")

_DRAWN = "▁▂▃▄▅▆▇█─│└┘├←…\N{NO-BREAK SPACE}"
_PLAIN = str.maketrans(dict(zip(_DRAWN, ".:-=+*%#-|`'|<~ ", strict=True)))


def written(text: str, encoding: str | None) -> str:
    """The text in characters of an encoding: bars and lines as ASCII, letters without accents.

    >>> written("├─ disposición", "ascii"), written("2 ≠ 3", "latin-1")
    ('|- disposicion', '2 !=3')
    """
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        text = text.replace(" ≠ ", " !=").translate(_PLAIN)  # (each as wide as it was)
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        letters = [c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)]
        return "".join(letters).encode("ascii", "replace").decode()


def plain_console(width: int) -> Console:
    """A console that writes plain text into memory (in a notebook, too, where rich would show it
    there instead)."""
    found: Console = rich_console.Console(
        file=io.StringIO(), width=width, color_system=None, legacy_windows=False, emoji=False,
        force_jupyter=False,
    )  # fmt: skip
    return found


class Shown:
    """Something that prints as text and shows itself in colours."""

    def plain(self) -> str:
        """All of it as plain text, whatever the terminal can write."""
        raise NotImplementedError(f"{type(self).__name__}.plain")

    def __str__(self) -> str:
        return written(self.plain(), getattr(sys.stdout, "encoding", None))

    __repr__ = __str__

    def show(self) -> None:
        """Prints it with colours where there are any, at most 120 characters wide."""
        console = rich_console.Console()
        if hasattr(self, "__rich_console__") and "utf" in console.encoding.lower():
            console.print(self, width=min(console.width, 120))
        else:
            print(self)
