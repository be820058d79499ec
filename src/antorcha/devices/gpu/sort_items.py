"""Sorting on a GPU: items, the order of two of them, and a block's merge sort in shared memory.

An *item* is an element's key and its position in its line, as [word] where both fit into a word,
else as [key, position]. Words are all different; with keys the sort itself is stable. Where rows of
elements are ordered, the key is that of a row's first elements, and the rows are read where keys
are equal.

A block holds `EACH` items a thread. A thread sorts its own in registers, then runs are merged, each
thread finding by bisection where its part of the merged run begins (merge path, Green et al. 2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.gpu.frame import THREADS, GridTemplate, offsets_of
from antorcha.devices.sort_keys import KeyOrder, key_of
from antorcha.lang.native import (
    bool_,
    i32,
    i64,
    inline,
    native,
    ptr,
    select,
    static,
    u32,
    u64,
)
from antorcha.lang.native.grid import barrier, device_pointer, shared, thread
from antorcha.runtime.memory.layout import Layout

EACH = 7
"""Items of a thread: odd, so that neighbours begin in different banks of shared memory."""
TILE = THREADS * EACH
"""Items that a block sorts."""
LONGEST = 1 << 31
"""Positions are i32."""

# The words of a step, after its buffers' addresses
(LINES, COUNT, TILES, TEAM, WANTED, RANK, WIDTH, TOTAL, ROW, STEP_VALUES, STEP_INDICES,
 HEADER) = range(12)  # fmt: skip


class SortGrid(GridTemplate):
    """What a kernel of a sort is compiled for.

    ``source``: "input", or "items" of an earlier step; ``sink``: "items", "output", or "pick", one
    element of a line, by ``kind``. ``columns``: neighbouring threads take neighbouring lines.
    ``rows``: how many dims a row of elements has where rows are ordered, with ``packed`` of its
    elements in the key; None where elements are. ``buffers``: further ones, behind the items.
    """

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Any, *, n: int, kind: str,
        down: bool = False, source: str = "input", sink: str = "items", line_dims: int = 0,
        along_dims: int = 1, columns: bool = False, each: int = EACH, threads: int = THREADS,
        rows: int | None = None, packed: int = 1, buffers: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        dtype = ins[0].dtype
        self.order = KeyOrder(dtype.to_real() if dtype.kind == "c" else dtype, down)
        need = self.order.bits + max(n - 1, 1).bit_length()
        self.wide = need > 64 or rows is not None
        self.W = u64 if self.wide or need > 32 else u32
        self.shift = 0 if self.wide else 8 * self.W.size - self.order.bits
        self.kind, self.source, self.sink = kind, source, sink
        self.line_dims, self.along_dims, self.columns = line_dims, along_dims, columns
        self.each, self.threads = each, threads
        self.rows, self.packed = rows, packed
        self.x = self.nout
        stages = (source == "items") + (sink == "items")
        self.buffers = self.head + stages * self.item_words
        self.own = self.buffers + buffers
        self.line_words = self.own + HEADER
        self.along_words = self.line_words + line_dims * (1 + self.nops)
        self.row_words = self.along_words + along_dims * 2

    @property
    def item_words(self) -> int:
        """How many buffers items lie in."""
        return 2 if self.wide else 1

    def item_bytes(self, count: int) -> tuple[int, ...]:
        """The bytes of so many items in each of their buffers."""
        return (8 * count, 4 * count) if self.wide else (self.W.size * count,)

    def __native_key__(self) -> str:
        return (
            f"{self.operands_key()}|{self.order.__native_key__()}|{self.wide}{self.W}{self.kind}"
            f"{self.source}{self.sink}|{self.line_dims},{self.along_dims},{self.columns}|"
            f"{self.each},{self.threads}|{self.rows},{self.packed},{self.own}"
        )


# ------------------------------------------------------------------------------------------ items
@inline
def item_of(P, key, position):
    """An item; position is i32."""
    if P.wide:
        return [u64(key), position]
    W = static(P.W)
    return [W(key) << W(P.shift) | W(position)]


@inline
def position_of(P, item):
    if P.wide:
        return item[1]
    return i32(item[0] & static(P.W)(static((1 << P.shift) - 1)))


@inline
def key_in(P, item):
    """The key, whose greatest value is NaN's."""
    return item[0] >> static(P.W)(P.shift)


@inline
def filling(P, position):
    """An item behind all others of a line, at a position that the line has not."""
    if P.wide:
        return item_of(P, u64(static((1 << 64) - 1)), position)
    return item_of(P, static(P.W)(P.order.ones), position)


@inline
def items_at(P, words, at):
    """The buffers of items whose addresses begin at a word."""
    if P.wide:
        return [device_pointer(u64, words[at]), device_pointer(i32, words[at + 1])]
    return [device_pointer(P.W, words[at])]


@inline
def shared_items(P, count):
    if P.wide:
        return [shared(u64, count), shared(i32, count)]
    return [shared(P.W, count)]


@inline
def get_item(P, items, k):
    if P.wide:
        return [items[0][k], items[1][k]]
    return [items[0][k]]


@inline
def put_item(P, items, k, item):
    items[0][k] = item[0]
    if P.wide:
        items[1][k] = item[1]


@inline
def chosen(P, first, a, b):
    """a where ``first`` holds, else b."""
    if P.wide:
        return [select(first, a[0], b[0]), select(first, a[1], b[1])]
    return [select(first, a[0], b[0])]


# ------------------------------------------------------------------------------------------ order
@inline
def element_words_at(P, words):
    """The input as unsigned words; a complex number is two of them."""
    return device_pointer(P.order.U, words[P.starts[P.x]])


@inline
def along_line(P, words, position):
    """How far an element, or a row, at a position of type P.I is from where its line begins."""
    return offsets_of(P, words, P.along_words, P.along_dims, 1, position)[0]


@inline
def row_key(P, words, x, position):
    """The key of a row's first elements; position is of P.I."""
    begin = along_line(P, words, position)
    key = u64(0)
    for k in static(range(P.packed)):
        at = offsets_of(P, words, P.row_words, P.rows, 1, P.I(k))
        one = u64(key_of(P.order, x[begin + at[0]]))
        key = one if P.packed == 1 else key << P.order.bits | one
    return key


@native
def compare_rows(words: ptr[i64], a: i32, b: i32, *, P, EQUAL) -> bool_:
    """Is row a after row b; with EQUAL, are they equal, where NaN equals nothing?"""
    x = element_words_at(P, words)
    count, n = i32(words[P.own + COUNT]), P.I(words[P.own + ROW])
    if a >= count or b >= count:
        return a > b
    after, same = False, True
    begin_a, begin_b = along_line(P, words, P.I(a)), along_line(P, words, P.I(b))
    k = P.I(0)
    while k < n and same:
        at = offsets_of(P, words, P.row_words, P.rows, 1, k)
        left = key_of(P.order, x[begin_a + at[0]])
        right = key_of(P.order, x[begin_b + at[0]])
        same = left == right
        if EQUAL and P.order.kind == "f":
            same = same and left != static(P.order.U)(P.order.ones)
        after = left > right
        k += 1
    return same if EQUAL else after and not same


@inline
def is_after(P, words, a, b):
    """Does item a belong behind item b, which comes after it?"""
    after = a[0] > b[0]
    if P.rows is not None and a[0] == b[0]:
        after = compare_rows(words, a[1], b[1], P=P, EQUAL=False)
    return after


# ---------------------------------------------------------------------------------- a block's sort
@inline
def sort_own(P, words, mine):
    """A thread's items in order: neighbours change places, by turns of even and odd ones."""
    for turn in static(range(P.each)):
        for k in static(range(turn % 2, P.each - 1, 2)):
            a, b = mine[k], mine[k + 1]
            swap = is_after(P, words, a, b)
            mine[k] = chosen(P, swap, b, a)
            mine[k + 1] = chosen(P, swap, a, b)


@inline
def merge_path(P, words, items, a, na, b, nb, diagonal):
    """How many of the first ``diagonal`` items of two merged runs come from the first run."""
    lo = max(diagonal - nb, 0)
    hi = min(diagonal, na)
    while lo < hi:
        middle = (lo + hi) >> 1
        left = get_item(P, items, a + middle)
        right = get_item(P, items, b + (diagonal - 1 - middle))
        if is_after(P, words, left, right):
            hi = middle
        else:
            lo = middle + 1
    return lo


@inline
def merge_own(P, words, room, a, na, b, nb, diagonal, mine):
    """Puts a thread's part of two merged runs in shared memory into ``mine``: from number
    ``diagonal`` on, as many as it holds."""
    last = static(P.threads * P.each - 1)
    i = merge_path(P, words, room, a, na, b, nb, diagonal)
    j = diagonal - i
    left = get_item(P, room, min(a + i, last))
    right = get_item(P, room, min(b + j, last))
    for k in static(range(P.each)):
        first = j >= nb
        if i < na and j < nb:
            first = not is_after(P, words, left, right)
        mine[k] = chosen(P, first, left, right)
        if first:
            i += 1
        else:
            j += 1
        more = get_item(P, room, min(select(first, a + i, b + j), last))
        left = chosen(P, first, more, left)
        right = chosen(P, first, right, more)


@inline
def sort_room(P, words, room, team):
    """Sorts the items in shared memory, those of each team of threads by themselves; ``team`` is a
    power of two."""
    begin = thread() * P.each
    mine = [get_item(P, room, begin + k) for k in static(range(P.each))]
    sort_own(P, words, mine)
    put_own(P, room, begin, mine)
    merged = i32(1)  # threads whose items are in order together
    while merged < team:
        width = merged * P.each
        diagonal = (thread() & (2 * merged - 1)) * P.each
        a = begin - diagonal
        merge_own(P, words, room, a, width, a + width, width, diagonal, mine)
        barrier()
        put_own(P, room, begin, mine)
        merged = 2 * merged


@inline
def put_own(P, room, begin, mine):
    """Writes a thread's items where they are seen by the block."""
    for k in static(range(P.each)):
        put_item(P, room, begin + k, mine[k])
    barrier()


# --------------------------------------------------------------------------------------- planning
def team_of(n: int) -> tuple[int, int]:
    """For a line of n items, at most `TILE`: the items of a thread, and the logarithm of the
    number of threads."""
    if n <= 3:
        return 3, 0
    return EACH, max(math.ceil(math.log2(-(-n // EACH))), 0)
