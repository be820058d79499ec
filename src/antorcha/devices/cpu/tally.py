"""Counting integers: how often each occurs, from the least that may be there on.

Threads count parts in tables of their own, of 32 bits, several a part where there are few bins: an
addition to a bin waits for the last one to it, and neighbours are often alike. The tables are added
up. Where there are too many bins for that, one thread counts. Integers that another thread writes
meanwhile to be none of those give a status, and nothing worse.
"""

from __future__ import annotations

from antorcha.devices.cpu.passes import CHANGED, NO_MEMORY
from antorcha.lang.native import (
    address,
    atomic_max,
    atomic_min,
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
    static,
    struct,
    u32,
    u64,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.pool import pool_run, pool_threads

SHARE = 1 << 15
"""Integers that are worth a thread."""
TABLES = 4
"""In so many neighbours are counted."""
SMALL = 1 << 11
"""Bins of which so many tables stay in the first cache."""


# ------------------------------------------------------------------------------------------- ends
@struct
class Ends:
    found: ptr[i64]
    x: raw


@native
def ends_job(u0: i64, u1: i64, args: raw, *, T, W) -> void:
    """The least and the greatest of integers u0..u1, joined to those found so far."""
    ends = ptr[Ends](args)
    x = ptr[T](ends.x)
    low, high = x[u0] + T(0), x[u0] + T(0)
    at = u0 + (u1 - u0) // (2 * W) * (2 * W)
    if at > u0:
        lows = [vload(x + u0, W) for _ in static(range(2))]
        highs = [vload(x + u0, W) for _ in static(range(2))]
        for i in range(u0, at, 2 * W):
            for k in static(range(2)):
                some = vload(x + i + k * W, W)
                lows[k], highs[k] = min(lows[k], some), max(highs[k], some)
        low = reduce_min(min(lows[0], lows[1]))
        high = reduce_max(max(highs[0], highs[1]))
    for i in range(at, u1):
        low, high = min(low, x[i]), max(high, x[i])
    if T is u64:
        atomic_min(ptr[u64](ends.found), low)
        atomic_max(ptr[u64](ends.found) + 1, high)
    else:
        atomic_min(ends.found, i64(low))
        atomic_max(ends.found + 1, i64(high))


@native
def find_ends(found: ptr[i64], x: raw, n: i64, *, T, W) -> void:
    """The least and the greatest of n integers, as words of 64 bits."""
    ends = local(Ends)
    ends.found = found
    ends.x = x
    found[0] = i64(ptr[T](x)[0])
    found[1] = found[0]
    pool_run(address(ends_job, T=T, W=W), n, SHARE, raw(ends))


# ----------------------------------------------------------------------------------------- counting
@struct
class Tally:
    out: ptr[i64]
    x: raw
    n: i64
    low: i64
    bins: i64
    parts: i64
    tables: ptr[u32]
    apart: i64  # from a table of a part to that in which the next integer is counted
    of_part: i64  # from the tables of a part to the next's
    failed: i64


@inline
def bin_of(t, x, i):
    """The bin of an integer: below ``bins``, unless it has been changed."""
    return u64(i64(x[i]) - t.low)


@native
def tally_job(c0: i64, c1: i64, args: raw, *, T) -> void:
    """The counts of parts c0..c1."""
    t = ptr[Tally](args)
    x = ptr[T](t.x)
    bins = u64(t.bins)
    apart = t.apart
    for c in range(c0, c1):
        table = t.tables + c * t.of_part
        memset(raw(table), 0, t.of_part * 4)
        lo = c * t.n // t.parts
        hi = (c + 1) * t.n // t.parts
        whole = lo + (hi - lo) // TABLES * TABLES
        for i in range(lo, whole, TABLES):
            at = [bin_of(t, x, i + k) for k in static(range(TABLES))]
            if max(max(at[0], at[1]), max(at[2], at[3])) >= bins:
                t.failed = CHANGED
                return
            for k in static(range(TABLES)):
                place = table + (k * apart + i64(at[k]))
                place[0] = place[0] + 1
        for i in range(whole, hi):
            one = bin_of(t, x, i)
            if one >= bins:
                t.failed = CHANGED
                return
            place = table + i64(one)
            place[0] = place[0] + 1


@native
def total_job(b0: i64, b1: i64, args: raw) -> void:
    """Bins b0..b1 of all tables added up."""
    t = ptr[Tally](args)
    end = t.parts * t.of_part
    for b in range(b0, b1, 8):
        few = first(8, b1 - b)
        total = vec[i64, 8](0)
        for table in range(0, end, t.bins):
            total = total + vec[i64, 8](vload(t.tables + table + b, 8, few))
        vstore(t.out + b, total, few)


@native
def tally_tables(t: ptr[Tally], *, T) -> i64:
    """The counts by tables; gives the status."""
    space = allocate(t.parts * t.of_part * 4)
    if space is None:
        return NO_MEMORY
    t.tables = ptr[u32](space)
    t.failed = 0
    pool_run(address(tally_job, T=T), t.parts, 1, raw(t))
    if t.failed == 0:
        pool_run(address(total_job), t.bins, SHARE, raw(t))
    release(space)
    return t.failed


@native
def tally(out: ptr[i64], x: raw, n: i64, low: i64, bins: i64, *, T) -> i64:
    """How often each of the integers low, low + 1, ... occurs among n; gives the status."""
    t = local(Tally)
    t.out, t.x, t.n, t.low, t.bins = out, x, n, low, bins
    t.apart = bins if bins <= SMALL else i64(0)
    t.of_part = bins if bins > SMALL else TABLES * bins
    t.parts = min(min(pool_threads(), max(n // SHARE, 1)), n // (4 * t.of_part))
    if t.parts > (1 if bins > SMALL else 0) and n < 1 << 32:
        return tally_tables(t, T=T)
    memset(raw(out), 0, bins * 8)
    for i in range(n):
        at = bin_of(t, ptr[T](x), i)
        if at >= u64(bins):
            return CHANGED
        out[i64(at)] = out[i64(at)] + 1
    return 0
