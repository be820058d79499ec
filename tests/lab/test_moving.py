"""Shapes beside lines, and numbers that are moved, as a learner sees them in a browser."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.lab.workplace import MEMORY
from tests.lab.learner import AGAIN, Lab, Learner

pytestmark = [pytest.mark.slow, AGAIN]
SHAPES = (
    "import torch\nX = torch.ones(300, 2)\ny = torch.arange(300)\n"
    "def f(x, w):\n    return x @ w\nz = f(X, torch.ones(2, 5))\n"
)


# ---- shapes beside lines ------------------------------------------------------------------------


def test_shapes_stand_beside_lines_and_fade_on_editing(learner: Learner) -> None:
    wanted = {2: "300×2", 3: "300 int64", 4: "x 300×2, w 2×5", 6: "300×5"}
    learner.run(SHAPES)
    learner.until(lambda: learner.hints() == wanted, "the shapes")
    assert learner.text() == SHAPES
    hint = learner.page.locator(".lab-shape-hint").first
    opacity = "each => getComputedStyle(each).opacity"
    assert hint.evaluate(opacity) == "1"
    learner.page.click(".cm-line >> nth=1")
    learner.page.keyboard.press("End")
    learner.page.keyboard.type(" * 2")
    learner.until(lambda: hint.evaluate(opacity) == "0.4", "fading")
    assert "X = torch.ones(300, 2) * 2\n" in learner.text()
    for _ in range(4):
        learner.page.keyboard.press("Backspace")
    learner.until(lambda: hint.evaluate(opacity) == "1", "the text as it was")
    learner.run(SHAPES.replace("300", "7") + "bad = z @ z\n", ends="ended with an error")
    learner.until(lambda: learner.hints()[2] == "7×2", "the shapes of the new text")
    learner.until(lambda: learner.marked() == ["z @ z"], "the error's mark")


def test_a_key_hides_shapes_and_the_lab_remembers(lab: Lab, learner: Learner) -> None:
    learner.run(SHAPES)
    learner.until(learner.hints, "the shapes")
    learner.page.click(".cm-content")
    learner.page.keyboard.press("F2")
    learner.until(lambda: not learner.hints(), "no shapes")
    kept = lambda: json.loads((lab.folder / MEMORY).read_text()).get("hints")  # noqa: E731
    learner.until(lambda: kept() is False, "that they are hidden, remembered")
    learner.page.reload()
    learner.page.wait_for_selector(".lab-shape-hint", state="attached")
    assert learner.hints() == {}
    learner.button("Shapes beside lines (F2)").click()
    learner.until(lambda: learner.hints()[2] == "300×2", "the shapes again")


def test_another_file_has_none_of_them(learner: Learner) -> None:
    learner.run(SHAPES)
    learner.until(learner.hints, "the shapes")
    challenge = learner.page.locator(".lab-challenge")
    challenge.get_by_role("button", name="Open in the editor").click()
    learner.until(lambda: "F_all" in learner.text(), "the challenge")
    learner.until(lambda: not learner.hints(), "no shapes")
    learner.page.get_by_role("tab", name="fundamentals.py").click()
    learner.until(lambda: learner.hints().get(2) == "300×2", "the shapes of the first file")
