"""The lab's views as a browser lays them out: nothing overflows or is cut off, all text can be
read, one button is filled, and whoever has no mouse sees where the focus is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

from antorcha.inspector.vocabulary import LANGUAGES
from antorcha.lab.layout import QUIET
from antorcha.lab.words import LabWords
from tests.lab.audit import connected, faults, walked
from tests.lab.learner import AGAIN, Lab, Learner
from tests.lab.test_views import DIGITS, draw
from tools.draw_lab import MISTAKE, TRAINING

PARTS = ("inspector", "model", "graph", "loss", "profiler", "pictures")
# A model for every picture, a graph with two models, a loss with a film.
PICTURED = """import torch
from torch import nn
X, y = torch.data.strokes(300)
torch.manual_seed(0)
reader = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(784, 10))
opt = torch.optim.Adam(reader.parameters(), lr=0.004)
for k in torch.randperm(300).split(50):
    loss = nn.functional.cross_entropy(reader(X[k]), y[k])
    opt.zero_grad()
    loss.backward()
    opt.step()
points = torch.randn(60, 2)
kinds = (points[:, 0] > 0).long()
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))
text = "the cat sat on the mat"
shares = torch.randn(2, 6, 6).softmax(dim=-1)
"""


class Seen(NamedTuple):
    """A view that is up: its name, the part of a narrow page that it is in, the part that is walked
    by Tab, and what opens it again."""

    name: str
    place: str = "inside"
    walk: str = ""
    opens: Callable[[], Any] = bool


class Visit:
    """A page of the lab, and how to get about on it."""

    def __init__(self, learner: Learner, words: LabWords) -> None:
        self.learner = learner
        self.page = learner.page
        self.words = words
        self.base = re.sub(r"(?<=\d)/.*", "", self.page.url)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.base}/{path}?lang={self.words.lang}")
        if path != "home":
            connected(self.learner)

    def tab(self, key: str) -> None:
        self.learner.tab(self.words(key))

    def press(self, key: str) -> None:
        self.learner.button(self.words(key)).first.press("Enter")

    def run(self, text: str) -> None:
        self.learner.write(text)
        self.learner.press_run()

    def find(self, selector: str) -> Any:
        """The first element, once it shows."""
        found = self.page.locator(f"{selector}:visible").first
        found.wait_for()
        return found


def empty_and_filled(visit: Visit) -> Iterator[Seen]:
    """Home, a lesson's parts before a run and after one, an error, a question answered."""
    visit.open("home")
    visit.page.get_by_text(visit.words("goal_ready")).wait_for()
    yield Seen("home", "", "body")
    visit.open("lesson/saving")
    for part in PARTS:
        visit.tab(part)
        yield Seen(f"empty {part}")
    visit.run(MISTAKE)
    visit.find(".lab-apply")
    yield Seen("error", walk=".lab-inside")
    visit.find(".lab-apply").press("Enter")
    visit.find(".lab-undo")
    visit.find(".lab-row")
    yield Seen("applied", walk=".lab-inside")
    visit.find(".lab-quiz .lab-option").click()
    yield Seen("quiz", "lesson", ".lab-lesson")
    visit.run(TRAINING)
    visit.find(".lab-row")
    for part in PARTS:
        visit.tab(part)
        yield Seen(f"filled {part}", walk=".lab-inside")


def pictures(visit: Visit) -> Iterator[Seen]:
    """What shows of a program with models."""
    visit.open("lesson/convolution")
    visit.find(".lab-card button").scroll_into_view_if_needed()
    yield Seen("card", "lesson")
    visit.run(PICTURED)
    visit.find(".lab-row")
    yield Seen("code", "code", ".lab-code")
    visit.tab("model")
    visit.press("view_pad")
    visit.find(".lab-pad-read .lab-empty")
    draw(visit.learner, DIGITS["3"])
    visit.find(".lab-view-pad .lab-layer")
    yield Seen("pad", walk=".lab-inside")
    visit.press("view_flow")
    visit.find(".lab-view-flow button.lab-layer-head").press("Enter")
    visit.find(".lab-view-flow .lab-weights")
    yield Seen("flow", walk=".lab-inside")
    visit.press("view_plane")
    visit.find(".lab-view-plane circle")
    yield Seen("plane", walk=".lab-inside")
    visit.press("view_attention")
    visit.find(".lab-token").focus()
    yield Seen("attention", walk=".lab-inside")
    visit.tab("graph")
    assert "reader.0.weight" in visit.find(".lab-graph svg").text_content()
    yield Seen("graph", walk=".lab-inside")
    visit.press("graph_lines")
    visit.learner.button(visit.words("graph_lines")).wait_for(state="hidden")
    visit.find(".lab-graph svg")
    yield Seen("graph with lines", walk=".lab-inside")
    visit.tab("loss")
    visit.find(".lab-film-frame svg")
    yield Seen("film", walk=".lab-inside")
    visit.tab("profiler")
    visit.press("profile_run")
    visit.find(".lab-profile tr")
    yield Seen("profile", walk=".lab-inside")


def lesson_and_menus(visit: Visit) -> Iterator[Seen]:
    """Cells run in place, outputs said first, the challenge; and what opens above the page."""
    visit.open("lesson/memory")
    cell = visit.page.locator(".lab-cell").nth(4)
    cell.locator(".lab-cell-run").press("Enter")
    cell.locator(".lab-row").first.press("Enter")
    cell.locator(".lab-cell-detail svg").first.scroll_into_view_if_needed()
    yield Seen("cell", "lesson", ".lab-text")
    for slug in ("memory", "indexing", "operations", "dtypes"):  # until one is not answered yet
        visit.open(f"lesson/{slug}")
        if visit.page.locator(".lab-predict:visible").count():
            break
    asks = visit.find(".lab-predict")
    asks.scroll_into_view_if_needed()
    yield Seen("a question before a cell", "lesson")
    asks.locator("textarea").fill("?")
    asks.locator("button").press("Enter")
    visit.find(".lab-cell-said")
    yield Seen("what was said", "lesson")
    challenge = visit.find(".lab-challenge")
    challenge.locator(".lab-hint").first.press("Enter")
    visit.find(".lab-hints p")
    yield Seen("hints", "lesson", ".lab-challenge")
    visit.press("begin")
    visit.press("check")
    visit.find(".lab-verdict.lab-wrong")
    challenge.locator(".lab-check").scroll_into_view_if_needed()
    yield Seen("verdicts", "lesson")
    for key, place in (("menu", "code"), ("contents", "lesson"), ("reset", "code")):
        yield Seen(key, place, ".q-menu", lambda key=key: visit.press(key))  # type: ignore[misc]
    language = visit.page.locator(".lab-language input")
    yield Seen("languages", "code", opens=lambda: language.press("Enter"))


@pytest.mark.slow
@AGAIN
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("views", [empty_and_filled, pictures, lesson_and_menus])
def test_every_view_can_be_read_and_walked(
    learner: Learner, views: Callable[[Visit], Iterator[Seen]], lang: str
) -> None:
    words, wrong = LabWords(lang), list[str]()
    for view in views(Visit(learner, words)):
        wrong += faults(learner, words, view.name, view.place, view.opens)
        if view.walk:
            view.opens()
            wrong += [f"{view.name}: no focus is seen on {each}"
                      for each in walked(learner, view.walk)]  # fmt: skip
            learner.page.keyboard.press("Escape")
    assert wrong == [], "\n".join(wrong)


@pytest.mark.slow
@AGAIN
def test_the_first_start_opens_home_and_the_terminal_grows(tmp_path: Path, context: Any) -> None:
    share = "getComputedStyle(document.querySelector('.lab-main')).getPropertyValue('--lab-rows')"
    lab = Lab(tmp_path, "")
    learner = Learner(context.new_page())
    page = learner.page
    try:
        page.goto(lab.address)
        page.wait_for_url("**/home?lang=en")
        page.locator(".lab-go", has_text="Begin: 1.").press("Enter")
        page.wait_for_selector(".cm-content")
        assert float(page.evaluate(share)) == QUIET
        low = page.locator(".lab-below").bounding_box()
        high = page.locator(".lab-main").bounding_box()
        assert low["height"] == pytest.approx(0.3 * high["height"], abs=2)
        page.locator(".lab-nothing:visible button").press("Enter")
        learner.until(lambda: learner.ended("Done in"), "the run")
        learner.until(lambda: float(page.evaluate(share)) < 60, "a terminal with room")
        page.locator(".lab-row").first.wait_for()
        assert page.locator(".lab-nothing:visible").count() == 0
        page.reload()
        page.wait_for_selector(".cm-content")
        assert float(page.evaluate(share)) < 60
        assert learner.problems == []
    finally:
        page.close()
        lab.close()
    lab = Lab(tmp_path, "")
    lab.close()
    assert "/lesson/fundamentals?" in lab.address
