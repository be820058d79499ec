"""The device ``cuda``: plans of ``devices/gpu`` launched on the current stream; NumPy does more.

Calls return when the GPU has been asked, not when it is done. What reads a result waits for the
current stream. A copy from memory of the host that is not pinned has read it when the call returns
(the driver sees to that); from pinned memory the GPU reads by itself, so the call waits, unless the
program says ``non_blocking=True``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha import config
from antorcha.core import dtypes
from antorcha.core.device import CPU, Device
from antorcha.core.memo import kept
from antorcha.devices.cuda import copies, modules, native_launch
from antorcha.devices.cuda.copies import CAPTURED
from antorcha.devices.cuda.gpu import Gpu, gpu
from antorcha.devices.cuda.libraries import compile_by_library
from antorcha.devices.cuda.memory import pinned
from antorcha.devices.cuda.streams import Report, StreamHandle
from antorcha.devices.gpu.frame import GridPlan, GridStep, planning
from antorcha.devices.gpu.launcher import LoadedPlan, Words, check_inside, compile_for
from antorcha.devices.gpu.templates import attends
from antorcha.errors import MissingFeature
from antorcha.lang import expr as E
from antorcha.lang.kernels import Description, Launch, MatMul, Pointwise
from antorcha.runtime.launched import LaunchWithOwner
from antorcha.runtime.memory import device_memory
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import (
    Storage,
    as_numpy,
    new_storage,
    rooms,
    wrap,
    wrap_elsewhere,
)
from antorcha.runtime.philox import PhiloxGenerator

MOST_COPIES = 4096  # kernels for copies between layouts that are kept
Array = np.ndarray[Any, Any]


class GpuStatus:
    """The address of a word for a plan's report: what is in it is told at the next wait."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address


class CudaBackend:
    """A GPU as a device; there is one object for each."""

    name = "cuda"
    host_memory = False
    runs_together = True

    def __init__(self, index: int) -> None:
        self.gpu: Gpu = gpu(index)
        self.copies: dict[Any, Launch] = {}
        self.moved: dict[Any, LaunchWithOwner | None] = {}
        self.room = device_memory.room(0, index)
        rooms[self.allocate] = self.room  # (machine code allocates for plans)

    def compile(self, what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
        by_library = compile_by_library(self, what, outs, ins)
        return compile_for(self, what, outs, ins) if by_library is None else by_library

    def plan_here(self) -> None:
        numbers = self.gpu.properties.numbers
        planning.capability = self.gpu.own_capability
        planning.multiprocessors = numbers["multi_processor_count"]
        planning.shared_bytes = numbers["shared_memory_per_block_optin"]

    def multiplies(self, what: MatMul, dtype: dtypes.dtype) -> bool:
        return True

    def attends(self, dtype: dtypes.dtype, features: int, gradient: bool) -> bool:
        return attends(dtype, features, gradient)

    def allocate(self, nbytes: int) -> Storage:
        """A storage in the GPU's memory, undefined."""
        return new_storage(nbytes + self.room)

    # ---- from and to the host
    def from_host(self, array: Array, out: Layout, wait: bool = True) -> Storage:
        """A storage with an array's elements; with ``wait`` the array may change afterwards."""
        storage = self.allocate(out.nbytes)
        if out.numel:
            self._send(storage.ptr, _as_it_lies(array, out), wait)
        return storage

    def to_host(self, layout: Layout, storage: Storage, offset: int) -> Array:
        """The elements, when all that the current stream was given before is done."""
        if not layout.numel:
            return np.empty(tuple(layout.shape), layout.dtype.np)
        check_inside(layout, storage, offset)
        layout, storage, offset = self._close_together(layout, storage, offset)
        out = L.layout(tuple(layout.shape), layout.strides, layout.dtype, CPU)
        launch = self._moved(layout, out, True)
        if launch is not None:
            steps = tuple([s * layout.itemsize for s in layout.strides])
            host = launch.fresh(storage, offset)
            return as_numpy(host, 0, tuple(layout.shape), steps, layout.dtype.np)
        nbytes = (layout.high - layout.low) * layout.itemsize
        data = np.empty(nbytes, np.uint8)
        self._fetch(data.ctypes.data, layout, storage, offset, nbytes)
        self.gpu.stream.synchronize()
        return _seen_as(data, layout)

    def write(self, array: Any, layout: Layout, storage: Storage, offset: int) -> None:
        """Copies an array of the host's to where a tensor lies."""
        if not layout.numel:
            return
        check_inside(layout, storage, offset)
        array = np.broadcast_to(np.asarray(array, layout.dtype.np), tuple(layout.shape))
        whole = L.contiguous(tuple(layout.shape), layout.dtype, layout.device)
        if layout.contiguous:
            self._send(storage.ptr + offset * layout.itemsize, _as_it_lies(array, whole), True)
        else:
            self._copying(layout, whole).into(storage, offset, self.from_host(array, whole), 0)

    def moving(self, layout: Layout, out: Layout, wait: bool) -> LaunchWithOwner | None:
        """A copy between this device and the host's memory in machine code; None where it is
        another's."""
        if config.sync or not (wait or out.device.type == "cuda"):
            return None
        return copies.copy_launch(self.gpu, self.room, layout, out, wait)

    def _moved(self, layout: Layout, out: Layout, wait: bool) -> LaunchWithOwner | None:
        key = layout, out, wait
        return kept(self.moved, key, lambda _: self.moving(layout, out, wait), MOST_COPIES)

    def receive(
        self, source: Any, layout: Layout, storage: Storage, offset: int, out: Layout, wait: bool
    ) -> Storage:
        """A copy of another device's tensor, here."""
        if isinstance(source, CudaBackend):
            return self._from_peer(source, layout, storage, offset, out)
        if source.host_memory:
            launch = self._moved(layout, out, wait)
            if launch is not None:
                copy: Storage = launch.fresh(storage, offset)
                return copy
        return self.from_host(source.to_host(layout, storage, offset), out, wait)

    def deliver(
        self, layout: Layout, storage: Storage, offset: int, out: Layout
    ) -> Storage:  # fmt: skip
        """A copy in pinned memory of the host, which is there when the stream has been waited
        for."""
        block = pinned.allocate(out.nbytes)
        if out.numel:
            check_inside(layout, storage, offset)
            if layout.strides != out.strides:
                lies = L.layout(tuple(out.shape), out.strides, out.dtype, layout.device)
                fresh = self._copying(lies, layout).fresh(storage, offset)
                layout, storage, offset = lies, fresh, 0
            self._fetch(block.address, layout, storage, offset, out.nbytes)
            block.used_by(self.gpu.stream)
        return wrap(block.address, out.nbytes, block)

    def _from_peer(
        self, source: CudaBackend, layout: Layout, storage: Storage, offset: int, out: Layout
    ) -> Storage:
        result = self.allocate(out.nbytes)
        if not out.numel:
            return result
        check_inside(layout, storage, offset)
        if layout.strides != out.strides:
            lies = L.layout(tuple(out.shape), out.strides, out.dtype, layout.device)
            layout, storage, offset = lies, source._copying(lies, layout).fresh(storage, offset), 0
        theirs, ours = source.gpu.stream, self.gpu.stream
        source.gpu.reach(self.gpu)
        theirs.wait_for_stream(ours)  # (which may still be using what was there before)
        theirs.call(
            "cuMemcpyPeerAsync", result.ptr, self.gpu.context,
            storage.ptr + offset * layout.itemsize, source.gpu.context, out.nbytes,
        )  # fmt: skip
        ours.wait_for_stream(theirs)
        return result

    def _send(self, address: int, data: Array, wait: bool) -> None:
        """Copies a piece of the host's memory to an address of the GPU's."""
        stream = self.gpu.stream
        block = pinned.block_at(data.ctypes.data)
        if stream.capture is not None:
            raise MissingFeature(CAPTURED)
        stream.call("cuMemcpyHtoDAsync_v2", address, data.ctypes.data, data.nbytes)
        if block is not None and wait:
            stream.synchronize()
        elif block is not None:
            block.used_by(stream)

    def _fetch(
        self, to: int, layout: Layout, storage: Storage, offset: int, nbytes: int
    ) -> None:  # fmt: skip
        stream = self.gpu.stream
        if stream.capture is not None:
            stream.synchronize()  # (which raises)
        first = storage.ptr + (offset + layout.low) * layout.itemsize
        stream.call("cuMemcpyDtoHAsync_v2", to, first, nbytes)

    def _close_together(
        self, layout: Layout, storage: Storage, offset: int
    ) -> tuple[Layout, Storage, int]:
        """The tensor, or a copy where its elements lie far apart: gaps need no copying."""
        if layout.high - layout.low <= 2 * layout.numel:
            return layout, storage, offset
        whole = L.contiguous(tuple(layout.shape), layout.dtype, layout.device)
        return whole, self._copying(whole, layout).fresh(storage, offset), 0

    def _copying(self, out: Layout, layout: Layout) -> Launch:
        """A kernel that copies from one layout to another of the same shape."""
        what = Pointwise((E.input_(0, layout.dtype),))
        return kept(
            self.copies, (out, layout), lambda _: self.compile(what, (out,), (layout,)), MOST_COPIES
        )

    def held_state(
        self, generator: PhiloxGenerator, seed: int, offset: int, words: int
    ) -> tuple[Layout, Storage, int, int] | None:
        """The state of a draw that a graph is to repeat, anew each time."""
        capture = self.gpu.stream.capture
        if capture is None:
            return None
        where = L.contiguous((2,), dtypes.int64, Device("cuda", self.gpu.index))
        storage, start = capture.held_state(generator, seed, offset, words)
        return where, storage, 0, start

    # ---- for the launcher
    def in_machine_code(
        self, loaded: LoadedPlan, what: Description, outs: Sequence[Layout], ins: Sequence[Any]
    ) -> LaunchWithOwner | None:
        return None if config.sync else native_launch.bound(self, loaded, what, outs, ins)

    def load(self, step: GridStep) -> int:
        return modules.function_of(self.gpu, step)

    def launch(self, name: str, kernel: int, words: Words, step: GridStep) -> None:
        device = self.gpu
        stream = device.stream
        device.use()
        grid = (*step.blocks, 1, 1)[:3]
        given = (ctypes.c_void_p * 1)(words.ctypes.data)
        if device.driver.forked:
            device.driver.status("cuCtxSynchronize")  # (which raises)
        status = device.driver.launch_kernel(
            kernel, *grid, step.threads, 1, 1, step.shared, stream.handle, given, None
        )
        if status:
            raise device.fault(f"cuLaunchKernel of {name}", status)
        stream.note(name)

    def constant(self, array: Array) -> Storage:
        block = self.gpu.memory.steady(array.nbytes)
        if array.nbytes:
            self._send(block.address, np.ascontiguousarray(array), True)
            self.gpu.stream.synchronize()  # (any stream may read it)
        return wrap_elsewhere(block.address, array.nbytes, block)

    def numbers(self, storage: Storage, count: int) -> list[int]:
        data = np.empty(count, np.int64)
        stream = self.gpu.stream
        if stream.capture is None:
            stream.call("cuMemcpyDtoHAsync_v2", data.ctypes.data, storage.ptr, data.nbytes)
        stream.synchronize()
        return data.tolist()

    def status_word(self, name: str, plan: GridPlan, operands: Sequence[Any]) -> GpuStatus:
        assert plan.fail is not None
        return GpuStatus(self.gpu.stream.status_word(Report(plan.fail, name, operands)))

    def finish(self, name: str, status: GpuStatus | None) -> None:
        if config.sync and self.gpu.stream.capture is None:
            self.gpu.stream.synchronize()


def _as_it_lies(array: Array, out: Layout) -> Array:
    """The bytes of a storage with the layout's elements."""
    array = np.asarray(array, out.dtype.np)
    if out.contiguous:
        shape = tuple(out.shape)
        if array.shape != shape:
            array = np.broadcast_to(array, shape)
        return np.ascontiguousarray(array)
    data = np.zeros(out.nbytes, np.uint8)
    _seen_as(data, out)[...] = array
    return data


def _seen_as(data: Array, layout: Layout) -> Array:
    """The elements of a tensor in the bytes that it reaches."""
    size = layout.itemsize
    steps = tuple([s * size for s in layout.strides])
    return np.ndarray(tuple(layout.shape), layout.dtype.np, data, -layout.low * size, steps)


_backends: dict[int, CudaBackend] = {}


def backend_of_gpu(index: int) -> CudaBackend:
    """The backend of a GPU."""
    found = _backends.get(index)
    if found is None:
        found = _backends.setdefault(index, CudaBackend(index))
    return found


def forget() -> None:
    """Begins anew (for tests)."""
    for each in _backends.values():
        rooms.pop(each.allocate, None)
    _backends.clear()


__all__ = ["CudaBackend", "StreamHandle", "backend_of_gpu", "forget"]
