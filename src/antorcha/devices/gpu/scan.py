"""Scans on a GPU: a running state along each line, written out at every element.

*Threads*: a thread takes a line, element after element: where lines lie side by side, for then
neighbouring threads have neighbouring addresses, and for the shortest lines.

*Warps*: a warp takes a line, ``EACH`` neighbouring elements of a lane. A lane folds its elements,
the lanes scan these states by exchanging them, and each goes over its elements again.

Few long lines are cut into parts in both forms: a kernel folds each part to its state, one scans
these, one scans the parts after what came before. Their number depends on the shape alone.

*Tiles*: where states must join in order (``Scan.run``), or lines are short and many. A warp brings
a tile of some lines into shared memory; a lane for each line walks it there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.core.structs import replace, struct
from antorcha.devices.complexes import fold_in_parts
from antorcha.devices.emit import MOST_KEPT, TYPES, Unsupported, body_of, evaluate
from antorcha.devices.gpu.folds import (
    FoldTemplate,
    chosen,
    fresh_state,
    keep,
    merged,
    state_places,
)
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
from antorcha.lang.kernels import Scan
from antorcha.lang.native import i64, inline, native, ptr, static, void
from antorcha.lang.native.grid import (
    PARAMETER_WORDS,
    WARP,
    barrier,
    block,
    shared,
    swap_lanes,
    thread,
)
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

EACH = 4  # neighbouring elements of a thread
TILE = 1024  # elements of a tile, of all its lines
TILES_AT_ONCE = 8  # loads of a thread at once
ENOUGH = 4096  # warps that keep a GPU busy
SHORT = 16  # elements of a line that a thread takes alone
MOST_SHARED = 40 << 10


@struct
class ScanForm:
    """``team``: threads of a line or part; ``stage``: "whole", or of parts "parts" (to states),
    "join" (what comes before each), "after" (to results); ``lines``: of a tile, 0 for no tiles;
    ``run``: neighbours in a tile that are joined before the state so far joins them."""

    team: int
    stage: str
    dims: int
    lines: int = 0
    run: int = 1


class ScanGrid(FoldTemplate):
    """What a scan is compiled for."""

    def __init__(
        self, fold: Any, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, form: ScanForm,
        reverse: bool,
    ) -> None:  # fmt: skip
        super().__init__(fold, outs, ins, index, form.stage != "whole")
        self.form, self.reverse, self.threads = form, reverse, THREADS
        if form.lines:
            self.threads = WARP
            self.tile = TILE // form.lines
            self.row = self.tile + 1  # (a word more, so that lanes read different banks)

    def __native_key__(self) -> str:
        f = self.form
        shape = f"{f.team}{f.stage}{f.dims},{f.lines},{f.run},{self.reverse}"
        return f"{self.fold_key()}|{shape}"


@inline
def element_state(P, words, places, at, steps, n, i):
    """The state of a line's element number i, in the scan's order."""
    place = n - 1 - i if P.reverse else i
    values = [
        load_element(P, words, P.nout + k, places[P.nout + k],
                     at[P.nout + k] + place * steps[P.nout + k])
        if P.used[k] else None
        for k in static(range(P.nin))
    ]  # fmt: skip
    return evaluate(P.lift, [*values, i64(place)], 0)


@inline
def write_result(P, places, at, steps, n, i, state):
    place = n - 1 - i if P.reverse else i
    results = evaluate(P.finish, state, 0)
    for k in static(range(P.nout)):
        store_element(P, k, places[k], at[k] + place * steps[k], results[k])


# ------------------------------------------------------------------------------------ warps
@inline
def scan_lanes(P, lane, state):
    """What the lanes before this one join to (any, in the first), then what all lanes do."""
    before = [state[k] for k in static(range(P.nstate))]
    total = [state[k] for k in static(range(P.nstate))]
    for mask in static((1, 2, 4, 8, 16)):
        other = [swap_lanes(total[k], mask) for k in static(range(P.nstate))]
        upper = lane & mask != 0
        if mask == 1:
            found = other
        else:
            found = chosen(P, lane & static(mask - 1) == 0, other, merged(P, other, before))
        keep(P, before, chosen(P, upper, found, before))
        low, high = chosen(P, upper, other, total), chosen(P, upper, total, other)
        keep(P, total, merged(P, low, high))
    return before, total


@native
def scan_grid(words: ptr[i64], *, P) -> void:
    """Words: lines, elements of each, parts, elements of a part; each operand's step along the
    line; the other dims (size, strides of all operands)."""
    own = static(P.own_words)
    lines, n = P.I(words[own]), P.I(words[own + 1])
    parts, each = P.I(words[own + 2]), P.I(words[own + 3])
    team = static(P.form.team)
    stage = static(P.form.stage)
    lane = P.I(thread()) % team
    item = P.I(block()) * static(P.threads // team) + P.I(thread()) // team
    items = lines if stage == "join" or stage == "whole" else lines * parts
    inside = item < items
    item = min(item, items - 1)
    part, line = P.I(0), item
    if stage == "parts" or stage == "after":
        part = item // lines
        line = item - part * lines
    lo, hi = part * each, n
    if stage == "join":
        hi = parts
    elif stage != "whole":
        hi = min(lo + each, n)
    places = [operand_place(P, words, k) for k in static(range(P.nops))]
    steps = [P.I(words[own + 4 + k]) for k in static(range(P.nops))]
    at = offsets_of(P, words, static(own + 4 + P.nops), P.form.dims, P.nops, line)
    carry = fresh_state(P)
    if stage != "whole":
        stored = state_places(P, words)
        if stage == "after":
            keep(P, carry, [stored[k][item] for k in static(range(P.nstate))])
    base = lo
    while base < hi:
        first = base + lane * EACH
        some = [fresh_state(P) for u in static(range(EACH))]
        for u in static(range(EACH)):
            i = min(first + u, hi - 1)  # what comes after the last one joins no result
            if stage == "join":
                keep(P, some[u], [stored[k][i * lines + line] for k in static(range(P.nstate))])
            else:
                keep(P, some[u], element_state(P, words, places, at, steps, n, i))
        state = [carry[k] for k in static(range(P.nstate))]
        if team == 1:
            carry = fold_on(P, carry, some)
        else:
            own_state = [some[0][k] for k in static(range(P.nstate))]
            for u in static(range(1, EACH)):
                keep(P, own_state, merged(P, own_state, some[u]))
            before, total = scan_lanes(P, lane, own_state)
            keep(P, state, chosen(P, lane == 0, carry, merged(P, carry, before)))
            keep(P, carry, merged(P, carry, total))
        if stage != "parts":
            for u in static(range(EACH)):
                i = first + u
                new = merged(P, state, some[u])
                if inside and i < hi:
                    if stage == "join":
                        for k in static(range(P.nstate)):
                            stored[k][i * lines + line] = state[k]
                    else:
                        write_result(P, places, at, steps, n, i, new)
                keep(P, state, new)
        base += static(team * EACH)
    if stage == "parts" and inside and lane == 0:
        for k in static(range(P.nstate)):
            stored[k][item] = carry[k]


@inline
def fold_on(P, state, some):
    """A state joined by some more, in order."""
    result = [state[k] for k in static(range(P.nstate))]
    for u in static(range(EACH)):
        keep(P, result, merged(P, result, some[u]))
    return result


# ------------------------------------------------------------------------------------ tiles
@inline
def spot(P, u, t):
    """The line and the column in a tile of a thread's element number u."""
    e = P.I(u) * WARP + t
    g = e // P.tile
    return g, e - g * P.tile


@native
def scan_tiles(words: ptr[i64], *, P) -> void:
    """Words as those of ``scan_grid``."""
    own = static(P.own_words)
    lines, n = P.I(words[own]), P.I(words[own + 1])
    L = static(P.form.lines)
    R = static(P.form.run)
    t = P.I(thread())
    start = P.I(block()) * L
    places = [operand_place(P, words, k) for k in static(range(P.nops))]
    steps = [P.I(words[own + 4 + k]) for k in static(range(P.nops))]
    mine = min(start + min(t, L - 1), lines - 1)
    begins = [shared(P.I, L) for k in static(range(P.nops))]
    own_at = offsets_of(P, words, static(own + 4 + P.nops), P.form.dims, P.nops, mine)
    if t < L:
        for k in static(range(P.nops)):
            begins[k][t] = own_at[k]
    room = [shared(T, static(L * P.row)) for T in static(P.state_types)]
    if R > 1:
        joined = [shared(T, static(TILE // R)) for T in static(P.state_types)]
    else:
        joined = room
    carry = fresh_state(P)
    barrier()
    base = P.I(0)
    while base < n:
        for u in range(0, static(TILE // WARP), TILES_AT_ONCE):
            for v in static(range(TILES_AT_ONCE)):
                g, c = spot(P, u + v, t)
                at = [begins[k][g] for k in static(range(P.nops))]
                state = element_state(P, words, places, at, steps, n, min(base + c, n - 1))
                for k in static(range(P.nstate)):
                    room[k][g * P.row + c] = state[k]
        barrier()
        if R > 1:
            join_runs(P, room, t)
            barrier()
            if t < L:
                walk_runs(P, room, joined, t, carry)
        else:
            if t < L:
                walk_line(P, room, t, carry)
        barrier()
        for u in range(0, static(TILE // WARP), TILES_AT_ONCE):
            for v in static(range(TILES_AT_ONCE)):
                g, c = spot(P, u + v, t)
                state = [room[k][g * P.row + c] for k in static(range(P.nstate))]
                if R > 1:
                    r = (g * P.tile + c) // R
                    state = merged(P, [joined[k][r] for k in static(range(P.nstate))], state)
                if start + g < lines and base + c < n:
                    at = [begins[k][g] for k in static(range(P.nops))]
                    write_result(P, places, at, steps, n, base + c, state)
        barrier()
        base += P.tile


@inline
def walk_line(P, room, line, carry):
    """The states of a line in the tile become running ones, some read ahead at a time."""
    for c in range(0, P.tile, TILES_AT_ONCE):
        at = line * P.row + P.I(c)
        some = [
            [room[k][at + u] for k in static(range(P.nstate))]
            for u in static(range(TILES_AT_ONCE))
        ]  # fmt: skip
        for u in static(range(TILES_AT_ONCE)):
            keep(P, carry, merged(P, carry, some[u]))
            for k in static(range(P.nstate)):
                room[k][at + u] = carry[k]


@inline
def join_runs(P, room, t):
    """Running states within each run of neighbours."""
    R = static(P.form.run)
    for q in range(0, static(TILE // R), WARP):
        e = (P.I(q) + t) * R
        g = e // P.tile
        at = g * P.row + (e - g * P.tile)
        state = [room[k][at] for k in static(range(P.nstate))]
        for u in static(range(1, R)):
            keep(P, state, merged(P, state, [room[k][at + u] for k in static(range(P.nstate))]))
            for k in static(range(P.nstate)):
                room[k][at + u] = state[k]


@inline
def walk_runs(P, room, joined, line, carry):
    """What comes before each run of a line."""
    R = static(P.form.run)
    for r in range(static(P.tile // R)):
        at = line * static(P.tile // R) + P.I(r)
        for k in static(range(P.nstate)):
            joined[k][at] = carry[k]
        last = line * P.row + P.I(r) * R + (R - 1)
        keep(P, carry, merged(P, carry, [room[k][last] for k in static(range(P.nstate))]))


# ------------------------------------------------------------------------------------ planning
def plan_scan(what: Scan, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    if any(not isinstance(i, Layout) for i in ins):
        raise Unsupported("a scan of numbers")
    operands = [*outs, *ins]
    if not outs[0].numel:
        return GridPlan(())
    fold = fold_in_parts(what.start, what.lift, what.merge, what.finish, outs, ins)
    shape = outs[0].shape or (1,)
    strides = [tuple(o.strides) or (1,) for o in operands]
    n, steps = shape[what.dim], [s[what.dim] for s in strides]
    others = [d for d in range(len(shape)) if d != what.dim % len(shape)]
    guide = len(outs) if any(strides[len(outs)]) else 0
    others.sort(key=lambda d: -abs(strides[guide][d]))
    sizes, columns = collapse([shape[d] for d in others], [[s[d] for d in others] for s in strides])
    lines = math.prod(sizes)
    near = bool(sizes) and 0 < abs(columns[guide][-1]) < abs(steps[guide])
    form, parts = _form_of(what.run, n, lines, near, len(sizes))
    if form.lines and _shared_bytes(fold, form, len(operands)) > MOST_SHARED:
        form = ScanForm(1, "whole", len(sizes))
    each = -(-n // parts)
    each = -(-each // (form.team * EACH)) * (form.team * EACH)
    parts = -(-n // each)
    own = (lines, n, parts, each, *steps, *dim_words(sizes, columns))
    if len(sizes) > MOST_DIMS or len(own) + len(operands) + len(fold[0]) > PARAMETER_WORDS:
        raise Unsupported(f"{len(sizes)} dims of {len(operands)} operands")
    index = index_type(operands, lines * (n + TILE))

    def step(form: ScanForm, items: int, states: tuple[int, ...] = ()) -> GridStep:
        starts = tuple([(type(s), float(s).hex()) for s in fold[0]])
        types = tuple([o.dtype for o in operands])
        key = starts, fold, types, len(outs), index, form, what.reverse
        template = kept(
            _templates, key, lambda _: ScanGrid(fold, outs, ins, index, form, what.reverse),
            MOST_KEPT,
        )  # fmt: skip
        per_block = form.lines or template.threads // form.team
        return GridStep(
            scan_tiles if form.lines else scan_grid, {"P": template},
            blocks_for(items, per_block), template.threads,
            (*range(len(operands)), *states), own,
        )  # fmt: skip

    if parts == 1 or form.lines:
        return GridPlan((step(form, lines),))
    kinds = [TYPES[e.dtype.name] for e in body_of(fold[1]).exprs]
    states = tuple(range(len(operands), len(operands) + len(kinds)))
    join = replace(form, stage="join", team=1 if parts <= WARP else WARP)
    return GridPlan(
        (
            step(replace(form, stage="parts"), lines * parts, states),
            step(join, lines, states),
            step(replace(form, stage="after"), lines * parts, states),
        ),
        tuple([lines * parts * t.size for t in kinds]),
    )


def _form_of(run: int, n: int, lines: int, near: bool, dims: int) -> tuple[ScanForm, int]:
    """The form of a scan's kernels, and the parts of a line. ``near``: lines lie side by side."""
    alone = ScanForm(1, "whole", dims)
    if run:
        if n <= EACH or (near and lines >= 2048):
            return alone, 1
        together = WARP if lines >= ENOUGH or n <= TILE // WARP else 4 if lines >= 256 else 1
        runs = run & -run if run <= 16 else 16
        return ScanForm(WARP, "whole", dims, together, runs), 1
    if n <= SHORT or (near and lines >= WARP):
        parts = min(ENOUGH * WARP // lines, n // 64) if lines < ENOUGH * 8 else 1
        return alone, max(parts, 1)
    if n <= TILE // WARP * 2 and lines >= 1024:
        return ScanForm(WARP, "whole", dims, WARP), 1
    return ScanForm(WARP, "whole", dims), max(min(ENOUGH // lines, n // (8 * EACH * WARP)), 1)


def _shared_bytes(fold: Any, form: ScanForm, operands: int) -> int:
    states: int = sum([max(e.dtype.itemsize, 1) for e in fold[1]])
    room = form.lines * (TILE // form.lines + 1) + (TILE // form.run if form.run > 1 else 0)
    return states * room + 8 * form.lines * operands + 16 * (2 * len(fold[1]) + operands)


_templates: dict[Any, ScanGrid] = {}
