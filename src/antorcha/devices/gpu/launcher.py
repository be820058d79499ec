"""A plan bound to operands and launched, on the simulator and on GPUs alike.

A device gives what differs (:class:`GridDevice`): memory, kernels compiled for it, the launch
itself, and a word for what kernels find wrong in data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.fallback import compile_on_host
from antorcha.devices.gpu.frame import DynamicPlan, GridPlan, GridStep
from antorcha.devices.gpu.host_numbers import compile_beside_host
from antorcha.devices.gpu.templates import plan_for
from antorcha.devices.numpy_semantics.host import results_of
from antorcha.errors import OutOfRange
from antorcha.lang.kernels import Description, Launch, Reduce
from antorcha.lang.native.grid import PARAMETER_WORDS
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage

if TYPE_CHECKING:
    from antorcha.runtime.launched import LaunchWithOwner

Words = np.ndarray[Any, Any]


class GridDevice(Protocol):
    """What a device gives the launcher, beside what every device has."""

    name: str
    host_memory: bool

    def plan_here(self) -> None:
        """Says in ``frame.planning`` for which device plans are made from here on."""
        ...

    def allocate(self, nbytes: int) -> Storage:
        """Memory with undefined contents."""
        ...

    def load(self, step: GridStep) -> Any:
        """A step's kernel, compiled for the device."""
        ...

    def launch(self, name: str, kernel: Any, words: Words, step: GridStep) -> None:
        """Runs a kernel over the step's grid; it has copied the words when it returns."""
        ...

    def constant(self, array: Words) -> Storage:
        """A copy of an array, in row-major order, which any launch may read from then on."""
        ...

    def numbers(self, storage: Storage, count: int) -> list[int]:
        """The first int64s of a temporary, when its kernels are done."""
        ...

    def status_word(self, name: str, plan: GridPlan, operands: Sequence[Any]) -> Any:
        """Where kernels report: an object whose ``address`` is that of an int64 that is 0."""
        ...

    def finish(self, name: str, status: Any) -> None:
        """After a plan's last step; ``status`` is what ``status_word`` gave, or None."""
        ...

    def in_machine_code(
        self, loaded: LoadedPlan, what: Description, outs: Sequence[Layout], ins: Sequence[Any]
    ) -> LaunchWithOwner | None:
        """A plan as a launch that runs without the interpreter; None: by Python."""
        ...


def compile_for(
    device: Any, what: Description, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    """A description as kernels, or, where no template covers it, as NumPy's work on the host."""
    beside = compile_beside_host(device, what, outs, ins)
    if beside is not None:
        return beside
    device.plan_here()
    try:
        plan = plan_for(what, outs, ins)
    except Unsupported as error:
        return compile_on_host(device, what, outs, ins, str(error))
    if isinstance(plan, DynamicPlan):
        return dynamic_launch_of(device, type(what).__name__, plan, ins)
    if isinstance(what, Reduce):
        outs = results_of(what, outs)
    return launch_of(device, what, plan, outs, ins)


def check_inside(layout: Layout, storage: Storage, offset: int) -> None:
    """Raises where a tensor's elements are not all in its storage."""
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


def step_words(step: GridStep, buffers: Sequence[Sequence[int]]) -> Words:
    """The words of a step: those of its operands, then its own."""
    words = np.zeros(PARAMETER_WORDS, np.int64)
    every = [*[w for k in step.operands for w in buffers[k]], *step.words]
    words[: len(every)] = every
    return words


class LoadedPlan:
    """A plan on a device: its kernels are compiled, and its constants copied, at its first run."""

    def __init__(
        self, device: GridDevice, name: str, plan: GridPlan, operands: Sequence[Any]
    ) -> None:
        self.device, self.name, self.plan, self.operands = device, name, plan, operands
        self.kernels: list[Any] | None = None
        self.constants: list[Storage] = []

    def load(self) -> tuple[list[Any], list[Storage]]:
        """Its kernels and its constants."""
        if self.kernels is None:
            self.constants = [self.device.constant(array) for array in self.plan.constants]
            self.kernels = [self.device.load(step) for step in self.plan.steps]
        return self.kernels, self.constants

    def run(self, given: Sequence[list[int]]) -> list[Storage]:
        """Runs its steps over the buffers whose words are given, and gives its temporaries."""
        device, plan, name = self.device, self.plan, self.name
        kernels, constants = self.load()
        status = None
        if plan.status is not None:
            status = device.status_word(name, plan, self.operands)
        scratch: list[Storage] = [device.allocate(nbytes) for nbytes in plan.temporaries]
        buffers = [*given, *[[s.ptr] for s in (*scratch, *constants)]]
        if status is not None and plan.status is not None:
            buffers[len(given) + plan.status] = [status.address]
        for kernel, step in zip(kernels, plan.steps, strict=True):
            device.launch(name, kernel, step_words(step, buffers), step)
        device.finish(name, status)
        return scratch


def launch_of(
    device: GridDevice,
    what: Description,
    plan: GridPlan,
    outs: Sequence[Layout],
    ins: Sequence[Any],
) -> Launch:
    """A plan bound to operands."""
    operands, name = [*outs, *ins], type(what).__name__
    loaded = LoadedPlan(device, name, plan, operands)
    over = loaded if plan.over is None else LoadedPlan(device, name, plan.over, operands)

    def fresh(*flat: Any) -> Storage:
        storage = device.allocate(outs[0].nbytes)
        loaded.run(words_of(operands, (storage, 0, *flat)))
        return storage

    def into(*flat: Any) -> None:
        over.run(words_of(operands, flat))

    native = device.in_machine_code(loaded, what, outs, ins)
    if native is None:
        return Launch(fresh, into)
    return Launch(native.fresh, native.into if over is loaded else into, native)


def dynamic_launch_of(
    device: GridDevice, name: str, plan: DynamicPlan, ins: Sequence[Any]
) -> Launch:
    """A plan in two stages: results are allocated between them."""
    first = LoadedPlan(device, name, plan.first, ins)

    def fresh(*flat: Any) -> list[tuple[Layout, Storage]]:
        given = words_of(ins, flat)
        scratch = first.run(given)
        numbers = device.numbers(scratch[plan.sizes], plan.count)
        found = [(layout, device.allocate(layout.nbytes)) for layout in plan.layouts(numbers)]
        results = [[storage.ptr] for _, storage in found]
        rest = LoadedPlan(device, name, plan.rest(numbers), ins)
        rest.run([*results, *given, *[[s.ptr] for s in scratch]])
        return found

    def into(*flat: Any) -> None:
        raise AssertionError("results whose sizes depend on the data are fresh")

    return Launch(fresh, into)
