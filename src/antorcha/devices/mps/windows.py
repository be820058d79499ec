"""Pooling, Unfold and Resample on arrays of MLX's: by tables of places, tap by tap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from antorcha.devices.emit import Unsupported
from antorcha.devices.mps.expressions import Array, Compute, is_float
from antorcha.devices.mps.library import in_mlx, mx
from antorcha.devices.mps.moves import first_where
from antorcha.devices.numpy_semantics.pooling import outside_of_plane
from antorcha.lang.kernels import Pooling, Resample, Unfold
from antorcha.lang.windows import Windows
from antorcha.runtime.memory.layout import Layout

MOST_TAPS = 128


def compute_pooling(what: Pooling, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    layout = outs[0]
    shape = tuple(layout.shape)
    cut = layout.ndim - what.dims
    lead, inside = math.prod(shape[:cut]), math.prod(shape[cut:])
    windows = what.windows
    if not layout.numel or not all([i.numel for i in ins]) or layout.dtype.kind == "c":
        raise Unsupported("pooling of nothing")
    if what.kind != "max gradient":
        assert windows is not None
        if math.prod(windows.most) > MOST_TAPS:
            raise Unsupported("windows of many elements")
    if "gradient" in what.kind and layout.dtype.kind != "f":
        raise Unsupported(f"a gradient of {layout.dtype}")
    given = [math.prod(i.shape[cut:]) for i in ins]

    def compute(values: list[Any]) -> list[Array]:
        planes = [v.reshape(lead, n) for v, n in zip(values, given, strict=True)]
        if what.kind == "max gradient":
            found = [_scattered(planes[0], planes[1], inside)]
        elif what.kind == "average gradient":
            assert windows is not None
            found = [_spread(planes[0], windows)]
        else:
            assert windows is not None
            found = _forward(what.kind, planes[0], windows)
        return [each.reshape(shape) for each in found[: len(outs)]]

    return compute


def _forward(kind: str, x: Array, windows: Windows) -> list[Array]:
    """The results, and where the maxima are in their planes."""
    wide = x.astype(mx.float32) if is_float(x) else x
    lowest: Any = 0
    if kind == "max":
        lowest = -math.inf if is_float(wide) else mx.iinfo(wide.dtype).min
    acc = mx.full((x.shape[0], windows.results), lowest, wide.dtype)
    best = mx.broadcast_to(mx.array(windows.bases()), acc.shape)
    for spot, ok in _taps(windows):
        places = mx.array(np.where(ok, spot, 0))
        inside = mx.array(ok)
        v = mx.take(wide, places, 1)
        if kind == "max":
            better = ((v > acc) | (v != v)) & inside
            acc = mx.where(better, v, acc)
            best = mx.where(better, places, best)
        else:
            acc = acc + mx.where(inside, v, mx.zeros_like(v))
    if kind == "average":
        size = mx.array(windows.divisors())
        if is_float(acc):
            acc = acc / size.astype(acc.dtype)
        else:
            acc = mx.where(acc < 0, -(-acc // size), acc // size)
    return [acc.astype(x.dtype), best]


def _scattered(g: Array, places: Array, inside: int) -> Array:
    """Each result's gradient at the element that it was."""
    if first_where((places < 0) | (places >= inside)) is not None:
        raise outside_of_plane()
    plane = mx.arange(g.shape[0], dtype=mx.int64)[:, None] * inside
    total = mx.zeros((g.shape[0] * inside,), mx.float32)
    found = total.at[(places + plane).reshape(-1)].add(g.reshape(-1).astype(mx.float32))
    return found.astype(g.dtype)


def _spread(g: Array, windows: Windows) -> Array:
    """Each result's gradient shared out among its window."""
    share = (g.astype(mx.float32) / mx.array(windows.divisors().astype(np.float32))).T
    result = mx.zeros((windows.inside, g.shape[0]), mx.float32)
    for spot, ok in _taps(windows):
        which = np.nonzero(ok)[0]
        if which.size:
            result = result.at[mx.array(spot[which])].add(mx.take(share, mx.array(which), 0))
    return result.T.astype(g.dtype)


def _taps(windows: Windows) -> Iterator[tuple[Any, Any]]:
    """For each tap of the longest window: where it is for every result, and whether it counts."""
    bases = windows.bases()
    counts = [windows.counts(k) for k in range(3)]
    steps = windows.steps()
    for tap in np.ndindex(*windows.most):
        ok = np.ones(bases.shape, bool)
        for k in range(3):
            ok &= tap[k] < counts[k]
        yield bases + sum([t * s for t, s in zip(tap, steps, strict=True)]), ok


# ---- sliding blocks
def compute_unfold(what: Unfold, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    images = outs[0] if what.back else ins[0]
    size = tuple(images.shape[2:])
    lead = math.prod(images.shape[:2])
    shape = tuple(outs[0].shape)
    if not images.numel or not (outs[0].numel and ins[0].numel):
        raise Unsupported("blocks of nothing")
    if what.back and images.dtype.kind != "f":
        raise Unsupported(f"sums of blocks of {images.dtype}")
    spot, ok = _block_places(what, size)

    def unfold(values: list[Any]) -> list[Array]:
        flat = values[0].reshape(lead, -1)
        found = mx.take(flat, mx.array(np.where(ok, spot, 0)), 1)
        return [mx.where(mx.array(ok), found, mx.zeros_like(found)).reshape(shape)]

    def fold(values: list[Any]) -> list[Array]:
        total = mx.zeros((math.prod(size) + 1, lead), mx.float32)
        parts = values[0].reshape(lead, *spot.shape).astype(mx.float32)
        for tap in range(spot.shape[0]):  # (the blocks of one tap lie at different places)
            at = mx.array(np.where(ok[tap], spot[tap], math.prod(size)))
            total = total.at[at].add(parts[:, tap].T)
        return [total[:-1].T.reshape(shape).astype(in_mlx(images.dtype))]

    return fold if what.back else unfold


def _block_places(what: Unfold, size: tuple[int, ...]) -> tuple[Any, Any]:
    """(tap, block) -> where it is in an image, and whether it is inside."""
    nd = len(size)
    spot: Any = np.zeros((1,) * (2 * nd), np.int64)
    ok: Any = np.ones((1,) * (2 * nd), bool)
    for d, n in enumerate(size):
        tap = np.arange(what.kernel_size[d]) * what.dilation[d] - what.padding[d]
        block = np.arange(what.blocks[d]) * what.stride[d]
        form = [1] * (2 * nd)
        form[d], form[nd + d] = len(tap), len(block)
        at = (tap[:, None] + block).reshape(form)
        spot = spot * n + at
        ok = ok & (at >= 0) & (at < n)
    full = (math.prod(what.kernel_size), math.prod(what.blocks))
    return spot.reshape(full), np.broadcast_to(ok, spot.shape).reshape(full)


# ---- resampling
def compute_resample(what: Resample, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    kind = in_mlx(outs[0].dtype)
    if what.weights is not None and outs[0].dtype.kind != "f":
        raise Unsupported(f"weighted sums of {outs[0].dtype}")
    if not ins[0].numel:
        raise Unsupported("resampling of nothing")

    def compute(values: list[Any]) -> list[Array]:
        (x,) = values
        if what.weights is None:
            return [mx.take(x, mx.array(what.places[0]), what.dim)]
        after = [1] * (x.ndim - what.dim - 1)
        total: Any = None
        for at, weight in zip(what.places, what.weights, strict=True):
            here = np.where(at < 0, 0, weight).astype(np.float32).reshape(-1, *after)
            seen = mx.take(x, mx.array(np.maximum(at, 0)), what.dim).astype(mx.float32)
            part = mx.where(mx.array((at >= 0).reshape(-1, *after)), seen * mx.array(here), 0.0)
            total = part if total is None else total + part
        return [total.astype(kind)]

    return compute
