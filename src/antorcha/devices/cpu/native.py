"""Native kernels: functions in the kernel language that an op brings along, compiled and launched.

With ``preload`` the first output begins as a copy of the first input: the copy is a pointwise
launch of its own, left out where the two are the same memory already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.devices.cpu.pointwise import compile_pointwise, slot
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, NativeKernel, Pointwise
from antorcha.runtime.buffers import CHECKED, check_buffers
from antorcha.runtime.launch import make_launch
from antorcha.runtime.launched import made_of
from antorcha.runtime.layout import Layout
from antorcha.runtime.storage import new_storage


def compile_native(what: NativeKernel, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    spec = what.fn.spec(**what.static)
    if CHECKED:
        check_buffers(spec, len(outs) + len(ins))
    work = what.work or outs[0].numel
    made = make_launch(
        spec.addr, what.desc, [slot(o) for o in outs], [slot(i) for i in ins], work, what.fail, what
    )
    if not what.preload:
        return Launch(made.fresh, made.into, (made, spec))
    out, source = outs[0], ins[0]
    copy = compile_pointwise(Pointwise((E.input_(0, source.dtype),)), (out,), (source,))
    alike = out.shape == source.shape and out.strides == source.strides
    launch: Launch = made_of(_preloaded, copy.into, made.into, alike, 2 * len(outs), out.nbytes)
    return launch


def _preloaded(
    copy: Callable[..., None], run: Callable[..., None], alike: bool, at: int, nbytes: int
) -> Launch:
    """The launch after a copy of the first input, the argument `at`, into the first output."""

    def into(*flat: Any) -> None:
        in_place = alike and flat[0] is flat[at] and flat[1] == flat[at + 1]
        if not in_place:
            copy(flat[0], flat[1], flat[at], flat[at + 1])
        run(*flat)

    def fresh(*flat: Any) -> Any:
        storage = new_storage(nbytes)
        into(storage, 0, *flat)
        return storage

    return Launch(fresh, into)
