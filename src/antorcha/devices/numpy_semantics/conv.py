"""Convolutions with NumPy: windows over the padded images, and products over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from antorcha.lang.kernels import Conv, Unfold
from antorcha.runtime.memory.layout import Layout

Array = np.ndarray[Any, Any]


def windows(what: Conv, padded: Array) -> Array:
    """(N, groups, C / groups, taps.., out..): what each tap sees, as a view."""
    nd = len(what.stride)
    shape = (*what.w[2:], *what.y[2:])
    own = padded.strides[2:]
    strides = [s * d for s, d in zip(own, what.dilation, strict=True)]
    strides += [s * d for s, d in zip(own, what.stride, strict=True)]
    cg = what.x[1] // what.groups
    n, c = padded.strides[:2]
    assert len(strides) == 2 * nd
    return np.lib.stride_tricks.as_strided(
        padded, (what.x[0], what.groups, cg, *shape), (n, c * cg, c, *strides)
    )


def padded_shape(what: Conv) -> list[int]:
    return [
        max(p + n, (o - 1) * s + (t - 1) * d + 1)
        for p, n, o, s, t, d in zip(
            what.padding, what.x[2:], what.y[2:], what.stride, what.w[2:], what.dilation,
            strict=True,
        )
    ]  # fmt: skip


def compute_conv(what: Conv, halves: bool) -> Callable[[list[Any]], Sequence[Any]]:
    """A function of the operands' arrays."""
    nd, g = len(what.stride), what.groups
    kg = what.w[0] // g
    inside = tuple([slice(p, p + n) for p, n in zip(what.padding, what.x[2:], strict=True)])
    taps, out = "abc"[:nd], "xyz"[:nd]

    def wide(a: Array) -> Array:
        return a.astype(np.float32) if halves else a

    def pad(x: Array) -> Array:
        full = np.zeros((*what.x[:2], *padded_shape(what)), x.dtype)
        full[(slice(None), slice(None), *inside)] = x
        return full

    def with_bias(value: Array, rest: list[Any]) -> list[Array]:
        return [value + wide(rest[0]).reshape(1, -1, *[1] * nd) if rest else value]

    def forward(values: list[Any]) -> list[Array]:
        x, w, *rest = values
        seen = windows(what, pad(wide(x)))
        weights = wide(w).reshape(g, kg, *what.w[1:])
        y = np.einsum(f"ngi{taps}{out},gki{taps}->ngk{out}", seen, weights, optimize=True)
        return with_bias(y.reshape(what.y), rest)

    def data(values: list[Any]) -> list[Array]:
        y, w, *rest = values
        weights = wide(w).reshape(g, kg, *what.w[1:])
        grads = wide(y).reshape(what.x[0], g, kg, *what.y[2:])
        full = np.zeros((*what.x[:2], *padded_shape(what)), grads.dtype)
        seen = windows(what, full)
        whole: Any = slice(None)
        for tap in product(*[range(t) for t in what.w[2:]]):
            here: Any = (..., *tap)
            part = np.einsum(f"ngk{out},gki->ngi{out}", grads, weights[here], optimize=True)
            seen[(whole, whole, whole, *tap)] += part
        return with_bias(full[(slice(None), slice(None), *inside)], rest)

    def weight(values: list[Any]) -> list[Array]:
        x, y = values
        seen = windows(what, pad(wide(x)))
        grads = wide(y).reshape(what.x[0], g, kg, *what.y[2:])
        w = np.einsum(f"ngi{taps}{out},ngk{out}->gki{taps}", seen, grads, optimize=True)
        return [w.reshape(what.w)]

    return {"forward": forward, "data": data, "weight": weight}[what.kind]


def compute_unfold(what: Unfold, outs: Sequence[Layout]) -> Callable[[list[Any]], list[Array]]:
    out = outs[0]
    edges = [(0, 0), (0, 0), *[(p, p) for p in what.padding]]

    def unfold(x: Array) -> Array:
        return _blocks(what, np.pad(x, edges)).reshape(out.shape)

    def fold(columns: Array) -> Array:
        n, c, *size = out.shape
        parts = columns.reshape(n, c, *what.kernel_size, *what.blocks)
        result = np.zeros((n, c, *[s + 2 * p for s, p in zip(size, what.padding, strict=True)]),
                        columns.dtype)  # fmt: skip
        seen = _blocks(what, result)
        for tap in np.ndindex(*what.kernel_size):
            seen[(slice(None), slice(None), *tap)] += parts[(slice(None), slice(None), *tap)]
        inside = [slice(p, p + s) for s, p in zip(size, what.padding, strict=True)]
        return result[(slice(None), slice(None), *inside)]

    return lambda values: [(fold if what.back else unfold)(values[0])]


def _blocks(what: Unfold, padded: Array) -> Array:
    """(N, C, taps.., blocks..): the blocks of padded images, as a view."""
    steps = padded.strides[2:]
    return np.lib.stride_tricks.as_strided(
        padded, (*padded.shape[:2], *what.kernel_size, *what.blocks),
        (*padded.strides[:2], *[s * d for s, d in zip(steps, what.dilation, strict=True)],
         *[s * t for s, t in zip(steps, what.stride, strict=True)]),
    )  # fmt: skip
