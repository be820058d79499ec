"""The simulator as a device: plans of ``devices/gpu`` run thread by thread; NumPy does the rest.

A launch checks its operands, writes the kernel's words, and runs the grid. What no template covers
is computed on copies in the host's memory, as on any GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.fallback import compile_on_host
from antorcha.devices.gpu.frame import DynamicPlan, GridPlan, GridStep
from antorcha.devices.gpu.templates import plan_for
from antorcha.devices.numpy_semantics.host import results_of
from antorcha.devices.sim.memory import DeviceBlock, memory, reach
from antorcha.errors import NativeError, OutOfRange
from antorcha.lang.kernels import Description, Launch, MatMul, Reduce
from antorcha.lang.native.grid import PARAMETER_WORDS, GridThread
from antorcha.lang.native.machine import Target, simulated
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, wrap_elsewhere

runner = lazy("antorcha.devices.sim.runner")


@cache
def target() -> Target:
    """This CPU, with the simulator's memory."""
    return simulated(reach.spec())


def new_storage(nbytes: int) -> Storage:
    """A storage in the simulator's memory, poisoned."""
    block = DeviceBlock(nbytes)
    return wrap_elsewhere(block.address, nbytes, block)


class GridRunner:
    """Runs grids one at a time, for they share the block's records and its shared memory."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.turn = 0
        self.records = np.zeros(runner.MOST_THREADS * GridThread.size, np.uint8)
        room = np.full(runner.SHARED_BYTES + 64, 0xFF, np.uint8)
        self.shared = room[-room.ctypes.data % 64 :]
        self.run = runner.run_blocks.spec().cfunc

    def launch(self, name: str, kernel: int, words: np.ndarray[Any, Any], step: GridStep) -> None:
        """Runs one step; raises what its threads did wrong."""
        blocks = (*step.blocks, 1, 1)[:3]
        grid = np.array((step.threads, 1, 1, *blocks), np.int64)
        with self.lock:
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


class SimulatedBackend:
    """The device ``sim``."""

    name = "sim"
    host_memory = False

    def compile(self, what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
        try:
            plan = plan_for(what, outs, ins)
        except Unsupported as error:
            return compile_on_host(self, what, outs, ins, str(error))
        if isinstance(what, Reduce):
            outs = results_of(what, outs)
        if isinstance(plan, DynamicPlan):
            return dynamic_launch_of(type(what).__name__, plan, ins)
        return launch_of(type(what).__name__, plan, outs, ins)

    def multiplies(self, what: MatMul, dtype: dtypes.dtype) -> bool:
        return True

    allocate = staticmethod(new_storage)

    def from_host(self, array: np.ndarray[Any, Any], out: Layout) -> Storage:
        storage = new_storage(out.nbytes)
        if out.numel:
            view(out, storage, 0)[...] = array
        return storage

    def to_host(self, layout: Layout, storage: Storage, offset: int) -> np.ndarray[Any, Any]:
        return view(layout, storage, offset).copy()

    def write(self, array: Any, layout: Layout, storage: Storage, offset: int) -> None:
        """Copies an array of the host's to where a tensor lies."""
        view(layout, storage, offset)[...] = array


def view(layout: Layout, storage: Storage, offset: int) -> np.ndarray[Any, Any]:
    """A tensor's elements in the simulator's memory, for copies."""
    if not layout.numel:
        return np.empty(tuple(layout.shape), layout.dtype.np)
    size = layout.itemsize
    check_inside(layout, storage, offset)
    data = memory.bytes_at(storage.ptr, storage.nbytes)
    steps = tuple([s * size for s in layout.strides])
    return np.ndarray(tuple(layout.shape), layout.dtype.np, data, offset * size, steps)


def check_inside(layout: Layout, storage: Storage, offset: int) -> None:
    size = layout.itemsize
    low, high = (offset + layout.low) * size, (offset + layout.high) * size
    if layout.numel and not (0 <= low <= high <= storage.nbytes):
        raise OutOfRange(
            f"a tensor of shape {tuple(layout.shape)} lies outside its storage: it reaches bytes "
            f"{low} to {high} of {storage.nbytes}"
        )


def number_words(kind: type, value: Any) -> list[int]:
    """A run-time number as words of a launch."""
    if kind is complex:
        return [int(x) for x in np.array([value], np.complex128).view(np.int64)]
    if kind is float:
        return [int(np.array([value], np.float64).view(np.int64)[0])]
    return [int(value)]


def kernels_of(plan: GridPlan) -> list[int]:
    """The addresses of a plan's kernels."""
    return [s.kernel.on_grid(target(), s.threads, **s.static).addr for s in plan.steps]


def words_of(operands: Sequence[Any], flat: Sequence[Any]) -> list[list[int]]:
    """The words of each operand, whose storage and offset, or number, stand in ``flat``."""
    given: list[list[int]] = []
    at = 0
    for what in operands:
        if isinstance(what, Layout):
            storage, offset = flat[at], flat[at + 1]
            check_inside(what, storage, offset)
            given.append([storage.ptr + offset * what.itemsize])
            at += 2
        else:
            given.append(number_words(what, flat[at]))
            at += 1
    return given


def run_plan(
    name: str, plan: GridPlan, kernels: Sequence[int], given: Sequence[list[int]]
) -> list[Storage]:
    """Runs a plan's steps, and gives its temporaries."""
    scratch = [new_storage(nbytes) for nbytes in plan.temporaries]
    buffers = [*given, *[[s.ptr] for s in scratch]]
    if plan.status is not None:
        numbers_in(scratch[plan.status], 1)[:] = 0
    words = np.zeros(PARAMETER_WORDS, np.int64)
    for kernel, step in zip(kernels, plan.steps, strict=True):
        head = [w for k in step.operands for w in buffers[k]]
        every = [*head, *step.words]
        words[: len(every)] = every
        grid_runner().launch(name, kernel, words, step)
    if plan.status is not None and plan.fail is not None:
        code = int(numbers_in(scratch[plan.status], 1)[0])
        if code:
            raise plan.fail(code)
    return scratch


def numbers_in(storage: Storage, count: int) -> np.ndarray[Any, Any]:
    """The first int64s of a temporary."""
    return memory.bytes_at(storage.ptr, 8 * count).view(np.int64)


def launch_of(name: str, plan: GridPlan, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    """A plan bound to operands: kernels are compiled at the first launch."""
    kernels: list[int] = []

    def into(*flat: Any) -> None:
        if not kernels:
            kernels.extend(kernels_of(plan))
        run_plan(name, plan, kernels, words_of([*outs, *ins], flat))

    def fresh(*flat: Any) -> Storage:
        storage = new_storage(outs[0].nbytes)
        into(storage, 0, *flat)
        return storage

    return Launch(fresh, into)


def dynamic_launch_of(name: str, plan: DynamicPlan, ins: Sequence[Any]) -> Launch:
    """A plan in two stages: results are allocated between them."""

    def fresh(*flat: Any) -> list[tuple[Layout, Storage]]:
        given = words_of(ins, flat)
        scratch = run_plan(name, plan.first, kernels_of(plan.first), given)
        numbers = [int(n) for n in numbers_in(scratch[plan.sizes], plan.count)]
        found = [(layout, new_storage(layout.nbytes)) for layout in plan.layouts(numbers)]
        rest = plan.rest(numbers)
        results = [[storage.ptr] for _, storage in found]
        before = [[s.ptr] for s in scratch]
        run_plan(name, rest, kernels_of(rest), [*results, *given, *before])
        return found

    def into(*flat: Any) -> None:
        raise AssertionError("results whose sizes depend on the data are fresh")

    return Launch(fresh, into)
