"""A child process to run programs in, as the tests of it need one."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any

from antorcha.lab.kernel import Child, Event, Limits


class Bench:
    """A child, the loop that it lives in, and what it said."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.events: list[Event] = []
        self.child = Child(self.events.append, limits)

    def run(self, code: str, after: Any = None, delay: float = 0.6, **how: Any) -> dict[str, Any]:
        """Run a program; `after` `delay` seconds, do something to the child."""

        async def both() -> dict[str, Any]:
            await self.child.start()
            self.events.clear()
            text = textwrap.dedent(code)
            work = asyncio.ensure_future(
                self.child.run(text, name="fundamentals.py", folder=self.folder, **how)
            )
            if after is not None:
                await asyncio.sleep(delay)
                await after()
            return await work

        return self.loop.run_until_complete(asyncio.wait_for(both(), 60))

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    def text(self, stream: str = "stdout") -> str:
        said = [e.content for e in self.events if e.kind == "output"]
        return "".join(each["text"] for each in said if each["stream"] == stream)

    def close(self) -> None:
        self.do(self.child.end())
        self.loop.close()
