"""What is known of a simulated launch: its grid, its operands, what the threads of a warp touched.

`gather` counts what the recording holds. It keeps the elements of one warp, the first of a chosen
block, and of these so many as a person reads; the rest is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from antorcha.devices.sim.recording import ElementAccess, LaunchedOperand, SimulatedLaunch
from antorcha.errors import ArgumentError
from antorcha.inspector.tensor.facts import jsonable
from antorcha.lang.native.grid import WARP

SEGMENT = 128  # bytes that a GPU's memory moves at once
_MOST = 64  # elements of an operand that are kept of one thread

TOGETHER, SAME, PARTLY, SCATTERED = "together", "same", "partly", "scattered"
"""How the accesses of a warp lie: in as few segments as so many neighbours need; all at one
element; in more segments; each element in a segment of its own."""


@dataclass(frozen=True)
class ThreadElements:
    """The elements of an operand that a thread read, or wrote, in the order of its first access to
    each; ``more`` are left out."""

    thread: int
    elements: tuple[int, ...]
    more: int


@dataclass(frozen=True)
class WarpAccess:
    """What the threads of the warp did with an operand: read it, or wrote to it.

    ``lanes`` threads did; the first access of each reached ``segments`` segments of 128 bytes,
    which is ``pattern``. ``first`` are the elements of these accesses.
    """

    operand: str
    write: bool
    lanes: int
    segments: int
    pattern: str
    first: tuple[int, ...]
    threads: tuple[ThreadElements, ...]


@dataclass(frozen=True)
class BufferFacts:
    """A buffer: how many of its elements the launch read and wrote, and in how many accesses.
    ``same_as``: an operand that begins at the same address, to which all accesses are counted."""

    name: str
    dtype: str
    itemsize: int
    misaligned: int  # bytes from where a segment begins to its first element
    elements_read: int
    elements_written: int
    reads: int
    writes: int
    same_as: str


@dataclass(frozen=True)
class LaunchFacts:
    """What `antorcha.inspect` knows of a launch.

    Of ``accesses`` the first ``noted`` are known, ``elsewhere`` of them to memory of no operand.
    ``busy`` threads touched an operand. ``warp`` is what the first threads of ``block`` did, up to
    ``lanes``, operand by operand.
    """

    name: str
    description: str
    kernel: str
    source: str
    filename: str
    blocks: tuple[int, ...]
    threads: int
    busy: int
    shared_bytes: int
    accesses: int
    reads: int
    writes: int
    noted: int
    elsewhere: int
    operands: tuple[BufferFacts, ...]
    block: int
    lanes: int
    warp: tuple[WarpAccess, ...]

    @property
    def block_count(self) -> int:
        return math.prod(self.blocks)

    @property
    def thread_count(self) -> int:
        return self.block_count * self.threads

    def as_dict(self) -> dict[str, Any]:
        """All of it as values that JSON has."""
        found: dict[str, Any] = jsonable(self)
        return found


def gather(launch: SimulatedLaunch, *, name: str = "", block: int = 0) -> LaunchFacts:
    """The facts of a launch; ``block``: the number of the block whose first warp is looked at."""
    count = math.prod(launch.blocks)
    if type(block) is not int or not 0 <= block < count:
        raise ArgumentError(
            f"inspect: block={block!r} must be the number of a block, from 0 to {count - 1}"
        )
    lanes = min(WARP, launch.threads)
    of_warp = [a for a in launch.accesses if a.block == block and a.thread < lanes]
    writes = sum([access.write for access in launch.accesses])
    return LaunchFacts(
        name,
        launch.description,
        launch.kernel,
        launch.source,
        launch.filename,
        tuple(launch.blocks),
        launch.threads,
        len({(access.block, access.thread) for access in launch.accesses}),
        launch.shared_bytes,
        launch.count,
        len(launch.accesses) - writes,
        writes,
        launch.noted,
        launch.noted - len(launch.accesses),
        _operands(launch),
        block,
        lanes,
        tuple(_warp(launch.operands, of_warp)),
    )


def _operands(launch: SimulatedLaunch) -> tuple[BufferFacts, ...]:
    touched: dict[tuple[str, bool], set[int]] = {}
    counts: dict[tuple[str, bool], int] = {}
    for access in launch.accesses:
        key = access.operand, access.write
        touched.setdefault(key, set()).update(_elements(access))
        counts[key] = counts.get(key, 0) + 1
    first: dict[int, str] = {}
    found = []
    for each in launch.operands:
        same = first.setdefault(each.address, each.name)
        read, written = (each.name, False), (each.name, True)
        found.append(
            BufferFacts(
                each.name, each.dtype, each.itemsize, each.address % SEGMENT,
                len(touched.get(read, ())), len(touched.get(written, ())),
                counts.get(read, 0), counts.get(written, 0), same if same != each.name else "",
            )
        )  # fmt: skip
    return tuple(found)


def _elements(access: ElementAccess) -> range:
    return range(access.element, access.element + access.count)


def _warp(
    operands: Iterable[LaunchedOperand], accesses: list[ElementAccess]
) -> Iterable[WarpAccess]:
    for write in (False, True):
        for operand in operands:
            of_threads: dict[int, list[ElementAccess]] = {}
            for access in accesses:
                if access.operand == operand.name and access.write == write:
                    of_threads.setdefault(access.thread, []).append(access)
            if of_threads:
                yield _warp_access(operand, write, dict(sorted(of_threads.items())))


def _warp_access(
    operand: LaunchedOperand, write: bool, of_threads: dict[int, list[ElementAccess]]
) -> WarpAccess:
    first = sorted({e for own in of_threads.values() for e in _elements(own[0])})
    segments = segments_of(first, operand.itemsize, operand.address)
    return WarpAccess(
        operand.name, write, len(of_threads), segments,
        _pattern(first, segments, [own[0].element for own in of_threads.values()], operand),
        tuple(first),
        tuple([_of_thread(thread, own) for thread, own in of_threads.items()]),
    )  # fmt: skip


def segments_of(elements: Iterable[int], itemsize: int, address: int) -> int:
    """How many segments of memory these elements of an operand at ``address`` lie in.

    >>> segments_of(range(32), 4, 0), segments_of(range(32), 4, 64), segments_of([0, 32], 4, 0)
    (1, 2, 2)
    """
    found: set[int] = set()
    for element in elements:
        start = address + element * itemsize
        found.update(range(start // SEGMENT, (start + itemsize - 1) // SEGMENT + 1))
    return len(found)


def _pattern(
    elements: list[int], segments: int, starts: list[int], operand: LaunchedOperand
) -> str:
    """``starts``: the element that each thread's access begins with."""
    if len(set(starts)) == 1:
        return SAME if len(starts) > 1 else TOGETHER
    neighbours = range(elements[0], elements[0] + len(elements))
    if segments <= segments_of(neighbours, operand.itemsize, operand.address):
        return TOGETHER
    return SCATTERED if segments >= len(set(starts)) else PARTLY


def _of_thread(thread: int, accesses: list[ElementAccess]) -> ThreadElements:
    elements = list(dict.fromkeys([e for access in accesses for e in _elements(access)]))
    return ThreadElements(thread, tuple(elements[:_MOST]), max(len(elements) - _MOST, 0))
