"""Launches in machine code: a plan's kernels, asked of the driver without the interpreter.

A plan becomes a launch as those of the CPU (``runtime.launch``), so that whatever calls a kernel
natively there does so here. Its kernel is `run_grid`, which fills in the words of each step and
calls the driver. The description that it reads is a ``GridLaunch``, then the storages' sizes of the
temporaries, the addresses of the constants, and the steps, each followed by where its words come
from and by its own words.

The first run comes back with AGAIN: Python compiles the kernels then. So does a run in a thread, on
a stream or on a GPU that is another than the last one's.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.devices.cuda.frames import note_frame
from antorcha.devices.cuda.streams import Report, name_number, reports
from antorcha.devices.gpu.frame import GridPlan
from antorcha.lang.native import i64, local, native, ptr, raw, struct, u32, void
from antorcha.lang.native.grid import PARAMETER_WORDS
from antorcha.runtime.cpython import Py_DecRef
from antorcha.runtime.launch import AGAIN, make_launch
from antorcha.runtime.launched import slot_of
from antorcha.runtime.memory.device_memory import (
    DeviceHome,
    DevicePool,
    get_ready,
    is_ready,
    note_launch,
)
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import StorageObject, make_storage

if TYPE_CHECKING:
    from antorcha.devices.cuda.device import CudaBackend
    from antorcha.devices.gpu.launcher import LoadedPlan
    from antorcha.runtime.launched import LaunchWithOwner, Owner

MOST_TEMPORARIES = 16
NO_MEMORY = -1
"""The code of a launch that could not have its temporaries: there is an exception already."""
BUFFER, SCRATCH, CONSTANT, STATUS, NUMBER, PAIR = range(6)
"""Where words come from: the address of a buffer that is given, of a temporary, of a constant, of
the word that kernels report to; a number that is given, of one word or of two."""
KIND_SHIFT = 32


@struct
class GridLaunch:
    prepare: raw  # a Python callable
    home: raw
    loaded: i64
    name: i64  # its number (``streams.name_number``)
    report: i64  # the number of its report; -1: it makes none
    temporaries: i64
    constants: i64
    steps: i64


@struct
class GridLaunchStep:
    function: raw
    blocks_x: u32
    blocks_y: u32
    blocks_z: u32
    threads: u32
    shared_bytes: i64
    sources: i64
    own: i64  # words


@native
def drop_scratch(scratch: ptr[raw], count: i64) -> i64:
    for k in range(count):
        Py_DecRef(scratch[k])
    return 0


@native(export=True)
def make_scratch(scratch: ptr[raw], sizes: ptr[i64], count: i64) -> bool:
    """Storages of these sizes; False with an exception, and none."""
    for k in range(count):
        scratch[k] = make_storage(sizes[k])
        if scratch[k] is None:
            drop_scratch(scratch, k)
            return False
    return True


@native
def fill_words(
    words: ptr[i64], step: ptr[GridLaunchStep], bufs: ptr[raw], scratch: ptr[raw],
    constants: ptr[i64], status: i64,
) -> void:  # fmt: skip
    """The words of a step: those of its operands, then its own."""
    source = ptr[i64](step + 1)
    n = i64(0)
    for j in range(step.sources):
        index = source[j] & ((1 << KIND_SHIFT) - 1)
        kind = source[j] >> KIND_SHIFT
        if kind == BUFFER:
            words[n] = i64(bufs[index])
        elif kind == SCRATCH:
            words[n] = i64(ptr[StorageObject](scratch[index]).ptr)
        elif kind == CONSTANT:
            words[n] = constants[index]
        elif kind == STATUS:
            words[n] = status
        else:
            number = ptr[i64](bufs[index])
            words[n] = number[0]
            if kind == PAIR:
                n += 1
                words[n] = number[1]
        n += 1
    own = source + step.sources
    for j in range(step.own):
        words[n + j] = own[j]


@native
def launch_step(home: ptr[DeviceHome], step: ptr[GridLaunchStep], words: ptr[raw]) -> i64:
    """Asks the driver for a step on the current stream; gives its status."""
    x, y, z = step.blocks_x, step.blocks_y, step.blocks_z
    nbytes, stream = u32(step.shared_bytes), ptr[DevicePool](home.pool).stream
    one = u32(1)
    return i64(
        home.launch(step.function, x, y, z, step.threads, one, one, nbytes, stream, words, None)
    )


@native(level="O2")
def run_grid(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    g = ptr[GridLaunch](desc)
    home = ptr[DeviceHome](g.home)
    if g.loaded == 0 or not is_ready(home):
        return AGAIN
    report = i64(0)
    if g.report >= 0:
        page = ptr[DevicePool](home.pool).page
        if page is None or page.used == page.room:
            return AGAIN
        report = page.address + 8 * page.used
        page.reports[page.used] = g.report
        note_frame(page, page.used)
        page.used += 1
    sizes = ptr[i64](g + 1)
    constants = sizes + g.temporaries
    scratch = local(raw, MOST_TEMPORARIES)
    if g.temporaries > 0:
        if not make_scratch(scratch, sizes, g.temporaries):
            return NO_MEMORY
        if get_ready(home.number) is None:
            drop_scratch(scratch, g.temporaries)
            return NO_MEMORY
    words = local(i64, PARAMETER_WORDS)
    parameters = local(raw)
    parameters[0] = raw(words)
    at = constants + g.constants
    status = i64(0)
    for _k in range(g.steps):
        step = ptr[GridLaunchStep](at)
        if status == 0:
            fill_words(words, step, bufs, scratch, constants, report)
            status = launch_step(home, step, parameters)
        at = ptr[i64](step + 1) + step.sources + step.own
    note_launch(ptr[DevicePool](home.pool), g.name)
    drop_scratch(scratch, g.temporaries)
    return status


# ---- planning
class GridBinding:
    """A plan and its launch: compiles the plan's kernels when it is first run."""

    __slots__ = (
        "__weakref__", "constants", "device", "functions", "loaded", "owner", "prepare", "report",
    )  # fmt: skip

    def __init__(self, device: CudaBackend, loaded: LoadedPlan) -> None:
        self.device, self.loaded = device, loaded
        self.prepare = functools.partial(_prepare, weakref.ref(self))  # (held by the launch)
        self.functions: list[int] = []  # where their words are in the description
        self.constants = 0  # the same, of the first
        self.owner: Callable[[], Owner | None] = lambda: None
        plan, self.report = loaded.plan, -1
        if plan.fail is not None and plan.status is not None:
            self.report = reports.add(Report(plan.fail, loaded.name, loaded.operands))
            weakref.finalize(self, reports.end, self.report)

    def fail(self, code: int) -> BaseException:
        """What the driver says of a launch."""
        return self.device.gpu.fault(f"cuLaunchKernel of {self.loaded.name}", code)

    def description(self, outs: Sequence[Layout], ins: Sequence[Any]) -> list[int] | None:
        """The words of a `GridLaunch`; None where it has too many."""
        plan, gpu = self.loaded.plan, self.device.gpu
        sizes = [
            nbytes + self.device.room
            for k, nbytes in enumerate(plan.temporaries)
            if k != plan.status
        ]
        name = name_number(self.loaded.name)
        desc = [id(self.prepare), gpu.home.address, 0, name, self.report]
        desc += [len(sizes), len(plan.constants), len(plan.steps), *sizes]
        self.constants = len(desc)
        desc += [0] * len(plan.constants)
        sources = _sources([*outs, *ins], plan)
        for step in plan.steps:
            where = [sources[k] for k in step.operands]
            pairs = sum([source >> KIND_SHIFT == PAIR for source in where])
            if len(where) + pairs + len(step.words) > PARAMETER_WORDS:
                return None
            self.functions.append(len(desc))
            blocks = (*step.blocks, 1, 1)[:3]
            desc += [0, blocks[0] | blocks[1] << 32, blocks[2] | step.threads << 32]
            desc += [step.shared, len(where), len(step.words), *where, *step.words]
        return desc


def _sources(operands: Sequence[Any], plan: GridPlan) -> list[int]:
    """Where the words of each buffer and number come from."""
    kinds = [
        BUFFER if isinstance(o, Layout) else PAIR if o is complex else NUMBER for o in operands
    ]
    own = [k | kind << KIND_SHIFT for k, kind in enumerate(kinds)]
    scratch = [k | SCRATCH << KIND_SHIFT for k in range(len(plan.temporaries))]
    if plan.status is not None:  # (it is no memory of its own)
        scratch[plan.status :] = [STATUS << KIND_SHIFT, *scratch[plan.status : -1]]
    return [*own, *scratch, *[k | CONSTANT << KIND_SHIFT for k in range(len(plan.constants))]]


def _prepare(binding_of: Callable[[], GridBinding | None]) -> None:
    """What a launch needs before it runs: its kernels, and the driver, for this thread."""
    binding = binding_of()
    owner = None if binding is None else binding.owner()
    assert binding is not None
    assert owner is not None
    kernels, constants = binding.loaded.load()
    words, start = owner.words, owner.start
    for at, kernel in zip(binding.functions, kernels, strict=True):
        words[start + at] = kernel
    for k, storage in enumerate(constants):
        words[start + binding.constants + k] = storage.ptr
    words[start + 2] = 1
    gpu = binding.device.gpu
    if binding.report >= 0:
        gpu.stream.make_page()
    gpu.make_ready()


def owner_of(launch: Any) -> Callable[[], Owner | None]:
    """The owner of a launch's words, as long as it lives."""
    return weakref.ref(launch.fresh.__self__.owner)


def bound(
    device: CudaBackend, loaded: LoadedPlan, what: Any, outs: Sequence[Layout], ins: Sequence[Any]
) -> LaunchWithOwner | None:
    """A plan as a launch in machine code; None where it cannot be one."""
    plan = loaded.plan
    if len(plan.temporaries) > MOST_TEMPORARIES:
        return None
    binding = GridBinding(device, loaded)
    desc = binding.description(outs, ins)
    if desc is None:
        return None
    slots = [slot_of(o) for o in outs], [slot_of(i) for i in ins]
    address = run_grid.spec().addr
    made = make_launch(address, desc, *slots, 0, binding.fail, what, room=device.room)
    binding.owner = owner_of(made)
    return made
