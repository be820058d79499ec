"""Row programs on a GPU: a row is the work of a team of threads.

A team has as many threads as let each keep its elements in registers through all passes: one for
the shortest rows, some lanes of a warp, a warp, or a block. What one pass has computed from such
elements and another needs (the exponentials of a softmax) is then one value to the compiler. Longer
rows are read again by each pass, from the cache where they fit, and values are computed again.

*Lines*: the elements of a row follow one another, and so do the threads of a team. *Columns*: rows
lie side by side; neighbouring threads have neighbouring rows, and a team is a thread of each warp.

Where rows are few and long they are cut into parts, and each pass is a kernel: it folds the parts'
states of the passes before it, and leaves one for each part. The order of additions depends on the
shapes alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.complexes import dtype_in_memory
from antorcha.devices.emit import MOST_KEPT, Unsupported, evaluate
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
from antorcha.devices.gpu.row_template import RowsForm, RowsGrid, RowStages
from antorcha.lang.kernels import Rows
from antorcha.lang.native import i64, inline, native, ptr, select, static, void
from antorcha.lang.native.grid import (
    PARAMETER_WORDS,
    WARP,
    barrier,
    block,
    device_pointer,
    shared,
    swap_lanes,
    thread,
)
from antorcha.runtime.memory.layout import Layout

ROOM = 16  # 32-bit registers that a thread gives to the elements it keeps
MOST_HELD = 8  # elements that a thread keeps
EACH = 4  # elements of a thread at once, where it goes along the row
TEAMS = (1, 8, 32, 128, 256, 512, 1024)
ACROSS = 32  # neighbouring rows of a block in the columns form
DOWN = 8  # threads of one of them
ENOUGH = 256  # blocks that keep a GPU busy
CUT = 4096  # elements of a part, at least
MOST_STATES = 128  # values that a program's reductions have, where warps meet in shared memory


# ------------------------------------------------------------------------------------ elements
@inline
def values_at(P, reads, words, places, at, steps, fixed, i):
    """The inputs at element i of the row."""
    return [
        (
            load_element(P, words, P.nout + k, places[P.nout + k],
                         at[P.nout + k] + i * steps[P.nout + k])
            if reads[k] else None
        ) if P.is_row[k] else fixed[k]
        for k in static(range(P.nin))
    ]  # fmt: skip


@inline
def chunk_of(P, reads, words, places, at, steps, fixed, i, hi, count):
    """The inputs at elements i, i + team, .. of the row; past its end those of its last one, which
    are not counted."""
    return [
        values_at(
            P, reads, words, places, at, steps, fixed, min(i + static(u * P.form.team), hi - 1)
        )
        for u in static(range(count))
    ]


@inline
def seams_of(P, seams):
    """What reductions and hoisted expressions gave, as inputs of a body."""
    return [
        seams[part[0]] if len(part) == 1 else [seams[part[0]], seams[part[1]]]
        for part in static(P.seam_parts)
    ]


@inline
def run_chunk(P, S, chunk, places, at, steps, seams, state, i, hi, n, inside):
    """A pass over some elements: they join the state, and their outputs are written."""
    known = seams_of(P, seams)
    count = static(len(S.starts))
    for u in static(range(len(chunk))):
        here = i + static(u * P.form.team)
        counts = here < hi
        result = evaluate(S.work, chunk[u] + known + [i64(here), i64(n)], 0)
        if count:
            both = evaluate(S.join, state + [result[j] for j in static(range(count))], 0)
            for j in static(range(count)):
                state[j] = select(counts, both[j], state[j])
        if static(len(S.outs) > 0) and inside and counts:
            for j in static(range(len(S.outs))):
                k = static(S.outs[j])
                store_element(P, k, places[k], at[k] + here * steps[k], result[count + j])


@inline
def fresh_state(S):
    """The state of no elements."""
    return [S.types[j](S.starts[j]) for j in static(range(len(S.starts)))]


# ------------------------------------------------------------------------------------ teams
@inline
def join_into(S, state, other):
    both = evaluate(S.join, state + other, 0)
    for j in static(range(len(S.starts))):
        state[j] = both[j]


@inline
def fold_lanes(S, state, masks):
    """The states of lanes whose numbers differ in these bits; the whole is in each. The lower lane
    comes first, so that all have the same, to the sign of a zero."""
    for mask in static(masks):
        upper = thread() & mask != 0
        other = [swap_lanes(state[j], mask) for j in static(range(len(S.starts)))]
        low = [select(upper, other[j], state[j]) for j in static(range(len(S.starts)))]
        high = [select(upper, state[j], other[j]) for j in static(range(len(S.starts)))]
        both = evaluate(S.join, low + high, 0)
        for j in static(range(len(S.starts))):
            state[j] = both[j]


@inline
def fold_team(P, S, state):
    """The states of a row's threads; the whole is in each of them."""
    if P.form.columns:
        if P.form.team > 1:
            fold_columns(P, S, state)
        return None
    fold_lanes(S, state, static(halves(min(P.form.team, WARP))))
    if P.form.team > WARP:
        warps = static(P.form.team // WARP)
        room = [shared(S.types[j], warps) for j in static(range(len(S.starts)))]
        t = thread()
        if t % WARP == 0:
            for j in static(range(len(S.starts))):
                room[j][t // WARP] = state[j]
        barrier()
        for j in static(range(len(S.starts))):
            state[j] = room[j][t % warps]
        fold_lanes(S, state, static(halves(warps)))
    return None


@inline
def fold_columns(P, S, state):
    """The same in the columns form: a row's threads are those of one lane number."""
    room = [shared(S.types[j], P.form.threads) for j in static(range(len(S.starts)))]
    t = thread()
    for j in static(range(len(S.starts))):
        room[j][t] = state[j]
    barrier()
    for j in static(range(len(S.starts))):
        state[j] = room[j][t % ACROSS]
    for w in static(range(1, P.form.team)):
        join_into(
            S, state, [room[j][t % ACROSS + w * ACROSS] for j in static(range(len(S.starts)))]
        )


def halves(n: int) -> tuple[int, ...]:
    """n / 2, n / 4, .., 1."""
    return tuple([n >> k for k in range(1, n.bit_length())])


# ------------------------------------------------------------------------------------ passes
@inline
def hoist(P, S, fixed, seams, n):
    """What is the same along the row, before the pass."""
    if S.hoist is not None:
        found = evaluate(S.hoist, fixed + seams_of(P, seams) + [None, i64(n)], 0)
        put_seams(S.hoist_parts, seams, found)


@inline
def put_seams(parts, seams, found):
    """Results, of which complex ones are pairs, where ``parts`` says."""
    for k in static(range(len(parts))):
        if len(parts[k]) == 1:
            seams[parts[k][0]] = found[k]
        else:
            seams[parts[k][0]] = found[k][0]
            seams[parts[k][1]] = found[k][1]


@inline
def keep_totals(S, seams, state):
    """The results of the pass's reductions, from its whole state."""
    for j in static(range(len(S.gives))):
        seams[S.gives_at + j] = state[S.gives[j]]


@inline
def partial_places(P, words, S):
    """Where the parts' states of a pass lie, an array for each of a state's values."""
    return [
        device_pointer(S.types[j], words[P.head + S.first + j])
        for j in static(range(len(S.starts)))
    ]  # fmt: skip


@inline
def join_parts(P, words, S, lane, row, rows, parts):
    """The whole state of a pass that an earlier kernel has run."""
    state = fresh_state(S)
    stored = partial_places(P, words, S)
    p = lane
    while p < parts:
        join_into(S, state, [stored[j][p * rows + row] for j in static(range(len(S.starts)))])
        p += P.form.team
    fold_team(P, S, state)
    return state


@native
def rows_grid(words: ptr[i64], *, P) -> void:
    """Words: rows, their length, parts of each, a part's length; each operand's step along the
    row; the dims before it (size, strides of all operands)."""
    own = static(P.own_words)
    rows, n = P.I(words[own]), P.I(words[own + 1])
    parts, each = P.I(words[own + 2]), P.I(words[own + 3])
    t = P.I(thread())
    per_block = static(P.form.threads // P.form.team)
    if P.form.columns:
        lane = t // per_block
        item = P.I(block()) * per_block + t % per_block
    else:
        lane = t % P.form.team
        item = P.I(block()) * per_block + t // P.form.team
    total = rows * parts
    inside = item < total
    item = min(item, total - 1)
    row, part, lo, hi = item, P.I(0), P.I(0), n
    if P.form.apart is not None:
        part = item // rows
        row = item - part * rows
        lo = part * each
        hi = min(lo + each, n)
    places = [operand_place(P, words, k) for k in static(range(P.nops))]
    steps = [P.I(words[own + 4 + k]) for k in static(range(P.nops))]
    at = offsets_of(P, words, static(own + 4 + P.nops), P.form.dims, P.nops, row)
    fixed = [
        None if P.is_row[k] or not P.used[k]
        else load_element(P, words, P.nout + k, places[P.nout + k], at[P.nout + k])
        for k in static(range(P.nin))
    ]  # fmt: skip
    seams = [T(0) for T in static(P.seam_types)]
    for S in static(P.before):
        hoist(P, S, fixed, seams, n)
        keep_totals(S, seams, join_parts(P, words, S, lane, row, rows, parts))
    first = lo + lane
    if P.form.held:
        chunk = chunk_of(P, P.used, words, places, at, steps, fixed, first, hi, P.form.held)
    for S in static(P.run):
        hoist(P, S, fixed, seams, n)
        state = fresh_state(S)
        if P.form.held:
            run_chunk(P, S, chunk, places, at, steps, seams, state, first, hi, n, inside)
        else:
            i = first
            while i < hi:
                some = chunk_of(P, S.reads, words, places, at, steps, fixed, i, hi, EACH)
                run_chunk(P, S, some, places, at, steps, seams, state, i, hi, n, inside)
                i += static(P.form.team * EACH)
        if S.starts:
            fold_team(P, S, state)
            if P.form.apart is None:
                keep_totals(S, seams, state)
            elif inside and lane == 0:
                stored = partial_places(P, words, S)
                for j in static(range(len(S.starts))):
                    stored[j][part * rows + row] = state[j]
    if P.writes_finals and inside and lane == 0 and part == 0:
        found = evaluate(P.final, fixed + seams_of(P, seams) + [None, i64(n)], 0)
        for j in static(range(len(P.finals))):
            k = static(P.finals[j])
            store_element(P, k, places[k], at[k], found[j])


# ------------------------------------------------------------------------------------ planning
def plan_rows(what: Rows, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    if any(not isinstance(i, Layout) for i in ins):
        raise Unsupported("a row program over numbers")
    operands = [*outs, *ins]
    n = what.length
    is_row = [*what.program.rows, *[i.is_row for i in what.program.inputs]]
    steps = [
        o.strides[-1] if row and (o.shape[-1] != 1 or n == 1) else 0
        for o, row in zip(operands, is_row, strict=True)
    ]
    guide = next((k for k in (*range(len(outs), len(operands)), 0) if steps[k]), 0)
    lead = max([tuple(o.shape[:-1]) for o in operands], key=len)
    rows = math.prod(lead)
    if not rows:
        return GridPlan(())
    order = sorted(range(len(lead)), key=lambda d: -abs(operands[guide].strides[d]))
    sizes, columns = collapse(
        [lead[d] for d in order], [[o.strides[d] for d in order] for o in operands]
    )
    stages = _stages_of(what, outs, ins)
    index = index_type(operands, rows * max(n, 1))
    near = abs(columns[guide][-1]) if sizes else 0
    side_by_side = n > 1 and 0 < near < abs(steps[guide]) and sizes[-1] >= ACROSS // 2
    form, parts = _form_of(stages, ins, rows, n, side_by_side, len(sizes))
    each = -(-n // parts)
    own = (rows, n, parts, each, *steps, *dim_words(sizes, columns))
    if len(sizes) > MOST_DIMS or len(own) + len(operands) + stages.states > PARAMETER_WORDS:
        raise Unsupported(f"{len(sizes)} dims of {len(operands)} operands")

    def step(form: RowsForm, temporaries: int = 0) -> GridStep:
        types = tuple([o.dtype for o in operands])
        template = kept(
            _templates, (stages.key, types, index, form),
            lambda _: RowsGrid(stages, outs, ins, index, form), MOST_KEPT,
        )  # fmt: skip
        return GridStep(
            rows_grid, {"P": template}, blocks_for(rows * parts, form.threads // form.team),
            form.threads, tuple(range(len(operands) + temporaries)), own,
        )  # fmt: skip

    if parts == 1:
        return GridPlan((step(form),))
    room = tuple([rows * parts * t.size for s in stages.stages for t in s.types])
    kernels = len(stages.stages) + bool(stages.finals and stages.stages[-1].starts)
    return GridPlan(
        tuple([step(form.replaced(apart=k), len(room)) for k in range(kernels)]), room
    )  # fmt: skip


def _form_of(
    stages: RowStages, ins: Sequence[Layout], rows: int, n: int, side_by_side: bool, dims: int
) -> tuple[RowsForm, int]:
    """How threads are given to rows, and into how many parts a row is cut."""
    registers = [max(dtype_in_memory(i).itemsize, 4) // 4 for k, i in enumerate(ins)
                 if stages.used[k] and stages.is_row[k]]  # fmt: skip
    most = max(min(MOST_HELD, ROOM // max(sum(registers), 1)), 1)
    if side_by_side:
        few = n <= most or rows >= 1 << 16 or stages.states > MOST_STATES // DOWN
        team, threads = 1 if few else DOWN, THREADS
    else:
        team = next((t for t in TEAMS if n <= t * most), 512 if n < 1 << 14 else 1024)
        team = team if stages.states <= MOST_STATES else WARP
        threads = team if team > WARP else THREADS
    blocks = -(-rows * team // threads)
    parts = min(ENOUGH // blocks, n // CUT, THREADS) if blocks < ENOUGH // 2 else 1
    if parts > 1 and stages.stages:
        if not side_by_side and team > WARP:
            team = threads = THREADS
        each = -(-n // parts)
        return RowsForm(team, threads, 0, side_by_side, dims, 0), -(-n // each)
    held = -(-n // team) if n <= team * most else 0
    held = 1 << (held - 1).bit_length() if held else 0
    return RowsForm(team, threads, held, side_by_side, dims, None), 1


def _stages_of(what: Rows, outs: Sequence[Layout], ins: Sequence[Layout]) -> RowStages:
    program = what.program
    key = (
        tuple(program.outputs), tuple([(i.dtype, i.is_row) for i in program.inputs]),
        tuple(program.rows), tuple([o.dtype for o in outs]), tuple([i.dtype for i in ins]),
    )  # fmt: skip
    return kept(_stages, key, lambda _: RowStages(program, outs, ins), MOST_KEPT)


_stages: dict[Any, RowStages] = {}
_templates: dict[Any, RowsGrid] = {}
