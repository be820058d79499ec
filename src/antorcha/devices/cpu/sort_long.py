"""One long line sorted by all threads: a radix sort in parts.

A pass counts the digits of each part, finds where each part's elements of a digit belong (after
those of smaller digits, and of the parts before it), and moves them, part by part: the order of
equal elements stays. See ``sort_keys`` for the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.native import NativeKernel
from antorcha.devices.cpu.passes import NO_MEMORY
from antorcha.devices.cpu.sort_keys import Keys, key_of, move_word, place, put_word
from antorcha.lang.native import (
    address,
    i64,
    inline,
    local,
    memset,
    native,
    ptr,
    raw,
    static,
    struct,
    u64,
    void,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.pool import pool_run

LONGEST = 1 << 16
"""Elements from which a line is sorted in parts."""
PARTS = 16
BITS = 11
R = 1 << BITS


@struct
class Line:
    bufs: ptr[raw]
    n: i64
    step_x: i64
    step_v: i64
    step_i: i64
    shift: i64
    part: i64
    a: ptr[u64]
    p: ptr[i64]
    b: ptr[u64]
    q: ptr[i64]
    count: ptr[i64]  # a table of R a part


@inline
def ends(line, part):
    lo = part * line.part
    return lo, min(lo + line.part, line.n)


@native
def read_job(c0: i64, c1: i64, args: raw, *, K) -> void:
    """The words of parts c0..c1."""
    line = ptr[Line](args)
    x = ptr[static(K.U)](line.bufs[2])
    a = line.a
    p = line.p
    for c in range(c0, c1):
        lo, hi = ends(line, c)
        for i in range(lo, hi):
            put_word(K, a, p, i, key_of(K, x[i * line.step_x]), i)


@native
def count_job(c0: i64, c1: i64, args: raw) -> void:
    line = ptr[Line](args)
    a = line.a
    shift = u64(line.shift)
    for c in range(c0, c1):
        lo, hi = ends(line, c)
        table = line.count + c * R
        memset(raw(table), 0, R * 8)
        for i in range(lo, hi):
            at = i64(a[i] >> shift & (R - 1))
            table[at] = table[at] + 1


@native
def move_job(c0: i64, c1: i64, args: raw, *, K) -> void:
    line = ptr[Line](args)
    a = line.a
    p = line.p
    b = line.b
    q = line.q
    shift = u64(line.shift)
    for c in range(c0, c1):
        lo, hi = ends(line, c)
        table = line.count + c * R
        for i in range(lo, hi):
            t = table + i64(a[i] >> shift & (R - 1))
            at = t[0]
            t[0] = at + 1
            move_word(K, b, q, at, a, p, i)


@native
def write_job(c0: i64, c1: i64, args: raw, *, K) -> void:
    line = ptr[Line](args)
    x = ptr[static(K.U)](line.bufs[2])
    values = ptr[static(K.U)](line.bufs[0])
    indices = ptr[i64](line.bufs[1])
    a = line.a
    p = line.p
    for c in range(c0, c1):
        lo, hi = ends(line, c)
        for i in range(lo, hi):
            at = place(K, a, p, i)
            values[i * line.step_v] = x[at * line.step_x]
            indices[i * line.step_i] = at


@inline
def begins(line):
    """Counts become places; False where all elements have one digit, and none has to move."""
    total = i64(0)
    most = i64(0)
    for r in range(R):
        before = total + 0
        for c in range(PARTS):
            t = line.count + (c * R + r)
            here = t[0]
            t[0] = total
            total += here
        most = max(most, total - before)
    return most < line.n


@native
def long_kernel(bufs: ptr[raw], desc: ptr[i64], *, K) -> i64:
    """bufs: the values, the indices, the input; desc: n, the steps of the three, last first."""
    line = local(Line)
    n = desc[0]
    tables = static(PARTS * R * 8)
    space = allocate(n * (32 if K.wide else 16) + tables)
    if space is None:
        return NO_MEMORY
    line.bufs = bufs
    line.n = n
    line.step_x = desc[1]
    line.step_v = desc[2]
    line.step_i = desc[3]
    line.part = (n + PARTS - 1) // PARTS
    line.count = ptr[i64](space)
    line.a = ptr[u64](space + tables)
    line.b = line.a + n
    line.p = ptr[i64](line.b + (n if K.wide else 0))
    line.q = line.p + (n if K.wide else 0)
    pool_run(address(read_job, K=K), PARTS, 1, raw(line))
    for d in static(range(-(-K.bits // BITS))):
        line.shift = static(K.base + BITS * d)
        pool_run(address(count_job), PARTS, 1, raw(line))
        if begins(line):
            pool_run(address(move_job, K=K), PARTS, 1, raw(line))
            a = line.a
            line.a = line.b
            line.b = a
            p = line.p
            line.p = line.q
            line.q = p
    pool_run(address(write_job, K=K), PARTS, 1, raw(line))
    release(space)
    return 0


def one_line(K: Keys, n: int, steps: Sequence[int], fail: Any) -> NativeKernel:
    """The sort of a tensor that is one line; ``steps``: of input, values and indices."""
    return NativeKernel(long_kernel, {"K": K}, (n, *steps), fail, 8 * n)
