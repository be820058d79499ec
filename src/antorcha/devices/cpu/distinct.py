"""The template of Distinct: equal elements grouped by one kernel, written out by another.

Integers that are not further apart than there are elements are counted (``tally``). Others are
sorted: equal ones follow one another. Of inverse and counts, what is not asked for is not computed.
(``unique_consecutive`` sorts nothing: see ``runs``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.cpu.native import NativeKernel
from antorcha.devices.cpu.passes import CHANGED, NO_MEMORY, Passes, compile_passes, failed
from antorcha.devices.cpu.runs import run_passes, shapes_of
from antorcha.devices.cpu.sort import TABLES, read_line, sort_words
from antorcha.devices.cpu.sort_keys import SORT, Keys, has_order, place, words_in
from antorcha.devices.cpu.sort_long import (
    KEYS_ALONE,
    LONGEST,
    PACKED,
    Line,
    element_of,
    room_of,
    sort_line,
)
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

SORTED, COUNTED, KEYS = 0, 1, 2
"""How elements were grouped; keys: sorted without their positions."""
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
def note_groups(K, a, p, n, ones, order, begin, INVERSE):
    """Where a group begins, and the positions in order (without INVERSE, each group's first one);
    gives the number of groups."""
    groups = i64(0)
    for i in range(n):
        key = a[i] >> K.base
        fresh = i == 0 or key != a[i - 1] >> K.base
        if K.kind == "f":
            fresh = fresh or key == ones
        if fresh:
            begin[groups] = i
            if not INVERSE:
                order[groups] = place(K, a, p, i)
            groups += 1
        if INVERSE:
            order[i] = place(K, a, p, i)
    begin[groups] = n
    return groups


@inline
def note_keys(K, line, n, values, begin):
    """Where a group of equal keys begins, and its value; gives the number of groups."""
    groups = i64(0)
    a = line.a
    for i in range(n):
        if i == 0 or a[i] != a[i - 1]:
            begin[groups] = i
            values[groups] = i64(element_of(K, a[i] + line.low))
            groups += 1
    begin[groups] = n
    return groups


@native
def sort_groups(
    found: ptr[Groups], x: raw, n: i64, order: ptr[i64], begin: ptr[i64], nbytes: i64,
    *, K, INVERSE,
) -> void:  # fmt: skip
    """Groups elements by sorting them; a count of -1: no memory."""
    space = allocate(nbytes)
    found.how = SORTED
    found.count = -1
    if space is None:
        return
    if n >= LONGEST:
        line = local(Line)
        how = sort_line(line, x, n, i64(1), space, K=K, BARE=not INVERSE)
        ones = u64(K.ones) - line.low
        if how == PACKED:
            found.count = note_groups(K.packed, line.a, line.p, n, ones, order, begin, INVERSE)
        elif how == KEYS_ALONE:
            found.how = KEYS
            found.count = note_keys(K, line, n, order, begin)
        else:
            found.count = note_groups(K, line.a, line.p, n, ones, order, begin, INVERSE)
    else:
        count = ptr[i64](space)
        a, p, b, q = words_in(K, space + TABLES, n)
        read_line(K, a, p, ptr[static(K.U)](x), n, 1)
        if sort_words(K, a, p, b, q, count, n) == 1:
            a = b
            p = q
        found.count = note_groups(K, a, p, n, u64(K.ones), order, begin, INVERSE)
    release(space)


@inline
def number_groups(ranks, count, bins):
    """The number of the group of each bin that has elements; gives how many there are."""
    groups = i64(0)
    for k in range(bins):
        ranks[k] = groups
        groups += i64(count[k] != 0)
    return groups


@native
def groups_kernel(bufs: ptr[raw], desc: ptr[i64], *, K, T, W, INVERSE) -> i64:
    """bufs: the groups, then the positions in order (without INVERSE, each group's first one; its
    value, if only keys were sorted); where each group begins, and the end of all; the input. If
    elements were counted, instead: each bin's group, and each bin's count. desc: n, the bytes to
    sort it in. NaN is a group of its own."""
    n = desc[0]
    found = ptr[Groups](bufs[0])
    order = ptr[i64](bufs[0]) + WORDS_OF_GROUPS
    begin = ptr[i64](bufs[1])
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
    sort_groups(found, bufs[2], n, order, begin, desc[1], K=K, INVERSE=INVERSE)
    return NO_MEMORY if found.count < 0 else 0


# ---------------------------------------------------------------------------------------- writing
@struct
class GroupWriting:
    bufs: ptr[raw]
    failed: i64


@native
def write_groups(g0: i64, g1: i64, args: raw, *, T, INVERSE, COUNTS, KNOWN) -> void:
    """Groups g0..g1 of elements that were sorted. KNOWN: their values are."""
    bufs = ptr[GroupWriting](args).bufs
    values = ptr[T](bufs[0])
    inverse = ptr[i64](bufs[1])
    counts = ptr[i64](bufs[2])
    order = ptr[i64](bufs[3]) + WORDS_OF_GROUPS
    begin = ptr[i64](bufs[4])
    x = ptr[T](bufs[5])
    for g in range(g0, g1):
        if KNOWN:
            values[g] = T(order[g])
        else:
            values[g] = x[order[begin[g] if INVERSE else g]]
        if COUNTS:
            counts[g] = begin[g + 1] - begin[g]
        if INVERSE:
            for i in range(begin[g], begin[g + 1]):
                inverse[order[i]] = g


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
def unique_kernel(bufs: ptr[raw], desc: ptr[i64], *, T, INVERSE, COUNTS) -> i64:
    """bufs: values, inverse, counts; the two of ``groups_kernel``; the input. desc: n."""
    work = local(GroupWriting)
    work.bufs = bufs
    work.failed = 0
    found = ptr[Groups](bufs[3])
    if found.how == COUNTED:
        values = ptr[T](bufs[0])
        counts = ptr[i64](bufs[2])
        count = ptr[i64](bufs[4])
        g = i64(0)
        for k in range(found.bins):
            if count[k] != 0:
                values[g] = T(found.low + k)
                if COUNTS:
                    counts[g] = count[k]
                g += 1
        if INVERSE:
            pool_run(address(write_inverse, T=T), desc[0], SHARE, raw(work))
    elif found.how == KEYS:
        write = address(write_groups, T=T, INVERSE=False, COUNTS=COUNTS, KNOWN=True)
        pool_run(write, found.count, SHARE, raw(work))
    else:
        write = address(write_groups, T=T, INVERSE=INVERSE, COUNTS=COUNTS, KNOWN=False)
        pool_run(write, found.count, SHARE, raw(work))
    return work.failed


# ------------------------------------------------------------------------------------ descriptions
def compile_distinct(what: Distinct, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (input,) = ins
    if what.dim is not None or not input.contiguous or not has_order(input):
        raise Unsupported
    if what.consecutive:
        return compile_passes(what, run_passes(what, input), outs, ins)
    n, fail, T = input.numel, failed(what.name), NUMBERS[input.dtype.name]
    K = Keys(input, False, SORT, n)
    options = {"K": K, "T": T, "W": lanes_of(T.size), "INVERSE": what.inverse}
    room = max(room_of(K, n), n * K.room + TABLES)
    group = NativeKernel(groups_kernel, options, (n, room), fail, 8 * n)
    wanted = {"INVERSE": what.inverse, "COUNTS": what.counts}
    write = NativeKernel(unique_kernel, {"T": T, **wanted}, (n,), fail, 2 * n)
    scratch = [((n + WORDS_OF_GROUPS,), dtypes.int64), ((n + 1,), dtypes.int64)]
    groups = Count(0)
    shapes = shapes_of(what, input, groups)
    return compile_passes(what, Passes(group, scratch, shapes, write), outs, ins)
