"""The template of GridSample: a vector holds places that follow each other.

What a place reads are *taps*: elements of a plane with weights, products of a weight along each
axis. They are worked out once, for all channels. The gradient of the images is added up place by
place, planes by planes, so that no two threads write to the same one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import PassWork, work_of
from antorcha.devices.emit import Unsupported
from antorcha.lang.kernels import Launch
from antorcha.lang.layer_kernels import GridSample
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    floor,
    i32,
    i64,
    inline,
    lanes,
    local,
    memset,
    native,
    ptr,
    raw,
    roundeven,
    select,
    static,
    struct,
    target,
    vec,
    vgather,
    vload,
    void,
    vscatter,
    vstore,
)
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

TYPES: dict[str, Any] = {"float32": f32, "float64": f64}
TAPS = (2, 1, 4)  # along an axis, of each mode
CUBIC = -0.75  # the parameter of R. Keys' weights (1981)
CHANNELS = 16  # whose gradients a thread adds up together
WORTH = 16384  # products that are worth another thread


class GridProgram:
    """The compile-time choices of a kernel."""

    def __init__(self, T: Any, dims: int, what: GridSample) -> None:
        self.T, self.dims, self.what = T, dims, what
        self.L = max(target().vector_bits // 8 // T.size, 2)
        self.I = i32 if T.size == 4 else i64
        self.each = TAPS[what.mode]
        self.taps = self.each**dims

    def __native_key__(self) -> str:
        w = self.what
        return f"{self.T.name} {self.L} {self.dims} {w.kind} {w.mode} {w.padding} {w.align}"


@struct
class GridTask:
    images: i64
    channels: i64
    plane: i64  # elements of a plane
    places: i64  # of an image
    x: i64  # elements along the axes
    y: i64
    z: i64


@inline
def sizes(P, t):
    """The numbers of elements along the axes, x first."""
    whole = [t.x, t.y, t.z]
    return [vec[P.T, P.L](P.T(whole[k])) for k in static(range(P.dims))]


@inline
def unnormalized(P, x, n):
    """From -1 .. 1 to the numbers of elements."""
    return (x + 1.0) * ((n - 1.0) * 0.5) if P.what.align else ((x + 1.0) * n - 1.0) * 0.5


@inline
def padded(P, x, n):
    """A place moved to the border or reflected inside, and how it moves with x."""
    slope = vec[P.T, P.L](1)
    if P.what.padding == 0:
        return x, slope
    if P.what.padding == 2:
        low = static(0.0 if P.what.align else -0.5)
        span = n - 1.0 if P.what.align else n
        far = abs(x - low)
        turns = floor(far / span)
        rest = far - turns * span
        odd = floor(turns * 0.5) * 2.0 != turns
        slope = select(odd ^ (x < low), -slope, slope)
        x = select(span == 0.0, vec[P.T, P.L](0), select(odd, span - rest, rest) + low)
    top = n - 1.0
    slope = select((x > 0.0) & (x < top), slope, vec[P.T, P.L](0))
    return select(x > 0.0, select(x > top, top, x), vec[P.T, P.L](0)), slope  # NaN goes to 0


@inline
def near_weight(t):
    """A cubic weight at a distance below 1, and its slope."""
    a = static(CUBIC)
    weight = ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
    return weight, (static(3.0 * (a + 2.0)) * t - static(2.0 * (a + 3.0))) * t


@inline
def far_weight(t):
    """The same at a distance from 1 to 2."""
    a = static(CUBIC)
    weight = ((a * t - static(5.0 * a)) * t + static(8.0 * a)) * t - static(4.0 * a)
    return weight, (static(3.0 * a) * t - static(10.0 * a)) * t + static(8.0 * a)


@inline
def cubic_weight(k, t):
    """The weight of the k-th of four elements at distance t behind the second, and its slope."""
    if k == 0:
        return far_weight(t + 1.0)
    if k == 1:
        return near_weight(t)
    weight, slope = near_weight(1.0 - t) if k == 2 else far_weight(2.0 - t)
    return weight, -slope


@inline
def tap_along(P, k, x, n):
    """The k-th tap along an axis: its element, whether there is one, its weight, and the slope."""
    one = vec[P.T, P.L](1)
    if P.what.mode == 2:
        low = floor(x)
        weight, slope = cubic_weight(k, x - low)
        at, _ = padded(P, low + static(k - 1.0), n)
    else:
        x, moves = padded(P, x, n)
        if P.what.mode == 1:
            at, weight, slope = roundeven(x), one, one * 0.0
        else:
            low = floor(x)
            at, weight = (low + 1.0, x - low) if k == 1 else (low, 1.0 - (x - low))
            slope = moves if k == 1 else -moves
    inside = (at >= 0.0) & (at < n)
    return vec[P.I, P.L](select(inside, at, one * 0.0)), inside, weight, slope


@inline
def along_axes(P, t, places, few):
    """The taps along each axis of a vector of places."""
    n = sizes(P, t)
    apart = lanes(P.I, P.L) * static(P.dims)
    found = [unnormalized(P, vgather(places + a, apart, few), n[a]) for a in static(range(P.dims))]
    return [
        [tap_along(P, k, found[a], n[a]) for k in static(range(P.each))]
        for a in static(range(P.dims))
    ]


@inline
def numbers_of(P, tap):
    """A tap's number along each axis, x first."""
    return static([tap // P.each**a % P.each for a in range(P.dims)])


@inline
def combined(P, t, axes, tap, few):
    """A tap: its element's number in a plane, where there is one, and its weight."""
    k = numbers_of(P, tap)
    at, inside, weight, _ = axes[0][k[0]]
    inside = inside & few
    length = t.x
    for a in static(range(1, P.dims)):
        more, within, share, _ = axes[a][k[a]]
        at = at + more * vec[P.I, P.L](P.I(length))
        inside = inside & within
        weight = weight * share
        length = length * t.y
    return at, inside, select(inside, weight, vec[P.T, P.L](0))


@inline
def slope_along(P, axes, tap, axis, inside):
    """How a tap's weight changes along an axis; 0 where there is no element."""
    k = numbers_of(P, tap)
    slope = axes[axis][k[axis]][3]
    for a in static([a for a in range(P.dims) if a != axis]):
        slope = slope * axes[a][k[a]][2]
    return select(inside, slope, vec[P.T, P.L](0))


@native
def values_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Vectors u0..u1 of places: what all channels have there."""
    work = ptr[PassWork](args)
    t = ptr[GridTask](raw(work.desc))
    vectors = (t.places + static(P.L - 1)) // P.L
    for u in range(u0, u1):
        image = u // vectors
        p = (u - image * vectors) * P.L
        few = first(P.L, t.places - p)
        places = ptr[P.T](work.bufs[2]) + (image * t.places + p) * static(P.dims)
        axes = along_axes(P, t, places, few)
        taps = [combined(P, t, axes, k, few) for k in static(range(P.taps))]
        for c in range(image * t.channels, (image + 1) * t.channels):
            x = ptr[P.T](work.bufs[1]) + c * t.plane
            total = vec[P.T, P.L](0)
            for k in static(range(P.taps)):
                at, inside, weight = taps[k]
                total = total + vgather(x, at, inside) * weight
            vstore(ptr[P.T](work.bufs[0]) + (c * t.places + p), total, few)


@native
def places_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """The gradients of vectors u0..u1 of places."""
    work = ptr[PassWork](args)
    t = ptr[GridTask](raw(work.desc))
    vectors = (t.places + static(P.L - 1)) // P.L
    n = sizes(P, t)
    for u in range(u0, u1):
        image = u // vectors
        p = (u - image * vectors) * P.L
        few = first(P.L, t.places - p)
        begin = (image * t.places + p) * static(P.dims)
        axes = along_axes(P, t, ptr[P.T](work.bufs[3]) + begin, few)
        taps = [combined(P, t, axes, k, few) for k in static(range(P.taps))]
        sums = [vec[P.T, P.L](0) for _ in static(range(P.taps))]
        for c in range(image * t.channels, (image + 1) * t.channels):
            g = vload(ptr[P.T](work.bufs[1]) + (c * t.places + p), P.L, few)
            x = ptr[P.T](work.bufs[2]) + c * t.plane
            for k in static(range(P.taps)):
                sums[k] = sums[k] + g * vgather(x, taps[k][0], taps[k][1])
        for a in static(range(P.dims)):
            total = vec[P.T, P.L](0)
            for k in static(range(P.taps)):
                total = total + sums[k] * slope_along(P, axes, k, a, taps[k][1])
            total = total * ((n[a] - 1.0) * 0.5 if P.what.align else n[a] * 0.5)
            apart = lanes(P.I, P.L) * static(P.dims)
            vscatter(ptr[P.T](work.bufs[0]) + (begin + a), apart, total, few)


@native
def images_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """The gradients of blocks u0..u1 of channels."""
    work = ptr[PassWork](args)
    t = ptr[GridTask](raw(work.desc))
    blocks = (t.channels + static(CHANNELS - 1)) // CHANNELS
    at, weights = local(P.I, static(P.L * P.taps)), local(P.T, static(P.L * P.taps))
    for u in range(u0, u1):
        image = u // blocks
        begin = (u - image * blocks) * CHANNELS
        many = min(t.channels - begin, i64(CHANNELS))
        begin += image * t.channels
        out = ptr[P.T](work.bufs[0]) + begin * t.plane
        memset(raw(out), 0, many * t.plane * static(P.T.size))
        for p in range(0, t.places, P.L):
            few = first(P.L, t.places - p)
            places = ptr[P.T](work.bufs[2]) + (image * t.places + p) * static(P.dims)
            axes = along_axes(P, t, places, few)
            for k in static(range(P.taps)):
                where, inside, weight = combined(P, t, axes, k, few)
                vstore(at + static(k * P.L), select(inside, where, vec[P.I, P.L](-1)))
                vstore(weights + static(k * P.L), weight)
            count = min(t.places - p, i64(P.L))
            for c in range(many):
                g = ptr[P.T](work.bufs[1]) + ((begin + c) * t.places + p)
                add_taps(P, out + c * t.plane, g, at, weights, count)


@inline
def add_taps(P, y, g, at, weights, count):
    """Adds the gradients of some places to the elements of a plane that they read."""
    for k in static(range(P.taps)):
        for j in range(count):
            place = i64(at[static(k * P.L) + j])
            if place >= 0:
                y[place] += g[j] * weights[static(k * P.L) + j]


@native
def grid_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """desc: a GridTask."""
    work = work_of(bufs, desc)
    t = ptr[GridTask](raw(desc))
    vectors = (t.places + static(P.L - 1)) // P.L
    if P.what.kind == "images":
        blocks = t.images * ((t.channels + static(CHANNELS - 1)) // CHANNELS)
        each = t.places * static(P.taps * CHANNELS)
        pool_run(address(images_job, P=P), blocks, max(WORTH // max(each, 1), 1), raw(work))
    else:
        job = address(values_job, P=P) if P.what.kind == "values" else address(places_job, P=P)
        each = (t.channels + 4) * static(P.taps * P.L)
        pool_run(job, t.images * vectors, max(WORTH // each, 1), raw(work))
    return 0


# ------------------------------------------------------------------------------------ descriptions
def compile_grid_sample(what: GridSample, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    images = outs[0] if what.kind == "images" else ins[-2]
    places = ins[-1]
    T, plane = TYPES.get(images.dtype.name), math.prod(images.shape[2:])
    if T is None or plane >= 1 << 31 or not all([each.contiguous for each in (*outs, *ins)]):
        raise Unsupported
    sizes = [*reversed(images.shape[2:]), 1][:3]
    count = math.prod(places.shape[1:-1])
    task = (*images.shape[:2], plane, count, *sizes)
    program = {"P": GridProgram(T, images.ndim - 2, what)}
    work = images.shape[0] * images.shape[1] * count * program["P"].taps
    return compile_native(what, NativeKernel(grid_kernel, program, task, None, work), outs, ins)
