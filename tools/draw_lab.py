"""Takes the pictures of docs/lab.md: the lab's main states, in both themes and at both widths.

    python tools/draw_lab.py

It starts a lab on an empty folder and uses it in a browser, as the tests do; it needs what they
need (``antorcha[lab,dev]``, Chromium). Look at the pictures before they are committed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # this checkout, whatever is installed

from tests.lab.learner import Lab, Learner, browser  # noqa: E402

WHERE = ROOT / "docs" / "img"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 400, "height": 800}

MISTAKE = """import antorcha as torch

A = torch.ones(3, 2)
B = torch.ones(3, 2)

C = A @ B
"""
TRAINING = """import antorcha as torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
)
x = torch.rand(256, 2)
y = x[:, :1] * x[:, 1:] + torch.randn(256, 1) / 50
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(100_000_000):
    loss = ((model(x[:200]) - y[:200]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    val_loss = ((model(x[200:]) - y[200:]) ** 2).mean()
"""
GRAPH = """import antorcha as torch

x = torch.tensor([1.0, 2.0, 3.0])
w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
b = torch.tensor(0.1, requires_grad=True)

loss = ((w * x).sum() + b) ** 2
"""


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder) / "work")
        try:
            with browser(Path(folder) / "profile", viewport=WIDE, color_scheme="light") as context:
                draw(Learner(context.pages[0]), lab)
        finally:
            lab.close()


def draw(learner: Learner, lab: Lab) -> None:
    """Bring the page into each state, and take its picture."""
    page = learner.page
    learner.open(lab.address)
    learner.button("Run").click()
    learner.until(lambda: learner.ended("Done in"), "the end")
    page.click(".lab-row:has(b:text-is('temps'))")
    learner.until(lambda: page.inner_text(".lab-detail"), "the opened tensor")
    shoot(learner, "light")
    learner.run(MISTAKE, ends="ended with an error")
    learner.until(lambda: page.locator(".lab-why").is_visible(), "the explanation")
    shoot(learner, "error")
    learner.button("Light or dark").click()
    learner.run(GRAPH)
    learner.tab("Graph")
    learner.until(lambda: page.locator(".lab-graph svg").count(), "the graph")
    quiz = page.locator(".lab-quiz").first
    quiz.get_by_role("button", name="moved to the CUDA device").click()
    quiz.scroll_into_view_if_needed()
    shoot(learner, "dark")
    learner.write(TRAINING)
    learner.press_run()
    learner.tab("Loss")
    learner.until(lambda: page.locator(".lab-curve polyline").count(), "the curve")
    page.wait_for_timeout(2500)
    shoot(learner, "training")
    page.set_viewport_size(NARROW)
    for place in ("Lesson", "Code", "Inside"):
        page.locator(".lab-places").get_by_role("tab", name=place).click()
        shoot(learner, f"narrow_{place.lower()}")
    learner.button("Light or dark").click()
    page.locator(".lab-places").get_by_role("tab", name="Code").click()
    shoot(learner, "narrow_light")
    learner.button("Stop").click()
    learner.until(lambda: learner.ended("Stopped."), "Stopped.")


def shoot(learner: Learner, name: str) -> None:
    """Write one picture, small: few colours are enough for a page."""
    from PIL import Image  # comes with matplotlib

    learner.page.mouse.move(0, 0)
    learner.page.wait_for_timeout(900)
    path = WHERE / f"lab_{name}.png"
    learner.page.screenshot(path=str(path))
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128).save(path, optimize=True)
    print(path.relative_to(ROOT), path.stat().st_size // 1024, "KB")


if __name__ == "__main__":
    main()
