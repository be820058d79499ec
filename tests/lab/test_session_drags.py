"""A thousand drags of a number, by the session itself: nothing of them stays."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any

import pytest

psutil = pytest.importorskip("psutil", reason="needs antorcha[lab]")
pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.lab.files import WorkFile  # noqa: E402
from antorcha.lab.kernel import Limits  # noqa: E402
from antorcha.lab.session import Session  # noqa: E402
from tests.lab.bench import PATIENCE, patient  # noqa: E402

TRAIN = (
    "import torch\ntorch.manual_seed(1)\nX = torch.randn(8, 2)\n"
    "model = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(model.parameters(), 0.{})\n"
    "for step in range(3):\n    loss = (model(X) ** 2).mean()\n    opt.zero_grad()\n"
    "    loss.backward()\n    opt.step()\nprint('last', loss.item())\n"
)
DRAGS = 1000


@pytest.mark.slow
def test_a_thousand_drags_leave_memory_processes_and_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    folder = tmp_path / "work"
    folder.mkdir()
    limits = Limits(seconds=PATIENCE, memory=3 << 30)
    session = Session("", folder, WorkFile(folder / "one.py", TRAIN.format(1)), limits)
    here = psutil.Process()

    def state() -> tuple[list[int], int, int, int]:
        """Open files of each process, temporary and own files, memory of the child, objects."""
        gc.collect()
        child = psutil.Process(session.child.pid)
        files = [here.num_fds(), child.num_fds(), len(here.children(recursive=True))]
        kept = len([*temporary.rglob("*")]) + len([*folder.rglob("*")])
        return files, kept, child.memory_info().rss, sys.getallocatedblocks()

    async def drag(number: int) -> None:
        session.moving.begin()
        session.edit(TRAIN.format(1 + number % 9))
        session.moving.move()
        await asyncio.wait_for(session.moving.end(), PATIENCE)
        assert session.result["ended"] == "ok", session.result

    async def work() -> tuple[Any, Any]:
        await session.run()
        await session.run(anew=True)
        for number in range(100):
            await drag(number)
        before = state()
        for number in range(DRAGS):
            await drag(number)
        after = state()
        await session.close()
        return before, after

    with patient():
        before, after = asyncio.run(work())
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 10e6, "the child's memory"
    assert after[3] - before[3] < 5 * DRAGS, "what the server keeps of each"
    assert [*temporary.iterdir()] == []
