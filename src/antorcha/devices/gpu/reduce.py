"""Reductions on a GPU.

A result is folded by 1, 32 or 256 threads: by one where there are many results and few elements of
each, or where neighbours are other results' elements (columns); by a warp or a block where a row's
elements lie together. The threads of a warp exchange their states, the warps of a block meet in
shared memory. Where results are few and long, or a thread would add too many numbers one after the
other, their elements are cut into parts, whose states a second kernel folds. The order of additions
depends on the shapes alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse_dims
from antorcha.core.memo import kept
from antorcha.devices.complexes import fold_in_parts
from antorcha.devices.emit import MOST_KEPT, Unsupported, evaluate
from antorcha.devices.gpu.folds import FoldTemplate, fresh_state, keep, merged, state_places
from antorcha.devices.gpu.frame import (
    COSTLY,
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
from antorcha.lang import expr as E
from antorcha.lang.kernels import Reduce
from antorcha.lang.native import f32, f64, fabs, i64, inline, native, ptr, select, static, void
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    block,
    resident_blocks,
    shared,
    swap_lanes,
    thread,
)
from antorcha.runtime.memory.layout import Layout

ALONE = 512  # elements that one thread folds, one after the other
FEW = 8  # elements that are added up in f32 before their sum joins one of f64
LEAST = 2.0**-90  # squares that are less by far may be 0 in f32
ENOUGH = 1024  # blocks that keep a GPU busy (measured on an H100: half as many are 8 % slower)


class ReduceGrid(FoldTemplate):
    """What a fold is compiled for. ``team``: threads of a result; ``stage``: "whole" from elements
    to results, "parts" to states, "join" from these to results. ``beside``: the results of one
    part lie side by side, and not the parts of one result, so that threads which fold one result
    each read and write together. ``fixed``: is an input the same for all elements of a result?"""

    def __init__(
        self, exprs: Any, outs: Sequence[Layout], ins: Sequence[Layout], index: Any, team: int,
        stage: str, beside: bool, fixed: tuple[bool, ...], kept_dims: int, fold_dims: int,
    ) -> None:  # fmt: skip
        super().__init__(exprs, outs, ins, index, stage != "whole")
        self.team, self.stage, self.beside, self.fixed = team, stage, beside, fixed
        self.threads = THREADS
        self.kept_dims, self.fold_dims = kept_dims, fold_dims

    def __native_key__(self) -> str:
        shape = f"{self.team}{self.stage}{self.beside}{self.fixed}{self.kept_dims},{self.fold_dims}"
        return f"{self.fold_key()}|{shape}"


@inline
def inputs_at(P, words, places, at, fold_words, fixed, i):
    """The inputs at element i of a row, and its number."""
    off = offsets_of(P, words, fold_words, P.fold_dims, P.nin, i)
    values = [
        fixed[k] if P.fixed[k]
        else load_element(P, words, P.nout + k, places[P.nout + k], at[P.nout + k] + off[k])
        if P.used[k] else None
        for k in static(range(P.nin))
    ]  # fmt: skip
    return [*values, i64(i)]


@inline
def fold_elements(P, words, places, at, fold_words, lo, hi, step):
    """The state of a row's elements lo, lo + step, ... below hi."""
    state = fresh_state(P)
    fixed = [
        load_element(P, words, P.nout + k, places[P.nout + k], at[P.nout + k])
        if P.fixed[k] and P.used[k] else None
        for k in static(range(P.nin))
    ]  # fmt: skip
    i = lo
    if P.narrow is not None:
        while hi - i > step * (FEW - 1):
            few = [
                inputs_at(P, words, places, at, fold_words, fixed, i + step * u)
                for u in static(range(FEW))
            ]
            add_few(P, state, few)
            i += step * FEW
    while i < hi:
        one = evaluate(P.lift, inputs_at(P, words, places, at, fold_words, fixed, i), 0)
        keep(P, state, merged(P, state, one))
        i += step
    return state


@inline
def add_few(P, state, few):
    """Adds some elements to sums of f64: their own sums in f32, where these are neither too large
    nor too small for it. (Most GPUs have little hardware for f64.)"""
    sums = [f32(0) for k in static(range(P.nstate))]
    for u in static(range(FEW)):
        one = evaluate(P.narrow, few[u], 0)
        for k in static(range(P.nstate)):
            sums[k] = sums[k] + one[k]
    least, most = f32(LEAST), f32(0)
    for k in static(range(P.nstate)):
        least, most = min(least, fabs(sums[k])), max(most, fabs(sums[k]))
        most = select(sums[k] == sums[k], most, f32(float("inf")))
    if most < f32(float("inf")) and (P.sums_inputs or least >= f32(LEAST)):
        keep(P, state, merged(P, state, [f64(sums[k]) for k in static(range(P.nstate))]))
    else:
        for u in static(range(FEW)):
            keep(P, state, merged(P, state, evaluate(P.lift, few[u], 0)))


@inline
def fold_states(P, stored, row, rows, lane, parts):
    """The state of a result's parts lane, lane + team, ..."""
    state = fresh_state(P)
    i = lane
    while i < parts:
        at = i * rows + row if P.beside else row * parts + i
        keep(P, state, merged(P, state, [stored[k][at] for k in static(range(P.nstate))]))
        i += P.team
    return state


@inline
def fold_team(P, state):
    """The states of a result's threads folded; the whole is in the first of them."""
    if P.team > 1:
        for mask in static((16, 8, 4, 2, 1)):
            other = [swap_lanes(state[k], mask) for k in static(range(P.nstate))]
            keep(P, state, merged(P, state, other))
    if P.team > WARP:
        warps = static(P.team // WARP)
        room = [shared(P.state_types[k], warps) for k in static(range(P.nstate))]
        t = thread()
        if t % WARP == 0:
            for k in static(range(P.nstate)):
                room[k][t // WARP] = state[k]
        barrier()
        if t == 0:
            for w in static(range(1, warps)):
                keep(P, state, merged(P, state, [room[k][w] for k in static(range(P.nstate))]))
    return state


@native
def reduce_grid(words: ptr[i64], *, P) -> void:
    """Words: results, elements of each, parts, elements of a part; the kept dims (size, strides of
    all operands), the reduced dims (size, strides of the inputs)."""
    if P.lift.cost >= COSTLY:  # (else some registers may go to memory, for a block more)
        resident_blocks(1)
    own = static(P.own_words)
    kept_words = static(own + 4)
    fold_words = static(kept_words + P.kept_dims * (1 + P.nops))
    rows, count = P.I(words[own]), P.I(words[own + 1])
    parts, each = P.I(words[own + 2]), P.I(words[own + 3])
    teams = static(P.threads // P.team)
    me = P.I(thread())
    lane = me % P.team
    item = P.I(block()) * teams + me // P.team
    total = rows * parts if P.stage == "parts" else rows
    inside = item < total
    item = min(item, total - 1)
    row, lo, hi = item, P.I(0), count
    if P.stage == "parts":
        if P.beside:
            part = item // rows
            row = item - part * rows
        else:
            row = item // parts
            part = item - row * parts
        lo = part * each
        hi = min(lo + each, count)
    places = [operand_place(P, words, k) for k in static(range(P.nops))]
    at = offsets_of(P, words, kept_words, P.kept_dims, P.nops, row)
    # (a thread without a result folds nothing, but takes part in what its warp does)
    if P.stage == "join":
        stored = state_places(P, words)
        state = fold_states(P, stored, row, rows, lane, parts if inside else P.I(0))
    else:
        hi = hi if inside else lo
        state = fold_elements(P, words, places, at, fold_words, lo + lane, hi, P.team)
    state = fold_team(P, state)
    if inside and lane == 0:
        if P.stage == "parts":
            stored = state_places(P, words)
            for k in static(range(P.nstate)):
                stored[k][item] = state[k]
        else:
            results = evaluate(P.finish, [*state, i64(count)], 0)
            for k in static(range(P.nout)):
                store_element(P, k, places[k], at[k], results[k])


# ------------------------------------------------------------------------------------ planning
def plan_reduce(what: Reduce, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    if any(not isinstance(i, Layout) for i in ins):
        raise Unsupported("a reduction of numbers")
    exprs = fold_in_parts(what.start, what.lift, what.merge, what.finish, outs, ins)
    shape = ins[0].shape
    operands = [*outs, *ins]
    real = [d for d in range(len(shape)) if shape[d] != 1]
    folded = [d for d in real if d in what.dims]
    kept_dims = [d for d in real if d not in what.dims]
    if len(ins) not in E.inputs_used(*what.lift):  # no position is asked: the order is ours
        folded.sort(key=lambda d: -abs(ins[0].strides[d]))
    rows = math.prod([shape[d] for d in kept_dims])
    count = math.prod([shape[d] for d in what.dims])
    if not rows:
        return GridPlan(())
    kept_sizes, kept_columns = collapse_dims(kept_dims, operands, shape)
    fold_sizes, fold_columns = collapse_dims(folded, ins, shape)
    index = index_type(operands, rows * max(count, 1))
    team = _team_of(ins[0], folded, kept_dims, rows, count)
    own = (*dim_words(kept_sizes, kept_columns), *dim_words(fold_sizes, fold_columns))
    parts = _parts_of(rows, count, team)
    sizes = (len(kept_sizes), len(fold_sizes))
    fixed = tuple([count > 0 and not any(column) for column in fold_columns])

    beside = team == 1 and rows > 1

    def step(stage: str, team: int, items: int, states: tuple[int, ...]) -> GridStep:
        starts = tuple([(type(s), float(s).hex()) for s in exprs[0]])  # 0.0 and -0.0 are not one
        types = tuple([o.dtype for o in operands])
        form = team, stage, beside, fixed, *sizes
        template = kept(
            _templates, (starts, exprs, types, len(outs), index, form),
            lambda _: ReduceGrid(exprs, outs, ins, index, *form), MOST_KEPT,
        )  # fmt: skip
        each = -(-count // parts)
        return GridStep(
            reduce_grid, {"P": template}, blocks_for(items, THREADS // team), THREADS,
            (*range(len(operands)), *states), (rows, count, parts, each, *own),
        )  # fmt: skip

    if parts == 1:
        return GridPlan((step("whole", team, rows, ()),))
    parted = step("parts", team, rows * parts, ())
    states = parted.static["P"].state_types
    places = tuple(range(len(operands), len(operands) + len(states)))
    room = tuple([rows * parts * t.size for t in states])
    after = 1 if parts <= 8 or beside else WARP if parts <= ALONE else THREADS
    return GridPlan(
        (step("parts", team, rows * parts, places), step("join", after, rows, places)), room
    )


def _team_of(layout: Layout, folded: list[int], kept_dims: list[int], rows: int, count: int) -> int:
    """How many threads fold a result."""
    nearest = min([abs(layout.strides[d]) for d in folded], default=0)
    columns = kept_dims and min([abs(layout.strides[d]) for d in kept_dims]) < nearest
    if count <= 8 or (columns and rows >= WARP):
        return 1
    return WARP if count <= 1024 and rows > 1 else THREADS


def _parts_of(rows: int, count: int, team: int) -> int:
    """Into how many parts a result's elements are cut."""
    longest = ALONE * team
    blocks = -(-rows * team // THREADS)
    wanted = -(-count // longest)
    if blocks < ENOUGH:  # more parts keep more of a GPU busy
        wanted = max(wanted, min(ENOUGH // blocks, count // (16 * team)))
    return max(wanted, 1)


_templates: dict[Any, ReduceGrid] = {}
