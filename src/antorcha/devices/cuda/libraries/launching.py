"""What all launches of libraries share: operands as addresses, copies between layouts, streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha import config
from antorcha.devices.gpu.launcher import check_inside
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, Pointwise
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage

Ints = Sequence[int]


def address_of(layout: Layout, storage: Storage, offset: int) -> int:
    """Where a tensor begins; raises where its elements are not all in its storage."""
    check_inside(layout, storage, offset)
    return storage.ptr + offset * layout.itemsize


def library_launch(
    device: Any, name: str, outs: Sequence[Layout], run: Callable[[Sequence[Any]], None]
) -> Launch:
    """A launch of tensors alone: ``run`` gets the storages and offsets of the outputs and inputs,
    and gives the work to the current stream."""
    gpu = device.gpu

    def into(*flat: Any) -> None:
        gpu.use()
        run(flat)
        stream = gpu.stream
        stream.note(name)
        if config.sync and stream.capture is None:
            stream.synchronize()

    def fresh(*flat: Any) -> Storage:
        storage: Storage = device.allocate(outs[0].nbytes)
        into(storage, 0, *flat)
        return storage

    return Launch(fresh, into)


def copying(device: Any, to: Layout, source: Layout) -> Callable[..., None]:
    """A kernel that copies a tensor to another layout: given both storages and offsets."""
    launch: Launch = device.compile(Pointwise((E.input_(0, source.dtype),)), (to,), (source,))
    return launch.into


def strided(shape: Ints, strides: Ints, like: Layout) -> Layout:
    """A layout of that shape and those strides, of the dtype and on the device of another."""
    return L.layout(tuple(shape), tuple(strides), like.dtype, like.device)
