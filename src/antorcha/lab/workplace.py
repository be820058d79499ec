"""The lab of one user: the folder, the sessions in it, and what is remembered between visits.

What is remembered (language, theme, answers, challenges passed) is a small JSON file in the folder;
losing it loses no work.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from pathlib import Path
from typing import Any

from antorcha.core.files import write_whole
from antorcha.lab.files import NAME, FileProblem, WorkFile, find_problem, programs
from antorcha.lab.kernel import Limits
from antorcha.lab.lesson import FOLDER, Cell, Lesson, lessons, load
from antorcha.lab.session import Session, challenge_file
from antorcha.lab.words import LabWords

MEMORY = ".antorcha-lab.json"
RESTING = 300.0  # seconds after its last viewer left that an idle session keeps its process
LINES = 2000  # characters kept of what a learner says that a cell prints
PROCESSES = 4  # child processes at most, but for those that run something


class Workplace:
    """Sessions by key, and where their files are.

    Args:
        folder: of the files.
        limits: of every run.
        own: lessons outside the course, by path; each is found under its slug.
    """

    def __init__(self, folder: Path, limits: Limits, own: list[Path] | None = None) -> None:
        self.folder = folder
        self.limits = limits
        self.own = own or []
        self.sessions: dict[str, Session] = {}
        self._lessons: dict[str, tuple[list[Any], list[Lesson]]] = {}  # files' ages, what they hold
        self.memory: dict[str, Any] = recall(self.folder)
        self._unwritten: dict[str, Any] = {}  # of the memory, what is not on disk yet

    # ---- lessons and sessions -------------------------------------------------------------------

    def lessons(self, lang: str) -> list[Lesson]:
        """The course in that language, and the user's own lessons. Raises LessonError.

        They are read again when one of the files has changed.
        """
        files = [*sorted((FOLDER / lang).glob("*.md")), *self.own]
        stamp = [(path, path.stat().st_mtime_ns) for path in files if path.exists()]
        kept = self._lessons.get(lang)
        if kept is None or kept[0] != stamp:
            found = [*lessons(lang), *[load(path, lang) for path in self.own]]
            kept = self._lessons[lang] = (stamp, found)
        return kept[1]

    def lesson(self, slug: str, lang: str) -> Lesson | None:
        """The lesson of that name, if there is one; one's own goes before the course's."""
        named = {lesson.slug: lesson for lesson in self.lessons(lang)}
        return named.get(slug)

    def place_of(self, lesson: Lesson) -> tuple[int, int]:
        """A lesson's number among the lessons, from 1, and how many there are."""
        slugs = [each.slug for each in self.lessons(lesson.lang)]
        return slugs.index(lesson.slug) + 1 if lesson.slug in slugs else 1, len(slugs)

    def following(self, lesson: Lesson) -> Lesson | None:
        """The lesson after that one."""
        number, _ = self.place_of(lesson)
        return next(iter(self.lessons(lesson.lang)[number : number + 1]), None)

    def of_lesson(self, lesson: Lesson) -> Session:
        """The session of a lesson. Raises FileProblem where its file cannot be read."""
        session = self.session(lesson.slug, lesson.file, beginning(lesson))
        session.begin_in(beginnings(lesson))
        return session

    def of_file(self, name: str) -> Session | None:
        """The session of a file of the folder; None for a name that no file may have."""
        return self.session(f"file {name}", name, "") if NAME.fullmatch(name) else None

    def session(self, key: str, name: str, start: str) -> Session:
        """The session of that key; a new one for the file of that name, which begins so."""
        session = self.sessions.get(key)
        if session is None:
            file = WorkFile(self.folder / name, start)
            session = self.sessions[key] = Session(key, self.folder, file, self.limits)
        return session

    def programs(self) -> list[str]:
        """The names of the files in the folder."""
        return programs(self.folder)

    def move(self, folder: Path) -> FileProblem | None:
        """Save everything in another folder from now on, if it can be written to."""
        problem = find_problem(folder)
        if problem is None:
            self.folder = folder
            for session in self.sessions.values():
                session.move(folder)
            self.remember()
        return problem

    # ---- what is remembered ---------------------------------------------------------------------

    def remember(self, **what: Any) -> None:
        """Keep something for the next visit; where that cannot be written, for this one.

        What another lab on the same folder wrote meanwhile is kept, too.
        """
        self._unwritten = _merged(self._unwritten, what)
        self.memory = _merged(_merged(self.memory, recall(self.folder)), self._unwritten)
        with contextlib.suppress(OSError):
            text = json.dumps(self.memory, indent=1, sort_keys=True, ensure_ascii=False)
            write_whole(self.folder / MEMORY, text + "\n")
            self._unwritten = {}

    def answers(self, slug: str) -> dict[str, int]:
        """The answers given to a lesson's questions: number -> option."""
        kept = self._kept("answers").get(slug)
        return dict(kept) if isinstance(kept, dict) else {}

    def answer(self, slug: str, question: int, option: int) -> None:
        """Keep an answer."""
        self.remember(answers={slug: {str(question): option}})

    def prediction(self, slug: str, cell: int) -> str:
        """What the learner said that a lesson's cell prints; "" where nothing was said yet."""
        kept = self._kept("predicted").get(slug)
        said = kept.get(str(cell)) if isinstance(kept, dict) else None
        return said if isinstance(said, str) else ""

    def predict(self, slug: str, cell: int, said: str) -> None:
        """Keep what the learner says that a cell prints."""
        self.remember(predicted={slug: {str(cell): said[:LINES]}})

    @property
    def last(self) -> str:
        """The path of the page that was opened last, if it still leads somewhere; else ""."""
        path = self.memory.get("last")
        kind, _, name = path[1:].partition("/") if isinstance(path, str) else ("", "", "")
        if kind == "home":
            return "/home"
        if kind == "lesson":
            there = FOLDER.glob(f"*/*_{name}.md") if name.isidentifier() else ()
            return str(path) if any(there) else ""
        return str(path) if kind == "file" and name in self.programs() else ""

    @property
    def here(self) -> str:
        """The name of the lesson that was opened last; "" for none yet."""
        slug = self.memory.get("here")
        return slug if isinstance(slug, str) else ""

    def was_opened(self, slug: str) -> bool:
        """Was that lesson's page ever opened?"""
        return slug in self._kept("opened")

    def answered(self, lesson: Lesson) -> int:
        """How many of a lesson's questions were answered rightly."""
        answers = self.answers(lesson.slug)
        right = 0
        for number, quiz in enumerate(lesson.quizzes, 1):
            chosen = answers.get(str(number))
            if isinstance(chosen, int) and 0 <= chosen < len(quiz.options):
                right += quiz.options[chosen].right
        return right

    def is_done(self, lesson: Lesson) -> bool:
        """Was its challenge passed? Of a lesson without one: was every question answered?"""
        if lesson.challenge is not None:
            return self.passed(lesson.slug)
        return 0 < len(lesson.quizzes) == self.answered(lesson)

    def progress(self, lesson: Lesson, words: LabWords) -> str:
        """How far somebody is in a lesson, in a few words."""
        if self.is_done(lesson):
            return f"✓ {words('done')}"
        if answered := self.answered(lesson):
            return words("answered", answered, len(lesson.quizzes))
        return words("begun") if self.was_opened(lesson.slug) else ""

    def reached(self, slug: str) -> int:
        """How many steps of that lesson's challenge were right at once, at best."""
        steps = self._kept("steps").get(slug)
        return steps if isinstance(steps, int) else 0

    def reach(self, slug: str, steps: int) -> None:
        """Keep that so many steps of a challenge are right."""
        if steps > self.reached(slug):
            self.remember(steps={slug: steps})

    def passed(self, slug: str) -> bool:
        """Was that lesson's challenge passed?"""
        return slug in self._kept("passed")

    def pass_challenge(self, slug: str) -> None:
        """Keep that a challenge was passed."""
        self.remember(passed={slug: True})

    def _kept(self, what: str) -> dict[str, Any]:
        kept = self.memory.get(what)
        return kept if isinstance(kept, dict) else {}

    # ---- processes ------------------------------------------------------------------------------

    async def tend(self) -> None:
        """End processes that nobody uses any more; goes on until it is cancelled."""
        while True:
            await asyncio.sleep(5)
            await self.tidy()

    async def tidy(self) -> None:
        """End the processes of sessions that rest; the longest resting first if they are many."""
        now = time.monotonic()
        alive = [each for each in self.sessions.values() if each.child.pid is not None]
        resting = sorted(
            (each for each in alive if not each.viewers and not each.busy),
            key=lambda each: each.left,
        )
        for index, session in enumerate(resting):
            if now - session.left > RESTING or len(alive) - index > PROCESSES:
                await session.child.end()

    async def close(self) -> None:
        """Save all work and end all processes."""
        await asyncio.gather(*[session.close() for session in self.sessions.values()])


def recall(folder: Path) -> dict[str, Any]:
    """What the labs on a folder remember."""
    try:
        found = json.loads((folder / MEMORY).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _merged(kept: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """Both, and the newer where they differ; dicts in them likewise."""
    found = dict(kept)
    for key, value in newer.items():
        old = found.get(key)
        both = isinstance(value, dict) and isinstance(old, dict)
        found[key] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return found


def beginnings(lesson: Lesson) -> dict[str, str]:
    """What a lesson's files hold before the learner writes in them."""
    found = {lesson.file: beginning(lesson)}
    if lesson.challenge is not None:
        found[challenge_file(lesson.file)] = lesson.challenge.start.rstrip("\n") + "\n"
    return found


def beginning(lesson: Lesson) -> str:
    """What a lesson's file holds before the learner writes in it: the lesson's first cell."""
    first = next((part for part in lesson.parts if isinstance(part, Cell)), None)
    return first.code.rstrip("\n") + "\n" if first is not None else "import antorcha as torch\n"
