"""What tensors hold over the time of a profile: numbers that add up, a picture, files."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch
from antorcha.profiler import memory, memory_timeline, profile, record_function
from antorcha.runtime.memory.alloc import stats

pytestmark = pytest.mark.usefixtures("no_collection")

SVG = "{http://www.w3.org/2000/svg}"


def _work(kept: list[Any]) -> None:
    with record_function("make <&>"):
        big = torch.ones(100_000)
        kept.append(torch.ones(1000))
    (big * 2).exp()
    del big
    torch.ones(10)


@pytest.fixture
def prof() -> Any:
    _work([])
    kept: list[Any] = []
    with profile(profile_memory=True) as made:
        _work(kept)
    made.kept = kept
    return made


def test_it_begins_and_ends_with_what_is_held() -> None:
    kept: list[Any] = []
    _work([])
    before = stats().live
    with profile(profile_memory=True) as prof:
        _work(kept)
    after = stats().live
    found = memory.moments(prof.events())
    assert found[0].held == before
    assert found[-1].held == after
    assert after - before == prof.total_average().self_cpu_memory_usage >= 4000
    assert [m.at for m in found] == sorted([m.at for m in found])


def test_the_peak_and_who_made_it(prof: Any) -> None:
    found = memory.moments(prof.events())
    most = max(found, key=lambda moment: moment.held)
    assert most.held - found[0].held >= 3 * 400_000  # big, big * 2, and its exp
    assert most.by == "aten::exp"
    ones = next(e for e in prof.events() if e.name == "aten::ones")
    first = next(m for m in found if m.held - found[0].held >= 400_000)
    assert ones.time_range.start <= first.at <= ones.time_range.end
    assert first.by in ("aten::ones", "aten::full")


def test_the_picture(prof: Any) -> None:
    text = prof.memory_timeline()
    assert text == memory_timeline(prof.events())
    root = ElementTree.fromstring(text)
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert any(title.startswith("make <&>: ") for title in titles)
    assert any("by aten::exp" in title for title in titles)
    words = [label.text or "" for label in root.iter(f"{SVG}text")]
    assert any(re.fullmatch(r"\d+\.\d\d MB aten::exp", word) for word in words)
    assert "Who took the most" in words
    assert "<script" not in text
    for rect in root.iter(f"{SVG}rect"):
        assert 0 <= float(rect.get("x", 0)) <= memory.WIDTH
        assert float(rect.get("x", 0)) + float(rect.get("width", 0)) <= memory.WIDTH + 1


def test_a_long_profile_has_a_bounded_picture_with_its_peak() -> None:
    torch.ones(2)
    with profile(profile_memory=True) as prof:
        for _ in range(3000):
            torch.ones(2)
        large = torch.ones(1 << 20)
        del large
        for _ in range(3000):
            torch.ones(2)
    picture = prof.memory_timeline()
    areas = len(re.findall('class="here"', picture))
    assert areas <= memory.COLUMNS + 1
    assert re.search(r"from .* on, by aten::(ones|full)", picture)
    heights = re.findall(r"L[\d.]+,([\d.]+)H", picture)
    assert min(map(float, heights)) < memory.TOP + memory.HEIGHT * 0.1  # thinning keeps the top


def test_nothing_ran() -> None:
    with profile(profile_memory=True) as prof:
        pass
    ElementTree.fromstring(prof.memory_timeline())


def test_files(prof: Any, tmp_path: Path) -> None:
    for ending in ("html", "svg", "json", "json.gz", "raw.json.gz"):
        prof.export_memory_timeline(tmp_path / f"m.{ending}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "m.html", "m.json", "m.json.gz", "m.raw.json.gz", "m.svg",
    ]  # fmt: skip
    assert (tmp_path / "m.html").read_text().startswith("<!doctype html>")
    times, rows = json.loads((tmp_path / "m.json").read_text())
    assert json.loads(gzip.decompress((tmp_path / "m.json.gz").read_bytes())) == [times, rows]
    found = memory.moments(prof.events())
    assert [sum(row) for row in rows] == [moment.held for moment in found]
    assert {len(row) for row in rows} == {9}  # as PyTorch's, whose first is 0
    assert times == sorted(times)
    held = 0
    for _, action, nbytes, category in json.loads(
        gzip.decompress((tmp_path / "m.raw.json.gz").read_bytes())
    ):
        held += {0: nbytes, 1: nbytes, 3: -nbytes}[action]
        assert category == 7
    assert held == found[-1].held


def test_what_it_refuses(prof: Any, tmp_path: Path) -> None:
    with profile() as bare:
        torch.ones(1)
    with pytest.raises(ValueError, match=r"profile\(profile_memory=True\)"):
        bare.export_memory_timeline(tmp_path / "m.html")
    with pytest.raises(ValueError, match=r"\.html, \.svg"):
        prof.export_memory_timeline(tmp_path / "m.png")
    with pytest.raises(ValueError, match="'cuda:0' is not recorded"):
        prof.export_memory_timeline(tmp_path / "m.html", "cuda:0")
    with pytest.raises(OSError, match="no-such"):
        prof.export_memory_timeline(tmp_path / "no-such" / "m.html")
    assert not list(tmp_path.iterdir())
