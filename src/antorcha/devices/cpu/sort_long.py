"""One long line sorted by all threads: a radix sort in parts.

What is sorted is how far each key is from the least one, by as few digits as the greatest of these
numbers has. Where they fit into 32 bits, they share a word with the position, as short keys do (see
``sort_keys``), whatever the dtype.

A pass counts the digits of each part, finds where each part's elements of a digit belong (after
those of smaller digits, and of the parts before it), and moves them, part by part: the order of
equal elements stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.native import NativeKernel
from antorcha.devices.cpu.passes import NO_MEMORY
from antorcha.devices.cpu.sort_keys import Keys, key_of, move_word, place, put_word, words_in
from antorcha.lang.native import (
    address,
    atomic_max,
    atomic_min,
    clz,
    first,
    i64,
    inline,
    local,
    memset,
    native,
    ptr,
    raw,
    reduce_max,
    reduce_min,
    ref,
    static,
    struct,
    u64,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.pool import pool_run

LONGEST = 1 << 16
"""Elements from which a line is sorted in parts."""
PARTS = 16
BITS = 11
R = 1 << BITS
BESIDE, PACKED, KEYS_ALONE = 0, 1, 2
"""Where the positions of a sorted line are: beside the words, in them, nowhere."""


@struct
class Line:
    x: raw
    n: i64
    step: i64  # from an element to the next
    part: i64
    low: u64  # the least key
    high: u64
    bits: i64  # of a digit
    shift: i64  # where the digit begins in a word
    a: ptr[u64]
    p: ptr[i64]
    b: ptr[u64]
    q: ptr[i64]
    count: ptr[i64]  # a table of R a part, and one for all


def room_of(K: Keys, n: int) -> int:
    """Bytes in which n elements are sorted."""
    return n * K.room + (PARTS + 1) * R * 8


@inline
def ends(line, part):
    lo = part * line.part
    return lo, min(lo + line.part, line.n)


@native
def range_job(c0: i64, c1: i64, args: raw, *, K) -> void:
    """The least and the greatest key of parts c0..c1, joined to those found so far."""
    line = ptr[Line](args)
    x = ptr[static(K.U)](line.x)
    W = static(64 // K.U.size)
    for c in range(c0, c1):
        lo, hi = ends(line, c)
        at = lo + 0
        low = static(K.U)(K.ones)
        high = static(K.U)(0)
        if line.step == 1 and hi - lo >= W:
            lows = key_of(K, vload(x + lo, W))
            highs = lows + static(K.U)(0)
            at = lo + (hi - lo) // W * W
            for i in range(lo + W, at, W):
                keys = key_of(K, vload(x + i, W))
                lows = min(lows, keys)
                highs = max(highs, keys)
            low = reduce_min(lows)
            high = reduce_max(highs)
        for i in range(at, hi):
            key = key_of(K, x[i * line.step])
            low = min(low, key)
            high = max(high, key)
        if lo < hi:
            atomic_min(ref(line.low), u64(low))
            atomic_max(ref(line.high), u64(high))


@inline
def count_digits(line, c):
    """The digits of part c."""
    a = line.a
    shift = u64(line.shift)
    mask = (u64(1) << u64(line.bits)) - 1
    lo, hi = ends(line, c)
    table = line.count + c * R
    memset(raw(table), 0, R * 8)
    for i in range(lo, hi):
        at = i64(a[i] >> shift & mask)
        table[at] = table[at] + 1


@native
def read_job(c0: i64, c1: i64, args: raw, *, K) -> void:
    """The words of parts c0..c1, and their first digits."""
    line = ptr[Line](args)
    x = ptr[static(K.U)](line.x)
    low = line.low
    for c in range(c0, c1):
        lo, hi = ends(line, c)
        for i in range(lo, hi):
            put_word(K, line.a, line.p, i, u64(key_of(K, x[i * line.step])) - low, i)
        count_digits(line, c)


@native
def count_job(c0: i64, c1: i64, args: raw) -> void:
    for c in range(c0, c1):
        count_digits(ptr[Line](args), c)


@native
def move_job(c0: i64, c1: i64, args: raw, *, K) -> void:
    line = ptr[Line](args)
    a = line.a
    p = line.p
    b = line.b
    q = line.q
    shift = u64(line.shift)
    mask = (u64(1) << u64(line.bits)) - 1
    for c in range(c0, c1):
        lo, hi = ends(line, c)
        table = line.count + c * R
        for i in range(lo, hi):
            t = table + i64(a[i] >> shift & mask)
            at = t[0]
            t[0] = at + 1
            move_word(K, b, q, at, a, p, i)


@inline
def begins(line):
    """Counts become places; False where all elements have one digit, and none has to move."""
    digits = i64(1) << line.bits
    totals = line.count + PARTS * R
    memset(raw(totals), 0, R * 8)
    for c in range(PARTS):
        table = line.count + c * R
        for r in range(0, digits, 8):
            few = first(8, digits - r)
            vstore(totals + r, vload(totals + r, 8, few) + vload(table + r, 8, few), few)
    before = i64(0)
    most = i64(0)
    for r in range(digits):
        here = totals[r]
        totals[r] = before
        before += here
        most = max(most, here)
    for c in range(PARTS):
        table = line.count + c * R
        for r in range(0, digits, 8):
            few = first(8, digits - r)
            begin = vload(totals + r, 8, few)
            vstore(totals + r, begin + vload(table + r, 8, few), few)
            vstore(table + r, begin, few)
    return most < line.n


@native
def sort_digits(line: ptr[Line], used: i64, *, K) -> void:
    """Sorts keys that differ in so many bits."""
    _a, p, b, q = words_in(K, raw(line.a), line.n)
    line.p, line.b, line.q = p, b, q
    digits = (used + BITS - 1) // BITS
    line.bits = (used + digits - 1) // max(digits, 1)
    line.shift = i64(K.base)
    pool_run(address(read_job, K=K), PARTS, 1, raw(line))
    for d in range(digits):
        if d > 0:
            line.shift += line.bits
            pool_run(address(count_job), PARTS, 1, raw(line))
        if begins(line):
            pool_run(address(move_job, K=K), PARTS, 1, raw(line))
            a = line.a
            line.a = line.b
            line.b = a
            p = line.p
            line.p = line.q
            line.q = p


@native
def sort_line(line: ptr[Line], x: raw, n: i64, step: i64, space: raw, *, K, BARE) -> i64:
    """Sorts n elements in memory of ``room_of`` bytes: the line has the words, less the least key,
    and their positions. Gives which keys the words are those of: ``K.packed``, K's, or, if they are
    wide integers of which BARE wants the keys alone, ``K.bare``'s."""
    line.x = x
    line.n = n
    line.step = step
    line.part = (n + PARTS - 1) // PARTS
    line.count = ptr[i64](space)
    line.a = ptr[u64](space + static((PARTS + 1) * R * 8))
    line.low = u64(K.ones)
    line.high = u64(0)
    pool_run(address(range_job, K=K), PARTS, 1, raw(line))
    span = line.high - line.low
    used = i64(64 - clz(span))
    if span >> 32 == 0:
        sort_digits(line, used, K=K.packed)
        return PACKED
    if BARE and K.wide and K.kind != "f":
        sort_digits(line, used, K=K.bare)
        return KEYS_ALONE
    sort_digits(line, used, K=K)
    return BESIDE


# -------------------------------------------------------------------------------------- the output
@struct
class Sorted:
    line: ptr[Line]
    values: raw
    indices: ptr[i64]
    step_v: i64
    step_i: i64


@inline
def element_of(K, key):
    """The bits of the element that has a key, where no two have the same."""
    U = static(K.U)
    bits = U(key)
    if K.down:
        bits = ~bits
    return bits ^ U(K.sign) if K.kind == "i" else bits


@native
def write_job(c0: i64, c1: i64, args: raw, *, K) -> void:
    out = ptr[Sorted](args)
    line = out.line
    x = ptr[static(K.U)](line.x)
    values = ptr[static(K.U)](out.values)
    a = line.a
    p = line.p
    low = line.low
    for c in range(c0, c1):
        lo, hi = ends(line, c)
        for i in range(lo, hi):
            at = place(K, a, p, i)
            out.indices[i * out.step_i] = at
            if K.kind == "f":
                values[i * out.step_v] = x[at * line.step]
            else:
                values[i * out.step_v] = element_of(K, (a[i] >> K.base) + low)


@native
def long_kernel(bufs: ptr[raw], desc: ptr[i64], *, K) -> i64:
    """bufs: the values, the indices, the input; desc: n, the steps of the three, last first, and
    the bytes to work in."""
    line = local(Line)
    out = local(Sorted)
    space = allocate(desc[4])
    if space is None:
        return NO_MEMORY
    out.line = line
    out.values = bufs[0]
    out.indices = ptr[i64](bufs[1])
    out.step_v = desc[2]
    out.step_i = desc[3]
    if sort_line(line, bufs[2], desc[0], desc[1], space, K=K, BARE=False) == PACKED:
        pool_run(address(write_job, K=K.packed), PARTS, 1, raw(out))
    else:
        pool_run(address(write_job, K=K), PARTS, 1, raw(out))
    release(space)
    return 0


def one_line(K: Keys, n: int, steps: Sequence[int], fail: Any) -> NativeKernel:
    """The sort of a tensor that is one line; ``steps``: of input, values and indices."""
    return NativeKernel(long_kernel, {"K": K}, (n, *steps, room_of(K, n)), fail, 8 * n)
