"""Copies from and to the host as launches in machine code.

Their kernels are `run_send` and `run_fetch`, which call the driver. They come back with AGAIN where
Python has to make the GPU ready for the thread, or to raise what is wrong.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from antorcha.errors import MissingFeature
from antorcha.lang.native import i64, native, ptr, raw, struct
from antorcha.runtime.launch import AGAIN, make_launch
from antorcha.runtime.launched import slot_of
from antorcha.runtime.memory.device_copies import BY_STACK, MOST_SENT, fetch, send
from antorcha.runtime.memory.device_memory import DeviceHome, is_ready
from antorcha.runtime.memory.layout import Layout

if TYPE_CHECKING:
    from antorcha.devices.cuda.gpu import Gpu
    from antorcha.runtime.launched import LaunchWithOwner

CAPTURED = (
    "a copy from the host while a CUDA graph is captured: make tensors before the "
    "capture (a run of the same code before it makes what is made once), and copy_ "
    "new data into them before each replay"
)


@struct
class CopyWords:
    prepare: raw  # a Python callable
    home: raw
    nbytes: i64


@native(level="O2")
def run_send(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    c = ptr[CopyWords](desc)
    home = ptr[DeviceHome](c.home)
    if not is_ready(home):
        return AGAIN
    return send(home, i64(bufs[0]), bufs[1], c.nbytes)


@native(level="O2")
def run_fetch(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    c = ptr[CopyWords](desc)
    home = ptr[DeviceHome](c.home)
    if not is_ready(home):
        return AGAIN
    return fetch(home, bufs[0], i64(bufs[1]), c.nbytes)


class CopyBinding:
    """A copy between a GPU and the host, and its launch in machine code."""

    __slots__ = ("__weakref__", "gpu", "prepare", "sends")

    def __init__(self, gpu: Gpu, sends: bool) -> None:
        self.gpu, self.sends = gpu, sends
        self.prepare = functools.partial(_prepare, weakref.ref(self))  # (held by the launch)

    def fail(self, code: int) -> BaseException:
        """What the driver says of a copy."""
        name = "cuMemcpyHtoDAsync" if self.sends else "cuMemcpyDtoHAsync"
        return self.gpu.fault(name, code)


def _prepare(binding_of: Callable[[], CopyBinding | None]) -> None:
    """What a copy needs before it runs: the GPU, for this thread, and that nothing is wrong."""
    binding = binding_of()
    assert binding is not None
    stream = binding.gpu.stream
    if not binding.sends:
        stream.synchronize()
    elif stream.capture is not None:
        raise MissingFeature(CAPTURED)
    binding.gpu.make_ready()


def copy_launch(
    gpu: Gpu, room: int, layout: Layout, out: Layout, wait: bool
) -> LaunchWithOwner | None:
    """A copy from a layout to one of the same strides, one in the GPU's memory (where ``room`` is
    added to sizes) and one in the host's; None where it is not one piece, or too large to be
    sent so. What is not to ``wait`` for pinned memory to be read is sent by the stack."""
    sends = out.device.type == "cuda"
    if layout.strides != out.strides or layout.low or layout.high != layout.numel:
        return None
    if not out.nbytes or (sends and out.nbytes > (MOST_SENT if wait else BY_STACK)):
        return None
    binding = CopyBinding(gpu, sends)
    kernel = run_send if sends else run_fetch
    desc = [id(binding.prepare), gpu.home.address, out.nbytes]
    slots = [slot_of(out)], [slot_of(layout)]
    address, more = kernel.spec().addr, room if sends else 0
    return make_launch(address, desc, *slots, 0, binding.fail, None, room=more)
