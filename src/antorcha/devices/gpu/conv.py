"""Convolutions on a GPU, as products: what a tap sees of the images is found by a window.

The groups are a stack of products. Forward, the rows are channels of the results, the columns their
places in all images, and the depth is channels of the images times taps. The gradient of the images
is the same with the roles of both turned, and with a place for every step of the stride. The
gradient of the weights has the results' places for its depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from antorcha.core import switches
from antorcha.devices.gpu.conv_pieces import plan_by_pieces
from antorcha.devices.gpu.frame import GridPlan
from antorcha.devices.gpu.product import plan_product
from antorcha.devices.gpu.product_operands import (
    GridProduct,
    ProductAxis,
    ProductOperand,
    ProductWindow,
    axis,
    lies_in_pieces,
)
from antorcha.lang.kernels import Conv
from antorcha.runtime.memory.layout import Layout

Ints = Sequence[int]


def plan_conv(what: Conv, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    products = {"forward": forward_product, "data": data_product, "weight": weight_product}
    product = products[what.kind](what, outs[0], ins)
    if not all(each.numel for each in (*outs, *ins[:2])):
        return plan_product(replace(product, k=0), outs, ins)  # of padding alone, or of nothing
    product = replace(product, tf32=bool(switches.cudnn.allow_tf32))
    dtype = outs[0].dtype
    if dtype.kind == "f" and not all(
        lies_in_pieces(o, dtype.itemsize) for o in (product.a, product.b)
    ):
        plan = plan_by_pieces(what, outs, ins, product.tf32)
        if plan is not None:
            return plan
    return plan_product(product, outs, ins)


def forward_product(what: Conv, y: Layout, ins: Sequence[Layout]) -> GridProduct:
    """y of (x, w[, bias])."""
    x, w = ins[:2]
    of_image, of_result = what.x[1] // what.groups, what.w[0] // what.groups
    taps, places = what.w[2:], what.y[2:]
    window = ProductWindow(
        tuple([-p for p in what.padding]), (1,) * len(taps), what.x[2:], tuple(x.strides[2:])
    )
    return GridProduct(
        what.groups, of_result, what.x[0] * math.prod(places), of_image * math.prod(taps),
        ProductOperand(
            2, of_result * w.strides[0], axis((of_result,), w.strides[:1]),
            _channels(of_image, taps, w.strides[1:]),
        ),
        _seen(
            1, of_image * x.strides[1], (what.x[0], *places), (x.strides[0], *what.stride),
            (of_image, *taps), (x.strides[1], *what.dilation), window,
        ),
        _images(y, of_result), _bias(ins, of_result, what.x[0] * math.prod(places)),
    )  # fmt: skip


def data_product(what: Conv, x: Layout, ins: Sequence[Layout]) -> GridProduct:
    """x of (y, w[, bias])."""
    y, w = ins[:2]
    of_image, of_result = what.x[1] // what.groups, what.w[0] // what.groups
    taps, places = what.w[2:], what.x[2:]
    window = ProductWindow(what.padding, what.stride, what.y[2:], tuple(y.strides[2:]))
    return GridProduct(
        what.groups, of_image, what.x[0] * math.prod(places), of_result * math.prod(taps),
        ProductOperand(
            2, of_result * w.strides[0], axis((of_image,), w.strides[1:2]),
            _channels(of_result, taps, (w.strides[0], *w.strides[2:])),
        ),
        _seen(
            1, of_result * y.strides[1], (what.x[0], *places), (y.strides[0], *[1] * len(taps)),
            (of_result, *taps), (y.strides[1], *[-d for d in what.dilation]), window,
        ),
        _images(x, of_image), _bias(ins, of_image, what.x[0] * math.prod(places)),
    )  # fmt: skip


def weight_product(what: Conv, w: Layout, ins: Sequence[Layout]) -> GridProduct:
    """w of (x, y)."""
    x, y = ins
    of_image, of_result = what.x[1] // what.groups, what.w[0] // what.groups
    taps, places = what.w[2:], what.y[2:]
    window = ProductWindow(
        tuple([-p for p in what.padding]), (1,) * len(taps), what.x[2:], tuple(x.strides[2:])
    )
    seen = _seen(
        1, of_image * x.strides[1], (what.x[0], *places), (x.strides[0], *what.stride),
        (of_image, *taps), (x.strides[1], *what.dilation), window,
    )  # fmt: skip
    results = _images(y, of_result)
    return GridProduct(
        what.groups, of_result, of_image * math.prod(taps), what.x[0] * math.prod(places),
        ProductOperand(2, results.batch, results.outer, results.depth),
        ProductOperand(1, seen.batch, seen.depth, seen.outer, seen.window, reads_depth=True),
        ProductOperand(
            0, of_result * w.strides[0], axis((of_result,), w.strides[:1]),
            _channels(of_image, taps, w.strides[1:]),
        ),
    )  # fmt: skip


def _channels(count: int, taps: Ints, strides: Ints) -> ProductAxis:
    """Channels and taps of the weights."""
    found = axis((count, *taps), strides)
    return ProductAxis(found.sizes, found.strides, fixed=len(found.sizes) > 1)


def _images(layout: Layout, channels: int) -> ProductOperand:
    """Results: their channels, and their places in all images."""
    n, _, *places = layout.shape
    return ProductOperand(
        0, channels * layout.strides[1], axis((channels,), layout.strides[1:2]),
        axis((n, *places), (layout.strides[0], *layout.strides[2:])),
    )  # fmt: skip


def _bias(ins: Sequence[Layout], channels: int, columns: int) -> ProductOperand | None:
    if len(ins) < 3:
        return None
    step = ins[2].strides[0]
    return ProductOperand(3, channels * step, axis((channels,), (step,)), axis((columns,), (0,)))


def _seen(
    number: int, batch: int, sizes: Ints, steps: Ints, tap_sizes: Ints, tap_steps: Ints,
    window: ProductWindow,
) -> ProductOperand:  # fmt: skip
    """What the taps (of channels) see from the places (of images): sizes and strides of both, of
    the spatial dims what a step adds to the window's place. No window where nothing moves it off
    the images."""
    spatial = len(window.sizes)
    inside = all(p <= s for p, s in zip(sizes[1:], window.sizes, strict=True))
    plain = inside and set(tap_sizes[1:]) <= {1} and set(window.steps) <= {1}
    if plain and set(window.shifts) <= {0} and set(steps[1:]) <= {1}:
        return ProductOperand(
            number, batch, axis(sizes, (steps[0], *window.strides)),
            axis(tap_sizes[:1], tap_steps[:1]),
        )  # fmt: skip
    return ProductOperand(
        number, batch, ProductAxis(tuple(sizes), tuple(steps), spatial=spatial),
        ProductAxis(tuple(tap_sizes), tuple(tap_steps), fixed=True, spatial=spatial), window,
        reads_depth=False,
    )  # fmt: skip
