"""What the threads of simulated launches read and wrote, for whoever wants to look."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.sim.memory import memory
from antorcha.lang.native.grid import GridThread

SHARED = GridThread.fields["shared_bytes"][0]
MOST_ACCESSES = 1 << 18  # of a launch; further ones are counted only
ACCESS = np.dtype([("address", "i8"), ("nbytes", "i8"), ("block", "i8"), ("thread", "i8")])


@dataclass(frozen=True)
class LaunchedOperand:
    """A buffer of a launch: where it begins in the device's memory, and its elements' size."""

    name: str  # out0, out1, ..., in0, in1, ..., temp0, ...
    address: int
    itemsize: int
    dtype: str


@dataclass(frozen=True)
class ElementAccess:
    """A thread's read or write of an element; ``element`` counts from where the operand begins. An
    access of several elements at once is one of each."""

    block: int
    thread: int
    operand: str
    element: int
    write: bool


@dataclass
class SimulatedLaunch:
    """A kernel that ran over a grid on the device ``sim``.

    ``description`` names what was asked for (Pointwise, Reduce, ...), ``kernel`` the function that
    each thread ran. ``accesses`` holds the first of ``count`` accesses to the device's memory.
    """

    description: str
    kernel: str
    source: str  # file and line
    blocks: tuple[int, ...]
    threads: int
    operands: list[LaunchedOperand]
    shared_bytes: int = 0
    count: int = 0
    accesses: list[ElementAccess] = field(default_factory=list, repr=False)

    def of(self, block: int, thread: int) -> list[ElementAccess]:
        """What one thread read and wrote, in order."""
        return [a for a in self.accesses if a.block == block and a.thread == thread]


_launches: list[list[SimulatedLaunch]] = []


@contextlib.contextmanager
def recording() -> Iterator[list[SimulatedLaunch]]:
    """Notes every launch on ``sim`` meanwhile; gives the list that they are added to.

    >>> import antorcha as torch
    >>> x = torch.arange(4.).to("sim")
    >>> with torch.sim.recording() as launches:
    ...     y = x + 1
    >>> launches[0].blocks, launches[0].threads
    ((1,), 256)
    >>> [(a.operand, a.element) for a in launches[0].of(block=0, thread=0) if a.write]
    [('out0', 0), ('out0', 1), ('out0', 2), ('out0', 3)]
    """
    found: list[SimulatedLaunch] = []
    _launches.append(found)
    try:
        yield found
    finally:
        _launches.remove(found)


@contextlib.contextmanager
def noting(
    description: str, step: GridStep, words: np.ndarray[Any, Any], records: np.ndarray[Any, Any]
) -> Iterator[None]:
    """Around a launch: notes it, if somebody is recording. ``records``: the threads' own."""
    if not _launches:
        yield
        return
    room = np.zeros(MOST_ACCESSES, ACCESS)
    with memory.noting(room):
        yield
    count = int(memory.state[7])
    launch = SimulatedLaunch(
        description, step.kernel.__name__, _source_of(step.kernel.fn), step.blocks, step.threads,
        operands_of(step, words), int(records[SHARED : SHARED + 8].view(np.int64)[0]), count,
    )  # fmt: skip
    launch.accesses = list(_elements(launch.operands, room[:count]))
    for found in _launches:
        found.append(launch)


def _source_of(fn: Any) -> str:
    code = fn.__code__
    return f"{'/'.join(code.co_filename.split('/')[-3:])}:{code.co_firstlineno}"


def operands_of(step: GridStep, words: np.ndarray[Any, Any]) -> list[LaunchedOperand]:
    """The buffers that a launch was given, by its template and its words."""
    template = step.static.get("P")
    if template is None or not hasattr(template, "starts"):
        return []
    found = []
    for k, ty in enumerate(template.types):
        if not template.is_number[k]:
            name = f"out{k}" if k < template.nout else f"in{k - template.nout}"
            address = int(words[template.starts[k]])
            found.append(LaunchedOperand(name, address, ty.size, ty.name))
    return found


def _elements(operands: list[LaunchedOperand], accesses: Any) -> Iterator[ElementAccess]:
    homes = [memory.allocation_of(each.address) for each in operands]
    for access in accesses:
        address, write = int(access["address"]), bool(access["nbytes"] < 0)
        inside = [
            each for each, (start, nbytes) in zip(operands, homes, strict=True)
            if start <= address < start + nbytes
        ]  # fmt: skip
        inside.sort(key=lambda each: each.name.startswith("out") is not write)
        if inside:
            operand = inside[0]
            first = (address - operand.address) // operand.itemsize
            for k in range(max(abs(int(access["nbytes"])) // operand.itemsize, 1)):
                yield ElementAccess(
                    int(access["block"]), int(access["thread"]), operand.name, first + k, write
                )
