"""Building blocks for what meets in the same place: sums before each thread, a stable sort.

Elements that are folded into a target are brought together by sorting their targets' numbers (the
*keys*) with the elements' own numbers beside them. The sort goes from the low digits of the keys to
the high ones, 8 bits at a time, and each pass keeps equals in order, so that in the end the
elements of a target stand in a row, the first one first, however the threads were timed. A pass has
three kernels: how often each digit occurs in each tile; for each digit the sums of these counts
over the tiles before; and the moves. Within a tile the pairs are put in order in shared memory, 4
bits at a time, so that what goes to neighbouring places is written by neighbouring threads. Pairs
that fit in one tile are sorted there, by one kernel.
"""

from __future__ import annotations

from typing import Any

from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT
from antorcha.devices.gpu.frame import THREADS, GridStep, blocks_for
from antorcha.lang.native import (
    atomic_add,
    i32,
    i64,
    inline,
    native,
    ptr,
    select,
    static,
    u64,
    void,
)
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    block,
    device_pointer,
    shared,
    swap_lanes,
    thread,
)
from antorcha.lang.native.types import Ty

WARPS = THREADS // WARP
EACH = 8  # pairs of a thread
TILE = THREADS * EACH
DIGIT_BITS = 8
DIGITS = THREADS  # a thread looks after one digit: 1 << DIGIT_BITS
EVERY_FIELD = 0x0001000100010001  # 1 in each 16 bits
LATER_FIELDS = 0x0001000100010000


class Workspace:
    """A plan's temporaries. They follow the ``operands`` that a launch is given."""

    def __init__(self, operands: int) -> None:
        self.operands = operands
        self.sizes: list[int] = []

    def room(self, nbytes: int) -> int:
        """A new temporary: its number among a step's operands."""
        self.sizes.append(max(nbytes, 8))
        return self.operands + len(self.sizes) - 1


# ----------------------------------------------------------------------------- sums before each
@inline
def scan_block(T, values):
    """For each of some values of type T: its sum over the block's threads before this one, and over
    all of them. All threads of a block of THREADS take part."""
    count = static(len(values))
    t = thread()
    lane, warp = t & (WARP - 1), t >> static(WARP.bit_length() - 1)
    before = [T(0) for k in static(range(count))]
    total = [values[k] for k in static(range(count))]
    for mask in static((1, 2, 4, 8, 16)):
        for k in static(range(count)):
            other = swap_lanes(total[k], mask)
            before[k] = before[k] + select((lane & mask) != 0, other, T(0))
            total[k] = total[k] + other
    rooms = [shared(T, WARPS) for k in static(range(count))]
    if lane == 0:
        for k in static(range(count)):
            rooms[k][warp] = total[k]
    barrier()
    for k in static(range(count)):
        total[k] = T(0)
    for w in range(i32(WARPS)):
        for k in static(range(count)):
            part = rooms[k][w]
            before[k] = before[k] + select(warp > w, part, T(0))
            total[k] = total[k] + part
    barrier()
    return before, total


# ------------------------------------------------------------------------------- a tile in order
@inline
def digit_field(key, shift):
    """A key's 4 bits: which of four words counts them, and at which of its bits."""
    digit = i32(key >> shift) & 15
    return digit >> 2, u64((digit & 3) << 4)


@inline
def order_tile(P, keys, numbers, key_room, number_room, shift):
    """Puts a tile's pairs in order of the keys' 4 bits from ``shift`` on. Thread t has the pairs
    from t * EACH on, before and after; afterwards they are in the rooms, too."""
    t = thread()
    counts = [u64(0) for w in static(range(4))]
    for u in static(range(EACH)):
        word, bit = digit_field(keys[u], shift)
        for w in static(range(4)):
            counts[w] = counts[w] + select(word == w, u64(1) << bit, u64(0))
    place, total = scan_block(u64, counts)
    start = u64(0)  # how many pairs have the digits of the words before
    for w in static(range(4)):
        place[w] = place[w] + total[w] * u64(LATER_FIELDS) + start * u64(EVERY_FIELD)
        start = start + ((total[w] * u64(EVERY_FIELD)) >> 48)
    for u in static(range(EACH)):
        word, bit = digit_field(keys[u], shift)
        places = select(word < 2, select(word == 0, place[0], place[1]),
                        select(word == 2, place[2], place[3]))  # fmt: skip
        at = i32((places >> bit) & u64(0xFFFF))
        key_room[at] = keys[u]
        number_room[at] = numbers[u]
        for w in static(range(4)):
            place[w] = place[w] + select(word == w, u64(1) << bit, u64(0))
    barrier()
    for u in static(range(EACH)):
        keys[u] = key_room[t * EACH + u]
        numbers[u] = number_room[t * EACH + u]
    barrier()


class SegmentSortGrid:
    """What the sort's kernels are compiled for: ``I``, the type of keys and numbers; ``first``: the
    pairs' numbers are the places where they lie."""

    def __init__(self, index: Ty, first: bool) -> None:
        self.I, self.first = index, first
        self.last = (1 << (8 * index.size - 1)) - 1  # a key that no pair has

    def __native_key__(self) -> str:
        return f"{self.I}|{self.first}"


@inline
def load_tile(P, keys, numbers, start, n):
    """The pairs of this thread; where there are no more, pairs that come last."""
    at = start + P.I(thread()) * EACH
    inside = [at + u < n for u in static(range(EACH))]
    found = [P.I(P.last) for u in static(range(EACH))]
    number = [at + u for u in static(range(EACH))]
    for u in static(range(EACH)):
        if inside[u]:
            found[u] = keys[at + u]
            if not P.first:
                number[u] = numbers[at + u]
    return found, number


@native
def sort_tile(words: ptr[i64], *, P) -> void:
    """Sorts pairs that are one tile. Operands: keys, sorted keys, their numbers; words: how many
    pairs, bits of a key."""
    n, bits = P.I(words[3]), i32(words[4])
    found, number = load_tile(P, device_pointer(P.I, words[0]), None, P.I(0), n)
    key_room, number_room = shared(P.I, TILE), shared(P.I, TILE)
    shift = i32(0)
    while shift < bits:
        order_tile(P, found, number, key_room, number_room, P.I(shift))
        shift += 4
    to_keys, to_numbers = device_pointer(P.I, words[1]), device_pointer(P.I, words[2])
    for u in static(range(EACH)):
        q = thread() + u * THREADS
        if P.I(q) < n:
            to_keys[q] = key_room[q]
            to_numbers[q] = number_room[q]


@native
def count_digits(words: ptr[i64], *, P) -> void:
    """How often each digit occurs in this block's tile. Operands: keys, table of (digit, tile);
    words: pairs, the digit's first bit, tiles."""
    keys, table = device_pointer(P.I, words[0]), device_pointer(P.I, words[1])
    n, shift, tiles = P.I(words[2]), P.I(words[3]), P.I(words[4])
    t, tile = thread(), P.I(block())
    counts = shared(i32, DIGITS)
    counts[t] = 0
    barrier()
    for u in static(range(EACH)):
        i = tile * TILE + u * THREADS + P.I(t)
        if i < n:
            digit = i32(keys[i] >> shift) & static(DIGITS - 1)
            atomic_add(counts + digit, i32(1), "monotonic")
    barrier()
    table[P.I(t) * tiles + tile] = P.I(counts[t])


@native
def scan_digits(words: ptr[i64], *, P) -> void:
    """Makes of a digit's counts their sums over the tiles before; a block for each digit. Operands:
    table, digits' totals; word: tiles."""
    table, totals = device_pointer(P.I, words[0]), device_pointer(P.I, words[1])
    tiles = P.I(words[2])
    digit, t = P.I(block()), P.I(thread())
    row = table + digit * tiles
    so_far, start = P.I(0), P.I(0)
    while start < tiles:
        i = start + t
        own = P.I(0)
        if i < tiles:
            own = row[i]
        before, total = scan_block(P.I, [own])
        if i < tiles:
            row[i] = so_far + before[0]
        so_far = so_far + total[0]
        start += THREADS
    if t == 0:
        totals[digit] = so_far


@native
def move_pairs(words: ptr[i64], *, P) -> void:
    """Moves a tile's pairs to where a digit's order has them. Operands: keys and numbers, from and
    to, table, totals; words: pairs, the digit's first bit, tiles."""
    keys, numbers = device_pointer(P.I, words[0]), device_pointer(P.I, words[1])
    to_keys, to_numbers = device_pointer(P.I, words[2]), device_pointer(P.I, words[3])
    table, totals = device_pointer(P.I, words[4]), device_pointer(P.I, words[5])
    n, shift, tiles = P.I(words[6]), P.I(words[7]), P.I(words[8])
    t, tile = thread(), P.I(block())
    found, number = load_tile(P, keys, numbers, tile * TILE, n)
    key_room, number_room = shared(P.I, TILE), shared(P.I, TILE)
    order_tile(P, found, number, key_room, number_room, shift)
    order_tile(P, found, number, key_room, number_room, shift + 4)
    # a digit's pairs are together: their places are their numbers in the tile plus a constant
    away = shared(P.I, DIGITS)
    digits = [
        i32(key_room[t + u * THREADS] >> shift) & static(DIGITS - 1)
        for u in static(range(EACH))
    ]  # fmt: skip
    for u in static(range(EACH)):
        q = t + u * THREADS
        if q == 0 or (i32(key_room[max(q, 1) - 1] >> shift) & static(DIGITS - 1)) != digits[u]:
            away[digits[u]] = P.I(0) - P.I(q)
    barrier()
    start, _all = scan_block(P.I, [totals[t]])
    away[t] = away[t] + start[0] + table[P.I(t) * tiles + tile]
    barrier()
    for u in static(range(EACH)):
        q = t + u * THREADS
        if tile * TILE + P.I(q) < n:
            to = away[digits[u]] + P.I(q)
            to_keys[to] = key_room[q]
            to_numbers[to] = number_room[q]


def sort_steps(
    work: Workspace, keys: int, count: int, most: int, index: Ty
) -> tuple[list[GridStep], int, int]:
    """Kernels that sort so many keys, of which none is above ``most``, and none negative; and the
    operands that the sorted keys, and their numbers before, are then in."""
    bits, nbytes = max(most.bit_length(), 1), count * index.size
    to_keys, to_numbers = work.room(nbytes), work.room(nbytes)
    if count <= TILE:
        operands = (keys, to_keys, to_numbers)
        step = _step(sort_tile, index, True, 1, operands, (count, bits))
        return [step], to_keys, to_numbers
    tiles = -(-count // TILE)
    table, totals = work.room(DIGITS * tiles * index.size), work.room(DIGITS * index.size)
    numbers = to_numbers  # (the first pass reads none)
    spare = work.room(nbytes) if bits > DIGIT_BITS else to_numbers
    steps = []
    for shift in range(0, bits, DIGIT_BITS):
        words = (count, shift, tiles)
        moved = (keys, numbers, to_keys, to_numbers, table, totals)
        first = shift == 0
        steps += [
            _step(count_digits, index, first, tiles, (keys, table), words),
            _step(scan_digits, index, first, DIGITS, (table, totals), (tiles,)),
            _step(move_pairs, index, first, tiles, moved, words),
        ]
        keys, to_keys = to_keys, keys
        numbers, to_numbers = to_numbers, spare if first else numbers
    return steps, keys, numbers


def _step(
    kernel: Any, index: Ty, first: bool, blocks: int, operands: tuple[int, ...],
    words: tuple[int, ...],
) -> GridStep:  # fmt: skip
    template = kept(_templates, (index, first), lambda _: SegmentSortGrid(index, first), MOST_KEPT)
    return GridStep(kernel, {"P": template}, blocks_for(blocks, 1), THREADS, operands, words)


_templates: dict[Any, SegmentSortGrid] = {}
