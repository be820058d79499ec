"""The template of Distinct: equal elements grouped by one kernel, written out by another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.cpu.native import NativeKernel
from antorcha.devices.cpu.passes import NO_MEMORY, Passes, compile_passes, failed
from antorcha.devices.cpu.sort import TABLES, read_line, sort_words
from antorcha.devices.cpu.sort_keys import SORT, Keys, has_order, place
from antorcha.devices.emit import WORDS, Unsupported
from antorcha.lang.kernels import Distinct, Launch
from antorcha.lang.native import i64, native, ptr, raw, static, u64
from antorcha.runtime.counted import Count
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout


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
def compile_distinct(what: Distinct, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (input,) = ins
    if what.dim is not None or not input.contiguous or not has_order(input):
        raise Unsupported
    n, fail = input.numel, failed(what.name)
    options = {"K": Keys(input, False, SORT, n), "SORTED": not what.consecutive}
    group = NativeKernel(groups_kernel, options, (n,), fail, 8 * n)
    write = NativeKernel(unique_kernel, {"T": WORDS[input.itemsize]}, (), None, 2 * n)
    scratch = [((n + 1,), dtypes.int64), ((n + 1,), dtypes.int64)]
    groups = Count(0)
    passes = Passes(group, scratch, [(groups,), tuple(input.shape), (groups,)], write)
    return compile_passes(what, passes, outs, ins)
