"""Fourier transforms by cuFFT, where it is faster than our own kernels.

It multiplies by no factor: a pass of our own does where a transform is to be scaled. Our own
transforms do that as they store, so those that are scaled are theirs, and so are those to real
numbers: the library overwrites what it is given for them, and gives other results than the CPU
where that is the transform of no real signal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha import config
from antorcha.core.loops import collapse
from antorcha.devices.cuda.libraries import cufft
from antorcha.devices.cuda.libraries.cufft import Cufft, SignalPlaces, TransformSizes
from antorcha.devices.cuda.libraries.loader import library
from antorcha.devices.cuda.libraries.machine_code import (
    address_of,
    kernel_t,
    place_of,
    run_other,
    take_scratch,
)
from antorcha.devices.cuda.native_launch import NO_MEMORY, owner_of
from antorcha.devices.cuda.streams import name_number
from antorcha.devices.emit import Unsupported
from antorcha.lang import expr as E
from antorcha.lang.kernels import Fourier, Launch, Pointwise
from antorcha.lang.native import func, i32, i64, local, native, ptr, raw, struct
from antorcha.runtime.cpython import Py_DecRef
from antorcha.runtime.launch import AGAIN, make_launch
from antorcha.runtime.launched import LaunchWithOwner, slot_of
from antorcha.runtime.memory.device_memory import DeviceHome, DevicePool, is_ready, note_launch
from antorcha.runtime.memory.layout import Layout

LEAST = 1 << 20
"""Transforms with fewer results are left to our own kernels."""
MOST_DIMS = 3
Ints = Sequence[int]
of_two_t = func[i32, i32, raw]
execute_t = func[i32, i32, raw, raw, i32]


# ---- what the library can see
def plan_transform(
    device: Any, what: Fourier, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    """A launch of cuFFT; Unsupported where it cannot, or is not to, compute the transform."""
    (out,), (x,) = outs, ins
    if not out.numel or not what.dims or not is_faster(what, out, x):
        raise Unsupported("a transform of our own")
    fft: Cufft | None = library(Cufft)
    if fft is None or config.sync:
        raise Unsupported("cuFFT is not used")
    sizes = sizes_of(what, out, x)
    if device.gpu.stream.capture is not None and not fft.has_plan(device.gpu, sizes):
        raise Unsupported("cuFFT makes no plan while a graph is captured")
    device.gpu.use()
    binding = TransformBinding(device, fft, fft.plan(device.gpu, sizes), what, out, x)
    native = binding.launch(what)
    return Launch(native.fresh, native.into, native)


def is_faster(what: Fourier, out: Layout, x: Layout) -> bool:
    """Is the library faster than our own kernels? On an H200 it takes 0.5 to 0.97 of their time,
    but 0.96 to 1.5 where a pass is added that scales, unless signals lie side by side: then 0.3."""
    side_by_side = all([x.strides[d] > 1 for d in what.dims])
    return out.numel >= LEAST and (what.norm == "none" or side_by_side)


def sizes_of(what: Fourier, out: Layout, x: Layout) -> TransformSizes:
    """A transform in the library's terms; Unsupported where it has none for it."""
    if what.kind == "to real":
        raise Unsupported("a transform to real numbers")
    if what.kind == "real" and (not what.onesided or not what.forward or x.dtype.kind == "c"):
        raise Unsupported("all of the transform of real numbers")
    if any(each.dtype.to_real().name not in ("float32", "float64") for each in (out, x)):
        raise Unsupported(f"cuFFT has no transform of {x.dtype}")
    dims = nested_dims(what, out)
    others = sorted(set(range(x.ndim)) - set(dims), key=lambda d: -out.strides[d])
    steps = [[layout.strides[d] for d in others] for layout in (x, out)]
    counts, apart = collapse([x.shape[d] for d in others], steps)
    if len(counts) > 1:
        raise Unsupported("signals that are not all equally far apart")
    count, (read, written) = math.prod(counts), [each[0] if each else 1 for each in apart]
    return TransformSizes(
        tuple([x.shape[d] for d in dims]), count, places_of(x, dims, count, read),
        places_of(out, dims, count, written),
    )  # fmt: skip


def nested_dims(what: Fourier, out: Layout) -> Ints:
    """The dims, the inner last; which that is, matters where one side is real."""
    if len(what.dims) > MOST_DIMS:
        raise Unsupported(f"cuFFT has no transform along {len(what.dims)} dims")
    dims = sorted(what.dims, key=lambda d: -out.strides[d])
    if what.kind != "complex":
        dims = [*[d for d in dims if d != what.dims[-1]], what.dims[-1]]
    return dims


def places_of(layout: Layout, dims: Ints, count: int, apart: int) -> SignalPlaces:
    """How the signals of a tensor lie along these dims."""
    step = layout.strides[dims[-1]] if layout.shape[dims[-1]] > 1 else 1
    inner, embed = step, [layout.shape[dims[0]]]
    for outer, d in zip(dims[-2::-1], dims[:0:-1], strict=True):
        rows = layout.shape[d]
        if layout.shape[outer] > 1:
            rows = layout.strides[outer] // inner if inner > 0 else 0
            if rows < layout.shape[d] or rows * inner != layout.strides[outer]:
                raise Unsupported("dims that are not nested in one another")
        inner *= rows
        embed.insert(1, rows)
    if step < 1 or (count > 1 and apart < 1):
        raise Unsupported("elements that repeat, or lie backwards")
    sizes = tuple([layout.shape[d] for d in dims])
    apart = apart if count > 1 else math.prod(sizes)
    is_dense = step == 1 and tuple(embed) == sizes and apart == math.prod(sizes)
    return SignalPlaces(tuple(embed), step, apart, layout.dtype.name, is_dense)


# ---- in machine code
@struct
class TransformWords:
    """The description of a launch: cuFFT's functions, the plan, its scratch memory. ``aligned``:
    bytes; an input that lies otherwise is copied. ``copying``, ``scaling``: kernels of other
    launches; null where there is none."""

    prepare: raw  # a Python callable
    home: raw
    name: i64
    set_stream: of_two_t
    set_area: of_two_t
    execute: execute_t
    plan: i64
    direction: i64
    room: i64
    copied: i64  # the size of a copy of the input
    aligned: i64
    copying: kernel_t
    copying_words: raw
    scaling: kernel_t
    scaling_words: raw


@native
def execute_plan(p: ptr[TransformWords], out: raw, x: raw) -> i64:
    """Gives the transform to the current stream; the library's status."""
    home = ptr[DeviceHome](p.home)
    scratch = raw(0)
    if p.room != 0:
        scratch = take_scratch(home, p.room)
        if scratch is None:
            return NO_MEMORY
    plan = i32(p.plan)
    status = p.set_stream(plan, ptr[DevicePool](home.pool).stream)
    if status == 0 and scratch is not None:
        status = p.set_area(plan, place_of(scratch))
    if status == 0:
        status = p.execute(plan, x, out, i32(p.direction))
    if scratch is not None:
        Py_DecRef(scratch)
    return i64(status)


@native
def execute_with_copy(p: ptr[TransformWords], out: raw, x: raw) -> i64:
    """The same, of a copy of the input."""
    scratch = take_scratch(ptr[DeviceHome](p.home), p.copied)
    if scratch is None:
        return NO_MEMORY
    given = local(raw, 2)
    given[0] = place_of(scratch)
    given[1] = x
    code = run_other(p.copying, given, ptr[i64](p.copying_words))
    if code == 0:
        code = execute_plan(p, out, given[0])
    Py_DecRef(scratch)
    return code


@native(level="O2")
def run_transform(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    p = ptr[TransformWords](desc)
    home = ptr[DeviceHome](p.home)
    if not is_ready(home):
        return AGAIN
    if i64(bufs[1]) % p.aligned == 0:
        code = execute_plan(p, bufs[0], bufs[1])
    else:
        code = execute_with_copy(p, bufs[0], bufs[1])
    note_launch(ptr[DevicePool](home.pool), p.name)
    if code == 0 and p.scaling_words is not None:
        given = local(raw, 2)
        given[0] = bufs[0]
        given[1] = bufs[0]
        code = run_other(p.scaling, given, ptr[i64](p.scaling_words))
    return code


class TransformBinding:
    """A transform and its launch in machine code."""

    def __init__(
        self, device: Any, fft: Cufft, plan: cufft.TransformPlan, what: Fourier, out: Layout,
        x: Layout,
    ) -> None:  # fmt: skip
        self.device, self.fft, self.plan = device, fft, plan
        self.out, self.x = out, x
        self.prepare = device.gpu.make_ready
        self.direction = cufft.FORWARD if what.forward else cufft.INVERSE
        count = math.prod([x.shape[d] for d in what.dims])
        scale = {"none": 1.0, "all": 1 / count, "root": 1 / math.sqrt(count)}[what.norm]
        self.scaling = self.copying = None
        if scale != 1.0:
            self.scaling = self._pointwise(E.mul(E.input_(0, out.dtype), scale), out, out)
        if x.dtype.kind != "c":
            self.copying = self._pointwise(E.input_(0, x.dtype), x, x)

    def _pointwise(self, expr: Any, to: Layout, source: Layout) -> LaunchWithOwner:
        launch = self.device.compile(Pointwise((expr,)), (to,), (source,))
        if not isinstance(launch.keep, LaunchWithOwner):
            raise Unsupported("what goes with it is not in machine code")
        return launch.keep

    def description(self) -> list[int]:
        """The words of a `TransformWords`."""
        call, room = self.fft.functions, self.device.room
        aligned = 1 if self.copying is None else self.out.itemsize
        return [
            id(self.prepare), self.device.gpu.home.address, name_number("Fourier"),
            *[address_of(call[f"cufft{name}"]) for name in ("SetStream", "SetWorkArea", "XtExec")],
            self.plan.number, self.direction, self.plan.workspace and self.plan.workspace + room,
            self.x.nbytes + room, aligned, *_kernel_of(self.copying), *_kernel_of(self.scaling),
        ]  # fmt: skip

    def launch(self, what: Fourier) -> LaunchWithOwner:
        """The launch."""
        slots = [slot_of(self.out)], [slot_of(self.x)]
        address, room = run_transform.spec().addr, self.device.room
        return make_launch(address, self.description(), *slots, 0, self.fail, what, room=room)

    def fail(self, code: int) -> BaseException:
        """What the library says of a launch."""
        return self.fft.error("cufftXtExec", code)


def _kernel_of(launch: LaunchWithOwner | None) -> tuple[int, int]:
    """The addresses of a launch's kernel and of its words."""
    owner = None if launch is None else owner_of(launch)()
    return (0, 0) if owner is None else (owner.kernel, owner.address)
