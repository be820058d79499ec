"""One piece of work: its texts, its child process, and what the last run told.

A session belongs to a lesson or to a file, not to a browser tab: any number of pages may look at
it, come and go, be reloaded. Pages do not subscribe; they compare the session's counters with those
they showed last, ten times a second (`Session.versions`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

from antorcha.lab.files import FileProblem, WorkFile
from antorcha.lab.kernel import Child, Event, Limits
from antorcha.lab.lesson import Lesson
from antorcha.lab.screen import Screen
from antorcha.lab.words import Words

SETTLED = 0.8  # seconds without typing after which the text is saved
TWICE = 0.4  # seconds within which a second request for the same is the same key, seen twice
PICTURES = 12  # pictures kept of a run


class Session:
    """The work on one lesson, or on one file.

    Args:
        key: what names it among the sessions of a lab.
        folder: where its files are.
        file: the program's file.
        limits: of its runs.
    """

    def __init__(self, key: str, folder: Path, file: WorkFile, limits: Limits) -> None:
        self.key = key
        self.folder = folder
        self.files = [file]  # the program, and the challenge's once it is begun
        self.active = 0
        self.screen = Screen()
        self.child = Child(self._hear, limits)
        self.versions: Counter[str] = Counter()
        self.viewers = 0
        self.left = time.monotonic()  # when the last viewer left
        self.state = "ready"  # or starting, running, stopping, checking
        self.result: dict[str, Any] = {}
        self.rows: list[dict[str, Any]] = []
        self.losses: dict[str, Any] = {}
        self.pictures: list[dict[str, str]] = []
        self.prompt: str | None = None  # what a program asks for a line with
        self.problem: FileProblem | None = None  # why the work is not saved
        self.verdicts: list[dict[str, Any]] = []
        self._drawn: dict[str, list[str]] = {}  # the lesson's drawings, by language
        self._free = asyncio.Lock()  # held while the child does something
        self._edited = 0.0
        self._saver: asyncio.Task[None] | None = None
        self._requested = 0.0  # when somebody last asked for a run
        self._asked = ("", "", "")  # and for a run of what
        self._threads: list[str] = []  # that the last program left running
        self._ran = ""  # the text that the last run ran

    # ---- the text -------------------------------------------------------------------------------

    @property
    def file(self) -> WorkFile:
        """The file in the editor."""
        return self.files[self.active]

    def edit(self, text: str) -> None:
        """Take over what was typed; it is saved when the typing pauses."""
        if text == self.file.text:
            return
        self.file.text = text
        self._changed("text")
        self._edited = time.monotonic()
        if self._saver is None or self._saver.done():
            self._saver = asyncio.get_running_loop().create_task(self._save_later())

    def save(self, *, anyway: bool = False) -> None:
        """Save the texts; what stands against it becomes `problem`."""
        problem = None
        for file in self.files:
            try:
                file.save(anyway=anyway)
            except FileProblem as error:
                problem = error
        self.problem = problem
        self._changed("saved")

    def reread(self) -> None:
        """Take the file as it is on disk now, giving up what the editor holds."""
        try:
            self.file.load()
            self.problem = None
        except FileProblem as error:
            self.problem = error
        self._changed("text", "saved")

    def move(self, folder: Path) -> None:
        """Go on in another folder."""
        self.folder = folder
        for file in self.files:
            file.move(folder)
        self.save()

    def open(self, index: int) -> None:
        """Put another of the session's files into the editor."""
        self.active = index
        self._changed("text", "saved")

    def open_named(self, name: str, lesson: Lesson | None) -> bool:
        """Put the file of that name into the editor, the challenge's too; is there one?"""
        names = [file.name for file in self.files]
        if name not in names and lesson is not None and name == self._challenge_name:
            self.begin_challenge(lesson)
            return True
        if name in names:
            self.open(names.index(name))
        return name in names

    @property
    def _challenge_name(self) -> str:
        return self.files[0].path.stem + "_challenge.py"

    def begin_challenge(self, lesson: Lesson) -> None:
        """Put the challenge's beginning into the editor, or what was made of it already."""
        challenge = lesson.challenge
        if challenge is None:
            return
        if len(self.files) == 1:
            path = self.folder / self._challenge_name
            self.files.append(WorkFile(path, challenge.start.rstrip("\n") + "\n"))
        self.open(1)

    async def _save_later(self) -> None:
        while (wait := self._edited + SETTLED - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        self.save()

    # ---- running --------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self.state != "ready"

    async def run(self, words: Words, *, watched: str = "") -> None:
        """Run the text in the editor; what it does shows in the session's fields. For what may be
        `watched` see `Child.run`."""
        now, what = time.monotonic(), (self.file.name, self.file.text, watched)
        if self.busy or (now - self._requested < TWICE and what == self._asked):
            return
        self._requested, self._asked = now, what
        self.save()
        self._ran = self.file.text
        self.result, self.losses, self.pictures, self.verdicts = {}, {}, [], []
        self._enter("starting" if self.child.pid is None else "running", "result", "losses")
        self._changed("pictures", "verdicts")
        self.screen.write(f"\x1b[2m> python {self.file.name}\x1b[0m\n")
        name = self.file.name
        async with self._free:
            try:
                if self._threads:  # of the last program; the next one is to be alone
                    await self.child.end()
                await self.child.start()
                if self.state == "stopping":
                    result = {"ended": "stopped"}
                else:
                    self._enter("running")
                    result = await self.child.run(
                        self._ran, name=name, folder=self._place(), watched=watched, lang=words.lang
                    )
            except RuntimeError as error:
                result = {"ended": "failed", "message": str(error)}
        self._take(result, words)

    async def check(self, lesson: Lesson, words: Words) -> None:
        """Run the challenge's program, and check its steps."""
        self.begin_challenge(lesson)
        await self.run(words)
        if self.result.get("ended") not in ("ok", "error") or lesson.challenge is None:
            return
        steps = [
            {"ask": "", "hints": [], "solution": "", "check": step.check, "lang": step.lang}
            for step in lesson.challenge.steps
        ]
        self._enter("checking")
        async with self._free:
            try:
                self.verdicts = await self.child.check(steps)
            except RuntimeError as error:
                self.screen.write(f"{error}\n")
        self._enter("ready", "verdicts")

    async def drawings(self, steps: list[dict[str, str]], lang: str) -> list[str]:
        """The drawings of a lesson's tensors: HTML for each ``inspect`` among `steps`, once its
        ``code`` ran. They are made once, in a namespace of their own, when the child is free."""
        async with self._free:
            if lang not in self._drawn:
                try:
                    self._drawn[lang] = await self.child.draw(steps, lang)
                except RuntimeError:
                    return []
            return self._drawn[lang]

    async def stop(self) -> None:
        """Stop the program that runs."""
        if self.state in ("starting", "running", "checking"):
            self._enter("stopping")
        await self.child.stop()

    async def reset(self, words: Words) -> None:
        """Clear everything but the text: a new process, an empty terminal."""
        await self.child.end()
        while self.busy:  # the run that was cut off has still to say so
            await asyncio.sleep(0.02)
        self.result, self.losses, self.pictures, self.rows, self.verdicts = {}, {}, [], [], []
        self.prompt, self._threads = None, []
        self.screen.clear()
        self.greet(words)
        self._changed("result", "losses", "pictures", "rows", "verdicts", "cleared")

    def answer(self, line: str) -> None:
        """Give the program the line that it asks for."""
        self.screen.write(f"{line}\n")
        self.prompt = None
        self._changed("prompt")
        self.child.answer(line)

    def greet(self, words: Words) -> None:
        """Begin the terminal's text."""
        if self.screen.end == 0 or not self.screen.since(0):
            self.screen.write(words("ready") + "\n")

    async def close(self) -> None:
        """End the child and save the work."""
        self.save()
        await self.child.end()

    def _place(self) -> Path:
        """Where programs run: the work's folder, or where we are while it cannot be made."""
        return self.folder if self.folder.is_dir() else Path.cwd()

    def _take(self, result: dict[str, Any], words: Words) -> None:
        self.result = result
        self.losses = result.get("losses", self.losses)
        self.rows = result.get("rows", self.rows if result["ended"] == "failed" else [])
        self.prompt = None
        if result["ended"] == "crashed":
            self.screen.write(f"\x1b[31m{result.get('text', '')}")
        self.screen.write("\x1b[0m" + words.ending(result) + "\n")
        self._threads = result.get("threads", [])
        if self._threads:
            self.screen.write(words("threads_left", ", ".join(self._threads)) + "\n")
        self._enter("ready", "result", "losses", "rows", "prompt")

    @property
    def place(self) -> dict[str, int] | None:
        """Where the last run's error is in the text; None once the text was changed."""
        found: dict[str, int] | None = self.result.get("place")
        is_error = self.result.get("ended") in ("error", "crashed")
        return found if is_error and self.file.text == self._ran else None

    # ---- what the child says --------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        content = event.content
        if event.kind == "output":
            red = content["stream"] == "stderr"
            self.screen.write(f"\x1b[31m{content['text']}\x1b[0m" if red else content["text"])
        elif event.kind == "picture" and content["kind"] in ("image/png", "image/jpeg"):
            self.pictures = [*self.pictures, content][-PICTURES:]
            self._changed("pictures")
        elif event.kind == "live":
            self.rows, self.losses = content["rows"], content["losses"]
            self._changed("rows", "losses")
        elif event.kind == "input":
            self.prompt = content["prompt"]
            self.screen.write(content["prompt"])
            self._changed("prompt")

    def _enter(self, state: str, *changed: str) -> None:
        self.state = state
        self._changed("state", *changed)

    def _changed(self, *what: str) -> None:
        self.versions.update(what)
