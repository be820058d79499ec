"""Takes the pictures of docs/lab.md: the lab's states, in both themes and at several widths.

    python tools/draw_lab.py              # the pictures of the documentation
    python tools/draw_lab.py --all DIR    # every state at every width in both themes, to look at

It starts a lab on an empty folder and uses it in a browser, as the tests do; it needs what they
need (``antorcha[lab,dev]``, Chromium). Look at the pictures before they are committed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # this checkout, whatever is installed

from tests.lab.learner import Lab, Learner, browser  # noqa: E402

WHERE = ROOT / "docs" / "img"
WIDTHS = {1280: 800, 1600: 900, 400: 800}  # each with its height
NARROW = 400
# Of the documentation: what the file is called -> state, width, theme, and what shows where narrow.
CHOSEN = {
    "light": ("tensor", 1280, "light", ""),
    "error": ("error", 1280, "light", ""),
    "dark": ("graph", 1280, "dark", ""),
    "training": ("training", 1280, "dark", ""),
    "pad": ("pad", 1600, "light", ""),
    "menu": ("menu", 1280, "light", ""),
    "wide": ("full", 1600, "light", ""),
    "way_in": ("way_in", 1280, "light", ""),
    "narrow_lesson": ("training", 400, "dark", "Lesson"),
    "narrow_code": ("training", 400, "dark", "Code"),
    "narrow_inside": ("training", 400, "dark", "Inside"),
    "narrow_light": ("error", 400, "light", "Code"),
}

MISTAKE = """import antorcha as torch

A = torch.ones(3, 2)
B = torch.ones(3, 2)

C = A @ B
"""
TRAINING = """import antorcha as torch

torch.manual_seed(0)
x = torch.rand(256, 2)
y = x[:, :1] * x[:, 1:] + torch.randn(256, 1) / 50


def train(rate):
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(400):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"lr={rate}: {loss.item():.5f}")


for rate in (0.1, 0.01, 0.001):
    train(rate)
"""
GRAPH = """import antorcha as torch

x = torch.tensor([1.0, 2.0, 3.0])
w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
b = torch.tensor(0.1, requires_grad=True)

loss = ((w * x).sum() + b) ** 2
"""
READER = """import antorcha as torch
from antorcha import nn

X, digits = torch.data.strokes(2000)
torch.manual_seed(0)
reader = nn.Sequential(
    nn.Conv2d(1, 8, kernel_size=3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, kernel_size=3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64, 10),
)
optimizer = torch.optim.Adam(reader.parameters(), lr=0.005)
for epoch in range(6):
    for some in torch.randperm(2000).split(50):
        loss = nn.functional.cross_entropy(reader(X[some]), digits[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
THREE = [
    (0.25, 0.2), (0.4, 0.1), (0.6, 0.12), (0.7, 0.25), (0.6, 0.4), (0.45, 0.46), (0.65, 0.52),
    (0.76, 0.68), (0.65, 0.86), (0.45, 0.92), (0.25, 0.82),
]  # fmt: skip
MANY = """import antorcha as torch

names = ["Ana", "Luis", "Eva"]
scores = torch.tensor([[7.5, 6.0, 9.0], [5.0, 8.5, 4.0], [9.5, 9.0, 8.0]])
mean = scores.mean(dim=0)
deviation = scores.std(dim=0)
normal = (scores - mean) / deviation
rank = scores.sum(dim=1).argsort(descending=True)
turned = scores.T
best = scores[rank[0]]
print(normal)
print(torch.arange(40.0) / 7)
"""


def tensor(learner: Learner, lab: Lab) -> None:
    learner.run(MANY)
    learner.tab("Tensor inspector")
    learner.page.click(".lab-row:has(b:text-is('turned'))")
    learner.until(lambda: learner.page.inner_text(".lab-detail"), "the opened tensor")


def full(learner: Learner, lab: Lab) -> None:
    tensor(learner, lab)
    learner.page.locator(".lab-inside").get_by_role("button", name="in full").click()


def error(learner: Learner, lab: Lab) -> None:
    learner.run(MISTAKE, ends="ended with an error")
    learner.until(lambda: learner.page.locator(".lab-why").count(), "the explanation")


def graph(learner: Learner, lab: Lab) -> None:
    learner.run(GRAPH)
    learner.tab("Graph")
    learner.until(lambda: learner.page.locator(".lab-graph svg").count(), "the graph")
    quiz = learner.page.locator(".lab-quiz").first
    quiz.get_by_role("button", name="moved to the CUDA device").click()
    quiz.scroll_into_view_if_needed()


def training(learner: Learner, lab: Lab) -> None:
    learner.run(TRAINING)
    learner.tab("Loss")
    learner.until(lambda: learner.page.locator(".lab-curve polyline").count() == 3, "the curves")


def profile(learner: Learner, lab: Lab) -> None:
    learner.write(TRAINING)
    learner.tab("Profiler")
    learner.rest()
    learner.button("Run and measure").click()
    learner.until(lambda: learner.page.locator(".lab-profile tr").count(), "the profile")


def pad(learner: Learner, lab: Lab) -> None:
    learner.page.goto(learner.page.url.partition("/lesson")[0] + "/lesson/convolution?lang=en")
    learner.page.wait_for_selector(".cm-content")
    learner.run(READER)
    card = learner.page.locator(".lab-card button")
    card.scroll_into_view_if_needed()
    card.click()
    learner.page.locator(".lab-pad-read .lab-empty").wait_for()
    box = learner.page.locator(".lab-pad").bounding_box()
    for number, (x, y) in enumerate(THREE):
        place = box["x"] + x * box["width"], box["y"] + y * box["height"]
        learner.page.mouse.move(*place, steps=5 if number else 1)
        if not number:
            learner.page.mouse.down()
    learner.page.mouse.up()
    learner.until(lambda: learner.page.locator(".lab-view-pad .lab-layer").count(), "the layers")


def menu(learner: Learner, lab: Lab) -> None:
    learner.page.locator(".lab-quiz .lab-option").first.click()
    error(learner, lab)


contents = begin_again = tensor
OPENED = {"menu": "Lessons and files", "contents": "Contents", "begin_again": "Reset"}
"""States in which a button is pressed when everything else is ready."""


def way_in(learner: Learner, lab: Lab) -> None:
    """The page without its key. (The cookies come back with the address of the next state.)"""
    learner.page.context.clear_cookies()
    learner.page.goto(re.sub(r"(?<=\d)/.*", "/", learner.page.url) + "?lang=en")


State = Callable[[Learner, Lab], None]
STATES: dict[str, State] = {
    "tensor": tensor, "full": full, "error": error, "graph": graph, "training": training,
    "profile": profile, "pad": pad, "menu": menu, "contents": contents, "begin_again": begin_again,
    "way_in": way_in,
}  # fmt: skip


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", type=Path, metavar="DIR", help="every state, to look at")
    parser.add_argument("--only", default="", help="of these states alone, such as error,menu")
    chosen = parser.parse_args()
    wanted: dict[str, tuple[str, int, str, str]] = CHOSEN
    if chosen.all is not None:
        wanted = {
            f"{state}_{width}_{theme}{place and '_' + place.lower()}": (state, width, theme, place)
            for state in STATES
            for width in WIDTHS
            if (state, width) != ("full", NARROW)
            for theme in ("light", "dark")
            for place in (places_of(state) if width == NARROW else [""])
        }
    if chosen.only:
        wanted = {k: v for k, v in wanted.items() if v[0] in chosen.only.split(",")}
    where = chosen.all or WHERE
    where.mkdir(parents=True, exist_ok=True)
    for look in sorted({each[:3] for each in wanted.values()}):
        shots = {name: each[3] for name, each in wanted.items() if each[:3] == look}
        draw(*look, {where / f"lab_{name}.png": place for name, place in shots.items()})


def places_of(state: str) -> list[str]:
    """The parts that are looked at on a narrow page."""
    if state in ("menu", "way_in"):
        return [""]
    return {"contents": ["Lesson"], "begin_again": ["Code"]}.get(
        state, ["Lesson", "Code", "Inside"]
    )


def draw(state: str, width: int, theme: str, shots: dict[Path, str]) -> None:
    """Bring a new lab into a state, and take its pictures."""
    size = {"width": 1280, "height": 800}
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder) / "work")
        try:
            how: dict[str, Any] = {"viewport": size, "color_scheme": theme}
            with browser(Path(folder) / "profile", **how) as context:
                learner = Learner(context.pages[0])
                learner.open(lab.address)
                STATES[state](learner, lab)
                learner.page.set_viewport_size({"width": width, "height": WIDTHS[width]})
                for path, place in shots.items():
                    if place:
                        places = learner.page.locator(".lab-places")
                        places.get_by_role("tab", name=place).click()
                    if state in OPENED:
                        learner.page.wait_for_timeout(500)
                        learner.button(OPENED[state]).click()
                    shoot(learner, path)
        finally:
            lab.close()


def shoot(learner: Learner, path: Path) -> None:
    """Write one picture, small: few colours are enough for a page."""
    from PIL import Image  # comes with matplotlib

    learner.page.mouse.move(0, 0)
    learner.page.wait_for_timeout(900)
    learner.page.screenshot(path=str(path))
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256).save(path, optimize=True)
    print(path.name, path.stat().st_size // 1024, "KB", flush=True)


if __name__ == "__main__":
    main()
