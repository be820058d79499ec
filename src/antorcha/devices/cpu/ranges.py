"""The template of Range: evenly spaced numbers."""

# The kernels below are in the kernel language, whose types are values: mypy cannot read them.
# mypy: ignore-errors
from __future__ import annotations

import struct as packing
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.emit import Unsupported
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.lang.kernels import Launch, Range
from antorcha.lang.native import (
    address,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    local,
    native,
    ptr,
    raw,
    struct,
    u8,
    void,
)
from antorcha.runtime.layout import Layout
from antorcha.runtime.pool import pool_run

PIECE = 8192  # elements that are a unit of work
TYPES = {"int8": i8, "int16": i16, "int32": i32, "int64": i64, "uint8": u8, "float32": f32,
         "float64": f64}  # fmt: skip
"""The dtypes that numbers are cast to here as NumPy casts them."""


@struct
class Work:
    bufs: ptr[raw]
    desc: ptr[i64]  # count, start, step


@native
def range_job(u0: i64, u1: i64, args: raw, *, T, WIDE) -> void:
    """Units u0..u1 of ``start + k * step``."""
    work = ptr[Work](args)
    out = ptr[T](work.bufs[0])
    given = ptr[WIDE](raw(work.desc))
    start, step = given[1], given[2]
    for k in range(u0 * PIECE, min(u1 * PIECE, work.desc[0])):
        out[k] = T(start + WIDE(k) * step)


@native
def range_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, WIDE) -> i64:
    work = local(Work)
    work.bufs = bufs
    work.desc = desc
    job = address(range_job, T=T, WIDE=WIDE)
    pool_run(job, (desc[0] + PIECE - 1) // PIECE, 4, raw(work))
    return 0


def compile_range(what: Range, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (out,), start, step = outs, what.start, what.step
    whole = isinstance(start, int) and isinstance(step, int)
    fits = not whole or all([-(1 << 63) <= n < 1 << 63 for n in (start, step)])
    if out.dtype.name not in TYPES or what.end is not None or not fits:
        raise Unsupported
    words = (start, step) if whole else packing.unpack("<2q", packing.pack("<2d", start, step))
    static = {"T": TYPES[out.dtype.name], "WIDE": i64 if whole else f64}
    kernel = NativeKernel(range_kernel, static, (out.numel, *words))
    return compile_native(what, kernel, outs, ins)
