"""Fixes are put where they belong, tried, and applied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

from antorcha.inspector.explain.explanation import Explanation
from antorcha.lab.fixes import mended
from antorcha.lab.kernel import Limits
from tests.lab.bench import PATIENCE, Bench, patient
from tests.lab.learner import AGAIN, Learner

SEED = "import torch\nA = torch.ones(3, 2)\nB = torch.ones(3, 2)\nC = A @ B\nprint(C.shape)\n"
LAYER = (
    "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n        self.fc = nn.Linear(5, 2)\n    def forward(self, x):\n"
    "        return self.fc(x)\nnet = Net()\nout = net(torch.ones(4, 7))\nprint(out.shape)\n"
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("work"), Limits(seconds=PATIENCE, memory=3 << 30))
    with patient():
        yield bench
        bench.close()


def tried(bench: Bench, program: str) -> list[tuple[str, str]]:
    """The fixes of a program, and the text with each that went further."""
    result = bench.run(program)
    texts = bench.do(bench.child.try_fixes())
    return list(zip([code for code, _ in result["fixes"]], texts, strict=True))


def test_a_fix_takes_the_place_of_its_line_and_is_tried(bench: Bench) -> None:
    found = tried(bench, SEED)
    assert ("C = A @ B.T", SEED.replace("A @ B", "A @ B.T")) in found
    assert bench.do(bench.child.look("inspect", "A")) != {"gone": True}  # of the failed run
    inside = SEED.replace("C = A @ B", "def f(a, b):\n    return a @ b\nC = f(A, B)")
    assert ("return a @ b.T", inside.replace("a @ b", "a @ b.T")) in tried(bench, inside)
    assert tried(bench, "x = [1, 2\nprint(3)\n") == [("x = [1, 2]", "x = [1, 2]\nprint(3)\n")]


def test_a_layer_is_made_anew_where_it_was_made(bench: Bench) -> None:
    found = dict(tried(bench, LAYER))
    assert LAYER.replace("nn.Linear(5, 2)", "nn.Linear(7, 2)") in found.values()


def test_what_goes_no_further_is_not_offered(bench: Bench) -> None:
    again = SEED.replace("C = A @ B", "C = A @ B + A[7]")
    assert all(text == "" for _, text in tried(bench, again))
    assert bench.run("x = 1")["ended"] == "ok"
    assert bench.do(bench.child.try_fixes()) == []
    writes = SEED + "open('mark', 'w')\n"
    assert any(text for _, text in tried(bench, writes))  # it went further, up to the file
    assert not (bench.folder / "mark").exists()


def test_a_statement_of_another_kind_does_not_take_the_place() -> None:
    text = "x = f(a)\ny = x + 1\n"
    found = Explanation("E", "", number=2, lines=["y = x + 1"], start=4, end=9, expression="x + 1")
    assert [*mended(text, found, "model = g(a)")] == []
    assert [*mended(text, found, "x.sort()")] == []
    assert [*mended(text, found, "x - 1")] == [("x = f(a)\ny = x - 1\n", 0)]
    assert [*mended(text, found, "x = g(a)")] == [("x = g(a)\ny = x + 1\n", 0)]


@pytest.mark.slow
@AGAIN
def test_apply_mends_and_undo_takes_back(learner: Learner) -> None:
    page, mended_text = learner.page, SEED.replace("A @ B", "A @ B.T")
    learner.run(SEED, ends="ended with an error")
    apply = page.get_by_role("button", name="Apply: C = A @ B.T", exact=True)
    apply.wait_for()
    apply.press("Enter")  # by the keyboard
    learner.until(lambda: learner.ended("Done in"), "the mended program's end")
    assert learner.text() == mended_text
    assert "torch.Size([3, 3])" in learner.terminal()
    assert not page.locator(".lab-why").is_visible()
    undo = learner.button("Undo")
    undo.wait_for()
    learner.until(lambda: undo.evaluate("each => each === document.activeElement"), "its focus")
    page.keyboard.press("Enter")
    learner.until(lambda: learner.text() == SEED, "the text as it was")
    apply.wait_for()
    assert not undo.is_visible()
    page.click(".cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type("# mine")
    apply.wait_for(state="detached")  # the text is another one
    assert learner.problems == []


@pytest.mark.slow
@AGAIN
def test_it_is_there_in_spanish_on_a_narrow_screen(learner: Learner) -> None:
    page = learner.page
    learner.open(page.url.partition("?")[0] + "?lang=es")
    learner.run(SEED, ends="Terminó con un error")
    page.set_viewport_size({"width": 400, "height": 800})
    learner.tab("Por dentro")
    page.get_by_role("button", name="Aplicar: C = A @ B.T", exact=True).click()
    learner.button("Deshacer").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.set_viewport_size({"width": 1280, "height": 800})
    assert "C = A @ B.T" in learner.text()
    assert learner.problems == []
