"""Runs while a number moves: the newest text only, nothing with effects, nothing that is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

from antorcha.lab import moving
from antorcha.lab.files import WorkFile
from antorcha.lab.kernel import KernelEvent, Limits
from antorcha.lab.screen import Screen
from antorcha.lab.session import Session
from antorcha.lab.words import LabWords
from tests.lab.bench import PATIENCE, Bench, patient


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("work"), Limits(seconds=PATIENCE, memory=3 << 30))
    with patient():
        yield bench
        bench.close()


# ---- effects ------------------------------------------------------------------------------------

EFFECTS = {
    "open": "open('made.txt', 'w')",
    "append": "from pathlib import Path\nPath('made.txt').open('a')",
    "save": "import torch\ntorch.save(torch.ones(2), 'made.txt')",
    "mkdir": "import os\nos.mkdir('made.txt')",
    "process": "import subprocess\nsubprocess.run(['touch', 'made.txt'])",
    "system": "import os\nos.system('touch made.txt')",
    "fork": "import os\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)",
    "input": "input('who? ')",
}


@pytest.mark.parametrize("code", EFFECTS.values(), ids=EFFECTS)
def test_effects_are_refused_while_a_number_moves(bench: Bench, code: str) -> None:
    done = bench.run(code, moved=True)
    assert done["ended"] == "refused"
    assert done["effects"]
    assert not (bench.folder / "made.txt").exists()


def test_effects_are_told_of_in_a_usual_run(bench: Bench) -> None:
    async def answer() -> None:
        bench.child.answer("Ada")

    assert bench.run("input('who? ')", after=answer)["effects"]
    assert bench.run("open('told.txt', 'w').close()")["effects"]
    assert not bench.run("open('told.txt').close()\nprint(1)")["effects"]


def test_what_antorcha_keeps_for_speed_is_no_effect(bench: Bench) -> None:
    code = (
        "import torch, random\nimport helper_of_moves\nk = {}\n"
        "x = torch.rand(3) * float(k) + torch.sin(torch.rand(3) / float(k))\n"
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
    )
    (bench.folder / "helper_of_moves.py").write_text("value = 1\n")
    pytest.importorskip("matplotlib", reason="the lab's extra is not installed")
    bench.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n")
    done = bench.run(code.format(3), moved=True)
    assert (done["ended"], done["effects"]) == ("ok", False)


# ---- which texts run ----------------------------------------------------------------------------


class Stage:
    """A session whose child answers as a test says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session = Session("", folder, WorkFile(folder / "one.py", "n = 0\n"), Limits())
        self.runs: list[tuple[str, bool]] = []
        self.answers: Callable[[str], dict[str, Any]] = lambda text: {}
        monkeypatch.setattr(self.session.child, "run", self._run)
        monkeypatch.setattr(self.session.child, "start", self._start)
        monkeypatch.setattr(self.session.child, "stop", self._start)

    async def _start(self) -> None:
        return None

    async def _run(self, text: str, *, moved: bool = False, **_: Any) -> dict[str, Any]:
        self.runs.append((text.strip(), moved))
        self.session._hear(KernelEvent("output", {"stream": "stdout", "text": text}))
        await asyncio.sleep(0.001)
        return {"ended": "ok", "seconds": 0.01, **self.answers(text.strip())}

    def do(self, *texts: str) -> None:
        """Run the first text, and move a number through the others."""

        async def work() -> None:
            session = self.session
            session.edit(texts[0])
            await session.run(anew=True)
            session.moving.begin()
            for text in texts[1:]:
                session.edit(text)
                session.moving.move()
                await asyncio.sleep(0)
            await session.moving.end()

        asyncio.run(work())

    @property
    def shown(self) -> str:
        return self.session.screen.since(0, LabWords("en"))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_the_newest_text_alone_runs_and_takes_the_place_of_the_last(stage: Stage) -> None:
    stage.do(*[f"n = {k}\n" for k in range(9)])
    assert stage.runs[-1] == ("n = 8", True)
    assert len(stage.runs) < 9
    assert [moved for _, moved in stage.runs] == [False, *[True] * (len(stage.runs) - 1)]
    assert "n = 8" in stage.shown
    assert "n = 0" not in stage.shown
    assert stage.session.ran == "n = 8\n"
    assert stage.session.file.path.read_text() == "n = 8\n"


@pytest.mark.parametrize(
    "first",
    [{"seconds": 0.4}, {"effects": True}, {"threads": ["mine"]}, {"ended": "stopped"}],
)
def test_others_run_when_the_number_is_let_go_of(stage: Stage, first: dict[str, Any]) -> None:
    stage.answers = lambda text: first if text == "n = 0" else {}
    stage.do("n = 0\n", "n = 1\n", "n = 2\n")
    assert stage.runs == [("n = 0", False), ("n = 2", False)]


def test_a_text_that_never_ran_runs_when_it_is_let_go_of(stage: Stage) -> None:
    async def work() -> None:
        session = stage.session
        session.edit("n = 5\n")
        session.moving.begin()
        session.edit("n = 6\n")
        session.moving.move()
        await session.moving.end()

    asyncio.run(work())
    assert stage.runs == [("n = 6", False)]


def test_one_that_becomes_slow_is_not_run_again_for_a_move(stage: Stage) -> None:
    stage.answers = lambda text: {"seconds": 2.0} if text == "n = 1" else {}
    stage.do("n = 0\n", "n = 1\n", "n = 2\n", "n = 3\n")
    assert stage.runs == [("n = 0", False), ("n = 1", True), ("n = 3", False)]


def test_an_error_shows_as_a_line_and_goes(stage: Stage) -> None:
    problems: list[str] = []
    session = stage.session
    stage.answers = lambda text: (
        {"ended": "error", "message": "Bad: two\nlines"} if text == "n = 1" else {}
    )

    async def work() -> None:
        session.edit("n = 0\n")
        await session.run(anew=True)
        before = session.result
        session.moving.begin()
        session.edit("n = 1\n")
        session.moving.move()
        await session.moving._work  # type: ignore[misc]
        problems.append(session.moving.problem)
        assert session.result is before
        session.edit("n = 0\n")
        session.moving.move()
        await session.moving.end()
        problems.append(session.moving.problem)

    asyncio.run(work())
    assert problems == ["Bad: two lines", ""]
    assert [text for text, _ in stage.runs] == ["n = 0", "n = 1", "n = 0"]
    assert stage.session.result["ended"] == "ok"


def test_what_takes_long_is_stopped(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[int] = []

    async def stop() -> None:
        stopped.append(1)

    async def slow(text: str, *, moved: bool = False, **_: Any) -> dict[str, Any]:
        stage.runs.append((text.strip(), moved))
        await asyncio.sleep(0.1 if moved else 0)
        return {"ended": "stopped" if moved else "ok", "seconds": 0.01}

    monkeypatch.setattr(moving, "PATIENT", 0.01)
    monkeypatch.setattr(stage.session.child, "run", slow)
    monkeypatch.setattr(stage.session.child, "stop", stop)
    stage.do("n = 0\n", "n = 1\n", "n = 2\n")
    assert stopped == [1]
    assert stage.runs == [("n = 0", False), ("n = 1", True), ("n = 2", False)]


def test_a_screen_is_cut_where_a_run_began() -> None:
    screen = Screen()
    screen.write("one\n")
    place = screen.end
    screen.write("two\n\x1b[3")
    screen.cut(place)
    screen.write("three\n")
    assert screen.since(0) == "one\nthree\n"
    screen.clear()
    screen.cut(0)
    assert screen.is_empty
