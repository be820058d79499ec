"""A number that is moved in the editor, and the program that runs again while it moves.

Of the texts that a drag makes, always the newest is run next; what it shows takes the place of what
the last one showed. An error shows as one line, and the last good picture stays. It is so for a
program whose last run was short and without effects; any other runs once, when the number is let
go of.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antorcha.lab.session import Session

QUICK = 0.3  # seconds that a run may take to be done again while a number moves
PATIENT = 1.5  # seconds after which one that takes longer is stopped
LINE = 200  # characters of an error's message


class Moving:
    """The runs of one session's program while a number in it is moved."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._moves = False
        self._is_live = False
        self._shown: str | None = None  # the text whose good run the pages show
        self._tried: str | None = None  # the text that was run last
        self._work: asyncio.Task[None] | None = None
        self.problem = ""  # why the newest text shows nothing, in one line

    def begin(self) -> None:
        """A number is taken hold of."""
        session, result = self._session, self._session.result
        is_known = session.file.text == session.ran and not session.busy
        self._moves = True
        session.keep_before()
        self._is_live = is_known and _may_go_on(result)
        self._shown = session.ran if is_known and result.get("ended") == "ok" else None
        self._tried = session.ran if is_known else None

    @property
    def is_live(self) -> bool:
        """Does the program run again for each move?"""
        return self._moves and self._is_live

    def move(self) -> None:
        """It has moved: the session's text is another one."""
        if self.is_live and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self._follow())

    async def end(self) -> None:
        """It is let go of: what the pages show becomes that of the text as it is now."""
        if not self._moves:
            return
        if self._work is not None:
            await self._work
        self._moves = False
        session = self._session
        self._say("")
        if session.file.text == self._shown == self._tried:
            session.save()
        elif not session.busy:
            await session.run(anew=True)

    async def _follow(self) -> None:
        """Run the newest text until there is no newer one."""
        session = self._session
        while self._is_live and session.file.text != self._tried and not session.busy:
            text = self._tried = session.file.text
            stopper = asyncio.get_running_loop().call_later(PATIENT, self._stop)
            result, heard = await session.attempt(text)
            stopper.cancel()
            ended = result["ended"]
            if not _may_go_on(result):
                self._is_live = False
            if ended == "ok":
                self._shown = text
                session.replace(text, result, heard)
            self._say("" if ended == "ok" else _line(result))

    def _stop(self) -> None:
        """What runs takes too long to be run while a number moves."""
        self._is_live = False
        self._stopper = asyncio.get_running_loop().create_task(self._session.child.stop())

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._session.changed("moving")


def _may_go_on(result: dict[str, Any]) -> bool:
    """May a program that ran like that be run again for each move?"""
    is_quick = result.get("seconds", QUICK) < QUICK and result.get("ended") in ("ok", "error")
    return is_quick and not result.get("effects") and not result.get("threads")


def _line(result: dict[str, Any]) -> str:
    """An error in one line; "" where none is to be told of."""
    return " ".join(str(result.get("message", "")).split())[:LINE]
