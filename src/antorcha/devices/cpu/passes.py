"""Results whose sizes depend on the data: one kernel counts, a second one writes.

Also what a kernel's status means that had no memory to work in, or met other operands in its second
pass than in its first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.core.structs import struct
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.errors import AntorchaError
from antorcha.lang.kernels import Description, Launch
from antorcha.lang.native import i64, inline, local, ptr, raw
from antorcha.lang.native import struct as native_struct
from antorcha.runtime.counted import CountedLaunch, Shape
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

alloc = lazy("antorcha.runtime.memory.alloc")
CHANGED = 1
"""A kernel's status: the operands are not what they were when they were counted."""
NO_MEMORY = 2
"""A kernel's status: there is no memory to work in."""


@native_struct
class PassWork:
    """What a kernel's jobs work on."""

    bufs: ptr[raw]
    desc: ptr[i64]
    offsets: ptr[i64]  # where each part's elements begin among all that are chosen, and their end
    failed: i64  # a status, from whichever job


@inline
def work_of(bufs, desc):
    """What the jobs of a kernel are told, which may fail."""
    work = local(PassWork)
    work.bufs = bufs
    work.desc = desc
    work.failed = 0
    return work


@inline
def place_parts(work, parts):
    """The parts' counts, each in the next part's place, become where the parts begin; gives the
    number of all."""
    work.offsets[0] = 0
    total = i64(0)
    for c in range(parts):
        total += work.offsets[c + 1]
        work.offsets[c + 1] = total
    return total


class Changed(AntorchaError, RuntimeError):
    """An operand was written to by another thread while an op ran."""


def failed(op: str) -> Callable[[int], BaseException]:
    """What a status of the kernels of ``op`` means."""

    def fail(code: int) -> BaseException:
        if code == NO_MEMORY:
            text = "{op}: there is no memory to work in"
            error: BaseException = alloc.OutOfMemory(text, reason="memory", op=op)
            return error
        return Changed(f"{op}: an operand was changed by another thread meanwhile")

    return fail


@struct
class Passes:
    """``count``: inputs -> scratch, of the shapes and dtypes ``scratch``. ``shapes``: the outputs',
    with Counts among their sizes: of the numbers in the first scratch from the one at ``first`` on.
    ``write``: scratch and inputs -> outputs. ``refuse``: see ``CountedLaunch``.
    """

    count: NativeKernel
    scratch: Sequence[tuple[tuple[int, ...], Any]]
    shapes: Sequence[Shape]
    write: NativeKernel
    first: int = 0
    refuse: Callable[[], BaseException] | None = None


def compile_passes(
    what: Description, found: Passes, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    """A launch whose ``fresh`` gives each output's layout and storage."""
    device = outs[0].device
    scratch = [L.contiguous(shape, dtype, device) for shape, dtype in found.scratch]
    unsized = [L.contiguous((0,), layout.dtype, device) for layout in outs]
    count = compile_native(what, found.count, scratch, ins)
    write = compile_native(what, found.write, unsized, [*scratch, *ins])
    fresh = CountedLaunch(
        count.into, write.into, [layout.nbytes for layout in scratch], found.first, found.shapes,
        unsized, found.refuse,
    )  # fmt: skip
    return Launch(fresh, _no_into)


def _no_into(*flat: Any) -> None:
    raise AssertionError("results whose sizes depend on the data are fresh")
