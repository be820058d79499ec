"""A lesson or a program as one file: whole, small, and at home on a disk without a network."""

from __future__ import annotations

import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.lab.export import NotebookWords
from antorcha.lab.lesson import find, lessons
from antorcha.lab.single import LIMIT
from tests.lab.learner import browser

PROGRAM = (
    "import torch\ntorch.manual_seed(3)\nX = torch.randn(40, 2)\ny = (X[:, 0] > 0).long()\n"
    "model = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(model.parameters(), lr=0.5)\n"
    "for step in range(30):\n    loss = torch.nn.functional.cross_entropy(model(X), y)\n"
    "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    "print('<script>alert(1)</script>')\nX @ X\n"
)
# Each page is made in a process of its own, as the command does: a lesson may set what it likes.
COMMAND = "import sys\nfrom antorcha.cli import main\nsys.exit(main(sys.argv[1:]))"


def written(folder: Path, what: str, lang: str = "en") -> str:
    """The page that the command writes."""
    command = [sys.executable, "-c", COMMAND, "lab", what, "--export", "html", "--lang", lang,
               "--folder", str(folder)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).read_text(encoding="utf-8")


@pytest.mark.slow
def test_each_lesson_is_told_whole_in_one_small_file(tmp_path: Path) -> None:
    """In turns in one language and in the other: each takes a process of its own."""
    for turn, lang in enumerate(("en", "es")):
        for lesson in list(lessons(lang))[turn::2]:
            page = written(tmp_path / lang, lesson.slug, lang)
            assert len(page.encode()) <= LIMIT, lesson.slug
            assert page.endswith("</html>\n"), lesson.slug
            text = unescape(page)
            assert f"<h1>{lesson.title}</h1>" in text
            for cell in lesson.cells:
                assert not cell.output or cell.output.strip("\n") in text, cell.output
            assert lesson.challenge is not None
            solution = NotebookWords(lang)("solution")
            assert text.count(f"<summary>{solution}") == len(lesson.challenge.steps)
            assert "```" not in page


def test_a_page_opens_from_disk_with_the_network_off(tmp_path: Path) -> None:
    source = tmp_path / "small.py"
    source.write_text(PROGRAM)
    page = written(tmp_path, str(source))
    assert "&lt;script&gt;alert(1)" in page
    assert '<span class="shape">40×2</span>' in page
    assert "ShapeError" in page
    written(tmp_path, "training", "es")
    assert find("training", "es").title in (tmp_path / "training.html").read_text()
    problems: list[str] = []
    requests: list[str] = []

    def note(message: Any) -> None:
        problems.append(message.text)

    with browser(tmp_path / "profile", offline=True, color_scheme="dark") as context:
        tab = context.pages[0]
        tab.on("console", note)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        for name in ("small", "training"):
            for width, theme in [(w, t) for w in (1280, 400) for t in ("light", "dark")]:
                tab.set_viewport_size({"width": width, "height": 800})
                tab.emulate_media(color_scheme=theme)
                tab.goto((tmp_path / f"{name}.html").as_uri())
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                frames, said = tab.locator(".film-frame"), tab.locator(".film output")
                assert frames.count() > 2
                last = said.inner_text()
                tab.locator(".film input").press("Home")
                assert said.inner_text() != last
                assert tab.locator(".film-frame:visible").count() == 1
    assert problems == []
    assert all(url.startswith(("file:", "data:")) for url in requests)


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    for what in ([], ["no_such_lesson"], [str(tmp_path / "no.py")]):
        command = [sys.executable, "-c", COMMAND, "lab", *what, "--export", "html"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 1
        assert done.stderr.startswith("antorcha lab: ")
    assert list(tmp_path.iterdir()) == []
