"""The template of Distinct: equal elements grouped by one kernel, written out by another.

Integers that are not further apart than there are elements are counted (``tally``). Others are
sorted: equal ones follow one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.cpu.native import NativeKernel
from antorcha.devices.cpu.passes import CHANGED, NO_MEMORY, Passes, compile_passes, failed
from antorcha.devices.cpu.sort import TABLES, read_line, sort_words
from antorcha.devices.cpu.sort_keys import SORT, Keys, has_order, key_of, place, words_in
from antorcha.devices.cpu.sort_long import LONGEST, Line, room_of, sort_line
from antorcha.devices.cpu.tally import find_ends, tally
from antorcha.devices.cpu.template import lanes_of
from antorcha.devices.emit import NUMBERS, Unsupported
from antorcha.lang.kernels import Distinct, Launch
from antorcha.lang.native import (
    address,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    static,
    struct,
    u64,
    void,
)
from antorcha.runtime.counted import Count
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

SORTED, COUNTED, LEFT = 0, 1, 2
"""How elements were grouped; left: where they are, runs of equals."""
SHARE = 1 << 14
"""Elements, or groups, that are worth a thread."""


@struct
class Groups:
    """The first scratch memory begins with this."""

    count: i64
    how: i64
    low: i64  # the least integer, where they were counted
    bins: i64


WORDS_OF_GROUPS = 4


# --------------------------------------------------------------------------------------- grouping
@inline
def note_groups(K, a, p, n, ones, order, begin):
    """The positions in order, and where a group begins; gives the number of groups."""
    groups = i64(0)
    for i in range(n):
        key = a[i] >> K.base
        fresh = i == 0 or key != a[i - 1] >> K.base
        if K.kind == "f":
            fresh = fresh or key == ones
        if fresh:
            begin[groups] = i
            groups += 1
        order[i] = place(K, a, p, i)
    begin[groups] = n
    return groups


@native
def sort_groups(x: raw, n: i64, order: ptr[i64], begin: ptr[i64], nbytes: i64, *, K) -> i64:
    """Groups elements by sorting them; gives the number of groups, or -1: no memory."""
    space = allocate(nbytes)
    if space is None:
        return -1
    groups = i64(0)
    if n >= LONGEST:
        line = local(Line)
        packed = sort_line(line, x, n, i64(1), space, K=K)
        ones = u64(K.ones) - line.low
        if packed == 1:
            groups = note_groups(K.packed, line.a, line.p, n, ones, order, begin)
        else:
            groups = note_groups(K, line.a, line.p, n, ones, order, begin)
    else:
        count = ptr[i64](space)
        a, p, b, q = words_in(K, space + TABLES, n)
        read_line(K, a, p, ptr[static(K.U)](x), n, 1)
        if sort_words(K, a, p, b, q, count, n) == 1:
            a = b
            p = q
        groups = note_groups(K, a, p, n, u64(K.ones), order, begin)
    release(space)
    return groups


@inline
def note_runs(K, x, n, begin):
    """Where a run of equals begins; gives the number of runs."""
    runs = i64(1)
    begin[0] = 0
    before = key_of(K, x[0])
    for i in range(1, n):
        key = key_of(K, x[i])
        fresh = key != before
        if K.kind == "f":
            fresh = fresh | (key == static(K.U)(K.ones))
        begin[runs] = i
        runs += i64(fresh)
        before = key
    begin[runs] = n
    return runs


@inline
def number_groups(ranks, count, bins):
    """The number of the group of each bin that has elements; gives how many there are."""
    groups = i64(0)
    for k in range(bins):
        ranks[k] = groups
        groups += i64(count[k] != 0)
    return groups


@native
def groups_kernel(bufs: ptr[raw], desc: ptr[i64], *, K, T, W, SORTS) -> i64:
    """bufs: the groups, then the positions in order; where each group begins, and the end of all;
    the input. If elements were counted, instead: each bin's group, and each bin's count. Those of
    runs need no positions. desc: n, the bytes to sort it in. NaN is a group of its own."""
    n = desc[0]
    found = ptr[Groups](bufs[0])
    order = ptr[i64](bufs[0]) + WORDS_OF_GROUPS
    begin = ptr[i64](bufs[1])
    if not SORTS:
        found.how = LEFT
        found.count = note_runs(K, ptr[static(K.U)](bufs[2]), n, begin)
        return 0
    if K.kind != "f":
        ends = local(i64, 2)
        find_ends(ends, bufs[2], n, T=T, W=W)
        found.low = ends[0]
        if u64(ends[1] - ends[0]) < u64(n):
            found.bins = ends[1] - ends[0] + 1
            found.how = COUNTED
            status = tally(begin, bufs[2], n, found.low, found.bins, T=T)
            if status == 0:
                found.count = number_groups(order, begin, found.bins)
            return status
    found.how = SORTED
    found.count = sort_groups(bufs[2], n, order, begin, desc[1], K=K)
    return NO_MEMORY if found.count < 0 else 0


# ---------------------------------------------------------------------------------------- writing
@struct
class GroupWriting:
    bufs: ptr[raw]
    failed: i64


@native
def write_groups(g0: i64, g1: i64, args: raw, *, T, MOVED) -> void:
    """Groups g0..g1 of elements that were sorted, or of runs, which were not moved."""
    bufs = ptr[GroupWriting](args).bufs
    values = ptr[T](bufs[0])
    inverse = ptr[i64](bufs[1])
    counts = ptr[i64](bufs[2])
    order = ptr[i64](bufs[3]) + WORDS_OF_GROUPS
    begin = ptr[i64](bufs[4])
    x = ptr[T](bufs[5])
    for g in range(g0, g1):
        values[g] = x[order[begin[g]] if MOVED else begin[g]]
        counts[g] = begin[g + 1] - begin[g]
        for i in range(begin[g], begin[g + 1]):
            inverse[order[i] if MOVED else i] = g


@native
def write_inverse(i0: i64, i1: i64, args: raw, *, T) -> void:
    """The groups of elements i0..i1 that were counted."""
    work = ptr[GroupWriting](args)
    found = ptr[Groups](work.bufs[3])
    inverse = ptr[i64](work.bufs[1])
    ranks = ptr[i64](work.bufs[3]) + WORDS_OF_GROUPS
    x = ptr[T](work.bufs[5])
    low = found.low
    bins = u64(found.bins)
    for i in range(i0, i1):
        at = u64(i64(x[i]) - low)
        if at >= bins:
            work.failed = CHANGED
            return
        inverse[i] = ranks[i64(at)]


@native
def unique_kernel(bufs: ptr[raw], desc: ptr[i64], *, T) -> i64:
    """bufs: values, inverse, counts; the two of ``groups_kernel``; the input. desc: n."""
    work = local(GroupWriting)
    work.bufs = bufs
    work.failed = 0
    found = ptr[Groups](bufs[3])
    if found.how == SORTED:
        pool_run(address(write_groups, T=T, MOVED=True), found.count, SHARE, raw(work))
    elif found.how == LEFT:
        pool_run(address(write_groups, T=T, MOVED=False), found.count, SHARE, raw(work))
    else:
        values = ptr[T](bufs[0])
        counts = ptr[i64](bufs[2])
        count = ptr[i64](bufs[4])
        g = i64(0)
        for k in range(found.bins):
            if count[k] != 0:
                values[g] = T(found.low + k)
                counts[g] = count[k]
                g += 1
        pool_run(address(write_inverse, T=T), desc[0], SHARE, raw(work))
    return work.failed


# ------------------------------------------------------------------------------------ descriptions
def compile_distinct(what: Distinct, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (input,) = ins
    if what.dim is not None or not input.contiguous or not has_order(input):
        raise Unsupported
    n, fail, T = input.numel, failed(what.name), NUMBERS[input.dtype.name]
    K = Keys(input, False, SORT, n)
    options = {"K": K, "T": T, "W": lanes_of(T.size), "SORTS": not what.consecutive}
    room = max(room_of(K, n), n * K.room + TABLES)
    group = NativeKernel(groups_kernel, options, (n, room), fail, 8 * n)
    write = NativeKernel(unique_kernel, {"T": T}, (n,), fail, 2 * n)
    scratch = [((n + WORDS_OF_GROUPS,), dtypes.int64), ((n + 1,), dtypes.int64)]
    groups = Count(0)
    passes = Passes(group, scratch, [(groups,), tuple(input.shape), (groups,)], write)
    return compile_passes(what, passes, outs, ins)
