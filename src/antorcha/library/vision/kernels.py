"""The native functions behind ``torch.ops.torchvision``: regions of interest, and nms.

``plane`` and ``sums`` below are one plane (H, W) of an image and of its gradient. Forward kernels
share their results out among the threads; backward kernels add into planes that regions share, and
share out the channels instead.
"""

from __future__ import annotations

from antorcha.lang.native import (
    address,
    ceil,
    f32,
    f64,
    floor,
    i32,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    select,
    struct,
    u8,
    void,
)
from antorcha.runtime.pool import pool_run

TYPES = {"float32": f32, "float64": f64}


@struct
class Regions:
    """What the kernels of regions are given. ``image``: (N, C, H, W), or its gradient; ``rois``:
    (K, 5); ``result``: (K, out, PH, PW), or its gradient; ``which``: which element a result was, or
    the channel that it was taken from."""

    image: raw
    rois: raw
    result: raw
    which: ptr[i32]
    channels: i64
    height: i64
    width: i64
    count: i64
    out: i64
    ph: i64
    pw: i64
    ratio: i64  # samples along a bin's side; 0: as many as it has elements
    scale: f64


# --------------------------------------------------------------------------- bilinear interpolation
@inline
def sampled(T, plane, h, w, y, x, sums, g, BACKWARD):
    """The image at (y, x), or with BACKWARD the gradient g added there; nothing outside."""
    value = T(0)
    if y >= T(-1) and y <= T(h) and x >= T(-1) and x <= T(w):
        y = select(y < T(0), T(0), y)
        x = select(x < T(0), T(0), x)
        y0 = min(i64(y), h - 1)
        x0 = min(i64(x), w - 1)
        y1 = min(y0 + 1, h - 1)
        x1 = min(x0 + 1, w - 1)
        ly = select(y0 == h - 1, T(0), y - T(y0))
        lx = select(x0 == w - 1, T(0), x - T(x0))
        hy = T(1) - ly
        hx = T(1) - lx
        if BACKWARD:
            sums[y0 * w + x0] = sums[y0 * w + x0] + g * (hy * hx)
            sums[y0 * w + x1] = sums[y0 * w + x1] + g * (hy * lx)
            sums[y1 * w + x0] = sums[y1 * w + x0] + g * (ly * hx)
            sums[y1 * w + x1] = sums[y1 * w + x1] + g * (ly * lx)
        else:
            value = (
                hy * hx * plane[y0 * w + x0] + hy * lx * plane[y0 * w + x1]
                + ly * hx * plane[y1 * w + x0] + ly * lx * plane[y1 * w + x1]
            )  # fmt: skip
    return value


# --------------------------------------------------------------------------------- averages of bins
@inline
def align_bins(T, t, k, c, ALIGNED, PS, BACKWARD):
    """The bins of region k and result channel c: averages of samples."""
    roi = ptr[T](t.rois) + k * 5
    scale = T(t.scale)
    shift = T(0.5) if ALIGNED or PS else T(0)
    x_start = roi[1] * scale - shift
    y_start = roi[2] * scale - shift
    roi_w = roi[3] * scale - shift - x_start
    roi_h = roi[4] * scale - shift - y_start
    if not ALIGNED and not PS:  # older models: at least one element
        roi_w = select(roi_w < T(1), T(1), roi_w)
        roi_h = select(roi_h < T(1), T(1), roi_h)
    bin_h = roi_h / T(t.ph)
    bin_w = roi_w / T(t.pw)
    ny = select(t.ratio > 0, t.ratio, i64(ceil(bin_h)))
    nx = select(t.ratio > 0, t.ratio, i64(ceil(bin_w)))
    many = T(ny * nx) if PS else T(max(ny * nx, i64(1)))
    at = (k * t.out + c) * t.ph * t.pw
    area = t.height * t.width
    image = ptr[T](t.image) + i64(roi[0]) * t.channels * area
    result = ptr[T](t.result)
    for py in range(t.ph):
        for px in range(t.pw):
            channel = (c * t.ph + py) * t.pw + px if PS else c
            plane = image + channel * area
            index = at + py * t.pw + px
            g = result[index] / many if BACKWARD else T(0)
            total = T(0)
            y = T(py) * bin_h + y_start
            x = T(px) * bin_w + x_start
            for iy in range(ny):
                yy = y + (T(iy) + T(0.5)) * bin_h / T(ny)
                for ix in range(nx):
                    xx = x + (T(ix) + T(0.5)) * bin_w / T(nx)
                    total = total + sampled(T, plane, t.height, t.width, yy, xx, plane, g, BACKWARD)
            if not BACKWARD:
                result[index] = total / many
                if PS:
                    t.which[index] = i32(channel)


# ------------------------------------------------------------------------ maxima and means of bins
@inline
def rounded(T, x):
    """To the nearest whole number, halves away from zero."""
    return i64(select(x < T(0), -floor(T(0.5) - x), floor(x + T(0.5))))


@inline
def within(x, n):
    return min(max(x, i64(0)), n)


@inline
def pool_bins(T, t, k, c, PS, BACKWARD):
    """The bins of region k and result channel c: the largest element, or the mean."""
    roi = ptr[T](t.rois) + k * 5
    scale = T(t.scale)
    x_start = rounded(T, roi[1] * scale)
    y_start = rounded(T, roi[2] * scale)
    x_end = rounded(T, roi[3] * scale)
    y_end = rounded(T, roi[4] * scale)
    one = i64(0) if PS else i64(1)
    bin_h = T(max(y_end - y_start + one, i64(1))) / T(t.ph)
    bin_w = T(max(x_end - x_start + one, i64(1))) / T(t.pw)
    area = t.height * t.width
    last_y = t.height - 1 if PS else t.height
    last_x = t.width - 1 if PS else t.width
    image = ptr[T](t.image) + i64(roi[0]) * t.channels * area
    result = ptr[T](t.result)
    at = (k * t.out + c) * t.ph * t.pw
    for py in range(t.ph):
        y0 = within(i64(floor(T(py) * bin_h)) + y_start, last_y)
        y1 = within(i64(ceil(T(py + 1) * bin_h)) + y_start, last_y)
        for px in range(t.pw):
            x0 = within(i64(floor(T(px) * bin_w)) + x_start, last_x)
            x1 = within(i64(ceil(T(px + 1) * bin_w)) + x_start, last_x)
            index = at + py * t.pw + px
            empty = y1 <= y0 or x1 <= x0
            if PS:
                channel = (c * t.ph + py) * t.pw + px
                plane = image + channel * area
                many = T(max((y1 - y0) * (x1 - x0), i64(1)))
                g = result[index] / many if BACKWARD else T(0)
                total = T(0)
                for y in range(y0, y1):
                    for x in range(x0, x1):
                        if BACKWARD:
                            plane[y * t.width + x] = plane[y * t.width + x] + g
                        else:
                            total = total + plane[y * t.width + x]
                if not BACKWARD:
                    result[index] = select(empty, T(0), total / many)
                    t.which[index] = i32(channel)
            else:
                plane = image + c * area
                if BACKWARD:
                    best = i64(t.which[index])
                    if best >= 0:
                        plane[best] = plane[best] + result[index]
                else:
                    largest = select(empty, T(0), T(-3.4028234663852886e38))
                    best = i64(-1)
                    for y in range(y0, y1):
                        for x in range(x0, x1):
                            here = plane[y * t.width + x]
                            if here > largest:
                                largest = here
                                best = y * t.width + x
                    result[index] = largest
                    t.which[index] = i32(best)


@inline
def bins(T, t, k, c, KIND, BACKWARD):
    if KIND == "roi_align":
        align_bins(T, t, k, c, False, False, BACKWARD)
    elif KIND == "roi_align_aligned":
        align_bins(T, t, k, c, True, False, BACKWARD)
    elif KIND == "ps_roi_align":
        align_bins(T, t, k, c, False, True, BACKWARD)
    else:
        pool_bins(T, t, k, c, KIND == "ps_roi_pool", BACKWARD)


@native
def regions_job(lo: i64, hi: i64, args: raw, *, T, KIND, BACKWARD) -> void:
    """Forward: results lo..hi of (region, channel). Backward: channels lo..hi of all regions."""
    t = ptr[Regions](args)
    for u in range(lo, hi):
        if BACKWARD:
            for k in range(t.count):
                bins(T, t, k, u, KIND, BACKWARD)
        else:
            bins(T, t, u // t.out, u % t.out, KIND, BACKWARD)


@native
def regions(
    image: raw, rois: raw, result: raw, which: raw, channels: i64, height: i64, width: i64,
    count: i64, out: i64, ph: i64, pw: i64, ratio: i64, scale: f64, *, T, KIND, BACKWARD,
) -> void:  # fmt: skip
    t = local(Regions)
    t.image = image
    t.rois = rois
    t.result = result
    t.which = ptr[i32](which)
    t.channels = channels
    t.height = height
    t.width = width
    t.count = count
    t.out = out
    t.ph = ph
    t.pw = pw
    t.ratio = ratio
    t.scale = scale
    job = address(regions_job, T=T, KIND=KIND, BACKWARD=BACKWARD)
    pool_run(job, out if BACKWARD else count * out, 1 if BACKWARD else 8, raw(t))


# -------------------------------------------------------------------------- non-maximum suppression
@native
def suppress(
    boxes: raw, order: ptr[i64], areas: raw, gone: ptr[u8], keep: ptr[i64], n: i64, most: f64, *, T
) -> i64:
    """Takes the boxes in order, drops those that overlap a kept one; how many are kept."""
    b = ptr[T](boxes)
    area = ptr[T](areas)
    kept = i64(0)
    for i in range(n):
        area[i] = (b[i * 4 + 2] - b[i * 4]) * (b[i * 4 + 3] - b[i * 4 + 1])
    for k in range(n):
        i = order[k]
        if gone[i] == u8(0):
            keep[kept] = i
            kept = kept + 1
            for m in range(k + 1, n):
                j = order[m]
                if gone[j] == u8(0):
                    w = min(b[i * 4 + 2], b[j * 4 + 2]) - max(b[i * 4], b[j * 4])
                    h = min(b[i * 4 + 3], b[j * 4 + 3]) - max(b[i * 4 + 1], b[j * 4 + 1])
                    shared = max(w, T(0)) * max(h, T(0))
                    if f64(shared / (area[i] + area[j] - shared)) > most:
                        gone[j] = u8(1)
    return kept
