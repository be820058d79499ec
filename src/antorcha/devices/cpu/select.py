"""The templates of Select and Replace: what a mask chooses.

Choosing takes two passes over a mask in parts: ``count_job`` counts each part's elements that are
not zero, ``positions_job``, ``take_job`` and ``put_job`` write theirs from where the part's begin.
A part writes no more than was counted, whatever another thread does to the mask meanwhile.

A mask is read in blocks of 64 elements, whose bits are one word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.loops import collapse
from antorcha.core.structs import struct as record
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import (
    CHANGED,
    NO_MEMORY,
    Passes,
    PassWork,
    compile_passes,
    failed,
    place_parts,
    work_of,
)
from antorcha.devices.emit import WORDS, Unsupported
from antorcha.lang.kernels import Launch, Replace, Select
from antorcha.lang.native import (
    address,
    ctpop,
    ctz,
    first,
    i64,
    inline,
    mask_bits,
    native,
    ptr,
    raw,
    static,
    struct,
    u8,
    u64,
    vload,
    void,
)
from antorcha.runtime.counted import Count, Shape
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

PART = 1 << 14
"""Elements of the mask that are counted together, at least; a multiple of 64."""
MOST_PARTS = 1 << 12
TOO_FEW = 16
"""A kernel's status from here on: how many elements the mask has, and 16 more."""


def part_size(n: int) -> int:
    """Elements of a part of a mask of n elements."""
    return max(PART, -(-n // MOST_PARTS) + 63 & -64)


def parts_of(n: int) -> int:
    return -(-n // part_size(n))


def significant(layout: Layout) -> tuple[Any, int] | None:
    """The word that an element is, and its bits that make it differ from zero; None if no word."""
    bits = 8 * layout.itemsize
    if layout.itemsize not in WORDS:
        return None
    if layout.dtype.kind == "f":
        return WORDS[layout.itemsize], (1 << (bits - 1)) - 1
    if layout.dtype.kind == "c":
        return (u64, 0x7FFFFFFF_7FFFFFFF) if bits == 64 else None
    return WORDS[layout.itemsize], (1 << bits) - 1


@struct
class SelectTask:
    n: i64  # elements of the mask
    part: i64
    parts: i64
    dims: i64  # (size, step) pairs follow


# ------------------------------------------------------------------------------------- counting
@inline
def bits_at(T, KEEP, p, n):
    """Which of up to 64 elements are not zero, element 0 lowest."""
    lanes = static(64 // T.size)
    word = u64(0)
    if n >= 64:
        for k in static(range(T.size)):
            found = (vload(p + k * lanes, lanes) & T(KEEP)) != T(0)
            word = word | mask_bits(found) << (k * lanes)
    else:
        for k in static(range(T.size)):
            if n > k * lanes:
                few = first(lanes, n - k * lanes)
                found = ((vload(p + k * lanes, lanes, few) & T(KEEP)) != T(0)) & few
                word = word | mask_bits(found) << (k * lanes)
    return word


@inline
def chosen_at(work, T, KEEP, p, n, k, end):
    """``bits_at``, whose elements go to k and on; none if they would go past ``end``, because the
    mask is no longer what was counted."""
    word = bits_at(T, KEEP, p, n)
    if k + i64(ctpop(word)) > end:
        work.failed = CHANGED
        word = u64(0)
    return word


@native
def count_job(c0: i64, c1: i64, args: raw, *, T, KEEP, MASK) -> void:
    """The number of elements of parts c0..c1 that are not zero."""
    work = ptr[PassWork](args)
    t = ptr[SelectTask](raw(work.desc))
    mask = ptr[T](work.bufs[MASK])
    for c in range(c0, c1):
        lo = c * t.part
        hi = min(lo + t.part, t.n)
        total = u64(0)
        for at in range(lo, hi, 64):
            total += ctpop(bits_at(T, KEEP, mask + at, hi - at))
        work.offsets[c + 1] = i64(total)


@inline
def count_all(work, t, T, KEEP, MASK):
    """Fills the offsets, and gives the number of all."""
    pool_run(address(count_job, T=T, KEEP=KEEP, MASK=MASK), t.parts, 4, raw(work))
    return place_parts(work, t.parts)


@native
def count_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, KEEP, MASK) -> i64:
    """bufs: the offsets, the operands, of which the mask is one."""
    work = work_of(bufs, desc)
    work.offsets = ptr[i64](bufs[0])
    count_all(work, ptr[SelectTask](raw(desc)), T, KEEP, MASK)
    return 0


# -------------------------------------------------------------------------------------- nonzero
@native
def positions_job(c0: i64, c1: i64, args: raw, *, T, KEEP) -> void:
    """bufs: the positions (a row per dim), the offsets, the mask; desc: Task, then sizes."""
    work = ptr[PassWork](args)
    t = ptr[SelectTask](raw(work.desc))
    sizes = ptr[i64](t + 1)
    mask = ptr[T](work.bufs[2])
    count = work.offsets[t.parts]
    inner = ptr[i64](work.bufs[0]) + (t.dims - 1) * count
    for c in range(c0, c1):
        lo = c * t.part
        hi = min(lo + t.part, t.n)
        k = work.offsets[c]
        end = work.offsets[c + 1]
        for at in range(lo, hi, 64):
            word = chosen_at(work, T, KEEP, mask + at, hi - at, k, end)
            while word != 0:
                inner[k] = at + i64(ctz(word))
                k += 1
                word = word & (word - 1)
        if k != end:
            work.failed = CHANGED
        # the flat positions, so far in the last row, become one for each dim
        row = inner + 0
        for back in range(t.dims - 1):
            size = sizes[t.dims - 1 - back]
            above = row - count
            high = i64(0)
            base = i64(0)
            for j in range(work.offsets[c], k):
                flat = row[j]
                if flat < base or flat >= base + size:
                    high = flat // size
                    base = high * size
                above[j] = high
                row[j] = flat - base
            row = above


@native
def positions_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, KEEP) -> i64:
    work = work_of(bufs, desc)
    work.offsets = ptr[i64](bufs[1])
    t = ptr[SelectTask](raw(desc))
    pool_run(address(positions_job, T=T, KEEP=KEEP), t.parts, 2, raw(work))
    return work.failed


# ----------------------------------------------------------------------------------------- masks
@inline
def move(out, x, W):
    for w in static(range(W)):
        out[w] = x[w]


@inline
def offset_of(row, pairs, dims):
    """Where the row-th line begins: (size, step) pairs but the last."""
    rest = row + 0
    offset = i64(0)
    for back in range(dims - 1):
        d = 2 * (dims - 2 - back)
        size = pairs[d]
        offset += rest % size * pairs[d + 1]
        rest = rest // size
    return offset


@native
def take_job(c0: i64, c1: i64, args: raw, *, T, W) -> void:
    """bufs: the chosen elements, the offsets, the input, the mask. Elements are W words each."""
    work = ptr[PassWork](args)
    t = ptr[SelectTask](raw(work.desc))
    pairs = ptr[i64](t + 1)
    n = pairs[2 * t.dims - 2]
    step = pairs[2 * t.dims - 1]
    out = ptr[T](work.bufs[0])
    mask = ptr[u8](work.bufs[3])
    for c in range(c0, c1):
        at = c * t.part
        hi = min(at + t.part, t.n)
        k = work.offsets[c]
        end = work.offsets[c + 1]
        while at < hi:
            row = at // n
            begin = at - row * n
            stop = min(n, begin + hi - at)
            x = ptr[T](work.bufs[2]) + offset_of(row, pairs, t.dims) * W
            for j in range(begin, stop, 64):
                word = chosen_at(work, u8, 255, mask + (at + j - begin), stop - j, k, end)
                while word != 0:
                    move(out + k * W, x + (j + i64(ctz(word))) * step * W, W)
                    k += 1
                    word = word & (word - 1)
            at += stop - begin
        if k != end:
            work.failed = CHANGED


@native
def take_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W) -> i64:
    work = work_of(bufs, desc)
    work.offsets = ptr[i64](bufs[1])
    pool_run(address(take_job, T=T, W=W), ptr[SelectTask](raw(desc)).parts, 2, raw(work))
    return work.failed


@native
def put_job(c0: i64, c1: i64, args: raw, *, T, W) -> void:
    """bufs: the output, the input that it is a copy of, the mask, the source."""
    work = ptr[PassWork](args)
    t = ptr[SelectTask](raw(work.desc))
    out = ptr[T](work.bufs[0])
    mask = ptr[u8](work.bufs[2])
    source = ptr[T](work.bufs[3])
    for c in range(c0, c1):
        lo = c * t.part
        hi = min(lo + t.part, t.n)
        k = work.offsets[c]
        end = work.offsets[c + 1]
        for at in range(lo, hi, 64):
            word = chosen_at(work, u8, 255, mask + at, hi - at, k, end)
            while word != 0:
                move(out + (at + i64(ctz(word))) * W, source + k * W, W)
                k += 1
                word = word & (word - 1)


@native
def put_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, W) -> i64:
    """desc: Task, then the number of elements of the source."""
    work = work_of(bufs, desc)
    t = ptr[SelectTask](raw(desc))
    space = allocate((t.parts + 1) * 8)
    if space is None:
        return NO_MEMORY
    work.offsets = ptr[i64](space)
    total = count_all(work, t, u8, 255, 2)
    if total > ptr[i64](t + 1)[0]:
        work.failed = TOO_FEW + total
    else:
        pool_run(address(put_job, T=T, W=W), t.parts, 2, raw(work))
    release(space)
    return work.failed


# ------------------------------------------------------------------------------------ descriptions
def mask_task(n: int) -> list[int]:
    return [n, part_size(n), parts_of(n)]


def element_words(layout: Layout) -> tuple[Any, int]:
    """An element as a number of machine words."""
    return (u64, 2) if layout.itemsize == 16 else (WORDS[layout.itemsize], 1)


def counting(mask: Layout, fail: Any, before: int = 0) -> NativeKernel | None:
    """(so many operands before it, mask) -> offsets; None where no kernel reads the mask."""
    kept = significant(mask)
    if kept is None or not mask.contiguous:
        return None
    desc = (*mask_task(mask.numel), 0)
    options = {"T": kept[0], "KEEP": kept[1], "MASK": 1 + before}
    return NativeKernel(count_kernel, options, desc, fail, mask.numel)


def positions(mask: Layout, fail: Any) -> NativeKernel:
    """(offsets, mask) -> positions."""
    kept = significant(mask)
    if kept is None:
        raise Unsupported
    sizes = tuple(mask.shape) or (1,)
    desc = (*mask_task(mask.numel), len(sizes), *sizes)
    options = {"T": kept[0], "KEEP": kept[1]}
    return NativeKernel(positions_kernel, options, desc, fail, mask.numel)


def taking(x: Layout, mask: Layout, fail: Any) -> NativeKernel:
    """(offsets, input of the mask's shape, mask) -> chosen elements."""
    sizes, (steps,) = collapse(x.shape, [x.strides])
    if not sizes:
        sizes, steps = (1,), (0,)
    T, W = element_words(x)
    pairs = [each for pair in zip(sizes, steps, strict=True) for each in pair]
    desc = (*mask_task(mask.numel), len(sizes), *pairs)
    return NativeKernel(take_kernel, {"T": T, "W": W}, desc, fail, mask.numel)


def putting(x: Layout, source: int, fail: Any) -> NativeKernel:
    """(input, mask of its shape, source) -> the input with the chosen elements replaced."""
    T, W = element_words(x)
    desc = (*mask_task(x.numel), 0, source)
    return NativeKernel(put_kernel, {"T": T, "W": W}, desc, fail, x.numel, preload=True)


def compile_select(what: Select, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    fail, mask = failed(what.name), ins[-1]
    count = counting(mask, fail, len(ins) - 1)
    if count is None or not mask.ndim or ins[0].shape != mask.shape:
        raise Unsupported
    parts = parts_of(mask.numel)
    shape: Shape = (Count(0),)  # the number behind the parts' beginnings: of all
    if what.positions:
        shape, write = (mask.ndim, *shape), positions(mask, fail)
    else:
        write = taking(ins[0], mask, fail)
    passes = Passes(count, [((parts + 1,), dtypes.int64)], [shape], write, first=parts)
    return compile_passes(what, passes, outs, ins)


def compile_replace(what: Replace, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    x, mask, source = ins
    alike = x.shape == outs[0].shape and mask.shape == x.shape
    if not (alike and mask.contiguous and source.contiguous):
        raise Unsupported
    fail = Refusal(what, source.numel)
    return compile_native(what, putting(outs[0], source.numel, fail), outs, ins)


@record
class Refusal:
    """The exception for a status of the kernel that replaces by so many elements."""

    what: Replace
    given: int

    def __call__(self, code: int) -> BaseException:
        if code < TOO_FEW:
            return failed(self.what.name)(code)
        return self.what.refuse(code - TOO_FEW, self.given)
