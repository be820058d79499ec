"""Gather on a GPU: a thread moves some units of the output, neighbours to neighbours.

Where the output's elements lie beside one another in the big tensor, too (the rows of a table), a
unit is up to 16 bytes of them, and a team of threads copies a row: it reads the row's indices once
and divides nothing. Elsewhere each unit has indices of its own. The indices are checked as they are
used; what one that is no position would have given is an element at position 0, which nobody sees.
An output that is somebody's already is written after a kernel has checked all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.core.shapes import contiguous_strides
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridPlan,
    GridStep,
    blocks_for,
    dim_words,
    index_type,
    offsets_of,
    position,
)
from antorcha.devices.gpu.indices import (
    IndexGrid,
    NotedIndex,
    Positions,
    RefusedIndex,
    checked_position,
    explain_step,
    index_bits,
    index_places,
    key_step,
    positions_of,
)
from antorcha.devices.gpu.moves import (
    EACH,
    MoveUnit,
    as_words,
    elements_of_unit,
    in_units,
    move_place,
    move_units,
)
from antorcha.devices.gpu.segments import Workspace
from antorcha.lang.kernels import Gather, Scatter
from antorcha.lang.native import i64, inline, native, ptr, static, void
from antorcha.lang.native.grid import PARAMETER_WORDS, block, device_pointer, thread
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

SHORT_ROW = 4  # units of a row that is worth a team
MOST_ROUNDS = 65_535  # of the teams along a row: blocks of a grid's second axis


class GatherGrid(IndexGrid):
    """What a gather is compiled for. ``flat``: how many dims of the big tensor one index counts
    through, where it is more than one; ``guarded``: nothing is done if the status is set;
    ``noted``: notes have the index itself. ``team``: threads of a row, each with ``each`` of its
    units; 0 where units have indices of their own."""

    def __init__(
        self, out: Layout, ins: Sequence[Layout], index: Ty, dims: int, negative: bool,
        wide: int, flat: int, guarded: bool, noted: bool, team: int, each: int,
    ) -> None:  # fmt: skip
        super().__init__((out,), ins, index, 2, dims, negative)
        self.unit, self.flat = MoveUnit(out.itemsize, wide), flat
        self.guarded, self.noted = guarded, noted
        self.team, self.each = team, each
        self.sizes_at = self.head + 4  # of the words: (size, step) of the index tensors
        self.flat_at = self.sizes_at + 2 * self.K
        self.dims_at = self.flat_at + 2 * flat

    def __native_key__(self) -> str:
        own = f"{self.unit.__native_key__()}|{self.flat}|{self.guarded}|{self.noted}"
        return f"{super().__native_key__()}|{own}|{self.team},{self.each}"


@inline
def row_of_indices(P, words, places, status, offsets):
    """Where the indices lead in the big tensor; ``offsets``: those of `gather_grid`'s dims."""
    positions = words[static(P.head + 2)]
    indices = [i64(places[k][offsets[3 + k]]) for k in static(range(P.K))]
    source_at = offsets[1]
    for k in static(range(P.K)):
        size = words[static(P.sizes_at + 2 * k)]
        step = P.I(words[static(P.sizes_at + 2 * k + 1)])
        number = i64(k) * positions + i64(offsets[2])
        bits = words[static(P.head + 3)] if P.noted else None
        last = static(P.K) * positions
        at, _fits = checked_position(P, indices[k], size, status, number, bits, last)
        if P.flat:
            source_at = source_at + offsets_of(P, words, P.flat_at, P.flat, 1, at)[0]
        else:
            source_at = source_at + at * step
    return source_at


@native
def rows_grid(words: ptr[i64], *, P) -> void:
    """Operands and words as `gather_grid`'s, before the dims, which are those of the rows: units of
    a row, and a unit's step in the output and the big tensor."""
    dims_at = static(P.dims_at + 3)
    rows, units = P.I(words[static(P.head + 1)]), P.I(words[P.dims_at])
    to_step, source_step = P.I(words[P.dims_at + 1]), P.I(words[P.dims_at + 2])
    to, source = move_place(P.unit, words, 0), move_place(P.unit, words, 1)
    places = index_places(P, words)
    status = device_pointer(i64, words[P.head])
    me = P.I(thread())
    row = P.I(block(0)) * static(P.threads // P.team) + me // P.team
    first = P.I(block(1)) * static(P.team * P.each) + me % P.team
    inside = row < rows
    offsets = offsets_of(P, words, dims_at, P.dims, static(3 + P.K), min(row, rows - 1))
    source_at = row_of_indices(P, words, places, status, offsets)
    if P.guarded:
        inside = inside and status[0] == 0
    unit = [min(first + u * P.team, units - 1) for u in static(range(P.each))]
    move_units(
        P.unit, to, [offsets[0] + unit[u] * to_step for u in static(range(P.each))],
        source, [source_at + unit[u] * source_step for u in static(range(P.each))],
        [inside and first + u * P.team < units for u in static(range(P.each))],
    )  # fmt: skip


@native
def gather_grid(words: ptr[i64], *, P) -> void:
    """Operands: output, big tensor, index tensors, status; words: units, positions, bits of an
    index in a note, for each index tensor (size, step), dims of a flat index (size, stride), dims
    of (output, big tensor, the position's number, index tensors)."""
    n = P.I(words[static(P.head + 1)])
    to, source = move_place(P.unit, words, 0), move_place(P.unit, words, 1)
    places = index_places(P, words)
    status = device_pointer(i64, words[P.head])
    first = position(P, EACH)
    numbers = [min(first + u * P.threads, n - 1) for u in static(range(EACH))]
    offsets = [
        offsets_of(P, words, P.dims_at, P.dims, static(3 + P.K), numbers[u])
        for u in static(range(EACH))
    ]
    source_at = [
        row_of_indices(P, words, places, status, offsets[u]) for u in static(range(EACH))
    ]  # fmt: skip
    to_at = [offsets[u][0] for u in static(range(EACH))]
    valid = [first + u * P.threads < n for u in static(range(EACH))]
    if P.guarded:
        fine = status[0] == 0
        valid = [valid[u] and fine for u in static(range(EACH))]
    move_units(P.unit, to, to_at, source, source_at, valid)


# ------------------------------------------------------------------------------------- planning
def plan_gather(what: Gather, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    if not ins[1].numel:
        return GridPlan(())
    out, x, indices = as_words(outs[0]), as_words(ins[0]), [*ins[1:]]
    work = Workspace(1 + len(ins))
    status = work.room(8)
    tensors = tuple(range(2, 1 + len(ins)))
    fail = RefusedIndex(what.refuse)
    if not out.numel or not x.numel:
        steps = check_steps(what, x, indices, tensors, work, status)
        return GridPlan(tuple(steps), tuple(work.sizes), 0, fail)
    where = positions_of(what, x, indices, out.shape)
    index = index_type((out, x, *indices), max(out.numel, x.numel))
    operands = (0, 1, *tensors, status)
    last = where.count * len(indices)
    bits = index_bits(last)
    move = [
        _gather_step(what, where, out, x, indices, operands, index, over, 0 if over else bits)
        for over in (False, True)
    ]
    explain = explain_step(where, indices, tensors, index, status)
    sizes = tuple(work.sizes)
    check = key_step(
        what, where, indices, tensors, index, work.room(where.count * index.size), status
    )  # fmt: skip
    over = GridPlan((check, move[1], explain), tuple(work.sizes), 0, fail)
    if bits:
        noted = NotedIndex(what.refuse, where.count, last, bits)
        return GridPlan((move[0],), sizes, 0, noted, over)
    return GridPlan((move[0], explain), sizes, 0, fail, over)


def check_steps(
    what: Gather | Scatter, x: Layout, indices: Sequence[Layout], operands: Sequence[int],
    work: Workspace, status: int,
) -> list[GridStep]:  # fmt: skip
    """Kernels that only check the indices, where there is nothing to read or write: each tensor by
    itself, for their common shape may have no element; the first one last, for it is named."""
    steps: list[GridStep] = []
    dims = what.dims or (0,)
    sizes = tuple(x.shape) if what.dims else (x.numel,)
    for k, (d, each) in reversed([*enumerate(zip(dims, indices, strict=True))]):
        if not each.numel:
            continue
        index = index_type((each,), each.numel)
        size = sizes[d] if sizes else 1
        none, own = (0,) * each.ndim, tuple(each.shape)
        where = Positions(
            own, (tuple(each.strides),), (size,), (0,), (0,), none, none, ((), ()), ((), ()), 0
        )
        keys = work.room(each.numel * index.size)
        one = (each,), (operands[k],), index
        steps += [
            key_step(what, where, *one, keys, status, k), explain_step(where, *one, status, k)
        ]  # fmt: skip
    return steps


def _gather_step(
    what: Gather, where: Positions, out: Layout, x: Layout, indices: Sequence[Layout],
    operands: tuple[int, ...], index: Ty, guarded: bool, bits: int,
) -> GridStep:  # fmt: skip
    sizes, columns = _loops(where, out)
    flat = where.target if not what.dims and len(where.target[0]) > 1 else ((), ())
    steps = where.steps if not flat[0] else (1,)
    wide = elements_of_unit(out.itemsize, sizes, columns[:2], columns[2:], steps)
    sizes, columns = in_units(sizes, columns, wide)
    if len(sizes) > MOST_DIMS:
        raise Unsupported(f"{len(sizes)} dims")
    kernel, team, each = gather_grid, 0, EACH
    own: tuple[int, ...] = ()
    count = out.numel // wide
    blocks = blocks_for(count, THREADS * EACH)
    if sizes and sizes[-1] >= SHORT_ROW and not any([c[-1] for c in columns[2:]]):
        units = sizes[-1]
        team, each = _team_of(units)
        rounds = -(-units // (team * each))
        if rounds <= MOST_ROUNDS:
            kernel, count = rows_grid, count // units
            own = units, columns[0][-1], columns[1][-1]
            sizes, columns = sizes[:-1], [c[:-1] for c in columns]
            blocks = (*blocks_for(count, THREADS // team), rounds)
    types = tuple([o.dtype for o in (out, x, *indices)])
    fixed = (
        index, len(sizes), what.negative, wide, len(flat[0]), guarded, bits > 0,
        *((team, each) if kernel is rows_grid else (0, EACH)),
    )  # fmt: skip
    template = kept(
        _templates, (types, fixed), lambda _: GatherGrid(out, (x, *indices), *fixed), MOST_KEPT
    )
    pairs = [w for pair in zip(where.sizes, where.steps, strict=True) for w in pair]
    dims = (*dim_words(flat[0], [flat[1]]), *own, *dim_words(sizes, columns))
    words = (count, where.count, bits, *pairs, *dims)
    if len(operands) + len(words) > PARAMETER_WORDS:
        raise Unsupported(f"{len(indices)} index tensors and {len(sizes)} dims")
    return GridStep(kernel, {"P": template}, blocks, THREADS, operands, words)


def _team_of(units: int) -> tuple[int, int]:
    """How many threads copy a row, a power of two, and how many units each has: where the fewest
    have nothing to do, each as many as may be."""
    if units >= 2 * THREADS * EACH:
        return THREADS, EACH
    found = []
    for each in range(1, EACH + 1):
        team = min(1 << (-(-units // each) - 1).bit_length(), THREADS)
        idle = -(-units // (team * each)) * team * each - units
        found.append((idle, -each, team))
    _, each, team = min(found)
    return team, -each


def _loops(where: Positions, out: Layout) -> tuple[Sequence[int], Sequence[Sequence[int]]]:
    """Sizes, the output's nearest elements last, and strides of the output, the big tensor, the
    positions' numbers and the index tensors."""
    kept_sizes, kept_strides = where.kept
    none = (0,) * len(kept_sizes)
    shape = where.spread(kept_sizes, where.shape)
    strides = [*out.strides] or [0] * len(shape)
    columns = [
        strides, where.spread(kept_strides, where.away),
        where.spread(none, contiguous_strides(where.shape)),
        *[where.spread(none, column) for column in where.columns],
    ]  # fmt: skip
    order = sorted(range(len(shape)), key=lambda d: -abs(strides[d]))
    return collapse([shape[d] for d in order], [[c[d] for d in order] for c in columns])


_templates: dict[Any, GatherGrid] = {}
