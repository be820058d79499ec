"""Depthwise convolutions: every input channel is a group of its own: there is no product to tile.

A plane is padded into scratch (see ``conv``), then rows of results are summed tap by tap, four rows
at a time so that a tap's weight is read once for all of them. With stride 1 the gradient of the
images is a convolution too, of the padded gradient with the taps in reverse.
"""

from __future__ import annotations

from antorcha.devices.cpu.conv_pack import ConvTask, ConvWork, pad_image, table, work_of
from antorcha.lang.native import (
    address,
    first,
    fma,
    i64,
    inline,
    memset,
    native,
    ptr,
    raw,
    reduce_add,
    static,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.pool import pool_run


@native
def sum_taps(
    t: ptr[ConvTask], x: raw, w: raw, start: raw, y: raw, row: i64, *, S, R, FLIP, HAS
) -> void:
    """R rows of results from ``row`` on, of one channel."""
    T = static(S.T)
    L = static(S.L)
    taps = table(t, t.tap_at)
    rows = table(t, t.row_at)
    p = [ptr[T](x) + rows[row + r] for r in static(range(R))]
    o = ptr[T](y) + row * t.row
    weights = ptr[T](w)
    begin = vec[T, S.L](ptr[T](start)[0]) if HAS else vec[T, S.L](0)
    for i in range(0, t.row, L):
        few = first(L, t.row - i)
        acc = [begin for r in static(range(R))]
        for k in range(t.taps):
            one = vec[T, S.L](weights[t.taps - 1 - k] if FLIP else weights[k])
            at = taps[k] + i
            for r in static(range(R)):
                acc[r] = fma(one, vload(p[r] + at, L, few), acc[r])
        for r in static(range(R)):
            vstore(o + (r * t.row + i), acc[r], few)


@native
def sum_square(
    t: ptr[ConvTask], x: raw, w: raw, start: raw, y: raw, row: i64, *, S, R, K, FLIP, HAS
) -> void:
    """The same, in the same order, of K x K taps side by side where rows follow each other: what
    several rows of results see of the image is read once for all."""
    T = static(S.T)
    L = static(S.L)
    p = ptr[T](x) + table(t, t.row_at)[row]
    o = ptr[T](y) + row * t.row
    weights = ptr[T](w)
    ones = [
        vec[T, S.L](weights[K * K - 1 - k] if FLIP else weights[k]) for k in static(range(K * K))
    ]
    begin = vec[T, S.L](ptr[T](start)[0]) if HAS else vec[T, S.L](0)
    for i in range(0, t.row, L):
        few = first(L, t.row - i)
        acc = [begin for r in static(range(R))]
        for line in static(range(R + K - 1)):
            for s in static(range(K)):
                v = vload(p + (line * t.pitch + s + i), L, few)
                for r in static(range(max(0, line - K + 1), min(R, line + 1))):
                    acc[r] = fma(ones[(line - r) * K + s], v, acc[r])
        for r in static(range(R)):
            vstore(o + (r * t.row + i), acc[r], few)


@inline
def sum_rows(t, x, w, bias, y, row, S, R, K, FLIP, HAS):
    """R rows of results; K: of so many taps side by side both ways, or 0."""
    if K > 0:
        sum_square(t, x, w, bias, y, row, S=S, R=R, K=K, FLIP=FLIP, HAS=HAS)
    else:
        sum_taps(t, x, w, bias, y, row, S=S, R=R, FLIP=FLIP, HAS=HAS)


@native
def forward_job(u0: i64, u1: i64, args: raw, *, S, K, FLIP, HAS) -> void:
    """Planes u0..u1 of the images, and the results that they give."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    scratch = i64(0) if t.direct != 0 else (t.plane + 64) * size
    space = allocate(scratch + 64)
    if space is None:
        work.failed = 1
        return
    memset(space, 0, scratch)
    inside = t.depth * t.height * t.width
    rows = t.pixels // t.row
    whole = rows // 4 * 4
    for u in range(u0, u1):
        g = u % t.groups
        x = work.a + u * inside * size
        if t.direct == 0:
            pad_image(t, x, 0, 1, space, S=S)
            x = space
        for j in range(t.kg):
            k = g * t.kg + j
            w = work.b + k * t.taps * size
            bias = work.bias + k * size if HAS else raw(0)
            y = work.out + (u * t.kg + j) * t.pixels * size
            for row in range(0, whole, 4):
                sum_rows(t, x, w, bias, y, row, S, 4, K, FLIP, HAS)
            for row in range(whole, rows):
                sum_rows(t, x, w, bias, y, row, S, 1, K, FLIP, HAS)
    release(space)


@native
def depthwise_kernel(bufs: ptr[raw], desc: ptr[i64], *, S, K, FLIP, HAS) -> i64:
    """y of (x, w[, bias]); with FLIP the taps are reversed. K: see ``sum_rows``."""
    work = work_of(bufs, desc, HAS)
    t = work.task
    pool_run(address(forward_job, S=S, K=K, FLIP=FLIP, HAS=HAS), t.units, t.grain, raw(work))
    return work.failed


@native
def dot_taps(t: ptr[ConvTask], x: raw, y: raw, row: i64, sums: raw, *, S, R) -> void:
    """Adds R rows' products to a vector for each tap."""
    T = static(S.T)
    L = static(S.L)
    taps = table(t, t.tap_at)
    rows = table(t, t.row_at)
    p = [ptr[T](x) + rows[row + r] for r in static(range(R))]
    g = ptr[T](y) + row * t.row
    into = ptr[T](sums)
    for i in range(0, t.row, L):
        few = first(L, t.row - i)
        grads = [vload(g + (r * t.row + i), L, few) for r in static(range(R))]
        for k in range(t.taps):
            acc = vload(into + k * L, L)
            at = taps[k] + i
            for r in static(range(R)):
                acc = fma(grads[r], vload(p[r] + at, L, few), acc)
            vstore(into + k * L, acc)


@native
def weight_job(u0: i64, u1: i64, args: raw, *, S) -> void:
    """The weights of groups u0..u1, over all images in order."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    T = static(S.T)
    L = static(S.L)
    scratch = i64(0) if t.direct != 0 else (t.plane + 64) * size
    space = allocate(scratch + t.kg * t.taps * L * size + 64)
    if space is None:
        work.failed = 1
        return
    memset(space, 0, scratch)
    sums = space + scratch
    inside = t.depth * t.height * t.width
    rows = t.pixels // t.row
    whole = rows // 4 * 4
    for g in range(u0, u1):
        memset(sums, 0, t.kg * t.taps * L * size)
        for n in range(t.n):
            x = work.a + (n * t.groups + g) * inside * size
            if t.direct == 0:
                pad_image(t, x, 0, 1, space, S=S)
                x = space
            for j in range(t.kg):
                y = work.b + ((n * t.groups + g) * t.kg + j) * t.pixels * size
                mine = sums + j * t.taps * L * size
                for row in range(0, whole, 4):
                    dot_taps(t, x, y, row, mine, S=S, R=4)
                for row in range(whole, rows):
                    dot_taps(t, x, y, row, mine, S=S, R=1)
        out = ptr[T](work.out) + g * t.kg * t.taps
        for k in range(t.kg * t.taps):
            out[k] = reduce_add(vload(ptr[T](sums) + k * L, L))
    release(space)


@native
def depthwise_weight_kernel(bufs: ptr[raw], desc: ptr[i64], *, S) -> i64:
    """w of (x, y)."""
    work = work_of(bufs, desc, None)
    t = work.task
    pool_run(address(weight_job, S=S), t.groups, 1, raw(work))
    return work.failed
