"""Native kernels: functions in the kernel language that an op brings along, compiled and launched.

With ``preload`` the first output begins as a copy of the first input: the copy is a pointwise
launch of its own, left out where the two are the same memory already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.pointwise import compile_pointwise
from antorcha.devices.cpu.template import launch
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, NativeKernel, Pointwise
from antorcha.runtime.buffers import CHECKED, check_buffers
from antorcha.runtime.layout import Layout
from antorcha.runtime.sequence import Sequence as Steps
from antorcha.runtime.storage import new_storage


def compile_native(what: NativeKernel, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    spec = what.fn.spec(**what.static)
    if CHECKED:
        check_buffers(spec, len(outs) + len(ins))
    work = what.work or outs[0].numel
    made = launch(spec, what.desc, outs, ins, work, what, what.fail)
    return _preloaded(made, outs, ins) if what.preload else made


def _preloaded(made: Launch, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    """A launch after a copy of the first input into the first output."""
    out, source = outs[0], ins[0]
    copy = compile_pointwise(Pointwise((E.input_(0, source.dtype),)), (out,), (source,))
    first, count = 2 * len(outs), sum([2 if isinstance(i, Layout) else 1 for i in ins])
    into = Steps(first + count)
    if out.shape == source.shape and out.strides == source.strides:
        into.unless_same(0, 1, first, first + 1)
    into.into(copy.into, 0, 1, first, first + 1)
    into.into(made.into, *range(first + count))
    fresh = Steps(count)
    room = fresh.allocate(out.nbytes, new_storage), fresh.constant(0)
    fresh.into(copy.into, *room, 0, 1)
    fresh.into(made.into, *room, *range(count))
    return Launch(fresh.bound(room[0]), into.bound())
