"""Draws the pictures of docs/see_inside.md: a model, a graph and an error as a notebook shows them.

Needs what ``tools/draw_inspector.py`` needs::

    python tools/draw_inside.py
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

from draw_inspector import draw

import antorcha as torch

nn: Any = torch.nn


class Block(nn.Module):
    """Two layers around which the input passes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x: Any) -> Any:
        y = self.up(x).relu()
        return x + self.down(y)


class Net(nn.Module):
    """A network whose graph fits on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.head = Block(8), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.block(x))


def main() -> None:
    """Writes every picture."""
    browser = shutil.which("chromium") or shutil.which("chrome") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("draw_inside: install Chromium first")
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Sequential(nn.Flatten(), nn.Linear(8 * 14 * 14, 32), nn.ReLU(), nn.Linear(32, 10)),
    )  # fmt: skip
    table = torch.summary(layers, (32, 1, 28, 28))
    draw(browser, "see_summary", table.html(), 600, "light")

    net, x, classes = Net(), torch.randn(5, 8), torch.tensor([0, 1, 2, 0, 1])
    entropy = nn.functional.cross_entropy
    with torch.graph.recording():  # type: ignore[attr-defined]
        scores = net(x)
        loss = entropy(scores, classes)
    loss.backward(retain_graph=True)
    graph = torch.graph(loss, model=net)
    draw(browser, "see_graph", f'<div class="ant">{graph.svg()}</div>', 820, "light")

    images, weight = torch.ones(3, 2), torch.ones(3, 2)
    try:
        scores = images.relu() @ weight
    except RuntimeError as error:
        found = torch.explain(error)
        found.file, found.number, found.function = "fundamentals.py", 12, "<module>"
        draw(browser, "see_explain", found.html(), 600, "dark")


if __name__ == "__main__":
    main()
