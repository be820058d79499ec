"""The templates of Range, evenly spaced numbers, and TrianglePlaces, rows and columns."""

from __future__ import annotations

import struct as packing
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.template import Work, work_of
from antorcha.devices.emit import Unsupported
from antorcha.lang.kernels import Launch, Range, TrianglePlaces
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    i8,
    i16,
    i32,
    i64,
    inline,
    lanes,
    native,
    ptr,
    raw,
    select,
    target,
    u8,
    vec,
    void,
    vstore,
)
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

PIECE = 8192  # elements that are a unit of work
TYPES = {"int8": i8, "int16": i16, "int32": i32, "int64": i64, "uint8": u8, "float32": f32,
         "float64": f64}  # fmt: skip
"""The dtypes that numbers are cast to here as NumPy casts them."""


@native
def range_job(u0: i64, u1: i64, args: raw, *, T, WIDE, END) -> void:
    """Units u0..u1 of ``start + k * step``; END: the second half is counted from the end."""
    work = ptr[Work](args)
    out = ptr[T](work.bufs[0])
    given = ptr[WIDE](raw(work.desc))
    start, step = given[1], given[2]
    count = work.desc[0]
    first, after = u0 * PIECE, min(u1 * PIECE, count)
    half = min(max(count // 2, first), after) if END else after
    for k in range(first, half):
        out[k] = T(start + WIDE(k) * step)
    for k in range(half, after):
        out[k] = T(given[3] - WIDE(count - 1 - k) * step)


@native
def range_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, WIDE, END) -> i64:
    work = work_of(bufs, desc)  # count, start, step, end
    job = address(range_job, T=T, WIDE=WIDE, END=END)
    pool_run(job, (desc[0] + PIECE - 1) // PIECE, 4, raw(work))
    return 0


def compile_range(what: Range, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (out,) = outs
    numbers: list[Any] = [what.start, what.step]  # in words, at the end
    whole = what.end is None and all([isinstance(n, int) for n in numbers])
    fits = not whole or all([-(1 << 63) <= n < 1 << 63 for n in numbers])
    if out.dtype.name not in TYPES or not fits:
        raise Unsupported
    if what.end is not None:
        numbers.append(what.end)
    if not whole:
        count = len(numbers)
        numbers = [*packing.unpack(f"<{count}q", packing.pack(f"<{count}d", *numbers))]
    static = {"T": TYPES[out.dtype.name], "WIDE": i64 if whole else f64}
    kernel = NativeKernel(
        range_kernel, {**static, "END": what.end is not None}, (out.numel, *numbers)
    )
    return compile_native(what, kernel, outs, ins)


# -------------------------------------------------------------------------------------- triangles
@inline
def ends_of(desc, row):
    """The columns of a row: the first, and the end. desc: rows, columns, diagonal, is it upper?,
    elements."""
    across = min(max(row + desc[2] + (1 - desc[3]), i64(0)), desc[1])
    upper = desc[3] != 0
    return select(upper, across, i64(0)), select(upper, desc[1], across)


@native
def triangle_job(u0: i64, u1: i64, args: raw, *, T, W) -> void:
    """The elements of rows u0..u1."""
    work = ptr[Work](args)
    desc = work.desc
    at = i64(0)
    for row in range(u0):
        lo, hi = ends_of(desc, row)
        at += hi - lo
    rows = ptr[T](work.bufs[0]) + at
    columns = rows + desc[4]
    for row in range(u0, u1):
        lo, hi = ends_of(desc, row)
        for j in range(lo, hi, W):
            few = first(W, hi - j)
            vstore(rows + (j - lo), vec[T, W](row), few)
            vstore(columns + (j - lo), vec[T, W](lanes(i64, W) + j), few)
        rows = rows + (hi - lo)
        columns = columns + (hi - lo)


@native
def triangle_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W) -> i64:
    work = work_of(bufs, desc)
    least = max(PIECE // max(desc[1], 1), 1)
    pool_run(address(triangle_job, T=T, W=W), desc[0], least, raw(work))
    return 0


def compile_triangle_places(
    what: TrianglePlaces, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    T = TYPES[outs[0].dtype.name]
    count = outs[0].shape[1]
    desc = (what.rows, what.columns, what.diagonal, int(what.side == "upper"), count)
    static = {"T": T, "W": target().vector_bits // 64}
    return compile_native(what, NativeKernel(triangle_kernel, static, desc), outs, ins)
