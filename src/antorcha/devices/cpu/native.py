"""Templates that are one native function, whatever it computes: compiled and launched.

With ``preload`` the first output begins as a copy of the first input: the copy is a pointwise
launch of its own, left out where the two are the same memory already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.structs import struct
from antorcha.devices.cpu.pointwise import compile_pointwise
from antorcha.devices.cpu.template import launch
from antorcha.lang import expr as E
from antorcha.lang.kernels import Description, Launch, Pointwise
from antorcha.runtime.buffers import CHECKED, check_buffers
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import new_storage
from antorcha.runtime.sequence import Sequence as Steps


@struct
class NativeKernel:
    """A native function of ABI ``(bufs: ptr[raw], desc: ptr[i64]) -> i64``; bufs: outs, then ins.

    ``static`` fixes its compile-time parameters; ``desc`` is what it needs to know of the layouts.
    A status other than 0 is turned into an exception by ``fail``. ``work``: elements it handles, if
    not those of the first output. With ``preload`` the first output starts as a copy of the first
    input, and the function writes over it.
    """

    fn: Any
    static: dict[str, Any]
    desc: tuple[int, ...]
    fail: Callable[[int], BaseException] | None = None
    work: int = 0
    preload: bool = False


def compile_native(
    what: Description, kernel: NativeKernel, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    """The launch of a description's kernel."""
    spec = kernel.fn.spec(**kernel.static)
    if CHECKED:
        check_buffers(spec, len(outs) + len(ins))
    work = kernel.work or outs[0].numel
    result = launch(spec, kernel.desc, outs, ins, work, what, kernel.fail)
    return _preloaded(result, outs, ins) if kernel.preload else result


def _preloaded(result: Launch, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    """A launch after a copy of the first input into the first output."""
    out, source = outs[0], ins[0]
    copy = compile_pointwise(Pointwise((E.input_(0, source.dtype),)), (out,), (source,))
    first, count = 2 * len(outs), sum([2 if isinstance(i, Layout) else 1 for i in ins])
    into = Steps(first + count)
    if out.shape == source.shape and out.strides == source.strides:
        into.unless_same(0, 1, first, first + 1)
    into.into(copy.into, 0, 1, first, first + 1)
    into.into(result.into, *range(first + count))
    fresh = Steps(count)
    room = fresh.allocate(out.nbytes, new_storage), fresh.constant(0)
    fresh.into(copy.into, *room, 0, 1)
    fresh.into(result.into, *room, *range(count))
    return Launch(fresh.bound(room[0]), into.bound())
