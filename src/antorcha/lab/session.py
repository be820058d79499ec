"""One piece of work: its texts, its child process, and what the last run told.

A session belongs to a lesson or to a file, not to a browser tab: any number of pages may look at
it, come and go, be reloaded. Each is told that something has changed (`Session.listeners`), and
compares the session's counters with those that it showed last (`Session.versions`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from antorcha.lab.applying import Applying
from antorcha.lab.files import FileProblem, WorkFile
from antorcha.lab.kernel import Child, KernelEvent, Limits
from antorcha.lab.lesson import Lesson
from antorcha.lab.moving import Moving
from antorcha.lab.screen import USUAL, Screen, plain

SETTLED = 0.8  # seconds without typing after which the text is saved
TWICE = 0.4  # seconds within which a second request for the same is the same key, seen twice
PICTURES = 12  # pictures kept of a run
_ENDING = ("ended", "seconds", "signal", "code", "message")  # what a run's last line tells of
BRIEF = 0.04  # seconds: of a run that takes no longer, pages show the end alone


def challenge_file(name: str) -> str:
    """The name of the file of a lesson's challenge."""
    return name.removesuffix(".py") + "_challenge.py"


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
        self.listeners: list[Callable[[], None]] = []  # called whenever something has changed
        self.screen = Screen(self._tell)
        self.child = Child(self._hear, limits)
        self.versions: Counter[str] = Counter()
        self.viewers = 0
        self.left = time.monotonic()  # when the last viewer left
        self._greeted = 0  # where the terminal's text ends that is the lab's own beginning
        self.state = "ready"  # or starting, running, stopping, checking
        self.result: dict[str, Any] = {}
        self.rows: list[dict[str, Any]] = []
        self.losses: dict[str, Any] = {}
        self.before: dict[str, Any] = {}  # the losses of the run before
        self.pinned: dict[str, Any] = {}  # those that were kept to compare with
        self.hints: list[dict[str, Any]] = []  # shapes beside lines
        self.hinted = ""  # the text that they belong to
        self.pictures: list[dict[str, str]] = []
        self.prompt: str | None = None  # what a program asks for a line with
        self.problem: FileProblem | None = None  # why the work is not saved
        self.verdicts: list[dict[str, Any]] = []
        self._drawn: dict[str, list[str]] = {}  # the lesson's drawings, by language
        self._begun = 0  # where on the screen the last run begins
        self.moving = Moving(self)
        self.applying = Applying(self)
        self._aside: list[KernelEvent] | None = None  # what a program says that is only tried
        self._held = False  # are pages not told of what changes?
        self._free = asyncio.Lock()  # held while the child does something
        self._edited = 0.0
        self._saver: asyncio.Task[None] | None = None
        self._requested = 0.0  # when somebody last asked for a run
        self._asked = ("", "", "")  # and for a run of what
        self._threads: list[str] = []  # that the last program left running
        self._ran = ""  # the text that the last run ran
        self._warm: tuple[int | None, str] = None, ""  # what ran to its end, in which process
        self.size = (USUAL, 24)  # columns and rows of the terminal, as programs are told

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
        self.changed("text")
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
        self.changed("saved")

    def reread(self) -> None:
        """Take the file as it is on disk now, giving up what the editor holds."""
        try:
            self.file.load()
            self.problem = None
        except FileProblem as error:
            self.problem = error
        self.changed("text", "saved")

    def move(self, folder: Path) -> None:
        """Go on in another folder."""
        self.folder = folder
        for file in self.files:
            file.move(folder)
        self.save()

    def open(self, index: int) -> None:
        """Put another of the session's files into the editor."""
        self.active = index
        self.changed("text", "saved")

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
        return challenge_file(self.files[0].name)

    def begin_in(self, starts: dict[str, str]) -> None:
        """The page's language may be another one: what nobody has written in begins in it."""
        for file in self.files:
            start = starts.get(file.name, file.start)
            if start != file.start:
                file.begin_with(start)
                self.changed("text", "saved")

    def begin_again(self) -> str:
        """Bring the active file's first text back. What the learner wrote is kept in a file beside
        it; returns that file's name, "" where nothing had to be kept. What stands against it
        becomes `problem`, and the text stays."""
        return self._replace(self.file.start)

    def take_back(self) -> str:
        """Bring back what was kept aside last; returns as `begin_again`."""
        kept = self.file.aside()
        if not kept:
            return ""
        try:
            text = kept[-1].read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            self.problem = FileProblem("unreadable", kept[-1])
            self.changed("saved")
            return ""
        return self._replace(text)

    def _replace(self, text: str) -> str:
        try:
            name = self.file.put_aside(text)
        except FileProblem as error:
            self.problem = error
            self.changed("saved")
            return ""
        self.edit(text)
        self.save()
        return name

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

    async def run(self, *, watched: str = "", anew: bool = False) -> None:
        """Run the text in the editor; what it does shows in the session's fields. For what may be
        `watched` see `Child.run`. `anew`: however soon it is after the last time.

        A program that is measured runs once before, if it has not run yet: what happens only once,
        such as compiling, is not what is measured.
        """
        now, what = time.monotonic(), (self.file.name, self.file.text, watched)
        is_same = now - self._requested < TWICE and what == self._asked
        if self.busy or (is_same and not anew):
            return
        self._requested, self._asked = now, what
        if watched == "profile" and self._warm != (self.child.pid, self.file.text):
            await self._run_once("")
            if self.result.get("ended") != "ok" or self._asked != what:
                return
        await self._run_once(watched)

    async def _run_once(self, watched: str) -> None:
        self._held = True  # from its first change on: a page needs a frame for each
        asyncio.get_running_loop().call_later(BRIEF, self._release)
        self.save()
        self._ran = self.file.text
        self.keep_before()
        self.result, self.losses, self.pictures, self.verdicts = {}, {}, [], []
        self._enter("starting" if self.child.pid is None else "running", "result", "losses")
        self.changed("run", "pictures", "verdicts")
        name = self.file.name
        self._say_begun(watched)
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
                        self._ran, name=name, folder=self._place(), watched=watched, size=self.size
                    )
            except RuntimeError as error:
                result = {"ended": "failed", "message": str(error)}
        if result["ended"] == "ok":
            self._warm = self.child.pid, self._ran
        self._take(result)

    def keep_before(self) -> None:
        """Another run begins: the curves of the last one stay, in grey."""
        if any(curve["count"] > 1 for curve in self.losses.values()):
            self.before = self.losses

    def pin(self) -> None:
        """Keep the curves to compare others with; or keep them no longer."""
        self.pinned = {} if self.pinned else self.losses
        self.changed("losses")

    def _say_begun(self, watched: str = "") -> None:
        self._begun = self.screen.end
        self.screen.write("\x1b[90m")
        self.say("run_measured" if watched == "profile" else "run_line", self.file.name)
        self.screen.write("\x1b[0m")

    @property
    def ran(self) -> str:
        """The text that the last run ran."""
        return self._ran

    async def attempt(self, text: str) -> tuple[dict[str, Any], list[KernelEvent]]:
        """Run a text and show nothing of it; gives the result, and what it said."""
        async with self._free:
            heard: list[KernelEvent] = []
            self._aside = heard
            try:
                result = await self.child.run(
                    text, name=self.file.name, folder=self._place(), size=self.size, moved=True
                )
            except RuntimeError as error:
                result = {"ended": "failed", "message": str(error)}
            finally:
                self._aside = None
        return result, heard

    async def try_fixes(self, result: dict[str, Any]) -> list[str]:
        """Try the fixes of a run that failed, and show nothing of it; the texts that went further,
        and "" for those that did not."""
        async with self._free:
            if self.busy or result is not self.result:
                return []
            self._aside = []
            try:
                return await self.child.try_fixes()
            except RuntimeError:
                return []
            finally:
                self._aside = None

    def replace(self, text: str, result: dict[str, Any], heard: list[KernelEvent]) -> None:
        """Show that run in the place of the last one."""
        self.screen.cut(self._begun)
        self._ran = text
        self.pictures, self.verdicts, self._warm = [], [], (self.child.pid, text)
        self._say_begun()
        for event in heard:
            if event.kind in ("output", "picture"):
                self._hear(event)
        self._take(result)
        self.changed("pictures", "verdicts", "cleared")

    async def check(self, lesson: Lesson) -> None:
        """Run the challenge's program, and check its steps."""
        self.begin_challenge(lesson)
        await self.run()
        if self.result.get("ended") not in ("ok", "error") or lesson.challenge is None:
            return
        steps = [
            {"ask": "", "hints": [], "solution": "", "check": step.check, "lang": step.lang}
            for step in lesson.challenge.steps
        ]
        self._enter("checking")
        async with self._free:
            try:
                found = await self.child.check(steps)
                self.verdicts = [{**each, "lang": lesson.lang} for each in found]
            except RuntimeError as error:
                self.say("ended_failed", str(error))
        self._enter("ready", "verdicts")

    async def run_cells(self, cells: list[str], name: str) -> dict[str, Any] | None:
        """Run a lesson's first cells, apart from the program; tells what the last of them did, or
        nothing where something runs already."""
        if self.busy:
            return None
        self._enter("starting" if self.child.pid is None else "running")
        try:
            async with self._free:
                self._enter("running")
                result = await self.child.run_cells(cells, name)
                self._threads = result.get("threads", self._threads)
                return result
        except RuntimeError as error:
            return {"ended": "failed", "message": str(error)}
        finally:
            self._enter("ready")

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

    async def reset(self) -> None:
        """Clear everything but the text: a new process, an empty terminal."""
        await self.child.end()
        while self.busy:  # the run that was cut off has still to say so
            await asyncio.sleep(0.02)
        self.result, self.losses, self.pictures, self.rows, self.verdicts = {}, {}, [], [], []
        self.prompt, self._threads = None, []
        self.hints, self.hinted = [], ""
        self.before, self.pinned = {}, {}
        self.screen.clear()
        self.greet()
        self.changed("result", "losses", "pictures", "rows", "verdicts", "hints", "cleared")

    def answer(self, line: str) -> None:
        """Give the program the line that it asks for."""
        self.screen.write(f"{line}\n")
        self.prompt = None
        self.changed("prompt")
        self.child.answer(line)

    def greet(self) -> None:
        """Begin the terminal's text."""
        if self.screen.is_empty:
            self.say("ready")
            self._greeted = self.screen.end

    @property
    def has_spoken(self) -> bool:
        """Has the terminal more text than what it begins with?"""
        return self.screen.end > self._greeted

    def say(self, key: str, *values: object) -> None:
        """Write a line of the lab's own into the terminal."""
        self.screen.say(lambda words: words(key, *values))
        self.screen.write("\n")

    async def close(self) -> None:
        """End the child and save the work."""
        self.save()
        await self.child.end()

    def _place(self) -> Path:
        """Where programs run: the work's folder, or where we are while it cannot be made."""
        return self.folder if self.folder.is_dir() else Path.cwd()

    def _take(self, result: dict[str, Any]) -> None:
        self.result = result
        self.losses = result.get("losses", self.losses)
        if "hints" in result:
            self._hint(result["hints"])
        self.rows = result.get("rows", self.rows if result["ended"] == "failed" else [])
        self.prompt = None
        text = plain(result.get("text", ""))
        if text:
            self.screen.write("\x1b[31m")
            self.screen.say(lambda words: text)
        self.screen.write("\x1b[0m")
        told = {key: result[key] for key in _ENDING if key in result}  # (the rest is large)
        self.screen.say(lambda words: words.ending(told))
        self.screen.write("\n")
        self._threads = result.get("threads", [])
        if self._threads:
            self.say("threads_left", ", ".join(self._threads))
        self._held = False
        self._enter("ready", "result", "losses", "rows", "prompt")
        self.applying.begin()

    @property
    def place(self) -> dict[str, int] | None:
        """Where the last run's error is in the text; None once the text was changed."""
        found: dict[str, int] | None = self.result.get("place")
        is_error = self.result.get("ended") in ("error", "crashed")
        return found if is_error and self.file.text == self._ran else None

    # ---- what the child says --------------------------------------------------------------------

    def _hear(self, event: KernelEvent) -> None:
        content = event.content
        if self._aside is not None:
            self._aside.append(event)
        elif event.kind == "output":
            red = content["stream"] == "stderr"
            self.screen.write(f"\x1b[31m{content['text']}\x1b[0m" if red else content["text"])
        elif event.kind == "picture" and content["kind"] in ("image/png", "image/jpeg"):
            self.pictures = [*self.pictures, content][-PICTURES:]
            self.changed("pictures")
        elif event.kind == "live":
            self.rows, self.losses = content["rows"], content["losses"]
            self._hint(content["hints"])
            self.changed("rows", "losses")
        elif event.kind == "input":
            self.prompt = content["prompt"]
            self.screen.write(content["prompt"])
            self.changed("prompt")

    def _hint(self, hints: list[dict[str, Any]]) -> None:
        """Take over the shapes that the program has had so far."""
        if (hints, self._ran) != (self.hints, self.hinted):
            self.hints, self.hinted = hints, self._ran
            self.changed("hints")

    def _enter(self, state: str, *changed: str) -> None:
        self.state = state
        self.changed("state", *changed)

    def changed(self, *what: str) -> None:
        """Count up these counters, and tell the pages."""
        self.versions.update(what)
        self._tell()

    def _tell(self) -> None:
        for listener in () if self._held else self.listeners:
            listener()

    def _release(self) -> None:
        self._held = False
        self._tell()
