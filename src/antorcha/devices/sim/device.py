"""The simulator as a device: plans of ``devices/gpu`` run thread by thread; NumPy does the rest.

What no template covers is computed on copies in the host's memory, as on any GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.devices.gpu.frame import GridPlan, GridStep, planning
from antorcha.devices.gpu.launcher import check_inside, compile_for
from antorcha.devices.gpu.templates import attends
from antorcha.devices.sim import recording, streams
from antorcha.devices.sim.memory import DeviceBlock, is_pinned, memory, new_pinned, reach
from antorcha.errors import NativeError, OutOfRange
from antorcha.lang.kernels import Description, Launch, MatMul
from antorcha.lang.native.grid import GridThread
from antorcha.lang.native.machine import Target, simulated
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, as_numpy, wrap_elsewhere

runner = lazy("antorcha.devices.sim.runner")


@cache
def target() -> Target:
    """This CPU, with the simulator's memory."""
    return simulated(reach.spec())


def new_storage(nbytes: int, shared: bool = False) -> Storage:
    """A storage in the simulator's memory, poisoned; ``shared``: for all streams to read."""
    block = DeviceBlock(nbytes, shared)
    return wrap_elsewhere(block.address, nbytes, block)


def new_constant(array: np.ndarray[Any, Any]) -> Storage:
    """A storage in the simulator's memory with an array's elements in row-major order."""
    storage = new_storage(array.nbytes, shared=True)
    memory.bytes_at(storage.ptr, array.nbytes)[:] = np.frombuffer(array.tobytes(), np.uint8)
    return storage


class GridRunner:
    """Runs grids one at a time, for they share the block's records and its shared memory."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.turn = 0
        self.records = np.zeros(runner.MOST_THREADS * GridThread.size, np.uint8)
        room = np.full(runner.SHARED_BYTES + 1024, 0xFF, np.uint8)
        self.shared = room[-room.ctypes.data % 1024 :]
        self.run = runner.run_blocks.spec().cfunc

    def launch(self, name: str, kernel: int, words: np.ndarray[Any, Any], step: GridStep) -> None:
        """Runs one step; raises what its threads did wrong."""
        blocks = (*step.blocks, 1, 1)[:3]
        grid = np.array((step.threads, 1, 1, *blocks), np.int64)
        with self.lock, recording.noting(name, step, words, self.records):
            self.turn += 1
            stuck = self.run(
                kernel, words.ctypes.data, grid.ctypes.data, self.records.ctypes.data,
                self.shared.ctypes.data, self.turn,
            )  # fmt: skip
            fault = memory.take_fault()
        if stuck:
            raise NativeError(
                f"{name}: in block {stuck - 1} some threads wait at a barrier that others never "
                "reach"
            )
        if fault is not None:
            count, address, nbytes = fault
            raise OutOfRange(
                f"{name}: {count} accesses outside of all tensors' memory; the first, of {nbytes} "
                f"bytes, is {memory.around(address)}"
            )


@cache
def grid_runner() -> GridRunner:
    return GridRunner()


class SimulatedStatus:
    """An int64 that kernels report to, 0 at first, and the error of what they leave there."""

    def __init__(self, fail: Callable[[int], BaseException] | None) -> None:
        self.storage, self.fail = new_storage(8), fail
        self.address = self.storage.ptr
        memory.bytes_at(self.address, 8)[:] = 0

    def check(self) -> None:
        """Raises what was reported."""
        code = int(memory.bytes_at(self.address, 8).view(np.int64)[0])
        if code and self.fail is not None:
            raise self.fail(code)


class SimulatedBackend:
    """The device ``sim``."""

    name = "sim"
    host_memory = False
    runs_together = True

    def compile(self, what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
        return compile_for(self, what, outs, ins)

    def multiplies(self, what: MatMul, dtype: dtypes.dtype) -> bool:
        return True

    def plan_here(self) -> None:
        planning.capability, planning.multiprocessors = 0, runner.MULTIPROCESSORS
        planning.shared_bytes = runner.SHARED_BYTES

    def attends(self, dtype: dtypes.dtype, features: int, gradient: bool) -> bool:
        return attends(dtype, features, gradient)

    allocate = staticmethod(new_storage)

    def from_host(self, array: np.ndarray[Any, Any], out: Layout) -> Storage:
        storage = new_storage(out.nbytes)
        if out.numel:
            self.write(array, out, storage, 0)
        return storage

    def to_host(self, layout: Layout, storage: Storage, offset: int) -> np.ndarray[Any, Any]:
        """The elements, when all that the current stream was given before is done."""
        streams.current().run()
        return view(layout, storage, offset).copy()

    def write(self, array: Any, layout: Layout, storage: Storage, offset: int) -> None:
        """Copies an array of the host's, as it is now, to where a tensor lies."""
        target = view(layout, storage, offset)
        if streams.is_delayed():
            array = np.array(array)
        streams.current().give(lambda: np.copyto(target, array, casting="unsafe"))

    def receive(
        self, source: Any, layout: Layout, storage: Storage, offset: int, out: Layout, wait: bool
    ) -> Storage:
        """A copy of another device's tensor; the host's memory is read later where it is pinned and
        the copy need not wait."""
        pinned = is_pinned(storage)
        if wait or not out.numel or not pinned:
            result = self.from_host(source.to_host(layout, storage, offset), out)
            if pinned:
                streams.current().run()
            return result
        result = new_storage(out.nbytes)
        target = view(out, result, 0)

        def copy() -> None:
            target[...] = source.to_host(layout, storage, offset)

        streams.current().give(copy, at_once=False)
        return result

    def deliver(self, layout: Layout, storage: Storage, offset: int, out: Layout) -> Storage:
        """A copy in the host's memory, which is there when the stream has been waited for."""
        result = new_pinned(out.nbytes)
        if out.numel:
            steps = tuple([s * out.itemsize for s in out.strides])
            source = view(layout, storage, offset)
            target = as_numpy(result, 0, tuple(out.shape), steps, out.dtype.np)
            streams.current().give(lambda: np.copyto(target, source), at_once=False)
        return result

    # ---- for the launcher
    def load(self, step: GridStep) -> int:
        return int(step.kernel.on_grid(target(), step.threads, **step.static).addr)

    def launch(self, name: str, kernel: int, words: np.ndarray[Any, Any], step: GridStep) -> None:
        streams.current().give(lambda: grid_runner().launch(name, kernel, words, step))

    def in_machine_code(
        self, loaded: Any, what: Description, outs: Sequence[Layout], ins: Sequence[Any]
    ) -> None:
        """Every launch is the runner's."""

    def constant(self, array: np.ndarray[Any, Any]) -> Storage:
        return new_constant(array)

    def numbers(self, storage: Storage, count: int) -> list[int]:
        streams.current().run()
        found: list[int] = memory.bytes_at(storage.ptr, 8 * count).view(np.int64).tolist()
        return found

    def status_word(self, name: str, plan: GridPlan, operands: Sequence[Any]) -> SimulatedStatus:
        return SimulatedStatus(plan.fail)

    def finish(self, name: str, status: SimulatedStatus | None) -> None:
        if status is not None:
            streams.current().give(status.check)


def view(layout: Layout, storage: Storage, offset: int) -> np.ndarray[Any, Any]:
    """A tensor's elements in the simulator's memory, for copies."""
    if not layout.numel:
        return np.empty(tuple(layout.shape), layout.dtype.np)
    size = layout.itemsize
    check_inside(layout, storage, offset)
    data = memory.bytes_at(storage.ptr, storage.nbytes)
    steps = tuple([s * size for s in layout.strides])
    return np.ndarray(tuple(layout.shape), layout.dtype.np, data, offset * size, steps)
