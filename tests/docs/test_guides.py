"""The guides that users read are there in Spanish, and say there what they say in English."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, links

pytest.importorskip("yaml", reason="needs antorcha[lab]: the site shows its lessons, too")

from tools.reference.guides import INSIDE, USER_GUIDES

SPANISH = ROOT / "docs" / "es"
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def test_each_guide_is_for_users_or_for_those_who_look_inside() -> None:
    names = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert names == {*USER_GUIDES, *INSIDE, "index"}
    assert {path.stem for path in SPANISH.glob("*.md")} == {*USER_GUIDES, "index"}


@pytest.mark.parametrize("name", ["index", *USER_GUIDES])
def test_a_guide_says_the_same_in_spanish(name: str) -> None:
    english, spanish = ROOT / "docs" / f"{name}.md", SPANISH / f"{name}.md"
    assert _skeleton(english) == _skeleton(spanish)
    assert english.read_text(encoding="utf-8") != spanish.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["index", *USER_GUIDES])
def test_the_links_of_a_spanish_guide_lead_somewhere(name: str) -> None:
    page = SPANISH / f"{name}.md"
    assert not [link for link in links(page) if not (page.parent / link).exists()]
    here = {path.name for path in SPANISH.glob("*.md")}
    assert not [link for link in links(page) if link.startswith("../") and link[3:] in here]


def _skeleton(page: Path) -> tuple[list[str], list[int], int, int]:
    """Code blocks, levels of headings, rows of tables, and pictures."""
    text = page.read_text(encoding="utf-8")
    prose = _FENCE.sub("", text)
    levels = [len(mark) for mark in re.findall(r"^(#+) ", prose, re.MULTILINE)]
    rows = len(re.findall(r"^\|", prose, re.MULTILINE))
    return _FENCE.findall(text), levels, rows, prose.count("![")
