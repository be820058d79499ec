"""The reduce template: folds elements into states, in vectors, in blocks, on all threads.

Two shapes of the same work. *Rows*: the input's closest elements are folded together; each of some
accumulators is a vector, folded to one state at the end of the row. *Columns*: the closest elements
belong to different results; a strip of results is accumulated side by side while rows go by.

Sums stay accurate because they are cascades: of `CASCADE` elements, of as many such sums, and so on
for some levels. When there are few results and many elements, a row is cut into segments that
threads fold apart; their number depends on the shape alone, so the result does not depend on the
number of threads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse_dims
from antorcha.core.memo import kept
from antorcha.devices.complexes import fold_in_parts, type_or_pair
from antorcha.devices.cpu.template import (
    PARTS,
    THREAD,
    Template,
    Work,
    advance,
    inputs_at,
    kinds_of,
    lanes_of,
    launch,
    load_inputs,
    odometer,
    outputs_at,
    repeated,
    run_job,
    words_at,
    words_of,
    work_of,
)
from antorcha.devices.emit import MOST_KEPT, TYPES, Unsupported, body_of, evaluate
from antorcha.devices.numpy_semantics.host import results_of
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, Reduce
from antorcha.lang.native import (
    first,
    i64,
    inline,
    lanes,
    local,
    native,
    ptr,
    raw,
    select,
    shuffle,
    static,
    struct,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

CASCADE = 16  # elements folded into an accumulator, and accumulators into one of the next level
LEVELS = 4  # of sums of sums, at most
STRIP = 1024  # results accumulated side by side
FEW, FEW_PLACES = 24, 64  # elements of a result (with their places) that do not fill a row
MANY = 16  # results that are enough to be accumulated side by side


class ReduceTemplate(Template):
    """What a reduction is compiled for."""

    def __init__(self, exprs: Any, outs: Sequence[Ty], ins: Sequence[Ty], kinds: str) -> None:
        super().__init__(outs, ins, "", kinds)
        self.start, lift, merge, finish, append = exprs
        self.lift, self.merge, self.finish = body_of(lift), body_of(merge), body_of(finish)
        self.append = body_of(append) if append else self.merge
        self.state_types = [TYPES[e.dtype.name] for e in self.lift.exprs]
        self.nstate = len(self.state_types)
        self.used = self.reads(self.lift)
        self.needs_position = self.nin in E.inputs_used(*self.lift.exprs)
        self.chain = CASCADE**2 if self.needs_position else CASCADE  # places do not get less exact
        self.width = lanes_of(max(self.lift.lanes, self.merge.lanes))
        self.unroll = 4 if self.lift.weight + self.append.weight <= 12 else 2

    def __native_key__(self) -> str:
        start = ",".join([float(s).hex() for s in self.start])
        states = ",".join(t.name for t in self.state_types)
        return (
            f"{self.lift.key}|{self.merge.key}|{self.finish.key}|{self.append.key}|{start}|{states}|"
            f"{self.operands_key()}|{self.unroll}"
        )


# Description words: see ``describe``.
@struct
class FoldShape:
    rows: i64  # results
    dims: i64  # kept dims
    n: i64  # elements along the inner reduced dim (rows) or results along the inner kept one
    folds: i64  # times the inner dim is gone through for a result
    fold_dims: i64
    count: i64  # elements of one result
    parts: i64  # segments that a row is cut into
    strips: i64  # strips of the inner kept dim (columns)


SHAPE = 8  # words of a Shape


@inline
def described(P, desc):
    """The words of the rows form: Shape, the inputs' inner steps, where the kept and the reduced
    dims begin."""
    shape = ptr[FoldShape](desc)
    kept = desc + (SHAPE + P.nin)
    return shape, words_at(desc, SHAPE, P.nin), kept, kept + shape.dims * (1 + P.nops)


@inline
def fresh_state(P):
    """The state of no elements, in every lane."""
    return [vec[P.state_types[k], P.width](P.start[k]) for k in static(range(P.nstate))]


@inline
def merged(P, a, b):
    return evaluate(P.merge, a + b, P.width)


@inline
def appended(P, a, b):
    """The same where b is of elements after a's."""
    return evaluate(P.append, a + b, P.width)


@inline
def keep(P, state, result):
    """state[:] = made (a list that lives through a loop stays the same list)."""
    for k in static(range(P.nstate)):
        state[k] = result[k]


@inline
def lifted(P, ins, fixed, steps, at, position, mask):
    """The states of ``width`` elements."""
    values = load_inputs(P, P.used, ins, fixed, steps, at, mask)
    if P.needs_position:
        return evaluate(P.lift, [*values, position], P.width)
    return evaluate(P.lift, values, P.width)


@inline
def positions(P, base):
    if P.needs_position:
        return lanes(i64, P.width) + base
    return None


@inline
def fold_segment(P, ins, fixed, steps, base, lo, hi):
    """Elements lo..hi of a row folded into one vector of states."""
    W = static(P.width)
    many = static(P.width * P.unroll * P.chain)
    total, middle = fresh_state(P), fresh_state(P)
    full = lo + many * CASCADE
    for block in range(lo, hi, many):
        if block == full:
            keep(P, total, merged(P, total, middle))
            keep(P, middle, fresh_state(P))
            full = full + many * CASCADE
        end = min(block + many, hi)
        whole = block + (end - block) // (W * P.unroll) * (W * P.unroll)
        acc = [fresh_state(P) for u in static(range(P.unroll))]
        for i in range(block, whole, W * P.unroll):
            for u in static(range(P.unroll)):
                one = lifted(P, ins, fixed, steps, i + u * W, positions(P, base + i + u * W), None)
                keep(P, acc[u], appended(P, acc[u], one))
        for i in range(whole, end, W):
            mask = first(W, end - i)
            one = lifted(P, ins, fixed, steps, i, positions(P, base + i), mask)
            more = appended(P, acc[0], one)
            keep(P, acc[0], [select(mask, more[k], acc[0][k]) for k in static(range(P.nstate))])
        state = acc[0]
        for u in static(range(1, P.unroll)):
            state = merged(P, state, acc[u])
        keep(P, middle, merged(P, middle, state))
    return merged(P, total, middle)


@inline
def fold_lanes(P, state):
    """The lanes of a vector of states folded; the result is in lane 0."""
    for step in static(halves(P.width)):
        other = [
            shuffle(s, None, [k + step if k < step else -1 for k in range(P.width)])
            for s in static(state)
        ]
        state = merged(P, state, other)
    return state


def halves(width: int) -> list[int]:
    """16 -> 8, 4, 2, 1."""
    found = []
    while width > 1:
        width //= 2
        found.append(width)
    return found


@inline
def fold_row(P, ins, steps, shape, fold_words, lo, hi):
    """A result's elements, from fold position lo to hi, as a vector of states. The inner dim is
    gone through once for each position of the outer reduced dims."""
    n = shape.n
    total = fresh_state(P)
    q, begin = i64(0), lo
    if lo >= n:  # (a division takes as long as a short row)
        q = lo // n
        begin = lo - q * n
    left = hi - lo
    while left > 0:
        end = min(n, begin + left)
        _index, offset = odometer(P.nin, fold_words, shape.fold_dims, q)
        here = [ins[k] + offset[k] for k in static(range(P.nin))]
        one = fold_segment(P, here, repeated(P, here), steps, q * n, begin, end)
        keep(P, total, merged(P, total, one))
        left -= end - begin
        q += 1
        begin = i64(0)
    return total


@inline
def finish_row(P, bufs, offset, state, shape):
    """Writes a row's results from the states in lane 0."""
    count = vec[i64, P.width](shape.count)
    results = evaluate(P.finish, [*state, count], P.width)
    outs = outputs_at(P, bufs, offset)
    for k in static(range(P.nout)):
        put_result(P, k, outs[k], results[k], 0)


@inline
def put_result(P, k, place, results, lane):
    """Writes a lane of what output k is."""
    T = static(P.out_parts[k])
    if T is None:
        place[0] = vec[P.out_types[k], P.width](results)[lane]
    else:
        parts = ptr[T](place)
        parts[0] = vec[T, P.width](results[0])[lane]
        parts[1] = vec[T, P.width](results[1])[lane]


@inline
def slots_of(P, partial):
    """Where the parts' folded states stand, an array for each of a state's values."""
    return [ptr[P.state_types[k]](partial + k * (8 * PARTS)) for k in static(range(P.nstate))]


@native
def rows_job(r0: i64, r1: i64, args: raw, *, P) -> void:
    """Results r0..r1, each from its whole row."""
    work = ptr[Work](args)
    shape, steps, kept, fold_words = described(P, work.desc)
    index, offset = odometer(P.nops, kept, shape.dims, r0)
    for _r in range(r0, r1):
        ins = inputs_at(P, work.bufs, offset)
        state = fold_row(P, ins, steps, shape, fold_words, i64(0), shape.n * shape.folds)
        finish_row(P, work.bufs, offset, fold_lanes(P, state), shape)
        advance(P.nops, kept, shape.dims, index, offset)


@native
def parts_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Segments u0..u1 of all rows: each leaves its folded state in ``partial``."""
    work = ptr[Work](args)
    shape, steps, kept, fold_words = described(P, work.desc)
    elements = shape.n * shape.folds
    each = (elements + shape.parts - 1) // shape.parts
    for u in range(u0, u1):
        r = u // shape.parts
        lo = (u - r * shape.parts) * each
        _index, offset = odometer(P.nops, kept, shape.dims, r)
        ins = inputs_at(P, work.bufs, offset)
        hi = min(lo + each, elements)
        state = fold_lanes(P, fold_row(P, ins, steps, shape, fold_words, min(lo, hi), hi))
        slots = slots_of(P, work.partial)
        for k in static(range(P.nstate)):
            slots[k][u] = state[k][0]


@native
def reduce_rows(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """The rows form: see the module's docstring."""
    work = work_of(bufs, desc)
    shape = ptr[FoldShape](desc)
    elements = max(shape.n * shape.folds, 1)
    if shape.parts <= 1:
        run_job(P, rows_job, work, shape.rows, max(THREAD // elements, 1))
        return 0
    partial = local(i64, PARTS * P.nstate)
    work.partial = raw(partial)
    run_job(P, parts_job, work, shape.rows * shape.parts, i64(1))
    _shape, _steps, kept, _words = described(P, desc)
    slots = slots_of(P, raw(partial))
    for r in range(shape.rows):
        first = r * shape.parts
        apart = i64(1)
        # in pairs: one after the other would round as often as there are
        while apart < shape.parts:
            for s in range(first, first + shape.parts - apart, 2 * apart):
                both = merged(P, part_of(P, slots, s), part_of(P, slots, s + apart))
                for k in static(range(P.nstate)):
                    slots[k][s] = both[k][0]
            apart = 2 * apart
        _index, offset = odometer(P.nops, kept, shape.dims, r)
        finish_row(P, bufs, offset, part_of(P, slots, first), shape)
    return 0


@inline
def part_of(P, slots, s):
    """A part's folded state, as vectors."""
    return [vec[P.state_types[k], P.width](slots[k][s]) for k in static(range(P.nstate))]


# ------------------------------------------------------------------------------------- columns
@inline
def loaded(P, strip, i):
    """A vector of the states that stand side by side in a strip."""
    return [vload(strip[k] + i, P.width) for k in static(range(P.nstate))]


@inline
def put(P, strip, i, states):
    """Writes a vector of states to its place in a strip."""
    for k in static(range(P.nstate)):
        vstore(strip[k] + i, states[k])


@inline
def lifted_row(P, ins, offset, steps, q, at, mask):
    """The states of ``width`` elements of row q, whose inputs lie so far on, from `at` on."""
    here = [ins[k] + offset[k] for k in static(range(P.nin))]
    position = None
    if P.needs_position:
        position = vec[i64, P.width](q)
    return lifted(P, here, repeated(P, here), steps, at, position, mask)


@inline
def next_row(P, shape, steps, fold_words, index, offset, lo):
    """Where the inputs of a row begin, from which `index` and `offset` go on to the next one."""
    here = [offset[k] + lo * steps[k] for k in static(range(P.nin))]
    advance(P.nin, fold_words, shape.fold_dims, index, offset)
    return here


@inline
def in_order(P, states):
    """States one after another as one, in pairs: neighbours do not wait for each other."""
    many = static(len(states))
    if many == 1:
        return states[0]
    return appended(P, in_order(P, states[: many // 2]), in_order(P, states[many // 2 :]))


@inline
def fold_together(
    P, ins, steps, shape, fold_words, acc, rows, index, offset, lo, results, mask, many
):  # fmt: skip
    """Rows from the first on, so `many` at a time, folded into some results' accumulators: one is
    read and written once for all of them. Gives the row after the last one."""
    q, end = rows
    begin, stop = results
    while q + many <= end:
        at = [next_row(P, shape, steps, fold_words, index, offset, lo) for _ in static(range(many))]
        for i in range(begin, stop, P.width):
            states = [lifted_row(P, ins, at[r], steps, q + r, i, mask) for r in static(range(many))]
            put(P, acc, i, appended(P, loaded(P, acc, i), in_order(P, states)))
        q += many
    return q


@inline
def fold_results(P, ins, steps, shape, fold_words, acc, q0, q1, lo, results, mask):
    """Rows q0..q1 folded into the accumulators of some results: whole vectors, or the mask's."""
    index, offset = odometer(P.nin, fold_words, shape.fold_dims, q0)
    q = q0 + 0
    # few rows one after the other: so they are added in other libraries, too, to the last bit
    together = q1 if q1 - q0 >= CASCADE else q0
    for many, end in static(((P.unroll, together), (1, q1))):
        q = fold_together(
            P, ins, steps, shape, fold_words, acc, (q, end), index, offset, lo, results, mask, many
        )


@inline
def fold_strip(P, ins, steps, shape, fold_words, acc, q0, q1, lo, m):
    """Rows q0..q1 folded into the strip of accumulators: m results from the inner kept index lo."""
    whole = m // P.width * P.width
    if whole > 0:
        fold_results(P, ins, steps, shape, fold_words, acc, q0, q1, lo, (i64(0), whole), None)
    if whole < m:
        few = first(P.width, m - whole)
        fold_results(P, ins, steps, shape, fold_words, acc, q0, q1, lo, (whole, m), few)


@inline
def clear(P, acc, m):
    for i in range(0, m, P.width):
        put(P, acc, i, fresh_state(P))


@inline
def strip_at(P, strips, level):
    """The accumulators of a level of the cascade."""
    return [strips[k] + level * (STRIP + 64) for k in static(range(P.nstate))]


@inline
def move_up(P, strips, level, m):
    """Merges a level of the cascade into the next one, and clears it."""
    strip, above = strip_at(P, strips, level), strip_at(P, strips, level + 1)
    for i in range(0, m, P.width):
        put(P, above, i, merged(P, loaded(P, above, i), loaded(P, strip, i)))
    clear(P, strip, m)


@native
def columns_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1: a strip of results each, which as many levels have as the rows need."""
    work = ptr[Work](args)
    shape = ptr[FoldShape](work.desc)
    steps = words_at(work.desc, SHAPE, P.nin)
    out_steps = work.desc + (SHAPE + P.nin)
    kept = out_steps + P.nout
    fold_words = kept + shape.dims * (1 + P.nops)
    strips = [local(P.state_types[k], LEVELS * (STRIP + 64)) for k in static(range(P.nstate))]
    top, reach = i64(0), i64(CASCADE)
    while top < LEVELS - 1 and reach < shape.folds:
        top, reach = top + 1, reach * CASCADE
    total = strip_at(P, strips, top)
    for u in range(u0, u1):
        r = u // shape.strips
        lo = (u - r * shape.strips) * STRIP
        m = min(shape.n - lo, STRIP)
        _index, offset = odometer(P.nops, kept, shape.dims, r)
        outs, ins = outputs_at(P, work.bufs, offset), inputs_at(P, work.bufs, offset)
        for level in range(top + 1):
            clear(P, strip_at(P, strips, level), m)
        for q in range(0, shape.folds, CASCADE):
            end = min(q + CASCADE, shape.folds)
            fold_strip(P, ins, steps, shape, fold_words, strips, q, end, lo, m)
            level, sums = i64(0), q // CASCADE + 1
            while level < top:
                move_up(P, strips, level, m)
                level = level + 1 if sums % CASCADE == 0 else top
                sums = sums // CASCADE
        for level in range(1, top):
            move_up(P, strips, level, m)
        count = vec[i64, P.width](shape.count)
        for i in range(0, m, P.width):
            state = loaded(P, total, i)
            results = evaluate(P.finish, [*state, count], P.width)
            for k in static(range(P.nout)):
                for j in static(range(P.width)):
                    if i + j < m:
                        place = outs[k] + (lo + i + j) * out_steps[k]
                        put_result(P, k, place, results[k], j)


@native
def reduce_columns(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """The columns form: see the module's docstring."""
    work = work_of(bufs, desc)
    shape = ptr[FoldShape](desc)
    each = max(shape.folds * min(shape.n, STRIP), 1)
    run_job(P, columns_job, work, shape.rows * shape.strips, max(THREAD // each, 1))
    return 0


# ------------------------------------------------------------------------------------ planning
def compile_reduce(what: Reduce, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    if any(not isinstance(i, Layout) for i in ins):
        raise Unsupported("a reduction of numbers")
    layout: Layout = ins[0]
    shape = layout.shape
    ops = [*outs, *ins]
    real = [d for d in range(layout.ndim) if shape[d] != 1]
    many = any(shape[d] >= MANY for d in real if layout.strides[d])
    # the closest elements are the inner ones; the same ones again are so where others are few
    real.sort(key=lambda d: (layout.strides[d] != 0 or not many, -abs(layout.strides[d]), d))
    folded = [d for d in real if d in what.dims]
    kept_dims = [d for d in real if d not in what.dims]
    count = math.prod([shape[d] for d in what.dims])
    few = FEW_PLACES if _uses_position(what.lift, len(ins)) else FEW
    columns = columns_of(layout, kept_dims, folded, count, few)
    plan = _columns if columns else _rows
    words, kinds, kernel = plan(what, layout, ops, columns or kept_dims, folded, count, len(outs))
    exprs = fold_in_parts(what.start, what.lift, what.merge, what.finish, outs, ins)
    exprs = (*exprs, what.append)  # (of real numbers only: complex ones have no order)
    outs_of = tuple([type_or_pair(o) for o in outs])
    ins_of = tuple([type_or_pair(i) for i in ins])
    starts = tuple([(type(s), float(s).hex()) for s in exprs[0]])  # 0.0 and -0.0 are not one
    key = (kernel, starts, exprs, outs_of, ins_of, kinds)
    spec = kept(_kernels, key, _kernel_for, MOST_KEPT)
    sizes = (N, COUNT) if len(what.dims) == layout.ndim and len(words) == SHAPE + len(ins) else ()
    return launch(spec, words, results_of(what, outs), ins, layout.numel, what, sizes=sizes)


def columns_of(
    layout: Layout, kept_dims: list[int], folded: list[int], count: int, few: int
) -> list[int]:
    """The kept dims, last the one whose neighbours are accumulated side by side, which is any that
    has enough of them where results have few elements; none: rows are folded."""
    if not layout.numel or not kept_dims:
        return []
    enough = [d for d in kept_dims if layout.shape[d] >= MANY]
    if enough and count <= few:
        return [*[d for d in kept_dims if d != enough[-1]], enough[-1]]
    step = abs(layout.strides[folded[-1]]) if folded else 2
    thin = 2 * layout.shape[kept_dims[-1]] < MANY and step < MANY <= count  # rows' steps are short
    apart = step > 1 or bool(step == 0 and enough and count < MANY * MANY)
    return kept_dims if layout.strides[kept_dims[-1]] == 1 and apart and not thin else []


N, COUNT = 2, 5
"""Where `Shape` has the size, where all elements are one row."""
_kernels: dict[Any, Any] = {}


def _kernel_for(key: Any) -> Any:
    """The kernel of a fold over operands of these types and kinds; the shape is data to it."""
    kernel, _, exprs, outs, ins, kinds = key
    return kernel.spec(P=ReduceTemplate(exprs, outs, ins, kinds))


@functools.lru_cache(MOST_KEPT)
def _uses_position(lift: tuple[Any, ...], operands: int) -> bool:
    return operands in E.inputs_used(*lift)


def _rows(
    what: Reduce, layout: Layout, ops: list[Any], kept_dims: list[int], folded: list[int],
    count: int, nout: int,
) -> tuple[list[int], str, Any]:  # fmt: skip
    """Words: Shape (8), inner steps of the inputs, kept dims (size, strides of all), reduced dims
    (size, strides of the inputs)."""
    shape = layout.shape
    # positions count along the reduced dims in their own order, so that order is kept when asked
    if _uses_position(what.lift, len(ops) - nout):
        folded = sorted(folded)
    kept_sizes, kept_columns = collapse_dims(sorted(kept_dims), ops, shape)
    ins = ops[nout:]
    sizes, columns = collapse_dims(folded, ins, shape)
    if not sizes or layout.numel == count == 0:
        sizes, columns = [int(count != 0)], [[1] for _ in ins]
    rows = 0 if layout.numel == 0 and count else math.prod(kept_sizes)
    folds = math.prod(sizes[:-1])
    steps = [c[-1] for c in columns]
    elements = sizes[-1] * folds
    parts = 1
    if 0 < rows <= 16 and elements >= 2 * THREAD:
        parts = min(max(elements // THREAD, 1), PARTS // rows)
    words = [rows, len(kept_sizes), sizes[-1], folds, len(sizes) - 1, count, parts, 1, *steps]
    words += words_of(kept_sizes, kept_columns)
    words += words_of(sizes[:-1], [c[:-1] for c in columns])
    return words, kinds_of(steps), reduce_rows


def _columns(
    what: Reduce, layout: Layout, ops: list[Any], kept_dims: list[int], folded: list[int],
    count: int, nout: int,
) -> tuple[list[int], str, Any]:  # fmt: skip
    """Words: Shape, inner steps of the inputs and of the outputs, kept dims but the inner one,
    reduced dims."""
    ins = ops[nout:]
    inner = kept_dims[-1]
    outer = sorted([d for d in kept_dims if d != inner])
    kept_sizes, kept_columns = collapse_dims([*outer, inner], ops, layout.shape)
    sizes, columns = collapse_dims(sorted(folded), ins, layout.shape)
    n = kept_sizes[-1]
    steps = [c[-1] for c in kept_columns]
    words = [
        math.prod(kept_sizes[:-1]), len(kept_sizes) - 1, n, math.prod(sizes), len(sizes), count, 1,
        -(-n // STRIP), *steps[nout:], *steps[:nout],
    ]  # fmt: skip
    words += words_of(kept_sizes[:-1], [c[:-1] for c in kept_columns]) + words_of(sizes, columns)
    return words, kinds_of(steps[nout:]), reduce_columns
