"""Runs that are instant: what is looked through before each, and how pages learn of it."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

import antorcha as torch
from antorcha.lab import program as programs
from antorcha.lab.files import WorkFile
from antorcha.lab.kernel import Limits
from antorcha.lab.process_reset import Beginning
from antorcha.lab.program import ProgramRun, collect
from antorcha.lab.refresher import Refresher
from antorcha.lab.screen import Screen
from antorcha.lab.session import BRIEF, Session
from antorcha.lab.settings import SettingsKeeper


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Any:
    yield
    gc.unfreeze()


class Node:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.me = self


# ---- memory -------------------------------------------------------------------------------------


def test_cycles_are_freed_and_what_is_left_is_set_aside(monkeypatch: Any) -> None:
    kept, lost = Node(), Node()
    died = weakref.ref(lost)
    del lost
    collect()
    assert died() is None
    assert gc.get_freeze_count() > 0
    late = weakref.ref(kept)
    del kept  # it was set aside, and dies afterwards
    monkeypatch.setattr(programs, "FULL", 1)
    collect()
    assert late() is None


# ---- modules ------------------------------------------------------------------------------------


def test_only_new_modules_are_asked_where_they_lie(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "mine_a.py").write_text("value = 1\n")
    beginning = Beginning()
    program = ProgramRun("import mine_a\n", "f.py", str(tmp_path), beginning)
    where = os.getcwd()
    try:
        assert program.run() is None
    finally:
        os.chdir(where)
    asked: list[str] = []
    real = os.path.realpath
    monkeypatch.setattr(os.path, "realpath", lambda path: asked.append(path) or real(path))
    assert "mine_a" in sys.modules
    program.forget(str(tmp_path))
    assert "mine_a" not in sys.modules
    assert 0 < len(asked) < 20


def test_in_another_folder_its_modules_are_imported_anew(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine_b.py").write_text("value = 1\n")
    code = f"import sys\nsys.path.insert(0, {str(other)!r})\nimport mine_b\n"
    program = ProgramRun(code, "f.py", str(tmp_path))
    where = os.getcwd()
    try:
        assert program.run() is None
    finally:
        os.chdir(where)
    program.forget(str(tmp_path))
    assert "mine_b" in sys.modules  # it is another folder's
    next_one = ProgramRun("pass", "f.py", str(tmp_path))
    next_one.forget(str(other))
    assert "mine_b" not in sys.modules


# ---- settings -----------------------------------------------------------------------------------


def test_functions_are_put_back_each_time() -> None:
    settings, relu = SettingsKeeper(), torch.relu
    code = "torch.relu = lambda x: x\ntorch.nn.functional.mine = lambda: 1\n"
    for _ in range(2):
        exec(code, {"__name__": "__main__", "torch": torch})
        assert torch.relu is not relu
        settings.restore()
        assert torch.relu is relu
        assert not hasattr(torch.nn.functional, "mine")


def test_a_process_is_put_back_once_unless_something_ran_since(monkeypatch: Any) -> None:
    beginning = Beginning()
    restored: list[int] = []
    monkeypatch.setattr(beginning._settings, "restore", lambda: restored.append(1))
    beginning.begin()
    assert restored == []
    beginning.touch()
    beginning.begin()
    beginning.begin()
    assert restored == [1]


# ---- pages are told -----------------------------------------------------------------------------


def test_much_that_changes_at_once_is_shown_once() -> None:
    shown: list[int] = []

    async def work() -> None:
        refresher = Refresher(lambda: shown.append(1), 0.01)
        for _ in range(100):
            refresher.tell()
        assert shown == []
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert shown == [1]
        refresher.tell()
        refresher.stop()
        await asyncio.sleep(0.05)
        refresher.tell()

    asyncio.run(work())
    assert shown == [1]


def test_a_screen_tells_of_what_is_written() -> None:
    told: list[int] = []
    screen = Screen(lambda: told.append(1))
    screen.write("a")
    screen.say(lambda words: "b")
    assert len(told) == 2


def test_of_a_brief_run_the_end_alone_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    session = Session("", tmp_path, WorkFile(tmp_path / "one.py", "a"), Limits())
    told: list[tuple[str, Any]] = []

    async def run(*_: Any, **how: Any) -> dict[str, Any]:
        session.screen.write("printed")
        await asyncio.sleep(how_long)
        return {"ended": "ok"}

    async def start() -> None:
        return None

    monkeypatch.setattr(session.child, "run", run)
    monkeypatch.setattr(session.child, "start", start)

    async def work() -> None:
        session.listeners.append(lambda: told.append((session.state, session.result.get("ended"))))
        await session.run()

    how_long = 0.0
    asyncio.run(work())
    assert set(told) == {("ready", "ok")}
    session.listeners.clear()
    session._requested = 0.0
    how_long = 5 * BRIEF
    asyncio.run(work())
    assert ("running", None) in told
