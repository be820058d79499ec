"""The template of Sort: whole orders, the first of them, and elements of a given rank.

Of a short line each element is compared with all, a long one is sorted by radix, a digit at a time
from the least, leaving out the digits that all keys share. An element of a given rank is found by
bisection (``sort_rank``).

Positions come from the kernel's own scratch memory only: an operand that another thread writes to
meanwhile gives a wrong order, and nothing worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.passes import NO_MEMORY, PassWork, failed, work_of
from antorcha.devices.cpu.sort_keys import (
    Keys,
    has_order,
    key_of,
    keys_of_words,
    move_word,
    place,
    put_word,
    words_in,
)
from antorcha.devices.cpu.sort_long import LONGEST, one_line
from antorcha.devices.cpu.sort_rank import (
    count_less,
    is_at_most,
    is_equal,
    is_less,
    key_of_rank,
    lanes_that,
    place_of,
)
from antorcha.devices.emit import Unsupported
from antorcha.lang.kernels import Launch, Sort
from antorcha.lang.native import (
    address,
    ctz,
    i64,
    inline,
    lanes,
    local,
    mask_bits,
    memset,
    native,
    ptr,
    raw,
    select,
    static,
    struct,
    u64,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run

COUNTED = 128
"""The longest line of which each element is compared with all."""
FEW = 16
"""So many greatest elements are kept in order while a line is read."""
SIFTED = 256
"""Elements, at least, that are read before others are compared with the last of the least."""
LONG = 1 << 14
"""From here a line is sorted by digits of 11 bits, not 8."""
TABLES = 6 * 2048 * 8
"""Bytes of the counts of a radix sort: 6 digits of 11 bits."""


@struct
class SortTask:
    lines: i64
    n: i64  # of a line
    out: i64  # elements of a line that are wanted
    rank: i64
    grain: i64  # lines
    step_x: i64
    step_v: i64
    step_i: i64
    dims: i64  # (size, step in the input, the values, the indices) of the lines follow


# ---------------------------------------------------------------------------------------- sorting
@native
def count_sort(a: ptr[u64], p: ptr[i64], b: ptr[u64], q: ptr[i64], n: i64, *, K) -> void:
    """Sorts a (and p) into b (and q): an element's place is how many come before it."""
    U = static(K.U)
    W = static(64 // K.U.size)
    keys = local(U, COUNTED)
    places = local(U, COUNTED)
    keys_of_words(K, keys, a, n)
    for lo in range(0, n, W):
        mine = vload(keys + lo, W)
        before = vec[U, W](0)
        for j in range(lo):  # of equal ones, those in front come before it
            before = before + select(vec[U, W](keys[j]) <= mine, U(1), U(0))
        for j in range(lo, min(lo + W, n)):
            other = vec[U, W](keys[j])
            ahead = (other == mine) & (vec[U, W](U(j - lo)) < lanes(U, W))
            before = before + select((other < mine) | ahead, U(1), U(0))
        for j in range(lo + W, n):
            before = before + select(vec[U, W](keys[j]) < mine, U(1), U(0))
        vstore(places + lo, before)
    for i in range(n):
        move_word(K, b, q, i64(places[i]), a, p, i)


@native
def radix_sort(
    a: ptr[u64], p: ptr[i64], b: ptr[u64], q: ptr[i64], count: ptr[i64], n: i64, *, K, BITS
) -> i64:
    """Sorts a (and p) into itself (gives 0) or b (gives 1), a digit of BITS bits at a time, from
    the least."""
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
    side = i64(1)
    if n <= COUNTED:
        count_sort(a, p, b, q, n, K=K)
    elif n < LONG:
        side = radix_sort(a, p, b, q, count, n, K=K, BITS=8)
    else:
        side = radix_sort(a, p, b, q, count, n, K=K, BITS=8 if K.bits <= 16 else 11)
    return side


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
        here = rest + 0
        above = i64(0)
        if back < dims - 1:  # (a division takes its time)
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
    """The words of a line."""
    if step == 1:
        for i in range(n):
            put_word(K, a, p, i, key_of(K, x[i]), i)
    else:
        for i in range(n):
            put_word(K, a, p, i, key_of(K, x[i * step]), i)


@inline
def read_keys(K, keys, x, n, step):
    """The keys of a line."""
    if step == 1:
        for i in range(n):
            keys[i] = key_of(K, x[i])
    else:
        for i in range(n):
            keys[i] = key_of(K, x[i * step])


@inline
def write_line(K, t, a, p, n, x, values, indices):
    for i in range(n):
        at = place(K, a, p, i)
        values[i * t.step_v] = x[at * t.step_x]
        if K.indices:
            indices[i * t.step_i] = at


@inline
def insert_word(K, b, q, j, a, p, i):
    """Puts the i-th word of a among the j in order in b."""
    word = a[i]
    while j > 0 and b[j - 1] > word:
        move_word(K, b, q, j, b, q, j - 1)
        j -= 1
    move_word(K, b, q, j, a, p, i)


@inline
def keep_few(K, a, p, b, q, n, wanted):
    """The least ``wanted`` of n words, in order, in b."""
    for i in range(wanted):
        insert_word(K, b, q, i + 0, a, p, i)
    last = wanted - 1
    for at in range(wanted, n, 8):
        some = lanes_that(u64, a, at, n, is_less, b[last])
        while some != 0:
            i = at + i64(ctz(some))
            some = some & (some - 1)
            if a[i] < b[last]:
                insert_word(K, b, q, last + 0, a, p, i)


@inline
def keep_least(K, a, p, b, q, n, wanted):
    """The least ``wanted`` of n words, in the order in which they stand in a, in b, which has room
    for one more; gives the greatest key among them."""
    keys = ptr[static(K.U)](b)
    keys_of_words(K, keys, a, n)
    less = local(i64, 1)
    edge = key_of_rank(raw(keys), raw(keys), n, wanted - 1, less, T=K.U)
    equals = wanted - less[0]
    last = (edge + 1 << K.base) - 1  # of the words with that key
    k = i64(0)
    for at in range(0, n, 64):
        some = u64(0)
        for part in static(range(0, 64, 8)):
            if at + part < n:
                some = some | lanes_that(u64, a, at + part, n, is_at_most, last) << part
        while some != 0:
            i = at + i64(ctz(some))
            some = some & (some - 1)
            equal = a[i] >> K.base == edge
            move_word(K, b, q, k, a, p, i)
            k += i64(not equal or equals > 0)
            equals -= i64(equal)
    return edge


@inline
def keep_top(K, a, p, b, q, count, n, wanted):
    """The least ``wanted`` of n words, in order; gives where they are: 0 for a, 1 for b."""
    keep_least(K, a, p, b, q, n, wanted)
    # b is whole: a serves as its other side
    return 1 - sort_words(K, b, q, a, p, count, wanted)


@inline
def less_than(K, x, edge):
    """Which of 64 elements have a lesser key, element 0 lowest."""
    U = static(K.U)
    W = static(64 // K.U.size)
    word = u64(0)
    for k in static(range(K.U.size)):
        less = key_of(K, vload(x + k * W, W)) < vec[U, W](U(edge))
        word = word | mask_bits(less) << (k * W)
    return word


@inline
def sift(K, a, p, b, q, count, x, n, wanted):
    """The least ``wanted`` elements of a line of n that lie in order, in their order; gives where
    they are: 0 for a, 1 for b.

    Of what is read, only elements are kept that are less than the last of the least so far (an
    equal one comes too late). When there are many, the least of these are kept.
    """
    room = max(4 * wanted, i64(SIFTED))
    for i in range(room):
        put_word(K, a, p, i, key_of(K, x[i]), i)
    edge = keep_least(K, a, p, b, q, room, wanted)
    side = i64(1)
    kept = wanted + 0
    at = room + 0
    while at < n:
        a, b = b, a
        p, q = q, p
        side = 1 - side
        while at + 64 <= n and kept + 64 <= room:
            word = less_than(K, x + at, edge)
            while word != 0:
                i = at + i64(ctz(word))
                put_word(K, a, p, kept, key_of(K, x[i]), i)
                kept += 1
                word = word & (word - 1)
            at += 64
        if at + 64 > n and kept + 64 <= room:
            for i in range(at, n):
                key = key_of(K, x[i])
                if u64(key) < edge:
                    put_word(K, a, p, kept, key, i)
                    kept += 1
            at = n + 0
        edge = keep_least(K, a, p, b, q, kept, wanted)
        kept = wanted + 0
    # the least are in b, which is a where the two were changed
    found = 1 - sort_words(K, b, q, a, p, count, wanted)
    return found if side == 1 else 1 - found


@inline
def place_of_rank(K, t, keys, b, x):
    """Where the element of a line is that is the median, or of the task's rank."""
    U = static(K.U)
    n = t.n
    rank = t.rank + 0
    read_keys(K, keys, x, n, t.step_x)
    if K.mode != "kth":
        numbers = n + 0
        if K.kind == "f":
            numbers = count_less(U, keys, n, U(K.ones))  # (no number's key is all ones)
        rank = max(numbers - 1, i64(0)) // 2
        if K.mode == "median" and numbers < n:
            rank = numbers + 0
    less = local(i64, 1)
    key = U(key_of_rank(raw(keys), raw(b), n, rank, less, T=U))
    return place_of(U, keys, n, is_equal, key, rank - less[0])


@inline
def commonest(K, t, a, p, b, q, count, x):
    """Where the last of the commonest elements of a line is; a NaN equals none."""
    n = t.n
    read_line(K, a, p, x, n, t.step_x)
    if sort_words(K, a, p, b, q, count, n) == 1:
        a = b
        p = q
    most = i64(0)
    run = i64(0)
    last = i64(0)
    before = u64(0)
    for i in range(n):
        key = a[i] >> K.base
        alike = key == before
        if K.kind == "f":
            alike = alike & (key != u64(K.ones))
        run = select(alike, run + 1, i64(1))
        last = select(run > most, i, last)
        most = max(most, run)
        before = key
    return place(K, a, p, last)


@native
def line_job(r0: i64, r1: i64, args: raw, *, K) -> void:
    """Lines r0..r1; bufs: the values, the indices if they are wanted, the input."""
    work = ptr[PassWork](args)
    t = ptr[SortTask](raw(work.desc))
    n = t.n
    space = allocate(n * K.room + TABLES)
    if space is None:
        work.failed = NO_MEMORY
        return
    count = ptr[i64](space)
    a, p, b, q = words_in(K, space + TABLES, n)
    for row in range(r0, r1):
        at_x, at_v, at_i = line_offsets(row, ptr[i64](t + 1), t.dims)
        x = ptr[static(K.U)](work.bufs[2 if K.indices else 1]) + at_x
        values = ptr[static(K.U)](work.bufs[0]) + at_v
        indices = ptr[i64](work.bufs[1]) + at_i
        sifted = t.step_x == 1 and n >= 4 * SIFTED and 8 * t.out <= n
        if K.mode == "sort" or K.mode == "top":
            if K.mode == "sort" or not sifted:
                read_line(K, a, p, x, n, t.step_x)
            side = i64(1)
            if K.mode == "top" and sifted:
                side = sift(K, a, p, b, q, count, x, n, t.out)
            elif K.mode == "top" and t.out <= FEW and n > FEW:
                keep_few(K, a, p, b, q, n, t.out)
            elif K.mode == "top" and n > FEW and t.out <= n // 2:
                side = keep_top(K, a, p, b, q, count, n, t.out)
            else:
                side = sort_words(K, a, p, b, q, count, n)
            if side == 0:
                write_line(K, t, a, p, t.out, x, values, indices)
            else:
                write_line(K, t, b, q, t.out, x, values, indices)
        else:
            at = i64(0)
            if K.mode == "mode":
                at = commonest(K, t, a, p, b, q, count, x)
            else:
                at = place_of_rank(K, t, ptr[static(K.U)](a), b, x)
            values[0] = x[at * t.step_x]
            if K.indices:
                indices[0] = at
    release(space)


@native
def line_kernel(bufs: ptr[raw], desc: ptr[i64], *, K) -> i64:
    work = work_of(bufs, desc)
    t = ptr[SortTask](raw(desc))
    pool_run(address(line_job, K=K), t.lines, t.grain, raw(work))
    return work.failed


# ------------------------------------------------------------------------------------ descriptions
def compile_sort(what: Sort, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    return compile_native(what, sort_kernel(what, outs, ins), outs, ins)


def sort_kernel(what: Sort, outs: Sequence[Layout], ins: Sequence[Any]) -> NativeKernel:
    (input,) = ins
    d = what.dim
    if d is None and input.contiguous:
        d, input = 0, L.contiguous((input.numel,), input.dtype, input.device)
    if d is None or not outs[0].numel or not has_order(input):
        raise Unsupported
    shape = tuple(input.shape) or (1,)
    steps = [_steps_of(layout, shape, d) for layout in (input, *outs)]
    n = shape[d]
    K = Keys(input, what.descending, what.kind, n, len(outs) == 2)
    if what.kind == "sort" and n == input.numel and n >= LONGEST:
        return one_line(K, n, [s[d] for s in steps], failed(what.name))
    along = tuple(outs[0].shape) or (1,)
    wanted = along[d] if what.kind in ("sort", "top") else 1
    steps = steps if len(outs) == 2 else [*steps, steps[1]]
    others = [e for e in range(len(shape)) if e != d]
    sizes, walks = collapse([shape[e] for e in others], [[s[e] for e in others] for s in steps])
    desc = [input.numel // n, n, wanted, what.rank, max(8192 // n, 1), *[s[d] for s in steps],
            len(sizes)]  # fmt: skip
    for each in zip(sizes, *walks, strict=True):
        desc += each
    return NativeKernel(line_kernel, {"K": K}, tuple(desc), failed(what.name), 4 * input.numel)


def _steps_of(layout: Layout, shape: tuple[int, ...], d: int) -> tuple[int, ...]:
    """The strides along the sorted tensor's dims; an output may lack the dim of one element."""
    steps = tuple(layout.strides)
    return steps if layout.ndim == len(shape) else (*steps[:d], 1, *steps[d:])
