"""Launches whose results' sizes depend on the data: one kernel counts, a second one writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.structs import struct
from antorcha.runtime.memory import layout as layouts
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, new_storage


@struct
class Count:
    """A size that is counted: the number at `at`, and `more`, but `least` at least."""

    at: int
    more: int = 0
    least: int = 0


Shape = Sequence[int | Count]


class CountedLaunch:
    """Called with the inputs' storages and offsets, gives each result's layout and storage.

    ``count``: inputs -> scratch memory, blocks of ``scratch`` bytes. Its numbers are in the first
    block, from the one at ``first`` on. ``write``: scratch and inputs -> results of the layouts
    ``like`` and the sizes ``shapes``. ``refuse`` makes the exception for a first number below 0.
    """

    __slots__ = ("count", "first", "like", "refuse", "scratch", "shapes", "write")

    def __init__(
        self, count: Callable[..., None], write: Callable[..., None], scratch: Sequence[int],
        first: int, shapes: Sequence[Shape], like: Sequence[Layout],
        refuse: Callable[[], BaseException] | None,
    ) -> None:  # fmt: skip
        self.count, self.write, self.scratch, self.first = count, write, scratch, first
        self.shapes, self.like, self.refuse = shapes, like, refuse

    def __call__(self, *flat: Any) -> list[tuple[Layout, Storage]]:
        room: list[Any] = []
        for nbytes in self.scratch:
            room += (new_storage(nbytes), 0)
        self.count(*room, *flat)
        numbers = memoryview(room[0]).cast("q")[self.first :]
        if self.refuse is not None and numbers[0] < 0:
            raise self.refuse()
        result: list[tuple[Layout, Storage]] = []
        results: list[Any] = []
        for shape, like in zip(self.shapes, self.like, strict=True):
            sizes = tuple([_size(n, numbers) for n in shape])
            layout = layouts.contiguous(sizes, like.dtype, like.device)
            storage = new_storage(layout.nbytes)
            result.append((layout, storage))
            results += (storage, 0)
        self.write(*results, *room, *flat)
        return result


def _size(n: int | Count, numbers: Sequence[int]) -> int:
    return max(numbers[n.at] + n.more, n.least) if isinstance(n, Count) else n
