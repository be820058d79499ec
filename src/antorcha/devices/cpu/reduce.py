"""The reduce template: folds elements into states, in vectors, in blocks, on all threads.

Two shapes of the same work. *Rows*: the input's closest elements are folded together; each of some
accumulators is a vector, folded to one state at the end of the row. *Columns*: the closest elements
belong to different results; a strip of results is accumulated side by side while rows go by.

Sums stay accurate because elements are folded in blocks and the blocks' states are merged: the
error grows with the square root of what a plain loop's would. When there are few results and many
elements, a row is cut into segments that threads fold apart; their number depends on the shape
alone, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.emit import MOST_KEPT, TYPES, Unsupported, body_of, evaluate, type_of
from antorcha.devices.cpu.pointwise import (
    MAX_DIMS,
    advance,
    inputs_at,
    load,
    repeated,
    seek,
    slot,
    words_of,
)
from antorcha.devices.host import results_of
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, Reduce
from antorcha.lang.native import (
    address,
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
from antorcha.lang.native.machine import target
from antorcha.lang.native.types import Ty
from antorcha.loops import collapse
from antorcha.memo import kept
from antorcha.runtime.launch import make_launch
from antorcha.runtime.layout import Layout
from antorcha.runtime.pool import pool_run

BLOCK = 16384  # elements folded into one set of accumulators
STRIP = 1024  # results accumulated side by side
ROWS = 256  # rows folded into one strip of accumulators
PARTS = 512  # segments of all rows together, at most
THREAD = 32768  # elements worth waking a thread for


class Program:
    """What a reduction is compiled for."""

    __slots__ = (
        "finish", "in_kinds", "in_types", "lift", "merge", "needs_position", "nin", "nops", "nout",
        "nstate", "out_types", "start", "state_types", "unroll", "used", "width",
    )  # fmt: skip

    def __init__(self, exprs: Any, outs: list[Ty], ins: list[Ty], kinds: str) -> None:
        self.start, lift, merge, finish = exprs
        self.lift, self.merge, self.finish = body_of(lift), body_of(merge), body_of(finish)
        self.state_types = [TYPES[e.dtype.name] for e in self.lift.exprs]
        self.out_types, self.in_types, self.in_kinds = outs, ins, kinds
        self.nout, self.nin, self.nstate = len(outs), len(ins), len(self.state_types)
        self.nops = self.nout + self.nin
        used = E.inputs_used(*self.lift.exprs)
        self.used = [k in used for k in range(self.nin)]
        self.needs_position = self.nin in used
        widest = max(self.lift.lanes, self.merge.lanes)
        self.width = max(min(target().vector_bits // 8 // widest, 64), 4)
        self.unroll = 4 if self.lift.weight + self.merge.weight <= 12 else 2

    def __native_key__(self) -> str:
        types = ",".join(t.name for t in (*self.state_types, *self.out_types, *self.in_types))
        start = ",".join([float(s).hex() for s in self.start])
        return (
            f"{self.lift.key}|{self.merge.key}|{self.finish.key}|{start}|{types}|{self.in_kinds}|"
            f"{self.width}|{self.unroll}"
        )


# Description words: see ``describe``.
@struct
class Shape:
    rows: i64  # results
    dims: i64  # kept dims
    n: i64  # elements along the inner reduced dim (rows) or results along the inner kept one
    folds: i64  # times the inner dim is gone through for a result
    fold_dims: i64
    count: i64  # elements of one result
    parts: i64  # segments that a row is cut into
    strips: i64  # strips of the inner kept dim (columns)


@inline
def fresh_state(P):
    """The state of no elements, in every lane."""
    return [vec[P.state_types[k], P.width](P.start[k]) for k in static(range(P.nstate))]


@inline
def merged(P, a, b):
    return evaluate(P.merge, a + b, P.width)


@inline
def keep(P, state, made):
    """state[:] = made (a list that lives through a loop stays the same list)."""
    for k in static(range(P.nstate)):
        state[k] = made[k]


@inline
def lifted(P, ins, fixed, steps, at, position, mask):
    """The states of ``width`` elements."""
    values = [
        load(ins[k], P.in_kinds[k], fixed[k], at, steps[k], P.width, mask) if P.used[k] else None
        for k in static(range(P.nin))
    ]
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
    total = fresh_state(P)
    for block in range(lo, hi, 16384):
        end = min(block + 16384, hi)
        whole = block + (end - block) // (W * P.unroll) * (W * P.unroll)
        acc = [fresh_state(P) for u in static(range(P.unroll))]
        for i in range(block, whole, W * P.unroll):
            for u in static(range(P.unroll)):
                one = lifted(P, ins, fixed, steps, i + u * W, positions(P, base + i + u * W), None)
                keep(P, acc[u], merged(P, acc[u], one))
        for i in range(whole, end, W):
            mask = first(W, end - i)
            one = lifted(P, ins, fixed, steps, i, positions(P, base + i), mask)
            more = merged(P, acc[0], one)
            keep(P, acc[0], [select(mask, more[k], acc[0][k]) for k in static(range(P.nstate))])
        state = acc[0]
        for u in static(range(1, P.unroll)):
            state = merged(P, state, acc[u])
        keep(P, total, merged(P, total, state))
    return total


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
    index = local(i64, 12)
    offset = local(i64, P.nin)
    q, begin = i64(0), lo
    if lo >= n:  # (a division takes as long as a short row)
        q = lo // n
        begin = lo - q * n
    left = hi - lo
    while left > 0:
        end = min(n, begin + left)
        seek(P.nin, fold_words, shape.fold_dims, q, index, offset)
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
    for k in static(range(P.nout)):
        made = vec[P.out_types[k], P.width](results[k])
        out = ptr[P.out_types[k]](bufs[k]) + offset[k]
        out[0] = made[0]


@struct
class Part:
    bufs: ptr[raw]
    desc: ptr[i64]
    partial: raw


@native
def rows_job(r0: i64, r1: i64, args: raw, *, P) -> void:
    """Results r0..r1, each from its whole row."""
    work = ptr[Part](args)
    shape = ptr[Shape](work.desc)
    steps = [work.desc[8 + k] for k in static(range(P.nin))]
    kept = work.desc + (8 + P.nin)
    fold_words = kept + shape.dims * (1 + P.nops)
    index = local(i64, 12)
    offset = local(i64, P.nops)
    seek(P.nops, kept, shape.dims, r0, index, offset)
    for _r in range(r0, r1):
        ins = inputs_at(P, work.bufs, offset)
        state = fold_row(P, ins, steps, shape, fold_words, i64(0), shape.n * shape.folds)
        finish_row(P, work.bufs, offset, fold_lanes(P, state), shape)
        advance(P.nops, kept, shape.dims, index, offset)


@native
def parts_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Segments u0..u1 of all rows: each leaves its folded state in ``partial``."""
    work = ptr[Part](args)
    shape = ptr[Shape](work.desc)
    steps = [work.desc[8 + k] for k in static(range(P.nin))]
    kept = work.desc + (8 + P.nin)
    fold_words = kept + shape.dims * (1 + P.nops)
    index = local(i64, 12)
    offset = local(i64, P.nops)
    elements = shape.n * shape.folds
    each = (elements + shape.parts - 1) // shape.parts
    for u in range(u0, u1):
        r = u // shape.parts
        lo = (u - r * shape.parts) * each
        seek(P.nops, kept, shape.dims, r, index, offset)
        ins = inputs_at(P, work.bufs, offset)
        hi = min(lo + each, elements)
        state = fold_lanes(P, fold_row(P, ins, steps, shape, fold_words, min(lo, hi), hi))
        for k in static(range(P.nstate)):
            slots = ptr[P.state_types[k]](work.partial + k * 4096)
            slots[u] = state[k][0]


@native
def reduce_rows(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """The rows form: see the module's docstring."""
    work = local(Part)
    work.bufs = bufs
    work.desc = desc
    shape = ptr[Shape](desc)
    elements = max(shape.n * shape.folds, 1)
    if shape.parts <= 1:
        pool_run(address(rows_job, P=P), shape.rows, max(32768 // elements, 1), raw(work))
        return 0
    partial = local(i64, 512 * P.nstate)
    work.partial = raw(partial)
    pool_run(address(parts_job, P=P), shape.rows * shape.parts, i64(1), raw(work))
    kept = desc + (8 + P.nin)
    index = local(i64, 12)
    offset = local(i64, P.nops)
    for r in range(shape.rows):
        first = r * shape.parts
        apart = i64(1)
        # in pairs: one after the other would round as often as there are
        while apart < shape.parts:
            for s in range(first, first + shape.parts - apart, 2 * apart):
                both = merged(P, part_of(P, partial, s), part_of(P, partial, s + apart))
                for k in static(range(P.nstate)):
                    ptr[P.state_types[k]](raw(partial) + k * 4096)[s] = both[k][0]
            apart = 2 * apart
        seek(P.nops, kept, shape.dims, r, index, offset)
        finish_row(P, bufs, offset, part_of(P, partial, first), shape)
    return 0


@inline
def part_of(P, partial, s):
    """A segment's folded state, as vectors."""
    return [
        vec[P.state_types[k], P.width](ptr[P.state_types[k]](raw(partial) + k * 4096)[s])
        for k in static(range(P.nstate))
    ]


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
def fold_strip(P, ins, steps, shape, fold_words, acc, q0, q1, lo, m):
    """Rows q0..q1 folded into the strip of accumulators: m results from the inner kept index lo."""
    W = static(P.width)
    index = local(i64, 12)
    offset = local(i64, P.nin)
    seek(P.nin, fold_words, shape.fold_dims, q0, index, offset)
    for q in range(q0, q1):
        here = [ins[k] + offset[k] + lo * steps[k] for k in static(range(P.nin))]
        fixed = repeated(P, here)
        position = None
        if P.needs_position:
            position = vec[i64, W](q)
        whole = m // W * W
        for i in range(0, whole, W):
            one = lifted(P, here, fixed, steps, i, position, None)
            put(P, acc, i, merged(P, loaded(P, acc, i), one))
        for i in range(whole, m, W):
            mask = first(W, m - i)
            one = lifted(P, here, fixed, steps, i, position, mask)
            put(P, acc, i, merged(P, loaded(P, acc, i), one))
        advance(P.nin, fold_words, shape.fold_dims, index, offset)


@inline
def clear(P, acc, m):
    for i in range(0, m, P.width):
        put(P, acc, i, fresh_state(P))


@native
def columns_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1: a strip of results each."""
    work = ptr[Part](args)
    shape = ptr[Shape](work.desc)
    steps = [work.desc[8 + k] for k in static(range(P.nin))]
    out_steps = work.desc + (8 + P.nin)
    kept = out_steps + P.nout
    fold_words = kept + shape.dims * (1 + P.nops)
    index = local(i64, 12)
    offset = local(i64, P.nops)
    total = [local(P.state_types[k], 1024 + 64) for k in static(range(P.nstate))]
    acc = [local(P.state_types[k], 1024 + 64) for k in static(range(P.nstate))]
    for u in range(u0, u1):
        r = u // shape.strips
        lo = (u - r * shape.strips) * 1024
        m = min(shape.n - lo, 1024)
        seek(P.nops, kept, shape.dims, r, index, offset)
        ins = inputs_at(P, work.bufs, offset)
        clear(P, total, m)
        for q in range(0, shape.folds, 256):
            clear(P, acc, m)
            fold_strip(P, ins, steps, shape, fold_words, acc, q, min(q + 256, shape.folds), lo, m)
            for i in range(0, m, P.width):
                put(P, total, i, merged(P, loaded(P, total, i), loaded(P, acc, i)))
        count = vec[i64, P.width](shape.count)
        for i in range(0, m, P.width):
            state = loaded(P, total, i)
            results = evaluate(P.finish, [*state, count], P.width)
            for k in static(range(P.nout)):
                made = vec[P.out_types[k], P.width](results[k])
                out = ptr[P.out_types[k]](work.bufs[k]) + offset[k]
                for j in static(range(P.width)):
                    if i + j < m:
                        out[(lo + i + j) * out_steps[k]] = made[j]


@native
def reduce_columns(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """The columns form: see the module's docstring."""
    work = local(Part)
    work.bufs = bufs
    work.desc = desc
    shape = ptr[Shape](desc)
    each = max(shape.folds * min(shape.n, 1024), 1)
    pool_run(address(columns_job, P=P), shape.rows * shape.strips, max(32768 // each, 1), raw(work))
    return 0


# ------------------------------------------------------------------------------------ planning
def nested(dims: list[int], ops: list[Any], shape: Sequence[int]) -> tuple[list[int], list[Any]]:
    """Dims collapsed over operands: sizes and strides, outermost first."""
    sizes, columns = collapse([shape[d] for d in dims], [[o.strides[d] for d in dims] for o in ops])
    return list(sizes), [list(c) for c in columns]


def compile_reduce(what: Reduce, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    if any(not isinstance(i, Layout) for i in ins):
        raise Unsupported("a reduction of numbers")
    lay: Layout = ins[0]
    shape = lay.shape
    ops = [*outs, *ins]
    by_stride = sorted(range(lay.ndim), key=lambda d: (-abs(lay.strides[d]), d))
    real = [d for d in by_stride if shape[d] != 1]
    folded = [d for d in real if d in what.dims]
    kept_dims = [d for d in real if d not in what.dims]
    count = math.prod([shape[d] for d in what.dims])
    columns_form = bool(
        kept_dims and lay.numel and lay.strides[kept_dims[-1]] == 1
        and (not folded or abs(lay.strides[kept_dims[-1]]) < abs(lay.strides[folded[-1]]))
    )  # fmt: skip
    plan = _columns if columns_form else _rows
    words, kinds, kernel = plan(what, lay, ops, kept_dims, folded, count, len(outs))
    exprs = (what.start, what.lift, what.merge, what.finish)
    outs_of, ins_of = tuple([type_of(o) for o in outs]), tuple([type_of(i) for i in ins])
    starts = tuple([(type(s), float(s).hex()) for s in what.start])  # 0.0 and -0.0 are not one
    key = (kernel, starts, exprs, outs_of, ins_of, kinds)
    spec = kept(_kernels, key, _kernel_for, MOST_KEPT)
    made = make_launch(
        spec.addr,
        words,
        [slot(o) for o in results_of(what, outs)],
        [slot(i) for i in ins],
        lay.numel,
        what=what,
        sizes=(N, COUNT) if len(what.dims) == lay.ndim and len(words) == 8 + len(ins) else (),
    )
    return Launch(made.fresh, made.into, (made, spec))


N, COUNT = 2, 5
"""Where `Shape` has the size, where all elements are one row."""
_kernels: dict[Any, Any] = {}


def _kernel_for(key: Any) -> Any:
    """The kernel of a fold over operands of these types and kinds; the shape is data to it."""
    kernel, _, exprs, outs, ins, kinds = key
    return kernel.spec(P=Program(exprs, list(outs), list(ins), kinds))


@functools.lru_cache(MOST_KEPT)
def _uses_position(lift: tuple[Any, ...], operands: int) -> bool:
    return operands in E.inputs_used(*lift)


def _kinds(steps: Sequence[int]) -> str:
    return "".join(["c" if s == 1 else "s" if s == 0 else "g" for s in steps])


def _rows(
    what: Reduce, lay: Layout, ops: list[Any], kept_dims: list[int], folded: list[int], count: int,
    nout: int,
) -> tuple[list[int], str, Any]:  # fmt: skip
    """Words: Shape (8), inner steps of the inputs, kept dims (size, strides of all), reduced dims
    (size, strides of the inputs)."""
    shape = lay.shape
    # positions count along the reduced dims in their own order, so that order is kept when asked
    if _uses_position(what.lift, len(ops) - nout):
        folded = sorted(folded)
    kept_sizes, kept_columns = nested(sorted(kept_dims), ops, shape)
    ins = ops[nout:]
    sizes, columns = nested(folded, ins, shape)
    if lay.numel == 0 and count == 0:
        sizes, columns = [0], [[1] for _ in ins]
    if not sizes:
        sizes, columns = [1], [[1] for _ in ins]
    rows = math.prod(kept_sizes)
    if lay.numel == 0 and count:
        rows = 0
    folds = math.prod(sizes[:-1])
    steps = [c[-1] for c in columns]
    elements = sizes[-1] * folds
    parts = 1
    if 0 < rows <= 16 and elements >= 2 * THREAD:
        parts = min(max(elements // THREAD, 1), PARTS // rows)
    if len(kept_sizes) > MAX_DIMS or len(sizes) > MAX_DIMS:
        raise Unsupported("more dims than the odometer has")
    words = [rows, len(kept_sizes), sizes[-1], folds, len(sizes) - 1, count, parts, 1, *steps]
    words += words_of(kept_sizes, kept_columns)
    words += words_of(sizes[:-1], [c[:-1] for c in columns])
    return words, _kinds(steps), reduce_rows


def _columns(
    what: Reduce, lay: Layout, ops: list[Any], kept_dims: list[int], folded: list[int], count: int,
    nout: int,
) -> tuple[list[int], str, Any]:  # fmt: skip
    """Words: Shape, inner steps of the inputs and of the outputs, kept dims but the inner one,
    reduced dims."""
    shape = lay.shape
    inner = kept_dims[-1]
    outer = sorted([d for d in kept_dims if d != inner])
    ins = ops[nout:]
    kept_sizes, kept_columns = nested(outer, ops, shape)
    sizes, columns = nested(sorted(folded), ins, shape)
    rows = math.prod(kept_sizes)
    folds = math.prod(sizes)
    n = shape[inner]
    steps = [o.strides[inner] for o in ins]
    if len(kept_sizes) > MAX_DIMS or len(sizes) > MAX_DIMS:
        raise Unsupported("more dims than the odometer has")
    words = [rows, len(kept_sizes), n, folds, len(sizes), count, 1, -(-n // STRIP), *steps]
    words += [o.strides[inner] for o in ops[:nout]]
    words += words_of(kept_sizes, kept_columns)
    words += words_of(sizes, columns)
    return words, _kinds(steps), reduce_columns
