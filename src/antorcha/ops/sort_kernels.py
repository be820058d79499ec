"""Native kernels that order: sort, topk, kthvalue, the medians and unique.

An element becomes an unsigned *key* whose order is the element's: signed integers with the sign
turned, floats by their bits, NaN greatest, -0 as 0; to descend, every bit is turned. Keys of up to
32 bits share a word with the element's position, which makes all words different, so any sort is
stable; wider keys (and lines of 2**32 elements) have their positions beside them.

A short line is sorted by insertion, a longer one by merging, a long one by radix, a digit at a
time from the least, leaving out the digits that all keys share. An element of a given rank in a
long line is found by radix from the greatest digit, keeping the keys that may be it.

Positions come from the kernel's own scratch memory only: an operand that another thread writes to
meanwhile gives a wrong order, and nothing worse.
"""

# The kernels below are in the kernel language, whose types are values: mypy cannot read them.
# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.lang.kernels import NativeKernel
from antorcha.lang.native import (
    address,
    i64,
    inline,
    local,
    memset,
    native,
    ptr,
    raw,
    select,
    static,
    struct,
    u8,
    u16,
    u32,
    u64,
    void,
)
from antorcha.loops import collapse
from antorcha.ops.found import NO_MEMORY
from antorcha.runtime.alloc import allocate, release
from antorcha.runtime.layout import Layout
from antorcha.runtime.pool import pool_run

WORDS = {1: u8, 2: u16, 4: u32, 8: u64}
INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F80_0000,
            "float64": 0x7FF0_0000_0000_0000}  # fmt: skip
RUN = 16
"""Elements that are sorted by insertion, before they are merged."""
MERGED = 128
"""The longest line that is merged."""
FEW = 16
"""So many greatest elements are kept in order while a line is read."""
LONG = 1 << 14
"""From here a line is sorted by digits of 11 bits, not 8."""
TABLES = 6 * 2048 * 8
"""Bytes of the counts of a radix sort: 6 digits of 11 bits."""
SORT, TOP, KTH, MEDIAN, NANMEDIAN = "sort", "top", "kth", "median", "nanmedian"


class Keys:
    """The compile-time choices of a kernel: how an element becomes a key, and what is wanted."""

    def __init__(self, lay: Layout, down: bool, mode: str, n: int, indices: bool = True) -> None:
        self.U = WORDS[lay.itemsize]
        self.bits = 8 * lay.itemsize
        self.kind = lay.dtype.kind if lay.dtype.kind in "if" else "u"
        self.sign = 1 << (self.bits - 1)
        self.ones = (1 << self.bits) - 1
        self.infinity = INFINITY.get(lay.dtype.name, 0)
        self.down, self.mode, self.indices = down, mode, indices
        self.wide = self.bits > 32 or n >= 1 << 32
        self.base = 0 if self.wide else 32  # where the key begins in its word

    def __native_key__(self) -> str:
        kind = f"{self.bits} {self.kind} {self.infinity} {self.down}"
        return f"{kind} {self.mode} {self.wide} {self.indices}"


@struct
class Task:
    lines: i64
    n: i64  # of a line
    out: i64  # elements of a line that are wanted
    rank: i64
    grain: i64  # lines
    step_x: i64
    step_v: i64
    step_i: i64
    dims: i64  # (size, step in the input, the values, the indices) of the lines follow


@struct
class Work:
    bufs: ptr[raw]
    desc: ptr[i64]
    failed: i64


# ------------------------------------------------------------------------------------------ keys
@inline
def key_of(K, bits):
    """The key of an element's bits."""
    U = static(K.U)
    key = bits + U(0)
    if K.kind == "i":
        key = bits ^ U(K.sign)
    elif K.kind == "f":
        key = select((bits & U(K.sign)) != U(0), ~bits, bits | U(K.sign))
        size = bits & U(K.sign - 1)
        key = select(size == U(0), U(K.sign), key)
        key = select(size > U(K.infinity), U(K.ones), key)
    if K.down:
        key = ~key
    return key


@inline
def put_word(K, a, p, i, key, position):
    """An element in scratch: its word (and its position, where it has its own)."""
    if K.wide:
        a[i] = u64(key)
        p[i] = position
    else:
        a[i] = u64(key) << 32 | u64(position)


@inline
def move_word(K, a, p, i, b, q, j):
    a[i] = b[j]
    if K.wide:
        p[i] = q[j]


@inline
def place(K, a, p, i):
    """The position of an element in scratch."""
    return p[i] if K.wide else i64(a[i] & 0xFFFFFFFF)


# ---------------------------------------------------------------------------------------- sorting
@inline
def insertion(K, a, p, lo, hi):
    for i in range(lo + 1, hi):
        word = a[i]
        position = p[i] if K.wide else i64(0)
        j = i + 0
        while j > lo and a[j - 1] > word:
            move_word(K, a, p, j, a, p, j - 1)
            j -= 1
        a[j] = word
        if K.wide:
            p[j] = position


@native
def merge_sort(a: ptr[u64], p: ptr[i64], b: ptr[u64], q: ptr[i64], n: i64, *, K) -> i64:
    """Sorts a (and p) into itself (gives 0) or b (gives 1)."""
    for lo in range(0, n, RUN):
        insertion(K, a, p, lo, min(lo + RUN, n))
    width = i64(RUN)
    side = i64(0)
    while width < n:
        for lo in range(0, n, 2 * width):
            mid = min(lo + width, n)
            hi = min(mid + width, n)
            i = lo + 0
            j = mid + 0
            for k in range(lo, hi):
                if i < mid and (j >= hi or a[i] <= a[j]):
                    move_word(K, b, q, k, a, p, i)
                    i += 1
                else:
                    move_word(K, b, q, k, a, p, j)
                    j += 1
        a, b = b, a
        p, q = q, p
        side = 1 - side
        width = 2 * width
    return side


@native
def radix_sort(
    a: ptr[u64], p: ptr[i64], b: ptr[u64], q: ptr[i64], count: ptr[i64], n: i64, *, K, BITS
) -> i64:
    """The same, a digit of BITS bits at a time, from the least."""
    R = static(1 << BITS)
    digits = static(-(-K.bits // BITS))
    memset(raw(count), 0, digits * R * 8)
    for i in range(n):
        key = a[i] >> K.base
        for d in static(range(digits)):
            at = i64(key >> (BITS * d) & (R - 1)) + d * R
            count[at] = count[at] + 1
    side = i64(0)
    for d in static(range(digits)):
        table = count + d * R
        shift = static(K.base + BITS * d)
        if table[i64(a[0] >> shift & (R - 1))] != n:
            total = i64(0)
            for r in range(R):
                c = table[r]
                table[r] = total
                total += c
            for i in range(n):
                word = a[i]
                t = table + i64(word >> shift & (R - 1))
                at = t[0]
                t[0] = at + 1
                b[at] = word
                if K.wide:
                    q[at] = p[i]
            a, b = b, a
            p, q = q, p
            side = 1 - side
    return side


@inline
def sort_words(K, a, p, b, q, count, n):
    """Sorts n words; gives where they are now: 0 for a, 1 for b."""
    side = i64(0)
    if n <= RUN:
        insertion(K, a, p, 0, n)
    elif n <= MERGED:
        side = merge_sort(a, p, b, q, n, K=K)
    elif n < LONG:
        side = radix_sort(a, p, b, q, count, n, K=K, BITS=8)
    else:
        side = radix_sort(a, p, b, q, count, n, K=K, BITS=8 if K.bits <= 16 else 11)
    return side


@native
def narrow_down(
    a: ptr[u64], p: ptr[i64], b: ptr[u64], q: ptr[i64], count: ptr[i64], n: i64, rank: i64, *, K
) -> i64:
    """Leaves in b (and q) the elements whose key is that of the given rank, in their order, and
    gives the rank among them. a stays as it is."""
    for d in static(range(K.bits // 8)):
        shift = static(K.base + K.bits - 8 - 8 * d)
        memset(raw(count), 0, 256 * 8)
        for i in range(n):
            at = i64(a[i] >> shift & 255)
            count[at] = count[at] + 1
        digit = i64(0)
        while digit < 255 and rank >= count[digit]:
            rank -= count[digit]
            digit += 1
        k = i64(0)
        for i in range(n):
            if i64(a[i] >> shift & 255) == digit:
                move_word(K, b, q, k, a, p, i)
                k += 1
        n = k
        a = b
        p = q
    return rank


# ------------------------------------------------------------------------------------------ lines
@inline
def line_offsets(row, walk, dims):
    """Where the row-th line begins in the input, the values and the indices."""
    rest = row + 0
    x = i64(0)
    v = i64(0)
    w = i64(0)
    for back in range(dims):
        d = 4 * (dims - 1 - back)
        size = walk[d]
        above = rest // size
        here = rest - above * size
        x += here * walk[d + 1]
        v += here * walk[d + 2]
        w += here * walk[d + 3]
        rest = above
    return x, v, w


@inline
def read_line(K, a, p, x, n, step):
    """The words of a line; gives how many elements are NaN, where that matters."""
    nan = i64(0)
    if step == 1:
        for i in range(n):
            put_word(K, a, p, i, key_of(K, x[i]), i)
    else:
        for i in range(n):
            put_word(K, a, p, i, key_of(K, x[i * step]), i)
    if K.kind == "f" and (K.mode == "median" or K.mode == "nanmedian"):
        for i in range(n):
            if a[i] >> K.base == K.ones:
                nan += 1
    return nan


@inline
def write_line(K, t, a, p, n, x, values, indices):
    for i in range(n):
        at = place(K, a, p, i)
        values[i * t.step_v] = x[at * t.step_x]
        if K.indices:
            indices[i * t.step_i] = at


@inline
def keep_few(K, a, p, b, q, n, wanted):
    """The least ``wanted`` of n words, in order, in b."""
    kept = i64(0)
    for i in range(n):
        word = a[i]
        if kept < wanted or word < b[kept - 1]:
            j = kept + 0
            if kept == wanted:
                j -= 1
            else:
                kept += 1
            while j > 0 and b[j - 1] > word:
                move_word(K, b, q, j, b, q, j - 1)
                j -= 1
            move_word(K, b, q, j, a, p, i)


@inline
def keep_top(K, a, p, b, q, count, n, wanted):
    """The least ``wanted`` of n words, in order; gives where they are: 0 for a, 1 for b."""
    rank = narrow_down(a, p, b, q, count, n, wanted - 1, K=K)
    edge = b[0] >> K.base
    k = i64(0)
    for i in range(n):
        key = a[i] >> K.base
        keep = key < edge
        if key == edge and rank >= 0:
            rank -= 1
            keep = True
        if keep:
            move_word(K, b, q, k, a, p, i)
            k += 1
    # b is whole: a serves as its other side
    return 1 - sort_words(K, b, q, a, p, count, k)


@native
def line_job(r0: i64, r1: i64, args: raw, *, K) -> void:
    """Lines r0..r1; bufs: the values, the indices if they are wanted, the input."""
    work = ptr[Work](args)
    t = ptr[Task](raw(work.desc))
    n = t.n
    space = allocate(n * (32 if K.wide else 16) + TABLES)
    if space is None:
        work.failed = NO_MEMORY
        return
    count = ptr[i64](space)
    a = ptr[u64](space + TABLES)
    b = a + n
    p = ptr[i64](b + (n if K.wide else 0))
    q = p + (n if K.wide else 0)
    for row in range(r0, r1):
        at_x, at_v, at_i = line_offsets(row, ptr[i64](t + 1), t.dims)
        x = ptr[static(K.U)](work.bufs[2 if K.indices else 1]) + at_x
        values = ptr[static(K.U)](work.bufs[0]) + at_v
        indices = ptr[i64](work.bufs[1]) + at_i
        nan = read_line(K, a, p, x, n, t.step_x)
        if K.mode == "sort" or K.mode == "top":
            side = i64(1)
            if K.mode == "top" and t.out <= FEW and n > RUN:
                keep_few(K, a, p, b, q, n, t.out)
            elif K.mode == "top" and n > MERGED and t.out <= n // 4:
                side = keep_top(K, a, p, b, q, count, n, t.out)
            else:
                side = sort_words(K, a, p, b, q, count, n)
            if side == 0:
                write_line(K, t, a, p, t.out, x, values, indices)
            else:
                write_line(K, t, b, q, t.out, x, values, indices)
        else:
            rank = t.rank + 0
            if K.mode == "median":
                rank = n - nan if nan > 0 else (n - 1) // 2
            elif K.mode == "nanmedian":
                rank = max(n - nan - 1, 0) // 2
            if n <= MERGED:
                if sort_words(K, a, p, b, q, count, n) == 0:
                    at = place(K, a, p, rank)
                else:
                    at = place(K, b, q, rank)
            else:
                left = narrow_down(a, p, b, q, count, n, rank, K=K)
                at = place(K, b, q, left)
            values[0] = x[at * t.step_x]
            if K.indices:
                indices[0] = at
    release(space)


@native
def line_kernel(bufs: ptr[raw], desc: ptr[i64], *, K) -> i64:
    work = local(Work)
    work.bufs = bufs
    work.desc = desc
    work.failed = 0
    t = ptr[Task](raw(desc))
    pool_run(address(line_job, K=K), t.lines, t.grain, raw(work))
    return work.failed


# ----------------------------------------------------------------------------------------- unique
@native
def groups_kernel(bufs: ptr[raw], desc: ptr[i64], *, K, SORTED) -> i64:
    """bufs: the number of groups, then the positions in order; where each group begins, and the
    end of all; the input. desc: n. NaN is a group of its own."""
    n = desc[0]
    order = ptr[i64](bufs[0]) + 1
    begin = ptr[i64](bufs[1])
    x = ptr[static(K.U)](bufs[2])
    space = allocate(n * (32 if K.wide else 16) + TABLES)
    if space is None:
        return NO_MEMORY
    count = ptr[i64](space)
    a = ptr[u64](space + TABLES)
    b = a + n
    p = ptr[i64](b + (n if K.wide else 0))
    q = p + (n if K.wide else 0)
    read_line(K, a, p, x, n, 1)
    if SORTED and sort_words(K, a, p, b, q, count, n) == 1:
        a = b
        p = q
    groups = i64(0)
    for i in range(n):
        key = a[i] >> K.base
        fresh = i == 0 or key != a[i - 1] >> K.base
        if K.kind == "f":
            fresh = fresh or key == K.ones
        if fresh:
            begin[groups] = i
            groups += 1
        order[i] = place(K, a, p, i)
    begin[groups] = n
    order[-1] = groups
    release(space)
    return 0


@native
def unique_kernel(bufs: ptr[raw], desc: ptr[i64], *, T) -> i64:
    """bufs: values, inverse, counts; the two of ``groups_kernel``; the input."""
    values = ptr[T](bufs[0])
    inverse = ptr[i64](bufs[1])
    counts = ptr[i64](bufs[2])
    order = ptr[i64](bufs[3]) + 1
    begin = ptr[i64](bufs[4])
    x = ptr[T](bufs[5])
    for g in range(order[-1]):
        values[g] = x[order[begin[g]]]
        counts[g] = begin[g + 1] - begin[g]
        for i in range(begin[g], begin[g + 1]):
            inverse[order[i]] = g
    return 0


# ------------------------------------------------------------------------------------ descriptions
def orders(lay: Layout) -> bool:
    """Can the kernels order a tensor's elements?"""
    return lay.itemsize in WORDS and lay.dtype.kind != "c" and bool(lay.numel)


def lines(
    mode: str, input: Layout, d: int, outs: Sequence[Sequence[int]], wanted: int, reference: Any,
    fail: Any, *, down: bool = False, rank: int = 0,
) -> NativeKernel:  # fmt: skip
    """The work along dim ``d``; ``outs``: the strides of the values, and of the indices if they
    are wanted, that dim included."""
    shape, indices = tuple(input.shape), len(outs) == 2
    steps = [input.strides, *outs] if indices else [input.strides, outs[0], outs[0]]
    n = shape[d] if shape else 1
    along = [s[d] if shape else 1 for s in steps]
    others = [e for e in range(len(shape)) if e != d]
    sizes, walks = collapse([shape[e] for e in others], [[s[e] for e in others] for s in steps])
    desc = [input.numel // n, n, wanted, rank, max(8192 // n, 1), *along, len(sizes)]
    for each in zip(sizes, *walks, strict=True):
        desc += each
    K = Keys(input, down, mode, n, indices)
    return NativeKernel(line_kernel, {"K": K}, tuple(desc), reference, fail, 4 * input.numel)


def grouping(lay: Layout, ordered: bool, fail: Any) -> NativeKernel:
    """input -> groups of equal elements."""
    K = Keys(lay, False, SORT, lay.numel)
    return NativeKernel(
        groups_kernel, {"K": K, "SORTED": ordered}, (lay.numel,), None, fail, 8 * lay.numel
    )


def distinct(lay: Layout) -> NativeKernel:
    """(groups of equal elements, input) -> values, inverse, counts."""
    return NativeKernel(unique_kernel, {"T": WORDS[lay.itemsize]}, (), None, None, 2 * lay.numel)
