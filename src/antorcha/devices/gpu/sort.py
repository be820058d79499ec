"""Sort on a GPU: lines in order, the first elements of each, or the one of some rank.

A line that fits into a block is sorted in shared memory, short ones several at once. Of a longer
one, blocks sort tiles, and further steps merge two runs each, a block writing one tile of them.
Where few of the first are wanted, each tile keeps so many, and what was kept is sorted in tiles
again, until one is left. Equal elements are told apart by their positions, so every step is stable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, TYPES, Unsupported
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridPlan,
    GridStep,
    blocks_for,
    dim_words,
    index_type,
    load_element,
    offsets_of,
    operand_place,
    store_element,
)
from antorcha.devices.gpu.pointwise import plan_pointwise
from antorcha.devices.gpu.sort_items import (
    COUNT,
    EACH,
    LINES,
    LONGEST,
    RANK,
    STEP_INDICES,
    STEP_VALUES,
    TEAM,
    TILE,
    TILES,
    TOTAL,
    WANTED,
    WIDTH,
    SortGrid,
    along_line,
    element_words_at,
    filling,
    get_item,
    item_of,
    items_at,
    key_in,
    merge_own,
    merge_path,
    position_of,
    put_item,
    put_own,
    row_key,
    shared_items,
    sort_room,
    team_of,
)
from antorcha.devices.sort_keys import key_of
from antorcha.lang import expr as E
from antorcha.lang.kernels import Pointwise, Sort
from antorcha.lang.native import i32, i64, inline, native, ptr, select, static, u64, void
from antorcha.lang.native.grid import WARP, barrier, block, shared, swap_lanes, thread
from antorcha.runtime.memory.layout import Layout


# ------------------------------------------------------------------------------------------ lines
@inline
def line_offsets(P, words, line):
    """Where a line begins in each operand."""
    return offsets_of(P, words, P.line_words, P.line_dims, P.nops, line)


@inline
def read_item(P, words, line, begin, position, line_items):
    """The item that the input, or an earlier step, has at a position of a line."""
    if P.source == "items":
        return get_item(P, items_at(P, words, P.head), line * line_items + P.I(position))
    x = element_words_at(P, words) + begin
    if P.rows is None:
        return item_of(P, key_of(P.order, x[along_line(P, words, P.I(position))]), position)
    return item_of(P, row_key(P, words, x, P.I(position)), position)


@inline
def write_element(P, words, at, to, position):
    """Gives the element at a position of a line, which begins at ``at``, as number ``to`` of the
    results."""
    x = operand_place(P, words, P.x)
    value = load_element(P, words, P.x, x, at[P.x] + along_line(P, words, P.I(position)))
    values = operand_place(P, words, 0)
    store_element(P, 0, values, at[0] + to * P.I(words[P.own + STEP_VALUES]), value)
    if P.nout == 2:
        indices = operand_place(P, words, 1)
        indices[at[1] + to * P.I(words[P.own + STEP_INDICES])] = i64(position)


@inline
def write_item(P, words, line, at, to, item):
    """Item number ``to`` of a line in order: to the results, or for the next step."""
    if P.sink == "items":
        own = static(P.own - P.item_words)
        put_item(P, items_at(P, words, own), line * P.I(words[P.own + TOTAL]) + to, item)
    else:
        write_element(P, words, at, to, position_of(P, item))


@inline
def rank_of(P, T, words, items, begin, n):
    """Which of a line's items, in order, is wanted; ``begin`` and n are of type T."""
    if P.kind == "kth":
        return T(words[P.own + RANK])
    numbers = n + 0  # that are not NaN
    if P.order.kind == "f":
        lo, hi = T(0), n + 0
        while lo < hi:
            middle = (lo + hi) >> 1
            key = key_in(P, get_item(P, items, begin + middle))
            if key == static(P.W)(P.order.ones):
                hi = middle
            else:
                lo = middle + 1
        numbers = lo
    if P.kind == "nanmedian":
        return max(numbers - 1, 0) >> 1
    return select(numbers < n, numbers, (n - 1) >> 1)


# ---------------------------------------------------------------------------------------- kernels
@native
def sort_tiles_grid(words: ptr[i64], *, P) -> void:
    """Sorts lines, or tiles of them. A team of threads has a tile; where a line has several, a team
    is a block."""
    lines, n = P.I(words[P.own + LINES]), i32(words[P.own + COUNT])
    tiles, log = P.I(words[P.own + TILES]), i32(words[P.own + TEAM])
    wanted = i32(words[P.own + WANTED])
    team = i32(1) << log
    teams = i32(P.threads) >> log
    capacity = team * P.each
    t = thread()
    if P.columns:
        local, lane = t & (teams - 1), t // teams
    else:
        local, lane = t >> log, t & (team - 1)
    item = P.I(block()) * P.I(teams) + P.I(local)
    inside = item < lines * tiles
    line = item // tiles
    tile = item - line * tiles
    at = line_offsets(P, words, line)
    first = i32(tile) * capacity
    room = shared_items(P, static(P.threads * P.each))
    for k in static(range(P.each)):
        slot = lane + k * team
        position = first + slot
        one = filling(P, position)
        if inside and position < n:
            one = read_item(P, words, line, at[P.x], position, P.I(n))
        put_item(P, room, local * capacity + slot, one)
    barrier()
    sort_room(P, words, room, team)
    if P.sink == "pick":
        if inside and lane == 0:
            rank = rank_of(P, i32, words, room, local * capacity, n)
            found = position_of(P, get_item(P, room, local * capacity + rank))
            write_element(P, words, at, P.I(0), found)
    else:
        last = min(wanted, n - first)
        for k in static(range(P.each)):
            slot = lane + k * team
            if inside and slot < last:
                found = get_item(P, room, local * capacity + slot)
                write_item(P, words, line, at, tile * P.I(wanted) + P.I(slot), found)


@native
def merge_tiles_grid(words: ptr[i64], *, P) -> void:
    """Merges runs of 2 ** WIDTH tiles, two and two; a block writes a tile of what they become."""
    n, tiles = P.I(words[P.own + COUNT]), P.I(words[P.own + TILES])
    log, wanted = P.I(words[P.own + WIDTH]), P.I(words[P.own + WANTED])
    item = P.I(block())
    line = item // tiles
    tile = item - line * tiles
    width = P.I(TILE) << log
    pair = (tile >> (log + 1)) << (log + 1)
    a = pair * TILE
    na = min(width, n - a)
    b = a + na
    nb = min(width, n - b)
    begin = (tile - pair) * TILE
    end = min(begin + TILE, na + nb)
    source = items_at(P, words, P.head)
    base = line * n
    ends = shared(static(P.I), 2)
    t = thread()
    if t < 2:
        diagonal = begin if t == 0 else end
        ends[t] = merge_path(P, words, source, base + a, na, base + b, nb, diagonal)
    barrier()
    from_a, from_b = a + ends[0], b + (begin - ends[0])
    here = i32(ends[1] - ends[0])  # items of the first run
    count = i32(end - begin)
    room = shared_items(P, static(P.threads * P.each))
    for k in static(range(P.each)):
        slot = t + static(k * P.threads)
        if slot < count:
            at = select(slot < here, from_a + P.I(slot), from_b + P.I(slot - here))
            put_item(P, room, slot, get_item(P, source, base + at))
    barrier()
    mine = [get_item(P, room, t * P.each + k) for k in static(range(P.each))]
    diagonal = min(t * P.each, count)
    merge_own(P, words, room, i32(0), here, here, count - here, diagonal, mine)
    barrier()
    put_own(P, room, t * P.each, mine)
    offsets = line_offsets(P, words, line)
    for k in static(range(P.each)):
        slot = t + static(k * P.threads)
        to = pair * TILE + begin + P.I(slot)
        if slot < count and to < wanted:
            write_item(P, words, line, offsets, to, get_item(P, room, slot))


@native
def pick_items_grid(words: ptr[i64], *, P) -> void:
    """One element of each line whose items are in order: a block has a line."""
    n = P.I(words[P.own + COUNT])
    line = P.I(block())
    at = line_offsets(P, words, line)
    items = items_at(P, words, P.head)
    rank = P.I(0)
    if P.kind == "mode":
        rank = commonest(P, items, line * n, n)
    elif thread() == 0:
        rank = rank_of(P, P.I, words, items, line * n, n)
    if thread() == 0:
        write_element(P, words, at, P.I(0), position_of(P, get_item(P, items, line * n + rank)))


@inline
def commonest(P, items, begin, n):
    """Where the longest run of equal items ends, the first of these: in thread 0."""
    best = u64(0)  # the run's length, and what is greater the sooner it ends
    ones = static(P.W)(P.order.ones)
    i = P.I(thread())
    while i < n:
        key = key_in(P, get_item(P, items, begin + i))
        alone = P.order.kind == "f" and key == ones
        ends = alone or i == n - 1
        if not ends:
            ends = key != key_in(P, get_item(P, items, begin + i + 1))
        if ends:
            lo, hi = P.I(0), i + 0
            if alone:
                lo = i + 0
            while lo < hi:
                middle = (lo + hi) >> 1
                if key_in(P, get_item(P, items, begin + middle)) < key:
                    lo = middle + 1
                else:
                    hi = middle
            run = u64(i - lo + 1) << 32 | u64(0xFFFFFFFF) - u64(i)
            best = max(best, run)
        i += static(P.threads)
    for mask in static((16, 8, 4, 2, 1)):
        best = max(best, swap_lanes(best, mask))
    if P.threads > WARP:
        warps = shared(u64, static(P.threads // WARP))
        t = thread()
        if t % WARP == 0:
            warps[t // WARP] = best
        barrier()
        for w in static(range(P.threads // WARP)):
            best = max(best, warps[w])
    return P.I(u64(0xFFFFFFFF) - (best & u64(0xFFFFFFFF)))


# --------------------------------------------------------------------------------------- planning
class LinesToSort:
    """The lines of the first input and how they lie, from which steps are made. ``along`` and
    ``others``: the dims of a line, and those of the lines, with the strides of (the input,) and of
    all operands; ``results``: the outputs' strides along the line."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], kind: str, down: bool,
        along: Any, others: Any, results: Sequence[int] = (0, 0), rows: Any = None, rank: int = 0,
    ) -> None:  # fmt: skip
        self.outs, self.ins, self.kind, self.down = outs, ins, kind, down
        self.along, self.others = collapse(*along), collapse(*others)
        self.n, self.lines = math.prod(along[0]), math.prod(others[0])
        self.results = (*results, 0, 0)[:2]
        self.rank = rank
        self.rows, self.row, self.packed = None, 0, 1
        if rows is not None:
            self.rows = collapse(*rows)
            self.row = math.prod(rows[0])
            self.packed = min(8 // _part_size(ins[0]), self.row)
        if max(len(self.along[0]), len(self.others[0])) > MOST_DIMS:
            raise Unsupported("lines of so many dims")
        if self.n >= LONGEST:
            raise Unsupported(f"a line of {self.n} elements")
        self.index = index_type((*outs, *ins), self.n * self.lines)
        self.first_temporary = len(outs) + len(ins)
        self.temporaries: list[int] = []
        self.steps: list[GridStep] = []

    def grid(self, **options: Any) -> SortGrid:
        """The kernel's template, of which there is one for all sizes."""
        first = self.ins[0]
        kind = self.kind if options.get("sink") == "pick" else ""  # others do not depend on it
        bits = 8 * first.itemsize + max(self.n - 1, 1).bit_length()
        rows = None if self.rows is None else len(self.rows[0])
        dims = {"line_dims": len(self.others[0]), "along_dims": len(self.along[0]), "rows": rows,
                "packed": self.packed, **options}  # fmt: skip
        key = (
            tuple([o.dtype for o in (*self.outs, *self.ins)]), len(self.outs), self.index, kind,
            self.down, bits > 64, bits > 32, tuple(dims.items()),
        )  # fmt: skip
        return kept(_templates, key, lambda _: SortGrid(
            self.outs, self.ins, self.index, n=self.n, kind=kind, down=self.down, **dims
        ), MOST_KEPT)  # fmt: skip

    def room(self, items: int) -> tuple[int, ...]:
        """Temporaries for so many items: their numbers."""
        return self.room_of(*self.grid().item_bytes(items))

    def room_of(self, *sizes: int) -> tuple[int, ...]:
        """Temporaries of so many bytes: their numbers."""
        at = self.first_temporary + len(self.temporaries)
        self.temporaries += sizes
        return tuple(range(at, at + len(sizes)))

    def add(
        self, kernel: Any, grid: SortGrid, blocks: int, buffers: tuple[int, ...], count: int,
        **words: int,
    ) -> None:  # fmt: skip
        """A step. ``buffers``: the items that it reads and those that it writes; ``count``: items
        of a line that it reads."""
        header = (
            self.lines, count, words.get("tiles", 1), words.get("team", 0), words.get("wanted", 0),
            self.rank, words.get("width", 0), words.get("total", 0), self.row, *self.results,
        )  # fmt: skip
        own = [*header, *dim_words(*self.others), *dim_words(*self.along)]
        if self.rows is not None:
            own += dim_words(*self.rows)
        operands = (*range(self.first_temporary), *buffers)
        self.steps.append(GridStep(
            kernel, {"P": grid}, blocks_for(blocks, 1), grid.threads, operands, tuple(own)
        ))  # fmt: skip

    # ---- the ways to sort
    def sort_short(self, wanted: int, sink: str, to: tuple[int, ...] = ()) -> None:
        """Lines of at most a tile; so many of the first are written."""
        self._sort_tiles(self.n, wanted, sink, (), to)

    def _sort_tiles(
        self, count: int, wanted: int, sink: str, source: tuple[int, ...], to: tuple[int, ...]
    ) -> None:
        tiles = max(-(-count // TILE), 1)
        each, team = team_of(min(count, TILE)) if tiles == 1 else (EACH, 8)
        nearest = min([abs(s) for s in self.along[1][0]], default=0)
        columns = not source and bool(self.others[0]) and min(
            [abs(s) for s in self.others[1][len(self.outs)]]
        ) < nearest  # fmt: skip
        grid = self.grid(
            source="items" if source else "input", sink=sink, columns=columns, each=each
        )
        wanted = min(wanted, TILE)
        total = _kept_of(count, wanted)
        blocks = -(-self.lines * tiles // (THREADS >> team))
        self.add(sort_tiles_grid, grid, blocks, (*source, *to), count, tiles=tiles, team=team,
                 wanted=wanted, total=total)  # fmt: skip

    def sort_first(self, wanted: int, sink: str) -> None:
        """The first of each line, at most half a tile."""
        count = self.n
        source: tuple[int, ...] = ()
        while count > TILE:
            after = _kept_of(count, wanted)
            to = self.room(self.lines * after)
            self._sort_tiles(count, wanted, "items", source, to)
            count, source = after, to
        self._sort_tiles(count, wanted, sink, source, ())

    def sort_long(self, wanted: int, sink: str) -> tuple[int, ...]:
        """Whole lines. With the sink "items": where they are at the end."""
        items = self.lines * self.n
        now = self.room(items)
        self._sort_tiles(self.n, TILE, "items", (), now)
        tiles, log = -(-self.n // TILE), 0
        other: tuple[int, ...] = ()
        while 1 << log < tiles:
            last = 2 << log >= tiles
            to = () if last and sink == "output" else other or self.room(items)
            grid = self.grid(source="items", sink=sink if last else "items")
            self.add(merge_tiles_grid, grid, self.lines * tiles, (*now, *to), self.n, tiles=tiles,
                     width=log, wanted=wanted if last else self.n, total=self.n)  # fmt: skip
            other, now = now, to
            log += 1
        return now

    def sort_items(self) -> tuple[int, ...]:
        """All items in order: the numbers of their buffers."""
        if self.n > TILE:
            return self.sort_long(self.n, "items")
        to = self.room(self.lines * self.n)
        self.sort_short(self.n, "items", to)
        return to

    def pick(self) -> None:
        """One element of each line, of all its items in order."""
        source = self.sort_items()
        many = self.kind == "mode" and self.n > TILE
        grid = self.grid(source="items", sink="pick", threads=THREADS if many else WARP)
        self.add(pick_items_grid, grid, self.lines, source, self.n)


def _part_size(layout: Layout) -> int:
    return layout.itemsize // 2 if layout.dtype.kind == "c" else layout.itemsize


def _kept_of(count: int, wanted: int) -> int:
    """Items that tiles keep of so many, each at most ``wanted``."""
    whole, rest = divmod(count, TILE)
    return whole * wanted + min(rest, wanted)


def plan_sort(what: Sort, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    (x,) = ins
    if x.dtype.name not in TYPES:
        raise Unsupported(str(x.dtype))
    if not outs[0].numel:
        return GridPlan(())
    if not x.numel:
        nothing = np.nan if x.dtype.kind == "f" else np.iinfo(x.dtype.np).min
        return plan_pointwise(Pointwise((E.const(nothing, x.dtype),)), outs, ())
    line, wanted = _lines_of(what, outs, x)
    if what.kind == "mode":
        line.pick()
    elif what.kind in ("sort", "top"):
        if line.n <= TILE:
            line.sort_short(wanted, "output")
        elif 2 * wanted <= TILE:
            line.sort_first(wanted, "output")
        else:
            line.sort_long(wanted, "output")
    elif line.n <= TILE:
        line.sort_short(1, "pick")
    elif what.kind == "kth" and 2 * (what.rank + 1) <= TILE:
        line.sort_first(what.rank + 1, "pick")
    else:
        line.pick()
    return GridPlan(tuple(line.steps), tuple(line.temporaries))


def _lines_of(what: Sort, outs: Sequence[Layout], x: Layout) -> tuple[LinesToSort, int]:
    """The lines, and how many elements of each are wanted."""
    along: Any
    others: Any
    if what.dim is None:
        along, others = (x.shape, [x.strides]), ((), [()] * (len(outs) + 1))
        results, wanted = [0], 1
    else:
        d, shape = what.dim, tuple(x.shape) or (1,)
        every = [_strides_of(o, shape, d) for o in (*outs, x)]
        rest = [e for e in range(len(shape)) if e != d]
        along = (shape[d],), [(every[-1][d],)]
        others = [shape[e] for e in rest], [[s[e] for e in rest] for s in every]
        results = [s[d] for s in every[:-1]]
        wanted = (tuple(outs[0].shape) or (1,))[d] if what.kind in ("sort", "top") else 1
    return LinesToSort(
        outs, (x,), what.kind, what.descending, along, others, results, rank=what.rank
    ), wanted  # fmt: skip


def _strides_of(layout: Layout, shape: tuple[int, ...], d: int) -> tuple[int, ...]:
    """The strides along the input's dims; an output may lack the dim of one element."""
    steps = tuple(layout.strides)
    return steps if layout.ndim == len(shape) else (*steps[:d], 1, *steps[d:])


_templates: dict[Any, SortGrid] = {}
