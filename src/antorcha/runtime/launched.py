"""What a launch's native side points into, and watching the kernels of all launches.

Each launch has an Owner: Python's side of its words. All that live are known here, so that a
profile can put a stand-in in the place of their kernels.
"""

from __future__ import annotations

import functools
import weakref
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Literal

from antorcha.core.symbols import Untold
from antorcha.errors import NativeError
from antorcha.runtime.memory.layout import Layout

Slot = tuple[int, int, int] | Literal["f64", "i64", "c128"]
"""A tensor: (itemsize, lowest byte touched, one past the highest), from its offset; or a number."""


def slot_of(what: Any) -> Slot:
    """How a launch sees an operand: a tensor's layout, or the type of a number."""
    if isinstance(what, Layout):
        size = what.itemsize
        return size, what.low * size, what.high * size
    if what is complex:
        return "c128"
    return "f64" if what is float else "i64"


def _explain(fail: Callable[[int], Any] | None, code: int) -> BaseException:
    """The exception for a kernel's error code."""
    if fail is None:
        return NativeError(f"a kernel failed with code {code}")
    error = fail(code)
    if not isinstance(error, BaseException):
        return TypeError(f"a kernel's error {code} was explained by {error!r}, not an exception")
    return error


_unexplained = functools.partial(_explain, None)


HEAD = 9
"""Words of a launch before those of its operands, four each; ``launch.Plan`` names them."""
NUMBERS: tuple[Any, ...] = ("", "f64", "i64", "c128")
"""The slots that are numbers, by the operand's kind; 0 is a tensor's."""


class Owner:
    """What a plan's native side points into, and what its errors need to know."""

    __slots__ = ("__weakref__", "about", "explain", "outs", "sizes", "start", "words")

    def __init__(
        self, outs: int, fail: Callable[[int], Any] | None, about: Any, sizes: Sequence[int]
    ) -> None:
        self.outs, self.sizes = outs, sizes
        self.about = about  # what the kernel computes, or a partial that works it out
        self.start = 0  # of the description, among the words; before it is the kernel's address
        # not a method: that would be a cycle
        self.explain = _unexplained if fail is None else functools.partial(_explain, fail)
        self.words: Any = None

    def hold(self, words: Sequence[int], start: int) -> None:
        """Takes a launch's words, with the description at `start`, and fills in their addresses."""
        held = self.words = array("q", words)
        self.start = start
        held[1] = held.buffer_info()[0] + 8 * start
        held[8] = id(self.explain)

    @property
    def what(self) -> Any:
        """What the kernel computes."""
        return self.about() if isinstance(self.about, functools.partial) else self.about

    @property
    def slots(self) -> tuple[Slot, ...]:
        """How the operands lie, results first."""
        words = self.words
        found: list[Slot] = []
        for at in range(HEAD, HEAD + 4 * words[3], 4):
            kind, itemsize, low, high = words[at : at + 4]
            found.append((itemsize, low, high) if kind == 0 else NUMBERS[kind])
        return tuple(found)

    def desc(self) -> list[int]:
        """The description words."""
        return list(self.words[self.start :])

    @property
    def kernel(self) -> int:
        """The kernel's address, whatever stands in for it (`watch`)."""
        return int(self.words[self.start - 1])

    @property
    def address(self) -> int:
        """Of the description."""
        return int(self.words[1])

    def name(self, k: int) -> str:
        return f"output {k}" if k < self.outs else f"input {k - self.outs}"


class LaunchWithOwner:
    """A kernel ready to be called: `fresh` and `into` are builtins; each keeps the plan alive."""

    __slots__ = ("fresh", "into")

    def __init__(self, fresh: Callable[..., Any], into: Callable[..., None]) -> None:
        self.fresh, self.into = fresh, into


# ---- launches with symbols among their words
class PendingLaunch:
    """What runs a kernel, or several, whose words have symbols among them: nothing can run yet.
    The attribute `form` of what is made of `source`: a draft of a launch or a sequence."""

    __slots__ = ("form", "source")

    def __init__(self, source: Any, form: str) -> None:
        self.source, self.form = source, form

    def __call__(self, *flat: Any) -> Any:
        raise Untold("a kernel whose sizes may be any numbers was run")


class LaunchDraft:
    """A launch with symbols among its words."""

    def __init__(
        self,
        words: list[Any],
        start: int,
        outs: int,
        fail: Callable[[int], Any] | None,
        what: Any,
        sizes: Sequence[int],
    ) -> None:
        self.words, self.start, self.outs = words, start, outs
        self.fail, self.what, self.sizes = fail, what, sizes


# ---- watching kernels
_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
_stand_in = 0
_watched: dict[int, Owner] = {}


def register(owner: Owner) -> None:
    """Makes a new launch known, and watched if the others are."""
    _owners.add(owner)
    if _stand_in:
        _replace(owner)


def watch(stand_in: int) -> None:
    """From now on the kernel at that address is called in the place of every launch's own, which it
    finds one word before the description. 0: no longer."""
    global _stand_in
    _stand_in = stand_in
    for owner in all_owners():
        _replace(owner)


def all_owners() -> list[Owner]:
    while True:  # until no thread has made one meanwhile; who does sees `_stand_in` itself
        try:
            return list(_owners)
        except RuntimeError:
            continue


def _replace(owner: Owner) -> None:
    owner.words[0] = _stand_in or owner.kernel  # (one word: a thread reads the one or the other)
    if _stand_in:
        _watched[owner.address] = owner


def profiled() -> dict[int, Any]:
    """What the launches compute that were watched since this was last asked, by the addresses of
    their descriptions."""
    found = {address: owner.what for address, owner in _watched.items()}
    _watched.clear()
    return found
