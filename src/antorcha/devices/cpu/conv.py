"""Convolutions and their gradients as matrix products whose columns are never stored.

The image is padded into scratch memory, its columns sorted by their remainder modulo the stride:
what one tap of the kernel sees of a row of results is then contiguous. A tile of results (output
channels x pixels) stays in registers while packed weights and packed pixels stream by, as in
``matmul``; packing a panel of pixels is a few vector copies a tap. Results come out in place.

forward: weights (K x CT) times columns (CT x pixels), where CT counts channels times taps.
data: for each tap, weights (C x K) times the results' gradient (K x pixels), added to the padded
image. weight: the results' gradient (K x pixels) times the columns transposed, summed over images.

A unit of work is some images of a group (forward, data) or a part of the images and columns
(weight).
"""

from __future__ import annotations

from antorcha.devices.cpu.conv_pack import (
    ConvTask,
    ConvWork,
    pack_gradients,
    pack_pixels,
    pack_weights,
    pad_image,
    plain_runs,
    runs,
    table,
    unpad_image,
    work_of,
)  # fmt: skip
from antorcha.devices.cpu.matmul import pack, tiles
from antorcha.lang.native import (
    address,
    bool_,
    first,
    i64,
    local,
    memset,
    native,
    ptr,
    raw,
    static,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.pool import pool_run

KC = 384  # depth of a packed panel
WIDE = 8  # tiles of pixels that share a pass over the weights
PB = 256  # pixels of a block in the weight gradient


# -------------------------------------------------------------------------------------- forward
@native
def spread_tile(
    t: ptr[ConvTask], tile: raw, rows: i64, n: i64, q: i64, out: raw, add: bool_, *, S
) -> void:
    """A tile whose pixels belong to several images."""
    T = static(S.T)
    p = ptr[T](tile)
    o = ptr[T](out)
    channels = t.groups * t.kg * t.pixels
    for j in range(n):
        image = (q + j) // t.pixels
        at = o + (image * channels + (q + j) % t.pixels)
        for i in range(rows):
            v = p[i * S.NR + j]
            at[i * t.pixels] = at[i * t.pixels] + v if add else v


@native(export=True)
def forward_job(u0: i64, u1: i64, args: raw, *, S, HAS) -> void:
    """Units u0..u1: the results of some images of a group, or a part of one's pixels."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    T = static(S.T)
    NR = static(S.NR)
    MR = static(S.MR)
    ct = t.cg * t.taps
    tall = ct + 1 if HAS else ct
    taps = table(t, t.tap_at)
    per = (t.kg + S.MR - 1) // S.MR
    scratch = i64(0) if t.direct != 0 else (t.batch * t.image + 64) * size
    deep = min(ct, KC) + 1
    space = allocate(scratch + (WIDE * deep * NR + 64) * size)
    if space is None:
        work.failed = 1
        return
    packed = space + scratch
    memset(space, 0, scratch)
    seg = local(i64, 3 * 64)
    side = raw(local(T, S.MR * S.NR))
    for u in range(u0, u1):
        part = u % t.parts
        g = u // t.parts % t.groups
        n0 = u // (t.parts * t.groups) * t.batch
        count = min(t.batch, t.n - n0)
        inside = t.depth * t.height * t.width
        x = work.a + (n0 * t.groups + g) * t.cg * inside * size
        if t.direct == 0:
            for i in range(count):
                pad_image(
                    t, x + i * t.groups * t.cg * inside * size, 0, t.cg,
                    space + i * t.image * size, S=S,
                )  # fmt: skip
            x = space
        y = work.out + (n0 * t.groups + g) * t.kg * t.pixels * size
        end = min(count * t.pixels, (part + 1) * t.part)
        for q in range(part * t.part, end, WIDE * S.NR):
            wide = min(WIDE * S.NR, end - q)
            for k0 in range(0, ct, KC):
                kc = min(ct - k0, KC)
                rows = kc
                if HAS:
                    rows = kc + 1 if k0 + kc == ct else kc
                for j in range(0, wide, NR):
                    runs_of = runs(t, q + j, min(wide - j, NR), seg, S.L)
                    to = packed + j * rows * size
                    pack_pixels(
                        x, t.plane, t.taps, taps, k0, kc, seg, runs_of, to, S.NR,
                        t.direct == 0, S=S,
                    )  # fmt: skip
                    if rows > kc:
                        ones = ptr[T](to) + kc * NR
                        for b in static(range(S.NV)):
                            vstore(ones + b * S.L, vec[T, S.L](1))
                for m in range(0, t.kg, MR):
                    A = work.space + ((g * per + m // MR) * tall + k0) * MR * size
                    for j in range(0, wide, NR):
                        n = min(wide - j, NR)
                        B = packed + j * rows * size
                        image = (q + j) // t.pixels
                        p = q + j - image * t.pixels
                        if p + n <= t.pixels:
                            C = y + (image * t.groups * t.kg * t.pixels + m * t.pixels + p) * size
                            tiles(
                                rows, A, B, i64(NR), C, t.pixels, C if k0 > 0 else raw(0), t.pixels,
                                t.kg - m, n, 1.0, S=S,
                            )  # fmt: skip
                        else:
                            tiles(rows, A, B, i64(NR), side, NR, raw(0), NR, t.kg - m, n, 1.0, S=S)
                            spread_tile(
                                t, side, min(t.kg - m, MR), n, q + j, y + m * t.pixels * size,
                                k0 > 0, S=S,
                            )  # fmt: skip
    release(space)


@native
def forward_kernel(bufs: ptr[raw], desc: ptr[i64], *, S, HAS, FLIP) -> i64:
    """y of (x, w[, bias]). With FLIP the weights are turned: x is a gradient of results, y one of
    images, and w is (x's channels, y's channels of a group, taps)."""
    work = work_of(bufs, desc, HAS)
    t = work.task
    per = (t.kg + S.MR - 1) // S.MR
    ct = t.cg * t.taps + 1
    work.space = allocate(t.groups * per * ct * S.MR * S.T.size + 64)
    if work.space is None:
        return 1
    pool_run(
        address(pack_weights, S=S, HAS=HAS, FLIP=FLIP, W=S.MR), t.groups * per,
        max(65536 // (ct * S.MR), 1), raw(work),
    )  # fmt: skip
    pool_run(address(forward_job, S=S, HAS=HAS), t.units, t.grain, raw(work))
    release(work.space)
    return work.failed


# ------------------------------------------------------------------------------------------ data
@native
def pack_taps(lo: i64, hi: i64, args: raw, *, S) -> void:
    """Panels lo..hi of the weights seen from x: for each group and tap, S.MR channels by all k."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    per = (t.cg + S.MR - 1) // S.MR
    ct = t.cg * t.taps
    for u in range(lo, hi):
        m = u % per * S.MR
        tap = u // per % t.taps
        g = u // (per * t.taps)
        src = work.b + (g * t.kg * ct + m * t.taps + tap) * size
        pack(
            t.kg, min(t.cg - m, S.MR), src, t.taps, ct, work.space + u * t.kg * S.MR * size,
            S=S, W=S.MR,
        )  # fmt: skip


@native
def add_runs(tile: raw, rows: i64, seg: ptr[i64], count: i64, to: raw, plane: i64, *, S) -> void:
    """Adds a tile's rows, a channel each, to the padded image."""
    L = static(S.L)
    T = static(S.T)
    for i in range(rows):
        p = ptr[T](tile) + i * S.NR
        d = ptr[T](to) + i * plane
        for r in range(count):
            few = first(L, seg[r * 3 + 2])
            there = d + seg[r * 3]
            vstore(there, vload(there, L, few) + vload(p + seg[r * 3 + 1], L, few), few)


@native
def data_job(u0: i64, u1: i64, args: raw, *, S, HAS) -> void:
    """Units u0..u1: the gradient of some channels of some images of a group."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    T = static(S.T)
    NR = static(S.NR)
    MR = static(S.MR)
    taps = table(t, t.tap_at)
    per = (t.cg + S.MR - 1) // S.MR
    deep = min(t.kg, KC)
    scratch = (t.batch * t.image + 64) * size
    space = allocate(scratch + (WIDE * deep * NR + 64) * size)
    if space is None:
        work.failed = 1
        return
    packed = space + scratch
    zero = local(i64, 1)
    zero[0] = 0
    seg = local(i64, 3 * 64)
    places = local(i64, WIDE * 3 * 64)
    counts = local(i64, WIDE)
    side = raw(local(T, S.MR * S.NR))
    inside = t.depth * t.height * t.width
    for u in range(u0, u1):
        c0 = u % t.parts * t.part
        c1 = min(c0 + t.part, t.cg)
        g = u // t.parts % t.groups
        n0 = u // (t.parts * t.groups) * t.batch
        count = min(t.batch, t.n - n0)
        y = work.a + (n0 * t.groups + g) * t.kg * t.pixels * size
        memset(space, 0, scratch)
        end = count * t.pixels
        for q in range(0, end, WIDE * S.NR):
            wide = min(WIDE * S.NR, end - q)
            for j in range(0, wide, NR):
                at = places + j // NR * 192
                counts[j // NR] = runs(t, q + j, min(wide - j, NR), at, S.L)
            for k0 in range(0, t.kg, KC):
                kc = min(t.kg - k0, KC)
                for j in range(0, wide, NR):
                    n = min(wide - j, NR)
                    c = plain_runs(t.pixels, t.groups * t.kg * t.pixels, q + j, n, seg, S.L)
                    pack_pixels(
                        y, t.pixels, 1, zero, k0, kc, seg, c, packed + j * kc * size, S.NR,
                        False, S=S,
                    )  # fmt: skip
                for tap in range(t.taps):
                    for m in range(c0, c1, MR):
                        panel = (g * t.taps + tap) * per + m // MR
                        A = work.space + (panel * t.kg + k0) * MR * size
                        few = min(c1 - m, MR)
                        to = space + ((m - c0) * t.plane + taps[tap]) * size
                        for j in range(0, wide, NR):
                            tiles(
                                kc, A, packed + j * kc * size, i64(NR), side, NR, raw(0), NR, few,
                                min(wide - j, NR), 1.0, S=S,
                            )  # fmt: skip
                            add_runs(
                                side, few, places + j // NR * 192, counts[j // NR], to, t.plane,
                                S=S,
                            )  # fmt: skip
        x = work.out + (n0 * t.groups + g) * t.cg * inside * size
        for i in range(count):
            bias = work.bias + g * t.cg * size if HAS else raw(0)
            unpad_image(
                t, space + i * t.image * size, c0, c1, x + i * t.groups * t.cg * inside * size,
                bias, S=S, HAS=HAS,
            )  # fmt: skip
    release(space)


@native
def data_kernel(bufs: ptr[raw], desc: ptr[i64], *, S, HAS) -> i64:
    """x of (y, w[, bias])."""
    work = work_of(bufs, desc, HAS)
    t = work.task
    panels = t.groups * t.taps * ((t.cg + S.MR - 1) // S.MR)
    work.space = allocate(panels * t.kg * S.MR * S.T.size + 64)
    if work.space is None:
        return 1
    pool_run(address(pack_taps, S=S), panels, max(16384 // (t.kg * S.MR), 1), raw(work))
    pool_run(address(data_job, S=S, HAS=HAS), t.units, t.grain, raw(work))
    release(work.space)
    return work.failed


# ---------------------------------------------------------------------------------------- weight
@native
def weight_job(u0: i64, u1: i64, args: raw, *, S) -> void:
    """Units u0..u1: a part of the images' share of a block of columns of a group's weights."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    NR = static(S.NR)
    MR = static(S.MR)
    ct = t.cg * t.taps
    taps = table(t, t.tap_at)
    per = (t.kg + S.MR - 1) // S.MR
    inside = t.depth * t.height * t.width
    most = min(t.block // t.taps + 2, t.cg)  # channels that a block of columns touches
    scratch = i64(0) if t.direct != 0 else (most * t.plane + 64) * size
    wide = (min(t.pixels, PB) + 15) // 16 * 16 + 16
    left = (per * MR * PB + 64) * size
    rows = (NR * wide + 64) * size
    space = allocate(scratch + left + rows + (PB * NR + 64) * size + PB * 24 + 64)
    if space is None:
        work.failed = 1
        return
    memset(space, 0, scratch)
    A = space + scratch
    flat = A + left
    B = flat + rows
    seg = ptr[i64](B + (PB * NR + 64) * size)
    for u in range(u0, u1):
        low = u % t.blocks * t.block
        high = min(low + t.block, ct)
        g = u // t.blocks % t.groups
        part = u // (t.blocks * t.groups)
        c0 = low // t.taps
        c1 = (high + t.taps - 1) // t.taps
        sums = work.space + (part * t.groups + g) * t.kg * ct * size
        for k in range(t.kg):
            memset(sums + (k * ct + low) * size, 0, (high - low) * size)
        for n in range(part * t.part, min((part + 1) * t.part, t.n)):
            x = work.a + (n * t.groups + g) * t.cg * inside * size
            base = x
            shift = i64(0)
            if t.direct == 0:
                pad_image(t, x, c0, c1, space, S=S)
                base = space
                shift = c0
            y = work.b + (n * t.groups + g) * t.kg * t.pixels * size
            for p0 in range(0, t.pixels, PB):
                px = min(t.pixels - p0, PB)
                count = runs(t, p0, px, seg, S.L)
                pack_gradients(t, y, p0, px, A, S)
                for col in range(low, high, NR):
                    few = min(high - col, NR)
                    pack_pixels(
                        base, t.plane, t.taps, taps, col - shift * t.taps, few, seg, count, flat,
                        wide, t.direct == 0, S=S,
                    )  # fmt: skip
                    pack(px, few, flat, wide, 1, B, S=S, W=S.NR)
                    for m in range(0, t.kg, MR):
                        tiles(
                            px, A + m * px * size, B, i64(S.NR), sums + (m * ct + col) * size, ct,
                            sums + (m * ct + col) * size, ct, t.kg - m, few, 1.0, S=S,
                        )  # fmt: skip
    release(space)


@native
def sum_job(lo: i64, hi: i64, args: raw, *, S) -> void:
    """Elements lo..hi of the parts' sums, in order."""
    work = ptr[ConvWork](args)
    t = work.task
    T = static(S.T)
    L = static(S.L)
    size = t.groups * t.kg * t.cg * t.taps
    p = ptr[T](work.space)
    o = ptr[T](work.out)
    for i in range(lo, hi, L):
        few = first(L, hi - i)
        total = vload(p + i, L, few)
        for part in range(1, t.parts):
            total = total + vload(p + (part * size + i), L, few)
        vstore(o + i, total, few)


@native
def weight_kernel(bufs: ptr[raw], desc: ptr[i64], *, S) -> i64:
    """w of (x, y)."""
    work = work_of(bufs, desc, None)
    t = work.task
    size = t.groups * t.kg * t.cg * t.taps
    if t.parts == 1:
        work.space = bufs[0]
    else:
        work.space = allocate(t.parts * size * S.T.size + 64)
        if work.space is None:
            return 1
    pool_run(address(weight_job, S=S), t.units, t.grain, raw(work))
    if t.parts > 1:
        pool_run(address(sum_job, S=S), size, 16384, raw(work))
        release(work.space)
    return work.failed
