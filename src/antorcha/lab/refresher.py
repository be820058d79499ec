"""Work that is done soon after somebody asks for it, once for many requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Refresher:
    """Does `work` in the event loop after each `tell`: at once where it has rested, else when it
    has. Of many requests meanwhile, it is done once.

    Args:
        work: what is done.
        pace: seconds between two times, at least on the average: the second of two is done at
            once (a number that is dragged is written first, and soon after it has an effect).
    """

    def __init__(self, work: Callable[[], None], pace: float) -> None:
        self._work = work
        self._pace = pace
        self._free = 0.0  # the loop's time at which it has rested
        self._waiting: asyncio.TimerHandle | None = None
        self._stopped = False

    def tell(self) -> None:
        """There is something to do."""
        if self._waiting is None and not self._stopped:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_at(max(self._free - self._pace, loop.time()), self._do)

    def stop(self) -> None:
        """Do nothing from now on."""
        self._stopped = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _do(self) -> None:
        self._waiting = None
        try:
            self._work()
        finally:
            now = asyncio.get_running_loop().time()
            self._free = max(self._free, now) + self._pace
