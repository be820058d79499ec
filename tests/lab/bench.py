"""A child process to run programs in, as the tests of it need one."""

from __future__ import annotations

import asyncio
import contextlib
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from antorcha.lab import kernel
from antorcha.lab.kernel import Child, KernelEvent, Limits

PATIENCE = 300.0  # seconds until something must have happened, on a machine with other work


class Bench:
    """A child, the loop that it lives in, and what it said."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.events: list[KernelEvent] = []
        self.child = Child(self.events.append, limits)

    def run(self, code: str, after: Any = None, **how: Any) -> dict[str, Any]:
        """Run a program; once it says that it has begun, or asks for a line, do `after`."""

        async def both() -> dict[str, Any]:
            await self.child.start()
            self.events.clear()
            text = textwrap.dedent(code)
            work = asyncio.ensure_future(
                self.child.run(text, name="fundamentals.py", folder=self.folder, **how)
            )
            if after is not None:
                await self.until(lambda: work.done() or self.begun())
                assert not work.done(), work.result()
                await after()
            return await work

        return self.do(both())

    def begun(self) -> bool:
        """Does the program run, and say so (or wait for a line)?"""
        return "begun" in self.text() or any(event.kind == "input" for event in self.events)

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait for something."""
        while not holds():
            await asyncio.sleep(0.02)

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE))

    def text(self, stream: str = "stdout") -> str:
        said = [e.content for e in self.events if e.kind == "output"]
        return "".join(each["text"] for each in said if each["stream"] == stream)

    def close(self) -> None:
        self.do(self.child.end())
        self.loop.close()


@contextlib.contextmanager
def patient() -> Iterator[None]:
    """On a busy machine a child that listens may take long to; it is not given up for that."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STARTING", "GRACE", "LATE"):
            patch.setattr(kernel, name, PATIENCE / 5)
        yield
