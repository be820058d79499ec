"""Planning a convolution: the geometry in description words, and how the work is cut.

Results and images are cut for the number of threads: each element is summed in the same order
however it is cut. The parts of a weight's gradient, and how many images go together where tiles of
pixels are added up, depend on the shapes alone.

What ``conv`` wants to lie in order and does not (channels_last operands, results of other
layouts) is copied first, or last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.conv import data_kernel, forward_kernel, weight_kernel
from antorcha.devices.cpu.conv_blocked import PX, blocked_kernel, blocked_weight_kernel
from antorcha.devices.cpu.conv_depthwise import depthwise_kernel, depthwise_weight_kernel
from antorcha.devices.cpu.conv_pack import ConvTask
from antorcha.devices.cpu.matmul import ProductShape, shape_of
from antorcha.devices.cpu.pointwise import compile_pointwise
from antorcha.devices.cpu.template import launch
from antorcha.devices.emit import Unsupported
from antorcha.lang import expr as E
from antorcha.lang.kernels import Conv, Launch, Pointwise
from antorcha.lang.native import f32, f64
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import new_storage
from antorcha.runtime.pool import get_num_threads

UNIT = 1 << 18  # multiply-adds of a unit of work, at least
GROUP = 3 << 19  # bytes of padded images that a unit holds, about
SUMS = 32 << 20  # bytes of partial sums of a weight gradient, at most
PARTS = 8  # parts that the images of a weight gradient are cut into, at most
BLOCKED = 1 << 22  # multiply-adds from which blocks of channels are worth their compilation
LEAST = 5  # pixels of a row from which tiles of them keep both multipliers busy
DEEP = 144  # terms of a sum from which the transposition of a tile costs little
SHARES = 4  # of the images, at least, where which of them go together decides the sums' order


def compile_conv(what: Conv, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    dtype = outs[0].dtype
    T = {"float32": f32, "float64": f64}.get(dtype.name)
    if T is None or any(i.dtype is not dtype for i in ins):
        raise Unsupported("a convolution of other dtypes than float32 and float64")
    if 0 in (*what.x, *what.w, *what.y) or len(what.x) > 5:
        raise Unsupported("a convolution of nothing")
    S = shape_of(T)
    kernel, words = choose(what, S, len(ins) == 3)
    dense_out = L.contiguous(tuple(outs[0].shape), dtype, outs[0].device)
    dense_ins = [L.contiguous(tuple(i.shape), dtype, i.device) for i in ins]
    result = launch(kernel, words, [dense_out], dense_ins, work_of(what) // 64, what, no_memory)
    return staged(result, outs[0], dense_out, ins, dense_ins)


def choose(what: Conv, S: ProductShape, has_bias: bool) -> tuple[Any, list[int]]:
    """The kernel and its description words."""
    depthwise = what.groups > 1 and what.w[1] == 1
    turned = as_forward(what) if what.kind == "data" else None
    flip = turned is not None
    if depthwise and (what.kind == "forward" or turned is not None):
        geometry = Geometry(turned or what, S.T.size, S)
        geometry.cut_planes(work_of(what))
        options = {"S": S, "K": geometry.square(), "FLIP": flip, "HAS": has_bias}
        return depthwise_kernel.spec(**options), geometry.words()
    if not depthwise and is_blocked(turned or what, S):
        return choose_blocked(turned or what, S, flip, has_bias)
    words = Geometry(turned or what, S.T.size, S).words()
    if what.kind == "weight":
        return (depthwise_weight_kernel if depthwise else weight_kernel).spec(S=S), words
    if what.kind == "data" and not flip:
        return data_kernel.spec(S=S, HAS=has_bias), words
    return forward_kernel.spec(S=S, HAS=has_bias, FLIP=flip), words


def choose_blocked(
    what: Conv, S: ProductShape, flip: bool, has_bias: bool
) -> tuple[Any, list[int]]:
    """The same of a convolution whose image lies in blocks of channels."""
    words = BlockedGeometry(what, S.T.size, S).words()
    if what.kind == "weight":
        return blocked_weight_kernel.spec(S=S), words
    row = what.y[3]
    tiles = -(-row // S.MR)
    width = -(-row // tiles)
    vectors = 2 if fills(what.w[0] // what.groups, 2 * S.L) else 1
    return blocked_kernel.spec(
        S=S, HAS=has_bias, FLIP=flip, NV=vectors, WIDTH=width, NARROW=width * tiles > row,
        STEP=what.stride[1],
    ), words  # fmt: skip


def is_blocked(what: Conv, S: ProductShape) -> bool:
    """Are there enough channels for vectors of them, and enough work for a kernel of its own?"""
    if len(what.x) != 4 or work_of(what) < BLOCKED or what.kind == "data":
        return False
    if what.kind == "weight":
        return fills(what.w[1], S.L) and what.y[3] <= 4 * PX
    return (
        fills(what.w[0] // what.groups, S.L) and what.y[3] >= LEAST and what.stride[1] <= 2
        and what.w[1] >= DEEP // math.prod(what.w[2:]) and math.prod(what.w[2:]) > 1
    )  # fmt: skip


def fills(channels: int, wide: int) -> bool:
    """Is hardly any of so many channels' vectors empty?"""
    return -(-channels // wide) * wide * 7 <= channels * 8


def as_forward(what: Conv) -> Conv | None:
    """A gradient of images as a convolution of the results' gradient with the weights turned."""
    padding = tuple(
        [d * (t - 1) - p for d, t, p in zip(what.dilation, what.w[2:], what.padding, strict=True)]
    )
    few = 1 < what.w[1] < 8 or (what.w[1] == 1 and what.w[0] != what.groups)
    if few or any([s != 1 for s in what.stride]) or min(padding) < 0:
        return None
    w = (what.x[1], what.w[0] // what.groups, *what.w[2:])  # as the kernel will see them
    return Conv("forward", what.y, w, what.x, what.stride, padding, what.dilation, what.groups)


def no_memory(code: int) -> BaseException:
    return MemoryError("convolution: there is no memory for the padded images")


def work_of(what: Conv) -> int:
    """Multiply-adds."""
    return math.prod(what.y) * math.prod(what.w[1:])


def staged(
    launch: Launch, out: Layout, dense: Layout, ins: Sequence[Layout], wanted: Sequence[Layout]
) -> Launch:
    """The launch with copies of the operands that do not lie in order."""
    copies = [
        None if have.contiguous else _copy(want, have)
        for have, want in zip(ins, wanted, strict=True)
    ]
    last = None if out.contiguous else _copy(out, dense)
    if last is None and not any(copies):
        return launch

    def into(storage: Any, offset: int, *flat: Any) -> None:
        given = list(flat)
        for k, copy in enumerate(copies):
            if copy is not None:
                side = new_storage(wanted[k].nbytes)
                copy.into(side, 0, flat[2 * k], flat[2 * k + 1])
                given[2 * k : 2 * k + 2] = [side, 0]
        if last is None:
            launch.into(storage, offset, *given)
        else:
            last.into(storage, offset, launch.fresh(*given), 0)

    def fresh(*flat: Any) -> Any:
        storage = new_storage(out.nbytes)
        into(storage, 0, *flat)
        return storage

    return Launch(fresh, into, (launch, copies, last))


def _copy(to: Layout, source: Layout) -> Launch:
    return compile_pointwise(Pointwise((E.input_(0, source.dtype),)), (to,), (source,))


def three(values: Sequence[int], fill: int) -> list[int]:
    return [fill] * (3 - len(values)) + [int(v) for v in values]


class Geometry:
    """The sizes of a convolution, seen with three spatial dims; see ``conv.Task``."""

    def __init__(self, what: Conv, itemsize: int, S: ProductShape) -> None:
        self.kind, self.S, self.itemsize = what.kind, S, itemsize
        self.n, channels = what.x[:2]
        self.groups = what.groups
        self.cg, self.kg = channels // what.groups, what.w[0] // what.groups
        self.size = three(what.x[2:], 1)
        self.taps = three(what.w[2:], 1)
        self.out = three(what.y[2:], 1)
        self.stride, self.dilation = three(what.stride, 1), three(what.dilation, 1)
        self.pad = three(what.padding, 0)
        if self.is_plain():  # one row: the pixels of a channel follow each other
            self.size, self.out = [[1, 1, math.prod(v)] for v in (self.size, self.out)]
        self.reach = [(t - 1) * d + 1 for t, d in zip(self.taps, self.dilation, strict=True)]
        reach = [(o - 1) * s + r for o, s, r in zip(self.out, self.stride, self.reach, strict=True)]
        self.full = [max(p + n, r) for p, n, r in zip(self.pad, self.size, reach, strict=True)]
        self.step = self.stride[2] if self.full[2] > 1 else 1
        self.wq = -(-self.full[2] // self.step)
        self.pitch = self.wq * self.step
        self.plane = self.full[0] * self.full[1] * self.pitch
        self.pixels = math.prod(self.out)
        self.direct = (
            self.kind != "data" and self.step == 1 and not any(self.pad)
            and self.full == self.size
        )  # fmt: skip
        self.image = self.plane * (self.cg * (self.groups if self.direct else 1))
        self.cut(work_of(what))

    def is_plain(self) -> bool:
        """Does every pixel of the result see just the one pixel at its place?"""
        return (
            self.taps == [1, 1, 1] and self.stride == [1, 1, 1] and not any(self.pad)
            and self.size == self.out
        )  # fmt: skip

    def cut(self, work: int) -> None:
        """Into what units the work is cut."""
        self.batch, self.parts, self.blocks, self.block = 1, 1, 1, 0
        columns = self.cg * math.prod(self.taps)
        if self.kind == "weight":
            total = self.groups * self.kg * columns
            self.parts = max(min(self.n, PARTS, SUMS // (total * self.itemsize)), 1)
            self.part = -(-self.n // self.parts)
            self.parts = -(-self.n // self.part)
            wanted = max(-(-PARTS // (self.parts * self.groups)), 1)
            tiles = -(-columns // self.S.NR)
            self.block = -(-tiles // min(wanted, tiles)) * self.S.NR
            self.blocks = -(-columns // self.block)
            units = self.parts * self.groups * self.blocks
        else:
            held = max(self.image * self.itemsize, 1)
            wanted = 2 * get_num_threads()
            # (tiles of pixels are added up in an order that depends on which images go together)
            shares = SHARES if self.kind == "data" else wanted
            most = max(min(GROUP // held, -(-1024 // self.pixels), -(-self.n // shares)), 1)
            self.batch = self.best_batch(min(most, 8))
            units = -(-self.n // self.batch) * self.groups
            whole = self.batch * self.pixels if self.kind == "forward" else self.cg
            self.part = whole
            if units < wanted and work // max(units, 1) > UNIT:
                tile = self.S.NR if self.kind == "forward" else self.S.MR
                tiles = -(-whole // tile)
                self.part = -(-tiles // min(-(-wanted // units), tiles)) * tile
            self.parts = -(-whole // self.part)
            units *= self.parts
        self.units = units
        self.grain = max(UNIT * units // max(work, 1), 1)

    def best_batch(self, most: int) -> int:
        """The number of images whose pixels fill their tiles best; small images go together."""

        def waste(batch: int) -> tuple[float, int]:
            tiles = -(-batch * self.pixels // self.S.NR)
            return round(tiles * self.S.NR / (batch * self.pixels), 2), batch

        few = min(most, -(-256 // self.pixels))
        return min(range(few, most + 1), key=waste) if self.pixels < 1024 else 1

    def cut_planes(self, work: int) -> None:
        """A unit for every plane: depthwise convolutions."""
        self.batch, self.parts, self.part = 1, 1, self.pixels
        self.units = self.n * self.groups
        self.grain = max((UNIT >> 3) * self.units // max(work, 1), 1)

    def square(self) -> int:
        """3 for 3 x 3 taps side by side whose results' rows see rows that follow each other; 0."""
        near = self.stride == [1, 1, 1] and self.dilation == [1, 1, 1] and self.out[0] == 1
        return 3 if near and self.taps == [1, 3, 3] else 0

    def used(self, axis: int) -> int:
        """Which remainders modulo the stride some tap sees, as bits."""
        stride = self.stride[axis] if axis == 1 else self.step
        if stride > 60 or self.kind == "data":
            return -1
        seen = {t * self.dilation[axis] % stride for t in range(self.taps[axis])}
        return sum([1 << k for k in seen])

    def tap_table(self) -> list[int]:
        rows = self.full[1] * self.pitch
        d, h, w = self.dilation
        return [
            t * d * rows + r * h * self.pitch + (s * w % self.step) * self.wq + s * w // self.step
            for t in range(self.taps[0]) for r in range(self.taps[1]) for s in range(self.taps[2])
        ]  # fmt: skip

    def row_table(self) -> list[int]:
        rows = self.full[1] * self.pitch
        return [
            t * self.stride[0] * rows + r * self.stride[1] * self.pitch
            for t in range(self.out[0]) for r in range(self.out[1])
        ]  # fmt: skip

    def words(self) -> list[int]:
        taps, rows = self.tap_table(), self.row_table()
        head = ConvTask.size // 8
        wide = -(-self.cg // self.S.L) * self.S.L
        return [
            self.n, self.groups, self.cg, self.kg, *self.size, *self.pad, self.step, self.wq,
            self.pitch, self.full[1], self.plane, self.image, int(self.direct), self.out[2],
            self.pixels, len(taps), self.batch, self.parts, self.part, self.blocks, self.block,
            self.stride[1], self.used(1), self.used(2), self.units, self.grain,
            self.reach[1], wide, head, head + len(taps), *taps, *rows,
        ]  # fmt: skip


class BlockedGeometry(Geometry):
    """The sizes of a convolution whose image lies in blocks of L channels."""

    def is_plain(self) -> bool:
        return False

    def cut(self, work: int) -> None:
        L, size = self.S.L, self.full[1] * self.full[2]
        self.pitch, self.plane, self.image = self.full[2], size, size * (-(-self.cg // L) * L)
        if self.kind == "weight":
            super().cut(work)
            wanted = max(-(-PARTS // (self.parts * self.groups)), 1)
            pairs = -(-self.cg // (2 * L))
            self.block = -(-pairs // min(wanted, pairs)) * 2 * L
            self.blocks = -(-self.cg // self.block)
            self.units = self.parts * self.groups * self.blocks
        else:
            self.batch, self.blocks, self.block = 1, 1, 0
            images, rows = self.n * self.groups, self.out[1]
            self.part = -(-rows // min(max(-(-2 * get_num_threads() // images), 1), rows))
            self.parts = -(-rows // self.part)
            self.units = images * self.parts
        self.grain = max(UNIT * self.units // max(work, 1), 1)

    def tap_table(self) -> list[int]:
        d, w = self.dilation[1] * self.pitch, self.dilation[2]
        return [
            (r * d + s * w) * self.S.L for r in range(self.taps[1]) for s in range(self.taps[2])
        ]

    def row_table(self) -> list[int]:
        return [r * self.stride[1] * self.pitch * self.S.L for r in range(self.out[1])]
