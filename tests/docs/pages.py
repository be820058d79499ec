"""Reads Markdown pages: their code blocks, and the tables of what is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "README.es.md"]

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"# -> (.*)$")
_MISSING = re.compile(
    r"^\| `(?P<code>[^|]+)` \| `(?P<error>\w+): (?P<text>[^|]+)` \|", re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, and the line of the page where it begins."""

    language: str
    text: str
    line: int

    def outputs(self) -> list[str]:
        """The lines that the block says it prints: what follows ``# ->``, in order."""
        return [found[1] for line in self.text.splitlines() if (found := _OUTPUT.search(line))]


def blocks(page: Path) -> list[Block]:
    """The blocks of `page` that name a language, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)
        for found in _FENCE.finditer(text)
    ]


def missing(page: Path) -> list[tuple[str, str, str]]:
    """Rows of a table that say what is not there: the code, the error's class, its message."""
    text = page.read_text(encoding="utf-8")
    return [(row["code"], row["error"], row["text"]) for row in _MISSING.finditer(text)]


def links(page: Path) -> list[str]:
    """The relative links of `page`, without what follows ``#``."""
    found = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    return [link for link in found if "://" not in link]
