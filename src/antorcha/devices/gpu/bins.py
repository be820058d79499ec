"""Bins on a GPU: how often each integer occurs, or the sum of the weights beside it.

The first stage finds the least and the greatest integer. Counts are integers, so atomic additions
give the same in any order: a block counts in shared memory where all bins fit there. For sums of
weights the integers are sorted, with their positions, and a warp or a block adds up what belongs to
a bin: always in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, NUMBERS, Unsupported
from antorcha.devices.gpu.frame import (
    THREADS,
    DynamicPlan,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    index_type,
    position,
)
from antorcha.devices.gpu.sort import LinesToSort
from antorcha.devices.gpu.sort_items import SortGrid, get_item, items_at, key_in, position_of
from antorcha.lang.kernels import Bins
from antorcha.lang.native import atomic_add, i64, inline, native, ptr, static, u32, void
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    block,
    blocks,
    device_pointer,
    shared,
    swap_lanes,
    thread,
)
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

SHARED_BINS = (512, 8192)
"""Sizes of the room for counts (u32) that a block has in shared memory."""
MOST_COUNTING = 512
"""Blocks that go over the integers in strides."""
SEVERAL = 16
"""Integers of a thread, about, where there are enough."""


class BinsGrid(GridTemplate):
    """What a kernel of bins is compiled for: the output where there is one, integers, weights.
    ``room``: for counts in shared memory, or 0; ``team``: threads of a bin; ``sort``: how the
    integers were sorted."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Any, room: int = 0,
        team: int = 0, sort: SortGrid | None = None,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.T = NUMBERS[ins[0].dtype.name]
        self.room, self.team, self.sort, self.threads = room, team, sort, THREADS
        self.integers = self.nout
        self.weight = NUMBERS[ins[1].dtype.name] if len(ins) == 2 else None

    def __native_key__(self) -> str:
        sort = self.sort.__native_key__() if self.sort else ""
        return f"{self.operands_key()}|{self.room}|{self.team}|{sort}"


# ------------------------------------------------------------------------------- the integers' ends
@inline
def leave_ends(P, low, high, to):
    """Writes the least and the greatest of what the block's threads have."""
    for mask in static((16, 8, 4, 2, 1)):
        low = min(low, swap_lanes(low, mask))
        high = max(high, swap_lanes(high, mask))
    warps = static(P.threads // WARP)
    lows, highs = shared(i64, warps), shared(i64, warps)
    t = thread()
    if t % WARP == 0:
        lows[t // WARP] = low
        highs[t // WARP] = high
    barrier()
    for w in static(range(warps)):
        low = min(low, lows[w])
        high = max(high, highs[w])
    if t == 0:
        to[0] = low
        to[1] = high
    return low


@native
def ends_grid(words: ptr[i64], *, P) -> void:
    """The least and the greatest integer that each block goes over. Words: where they are left,
    integers, their stride."""
    n, step = P.I(words[P.head + 1]), P.I(words[P.head + 2])
    integers = device_pointer(P.T, words[P.starts[P.integers]])
    low, high = i64((1 << 63) - 1), i64(-1)
    i = position(P, 1)
    while i < n:
        one = i64(integers[i * step])
        low = min(low, one)
        high = max(high, one)
        i += P.I(blocks()) * static(P.threads)
    leave_ends(P, low, high, device_pointer(i64, words[P.head]) + (2 + 2 * i64(block())))


@native
def join_ends_grid(words: ptr[i64], *, P) -> void:
    """One block: those of all blocks, in front; the status is 1 if the least is negative. Words:
    where they are, the status, how many."""
    found = device_pointer(i64, words[P.head])
    low, high = i64((1 << 63) - 1), i64(-1)
    i = i64(thread())
    while i < words[P.head + 2]:
        low = min(low, found[2 + 2 * i])
        high = max(high, found[3 + 2 * i])
        i += static(P.threads)
    least = leave_ends(P, low, high, found)
    if thread() == 0 and least < 0:
        device_pointer(i64, words[P.head + 1])[0] = 1


# ----------------------------------------------------------------------------------------- counting
@native
def clear_bins_grid(words: ptr[i64], *, P) -> void:
    """Words: the number of bins."""
    i = position(P, 1)
    if i < P.I(words[P.head]):
        out = device_pointer(P.types[0], words[P.starts[0]])
        out[i] = P.types[0](0)


@native
def count_bins_grid(words: ptr[i64], *, P) -> void:
    """Adds the counts to bins that are 0. Words: bins, integers, their stride."""
    bins = P.I(words[P.head])
    n, step = P.I(words[P.head + 1]), P.I(words[P.head + 2])
    out = device_pointer(i64, words[P.starts[0]])
    integers = device_pointer(P.T, words[P.starts[P.integers]])
    if P.room:
        counts = shared(u32, P.room)
        b = P.I(thread())
        while b < bins:
            counts[b] = u32(0)
            b += static(P.threads)
        barrier()
    i = position(P, 1)
    while i < n:
        to = P.I(integers[i * step])
        if to >= 0 and to < bins:  # (as it was when it was checked)
            if P.room:
                atomic_add(counts + to, u32(1), "monotonic")
            else:
                atomic_add(out + to, i64(1), "monotonic")
        i += P.I(blocks()) * static(P.threads)
    if P.room:
        barrier()
        b = P.I(thread())
        while b < bins:
            if counts[b] != 0:
                atomic_add(out + b, i64(counts[b]), "monotonic")
            b += static(P.threads)


# ------------------------------------------------------------------------------------------ weights
@inline
def first_of_bin(P, items, n, bin_number):
    """Where a bin's items begin."""
    S = static(P.sort)
    lo, hi = P.I(0), n + 0
    while lo < hi:
        middle = (lo + hi) >> 1
        value = i64(key_in(S, get_item(S, items, middle)))
        if S.order.kind == "i":
            value = value - i64(S.order.sign - (1 << 64) if S.order.bits == 64 else S.order.sign)
        if value < bin_number:
            lo = middle + 1
        else:
            hi = middle
    return lo


@native
def sum_bins_grid(words: ptr[i64], *, P) -> void:
    """The sum of each bin's weights, by a team of threads. Words: the sorted integers, bins,
    integers, the weights' stride."""
    S = static(P.sort)
    own = static(P.head + P.sort.item_words)
    bins, n = i64(words[own]), P.I(words[own + 1])
    items = items_at(S, words, P.head)
    T = static(P.types[0])
    weights = device_pointer(P.weight, words[P.starts[2]])
    me = thread() % P.team
    b = i64(block()) * static(P.threads // P.team) + i64(thread() // P.team)
    lo = first_of_bin(P, items, n, b)
    hi = first_of_bin(P, items, n, b + 1)
    total = T(0)
    i = lo + P.I(me)
    while i < hi:
        at = P.I(position_of(S, get_item(S, items, i)))
        total += T(weights[at * P.I(words[own + 2])])
        i += static(P.team)
    for mask in static((16, 8, 4, 2, 1)):
        total += swap_lanes(total, mask)
    if P.team > WARP:
        sums = shared(T, static(P.team // WARP))
        if me % WARP == 0:
            sums[me // WARP] = total
        barrier()
        total = sums[0] + T(0)
        for w in static(range(1, P.team // WARP)):
            total += sums[w]
    if me == 0 and b < bins:
        device_pointer(T, words[P.starts[0]])[b] = total


# --------------------------------------------------------------------------------------- planning
def plan_bins(what: Bins, outs: Sequence[Layout], ins: Sequence[Any]) -> DynamicPlan:
    x, *weights = ins
    if any([w.dtype.name not in NUMBERS for w in weights]):
        raise Unsupported("such weights")
    n, device = x.numel, outs[0].device
    step = x.strides[0]
    grid = bins_grid((), ins, n)
    lines = None
    if weights and n:
        lines = LinesToSort((), ins, "sort", False, ((n,), [(step,)]), ((), [(), ()]))
        items = lines.sort_items()
    found = len(ins) + (len(lines.temporaries) if lines else 0)
    count = _blocks_over(n)
    operands = tuple(range(len(ins)))
    steps = (
        GridStep(ends_grid, {"P": grid}, (count,), THREADS, (*operands, found), (n, step)),
        GridStep(join_ends_grid, {"P": grid}, (1,), THREADS, (*operands, found, found + 1),
                 (count,)),
        *(lines.steps if lines else ()),
    )  # fmt: skip
    room = (*(lines.temporaries if lines else ()), 16 * (1 + count), 8)
    first = GridPlan(steps, room, len(room) - 1, lambda code: what.refuse())

    def layouts(numbers: Sequence[int]) -> list[Layout]:
        return [L.contiguous((max(numbers[1] + 1, what.least),), outs[0].dtype, device)]

    def rest(numbers: Sequence[int]) -> GridPlan:
        results = layouts(numbers)
        if lines is None:
            return _counting(results, ins, n)
        places = tuple([1 + k for k in items])  # the output stands before
        return _summing(results, ins, n, lines.grid(), places)

    return DynamicPlan(first, len(room) - 2, 2, layouts, rest)


def _counting(outs: Sequence[Layout], ins: Sequence[Layout], n: int) -> GridPlan:
    """Counts, or zeros where there are no integers."""
    bins = outs[0].numel
    if not bins:
        return GridPlan(())
    room = min([r for r in SHARED_BINS if r >= bins], default=0)
    grid = bins_grid(outs, ins, max(n, bins), room=room)
    operands = tuple(range(1 + len(ins)))
    clear = GridStep(clear_bins_grid, {"P": grid}, blocks_for(bins), THREADS, operands, (bins,))
    if not n:
        return GridPlan((clear,))
    count = GridStep(
        count_bins_grid, {"P": grid}, (_blocks_over(n, 4 * bins if room else 0),), THREADS,
        operands, (bins, n, ins[0].strides[0]),
    )  # fmt: skip
    return GridPlan((clear, count))


def _summing(
    outs: Sequence[Layout], ins: Sequence[Layout], n: int, sort: SortGrid, items: tuple[int, ...]
) -> GridPlan:
    """Sums of weights by sorted integers."""
    bins = outs[0].numel
    team = WARP if n <= 1024 * bins else THREADS
    grid = bins_grid(outs, ins, max(n, bins), team=team, sort=sort)
    return GridPlan((GridStep(
        sum_bins_grid, {"P": grid}, blocks_for(bins, THREADS // team), THREADS,
        (0, 1, 2, *items), (bins, n, ins[1].strides[0]),
    ),))  # fmt: skip


def _blocks_over(n: int, least: int = 0) -> int:
    """Blocks that go over n integers; each takes so many at least."""
    return max(min(n // max(THREADS * SEVERAL, least), MOST_COUNTING), 1)


def bins_grid(
    outs: Sequence[Layout], ins: Sequence[Layout], count: int, **options: Any
) -> BinsGrid:
    index = index_type((*outs, *ins), count)
    key = tuple([o.dtype for o in (*outs, *ins)]), len(outs), index, tuple(options.items())
    return kept(_templates, key, lambda _: BinsGrid(outs, ins, index, **options), MOST_KEPT)


_templates: dict[Any, BinsGrid] = {}
