"""The native functions behind ``torch.ops.torchvision.deform_conv2d``: windows at any places."""

from __future__ import annotations

from antorcha.lang.native import (
    address,
    floor,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    struct,
    void,
)
from antorcha.runtime.pool import pool_run


@struct
class Deformed:
    """``image``: (N, C, H, W); ``columns``: (C, KH, KW, N, OH, OW); ``offset``: (N, groups, KH, KW,
    2, OH, OW); ``mask``: (N, groups, KH, KW, OH, OW) or nothing; then where gradients go."""

    image: raw
    columns: raw
    offset: raw
    mask: raw
    image_sums: raw
    offset_sums: raw
    mask_sums: raw
    sizes: ptr[i64]  # N C H W, KH KW, OH OW, groups, stride, padding and dilation of both axes


@inline
def element(T, plane, h, w, y, x):
    """The element there; nothing outside."""
    found = T(0)
    if y >= 0 and y < h and x >= 0 and x < w:
        found = plane[y * w + x]
    return found


@inline
def add_to(T, plane, h, w, y, x, g):
    if y >= 0 and y < h and x >= 0 and x < w:
        plane[y * w + x] = plane[y * w + x] + g


@inline
def window(T, t, n, c, BACKWARD):
    """Every place of the windows over image n's channel c: values, or gradients."""
    s = t.sizes
    h = s[2]
    w = s[3]
    kh = s[4]
    kw = s[5]
    oh = s[6]
    ow = s[7]
    group = c // (s[1] // s[8])
    places = oh * ow
    plane = ptr[T](t.image) + (n * s[1] + c) * h * w
    sums = ptr[T](t.image_sums) + (n * s[1] + c) * h * w
    for i in range(kh):
        for j in range(kw):
            tap = ((n * s[8] + group) * kh + i) * kw + j
            moved_y = ptr[T](t.offset) + tap * 2 * places
            moved_x = moved_y + places
            weight = ptr[T](t.mask) + tap * places
            column = ptr[T](t.columns) + (((c * kh + i) * kw + j) * s[0] + n) * places
            to_y = ptr[T](t.offset_sums) + tap * 2 * places
            to_x = to_y + places
            to_mask = ptr[T](t.mask_sums) + tap * places
            for p in range(places):
                y = T(p // ow * s[9] - s[11] + i * s[13]) + moved_y[p]
                x = T(p % ow * s[10] - s[12] + j * s[14]) + moved_x[p]
                inside = y > T(-1) and y < T(h) and x > T(-1) and x < T(w)
                m = T(1)
                if t.mask != raw(0):
                    m = weight[p]
                value = T(0)
                if inside:
                    low_y = floor(y)
                    low_x = floor(x)
                    y0 = i64(low_y)
                    x0 = i64(low_x)
                    ly = y - low_y
                    lx = x - low_x
                    hy = T(1) - ly
                    hx = T(1) - lx
                    a = element(T, plane, h, w, y0, x0)
                    b = element(T, plane, h, w, y0, x0 + 1)
                    d = element(T, plane, h, w, y0 + 1, x0)
                    e = element(T, plane, h, w, y0 + 1, x0 + 1)
                    value = hy * hx * a + hy * lx * b + ly * hx * d + ly * lx * e
                    if BACKWARD:
                        g = column[p] * m
                        to_y[p] = to_y[p] + g * (hx * (d - a) + lx * (e - b))
                        to_x[p] = to_x[p] + g * (hy * (b - a) + ly * (e - d))
                        add_to(T, sums, h, w, y0, x0, g * (hy * hx))
                        add_to(T, sums, h, w, y0, x0 + 1, g * (hy * lx))
                        add_to(T, sums, h, w, y0 + 1, x0, g * (ly * hx))
                        add_to(T, sums, h, w, y0 + 1, x0 + 1, g * (ly * lx))
                if BACKWARD:
                    if t.mask != raw(0):
                        to_mask[p] = to_mask[p] + column[p] * value
                else:
                    column[p] = value * m


@native
def windows_job(lo: i64, hi: i64, args: raw, *, T, BACKWARD) -> void:
    """Forward: channels lo..hi of all images. Backward: images lo..hi."""
    t = ptr[Deformed](args)
    for u in range(lo, hi):
        if BACKWARD:
            for c in range(t.sizes[1]):
                window(T, t, u, c, BACKWARD)
        else:
            for n in range(t.sizes[0]):
                window(T, t, n, u, BACKWARD)


@native
def windows(
    image: raw, columns: raw, offset: raw, mask: raw, image_sums: raw, offset_sums: raw,
    mask_sums: raw, sizes: ptr[i64], *, T, BACKWARD,
) -> void:  # fmt: skip
    t = local(Deformed)
    t.image = image
    t.columns = columns
    t.offset = offset
    t.mask = mask
    t.image_sums = image_sums
    t.offset_sums = offset_sums
    t.mask_sums = mask_sums
    t.sizes = sizes
    job = address(windows_job, T=T, BACKWARD=BACKWARD)
    pool_run(job, sizes[0] if BACKWARD else sizes[1], 1, raw(t))
