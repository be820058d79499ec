"""Pictures of models: what fits is offered, a picture changes nothing, drawings are read."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

import antorcha as torch
from antorcha import nn
from antorcha.data import strokes
from antorcha.inspector.vocabulary import LANGUAGES
from antorcha.lab.kernel import Limits
from antorcha.lab.lesson import VIEWS, LessonError, LessonView, lessons, load
from antorcha.lab.views import attention, sheets
from antorcha.lab.views.look import DRAWING, RANDOM, ModelViews, offers
from tests.lab.bench import PATIENCE, Bench, patient
from tests.lab.learner import AGAIN, Learner

READER = (
    "import torch\nfrom torch import nn\nX, y = torch.data.strokes(2000)\ntorch.manual_seed(0)\n"
    "model = nn.Sequential(\n"
    "    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),\n"
    "    nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),\n"
    "    nn.Flatten(), nn.Linear(256, 10))\n"
    "opt = torch.optim.Adam(model.parameters(), lr=0.004)\nfor epoch in range(8):\n"
    "    for k in torch.randperm(2000).split(50):\n"
    "        loss = nn.functional.cross_entropy(model(X[k]), y[k])\n        opt.zero_grad()\n"
    "        loss.backward()\n        opt.step()\n"
)
MORE = (
    "points = torch.randn(60, 2)\nkinds = (points[:, 0] > 0).long()\n"
    "net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))\n"
    "text = 'the cat sat on the mat'\nshares = torch.randn(2, 6, 6).softmax(dim=-1)\n"
)
# As a hand with a mouse draws them, in shares of the pad.
DIGITS = {
    "3": [(0.2, 0.2), (0.35, 0.1), (0.55, 0.1), (0.7, 0.22), (0.65, 0.38), (0.45, 0.48),
          (0.68, 0.55), (0.75, 0.72), (0.6, 0.88), (0.4, 0.9), (0.2, 0.8)],
    "5": [(0.7, 0.12), (0.3, 0.12), (0.28, 0.45), (0.5, 0.4), (0.7, 0.5), (0.75, 0.7),
          (0.6, 0.88), (0.35, 0.88), (0.22, 0.8)],
    "8": [(0.65, 0.2), (0.5, 0.1), (0.32, 0.2), (0.38, 0.4), (0.6, 0.55), (0.7, 0.75),
          (0.5, 0.9), (0.3, 0.75), (0.4, 0.55), (0.62, 0.4), (0.66, 0.22)],
}  # fmt: skip


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("work"), Limits(seconds=PATIENCE, memory=3 << 30))
    with patient():
        yield bench
        bench.close()


class Attending(nn.Module):
    """Two heads over embedded tokens; every way of a softmax in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, ids: Any) -> Any:
        x = self.encoder(self.embed(ids))
        x = (x @ x.transpose(-2, -1)).softmax(dim=-1) @ x
        return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


def names() -> dict[str, Any]:
    """The names of a program with a model of every kind."""
    images, digits = strokes(100)
    points = torch.randn(50, 2)
    return {
        "X": images, "y": digits, "points": points, "kinds": (points[:, 0] > 0).long(),
        "net": nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)),
        "reader": nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(784, 10)),
        "flat": nn.Sequential(nn.Flatten(), nn.Linear(256, 10)),
        "ids": torch.tensor([[0, 1, 2, 3, 4, 5]]), "attending": Attending(),
        "shares": torch.randn(3, 5, 5).softmax(dim=-1), "other": torch.rand(5, 5),
        "_": torch.eye(3), "words": "one two three four five", "loss": nn.CrossEntropyLoss(),
    }  # fmt: skip


def test_what_fits_is_offered() -> None:
    assert offers(names()) == {
        "pad": ["reader", "flat"],
        "plane": ["net"],
        "attention": ["shares", "attending"],
        "flow": ["net", "reader", "flat", "attending"],
    }
    assert offers({}) == offers({"x": torch.ones(3, 3), "loss": nn.MSELoss()}) == {}


def test_the_flow_is_what_the_layers_make() -> None:
    program = names()
    views = ModelViews(program)
    answer = views.look({"view": "flow", "name": "reader", "input": "X", "index": 7}, "en")
    assert (answer["input"], answer["count"]) == ("X", 100)
    assert answer["label"] == str(program["y"][7].item())
    for said in ("0 Conv2d", "1×4×14×14", "1×784", "3 Linear", "7850 parameters"):
        assert said in answer["html"], said
    assert answer["html"].count("data-sheet=") == 4
    opened = {"view": "flow", "name": "reader", "layer": 0, "sheet": 2}
    html = views.look(opened, "en")["html"]
    assert "weight[2]" in html
    weight = program["reader"][0].weight[2, 0]
    shown = re.findall(r"<title>\[0, \d, \d\]: (-?[\d.e-]+)</title>", html)
    assert [float(text) for text in shown] == pytest.approx(weight.flatten().tolist(), abs=1e-6)
    drawing = [[[0, 0], [100, 100]]]
    drawn = {"view": "flow", "name": "reader", "input": DRAWING, "drawing": drawing}
    assert views.look(drawn, "es")["html"] != html
    made_up = ModelViews({"alone": nn.Linear(7, 3)}).look({"view": "flow", "name": "alone"}, "en")
    assert made_up["inputs"] == [RANDOM]
    assert "1×7" in made_up["html"]


def test_a_picture_changes_nothing() -> None:
    program = names()
    normed = nn.Sequential(nn.BatchNorm2d(1), nn.Dropout(), nn.Flatten(), nn.Linear(256, 10))
    program["normed"] = normed
    normed.train()
    before = {key: value.clone() for key, value in normed.state_dict().items()}
    torch.manual_seed(5)
    wanted = torch.rand(2)
    torch.manual_seed(5)
    views = ModelViews(program)
    for view, several in offers(program).items():
        for name in several:
            asked = {"view": view, "name": name, "drawing": [[[0, 0], [3, 9]]]}
            assert "html" in views.look(asked, "es"), (view, name)
    assert torch.equal(torch.rand(2), wanted)
    assert normed.training
    assert normed[1].training
    assert not normed[0].num_batches_tracked.item()
    assert all(torch.equal(value, before[key]) for key, value in normed.state_dict().items())
    assert "forward" not in normed.__dict__
    assert all(parameter.grad is None for parameter in normed.parameters())


def test_what_does_not_fit_is_told() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            raise KeyError("mine")

    views = ModelViews({"broken": Broken(), "x": torch.ones(4, 2)})
    assert "KeyError: 'mine'" in views.look({"view": "flow", "name": "broken"}, "en")["problem"]
    assert views.look({"view": "flow", "name": "gone"}, "en") == {"gone": True}
    assert views.look({"view": "pad", "name": "broken"}, "en") == {"gone": True}
    assert views.look({"view": "attention", "name": "x"}, "en") == {"gone": True}


def test_attention_is_found_in_tensors_and_in_models() -> None:
    program = names()
    views = ModelViews(program)
    asked = {"view": "attention", "name": "shares", "head": 2}
    answer = views.look(asked, "en")
    assert (answer["layers"], answer["heads"], answer["head"]) == (1, 3, 2)
    rows = json.loads(re.search(r'data-shares="([^"]*)"', answer["html"])[1])  # type: ignore[index]
    assert rows[1] == pytest.approx(program["shares"][2, 1].tolist(), abs=6e-4)
    assert ">three</button>" in answer["html"]
    found = views.look({"view": "attention", "name": "attending", "layer": 2}, "en")
    assert (found["layers"], found["layer"], found["heads"]) == (3, 2, 1)
    causal = json.loads(re.search(r'data-shares="([^"]*)"', found["html"])[1])  # type: ignore[index]
    assert causal[0] == [1, 0, 0, 0, 0, 0]
    assert views.look({"view": "attention", "name": "attending"}, "en")["heads"] == 2
    for other in (torch.rand(4, 4), torch.ones(3, 4) / 4, -torch.eye(3), torch.eye(1)):
        assert attention.shares(other) is None


def test_sheets_are_of_the_first_example() -> None:
    make = lambda *shape: sheets.as_sheets(torch.rand(*shape).numpy()).shape  # noqa: E731
    assert make(2, 3, 4, 5) == (3, 4, 5)
    assert make(1, 5, 8) == (1, 5, 8)
    assert make(4, 5) == (1, 4, 5)
    assert make(1, 7) == (1, 1, 7)
    assert make(1, 70) == (1, 3, 32)
    assert make(()) == (1, 1, 1)  # type: ignore[arg-type]
    odd = torch.tensor([[1.0, float("nan"), float("inf"), -2.0]]).numpy()
    assert "var(--ant-nan)" in sheets.draw(sheets.as_sheets(odd), "odd")[0]


def test_a_run_offers_views_and_draws_them(bench: Bench) -> None:
    done = bench.run(READER + MORE)
    assert done["ended"] == "ok", done
    assert done["views"] == {"pad": ["model"], "plane": ["net"], "attention": ["shares"],
                             "flow": ["model", "net"]}  # fmt: skip

    def look(**asked: Any) -> dict[str, Any]:
        answer: dict[str, Any] = bench.do(bench.child.look("model", json.dumps(asked)))
        return answer

    for digit, line in DIGITS.items():
        for scale in (1000, 30):  # any unit does
            drawing = [[(x * scale, y * scale) for x, y in line]]
            said = look(view="pad", name="model", drawing=drawing)["said"]
            assert said.startswith(f"It reads {digit} "), said
    assert look(view="plane", name="net")["html"].count("<circle") == 60

    async def at_once() -> list[dict[str, Any]]:
        """Two questions at a time, as a page asks them: no answer is lost."""
        asked = [json.dumps({"view": view, "name": "model"}) for view in ("pad", "flow")]
        found: list[dict[str, Any]] = []
        for _ in range(100):
            found += await asyncio.gather(*[bench.child.look("model", each) for each in asked])
        return found

    assert all("html" in each for each in bench.do(at_once()))
    graph = bench.do(bench.child.look("graph", "loss"))["html"]
    assert "model.0.weight" in graph
    assert "self" not in graph  # no name of the lab's own
    own = (
        "import torch\nclass Own(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.inner = torch.nn.Linear(3, 2)\n"
        "    def forward(self, x):\n        y = self.inner(x)\n        print('not to be seen')\n"
        "        return y\nown = Own()\nx = torch.ones(4, 3)\n"
    )
    bench.run(own)
    assert "inner Linear" in look(view="flow", name="own")["html"]
    assert "not to be seen" not in bench.text()
    assert look(view="pad", name="model") == {"gone": True}
    assert bench.run("x = 1")["views"] == {}


# ---- in lessons ---------------------------------------------------------------------------------


def test_a_lesson_chooses_a_view(tmp_path: Path) -> None:
    head = "---\ntitle: T\nminutes: 1\nfile: t.py\n---\n"
    path = tmp_path / "01_t.md"
    path.write_text(head + "```view\nattention weights\n```\n```view\npad\n```\n")
    lesson = load(path, "en")
    assert lesson.views == [LessonView("attention", "weights", 7), LessonView("pad", "", 10)]
    path.write_text(head + "```view\nplan\n```\n")
    with pytest.raises(
        LessonError, match=r"line 7: no view is called 'plan'.*Did you mean 'plane'"
    ):
        load(path, "en")


def test_the_course_has_the_same_views_in_every_language() -> None:
    every = [{lesson.slug: [(part.kind, part.name) for part in lesson.views]
              for lesson in lessons(lang)} for lang in LANGUAGES]  # fmt: skip
    assert all(each == every[0] for each in every)
    chosen = {kind for views in every[0].values() for kind, _ in views}
    assert chosen <= set(VIEWS)
    assert {"plane", "pad", "attention"} <= chosen


# ---- in the browser -----------------------------------------------------------------------------

SHOWN = {
    "en": ("Your model", "Inside", "Code", "Layers", "Plane", "Attention", "It reads"),
    "es": ("Tu modelo", "Por dentro", "Código", "Capas", "Plano", "Atención", "Lee"),
}


def draw(learner: Learner, line: list[tuple[float, float]]) -> None:
    """Draw a line on the pad with the mouse."""
    box = learner.page.locator(".lab-pad").bounding_box()
    for number, (x, y) in enumerate(line):
        place = box["x"] + x * box["width"], box["y"] + y * box["height"]
        learner.page.mouse.move(*place, steps=6 if number else 1)
        if not number:
            learner.page.mouse.down()
    learner.page.mouse.up()


def run_it(learner: Learner, code: str, text: str) -> None:
    """Write a program and run it, whatever the language and the width."""
    page = learner.page
    if page.viewport_size["width"] < 900:
        learner.tab(code)
    page.wait_for_selector(".cm-content")
    learner.write(text)
    learner.rest()
    page.keyboard.press("Control+Enter")
    done = ("> Done in", "> Hecho en")
    learner.until(lambda: any(each in learner.terminal() for each in done), "the run's end")


@pytest.mark.slow
@AGAIN
@pytest.mark.parametrize(("width", "theme", "lang"), [(1280, "light", "en"), (400, "dark", "es")])
def test_pictures_of_ones_own_model(learner: Learner, width: int, theme: str, lang: str) -> None:
    page = learner.page
    model, inside, code, layers, plane, looks, reads = SHOWN[lang]
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    page.goto(page.url.partition("?")[0] + f"?lang={lang}")
    run_it(learner, code, READER + MORE)
    if width < 900:
        learner.tab(inside)
    learner.tab(model)
    said, pad = page.locator(".lab-pad-said"), page.locator(".lab-pad")
    page.locator(".lab-pad-board").wait_for()
    page.locator(".lab-pad-read .lab-empty").wait_for()  # (from then on it stays where it is)
    for digit, line in DIGITS.items():
        draw(learner, line)
        learner.until(lambda: said.inner_text().startswith(f"{reads} {digit} "), digit)  # noqa: B023
        assert page.locator(".lab-bars .lab-best b").inner_text() == digit
        page.locator(".lab-pad-wipe").click()
        learner.until(lambda: not said.inner_text(), "the empty pad")
    # with the keys alone: a one
    pad.focus()
    page.keyboard.press(" ")
    for _ in range(14):
        page.keyboard.press("ArrowDown")
    learner.until(lambda: said.inner_text().startswith(f"{reads} 1 "), "a one")
    drawn = page.locator(".lab-view-pad .lab-flow .lab-layer")
    learner.until(lambda: drawn.count() == 9, "the layers of the drawing")
    page.keyboard.press("Delete")
    learner.until(lambda: not said.inner_text(), "the empty pad")
    # layers: an example, its sheets, the weights, with the keys alone
    page.get_by_role("button", name=layers, exact=True).click()
    flow = page.locator(".lab-view-flow")
    learner.until(lambda: flow.locator(".lab-layer").count() == 9, "the layers")
    first = flow.locator("button.lab-layer-head").first
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    learner.until(lambda: "weight[1]" in flow.inner_text(), "the weights of a sheet")
    kept = "document.activeElement.dataset.sheet"
    learner.until(lambda: page.evaluate(kept) == "1", "the focus on that sheet")
    first.click()
    learner.until(lambda: flow.locator(".lab-weights").count() == 0, "no weights")
    before = flow.inner_html()
    flow.locator(".q-slider__track-container").press("ArrowRight")
    learner.until(lambda: flow.inner_html() != before, "another example")
    # the plane, and who looks at whom
    page.get_by_role("button", name=plane, exact=True).click()
    learner.until(lambda: page.locator(".lab-view-plane circle").count() == 60, "the points")
    page.get_by_role("button", name=looks, exact=True).click()
    tokens = page.locator(".lab-token")
    learner.until(lambda: tokens.all_inner_texts()[:2] == ["the", "cat"], "the tokens")
    tokens.nth(1).hover()
    told = page.locator(".lab-told")
    learner.until(lambda: told.inner_text().startswith("cat "), "whom it looks at")
    tokens.nth(1).focus()
    page.keyboard.press("ArrowRight")
    learner.until(lambda: told.inner_text().startswith("sat "), "the next one")
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(wide)
    assert learner.problems == []


@pytest.mark.slow
@AGAIN
def test_a_lesson_s_button_opens_its_picture(learner: Learner) -> None:
    page = learner.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(page.url.partition("/lesson")[0] + "/lesson/attention?lang=en")
    page.wait_for_selector(".cm-content")
    page.locator(".lab-card button").click()
    hint = page.locator(".lab-panel:visible .lab-empty").first
    learner.until(lambda: hint.inner_text().startswith("This picture needs a model"), "the hint")
    learner.run(
        "import torch\nshares = torch.eye(4)\nnet = torch.nn.Linear(3, 2)\nx = torch.ones(5, 3)\n"
        "weights = torch.ones(4, 4) / 4\n"
    )
    told = page.locator(".lab-token").first
    learner.until(lambda: "0 25 %, 1 25 %" in (told.get_attribute("title") or ""), "the weights")
    page.get_by_role("button", name="Layers", exact=True).click()
    learner.until(lambda: "Linear" in page.inner_text(".lab-view-flow"), "another picture")
    learner.run("import torch\nnet = torch.nn.Linear(7, 2)\n")
    learner.until(lambda: "random numbers" in page.inner_text(".lab-view-flow"), "an input")
    assert learner.problems == []


def point(learner: Learner, index: int, wanted: str) -> Any:
    """Point at an element of the opened tensor's map, wherever that is by now: is what is said then
    what is `wanted`? Where nothing is, its row and column."""
    board = learner.page.locator(".lab-detail svg[data-map]")
    known = json.loads(board.get_attribute("data-map"))
    row, column = divmod(index, len(known["columns"]))
    if not wanted:
        return row, column
    left, top, width, height = known["box"]
    board.scroll_into_view_if_needed()
    box = board.bounding_box()
    scale = box["width"] / float(board.get_attribute("viewBox").split()[2])
    x, y = left + (column + 0.5) * width, top + (row + 0.5) * height
    learner.page.mouse.move(box["x"] + x * scale - 1, box["y"] + y * scale)
    learner.page.mouse.move(box["x"] + x * scale, box["y"] + y * scale)
    said = learner.page.locator(".lab-lit-said")
    return said.count() == 1 and said.inner_text() == wanted


@pytest.mark.slow
@AGAIN
def test_an_element_lights_in_memory_and_values(learner: Learner) -> None:
    page = learner.page
    page.set_viewport_size({"width": 1600, "height": 1000})
    page.goto(page.url.partition("?")[0] + "?lang=en")
    page.wait_for_selector(".cm-content")
    learner.run("import torch\nx = torch.arange(12.).view(3, 4).t()\nb = torch.arange(3.)[:, None]"
                ".expand(3, 5)\nbig = torch.rand(20, 20)\n")  # fmt: skip
    learner.tab("Tensor inspector")
    lit, said = page.locator(".lab-detail .lab-lit"), page.locator(".lab-lit-said")
    for name, index, cell, elements in (("x", 1, 4, 1), ("b", 6, 1, 5), ("big", 30, 30, 1)):
        page.locator(f".lab-row:has(b:text-is('{name}'))").click()
        page.locator(f".lab-detail .ant-head b:text-is('{name}: Tensor')").wait_for()
        row, column = point(learner, index, "")
        wanted = f"element [{row}, {column}]: cell {cell} of the memory"
        learner.until(lambda: point(learner, index, wanted), wanted)  # noqa: B023
        assert page.locator(".lab-detail .lab-lit-cell").count() == elements
        shown = lit.evaluate_all("all => all.map(each => each.dataset.cell)")
        assert shown in ([str(cell)], [])  # of a large storage not every cell is drawn
    page.locator(".lab-row:has(b:text-is('b'))").click()
    memory = page.locator(".lab-detail [data-cell='2']")
    learner.until(lambda: memory.count() == 1, "the memory")
    memory.hover()
    learner.until(lambda: page.locator(".lab-detail .lab-lit-cell").count() == 5, "five elements")
    board = page.locator(".lab-detail svg[data-map]")
    page.mouse.move(5, 5)
    learner.until(lambda: board.get_attribute("tabindex") == "0", "a map for the keys")
    board.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    learner.until(lambda: said.inner_text().startswith("element [1, 1]"), "the keys' element")
    assert learner.problems == []
