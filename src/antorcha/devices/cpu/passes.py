"""Results whose sizes depend on the data: one kernel counts, a second one writes.

Also what a kernel's status means that had no memory to work in, or met other operands in its second
pass than in its first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.errors import AntorchaError
from antorcha.lang.kernels import Description, Launch
from antorcha.runtime import layout as L
from antorcha.runtime.layout import Layout
from antorcha.runtime.storage import Storage, new_storage
from antorcha.structs import struct

CHANGED = 1
"""A kernel's status: the operands are not what they were when they were counted."""
NO_MEMORY = 2
"""A kernel's status: there is no memory to work in."""


class Changed(AntorchaError, RuntimeError):
    """An operand was written to by another thread while an op ran."""


def failed(op: str) -> Callable[[int], BaseException]:
    """What a status of the kernels of ``op`` means."""

    def fail(code: int) -> BaseException:
        if code == NO_MEMORY:
            from antorcha.runtime.alloc import OutOfMemory

            return OutOfMemory("{op}: there is no memory to work in", reason="memory", op=op)
        return Changed(f"{op}: an operand was changed by another thread meanwhile")

    return fail


@struct
class Passes:
    """``count``: inputs -> scratch, of the shapes and dtypes ``scratch``. ``shapes``: the numbers
    ``words`` of the first scratch -> the outputs' shapes. ``write``: scratch and inputs -> outputs.
    """

    count: NativeKernel
    scratch: Sequence[tuple[tuple[int, ...], Any]]
    shapes: Callable[[Sequence[int]], Sequence[tuple[int, ...]]]
    write: NativeKernel
    words: slice = slice(0, 1)


def compile_passes(
    what: Description, found: Passes, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    """A launch whose ``fresh`` gives each output's layout and storage."""
    device = outs[0].device
    dtypes = [lay.dtype for lay in outs]
    scratch = [L.contiguous(shape, dtype, device) for shape, dtype in found.scratch]
    unsized = [L.contiguous((0,), dtype, device) for dtype in dtypes]
    count = compile_native(what, found.count, scratch, ins)
    write = compile_native(what, found.write, unsized, [*scratch, *ins])
    sizes, shapes, words = [lay.nbytes for lay in scratch], found.shapes, found.words

    def fresh(*flat: Any) -> list[tuple[Layout, Storage]]:
        room: list[Any] = []
        for nbytes in sizes:
            room += (new_storage(nbytes), 0)
        count.into(*room, *flat)
        numbers = memoryview(room[0]).cast("q")[words].tolist()
        made: list[tuple[Layout, Storage]] = []
        results: list[Any] = []
        for shape, dtype in zip(shapes(numbers), dtypes, strict=True):
            lay = L.contiguous(shape, dtype, device)
            storage = new_storage(lay.nbytes)
            made.append((lay, storage))
            results += (storage, 0)
        write.into(*results, *room, *flat)
        return made

    return Launch(fresh, _no_into)


def _no_into(*flat: Any) -> None:
    raise AssertionError("results whose sizes depend on the data are fresh")
