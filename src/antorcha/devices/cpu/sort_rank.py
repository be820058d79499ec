"""The key of a given rank among many, by bisection: half the keys that it may be are left out by
counting how many are less than the one in their middle.

A count reads 64 bytes at a time and decides nothing by a branch. Where few keys are left in a long
line, these are copied together.
"""

from __future__ import annotations

from antorcha.lang.native import (
    ctpop,
    ctz,
    first,
    i64,
    inline,
    mask_bits,
    native,
    ptr,
    raw,
    reduce_max,
    reduce_min,
    select,
    static,
    u64,
    vec,
    vload,
)

CROWD = 512
"""Keys, at least, of which those in question are copied together."""


@inline
def lanes_that(T, a, i, n, compare, bounds):
    """Which of up to 64 bytes of keys from the i-th on, of n, compare so with bounds: a word of
    bits, the first key's lowest."""
    W = static(64 // T.size)
    if i + W <= n:
        word = mask_bits(compare(T, vload(a + i, W), bounds))
    else:
        few = first(W, n - i)
        word = mask_bits(compare(T, vload(a + i, W, few), bounds) & few)
    return word


@inline
def is_less(T, keys, edge):
    return keys < vec[T, static(64 // T.size)](edge)


@inline
def is_at_most(T, keys, edge):
    return keys <= vec[T, static(64 // T.size)](edge)


@inline
def is_equal(T, keys, key):
    return keys == vec[T, static(64 // T.size)](key)


@inline
def is_between(T, keys, ends):
    low, span = ends
    W = static(64 // T.size)
    return keys - vec[T, W](low) <= vec[T, W](span)


@inline
def count_less(T, a, n, edge):
    """How many of n keys are less than one."""
    total = u64(0)
    for i in range(0, n, static(64 // T.size)):
        total += u64(ctpop(lanes_that(T, a, i, n, is_less, edge)))
    return i64(total)


@inline
def range_of(T, a, n):
    """The least and the greatest of n keys."""
    W = static(64 // T.size)
    low = a[0]
    high = a[0]
    whole = n // W * W
    if whole > 0:
        lows = vload(a, W)
        highs = vload(a, W)
        for i in range(W, whole, W):
            lows = min(lows, vload(a + i, W))
            highs = max(highs, vload(a + i, W))
        low = reduce_min(lows)
        high = reduce_max(highs)
    for i in range(whole, n):
        low = min(low, a[i])
        high = max(high, a[i])
    return low, high


@inline
def place_of(T, a, n, compare, bounds, nth):
    """Where the nth of the keys is that compare so with bounds."""
    at = i64(0)
    i = i64(0)
    while i < n:
        word = lanes_that(T, a, i, n, compare, bounds)
        found = i64(ctpop(word))
        if nth < found:
            for _ in range(nth):
                word = word & (word - 1)
            at = i + i64(ctz(word))
            i = n + 0
        else:
            nth -= found
            i += static(64 // T.size)
    return at


@native
def key_of_rank(a: raw, b: raw, n: i64, rank: i64, less: ptr[i64], *, T) -> u64:
    """The key at a rank in the order of n keys of type T at a. b may be a, or else they stay, and b
    has room for a quarter of them. ``less`` gets the number of lesser keys."""
    keys = ptr[T](a)
    low, high = range_of(T, keys, n)
    below = i64(0)  # of the keys at hand, those less than low
    upto = n + 0  # those not greater than high
    gone = i64(0)  # keys less than low that are no longer at hand
    while low < high and upto - below > 1:
        edge = low + (high - low) // T(2) + T(1)
        count = count_less(T, keys, n, edge)
        over = count > rank
        high = select(over, edge - T(1), high)
        upto = select(over, count, upto)
        low = select(over, low, edge)
        below = select(over, below, count)
        if n >= CROWD and (upto - below) * 4 <= n:
            kept = i64(0)
            for i in range(0, n, static(64 // T.size)):
                word = lanes_that(T, keys, i, n, is_between, (low, high - low))
                while word != 0:
                    ptr[T](b)[kept] = keys[i + i64(ctz(word))]
                    kept += 1
                    word = word & (word - 1)
            keys = ptr[T](b)
            n = kept + 0
            rank -= below
            gone += below
            upto -= below
            below = 0
    if low < high:  # one is left
        low = keys[place_of(T, keys, n, is_between, (low, high - low), i64(0))]
    less[0] = gone + below
    return u64(low)
