"""Checks a finished site: links and anchors, names, and paths of the machine that built it."""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tools.reference.names import ROOT


class Addresses(HTMLParser):
    """The ids of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


@cache
def addresses(page: Path) -> Addresses:
    """Those of a page, read once."""
    return Addresses(page.read_text(encoding="utf-8"))


def pages(site: Path) -> list[Path]:
    """The pages of a site."""
    return sorted(site.rglob("*.html"))


def lost_links(site: Path) -> list[str]:
    """The links to pages, files and anchors that are not there."""
    lost = []
    for page in pages(site):
        for link in addresses(page).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            goal = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            if not goal.is_file():
                lost.append(f"{page.relative_to(site)}: {link}")
            elif anchor and goal.suffix == ".html" and anchor not in addresses(goal).ids:
                lost.append(f"{page.relative_to(site)}: {link} (no such anchor)")
    return lost


def machine_paths(site: Path) -> list[str]:
    """Pages that name a folder of the machine on which the site was built."""
    folders = {str(ROOT), str(site.resolve()), sys.prefix, sys.base_prefix}
    found = []
    for page in [*pages(site), *site.rglob("*.js")]:
        text = page.read_text(encoding="utf-8")
        found += [f"{page.relative_to(site)}: {f}" for f in folders if len(f) > 5 and f in text]
    return found


def outside(site: Path) -> list[str]:
    """What pages would fetch from elsewhere: scripts, styles and pictures."""
    marks = ('src="http', "src='http", 'rel="stylesheet" href="http', "url(http")
    texts = {page: page.read_text(encoding="utf-8") for page in pages(site)}
    return [f"{page.relative_to(site)}: {mark}" for page, text in texts.items() for mark in marks
            if mark in text]  # fmt: skip
