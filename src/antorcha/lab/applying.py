"""Fixes of the last error that the page offers to apply: those that were tried and went further.

After a run that ended with an error the child tries them, where the program is short and without
effects. One that is applied changes the text and runs it; taken back, the text is what it was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from antorcha.lab.session import Session

SHORT = 1.0  # seconds that a program may have taken for its fixes to be tried
PATIENT = 2.0  # seconds after which trying them is given up


class AppliedFix(NamedTuple):
    """A fix that was put into the text: its code, and the texts before and after."""

    code: str
    before: str
    after: str


class Applying:
    """The fixes of one session's last run, and the one that was applied."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._texts: list[str] = []  # by fix: the program with it; "" where it did not go further
        self._applied: AppliedFix | None = None
        self._work: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """A run is over: try what would mend it."""
        self._texts = []
        result = self._session.result
        is_short = result.get("seconds", SHORT) < SHORT and result.get("ended") == "error"
        if result.get("fixes") and is_short and not (result["effects"] or result["threads"]):
            self._work = asyncio.get_running_loop().create_task(self._try(result))

    async def _try(self, result: dict[str, Any]) -> None:
        stopper = asyncio.get_running_loop().call_later(PATIENT, self._stop)
        texts = await self._session.try_fixes(result)
        stopper.cancel()
        if result is self._session.result and any(texts):
            self._texts = texts
            self._session.changed("fixes")

    def _stop(self) -> None:
        self._stopper = asyncio.get_running_loop().create_task(self._session.child.stop())

    @property
    def offered(self) -> list[bool]:
        """For each fix of the last run: can it be applied to the text as it is?"""
        session = self._session
        is_same = session.file.text == session.ran
        return [is_same and bool(text) for text in self._texts]

    @property
    def applied(self) -> AppliedFix | None:
        """The fix that was applied last, as long as the text is as it made it."""
        applied = self._applied
        return applied if applied and self._session.file.text == applied.after else None

    async def apply(self, number: int) -> None:
        """Put a fix into the text, and run it."""
        session = self._session
        if session.busy or not (number < len(self._texts) and self.offered[number]):
            return
        code = session.result["fixes"][number][0]
        self._applied = AppliedFix(code, session.file.text, self._texts[number])
        session.edit(self._texts[number])
        await session.run(anew=True)

    async def take_back(self) -> None:
        """Bring back the text as it was before, and run it."""
        applied, session = self.applied, self._session
        if applied is not None and not session.busy:
            self._applied = None
            session.edit(applied.before)
            await session.run(anew=True)
