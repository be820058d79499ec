"""Convolutions by cuDNN: forward, and the gradients of images and weights.

Images and weights are handed over as they lie, in row-major order or with their channels together;
others are copied first. Of the ways that the library's heuristic ranks, the first is taken that it
can plan, whose results are the same at each run, and that computes as exactly as
``torch.backends.cudnn.allow_tf32`` wants it; with ``torch.backends.cudnn.benchmark`` the fastest of
those.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from antorcha import config
from antorcha.core import switches
from antorcha.core.shapes import contiguous_strides, strides_in_order
from antorcha.devices.cuda.libraries import convolution_launch, cudnn
from antorcha.devices.cuda.libraries.cudnn import Cudnn, Descriptor
from antorcha.devices.cuda.libraries.launching import (
    address_of,
    copying,
    library_launch,
    strided,
)
from antorcha.devices.cuda.libraries.loader import library
from antorcha.devices.cuda.streams import EventHandle
from antorcha.devices.emit import Unsupported
from antorcha.errors import AcceleratorError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Conv, Launch, Pointwise
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, wrap_elsewhere

LEAST = 1 << 20
"""Convolutions of fewer multiplications are left to our own kernels."""
ALIGNED = 16  # bytes
MOST_WORKSPACE = 1 << 30
BENCHMARKED = 3
"""Runs of a plan that are timed together, where ``torch.backends.cudnn.benchmark`` asks for it."""
Ints = Sequence[int]
Copy = Callable[..., None]


def plan_convolution(
    device: Any, what: Conv, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:  # fmt: skip
    """A launch of cuDNN; Unsupported where it cannot, or is not to, compute the convolution."""
    dnn: Cudnn | None = library(Cudnn) if switches.cudnn.enabled else None
    if dnn is None:
        raise Unsupported("cuDNN is not used")
    dtype = outs[0].dtype
    if dtype.name not in cudnn.DATA_TYPES or not all([each.dtype is dtype for each in ins]):
        raise Unsupported(f"cuDNN has no convolution of {dtype}")
    if multiplications(what) < max(LEAST, 1):
        raise Unsupported("a small convolution")
    convolution = Convolution(device, dnn, what, outs[0], ins)
    if config.sync or not convolution.runs_natively:
        return convolution.launch()
    native = convolution_launch.bound(convolution, what, outs, ins)
    return Launch(native.fresh, native.into, native)


def multiplications(what: Conv) -> int:
    """How many there are."""
    count = 1
    for size in (what.x[0], *what.y[1:], *what.w[1:]):
        count *= size
    return count if min((*what.x, *what.w)) else 0


def padding_after(what: Conv) -> tuple[int, ...]:
    """The padding of the high side: that of the low one where the results' sizes allow it."""
    found = []
    for n, t, o, step, before, dilation in zip(
        what.x[2:], what.w[2:], what.y[2:], what.stride, what.padding, what.dilation, strict=True
    ):
        reach = (t - 1) * dilation + 1
        if n + 2 * before >= reach and (n + 2 * before - reach) // step + 1 == o:
            found.append(before)
        else:
            found.append((o - 1) * step + reach - n - before)
    return tuple(found)


def dense(layout: Layout) -> Ints | None:
    """Strides of a tensor that lies in one of the orders that cuDNN knows; None of another."""
    shape = tuple(layout.shape)
    orders = (contiguous_strides(shape), channels_together(shape))
    for steps in orders:
        if all([n == 1 or s == t for n, s, t in zip(shape, layout.strides, steps, strict=True)]):
            return steps
    return None


def channels_together(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of images whose channels lie together."""
    return tuple(strides_in_order(shape, (1, *range(len(shape) - 1, 1, -1), 0)))


def of_two_dims(values: Ints, at: int, value: int) -> tuple[int, ...]:
    """What is said of one spatial dim, of two, the first of which has one element."""
    return (*values[:at], value, *values[at:])


class Convolution:
    """A convolution on a GPU: the library's plan of it, over operands as it can see them."""

    def __init__(
        self, device: Any, dnn: Cudnn, what: Conv, out: Layout, ins: Sequence[Layout]
    ) -> None:
        self.device, self.dnn, self.what = device, dnn, what
        self.layouts = (out, *ins)
        self.copies: dict[int, Copy] = {}
        self.aligned = ALIGNED
        device.gpu.use()
        steps = [dense(layout) for layout in self.layouts[:3]]
        self.is_dense = [each is not None for each in steps]
        self.seen = [
            strided(layout.shape, each or contiguous_strides(layout.shape), layout)
            for layout, each in zip(self.layouts, steps)
        ]
        self.add_bias = self._bias() if len(ins) > 2 else None
        with dnn.lock:
            self.handle = dnn.begin(device.gpu)
            self.plan, self.workspace = self._best()

    def _copy(self, k: int) -> Copy:
        """A kernel that copies operand number k to where it is seen; the result, 0, from there."""
        found = self.copies.get(k)
        if found is None:
            given = (self.seen[k], self.layouts[k]) if k else (self.layouts[0], self.seen[0])
            found = self.copies[k] = copying(self.device, *given)
        return found

    def _bias(self) -> Launch:
        """A kernel that adds a number to each channel of the results."""
        out, bias = self.layouts[0], self.layouts[3]
        steps = (0, bias.strides[0], *[0] * (out.ndim - 2))
        wide = strided(tuple(out.shape), steps, bias)
        both = E.input_(0, out.dtype) + E.input_(1, out.dtype)
        launch: Launch = self.device.compile(Pointwise((both,)), (out,), (out, wide))
        return launch

    @property
    def runs_natively(self) -> bool:
        """Can it be launched in machine code?"""
        return all(self.is_dense) and (self.add_bias is None or self.add_bias.keep is not None)

    # ---- planning
    def _operation(self) -> Descriptor:
        what, dnn, name = self.what, self.dnn, self.layouts[0].dtype.name
        steps, before, dilation = what.stride, what.padding, what.dilation
        after = padding_after(what)
        if min(after) < 0:
            raise Unsupported("a convolution that skips the ends of its images")
        flat = len(steps) == 1
        tensors = []
        for number, seen in enumerate(self.seen):
            sizes, strides = tuple(seen.shape), tuple(seen.strides)
            if flat:
                strides = of_two_dims(strides, 2, sizes[2] * strides[2])
                sizes = of_two_dims(sizes, 2, 1)
            tensors.append(cudnn.tensor(dnn, number, name, sizes, strides, ALIGNED))
        if flat:
            before, after = of_two_dims(before, 0, 0), of_two_dims(after, 0, 0)
            steps, dilation = of_two_dims(steps, 0, 1), of_two_dims(dilation, 0, 1)
        double = name == "float64"
        how = cudnn.convolution(
            dnn, "float64" if double else "float32", before, after, steps, dilation
        )
        out, first, second = tensors
        roles = {
            "forward": (second, first, out), "data": (second, out, first),
            "weight": (out, first, second),
        }  # fmt: skip
        return cudnn.operation(dnn, what.kind, how, *roles[what.kind], double)

    def _best(self) -> tuple[Descriptor, int]:
        """The plan, and how much scratch memory it takes."""
        try:
            operation = self._operation()
        except AcceleratorError as error:
            raise Unsupported(str(error)) from None
        found = list(itertools.islice(self._plans(operation), self._most_plans()))
        if not found:
            raise Unsupported("cuDNN has no way to compute it")
        return found[0] if len(found) == 1 else min(found, key=self._milliseconds)

    def _most_plans(self) -> int | None:
        """How many plans are compared, by running them; None: all."""
        if not switches.cudnn.benchmark or self.device.gpu.stream.capture is not None:
            return 1
        return switches.cudnn.benchmark_limit or None

    def _plans(self, operation: Descriptor) -> Iterator[tuple[Descriptor, int]]:
        """The plans that can be used, the best first, as far as the library knows."""
        dnn, handle = self.dnn, self.handle
        for mode in (cudnn.BY_MODEL, cudnn.FALLBACK):
            try:
                ways = cudnn.ways(dnn, handle, operation, mode)
            except AcceleratorError:
                continue
            for way in ways:
                try:
                    if self._refused(cudnn.notes_of(way)):
                        continue
                    plan, nbytes = cudnn.plan_of(dnn, handle, way)
                except AcceleratorError:
                    continue  # (the heuristic ranks ways that cannot be planned, too)
                if nbytes <= MOST_WORKSPACE:
                    yield plan, nbytes

    def _milliseconds(self, found: tuple[Descriptor, int]) -> float:
        """How long a plan takes, over memory of no particular contents."""
        self.plan, self.workspace = found
        rooms = [self.device.allocate(layout.nbytes) for layout in self.seen]
        places = [room.ptr for room in rooms]
        start, end = EventHandle(timing=True), EventHandle(timing=True)
        try:
            self._execute(places)
            start.record(self.device.gpu.stream)
            for _ in range(BENCHMARKED):
                self._execute(places)
            end.record(self.device.gpu.stream)
            end.synchronize()
        except AcceleratorError:
            return math.inf
        return start.milliseconds_to(end)

    def _refused(self, notes: Ints) -> bool:
        """Are the numbers that a way gives not what is wanted?"""
        if cudnn.NOT_DETERMINISTIC in notes:
            return True
        if self.layouts[0].dtype.name != "float32":
            return False
        rough = cudnn.TENSOR_CORE in notes and not switches.cudnn.allow_tf32
        return rough or cudnn.DOWN_CONVERTS in notes

    # ---- running
    def launch(self) -> Launch:
        """The launch."""
        return library_launch(self.device, "Conv", self.layouts[:1], self.run)

    def run(self, flat: Sequence[Any]) -> None:
        """Gives the work to the current stream."""
        self.run_copied([
            address_of(self.layouts[k], flat[2 * k], flat[2 * k + 1])
            for k in range(len(self.seen))
        ])  # fmt: skip
        if self.add_bias is not None:
            self.add_bias.into(flat[0], flat[1], flat[0], flat[1], flat[6], flat[7])

    def run_copied(self, places: Sequence[int]) -> None:
        """Runs the plan over operands that begin at these addresses, the result first; those that
        it cannot see there are copied."""
        seen, rooms = list(places), {}
        for k, layout in enumerate(self.seen):
            if places[k] % ALIGNED or not self.is_dense[k]:
                rooms[k] = self.device.allocate(layout.nbytes)
                seen[k] = rooms[k].ptr
                if k:
                    self._copy(k)(rooms[k], 0, *storage_at(self.layouts[k], places[k]))
        self._execute(seen)
        if 0 in rooms:
            self._copy(0)(*storage_at(self.layouts[0], places[0]), rooms[0], 0)

    def _execute(self, places: list[int]) -> None:
        dnn, device = self.dnn, self.device
        room = device.allocate(self.workspace) if self.workspace else None
        with dnn.lock:
            handle = dnn.begin(device.gpu)
            where = cudnn.pack(dnn, places, 0 if room is None else room.ptr)
            status = dnn.execute(handle, self.plan.handle, where.handle)
        if status:
            raise dnn.error("cudnnBackendExecute", status)


def storage_at(layout: Layout, address: int) -> tuple[Storage, int]:
    """A storage over a tensor's memory, whose owner somebody else keeps, and the offset in it."""
    size = layout.itemsize
    start, nbytes = address + layout.low * size, (layout.high - layout.low) * size
    return wrap_elsewhere(start, nbytes, None), -layout.low
