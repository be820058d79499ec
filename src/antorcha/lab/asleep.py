"""What the calls that the lab adds to a program find when it is over: somebody who notes nothing.

Functions and modules of a program may be called later: by the checks of a challenge, by pictures of
a model.
"""

from __future__ import annotations

import builtins

from antorcha.lab import hints, notes


class AsleepHooks:
    """Stands where notes and hints stand while a program runs."""

    def __call__(self, *_: object) -> None:
        """A value is not noted."""

    begin = enter = __call__

    def __getitem__(self, number: int) -> bool:
        """No place is looked at."""
        return False


def install() -> None:
    """Put it among the builtins, where a program's own take its place while it runs."""
    for name in (notes.HOOK, hints.HOOK, hints.SWITCH):
        setattr(builtins, name, AsleepHooks())
