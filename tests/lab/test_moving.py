"""Shapes beside lines, and numbers that are moved, as a learner sees them in a browser."""

from __future__ import annotations

import json
import os
import re

import pytest

psutil = pytest.importorskip("psutil", reason="needs antorcha[lab]")
pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.lab import grip  # noqa: E402
from antorcha.lab.workplace import MEMORY  # noqa: E402
from tests.lab.learner import AGAIN, Lab, Learner  # noqa: E402

pytestmark = [pytest.mark.slow, AGAIN]
DRAGS = int(os.environ.get("ANTORCHA_LAB_RUNS", "20"))
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
    hint = learner.page.locator(".lab-shaped").first
    opacity = "each => getComputedStyle(each, '::after').opacity"
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
    learner.page.wait_for_selector(".lab-shaped", state="attached")
    assert learner.hints() == {}
    learner.button("Shapes beside lines (F2)").click()
    learner.until(lambda: learner.hints()[2] == "300×2", "the shapes again")


def test_a_shape_never_becomes_text(learner: Learner) -> None:
    first = "import torch\nx = torch.ones(10, 1)"  # a shape is the last that the editor shows
    learner.run(first)
    learner.until(lambda: learner.hints() == {2: "10×1"}, "the shape")
    learner.run("import torch\ny = torch.ones(4)")
    learner.until(lambda: learner.hints() == {2: "4"}, "the other shape")
    learner.page.keyboard.press("Control+End")
    learner.page.keyboard.type(" + 1")
    learner.page.keyboard.press("Enter")
    learner.page.keyboard.type("z = y")
    assert learner.text() == "import torch\ny = torch.ones(4) + 1\nz = y"
    learner.page.keyboard.press("Control+A")
    learner.page.keyboard.type("q = 1")
    assert learner.text() == "q = 1"


def test_another_file_has_none_of_them(learner: Learner) -> None:
    learner.run(SHAPES)
    learner.until(learner.hints, "the shapes")
    challenge = learner.page.locator(".lab-challenge")
    challenge.get_by_role("button", name="Open in the editor").click()
    learner.until(lambda: "F_all" in learner.text(), "the challenge")
    learner.until(lambda: not learner.hints(), "no shapes")
    learner.page.get_by_role("tab", name="fundamentals.py").click()
    learner.until(lambda: learner.hints().get(2) == "300×2", "the shapes of the first file")


# ---- numbers that are moved ---------------------------------------------------------------------

PLACE = """([line, column]) => {
  const editor = getElement(document.querySelector(".lab-editor").id.slice(1)).editor;
  const found = editor.coordsAtPos(editor.state.doc.line(line).from + column);
  return [found.left, (found.top + found.bottom) / 2];
}"""
TRAIN = (
    "import torch\ntorch.manual_seed(1)\nX = torch.randn(60, 2)\ny = X[:, :1] * 2\n"
    "model = torch.nn.Linear(2, 1)\nlr = 1e-3\n"
    "opt = torch.optim.SGD(model.parameters(), lr)\nfor step in range(20):\n"
    "    loss = ((model(X) - y) ** 2).mean()\n    opt.zero_grad()\n    loss.backward()\n"
    "    opt.step()\nprint('last', loss.item())\n"
)
SLICE = "import torch\nx = torch.arange(12).view(3, 4)\ny = x[1]\nprint('y', y.tolist())\n"


def find(text: str, number: str) -> tuple[int, int]:
    """The line of a number and the column after it."""
    before, _, _ = text.partition(number)
    return before.count("\n") + 1, len(before.rpartition("\n")[2]) + len(number)


def take(learner: Learner, number: str) -> tuple[float, float]:
    """Press upon the grip of a number; gives the place."""
    x, y = learner.page.evaluate(PLACE, list(find(learner.text(), number)))
    learner.page.mouse.move(x - 30, y)
    learner.page.mouse.move(x - 3, y)
    handle = learner.page.locator(".lab-grip")
    handle.wait_for(state="visible")
    learner.until(
        lambda: handle.get_attribute("aria-valuetext") == number.removeprefix("x["), "the grip"
    )
    box = handle.bounding_box()
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    learner.page.mouse.move(*place)
    learner.page.mouse.down()
    return place


def pull(learner: Learner, place: tuple[float, float], *steps: int) -> None:
    for step in steps:
        learner.page.mouse.move(place[0] + 8 * step + (3 if step > 0 else -3), place[1])
        learner.page.wait_for_timeout(40)


def ran(learner: Learner, text: str) -> None:
    """Run a program twice: the second time nothing is compiled any more, and it is short."""
    learner.run(text + "#\n")
    learner.run(text)


def last(learner: Learner, word: str) -> str:
    found = [line for line in learner.terminal().splitlines() if line.startswith(word)]
    return found[-1] if found else ""


def test_a_rate_is_dragged_and_ends_as_a_plain_run(learner: Learner) -> None:
    learner.reset("New process")
    learner.until(lambda: "python" not in learner.terminal(), "an empty terminal")
    ran(learner, TRAIN)
    first = last(learner, "last")
    learner.tab("Loss")
    curve = learner.page.locator(".lab-curves")
    learner.until(lambda: "20 steps" in curve.inner_text(), "the curve")
    picture = curve.inner_html()
    place = take(learner, "1e-3")
    pull(learner, place, *range(1, 31))
    learner.until(lambda: "lr = 1e0" in learner.text(), "the text, 30 steps on")
    learner.until(lambda: curve.inner_html() != picture, "another curve, while it is held")
    learner.until(lambda: last(learner, "last") != first, "another output, while it is held")
    assert learner.terminal().count("> python") == 2  # each took the place of the last
    learner.page.mouse.up()
    learner.page.wait_for_timeout(700)
    dragged, text = last(learner, "last"), learner.text()
    learner.page.click(".cm-content")
    learner.press_run()
    learner.until(lambda: learner.terminal().count("Done in") == 3, "a plain run")
    assert learner.text() == text
    assert last(learner, "last") == dragged
    learner.tab("Tensor inspector")


def test_a_drag_over_an_error_and_back_leaves_no_trace(lab: Lab, learner: Learner) -> None:
    ran(learner, SLICE)
    before = re.sub(r"Done in .*", "", learner.terminal())
    row, problem = learner.row("y"), learner.page.locator(".lab-moved")
    place = take(learner, "x[1")
    pull(learner, place, 1)
    learner.until(lambda: last(learner, "y") == "y [8, 9, 10, 11]", "the next row")
    pull(learner, place, 2, 3)
    learner.until(lambda: "OutOfRange: index" in problem.inner_text(), "the error in one line")
    assert last(learner, "y") == "y [8, 9, 10, 11]"  # the last good picture stays
    assert learner.marked() == []
    pull(learner, place, 2, 1, 0)
    learner.until(lambda: last(learner, "y") == "y [4, 5, 6, 7]", "the row as it was")
    learner.until(lambda: not problem.is_visible(), "no error any more")
    learner.page.mouse.up()
    learner.page.wait_for_timeout(300)
    assert learner.text() == SLICE
    assert re.sub(r"Done in .*", "", learner.terminal()) == before
    assert learner.row("y") == row
    assert not learner.page.locator(".lab-why").is_visible()
    file = lab.folder / "fundamentals.py"
    learner.until(lambda: file.read_text() == SLICE, "the saved file")


def test_undo_restores_a_drag_at_once(learner: Learner) -> None:
    ran(learner, SLICE)
    place = take(learner, "x[1")
    pull(learner, place, 1, 0, -1)
    learner.until(lambda: last(learner, "y") == "y [0, 1, 2, 3]", "the first row")
    learner.page.mouse.up()
    learner.until(lambda: "x[0]" in learner.text(), "the number")
    learner.page.click(".cm-content")
    learner.page.keyboard.press("Control+z")
    learner.until(lambda: learner.text() == SLICE, "all of it undone")
    learner.page.keyboard.press("Control+y")
    learner.until(lambda: "x[0]" in learner.text(), "all of it done again")


def test_let_go_of_over_an_error_it_is_explained(learner: Learner) -> None:
    ran(learner, SLICE)
    place = take(learner, "x[1")
    pull(learner, place, 2, 3, 4)
    learner.page.mouse.up()
    learner.until(lambda: learner.ended("ended with an error"), "the plain run's end")
    learner.until(learner.page.locator(".lab-why").is_visible, "the explanation")
    assert learner.marked() == ["x[5]"]
    assert not learner.page.locator(".lab-moved").is_visible()


def test_what_writes_files_or_asks_runs_on_release_alone(lab: Lab, learner: Learner) -> None:
    log = lab.folder / "log.txt"
    writes = "n = 3\nwith open('log.txt', 'a') as file:\n    file.write(f'{n} ')\nprint('n', n)\n"
    ran(learner, writes)
    place = take(learner, "3")
    pull(learner, place, 1, 2, 3, 4)
    learner.page.wait_for_timeout(500)
    assert log.read_text() == "3 3 "
    learner.page.mouse.up()
    learner.until(lambda: last(learner, "n") == "n 7", "the run on release")
    assert log.read_text() == "3 3 7 "
    sometimes = writes.replace("with open", "if n > 4:\n  with open").replace("    file", "   file")
    ran(learner, sometimes)
    place = take(learner, "3")
    pull(learner, place, 1)
    learner.until(lambda: last(learner, "n") == "n 4", "a run while it moves")
    pull(learner, place, 2, 3)
    learner.page.wait_for_timeout(500)
    assert log.read_text() == "3 3 7 "  # it was about to write
    assert last(learner, "n") == "n 4"
    learner.page.mouse.up()
    learner.until(lambda: last(learner, "n") == "n 6", "the run on release")
    assert log.read_text() == "3 3 7 6 "


def test_a_number_moves_by_keys(learner: Learner) -> None:
    ran(learner, SLICE)
    learner.page.click(".cm-line >> nth=2")
    learner.page.keyboard.press("End")
    learner.page.keyboard.press("ArrowLeft")
    handle = learner.page.locator(".lab-grip")
    handle.wait_for(state="visible")
    learner.page.keyboard.press("Escape")
    learner.page.keyboard.press("Tab")
    learner.until(lambda: handle.evaluate("each => each === document.activeElement"), "its focus")
    assert handle.get_attribute("role") == "slider"
    assert handle.get_attribute("aria-label") == "Move the number"
    learner.page.keyboard.press("ArrowRight")
    learner.until(lambda: last(learner, "y") == "y [8, 9, 10, 11]", "the next row")
    learner.until(lambda: handle.get_attribute("aria-valuenow") == "2", "its value")
    learner.page.keyboard.press("ArrowLeft")
    learner.page.keyboard.press("ArrowLeft")
    learner.until(lambda: last(learner, "y") == "y [0, 1, 2, 3]", "the first row")
    learner.page.keyboard.press("Enter")  # back into the editor
    learner.until(lambda: learner.page.evaluate("document.activeElement.className")
                  .startswith("cm-content"), "the editor")  # fmt: skip
    learner.page.keyboard.press("Control+ArrowUp")
    learner.until(lambda: last(learner, "y") == "y [4, 5, 6, 7]", "a key in the editor")
    learner.page.wait_for_timeout(900)
    learner.page.keyboard.press("Control+z")
    learner.until(lambda: "x[0]" in learner.text(), "one step undone")


def test_numbers_go_by_their_kind(learner: Learner) -> None:
    cases = [
        ("3", False, 1, "4"), ("0", False, -2, "-2"), ("-1", False, 1, "0"),
        ("0.25", False, 1, "0.26"), ("1.0", False, -11, "-0.1"), ("2.", False, 1, "3."),
        (".5", False, 1, "0.6"), ("10_000", False, 1, "10_001"), ("0.1", False, -1, "0.0"),
        ("1e-3", True, 1, "1.2e-3"), ("1e-3", True, -1, "8e-4"), ("1e-3", True, 10, "1e-2"),
        ("1e-08", True, 10, "1e-07"), ("0.1", True, 1, "0.12"), ("0.1", True, -1, "0.08"),
        ("0.1", True, 10, "1.0"), ("0.0001", True, -1, "8e-5"), ("0.07", True, 1, "0.08"),
        ("0.07", True, -1, "0.06"), ("1", True, 1, "1.2"), ("1", True, 10, "10"),
        ("0.0", True, 1, "0.1"), ("1e-3", True, 0, "1e-3"), ("20", True, 1, "25"),
    ]  # fmt: skip
    give = f"([text, rate, steps]) => {{ {grip._NUMBERS}; return stepped(text, rate, steps); }}"
    for text, is_rate, steps, wanted in cases:
        assert learner.page.evaluate(give, [text, is_rate, steps]) == wanted, (text, steps)


def test_a_finger_drags_a_number(learner: Learner) -> None:
    ran(learner, SLICE)
    learner.page.click(".cm-line >> nth=2")
    learner.page.keyboard.press("End")
    learner.page.keyboard.press("ArrowLeft")
    handle = learner.page.locator(".lab-grip")
    handle.wait_for(state="visible")
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = learner.page.context.new_cdp_session(learner.page)

    def finger(kind: str, *points: float) -> None:
        held = [{"x": x + each, "y": y} for each in points]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": held})

    finger("touchStart", 0)
    finger("touchMove", 5)
    finger("touchMove", 11)
    learner.until(lambda: last(learner, "y") == "y [8, 9, 10, 11]", "the next row")
    finger("touchEnd")
    learner.page.wait_for_timeout(300)
    assert "x[2]" in learner.text()


def test_many_drags_leave_the_lab_as_it_was(lab: Lab, learner: Learner) -> None:
    ran(learner, SLICE)
    server = psutil.Process(lab.process.pid)

    def state() -> tuple[int, int, int, int]:
        every = [server, *server.children(recursive=True)]
        files = sum(each.num_fds() for each in every)
        memory = sum(each.memory_info().rss for each in every)
        return files, len(every), len([*lab.folder.iterdir()]), memory

    def drag() -> None:
        place = take(learner, "x[1")
        pull(learner, place, 1, 2, 1, 0)
        learner.page.mouse.up()

    for _ in range(3):
        drag()
    before = state()
    for _ in range(DRAGS):
        drag()
    learner.until(lambda: last(learner, "y") == "y [4, 5, 6, 7]", "the row as it was")
    after = state()
    assert after[0] <= before[0] + 2
    assert after[1:3] == before[1:3]
    assert after[3] - before[3] < 40e6


def test_moving_broke_no_rule(learner: Learner) -> None:
    assert learner.problems == []
