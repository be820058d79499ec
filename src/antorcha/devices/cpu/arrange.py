"""The template of Arrange: elements elsewhere in ways that no layout says.

A row of the result is copied from a row of the operand, whose steps may be negative, as far as the
triangle goes; the rest of it is zero. Elements are moved by their size alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.template import Work, work_of
from antorcha.devices.emit import WORDS, Unsupported
from antorcha.lang.kernels import Arrange, Launch
from antorcha.lang.native import (
    address,
    first,
    i64,
    inline,
    native,
    ptr,
    raw,
    shuffle,
    static,
    struct,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.lang.native.machine import target
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

PIECE = 8192  # elements of a row that are a unit of work


# Description words; then the outer dims, innermost first: size, the result's stride, the operand's
@struct
class ArrangedShape:
    n: i64  # elements of a row
    rows: i64
    dims: i64  # outer dims
    pieces: i64  # units that a row is cut into
    out_step: i64
    in_step: i64
    in_start: i64
    diagonal: i64
    height: i64  # rows of a matrix


@inline
def copy_row(T, W, forward, backward, out, p, out_step, in_step, lo, hi):
    """Elements lo..hi of a row; ``forward``, ``backward``: they lie in order, or in reverse."""
    i = lo
    if forward or backward:
        order = static([W - 1 - k for k in range(W)])
        for k in range(lo, lo + (hi - lo) // W * W, W):
            if forward:
                vstore(out + k, vload(p + k, W))
            else:
                vstore(out + k, shuffle(vload(p + (1 - W - k), W), None, order))
        i = lo + max(hi - lo, i64(0)) // W * W
    for k in range(i, hi):
        out[k * out_step] = p[k * in_step]


@inline
def clear_row(T, W, forward, out, out_step, lo, hi):
    if forward:
        for k in range(lo, hi, W):
            vstore(out + k, vec[T, W](0), first(W, hi - k))
    else:
        for k in range(lo, hi):
            out[k * out_step] = T(0)


@native
def arrange_job(u0: i64, u1: i64, args: raw, *, T, W, SHAPE, FORWARD, BACKWARD, DENSE) -> void:
    """Units u0..u1."""
    work = ptr[Work](args)
    shape = ptr[ArrangedShape](work.desc)
    outer = work.desc + 9
    for u in range(u0, u1):
        r = u // shape.pieces
        out = ptr[T](work.bufs[0])
        p = ptr[T](work.bufs[1]) + shape.in_start
        left = r
        for d in range(shape.dims):
            w = outer + d * 3
            at = left % w[0]
            left = left // w[0]
            out = out + at * w[1]
            p = p + at * w[2]
        lo = (u - r * shape.pieces) * 8192
        hi = min(lo + 8192, shape.n)
        begin = lo
        end = hi
        if SHAPE == "lower":
            end = max(min(r % shape.height + shape.diagonal + 1, hi), lo)
        if SHAPE == "upper":
            begin = min(max(r % shape.height + shape.diagonal, lo), hi)
        if SHAPE == "upper":
            clear_row(T, W, DENSE, out, shape.out_step, lo, begin)
        copy_row(T, W, FORWARD, BACKWARD, out, p, shape.out_step, shape.in_step, begin, end)
        if SHAPE == "lower":
            clear_row(T, W, DENSE, out, shape.out_step, end, hi)


@native
def arrange_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W, SHAPE, FORWARD, BACKWARD, DENSE) -> i64:
    work = work_of(bufs, desc)
    shape = ptr[ArrangedShape](desc)
    few = max(32768 // max(min(shape.n, 8192), 1), 1)
    job = address(
        arrange_job, T=T, W=W, SHAPE=SHAPE, FORWARD=FORWARD, BACKWARD=BACKWARD, DENSE=DENSE
    )
    pool_run(job, shape.rows * shape.pieces, few, raw(work))
    return 0


def compile_arrange(what: Arrange, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    out, input = outs[0], ins[0]
    read, start = list(input.strides), 0
    for d in what.backwards if input.numel else ():
        start += (input.shape[d] - 1) * read[d]
        read[d] = -read[d]
    return compile_native(
        what, arranged(what, out, [read[d] for d in what.order], start), outs, ins
    )


def arranged(what: Arrange, out: Layout, read: Sequence[int], start: int) -> NativeKernel:
    """The kernel that fills ``out`` from an input's strides and start."""
    sizes: Sequence[int] = out.shape
    to: Sequence[int] = out.strides
    of = read
    itemsize = out.itemsize
    if itemsize == 16:  # as pairs of halves
        sizes, to, of = [*sizes, 2], [2 * s for s in to], [2 * s for s in of]
        to, of, start, itemsize = [*to, 1], [*of, 1], 2 * start, 8
    height, diagonal = 1, 0
    if not what.triangle:
        order = sorted(range(len(sizes)), key=lambda d: -to[d])
        sizes, (to, of) = collapse(
            [sizes[d] for d in order], [[s[d] for d in order] for s in (to, of)]
        )
        if not sizes:
            sizes, to, of = (1,), (1,), (1,)
    elif out.itemsize not in WORDS:  # a triangle's elements move whole
        raise Unsupported
    else:
        height = sizes[-2]
        diagonal = max(-height - 1, min(what.diagonal, sizes[-1] + 1))
    rows = 1
    for s in sizes[:-1]:
        rows *= s
    n = sizes[-1] if out.numel else 0
    pieces = max(-(-n // PIECE), 1)
    words = [n, rows if out.numel else 0, len(sizes) - 1, pieces, to[-1], of[-1], start, diagonal,
             max(height, 1)]  # fmt: skip
    for d in reversed(range(len(sizes) - 1)):
        words += [sizes[d], to[d], of[d]]
    static_ = {
        "T": WORDS[itemsize], "W": max(target().vector_bits // 8 // itemsize, 2),
        "SHAPE": what.triangle or "whole",
        "FORWARD": to[-1] == 1 and of[-1] == 1, "BACKWARD": to[-1] == 1 and of[-1] == -1,
        "DENSE": to[-1] == 1,
    }  # fmt: skip
    return NativeKernel(arrange_kernel, static_, tuple(words))
