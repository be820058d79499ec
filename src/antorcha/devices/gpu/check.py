"""Check on a GPU: the first element that is not right, in row-major order.

The threads that find a wrong element agree on the first by an atomic maximum of how many elements
come after it; one thread then leaves its value as the plan's status. A block alone does both; of
several blocks, a second kernel does the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.structs import struct
from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    offsets_of,
    operand_place,
)
from antorcha.lang.kernels import Check
from antorcha.lang.native import atomic_max, i64, inline, native, ptr, static, void
from antorcha.lang.native.grid import barrier, block, device_pointer, thread
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

EACH = 16  # elements of a thread
NEVER = -(1 << 62)
"""Stands for an element that is right, where none is."""


class CheckGrid(GridTemplate):
    """What a check is compiled for. ``stage``: "find" writes which element is the first wrong one,
    "report" its value, "alone" both, in one block."""

    threads = THREADS

    def __init__(self, ins: Sequence[Layout], index: Ty, dims: int, stage: str) -> None:
        super().__init__((), ins, index)
        self.dims, self.stage = dims, stage

    def __native_key__(self) -> str:
        return f"{self.operands_key()}|{self.dims}|{self.stage}|{self.threads}"


@inline
def element_at(P, words, x, i):
    at = offsets_of(P, words, static(P.head + 6), P.dims, 1, i)
    return i64(x[at[0]])


@inline
def find_wrong(P, words, x, status):
    """Leaves in the status, for the first wrong element, how many elements there are from it on."""
    n, low, high, besides = [words[P.head + 1 + k] for k in static(range(4))]
    i = i64(block()) * static(P.threads * EACH) + i64(thread())
    for _u in range(EACH):
        if i < n:
            v = element_at(P, words, x, P.I(i))
            if v != besides and (v < low or v >= high):
                atomic_max(status, n - i, "monotonic")
        i += P.threads


@inline
def report_wrong(P, words, x, status):
    """Replaces that by the element's difference to one that is right."""
    left = status[0]
    if left > 0:
        v = element_at(P, words, x, P.I(words[P.head + 1] - left))
        status[0] = v - words[P.head + 5]


@native
def check_grid(words: ptr[i64], *, P) -> void:
    """Words: the status' address; the number of elements, the least, one past the greatest, another
    one that is right, one that is right; the dims."""
    x = operand_place(P, words, 0)
    status = device_pointer(i64, words[P.head])
    if P.stage != "report":
        find_wrong(P, words, x, status)
    if P.stage == "alone":
        barrier()
    if P.stage != "find" and thread() == 0:
        report_wrong(P, words, x, status)


@struct
class WrongElement:
    """The exception for a status."""

    refuse: Callable[[int], BaseException]
    right: int
    unsigned: bool

    def __call__(self, status: int) -> BaseException:
        value = (status + self.right) % (1 << 64)
        return self.refuse(value if self.unsigned or value < 1 << 63 else value - (1 << 64))


def plan_check(what: Check, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    (x,) = ins
    if x.dtype.kind not in "biu":
        raise Unsupported(f"a check of {x.dtype}")
    if not x.numel:
        return GridPlan(())
    besides = what.low if what.besides is None else what.besides
    if not all([-(1 << 63) <= n < 1 << 63 for n in (what.low, what.high, besides)]):
        raise Unsupported("bounds of more than 64 bits")
    if what.low < what.high:
        right = what.low
    else:
        right = NEVER if what.besides is None else what.besides
        besides = right
    sizes, columns = collapse(x.shape, [x.strides])
    if len(sizes) > MOST_DIMS:
        raise Unsupported(f"{len(sizes)} dims")
    index = index_type(ins, x.numel)
    words = (x.numel, what.low, what.high, besides, right, *dim_words(sizes, columns))

    def step(stage: str, blocks: tuple[int, ...]) -> GridStep:
        template = CheckGrid(ins, index, len(sizes), stage)
        return GridStep(check_grid, {"P": template}, blocks, THREADS, (0, 1), words)

    blocks = blocks_for(x.numel, THREADS * EACH)
    if blocks == (1,):
        steps: tuple[GridStep, ...] = (step("alone", blocks),)
    else:
        steps = (step("find", blocks), step("report", (1,)))
    return GridPlan(steps, (8,), 0, WrongElement(what.refuse, right, x.dtype.name == "uint64"))
