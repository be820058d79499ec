"""Ops whose results' sizes depend on the data: counted by one kernel, written by a second.

The function of such an op plans a ``Host`` description that is dynamic: what it is, and what the
reference device runs. Where the CPU device has kernels for it, ``passes`` says which::

    @found(function=False)
    def nonzero_columns(input: Tensor): ... return Planned(Host(run, dynamic=True), ...)

    @nonzero_columns.passes
    def _(input):
        return Passes(count, scratch, shapes, write)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.device import backend
from antorcha.errors import AntorchaError
from antorcha.lang.kernels import NativeKernel
from antorcha.ops.kernel import KernelOp
from antorcha.runtime import layout as L
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.tensor import Tensor
from antorcha.structs import struct

if TYPE_CHECKING:
    from antorcha.runtime.storage import Storage

NO_MEMORY = 2
"""A kernel's status: there is no memory to work in. Others from 1 to 15: an operand was changed."""


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
    """``count``: operands -> scratch, of the shapes and dtypes ``scratch``. ``shapes``: the first
    ``words`` numbers of the first scratch -> the results' (shape, dtype). ``write``: scratch and
    operands -> results."""

    count: NativeKernel
    scratch: Sequence[tuple[tuple[int, ...], Any]]
    shapes: Callable[[Sequence[int]], Sequence[tuple[tuple[int, ...], Any]]]
    write: NativeKernel
    words: slice = slice(0, 1)


class FoundOp(KernelOp):
    """See the module's docstring."""

    two_passes: Callable[..., Passes | None] | None = None

    def passes(self, fn: Callable[..., Passes | None]) -> None:
        """Decorates the function of the op's layouts and values that gives its kernels."""
        self.two_passes = fn

    def make_plan(self, values: list[Any], outs: Any) -> Plan:
        plan = super().make_plan(values, outs)
        device = values[0]._layout.device
        where = backend(device)
        if where.name != "cpu" or self.two_passes is None:
            return plan
        seen = [v._layout if isinstance(v, Tensor) else v for v in values]
        found = self.two_passes(*seen)
        if found is None:
            return plan
        ins = [lay for lay in plan.tensors if lay is not None]
        scratch = [L.contiguous(shape, dtype, device) for shape, dtype in found.scratch]
        unsized = [L.contiguous((0,), lay.dtype, device) for lay in plan.outs]
        count = where.compile(found.count, scratch, ins)
        write = where.compile(found.write, unsized, [*scratch, *ins])
        sizes, allocate, shapes, words = (
            [lay.nbytes for lay in scratch], where.allocate, found.shapes, found.words
        )  # fmt: skip

        def fresh(*flat: Any) -> list[tuple[L.Layout, Storage]]:
            room: list[Any] = []
            for nbytes in sizes:
                room += (allocate(nbytes), 0)
            count.into(*room, *flat)
            numbers = memoryview(room[0]).cast("q")[words].tolist()
            made: list[tuple[L.Layout, Storage]] = []
            results: list[Any] = []
            for shape, dtype in shapes(numbers):
                lay = L.contiguous(shape, dtype, device)
                storage = allocate(lay.nbytes)
                made.append((lay, storage))
                results += (storage, 0)
            write.into(*results, *room, *flat)
            return made

        plan.fresh = fresh
        return plan


def found(**options: Any) -> Callable[[Callable[..., Any]], FoundOp]:
    """Decorates a function of layouts as an op of results whose sizes depend on the data."""
    return lambda fn: FoundOp(fn, **options)
