"""The founding tutorials run on antorcha and print what their pages show.

Each page runs in a process of its own, once as ``import antorcha as torch`` and once with ``torch``
served by the import hook; each cell is one test. ``ANTORCHA_SEEDS_BACKEND=torch`` runs the pages on
PyTorch itself, which checks that the cells were copied well.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.seeds.notebook import Cell, matches, read_cells

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PAGES = sorted((HERE / "cells").glob("seed_*.py"))
BACKENDS = os.environ.get("ANTORCHA_SEEDS_BACKEND", "face alias").split()


@functools.cache
def _run_page(backend: str, page: Path) -> list[dict[str, str]]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.seeds.notebook", backend, str(page)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.returncode != 0:
        pytest.fail(f"{page.name} did not run on {backend}:\n{done.stderr[-4000:]}", pytrace=False)
    outcomes: list[dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return outcomes


def _cases() -> list[object]:
    return [
        pytest.param(backend, page, index, id=f"{backend}-{page.stem}-{cell.name}")
        for backend in BACKENDS
        for page in PAGES
        for index, cell in enumerate(read_cells(page))
    ]


@pytest.mark.parametrize(("backend", "page", "index"), _cases())
def test_a_cell_does_what_its_page_shows(backend: str, page: Path, index: int) -> None:
    problem = _run_page(backend, page)[index]["problem"]
    if problem:
        pytest.fail(problem, pytrace=False)


@pytest.mark.parametrize("backend", BACKENDS)
def test_session_info_shows_the_library_under_its_name(backend: str) -> None:
    page = HERE / "cells" / "seed_000.py"
    output = _run_page(backend, page)[-1]["output"]
    rows = [line.split() for line in output.splitlines()]
    versions = {row[0]: row[1] for row in rows if len(row) == 2}
    expected = {"face": ("antorcha", "0."), "alias": ("torch", "2.13.0"), "torch": ("torch", "2.")}
    name, version = expected[backend]
    assert versions[name].startswith(version)


@pytest.mark.gpu
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_pages_where_there_is_a_gpu(backend: str) -> None:
    pages = {}
    for number in (2, 3, 4):
        outcomes = _run_page(backend, HERE / "cells" / f"seed_00{number}.py")
        pages[number] = {cell["name"]: cell for cell in outcomes}
    assert pages[2]["99"]["output"] == "Device: cuda:0\n"
    assert pages[3]["23"]["output"] == "True\n"
    assert "Wall time" in pages[3]["None"]["output"]
    assert (pages[3]["24"]["error"], pages[3]["25"]["error"]) == ("", "")
    mistake = pages[4]["question 2"]["error"]
    for text in ("Expected all tensors to be on the same device", "cpu and cuda:0"):
        assert text in mistake, mistake


def test_every_cell_has_a_name_of_its_own() -> None:
    for page in PAGES:
        cells: list[Cell] = [cell for cell in read_cells(page) if cell.name != "setup"]
        names = [cell.name for cell in cells]
        assert len(names) == len(set(names)), page.name


@pytest.mark.parametrize(
    ("output", "expected", "marks", "same"),
    [
        ("tensor([1, 2])\n", "tensor([1, 2])", {}, True),
        ("tensor([1, 3])\n", "tensor([1, 2])", {}, False),
        ("version: 2.13\n", "version: «2.0»", {}, True),
        ("tensor([-1.5,  2.0])", "tensor([1.5, 2.0])", {"numbers": ""}, True),
        ("tensor([-1.5,  2.0, 3.0])", "tensor([1.5, 2.0])", {"numbers": ""}, False),
        ("a b c", "c\na", {"contains": ""}, True),
        ("a b", "c\na", {"contains": ""}, False),
    ],
)
def test_comparing(output: str, expected: str, marks: dict[str, str], same: bool) -> None:
    assert matches(output, expected, marks) is same
