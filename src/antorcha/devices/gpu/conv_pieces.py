"""Convolutions of images and weights whose channels lie together, by tensor cores where they can.

Where they do not lie so, they are copied first. What a tap sees of an image is then pieces of 16
bytes, each of which is inside of the image or not at all, and the depth of a product goes from tap
to tap, in each through the channels. Channels that fill no whole pieces are filled up with zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from antorcha.core.shapes import strides_in_order
from antorcha.devices.gpu.channels_last import packing_step
from antorcha.devices.gpu.frame import GridPlan, GridStep
from antorcha.devices.gpu.pointwise import plan_pointwise
from antorcha.devices.gpu.product import SHALLOW, THIN, plan_product
from antorcha.devices.gpu.product_operands import (
    GridProduct,
    ProductAxis,
    ProductOperand,
    ProductWindow,
    axis,
    lies_in_pieces,
)
from antorcha.lang.expr import graph as E
from antorcha.lang.kernels import Conv, Pointwise
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

Ints = Sequence[int]
FILLED = 4  # channels of a piece's are filled up from a quarter of them on
LEAST = 1 << 22  # products to add up, from which on copies are worth while


@dataclass
class ConvSteps:
    """The kernels of a convolution so far: buffers are the outputs, the inputs, temporaries."""

    outs: Sequence[Layout]
    ins: Sequence[Layout]
    tf32: bool
    steps: list[GridStep] = field(default_factory=list)
    temporaries: list[int] = field(default_factory=list)

    def temporary(self, nbytes: int) -> int:
        """The number of a new buffer."""
        self.temporaries.append(nbytes)
        return len(self.outs) + len(self.ins) + len(self.temporaries) - 1

    def add(self, plan: GridPlan, buffers: Sequence[int]) -> None:
        """Adds the kernels of a plan, whose operands are these buffers."""
        every = [*buffers, *[self.temporary(nbytes) for nbytes in plan.temporaries]]
        self.steps += [
            GridStep(
                step.kernel, step.static, step.blocks, step.threads,
                tuple([every[k] for k in step.operands]), step.words, step.shared, step.capability,
            )
            for step in plan.steps
        ]  # fmt: skip

    def copy(self, to: Layout, number: int, source: Layout, of: int) -> None:
        """Copies buffer ``of`` to another."""
        what = Pointwise((E.input_(0, to.dtype),))
        self.add(plan_pointwise(what, (to,), (source,)), (number, of))

    def plan(self) -> GridPlan:
        return GridPlan(tuple(self.steps), tuple(self.temporaries))


def plan_by_pieces(
    what: Conv, outs: Sequence[Layout], ins: Sequence[Layout], tf32: bool
) -> GridPlan | None:
    """The plan; None where there is little to do, or channels are too few, or too few for whole
    pieces in each group."""
    piece = 16 // outs[0].itemsize
    of_image, of_result = what.x[1] // what.groups, what.w[0] // what.groups
    rows = of_image if what.kind == "data" else of_result
    seen = of_result if what.kind == "data" else of_image
    both = (of_image, of_result) if what.kind == "weight" else (seen,)
    if rows <= THIN or seen * math.prod(what.w[2:]) <= 2 * SHALLOW:
        return None
    if math.prod(what.w[1:]) * math.prod(what.y) < LEAST:
        return None
    if not all(n % piece == 0 or (what.groups == 1 and n * FILLED > piece) for n in both):
        return None
    work = ConvSteps(outs, ins, tf32)
    plan = {"forward": _forward, "data": _data, "weight": _weight}[what.kind]
    plan(what, work, piece)
    return work.plan()


def _forward(what: Conv, work: ConvSteps, piece: int) -> None:
    """y of (x, w[, bias])."""
    y, taps, places = work.outs[0], what.w[2:], what.y[2:]
    x, x_number = _together(work, work.ins[0], 1, piece)
    of_image, of_result = x.shape[1] // what.groups, what.w[0] // what.groups
    w, w_number = _together(work, work.ins[1], 2, piece)
    seen = _image_seen(what, x, of_image)
    weights = ProductOperand(
        2, of_result * w.strides[0], axis((of_result,), w.strides[:1]),
        axis((*taps, of_image), (*w.strides[2:], 1)),
    )  # fmt: skip
    _product(what, work, y, (of_result, places), weights, seen, (x, x_number), (w, w_number))


def _data(what: Conv, work: ConvSteps, piece: int) -> None:
    """x of (y, w[, bias])."""
    x, taps, places = work.outs[0], what.w[2:], what.x[2:]
    y, y_number = _together(work, work.ins[0], 1, piece)
    of_image, of_result = what.x[1] // what.groups, y.shape[1] // what.groups
    given = work.ins[1]  # (images' channels, results' channels of a group after another)
    turned = L.layout(
        (what.groups, of_image, what.w[0] // what.groups, *taps),
        (given.strides[0] * (what.w[0] // what.groups), given.strides[1], given.strides[0],
         *given.strides[2:]), given.dtype, given.device,
    )  # fmt: skip
    w, w_number = _together(work, turned, 2, piece, 2)
    window = ProductWindow(what.padding, what.stride, what.y[2:], tuple(y.strides[2:]))
    seen = _seen(
        1, of_result, (what.x[0], *places), (y.strides[0], *[1] * len(taps)), (*taps, of_result),
        [-d for d in what.dilation], window,
    )  # fmt: skip
    weights = ProductOperand(
        2, w.strides[0], axis((of_image,), w.strides[1:2]),
        axis((*taps, of_result), (*w.strides[3:], 1)),
    )  # fmt: skip
    _product(what, work, x, (of_image, places), weights, seen, (y, y_number), (w, w_number))


def _product(
    what: Conv, work: ConvSteps, out: Layout, size: tuple[int, Ints], weights: ProductOperand,
    seen: ProductOperand, images: tuple[Layout, int], packed: tuple[Layout, int],
) -> None:  # fmt: skip
    """Adds the product of weights and images; ``size``: channels and places of its results."""
    channels, places = size
    columns = what.x[0] * math.prod(places)
    result = ProductOperand(
        0, channels * out.strides[1], axis((channels,), out.strides[1:2]),
        axis((what.x[0], *places), (out.strides[0], *out.strides[2:])),
    )  # fmt: skip
    bias = None
    if len(work.ins) > 2:
        step = work.ins[2].strides[0]
        bias = ProductOperand(
            3, channels * step, axis((channels,), (step,)), axis((columns,), (0,))
        )
    depth = math.prod(seen.depth.sizes)
    product = GridProduct(
        what.groups, channels, columns, depth, weights, seen, result, bias, tf32=work.tf32
    )
    operands = [images[0], packed[0], *work.ins[2:]]
    numbers = (0, images[1], packed[1], *range(3, len(work.ins) + 1))
    work.add(plan_product(product, [out], operands), numbers)


def _weight(what: Conv, work: ConvSteps, piece: int) -> None:
    """w of (x, y)."""
    w, taps, places = work.outs[0], what.w[2:], what.y[2:]
    x, x_number = _together(work, work.ins[0], 1, piece)
    y, y_number, of_result = work.ins[1], 2, what.w[0] // what.groups
    results = _results(what, y, of_result)
    if not lies_in_pieces(results, y.itemsize):
        y, y_number = _together(work, y, 2, piece)
        of_result = y.shape[1] // what.groups
        results = _results(what, y, of_result)
    of_image = x.shape[1] // what.groups
    seen = _image_seen(what, x, of_image)
    found, number = w, 0
    if (of_image, of_result) != (what.w[1], what.w[0] // what.groups):  # (filled up)
        found = _channels_last((of_result, of_image, *taps), w)
        number = work.temporary(found.nbytes)
    out = ProductOperand(
        0, of_result * found.strides[0], axis((of_result,), found.strides[:1]),
        axis((*taps, of_image), (*found.strides[2:], found.strides[1])),
    )  # fmt: skip
    product = GridProduct(
        what.groups, of_result, of_image * math.prod(taps), what.x[0] * math.prod(places), results,
        ProductOperand(
            1, seen.batch, seen.depth, replace(seen.outer, fixed=True), seen.window,
            reads_depth=False,
        ), out, tf32=work.tf32,
    )  # fmt: skip
    work.add(plan_product(product, [found], [x, y]), (number, x_number, y_number))
    if number:
        valid = L.layout(w.shape, found.strides, w.dtype, w.device)
        work.copy(w, 0, valid, number)


def _results(what: Conv, y: Layout, channels: int) -> ProductOperand:
    """The channels of results, and for the depth their places in all images."""
    return ProductOperand(
        2, channels * y.strides[1], axis((channels,), y.strides[1:2]),
        replace(axis((what.x[0], *what.y[2:]), (y.strides[0], *y.strides[2:])), fixed=True),
    )  # fmt: skip


def _image_seen(what: Conv, x: Layout, channels: int) -> ProductOperand:
    """The images as the windows at the results' places see them."""
    taps, places = what.w[2:], what.y[2:]
    window = ProductWindow(
        tuple([-p for p in what.padding]), (1,) * len(taps), what.x[2:], tuple(x.strides[2:])
    )
    return _seen(
        1, channels, (what.x[0], *places), (x.strides[0], *what.stride), (*taps, channels),
        what.dilation, window,
    )  # fmt: skip


def _seen(
    number: int, channels: int, sizes: Ints, steps: Ints, tap_sizes: Ints, tap_steps: Ints,
    window: ProductWindow,
) -> ProductOperand:  # fmt: skip
    """What taps, and channels in each, see from the places of images."""
    spatial = len(window.sizes)
    return ProductOperand(
        number, channels, ProductAxis(tuple(sizes), tuple(steps), spatial=spatial),
        ProductAxis(tuple(tap_sizes), (*tap_steps, 1), fixed=True, spatial=spatial, inner=1),
        window, reads_depth=True,
    )  # fmt: skip


def _together(
    work: ConvSteps, given: Layout, number: int, piece: int, dim: int = 1
) -> tuple[Layout, int]:
    """The layout and the number of a buffer whose channels, dim ``dim``, lie together in whole
    pieces: what is given, or a copy."""
    others = [s for d, s in enumerate(given.strides) if d != dim]
    if given.strides[dim] == 1 and not any(n % piece for n in (given.shape[dim], *others)):
        return given, number
    count = -(-given.shape[dim] // piece) * piece
    to = _channels_last((*given.shape[:dim], count, *given.shape[dim + 1 :]), given, dim)
    buffer = work.temporary(to.nbytes)
    step = packing_step(to, given) if dim == 1 else None
    if step is not None:
        work.add(GridPlan((step,)), (buffer, number))
        return to, buffer
    if count != given.shape[dim]:
        zero = Pointwise((E.const(0, to.dtype),))
        work.add(plan_pointwise(zero, (to,), ()), (buffer,))
    valid = L.layout(given.shape, to.strides, to.dtype, to.device)
    work.copy(valid, buffer, given, number)
    return to, buffer


def _channels_last(shape: Ints, like: Layout, dim: int = 1) -> Layout:
    """A layout in one piece whose channels lie together."""
    order = (dim, *[d for d in range(len(shape) - 1, -1, -1) if d != dim])
    return L.layout(tuple(shape), tuple(strides_in_order(shape, order)), like.dtype, like.device)
