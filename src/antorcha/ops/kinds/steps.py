"""Launches of several kernels: what ``Launch`` is for one, for a few, one after another.

``in_steps`` has the op write down its kernels once, as they run into results that are there; the
runtime then runs them without coming back to Python (``runtime.sequence``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.core.lazy import lazy
from antorcha.lang.kernels import Backend, Launch

if TYPE_CHECKING:
    from antorcha.runtime import sequence

runtime_sequence = lazy("antorcha.runtime.sequence")

Write = Callable[["Steps", list[int], list[int]], None]


class Steps:
    """The kernels of a launch being written down. A tensor is two places: storage and offset."""

    def __init__(self, written: sequence.Sequence, device: Backend) -> None:
        self.sequence, self.device = written, device
        self.start = written.constant(0)

    def room(self, nbytes: int) -> tuple[int, int]:
        """Scratch memory."""
        return self.sequence.allocate(nbytes, self.device.allocate), self.start

    def fresh(self, launch: Launch, *places: int) -> tuple[int, int]:
        """A kernel's result, in memory of its own."""
        return self.sequence.run(launch.fresh, *places), self.start

    def into(self, launch: Launch, *places: int) -> None:
        """A kernel that writes to its first places."""
        self.sequence.into(launch.into, *places)

    def moved(self, tensor: Sequence[int], distance: int) -> tuple[int, int]:
        """A tensor that begins further on."""
        storage, offset = tensor
        return storage, self.sequence.move(offset, distance)


def in_steps(device: Backend, results: int, nbytes: int, given: int, write: Write) -> Launch:
    """A launch of the kernels that ``write(steps, outs, ins)`` runs.

    results: how many tensors it writes to. nbytes: the size of the result, where it is one.
    given: the arguments that follow the results', two for a tensor and one for a number.
    """
    into = runtime_sequence.Sequence(2 * results + given)
    places = list(range(2 * results + given))
    write(Steps(into, device), places[: 2 * results], places[2 * results :])
    if results != 1:
        return Launch(_no_fresh, into.bound())
    fresh = runtime_sequence.Sequence(given)
    steps = Steps(fresh, device)
    result = steps.room(nbytes)
    write(steps, list(result), list(range(given)))
    return Launch(fresh.bound(result[0]), into.bound())


def _no_fresh(*flat: Any) -> Any:
    raise AssertionError("a launch of several results has no fresh one")
