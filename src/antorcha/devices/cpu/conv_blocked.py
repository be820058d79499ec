"""Convolutions of many channels: the padded image lies in blocks of L channels, and nothing is
gathered from it.

A block holds the L channels of each pixel side by side, L lanes being one vector: that is a
transposition of the image on its way into the padding.

forward: a tile of W pixels of a row by NV vectors of output channels. Each channel of a pixel is
spread over a vector, and multiplied by a row of the packed weights. The pixels of a tile lie a
fixed distance apart, so that one address serves all of them; the tile is transposed when it is
written.
weight: a tile of MR output channels by the L or 2 L input channels of a tap, summed over pixels:
the image's blocks are read where they lie.
"""

from __future__ import annotations

from antorcha.devices.cpu.conv_pack import (
    ConvTask,
    ConvWork,
    pack_gradients,
    pack_weights,
    table,
    work_of,
)
from antorcha.devices.cpu.matmul import pack
from antorcha.devices.cpu.template import transposed
from antorcha.lang.native import (
    address,
    first,
    fma,
    i64,
    inline,
    lanes,
    memset,
    native,
    ptr,
    raw,
    static,
    vec,
    vload,
    void,
    vscatter,
    vstore,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.pool import pool_run

PX = 256  # pixels, about, that are summed in registers in the weight gradient


@native
def block_image(
    t: ptr[ConvTask], x: raw, c0: i64, c1: i64, lo: i64, hi: i64, to: raw, *, S
) -> void:
    """Rows lo..hi of channels c0..c1 of an image into blocks; the borders are zero already."""
    size = static(S.T.size)
    L = static(S.L)
    inside = t.height * t.width
    corner = (t.pad_h * t.pitch + t.pad_w) * L
    for c in range(c0, c1, L):
        few = min(c1 - c, L)
        for h in range(lo, hi):
            pack(
                t.width, few, x + (c * inside + h * t.width) * size, inside, 1,
                to + ((c - c0) * t.plane + corner + h * t.pitch * L) * size, S=S, W=S.L,
            )  # fmt: skip


# -------------------------------------------------------------------------------------- forward
@native(export=True)
def pixel_tile(t: ptr[ConvTask], x: raw, w: raw, y: raw, few: i64, *, S, W, NV, STEP, HAS) -> void:
    """W pixels by ``few`` output channels. x: where the first pixel's first tap is."""
    T = static(S.T)
    L = static(S.L)
    b = ptr[T](w)
    taps = table(t, t.tap_at)
    acc = [vec[T, S.L](0) for _ in static(range(W * NV))]
    for c0 in range(0, t.cg, L):
        block = ptr[T](x) + c0 * t.plane
        for c in range(min(t.cg - c0, L)):
            for tap in range(t.taps):
                a = block + taps[tap] + c
                right = [vload(b + L * j, L) for j in static(range(NV))]
                for i in static(range(W)):
                    left = vec[T, S.L](a[i * STEP * L])
                    for j in static(range(NV)):
                        acc[i * NV + j] = fma(left, right[j], acc[i * NV + j])
                b += NV * L
    out = ptr[T](y)
    for j in static(range(NV)):
        more = vload(b + L * j, L) if HAS else vec[T, S.L](0)
        for p in static(range(0, W, S.L)):
            rows = [
                acc[min(p + i, W - 1) * NV + j] + more if HAS else acc[min(p + i, W - 1) * NV + j]
                for i in static(range(S.L))
            ]
            rows = transposed(S.L, rows)
            for q in static(range(S.L)):
                if j * L + q < few:
                    vstore(out + ((j * L + q) * t.pixels + p), rows[q], first(L, W - p))


@inline
def row_tiles(t, x, w, y, few, S, NV, WIDTH, NARROW, STEP, HAS):
    """A row of results: tiles of WIDTH pixels, then tiles of one pixel less if there are any."""
    size = static(S.T.size)
    L = static(S.L)
    wide = t.row // WIDTH
    if NARROW:
        wide = t.row - (t.row + WIDTH - 1) // WIDTH * (WIDTH - 1)
    for i in range(wide):
        pixel_tile(
            t, x + i * (WIDTH * STEP * L * size), w, y + i * (WIDTH * size), few,
            S=S, W=WIDTH, NV=NV, STEP=STEP, HAS=HAS,
        )  # fmt: skip
    if NARROW:
        for j in range(wide * WIDTH, t.row, WIDTH - 1):
            pixel_tile(
                t, x + j * (STEP * L * size), w, y + j * size, few,
                S=S, W=WIDTH - 1, NV=NV, STEP=STEP, HAS=HAS,
            )  # fmt: skip


@native
def rows_job(u0: i64, u1: i64, args: raw, *, S, HAS, NV, WIDTH, NARROW, STEP) -> void:
    """Units u0..u1: a part of the rows of an image's results."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    NR = static(S.L * NV)
    rows = table(t, t.row_at)
    per = (t.kg + NR - 1) // NR
    tall = t.cg * t.taps + 1 if HAS else t.cg * t.taps
    inside = t.height * t.width
    space = allocate(t.image * size)
    if space is None:
        work.failed = 1
        return
    memset(space, 0, t.image * size)
    for u in range(u0, u1):
        g = u // t.parts % t.groups
        n = u // (t.parts * t.groups)
        r0 = u % t.parts * t.part
        r1 = min(r0 + t.part, t.pixels // t.row)
        lo = max(r0 * t.row_step - t.pad_h, 0)
        hi = min((r1 - 1) * t.row_step + t.reach - t.pad_h, t.height)
        x = work.a + (n * t.groups + g) * t.cg * inside * size
        y = work.out + (n * t.groups + g) * t.kg * t.pixels * size
        block_image(t, x, 0, t.cg, lo, hi, space, S=S)
        for m in range(0, t.kg, NR):
            w = work.space + (g * per + m // NR) * tall * NR * size
            for r in range(r0, r1):
                row_tiles(
                    t, space + rows[r] * size, w, y + (m * t.pixels + r * t.row) * size,
                    t.kg - m, S, NV, WIDTH, NARROW, STEP, HAS,
                )  # fmt: skip
    release(space)


@native
def blocked_kernel(bufs: ptr[raw], desc: ptr[i64], *, S, HAS, FLIP, NV, WIDTH, NARROW, STEP) -> i64:
    """What ``forward_kernel`` gives."""
    work = work_of(bufs, desc, HAS)
    t = work.task
    NR = static(S.L * NV)
    panels = t.groups * ((t.kg + NR - 1) // NR)
    tall = t.cg * t.taps + 1
    work.space = allocate(panels * tall * NR * S.T.size)
    if work.space is None:
        return 1
    pool_run(
        address(pack_weights, S=S, HAS=HAS, FLIP=FLIP, W=NR), panels,
        max(65536 // (tall * NR), 1), raw(work),
    )  # fmt: skip
    job = address(rows_job, S=S, HAS=HAS, NV=NV, WIDTH=WIDTH, NARROW=NARROW, STEP=STEP)
    pool_run(job, t.units, t.grain, raw(work))
    release(work.space)
    return work.failed


# --------------------------------------------------------------------------------------- weight
@native
def tap_tile(t: ptr[ConvTask], x: raw, y: raw, rows: i64, to: raw, *, S, M, NV) -> void:
    """M output channels by NV blocks of input channels, summed over some rows of pixels."""
    T = static(S.T)
    L = static(S.L)
    a = ptr[T](y)
    acc = [vec[T, S.L](0) for _ in static(range(M * NV))]
    for r in range(rows):
        b = ptr[T](x) + r * t.row_step * t.pitch * L
        for _p in range(t.row):
            right = [vload(b + j * t.plane * L, L) for j in static(range(NV))]
            for i in static(range(M)):
                left = vec[T, S.L](a[i])
                for j in static(range(NV)):
                    acc[i * NV + j] = fma(left, right[j], acc[i * NV + j])
            a += S.MR
            b += t.step * L
    sums = ptr[T](to)
    pitch = t.taps * t.wide
    for i in static(range(M)):
        for j in static(range(NV)):
            at = sums + (i * pitch + L * j)
            vstore(at, vload(at, L) + acc[i * NV + j])


@native(export=True)
def tap_tiles(
    t: ptr[ConvTask], x: raw, y: raw, rows: i64, to: raw, m: i64, blocks: i64, *, S
) -> void:
    """Up to MR output channels, in parts of 8, 4, 2 and 1 unless whole."""
    size = static(S.T.size)
    at = i64(0)
    pitch = t.taps * t.wide
    most = min(m, S.MR)
    for M in static(S.parts):
        while most - at >= M:
            if blocks >= 2:
                tap_tile(t, x, y + at * size, rows, to + at * pitch * size, S=S, M=M, NV=2)
            else:
                tap_tile(t, x, y + at * size, rows, to + at * pitch * size, S=S, M=M, NV=1)
            at += M


@native
def taps_job(u0: i64, u1: i64, args: raw, *, S) -> void:
    """Units u0..u1: a part of the images' share of some channels of a group's weights."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    L = static(S.L)
    MR = static(S.MR)
    taps = table(t, t.tap_at)
    starts = table(t, t.row_at)
    per = (t.kg + S.MR - 1) // S.MR
    rows = t.pixels // t.row
    some = max(PX // t.row, 1)
    inside = t.height * t.width
    scratch = t.block * t.plane * size
    space = allocate(scratch + per * MR * some * t.row * size)
    if space is None:
        work.failed = 1
        return
    memset(space, 0, scratch)
    A = space + scratch
    for u in range(u0, u1):
        c0 = u % t.blocks * t.block
        c1 = min(c0 + t.block, t.cg)
        g = u // t.blocks % t.groups
        part = u // (t.blocks * t.groups)
        sums = work.space + (part * t.groups + g) * t.kg * t.taps * t.wide * size
        for k in range(t.kg * t.taps):
            memset(sums + (k * t.wide + c0) * size, 0, (c1 - c0 + L - 1) // L * L * size)
        for n in range(part * t.part, min((part + 1) * t.part, t.n)):
            x = work.a + (n * t.groups + g) * t.cg * inside * size
            y = work.b + (n * t.groups + g) * t.kg * t.pixels * size
            block_image(t, x, c0, c1, 0, t.height, space, S=S)
            for r in range(0, rows, some):
                few = min(some, rows - r)
                px = few * t.row
                pack_gradients(t, y, r * t.row, px, A, S)
                for c in range(c0, c1, 2 * L):
                    blocks = (c1 - c + L - 1) // L
                    for tap in range(t.taps):
                        at = space + ((c - c0) * t.plane + starts[r] + taps[tap]) * size
                        for m in range(0, t.kg, MR):
                            tap_tiles(
                                t, at, A + m * px * size, few,
                                sums + ((m * t.taps + tap) * t.wide + c) * size, t.kg - m, blocks,
                                S=S,
                            )  # fmt: skip
    release(space)


@native
def gather_job(lo: i64, hi: i64, args: raw, *, S) -> void:
    """The parts' sums, in order, of output channels lo..hi, where the weights' gradients lie."""
    work = ptr[ConvWork](args)
    t = work.task
    T = static(S.T)
    L = static(S.L)
    p = ptr[T](work.space)
    size = t.groups * t.kg * t.taps * t.wide
    for k in range(lo, hi):
        for tap in range(t.taps):
            out = ptr[T](work.out) + k * t.cg * t.taps + tap
            for c in range(0, t.cg, L):
                at = p + ((k * t.taps + tap) * t.wide + c)
                total = vload(at, L)
                for part in range(1, t.parts):
                    total = total + vload(at + part * size, L)
                few = first(L, t.cg - c)
                vscatter(out + c * t.taps, lanes(i64, L) * t.taps, total, few)


@native
def blocked_weight_kernel(bufs: ptr[raw], desc: ptr[i64], *, S) -> i64:
    """What ``weight_kernel`` gives."""
    work = work_of(bufs, desc, None)
    t = work.task
    each = t.taps * t.wide
    work.space = allocate(t.parts * t.groups * t.kg * each * S.T.size)
    if work.space is None:
        return 1
    pool_run(address(taps_job, S=S), t.units, t.grain, raw(work))
    pool_run(address(gather_job, S=S), t.groups * t.kg, max(16384 // each, 1), raw(work))
    release(work.space)
    return work.failed
