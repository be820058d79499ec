"""Lessons: Markdown files with code that runs, quizzes and a challenge.

A lesson opens with ``title``, ``minutes`` and ``file`` (the editor's file) between two ``---``
lines. Then comes Markdown, in which some fences mean more than text::

    python      a cell; all cells of a lesson run in one namespace, top to bottom
                (``python varies``: what it prints is not the same every time)
    output      right below a cell: what it prints, exactly
                (``output predict: true``: hidden until the learner has said what it will be)
    inspect     an expression of that namespace: the tensor is shown as `antorcha.inspect` draws it
    view        a picture of the learner's own model: plane, flow, pad or attention; then, if there
                may be several, the name of the model or the tensor
    quiz        one question, its options, and why each is right or wrong           (YAML)
    challenge   steps, each with hints, a solution, and Python that checks it       (YAML)

Every other fence stays part of the text. ``docs/lessons.md`` shows a whole lesson. Nothing here
runs a lesson's code; `antorcha.lab.check` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from antorcha.errors import ValueRangeError, did_you_mean, listed
from antorcha.lab.fields import Fields, FilePlace, LessonError, check_asserts, parse_code

__all__ = [
    "Cell",
    "Challenge",
    "Inspect",
    "Lesson",
    "LessonError",
    "LessonView",
    "Option",
    "Part",
    "Quiz",
    "Step",
    "Text",
    "find",
    "languages",
    "lessons",
    "load",
]

FOLDER = Path(__file__).with_name("lessons")
VIEWS = ("plane", "flow", "pad", "attention")


@dataclass(frozen=True)
class Text:
    """Markdown."""

    markdown: str
    line: int = 0


@dataclass(frozen=True)
class Cell:
    """Code, and what it prints; `output` is None where nothing is printed, or where it `varies`.
    `predict`: the learner says first what it will be."""

    code: str
    output: str | None
    varies: bool = False
    line: int = 0
    predict: bool = False


@dataclass(frozen=True)
class Inspect:
    """A picture of a tensor: an expression of the lesson's namespace."""

    expression: str
    line: int = 0


@dataclass(frozen=True)
class LessonView:
    """A picture of the learner's own model: one of `VIEWS`, and of what ("" for the first)."""

    kind: str
    name: str = ""
    line: int = 0


@dataclass(frozen=True)
class Option:
    """One answer to a question; `why` says why it is right or wrong."""

    text: str
    right: bool
    why: str


@dataclass(frozen=True)
class Quiz:
    """A question with one right option. All words are Markdown."""

    question: str
    options: tuple[Option, ...]
    line: int = 0


@dataclass(frozen=True)
class Step:
    """What a learner is asked to do. `solution` is code they could have added to what came before;
    `check` is Python whose failed assert says what is wrong (`antorcha.lab.check.check_step`)."""

    ask: str
    hints: tuple[str, ...]
    solution: str
    check: str
    lang: str = "en"
    line: int = 0


@dataclass(frozen=True)
class Challenge:
    """Steps that go on from the code `start`, in a namespace of their own."""

    title: str
    intro: str
    start: str
    steps: tuple[Step, ...]
    line: int = 0


Part: TypeAlias = Text | Cell | Inspect | LessonView | Quiz | Challenge


@dataclass(frozen=True)
class Lesson:
    """One lesson in one language. `slug` is its file's name without number and suffix, the same in
    every language; `file` is the name that the editor gives to the learner's code."""

    slug: str
    lang: str
    title: str
    minutes: int
    file: str
    parts: tuple[Part, ...]
    path: Path

    @property
    def number(self) -> int | None:
        """The number that the file's name begins with."""
        found = re.match(r"\d+", self.path.name)
        return int(found[0]) if found else None

    @property
    def cells(self) -> list[Cell]:
        """The cells, in order."""
        return [part for part in self.parts if isinstance(part, Cell)]

    @property
    def quizzes(self) -> list[Quiz]:
        """The questions, in order."""
        return [part for part in self.parts if isinstance(part, Quiz)]

    @property
    def views(self) -> list[LessonView]:
        """The pictures of models that the lesson chooses, in order."""
        return [part for part in self.parts if isinstance(part, LessonView)]

    @property
    def challenge(self) -> Challenge | None:
        """The lesson's challenge, if it has one."""
        found = [part for part in self.parts if isinstance(part, Challenge)]
        return found[0] if found else None


# ---- finding them -------------------------------------------------------------------------------


def languages(folder: Path = FOLDER) -> list[str]:
    """The languages there are lessons in.

    >>> languages()
    ['en', 'es']
    """
    return sorted(path.name for path in folder.iterdir() if any(path.glob("*.md")))


def lessons(lang: str = "en", folder: Path = FOLDER) -> list[Lesson]:
    """All lessons in the language `lang`, in the order of the course.

    Raises ValueRangeError for a language that has none, LessonError for a file with a mistake.

    >>> lessons("es")[0].title
    'Por qué importan los tensores'
    """
    known = languages(folder)
    if lang not in known:
        hint = did_you_mean(lang, known)
        raise ValueRangeError(f"lessons: no language {lang!r}; there is {listed(known)}.{hint}")
    found = [load(path) for path in sorted((folder / lang).glob("*.md"))]
    seen: dict[str, Lesson] = {}
    for lesson in found:
        if (twin := seen.setdefault(lesson.slug, lesson)) is not lesson:
            raise LessonError(f"{lesson.path.name} has the name of {twin.path.name}; rename one")
    return found


def find(name: str, lang: str = "en", folder: Path = FOLDER) -> Lesson:
    """The lesson of that name or number.

    >>> find("fundamentals").title, find("1").slug, find("01_fundamentals.md").slug
    ('Why tensors matter', 'fundamentals', 'fundamentals')
    """
    every = lessons(lang, folder)
    wanted = _slug(name.removesuffix(".md"))
    for lesson in every:
        if wanted == lesson.slug or (name.isdecimal() and int(name) == lesson.number):
            return lesson
    names = [lesson.slug for lesson in every]
    hint = did_you_mean(wanted, names)
    raise ValueRangeError(f"lessons: no lesson {name!r}; there is {listed(names)}.{hint}")


def _slug(stem: str) -> str:
    return re.sub(r"^\d+_", "", stem)


# ---- reading one --------------------------------------------------------------------------------


def load(path: str | Path, lang: str | None = None) -> Lesson:
    """Read one lesson, and check all that can be checked without running it.

    `lang` is the name of the folder the file is in unless given. Raises LessonError, which names
    the file, the line and the fix.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise LessonError(f"{path.name} is not UTF-8 text: save it with that encoding") from error
    lines = text.splitlines()
    lang = lang or path.parent.name
    head, body = _front_matter(FilePlace(path.name, 1), lines)
    parts = tuple(_parts(FilePlace(path.name, body + 1), lines[body:], lang))
    return Lesson(
        slug=_slug(path.stem),
        lang=lang,
        title=head.text("title"),
        minutes=head.number("minutes", least=1),
        file=_file_name(head),
        parts=parts,
        path=path,
    )


def _front_matter(place: FilePlace, lines: Sequence[str]) -> tuple[Fields, int]:
    """The fields between the first two ``---`` lines, and how many lines that took."""
    fix = "begin the file with ---, title, minutes and file, and --- again"
    if not lines or lines[0].rstrip() != "---":
        raise place.error(f"a lesson has a head: {fix}")
    end = next((k for k, line in enumerate(lines) if k and line.rstrip() == "---"), None)
    if end is None:
        raise place.error(f"the head has no end: {fix}")
    head = Fields.read(place.down(1), "\n".join(lines[1:end]), "the head")
    head.only("title", "minutes", "file")
    return head, end + 1


def _file_name(head: Fields) -> str:
    name = head.text("file")
    if not re.fullmatch(r"\w[\w-]*\.py", name, re.ASCII):
        raise head.error("file", f"`file` is a plain name such as memory.py, not {name!r}")
    return name


def _parts(place: FilePlace, lines: Sequence[str], lang: str) -> Iterator[Part]:
    parts: list[Part] = []
    output_may_follow = False
    for block in _blocks(place, lines):
        match block.kind:
            case "":
                parts.append(Text(block.text, block.place.line))
                output_may_follow = False
            case "output" | "output predict: true":
                if not output_may_follow:
                    raise block.place.error("an `output` fence stands right below a `python` one")
                cell = parts.pop()
                assert isinstance(cell, Cell)
                printed = block.text + "\n" if block.text else ""
                is_asked = block.kind != "output"
                parts.append(Cell(cell.code, printed, line=cell.line, predict=is_asked))
                output_may_follow = False
            case "python" | "python varies":
                varies = block.kind != "python"
                parse_code(block.inside, block.text)
                parts.append(Cell(block.text, None, varies, block.inside.line))
                output_may_follow = not varies
            case "inspect":
                parse_code(block.inside, block.text, mode="eval")
                parts.append(Inspect(block.text.strip(), block.inside.line))
                output_may_follow = False
            case "view":
                parts.append(_view(block))
                output_may_follow = False
            case "quiz":
                parts.append(_quiz(block))
                output_may_follow = False
            case _:
                parts.append(_challenge(block, lang))
                output_may_follow = False
    if sum(isinstance(part, Challenge) for part in parts) > 1:
        raise place.error("a lesson has one challenge: make the second one more steps of the first")
    yield from parts


@dataclass(frozen=True)
class _Block:
    """A run of Markdown (kind "") or one of our fences; `place` is its first line."""

    kind: str
    text: str
    place: FilePlace

    @property
    def inside(self) -> FilePlace:
        return self.place.down(1)


_KINDS = ("python", "python varies", "output", "output predict: true", "inspect", "view",
          "quiz", "challenge")  # fmt: skip
_FENCE = re.compile(r"(`{3,})[ ]*([^`]*?)[ ]*")


def _blocks(place: FilePlace, lines: Sequence[str]) -> Iterator[_Block]:
    """Cut a lesson at its fences. Fences of other kinds are text, whatever is in them."""
    text_begins = at = 0
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        if not opening:
            at += 1
            continue
        end = _closing(place.down(at), lines, at, opening[1])
        if opening[2] in _KINDS:
            yield from _text(place, lines, text_begins, at)
            yield _Block(opening[2], "\n".join(lines[at + 1 : end]), place.down(at))
            text_begins = end + 1
        else:
            _refuse_near_miss(place.down(at), opening[2])
        at = end + 1
    yield from _text(place, lines, text_begins, len(lines))


def _closing(place: FilePlace, lines: Sequence[str], at: int, ticks: str) -> int:
    for end in range(at + 1, len(lines)):
        if re.fullmatch(f"{ticks}`*[ ]*", lines[end]):
            return end
    raise place.error(f"this fence is never closed: end it with a line {ticks}")


def _text(place: FilePlace, lines: Sequence[str], begin: int, end: int) -> Iterator[_Block]:
    text = "\n".join(lines[begin:end])
    if text.strip():
        blank = len(text) - len(text.lstrip("\n"))
        yield _Block("", text.strip("\n"), place.down(begin + blank))


def _refuse_near_miss(place: FilePlace, info: str) -> None:
    """A mistyped kind of fence would silently become text."""
    if info and (hint := did_you_mean(info, _KINDS)):
        raise place.error(f"no fence is called {info!r}.{hint}")


def _view(block: _Block) -> LessonView:
    kind, _, name = block.text.strip().partition(" ")
    if kind not in VIEWS:
        hint = did_you_mean(kind, VIEWS)
        raise block.inside.error(f"no view is called {kind!r}; there is {listed(VIEWS)}.{hint}")
    return LessonView(kind, name.strip(), block.inside.line)


def _quiz(block: _Block) -> Quiz:
    fields = Fields.read(block.inside, block.text, "a quiz")
    fields.only("question", "options")
    options = []
    for option in fields.items("options", "an option"):
        option.only("text", "right", "why")
        options.append(
            Option(option.text("text"), option.truth("right", default=False), option.text("why"))
        )
    if (right := sum(option.right for option in options)) != 1 or len(options) < 2:
        said = f"{len(options)} options, {right} of them right"
        raise fields.error("options", f"a quiz has two options or more, one of them right: {said}")
    return Quiz(fields.text("question"), tuple(options), block.place.line)


def _challenge(block: _Block, lang: str) -> Challenge:
    fields = Fields.read(block.inside, block.text, "a challenge")
    fields.only("title", "intro", "start", "steps")
    steps = []
    for step in fields.items("steps", "a step"):
        step.only("ask", "hints", "solution", "check")
        check = step.code("check")
        check_asserts(step.place_of_code("check"), check)
        steps.append(
            Step(
                ask=step.text("ask"),
                hints=tuple(step.texts("hints")),
                solution=step.code("solution"),
                check=check,
                lang=lang,
                line=step.place.line,
            )
        )
    return Challenge(
        title=fields.text("title"),
        intro=fields.text("intro"),
        start=fields.code("start"),
        steps=tuple(steps),
        line=block.place.line,
    )
