"""What the threads of simulated launches read and wrote, for whoever wants to look."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.sim.memory import memory
from antorcha.devices.sim.streams import synchronize
from antorcha.lang.native.grid import GridThread

SHARED = GridThread.fields["shared_bytes"][0]
MOST_ACCESSES = 1 << 18  # of a launch; further ones are counted only
ACCESS = np.dtype([("address", "i8"), ("nbytes", "i8"), ("block", "i8"), ("thread", "i8")])


@dataclass(frozen=True)
class LaunchedOperand:
    """A buffer of a launch: where it begins in the device's memory, and its elements' size."""

    # out0, out1, ..., in0, in1, ...; temp0, ... of what only a plan's kernels see; of a launch by
    # hand operand0, operand1, ...
    name: str
    address: int
    itemsize: int
    dtype: str  # of the kernel language; of a temporary "b32" and the like: so many bits


@dataclass(frozen=True)
class ElementAccess:
    """A thread's read or write of an element; ``element`` counts from where the operand begins.
    A wide access is to ``count`` elements, of which ``element`` is the first."""

    block: int
    thread: int
    operand: str
    element: int
    write: bool
    count: int = 1


@dataclass
class SimulatedLaunch:
    """A kernel that ran over a grid on the device ``sim``.

    ``description`` names what was asked for (Pointwise, Reduce, ...), ``kernel`` the function that
    each thread ran. Of ``count`` accesses to the device's memory the first ``noted`` were noted;
    ``accesses`` holds those of them that are to operands.
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
    filename: str = field(default="", repr=False)  # the whole path of the kernel's file

    @property
    def noted(self) -> int:
        """How many accesses were noted: the first ones."""
        return min(self.count, MOST_ACCESSES)

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
    >>> [(a.operand, a.element, a.count) for a in launches[0].of(block=0, thread=0)]
    [('in0', 0, 4), ('out0', 0, 4)]
    """
    found: list[SimulatedLaunch] = []
    synchronize()
    _launches.append(found)
    try:
        yield found
        synchronize()
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
        filename=step.kernel.fn.__code__.co_filename,
    )  # fmt: skip
    launch.operands += temporaries_of(step, words, launch.operands, room[:count])
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


def temporaries_of(
    step: GridStep, words: np.ndarray[Any, Any], known: list[LaunchedOperand], accesses: Any
) -> list[LaunchedOperand]:
    """The buffers of a launch that are neither outputs nor inputs: their addresses are among its
    words, and the width of the first access to one is taken for its elements' size. Of a launch by
    hand these are all buffers."""
    found: list[LaunchedOperand] = []
    addresses = {each.address for each in known}
    by_hand = not step.static.get("P")
    for k, address in enumerate(map(int, words[: 2 * len(step.operands)])):
        start, nbytes = memory.allocation_of(address)
        if address in addresses or not (start == address or (by_hand and start)):
            continue
        addresses.add(address)
        inside = (accesses["address"] >= start) & (accesses["address"] < start + nbytes)
        if inside.any():
            size = abs(int(accesses["nbytes"][inside.argmax()]))
            name = f"operand{k}" if by_hand else f"temp{len(found)}"
            found.append(LaunchedOperand(name, address, size, f"b{8 * size}"))
    return found


def _elements(operands: list[LaunchedOperand], accesses: Any) -> Iterator[ElementAccess]:
    homes = [memory.allocation_of(each.address) for each in operands]
    for access in accesses:
        address, nbytes = int(access["address"]), int(access["nbytes"])
        write = nbytes < 0
        inside = [
            each for each, (start, length) in zip(operands, homes, strict=True)
            if start <= address < start + length
        ]  # fmt: skip
        if inside:
            operand = min(inside, key=lambda each: _unlikely(each, address, write))
            yield ElementAccess(
                int(access["block"]), int(access["thread"]), operand.name,
                (address - operand.address) // operand.itemsize, write,
                max(abs(nbytes) // operand.itemsize, 1),
            )  # fmt: skip


def _unlikely(operand: LaunchedOperand, address: int, write: bool) -> tuple[bool, bool, int]:
    """Of operands in one allocation the least has the access: an output if it writes, an input if
    it reads, and of these the one that begins nearest before the address."""
    away = address - operand.address
    return operand.name.startswith("out") is not write, away < 0, abs(away)
