"""What convolutions have in common: the description, and the ways pixels are laid out and packed.

An image is padded into scratch memory whose columns are sorted by their remainder modulo the
stride: what one tap of the kernel sees of a row of results is contiguous there.
"""

from __future__ import annotations

from antorcha.devices.cpu.matmul import pack
from antorcha.lang.native import (
    bool_,
    first,
    i64,
    inline,
    lanes,
    local,
    native,
    ptr,
    raw,
    static,
    struct,
    vec,
    vgather,
    vload,
    void,
    vscatter,
    vstore,
)


@struct
class ConvTask:
    """The description words; the tables of taps and rows follow."""

    n: i64
    groups: i64
    cg: i64  # input channels of a group
    kg: i64  # output channels of a group
    depth: i64  # the image
    height: i64
    width: i64
    pad_d: i64
    pad_h: i64
    pad_w: i64
    step: i64  # stride along the width
    wq: i64  # columns of one remainder
    pitch: i64  # elements of a padded row
    hp: i64  # rows of a padded slice
    plane: i64  # elements of a padded channel
    image: i64  # elements of a padded image of a group
    direct: i64  # no padding: the image is used where it is
    row: i64  # pixels of a row of results
    pixels: i64  # of a result's channel
    taps: i64
    batch: i64  # images of a unit
    parts: i64  # a unit's pixels (forward), channels (data) or images (weight) are cut into
    part: i64  # size of each
    blocks: i64  # blocks of columns (weight)
    block: i64
    row_step: i64  # stride along the height
    rows_used: i64  # bit k: a tap sees rows of remainder k modulo that stride
    phases_used: i64  # the same of the columns
    units: i64
    grain: i64
    reach: i64  # rows of the image that a row of results sees, from first to last
    wide: i64  # input channels of a group, rounded up to whole blocks
    tap_at: i64  # where the tables begin, in words from here
    row_at: i64


@struct
class ConvWork:
    out: raw
    a: raw  # x (forward, weight) or y (data)
    b: raw  # w (forward, data) or y (weight)
    bias: raw
    space: raw  # packed weights, or the parts' sums
    task: ptr[ConvTask]
    failed: i64


@inline
def work_of(bufs, desc, HAS):
    """A kernel's operands as its jobs see them. HAS: is the last one a bias? None if it cannot."""
    work = local(ConvWork)
    work.out = bufs[0]
    work.a = bufs[1]
    work.b = bufs[2]
    if HAS is not None:
        work.bias = bufs[3] if HAS else raw(0)
    work.task = ptr[ConvTask](raw(desc))
    work.failed = 0
    return work


@inline
def table(t, at):
    return ptr[i64](raw(t)) + at


@native
def runs(t: ptr[ConvTask], q: i64, n: i64, seg: ptr[i64], piece: i64) -> i64:
    """Pixels q..q+n of a unit as runs of at most ``piece``: place in the padded image, place in the
    tile, length."""
    rows = table(t, t.row_at)
    count = i64(0)
    at = i64(0)
    image = q // t.pixels
    p = q - image * t.pixels
    row = p // t.row
    col = p - row * t.row
    rest = t.pixels // t.row
    while at < n:
        m = min(min(t.row - col, n - at), piece)
        seg[count * 3] = image * t.image + rows[row] + col
        seg[count * 3 + 1] = at
        seg[count * 3 + 2] = m
        count += 1
        at += m
        col += m
        if col == t.row:
            col = i64(0)
            row += 1
            if row == rest:
                row = i64(0)
                image += 1
    return count


@native
def plain_runs(pixels: i64, image: i64, q: i64, n: i64, seg: ptr[i64], piece: i64) -> i64:
    """The same where a channel's pixels follow each other."""
    count = i64(0)
    at = i64(0)
    while at < n:
        here = (q + at) // pixels
        p = q + at - here * pixels
        m = min(min(pixels - p, n - at), piece)
        seg[count * 3] = here * image + p
        seg[count * 3 + 1] = at
        seg[count * 3 + 2] = m
        count += 1
        at += m
    return count


@native(export=True)
def pack_pixels(
    src: raw, plane: i64, taps: i64, tap: ptr[i64], k0: i64, kc: i64, seg: ptr[i64], count: i64,
    to: raw, pitch: i64, slack: bool_, *, S,
) -> void:  # fmt: skip
    """``to[k][pixel]`` for kc taps from k0 on; a run has at most S.L pixels.

    A run is copied as a whole vector: what it spills is overwritten by what comes next. Reading
    past its end is for memory with ``slack`` behind it only.
    """
    whole = slack
    if not slack:
        whole = True
        for i in range(count):
            whole = whole and seg[i * 3 + 2] == S.L
    if whole and count <= 4:
        for C in static((1, 2, 3, 4)):
            if count == C:
                pack_few(src, plane, taps, tap, k0, kc, seg, to, pitch, S=S, C=C)
    else:
        pack_many(src, plane, taps, tap, k0, kc, seg, count, to, pitch, whole, S=S)


@native
def pack_few(
    src: raw, plane: i64, taps: i64, tap: ptr[i64], k0: i64, kc: i64, seg: ptr[i64], to: raw,
    pitch: i64, *, S, C,
) -> void:  # fmt: skip
    """C runs, whose places stay in registers."""
    L = static(S.L)
    T = static(S.T)
    d = ptr[T](to)
    c = k0 // taps
    s = k0 - c * taps
    reads = [seg[i * 3] for i in static(range(C))]
    writes = [seg[i * 3 + 1] for i in static(range(C))]
    p = ptr[T](src) + c * plane
    for _k in range(kc):
        here = p + tap[s]
        for i in static(range(C)):
            vstore(d + writes[i], vload(here + reads[i], L))
        d = d + pitch
        s += 1
        if s == taps:
            s = i64(0)
            p = p + plane


@native
def pack_many(
    src: raw, plane: i64, taps: i64, tap: ptr[i64], k0: i64, kc: i64, seg: ptr[i64], count: i64,
    to: raw, pitch: i64, whole: bool_, *, S,
) -> void:  # fmt: skip
    """Any number of runs."""
    L = static(S.L)
    T = static(S.T)
    d = ptr[T](to)
    c = k0 // taps
    s = k0 - c * taps
    p = ptr[T](src) + c * plane
    for _k in range(kc):
        here = p + tap[s]
        if whole:
            for i in range(count):
                vstore(d + seg[i * 3 + 1], vload(here + seg[i * 3], L))
        else:
            for i in range(count):
                few = first(L, seg[i * 3 + 2])
                vstore(d + seg[i * 3 + 1], vload(here + seg[i * 3], L, few))
        d = d + pitch
        s += 1
        if s == taps:
            s = i64(0)
            p = p + plane


@native(export=True)
def pad_image(t: ptr[ConvTask], x: raw, c0: i64, c1: i64, to: raw, *, S) -> void:
    """Channels c0..c1 of an image into scratch whose borders are zero already."""
    L = static(S.L)
    T = static(S.T)
    inside = t.depth * t.height * t.width
    for c in range(c0, c1):
        p = ptr[T](x) + c * inside
        d = ptr[T](to) + ((c - c0) * t.plane + (t.pad_d * t.hp + t.pad_h) * t.pitch)
        for row in range(t.depth * t.height):
            z = row // t.height
            h = row - z * t.height
            seen = t.rows_used >> (h + t.pad_h) % t.row_step & 1
            if seen != 0:
                here = p + row * t.width
                there = d + (z * t.hp + h) * t.pitch
                if t.step == 1:
                    there = there + t.pad_w
                    for b in range(0, t.width, L):
                        few = first(L, t.width - b)
                        vstore(there + b, vload(here + b, L, few), few)
                else:
                    for f in range(t.step):
                        low = (f - t.pad_w) % t.step
                        m = (t.width - low + t.step - 1) // t.step
                        if t.phases_used >> f & 1 == 0:
                            m = i64(0)
                        q = there + (f * t.wq + (low + t.pad_w) // t.step)
                        for b in range(0, m, L):
                            few = first(L, m - b)
                            v = vgather(here + (low + b * t.step), lanes(i64, L) * t.step, few)
                            vstore(q + b, v, few)


@native(export=True)
def unpad_image(t: ptr[ConvTask], src: raw, c0: i64, c1: i64, x: raw, bias: raw, *, S, HAS) -> void:
    """The inside of a padded image (its channels from c0 on) to channels c0..c1 of x."""
    L = static(S.L)
    T = static(S.T)
    inside = t.depth * t.height * t.width
    for c in range(c0, c1):
        p = ptr[T](x) + c * inside
        d = ptr[T](src) + ((c - c0) * t.plane + (t.pad_d * t.hp + t.pad_h) * t.pitch)
        more = ptr[T](bias)[c] if HAS else T(0)
        for z in range(t.depth):
            for h in range(t.height):
                here = p + (z * t.height + h) * t.width
                there = d + (z * t.hp + h) * t.pitch
                if t.step == 1:
                    there = there + t.pad_w
                    for b in range(0, t.width, L):
                        few = first(L, t.width - b)
                        vstore(here + b, vload(there + b, L, few) + vec[T, S.L](more), few)
                else:
                    for f in range(t.step):
                        low = (f - t.pad_w) % t.step
                        m = (t.width - low + t.step - 1) // t.step
                        q = there + (f * t.wq + (low + t.pad_w) // t.step)
                        for b in range(0, m, L):
                            few = first(L, m - b)
                            v = vload(q + b, L, few) + vec[T, S.L](more)
                            vscatter(here + (low + b * t.step), lanes(i64, L) * t.step, v, few)


@inline
def pack_gradients(t, y, p0, px, to, S):
    """The results' gradient of a group's image at px pixels from p0 on, in panels of S.MR
    channels."""
    size = static(S.T.size)
    MR = static(S.MR)
    for m in range(0, t.kg, MR):
        pack(
            px, min(t.kg - m, MR), y + (m * t.pixels + p0) * size, t.pixels, 1, to + m * px * size,
            S=S, W=S.MR,
        )  # fmt: skip


@native
def turn_weights(t: ptr[ConvTask], w: raw, m: i64, few: i64, to: raw, *, S, W) -> void:
    """A panel of the weights seen from the images: channels m.. by (k, tap from the last on)."""
    T = static(S.T)
    d = ptr[T](to)
    ct = t.kg * t.taps  # in the weights as they lie, t.kg is their second dim
    for k in range(t.cg):
        for tap in range(t.taps):
            src = ptr[T](w) + (k * ct + m * t.taps + (t.taps - 1 - tap))
            for i in range(W):
                d[i] = src[i * t.taps] if i < few else T(0)
            d = d + W


@native
def pack_weights(lo: i64, hi: i64, args: raw, *, S, HAS, FLIP, W) -> void:
    """Panels lo..hi of the weights, [k][W] each, and the bias as one more k."""
    work = ptr[ConvWork](args)
    t = work.task
    size = static(S.T.size)
    T = static(S.T)
    ct = t.cg * t.taps
    per = (t.kg + W - 1) // W
    tall = ct + 1 if HAS else ct
    for u in range(lo, hi):
        g = u // per
        m = u % per * W
        few = min(t.kg - m, W)
        k = g * t.kg + m
        to = work.space + u * tall * W * size
        if FLIP:
            turn_weights(t, work.b + g * t.kg * ct * size, m, few, to, S=S, W=W)
        else:
            pack(ct, few, work.b + k * ct * size, ct, 1, to, S=S, W=W)
        if HAS:
            d = ptr[T](to) + ct * W
            for i in range(W):
                d[i] = ptr[T](work.bias)[k + i] if i < few else T(0)
