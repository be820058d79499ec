"""A plan bound to operands and launched, on the simulator and on GPUs alike.

A device gives what differs (:class:`GridDevice`): memory, kernels compiled for it, the launch
itself, and a word for what kernels find wrong in data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.fallback import compile_on_host
from antorcha.devices.gpu.frame import GridPlan, GridStep
from antorcha.devices.gpu.templates import plan_for
from antorcha.devices.numpy_semantics.host import results_of
from antorcha.errors import OutOfRange
from antorcha.lang.kernels import Description, Launch, Reduce
from antorcha.lang.native.grid import PARAMETER_WORDS
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage

Words = np.ndarray[Any, Any]


class GridDevice(Protocol):
    """What a device gives the launcher, beside what every device has."""

    name: str
    host_memory: bool

    def allocate(self, nbytes: int) -> Storage:
        """Memory with undefined contents."""
        ...

    def load(self, step: GridStep) -> Any:
        """A step's kernel, compiled for the device."""
        ...

    def launch(self, name: str, kernel: Any, words: Words, step: GridStep) -> None:
        """Runs a kernel over the step's grid; it has copied the words when it returns."""
        ...

    def status_word(self, name: str, plan: GridPlan, operands: Sequence[Any]) -> Any:
        """Where kernels report: an object whose ``address`` is that of an int64 that is 0."""
        ...

    def finish(self, name: str, status: Any) -> None:
        """After a plan's last step; ``status`` is what ``status_word`` gave, or None."""
        ...


def compile_for(
    device: Any, what: Description, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    """A description as kernels, or, where no template covers it, as NumPy's work on the host."""
    try:
        plan = plan_for(what, outs, ins)
    except Unsupported as error:
        return compile_on_host(device, what, outs, ins, str(error))
    if isinstance(what, Reduce):
        outs = results_of(what, outs)
    return launch_of(device, type(what).__name__, plan, outs, ins)


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


def operand_words(operands: Sequence[Any], flat: Sequence[Any]) -> list[list[int]]:
    """The words of each operand of a call: where a tensor begins, or a number."""
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


def step_words(step: GridStep, given: Sequence[Sequence[int]]) -> Words:
    """The words of a step: those of its operands, then its own."""
    words = np.zeros(PARAMETER_WORDS, np.int64)
    every = [*[w for k in step.operands for w in given[k]], *step.words]
    words[: len(every)] = every
    return words


def launch_of(
    device: GridDevice, name: str, plan: GridPlan, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    """A plan bound to operands: kernels are compiled at the first launch."""
    operands = [*outs, *ins]
    kernels: list[Any] = []

    def run(flat: Sequence[Any]) -> None:
        if not kernels:
            kernels.extend([device.load(step) for step in plan.steps])
        given = operand_words(operands, flat)
        status = None if plan.status is None else device.status_word(name, plan, operands)
        scratch: list[Any] = [device.allocate(nbytes) for nbytes in plan.temporaries]
        given += [[storage.ptr] for storage in scratch]
        if status is not None and plan.status is not None:
            given[len(operands) + plan.status] = [status.address]
        for kernel, step in zip(kernels, plan.steps, strict=True):
            device.launch(name, kernel, step_words(step, given), step)
        device.finish(name, status)

    def fresh(*flat: Any) -> Storage:
        storage = device.allocate(outs[0].nbytes)
        run((storage, 0, *flat))
        return storage

    def into(*flat: Any) -> None:
        run(flat)

    return Launch(fresh, into)
