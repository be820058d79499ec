"""The guides, the examples and the course, as pages of the site.

They are the Markdown files of the repository. Links between them become links between pages; links
to source files lead to pages that show the source; a link that leads nowhere stops the build.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from antorcha.inspector.vocabulary import spoken
from antorcha.lab.export import NotebookWords, folded, quiz_text, step_text
from antorcha.lab.lesson import Cell, Challenge, Inspect, Lesson, LessonView, Quiz, Text, lessons
from tools.reference.names import ROOT

_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)"
)
USER_GUIDES = (
    "tensors", "autograd", "kernels", "from_pytorch", "differences", "array_api", "inspector",
    "see_inside", "performance", "profiling", "gpu", "lab", "troubleshooting",
)  # fmt: skip
"""The guides for those who use antorcha, in order: they are there in every language."""
INSIDE = (
    "architecture",
    "call_path",
    "adding_ops",
    "lessons",
    "coverage",
    "programs",
    "gpu_kernels",
)
"""Those for people who change antorcha, or want the evidence: in English."""
IMAGES = {".png", ".svg", ".jpg"}


class LostLink(Exception):
    """A link of a guide that leads nowhere."""


@dataclass(frozen=True)
class Guide:
    """A file of the repository, and the page that it becomes, without suffix."""

    file: Path
    page: str


def guides(lang: str) -> list[Guide]:
    """The guides of a language that are files as they stand."""
    if lang == "en":
        folder, suffix = ROOT / "docs", ""
        rest = [Guide(ROOT / "CONTRIBUTING.md", "about/contributing"),
                Guide(ROOT / "CHANGELOG.md", "about/changelog"),
                Guide(ROOT / "examples" / "README.md", "examples/index")]  # fmt: skip
    else:
        folder, suffix, rest = ROOT / "docs" / lang, f".{lang}", []
    found = [Guide(path, f"guides/{path.stem}") for path in sorted(folder.glob("*.md"))]
    return [*found, Guide(ROOT / f"README{suffix}.md", "about/readme"), *rest]


class GuideStage:
    """Writes the pages of one language below a folder; `files` are the sources linked to."""

    def __init__(self, lang: str, folder: Path) -> None:
        self.lang, self.folder = lang, folder
        self.pages = {guide.file: guide.page for guide in guides(lang)}
        self.english = {guide.file: guide.page for guide in guides("en")}
        self.files: set[str] = set()

    def write(self) -> None:
        """All pages of the guides and of the course."""
        for file, page in self.pages.items():
            self._write(page, self._rewritten(file.read_text(encoding="utf-8"), file, page))
        for lesson in lessons(self.lang):
            self._write(f"course/{lesson.path.stem}", "\n\n".join(_lesson(lesson)) + "\n")

    def _write(self, page: str, text: str) -> None:
        path = self.folder / f"{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _rewritten(self, text: str, file: Path, page: str) -> str:
        """The text with links that hold on the site; what stands in fences stays."""
        parts = _FENCED.split(text)
        parts[::2] = [
            _LINK.sub(lambda found: self._linked(found, file, page), part) for part in parts[::2]
        ]
        return "".join(parts)

    def _linked(self, found: re.Match[str], file: Path, page: str) -> str:
        target, anchor = found["target"], found["anchor"] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        path = (file.parent / target).resolve()
        if not path.exists():
            raise LostLink(f"{file.relative_to(ROOT)}: there is no {target}")
        up = "../" * page.count("/")
        if path.suffix in IMAGES:
            return f"![{found['text']}]({up}{self._image(path)})"
        if path in self.pages:
            return f"[{found['text']}]({up}{self.pages[path]}.md{anchor})"
        root = up if self.lang == "en" else f"{up}../"
        if path in self.english:
            return _anchor(found["text"], f"{root}{self.english[path]}.html{anchor}")
        if path == ROOT / "README.es.md":
            return _anchor(found["text"], f"{root}es/about/readme.html")
        if path.suffix in (".py", ".txt"):
            self.files.add(path.relative_to(ROOT).as_posix())
            return _anchor(found["text"], f"{root}{source_page(path.relative_to(ROOT))}.html")
        raise LostLink(f"{file.relative_to(ROOT)}: {target} is no page of the site")

    def _image(self, path: Path) -> str:
        """Copies a picture; gives its address from the site's root."""
        name = f"images/{path.parent.name}-{path.name}"
        goal = self.folder / name
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, goal)
        return name


def source_page(file: Path | str) -> str:
    """The page that shows a source file, without suffix."""
    text = os.fspath(file).replace(os.sep, "/")
    return f"source/{text.removesuffix('.py')}"


def _anchor(text: str, address: str) -> str:
    """A link that Sphinx leaves as it is: it leads out of the pages of this language."""
    words = re.sub(r"`([^`]+)`", lambda m: f"<code>{escape(m[1])}</code>", text)
    return f'<a href="{address}">{words}</a>'


def _lesson(lesson: Lesson) -> Iterator[str]:
    """A lesson as a page: cells with what they print, answers and solutions folded away."""
    words = NotebookWords(spoken(lesson.lang))
    yield f"# {lesson.title}\n\n*{words('minutes', lesson.minutes)}*"
    questions = 0
    for part in lesson.parts:
        match part:
            case Text():
                yield part.markdown.strip()
            case Cell():
                yield _fence("python", part.code)
                if part.output and part.predict:
                    yield folded(words("predicted"), _fence("text", part.output))
                elif part.output:
                    yield _fence("text", part.output)
            case Inspect():
                yield _fence("python", words("picture", part.expression))
            case LessonView():
                yield words("view")
            case Quiz():
                questions += 1
                yield quiz_text(part, questions, words)
            case Challenge():
                yield f"## {words('challenge', part.title)}\n\n{part.intro}"
                yield _fence("python", part.start)
                for number, step in enumerate(part.steps, 1):
                    yield step_text(step, number, words)


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
