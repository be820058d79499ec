"""The template of Arrange: elements elsewhere in ways that no layout says.

A row of the result is copied from a row of the operand, whose steps may be negative, as far as the
triangle goes; the rest of it is zero. Elements are moved by their size alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.template import (
    THREAD,
    Work,
    advance,
    odometer,
    words_of,
    work_of,
)
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


WORDS_OF_SHAPE = 8


@inline
def copy_row(T, W, forward, backward, out, p, out_step, in_step, lo, hi):
    """Elements lo..hi of a row; ``forward``, ``backward``: they lie in order, or in reverse."""
    if forward or backward:
        whole = lo + (hi - lo) // (4 * W) * (4 * W)
        for k in range(lo, whole, 4 * W):
            for u in static(range(4)):
                copy_vector(W, forward, out, p, k + u * W)
        for k in range(whole, hi - W + 1, W):
            copy_vector(W, forward, out, p, k)
        if hi - lo >= W:  # (elements that are written twice, even in place, are the same)
            copy_vector(W, forward, out, p, hi - W)
        elif forward and lo < hi:
            few = first(W, hi - lo)
            vstore(out + lo, vload(p + lo, W, few), few)
        else:
            for k in range(lo, hi):
                out[k] = p[k * in_step]
    else:
        for k in range(lo, hi):
            out[k * out_step] = p[k * in_step]


@inline
def copy_vector(W, forward, out, p, k):
    order = static([W - 1 - j for j in range(W)])
    if forward:
        vstore(out + k, vload(p + k, W))
    else:
        vstore(out + k, shuffle(vload(p + (1 - W - k), W), None, order))


@inline
def clear_row(T, W, forward, out, out_step, lo, hi):
    if forward:
        for k in range(lo, hi - W + 1, W):
            vstore(out + k, vec[T, W](0))
        if hi - lo >= W:
            vstore(out + hi - W, vec[T, W](0))
        elif lo < hi:
            vstore(out + lo, vec[T, W](0), first(W, hi - lo))
    else:
        for k in range(lo, hi):
            out[k * out_step] = T(0)


@native
def arrange_job(u0: i64, u1: i64, args: raw, *, T, W, SHAPE, FORWARD, BACKWARD, DENSE) -> void:
    """Units u0..u1."""
    work = ptr[Work](args)
    shape = ptr[ArrangedShape](work.desc)
    outer = work.desc + WORDS_OF_SHAPE
    r = u0 // shape.pieces
    piece = u0 - r * shape.pieces
    index, offset = odometer(2, outer, shape.dims, r)
    for _u in range(u0, u1):
        out = ptr[T](work.bufs[0]) + offset[0]
        p = ptr[T](work.bufs[1]) + (shape.in_start + offset[1])
        lo = piece * PIECE
        hi = min(lo + PIECE, shape.n)
        begin = lo
        end = hi
        if SHAPE == "lower":
            end = max(min(index[0] + shape.diagonal + 1, hi), lo)
        if SHAPE == "upper":
            begin = min(max(index[0] + shape.diagonal, lo), hi)
            clear_row(T, W, DENSE, out, shape.out_step, lo, begin)
        copy_row(T, W, FORWARD, BACKWARD, out, p, shape.out_step, shape.in_step, begin, end)
        if SHAPE == "lower":
            clear_row(T, W, DENSE, out, shape.out_step, end, hi)
        piece += 1
        if piece == shape.pieces:
            piece = i64(0)
            advance(2, outer, shape.dims, index, offset)


@native
def arrange_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W, SHAPE, FORWARD, BACKWARD, DENSE) -> i64:
    work = work_of(bufs, desc)
    shape = ptr[ArrangedShape](desc)
    few = max(THREAD // max(min(shape.n, i64(PIECE)), 1), 1)
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
    diagonal = 0
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
        diagonal = max(-sizes[-2] - 1, min(what.diagonal, sizes[-1] + 1))
    rows = 1
    for s in sizes[:-1]:
        rows *= s
    n = sizes[-1] if out.numel else 0
    pieces = max(-(-n // PIECE), 1)
    words = [n, rows if out.numel else 0, len(sizes) - 1, pieces, to[-1], of[-1], start, diagonal]
    words += words_of(sizes[:-1], [to, of])
    static_ = {
        "T": WORDS[itemsize], "W": max(target().vector_bits // 8 // itemsize, 2),
        "SHAPE": what.triangle or "whole",
        "FORWARD": to[-1] == 1 and of[-1] == 1, "BACKWARD": to[-1] == 1 and of[-1] == -1,
        "DENSE": to[-1] == 1,
    }  # fmt: skip
    return NativeKernel(arrange_kernel, static_, tuple(words))
