"""A lesson's cells run where they stand, and outputs that the learner says first."""

from __future__ import annotations

import doctest
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

from antorcha.lab.fields import LessonError
from antorcha.lab.kernel import Limits
from antorcha.lab.lesson import Cell, lessons, load
from antorcha.lab.panes import cell as cell_pane
from antorcha.lab.workplace import MEMORY
from tests.lab.bench import PATIENCE, Bench, patient
from tests.lab.learner import AGAIN, Lab, Learner

HEAD = "---\ntitle: T\nminutes: 5\nfile: t.py\n---\n"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("work"), Limits(seconds=PATIENCE, memory=3 << 30))
    with patient():
        yield bench
        bench.close()


def run_cells(bench: Bench, *cells: str) -> dict[str, Any]:
    found: dict[str, Any] = bench.do(bench.child.run_cells(list(cells), "t.py"))
    return found


def test_an_output_may_be_asked_for_first(tmp_path: Path) -> None:
    path = tmp_path / "en" / "01_t.md"
    path.parent.mkdir()
    text = HEAD + "```python\nprint(1)\n```\n```output predict: true\n1\n```\n"
    path.write_text(text)
    assert load(path).cells == [Cell("print(1)", "1\n", False, 7, True)]
    path.write_text(text.replace("predict: true", "predict: tru"))
    with pytest.raises(LessonError, match="predict: true"):
        load(path)
    for lesson in (*lessons("en"), *lessons("es")):
        for cell in lesson.cells:
            assert not cell.predict or cell.output
    assert doctest.testmod(cell_pane).failed == 0


def test_cells_run_in_a_namespace_of_their_own(bench: Bench) -> None:
    bench.run("kept = 1\nimport builtins\nbuiltins.odd = 1")
    first = "import torch\na = torch.zeros(3)\nb = torch.ones(2)\nprint('first')"
    result = run_cells(bench, first, "print('second')\na[1] = 5\nc = a.view(3, 1)\nopen('f', 'w')")
    assert (result["ended"], result["printed"]) == ("ok", "second\n")
    assert [row["name"] for row in result["rows"]] == ["a", "c"]
    assert bench.text() == ""
    assert not (bench.folder / "f").exists()
    seen = bench.do(bench.child.look("cell", f"{result['count']} c"))
    assert "html" in seen
    again = run_cells(bench, "print('kept' in globals(), 'a' in globals(), hasattr(1, 'odd'))")
    assert again["printed"] == "False False False\n"
    assert bench.do(bench.child.look("cell", f"{result['count']} c")) == {"gone": True}
    assert "html" not in bench.do(bench.child.look("inspect", "c"))
    failed = run_cells(bench, "x = 1\n\n", "def f():\n    return 1 / 0\nprint(1)\nf()")
    assert (failed["ended"], failed["printed"]) == ("error", "1\n")
    assert 't.py", line 6, in <module>\n' in failed["text"]
    assert 't.py", line 4, in f\n    return 1 / 0' in failed["text"]


def test_what_the_learner_ran_stays(bench: Bench) -> None:
    bench.run("import torch\nmine = torch.ones(4)\n")
    run_cells(bench, "import torch\nmine = torch.zeros(9)\nloss = 1.0")
    assert "(4,)" in bench.do(bench.child.look("inspect", "mine"))["html"]
    curve = "for step in range(5):\n    loss = 1.0 / (step + 1)\n"
    assert [*run_cells(bench, "x = 1", curve)["losses"]] == ["loss"]
    assert run_cells(bench, curve, "x = 1")["losses"] == {}


# ---- in the browser -----------------------------------------------------------------------------


def visit(learner: Learner, page: str) -> None:
    """Open a page of the lab, as `Learner.open` does."""
    learner.open(learner.page.url.partition("/lesson")[0] + page)


def cell_of(learner: Learner, number: int) -> Any:
    return learner.page.locator(".lab-cell").nth(number - 1)


@pytest.mark.slow
@AGAIN
def test_changed_tensors_stand_below_and_open(learner: Learner) -> None:
    visit(learner, "/lesson/memory?lang=en")
    box = cell_of(learner, 5)
    box.locator(".lab-cell-run").click()
    row = box.locator(".lab-row")
    row.wait_for()
    assert "part" in row.inner_text()
    row.click()
    learner.until(lambda: "(4, 1)" in box.locator(".lab-cell-detail").inner_text(), "the tensor")
    assert box.locator(".lab-try").is_visible()
    box.locator(".lab-try").click()
    learner.until(lambda: "part = grid[1:, 1:3]" in learner.text(), "the cell in the editor")


@pytest.mark.slow
@AGAIN
def test_an_output_shows_once_it_was_said(lab: Lab, learner: Learner) -> None:
    page = learner.page
    visit(learner, "/lesson/memory?lang=es")
    page.set_viewport_size({"width": 400, "height": 800})
    number = next(n for n, cell in enumerate(lessons("es")[1].cells, 1) if cell.predict)
    box = cell_of(learner, number)
    box.scroll_into_view_if_needed()
    line, output = box.locator("textarea"), box.locator(".lab-output").first
    assert not output.is_visible()
    box.locator(".lab-cell-run").press("Enter")  # (the keyboard alone, from here on)
    learner.until(lambda: line.evaluate("each => each === document.activeElement"), "its focus")
    page.keyboard.type("100 100")
    page.keyboard.press("Enter")
    output.wait_for(state="visible")
    assert output.inner_text() == "100 0"
    assert box.locator(".lab-cell-said.lab-wrong").inner_text().startswith("Dijiste 100 100")
    assert not box.locator("form").is_visible()
    box.locator(".lab-cell-run").press("Enter")
    box.locator(".lab-output-run").wait_for(state="visible")
    assert box.locator(".lab-row").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    kept = json.loads((lab.folder / MEMORY).read_text())["predicted"]
    assert kept["memory"] == {str(number): "100 100"}
    page.reload()
    learner.until(box.locator(".lab-cell-said").is_visible, "what was said, after a reload")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert learner.problems == []
