"""How much of a running program's time may go into looking at it."""

from __future__ import annotations

import time


class Allowance:
    """A share of the time: after what took long comes a pause that is longer by as much.

    >>> looks = Allowance(0.02, least=0.3)
    >>> looks.spend(0.1)  # a tenth of a second is 2 % of five seconds
    5.0
    >>> looks.wait() > 4.9
    True
    """

    def __init__(self, share: float, least: float = 0.0) -> None:
        self._share = share
        self._least = least
        self._free = 0.0  # when the next look may begin

    def wait(self) -> float:
        """Seconds until the next look may begin; 0.0 where it may now."""
        return max(self._free - time.monotonic(), 0.0)

    def spend(self, seconds: float) -> float:
        """A look took so long; returns the seconds to wait for the next."""
        now = time.monotonic()
        pause = max(self._least, seconds / self._share)
        self._free = max(self._free, now) + pause  # (of two at once, the pauses add up)
        return pause
