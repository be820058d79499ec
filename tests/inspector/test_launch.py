"""``antorcha.inspect`` of a launch: which thread touches which element, and how a warp reads."""

from __future__ import annotations

import doctest
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import antorcha as torch
from antorcha.devices.sim import recording
from antorcha.devices.sim.recording import ElementAccess, LaunchedOperand, SimulatedLaunch
from antorcha.inspector.launch import draw, facts, rows
from antorcha.inspector.launch.inspection import LaunchInspection
from antorcha.inspector.vocabulary import LANGUAGES

SVG = "{http://www.w3.org/2000/svg}"


def on_sim(*shape: int, dtype: Any = torch.float32) -> Any:
    count = int(torch.Size(shape).numel())
    return torch.arange(count, dtype=torch.float64).to(dtype).view(shape).to("sim")


CASES: dict[str, Callable[[], Any]] = {
    "small": lambda: on_sim(8) + 1,
    "transposed": lambda: on_sim(64, 64) + on_sim(64, 64).t(),
    "doubles": lambda: on_sim(100, dtype=torch.float64) * 2,
    "bytes": lambda: on_sim(2000, dtype=torch.uint8)[3:] + 1,
    "complex": lambda: on_sim(50, dtype=torch.complex128) * 2,
    "one number": lambda: on_sim(1) * 2,
    "every eighth": lambda: on_sim(2000)[::8] * 2,
    "sum": lambda: on_sim(1000).sum(),
    "sum of columns": lambda: on_sim(640, 64).sum(0),
    "sum of rows": lambda: on_sim(20, 40).sum(1),
    "many": lambda: on_sim(600_000) + 1,
    "in place": lambda: on_sim(40).mul_(2),
    "gathered": lambda: on_sim(64, 64)[torch.arange(0, 64, 3).to("sim")],
    "many operands": lambda: torch.addcmul(on_sim(7), on_sim(7), on_sim(7)),
}  # fmt: skip


def launches_of(case: str) -> list[SimulatedLaunch]:
    with torch.sim.recording() as launches:
        CASES[case]()
    assert launches
    return launches


def patterns(launch: SimulatedLaunch, block: int = 0) -> dict[str, tuple[int, int, str]]:
    found = torch.inspect(launch, block=block).facts.warp
    return {f"{'w' if a.write else 'r'} {a.operand}": (a.lanes, a.segments, a.pattern)
            for a in found}  # fmt: skip


def test_how_a_warp_reads() -> None:
    expected = {
        "small": {"r in0": (2, 1, "together"), "w out0": (2, 1, "together")},
        "transposed": {
            "r in0": (32, 1, "together"), "r in1": (32, 32, "scattered"),
            "w out0": (32, 1, "together"),
        },
        "doubles": {"r in0": (25, 7, "partly"), "w out0": (25, 7, "partly")},
        "complex": {"r in0": (25, 7, "partly"), "w out0": (25, 7, "partly")},
        "many": {"r in0": (32, 4, "together"), "w out0": (32, 4, "together")},
        "sum of columns": {"r in0": (32, 1, "together"), "w temp0": (32, 1, "together")},
        "every eighth": {"r in0": (32, 8, "partly"), "w out0": (32, 1, "together")},
        "sum of rows": {"r in0": (32, 1, "together"), "w out0": (1, 1, "together")},
    }  # fmt: skip
    for case, wanted in expected.items():
        assert patterns(launches_of(case)[0]) == wanted, case
    row = on_sim(128)
    with torch.sim.recording() as launches:
        on_sim(64, 1) + row
    assert patterns(launches[0], 0)["r in0"] == (32, 1, "same")
    (launch,) = launches
    assert patterns(launch, launch.blocks[0] - 1)["r in1"] == (32, 4, "together")


def test_segments_are_those_of_memory() -> None:
    operand = LaunchedOperand("in0", 1 << 20, 4, "f32")
    for shift, wanted in ((0, 1), (32, 2), (124, 2), (128, 1)):
        moved = replace(operand, address=operand.address + shift)
        accesses = [ElementAccess(0, t, "in0", t, False) for t in range(32)]
        launch = SimulatedLaunch("Pointwise", "k", "k.py:1", (1,), 32, [moved], 0, 32, accesses)
        assert patterns(launch) == {"r in0": (32, wanted, "together")}, shift
    wide = [ElementAccess(0, t, "in0", 4 * t, False, 4) for t in range(32)]
    launch = SimulatedLaunch("Move", "k", "k.py:1", (1,), 32, [operand], 0, 32, wide)
    assert patterns(launch) == {"r in0": (32, 4, "together")}
    assert torch.inspect(launch).facts.operands[0].elements_read == 128
    assert "0, 1, 2, 3" in str(torch.inspect(launch))


def test_the_facts_are_those_of_the_recording() -> None:
    for case in CASES:
        for launch in launches_of(case):
            found = torch.inspect(launch).facts
            reads = {(a.operand, a.element + k) for a in launch.accesses if not a.write
                     for k in range(a.count)}  # fmt: skip
            assert sum(o.elements_read for o in found.operands) == len(reads), case
            assert found.busy == len({(a.block, a.thread) for a in launch.accesses}), case
            assert found.reads + found.writes + found.elsewhere == found.noted, case
            assert found.elsewhere == 0, case
            for access in found.warp:
                for own in access.threads:
                    theirs = [
                        a.element + k
                        for a in launch.of(0, own.thread)
                        for k in range(a.count)
                        if (a.operand, a.write) == (access.operand, access.write)
                    ]
                    whole = list(dict.fromkeys(theirs))
                    assert list(own.elements) == whole[: len(own.elements)], case
                    assert own.more == len(whole) - len(own.elements), case
            plain = json.loads(json.dumps(torch.inspect(launch).as_dict()))
            assert plain["threads"] == launch.threads, case


def test_what_is_left_out_is_counted() -> None:
    launch = launches_of("many")[0]
    assert (launch.count, launch.noted) == (300_000, recording.MOST_ACCESSES)
    text = str(torch.inspect(launch))
    assert "37\xa0856 are left out of all that follows" in re.sub(r" *\n +", " ", text)
    last = torch.inspect(launch, block=launch.blocks[0] - 1)
    assert "None of the accesses of threads 0 to 31 was noted." in str(last)
    columns = launches_of("sum of columns")[0]
    inspection = torch.inspect(columns)
    (line,) = re.findall(r"(?m)^ +0  (0, .*)$", str(inspection))
    listed, more = re.fullmatch(r"([\d, ]+) and (\d+) more +0", line).groups()  # type: ignore[union-attr]
    reads = [a for a in columns.of(0, 0) if not a.write]
    assert len(listed.split(", ")) + int(more) == len(reads)
    html = torch.inspect(launches_of("transposed")[0]).html()
    drawn = ET.fromstring(html)
    scattered = next(s for s in drawn.iter("section") if s.findtext("h4") == "in1 read")
    boxes = [r for r in scattered.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    (cut,) = [p.text or "" for p in scattered.iter("p") if p.get("class") == "muted"]
    left = re.fullmatch(r"(\d+) more elements in (\d+) segments are not drawn\.", cut)
    assert left is not None
    assert len(boxes) + int(left[1]) == 128  # four of each of 32 threads
    assert len({b.get("y") for b in boxes}) + int(left[2]) == 32


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_face_is_well_made(lang: str) -> None:
    for case in CASES:
        for launch in launches_of(case):
            inspection = torch.inspect(launch, name="<img src=x>&", lang=lang)
            text = inspection.plain()
            assert max(map(len, text.splitlines())) <= 80, (case, text)
            assert "{" not in text, case
            assert launch.source in text, case
            html = inspection.html()
            root = ET.fromstring(html)
            assert root.get("class") == "ant ant-inspect"
            assert root.get("lang") == lang
            tags = {element.tag.removeprefix(SVG) for element in root.iter()}
            assert not tags & {"script", "link", "iframe", "img", "use"}, case
            for picture in root.iter(f"{SVG}svg"):
                assert picture.get("aria-label")
                assert float(picture.get("width", "1e9")) <= 325
            assert len(list(root.iter(f"{SVG}svg"))) == len(inspection.facts.warp), case
            assert "\N{REPLACEMENT CHARACTER}" not in html, case
            assert len(html) < 150_000, case


def test_the_picture_says_who_touched_what() -> None:
    root = ET.fromstring(torch.inspect(launches_of("small")[0]).html())
    for picture in root.iter(f"{SVG}svg"):
        titles = [title.text for title in picture.iter(f"{SVG}title")]
        assert titles == [
            f"element {k}: thread {k // 4}, its element number {k % 4 + 1}" for k in range(8)
        ]
        numbers = [t.text for t in picture.iter(f"{SVG}text") if "lane" in t.get("class", "")]
        assert numbers == [str(k // 4) for k in range(8)]
        styles = [r.get("style") for r in picture.iter(f"{SVG}rect") if r.get("style")]
        assert len(set(styles)) == 2  # a colour for each thread
    with torch.sim.recording() as launches:
        on_sim(64, 1) + on_sim(128)
    html = torch.inspect(launches[0]).html()
    assert "element 0: threads 0-31" in html
    assert "×32" in html


def test_kernels_temporaries_are_operands() -> None:
    parts, join = launches_of("sum of columns")
    for launch, key in ((parts, "elements_written"), (join, "elements_read")):
        temp = torch.inspect(launch).facts.operands[-1]
        assert (temp.name, temp.dtype) == ("temp0", "b32")
        assert getattr(temp, key) > 0
    whole = launches_of("sum")[0]
    assert torch.inspect(whole).facts.shared_bytes == whole.shared_bytes > 0


def test_languages_and_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    launches = launches_of("transposed")
    torch.inspect(launches[0], name="suma", lang="es").show()
    shown = capsys.readouterr().out
    assert "suma: Pointwise" in shown
    assert "32 carriles, 32 segmentos: dispersos" in shown
    assert isinstance(torch.inspect(launches[0]), LaunchInspection)
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: torch.inspect(launches), r"not list.*one of the list that torch\.sim\.recording"),
        (lambda: torch.inspect(launches[0], block=99), r"block=99 .* from 0 to 3"),
        (lambda: torch.inspect(launches[0], block=-1), r"block=-1 "),
        (lambda: torch.inspect(launches[0], block="0"), r"block='0' "),
        (lambda: torch.inspect(launches[0], lang="ess"), r"lang='ess' must be one of en, es"),
        (lambda: torch.inspect(launches[0], axes="N"), r"axes= is for tensors; a launch takes"),
        (lambda: torch.inspect(torch.ones(2), block=0), r"block= is for a launch .* not Tensor"),
    ]
    for call, message in wrong:
        with pytest.raises(TypeError, match=message):
            call()


def test_examples_in_docstrings() -> None:
    for module in (facts, rows, draw):
        result = doctest.testmod(module)
        assert result.attempted
        assert not result.failed
