"""The template of Check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.structs import struct
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.emit import TYPES, Unsupported
from antorcha.lang.kernels import Check, Launch
from antorcha.lang.native import i64, native, ptr, raw, select
from antorcha.runtime.memory.layout import Layout

NOUGHT = -(1 << 62)
"""The status for an element that is 0."""


@native
def check_kernel(bufs: ptr[raw], desc: ptr[i64], *, T) -> i64:
    """desc: the number of elements, the least, one past the greatest, another one that is right.
    An element that is not is the status."""
    values = ptr[T](bufs[0])
    low = desc[1]
    high = desc[2]
    besides = desc[3]
    for i in range(desc[0]):
        v = i64(values[i])
        if v != besides and (v < low or v >= high):
            return select(v == 0, i64(NOUGHT), v)
    return 0


@struct
class BadElement:
    """The exception for a kernel's status."""

    refuse: Callable[[int], BaseException]

    def __call__(self, status: int) -> BaseException:
        return self.refuse(0 if status == NOUGHT else status)


def compile_check(what: Check, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (layout,) = ins
    if not layout.contiguous or layout.dtype.kind not in "iu":
        raise Unsupported
    besides = what.low if what.besides is None else what.besides
    desc = (layout.numel, what.low, what.high, besides)
    kernel = NativeKernel(
        check_kernel, {"T": TYPES[layout.dtype.name]}, desc, BadElement(what.refuse),
        max(layout.numel, 1),
    )  # fmt: skip
    return compile_native(what, kernel, outs, ins)
