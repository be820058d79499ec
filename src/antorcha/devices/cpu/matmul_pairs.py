"""Products of bfloat16 matrices where the CPU multiplies and adds pairs of numbers at once.

The scheme is that of `matmul`; in packed panels two numbers that follow each other along k are one
word. The sums are float32; a result is rounded once. Numbers below the least normal one are 0 to
the instruction.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.matmul import (
    DIRECT,
    ProductShape,
    ProductTask,
    block_words,
    rows_in_order,
    shape_of,
    split,
)
from antorcha.devices.cpu.passes import NO_MEMORY, failed
from antorcha.devices.cpu.template import launch, transposed
from antorcha.devices.emit import Unsupported
from antorcha.lang.kernels import Launch, MatMul
from antorcha.lang.native import (
    address,
    bf16,
    dot_pairs,
    f32,
    first,
    i64,
    inline,
    lanes,
    local,
    native,
    prefetch,
    ptr,
    raw,
    static,
    struct,
    u16,
    u32,
    vec,
    vgather,
    vload,
    void,
    vstore,
)
from antorcha.lang.native.machine import target
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

DEEP = 512  # pairs of a block
TALL = 16  # panels of a block of A


class PairsShape:
    """The register tile, and which operand is the first factor: a compile-time value."""

    def __init__(self, S: ProductShape, swapped: bool) -> None:
        self.L, self.MR, self.NR, self.NV = S.L, S.MR, S.NR, S.NV
        self.swapped = swapped

    def __native_key__(self) -> str:
        return f"{self.L} {self.MR} {self.NV} {self.swapped}"


@struct
class PairsJob:
    bufs: ptr[raw]
    task: ptr[ProductTask]
    failed: i64


@native
def pack_pairs(
    K: i64, count: i64, src: ptr[u16], lane_step: i64, k_step: i64, dst: ptr[u32], *, S, W
) -> void:
    """``dst[p][lane]`` = elements 2 p and 2 p + 1 along k of W lanes; 0 beyond ``count`` and K."""
    pairs = K // 2
    if lane_step == 1:
        for p in range(pairs):
            low = src + 2 * p * k_step
            pack_lanes(S, W, low, low + k_step, count, dst + p * W)
    elif k_step == 1:
        for p in range(0, pairs, S.L):
            for b in static(range(0, W, S.L)):
                turn_pairs(S, src, lane_step, p, i64(b), pairs - p, count, dst + p * W, W)
    else:
        for p in range(pairs):
            for i in range(W):
                pair = u32(0)
                if i < count:
                    at = src + (i * lane_step + 2 * p * k_step)
                    pair = u32(at[0]) | (u32(at[k_step]) << 16)
                dst[p * W + i] = pair
    if K & 1 != 0:
        for i in range(W):
            at = src + (i * lane_step + (K - 1) * k_step)
            dst[pairs * W + i] = u32(at[0]) if i < count else u32(0)


@inline
def pack_lanes(S, W, low, high, count, dst):
    """A row of pairs of two rows of elements that lie side by side."""
    for b in static(range(0, W, S.L)):
        few = first(S.L, min(count, i64(W)) - b)
        pair = vec[u32, S.L](vload(low + b, S.L, few))
        pair = pair | (vec[u32, S.L](vload(high + b, S.L, few)) << 16)
        vstore(dst + b, pair, None if b + S.L <= W else first(S.L, i64(W - b)))


@inline
def turn_pairs(S, src, lane_step, p, b, left, count, dst, W):
    """A square of pairs that follow each other in memory: L lanes, up to L pairs of each."""
    rows = [
        vload(
            ptr[u32](raw(src + min(b + i, count - 1) * lane_step)) + p, S.L,
            first(S.L, left if b + i < count else i64(0)),
        )
        for i in static(range(S.L))
    ]  # fmt: skip
    rows = transposed(S.L, rows)
    for q in static(range(S.L)):
        if q < left:
            vstore(dst + q * W + b, rows[q], first(S.L, W - b))


@native
def pairs_tile(
    K: i64, A: ptr[u32], B: ptr[u32], task: ptr[ProductTask], C: ptr[bf16], partial: ptr[f32],
    width: i64, bias: ptr[bf16], m: i64, n: i64, begins: bool, ends: bool, *, S,
) -> void:  # fmt: skip
    """MR x NR results of packed panels. Where the sums go on over several blocks they are kept in
    ``partial``, rows of ``width``."""
    L = static(S.L)
    NV = static(S.NV)
    acc = [vec[f32, S.L](0) for _ in static(range(S.MR * S.NV))]
    for _k in range(K):
        right = [vload(B + L * j, L) for j in static(range(S.NV))]
        prefetch(A + 16 * S.MR)
        for i in static(range(S.MR)):
            left = vec[u32, S.L](A[i])
            for j in static(range(S.NV)):
                acc[i * NV + j] = dot_pairs(acc[i * NV + j], left, right[j])
        A += S.MR
        B += S.NR
    for i in static(range(S.MR)):
        if i < m:
            for j in static(range(S.NV)):
                few = first(L, n - L * j)
                keep(
                    S, acc[i * NV + j], task, C + (i * task.o_row + L * j),
                    partial + (i * width + L * j), bias + (i * task.c_row + L * j * task.c_col),
                    few, begins, ends,
                )  # fmt: skip


@inline
def keep(S, total, task, c, partial, bias, few, begins, ends):
    """A vector of sums: to the partial ones, or, with the last of them, to the results."""
    if not begins:
        total = total + vload(partial, S.L, few)
    if ends:
        total = total * f32(task.alpha)
        if task.bias != 0:
            given = vgather(bias, lanes(i64, S.L) * task.c_col, few)
            total = total + vec[f32, S.L](given) * f32(task.beta)
        vstore(c, vec[bf16, S.L](total), few)
    else:
        vstore(partial, total, few)


@inline
def deep_of(k):
    """Elements along k of a block: blocks of the same size."""
    blocks = (k + static(2 * DEEP - 1)) // static(2 * DEEP)
    return ((k + blocks - 1) // blocks + 1) // 2 * 2


@inline
def multiply(S, task, A, B, C, bias, m, n, space, partial):
    """One thread's product. ``space`` holds a packed block of A, then one of B."""
    MR = static(S.MR)
    NR = static(S.NR)
    deep = deep_of(task.k)
    half = deep // 2
    packed_b = space + TALL * MR * half
    for pc in range(0, task.k, deep):
        kc = min(task.k - pc, deep)
        pairs = (kc + 1) // 2
        begins, ends = pc == 0, pc + kc == task.k
        for jr in range(0, n, NR):
            pack_pairs(
                kc, n - jr, B + (pc * task.b_row + jr * task.b_col), task.b_col, task.b_row,
                packed_b + jr * half, S=S, W=S.NR,
            )  # fmt: skip
        for ic in range(0, m, TALL * MR):
            mc = min(m - ic, i64(TALL * MR))
            for ir in range(0, mc, MR):
                pack_pairs(
                    kc, mc - ir, A + ((ic + ir) * task.a_row + pc * task.a_col), task.a_row,
                    task.a_col, space + ir * half, S=S, W=S.MR,
                )  # fmt: skip
            for jr in range(0, n, NR):
                for ir in range(0, mc, MR):
                    row = ic + ir
                    pairs_tile(
                        pairs, space + ir * half, packed_b + jr * half, task,
                        C + (row * task.o_row + jr), partial + (row * n + jr), n,
                        bias + (row * task.c_row + jr * task.c_col), mc - ir, n - jr, begins, ends,
                        S=S,
                    )  # fmt: skip


@native
def pairs_job(u0: i64, u1: i64, args: raw, *, S) -> void:
    """Parts u0..u1 of the whole: a batch's block of rows and columns each."""
    work = ptr[PairsJob](args)
    t = work.task
    deep = deep_of(t.k)
    columns = (t.col_size + static(S.NR - 1)) // S.NR * S.NR
    words = (static(TALL * S.MR) + columns) * (deep // 2) + 64
    sums = i64(0) if deep >= t.k else t.row_size * t.col_size
    space = allocate((words + sums) * 4)
    if space is None:
        work.failed = NO_MEMORY
        return
    for u in range(u0, u1):
        part = u % (t.row_parts * t.col_parts)
        b = u // (t.row_parts * t.col_parts)
        i0 = part % t.row_parts * t.row_size
        j0 = part // t.row_parts * t.col_size
        m = min(t.m - i0, t.row_size)
        n = min(t.n - j0, t.col_size)
        if m > 0 and n > 0:
            A = ptr[u16](work.bufs[2 if S.swapped else 1]) + (b * t.a_batch + i0 * t.a_row)
            B = ptr[u16](work.bufs[1 if S.swapped else 2]) + (b * t.b_batch + j0 * t.b_col)
            C = ptr[bf16](work.bufs[0]) + (b * t.o_batch + i0 * t.o_row + j0)
            bias = ptr[bf16](work.bufs[0])
            if t.bias != 0:
                bias = ptr[bf16](work.bufs[3]) + (b * t.c_batch + i0 * t.c_row + j0 * t.c_col)
            partial = ptr[f32](space) + words
            multiply(S, t, A, B, C, bias, m, n, ptr[u32](space), partial)
    release(space)


@native
def pairs_kernel(bufs: ptr[raw], desc: ptr[i64], *, S) -> i64:
    """desc: a ProductTask."""
    work = local(PairsJob)
    work.bufs = bufs
    work.task = ptr[ProductTask](desc)
    work.failed = 0
    t = work.task
    pool_run(address(pairs_job, S=S), t.batch * t.row_parts * t.col_parts, 1, raw(work))
    return work.failed


@functools.cache
def _kernel_for(swapped: bool) -> Any:
    return pairs_kernel.spec(S=PairsShape(shape_of(f32), swapped))


def has_pairs(what: MatMul, dtype: Any) -> bool:
    """Is there a kernel for a product of that dtype, and is the product worth its packing?"""
    there = target().has("avx512bf16") and target().vector_bits == 512
    large = what.m * what.n * what.k > DIRECT and min(what.m, what.n, what.k) >= 16
    return dtype.name == "bfloat16" and there and large and 1 in what.out[1:]


def compile_pairs(what: MatMul, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    if not has_pairs(what, outs[0].dtype):
        raise Unsupported("a product of halves without an instruction for them")
    what, swapped = rows_in_order(what)
    parts = split(what.m, what.n, what.k, what.batch, shape_of(f32))
    words = block_words(what, parts)
    work = what.batch * what.m * what.n * what.k // 64
    return launch(_kernel_for(swapped), words, outs, ins, work, what, failed("matmul"))
