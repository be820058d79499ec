"""Launches of cuDNN in machine code: a convolution, asked of the library without the interpreter.

The kernel of the launch is `run_convolution`. Operands that the library's plan cannot see where
they are, it leaves to a Python callable, which copies them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.devices.cuda.libraries import cudnn
from antorcha.devices.cuda.libraries.machine_code import (
    address_of,
    kernel_t,
    place_of,
    run_other,
    take_scratch,
)
from antorcha.devices.cuda.native_launch import NO_MEMORY, owner_of
from antorcha.devices.cuda.streams import name_number
from antorcha.lang.native import array, func, i32, i64, local, native, ptr, raw, struct
from antorcha.runtime.cpython import Py_DecRef, PyLong_FromLongLong, PyObject_Vectorcall
from antorcha.runtime.launch import AGAIN, make_launch
from antorcha.runtime.launched import slot_of
from antorcha.runtime.memory.device_memory import DeviceHome, DevicePool, is_ready, note_launch
from antorcha.runtime.memory.layout import Layout

if TYPE_CHECKING:
    from antorcha.devices.cuda.libraries.convolutions import Convolution
    from antorcha.runtime.launched import LaunchWithOwner

create_t = func[i32, i32, ptr[raw]]
set_attribute_t = func[i32, raw, i32, i32, i64, ptr[raw]]
of_one_t = func[i32, raw]
of_two_t = func[i32, raw, raw]
of_three_t = func[i32, raw, raw, raw]
TENSORS = 3
PLACES, NUMBERS, WORKSPACE = 1001, 1000, 1003
"""Attributes of a variant pack."""
ADDRESSES, INTEGERS = cudnn.TYPES["address"][0], cudnn.TYPES["integer"][0]


@struct
class ConvolutionWords:
    """The description of a launch: cuDNN's functions, the plan, what it needs. ``after``: another
    launch's kernel, which adds the bias; null: there is none."""

    prepare: raw  # a Python callable
    home: raw
    name: i64
    set_stream: of_two_t
    create: create_t
    set_attribute: set_attribute_t
    finalize: of_one_t
    execute: of_three_t
    destroy: of_one_t
    handle: raw
    plan: raw
    room: i64
    aligned: i64
    copying: raw  # a Python callable
    after: kernel_t
    after_words: raw
    numbers: array[i64, TENSORS]


@native
def run_with_copies(p: ptr[ConvolutionWords], bufs: ptr[raw]) -> i64:
    """By Python, given where the operands are."""
    args = local(raw, TENSORS)
    for k in range(TENSORS):
        args[k] = PyLong_FromLongLong(i64(bufs[k]))
    done = raw(0)
    if args[0] is not None and args[1] is not None and args[2] is not None:
        done = PyObject_Vectorcall(p.copying, args, TENSORS, None)
    for k in range(TENSORS):
        if args[k] is not None:
            Py_DecRef(args[k])
    if done is None:
        return NO_MEMORY
    Py_DecRef(done)
    return 0


@native
def fill_pack(p: ptr[ConvolutionWords], pack: raw, bufs: ptr[raw], workspace: raw) -> i32:
    """Says where the tensors and the scratch memory are."""
    room = local(raw)
    room[0] = workspace
    status = p.set_attribute(pack, i32(PLACES), i32(ADDRESSES), TENSORS, bufs)
    if status == 0:
        numbers = ptr[raw](raw(p.numbers))
        status = p.set_attribute(pack, i32(NUMBERS), i32(INTEGERS), TENSORS, numbers)
    if status == 0:
        status = p.set_attribute(pack, i32(WORKSPACE), i32(ADDRESSES), 1, room)
    if status == 0:
        status = p.finalize(pack)
    return status


@native
def execute_plan(p: ptr[ConvolutionWords], bufs: ptr[raw], stream: raw) -> i64:
    """Gives the convolution to a stream; the library's status."""
    scratch = raw(0)
    if p.room != 0:
        scratch = take_scratch(ptr[DeviceHome](p.home), p.room)
        if scratch is None:
            return NO_MEMORY
    status = p.set_stream(p.handle, stream)
    pack = local(raw)
    if status == 0:
        status = p.create(i32(cudnn.PACK), pack)
        if status == 0:
            status = fill_pack(p, pack[0], bufs, place_of(scratch))
            if status == 0:
                status = p.execute(p.handle, p.plan, pack[0])
            p.destroy(pack[0])
    if scratch is not None:
        Py_DecRef(scratch)
    return i64(status)


@native(level="O2")
def run_convolution(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    p = ptr[ConvolutionWords](desc)
    home = ptr[DeviceHome](p.home)
    if not is_ready(home):
        return AGAIN
    pool = ptr[DevicePool](home.pool)
    if (i64(bufs[0]) | i64(bufs[1]) | i64(bufs[2])) & (p.aligned - 1) == 0:
        code = execute_plan(p, bufs, pool.stream)
    else:
        code = run_with_copies(p, bufs)
    note_launch(pool, p.name)
    if code == 0 and p.after_words is not None:
        given = local(raw, 3)
        given[0] = bufs[0]
        given[1] = bufs[0]
        given[2] = bufs[3]
        code = run_other(p.after, given, ptr[i64](p.after_words))
    return code


class ConvolutionBinding:
    """A convolution and its launch in machine code."""

    __slots__ = ("__weakref__", "convolution", "copying", "prepare")

    def __init__(self, convolution: Convolution) -> None:
        self.convolution = convolution
        self.prepare = convolution.device.gpu.make_ready
        self.copying = functools.partial(_copying, weakref.ref(convolution))

    def fail(self, code: int) -> BaseException:
        """What the library says of a launch."""
        return self.convolution.dnn.error("cudnnBackendExecute", code)

    def description(self) -> list[int]:
        """The words of a `ConvolutionWords`."""
        of, call = self.convolution, self.convolution.dnn.functions
        functions = (
            "cudnnSetStream", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
            "cudnnBackendFinalize", "cudnnBackendExecute", "cudnnBackendDestroyDescriptor",
        )  # fmt: skip
        after, after_words = 0, 0
        if of.add_bias is not None:
            owner = owner_of(of.add_bias.keep)()
            assert owner is not None
            after, after_words = owner.kernel, owner.address
        return [
            id(self.prepare), of.device.gpu.home.address, name_number("Conv"),
            *[address_of(call[name]) for name in functions], of.handle, of.plan.handle,
            of.workspace and of.workspace + of.device.room, of.aligned, id(self.copying), after,
            after_words, *range(TENSORS),
        ]  # fmt: skip


def _copying(convolution_of: Callable[[], Convolution | None], *places: int) -> None:
    convolution = convolution_of()
    assert convolution is not None
    convolution.run_copied(places)


def bound(
    convolution: Convolution, what: Any, outs: Sequence[Layout], ins: Sequence[Layout]
) -> LaunchWithOwner:
    """A convolution as a launch in machine code."""
    binding = ConvolutionBinding(convolution)
    slots = [slot_of(o) for o in outs], [slot_of(i) for i in ins]
    address, room = run_convolution.spec().addr, convolution.device.room
    return make_launch(address, binding.description(), *slots, 0, binding.fail, what, room=room)
