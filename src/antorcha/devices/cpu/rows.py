"""The rows template: row programs, a row at a time, in cache.

A row program is a schedule of passes over the row (see ``lang.expr.rows``). Each pass loads what it
reads, accumulates its reductions in vectors, folds their lanes at the end of the row, and later
passes use the results as numbers. What an earlier pass has computed and the last one needs again
(the exponentials of a softmax) is parked in the output row, which is in cache, when that saves
transcendental work.

The program's graphs are cut at the seams: reductions, values hoisted out of the loop, the position
and the row's length become inputs of ordinary expressions, evaluated like any other body.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.cpu.reduce import halves
from antorcha.devices.cpu.rows_beside import beside, beside_kernel, words_beside
from antorcha.devices.cpu.rows_in_lanes import WORTH, finals, hoist, in_lanes, lanes_kernel
from antorcha.devices.cpu.template import (
    Template,
    Work,
    advance,
    inputs_at,
    kinds_of,
    lanes_of,
    launch,
    load,
    load_inputs,
    odometer,
    of_inputs,
    outputs_at,
    repeated,
    run_job,
    store,
    words_at,
    words_of,
    work_of,
)
from antorcha.devices.emit import (
    MOST_KEPT,
    TYPES,
    Body,
    Unsupported,
    available,
    body_of,
    evaluate,
    type_of,
)
from antorcha.devices.row_stages import JOINS, REDUCTIONS, Cutter, start_of
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, Rows
from antorcha.lang.native import (
    first,
    i64,
    inline,
    lanes,
    native,
    ptr,
    raw,
    select,
    shuffle,
    static,
    vec,
    void,
)
from antorcha.runtime.memory.layout import Layout


class Stage:
    """One pass: bodies over the program's inputs and seams."""

    __slots__ = (
        "hoist", "hoist_at", "joins", "outs", "park", "parks", "positions", "reads", "red_at",
        "starts", "types", "unparks", "unroll", "work",
    )  # fmt: skip
    hoist: Body | None  # what is the same along the row
    work: Body  # what each element adds: the reductions' arguments, then outputs, then the parked
    joins: list[Body]  # how two accumulators of each reduction join
    starts: list[Any]
    types: list[Any]
    outs: list[int]  # outputs written
    park: int  # the output row that holds the parked values
    parks: bool  # does this pass park?
    unparks: bool  # does it read what is parked?
    positions: bool  # does it use the element's position?
    reads: list[bool]
    red_at: int  # where its reductions stand among the seams
    hoist_at: int
    unroll: int


class RowsTemplate(Template):
    """What a row kernel is compiled for."""

    stages: list[Stage]
    seam_types: list[Any]  # of the reductions, then of what is hoisted out of the loops
    shared: tuple[bool, ...]  # of kernels with rows in lanes: is an operand's row the same for all?
    vectors: int  # of rows that are worked on together, where they lie side by side
    finals: list[int]  # the outputs that have one value a row
    final: Body | None
    key: str

    def share(self, shared: tuple[bool, ...], vectors: int = 1) -> None:
        """Says which operands have one row, and how many vectors of rows lie side by side."""
        self.shared, self.vectors = shared, vectors
        self.key += f"|{shared}{vectors}"

    def __native_key__(self) -> str:
        return self.key


def build(what: Rows, outs: Sequence[Layout], ins: Sequence[Any], kinds: str) -> RowsTemplate:
    """The compile-time program of a description."""
    rows = what.program.opmath()
    for e in E.walk(*rows.outputs):
        if e.dtype.kind == "c":
            raise Unsupported("complex")
    rows = rows.expand({*available(), *REDUCTIONS, "position", "length", "argmax", "argmin"})
    written = [k for k, is_row in enumerate(rows.rows) if is_row]
    park_in = rows.outputs[written[0]].dtype if len(written) == 1 else None
    if park_in is not None and (outs[written[0]].dtype is not park_in or kinds[written[0]] != "c"):
        park_in = None
    cutter = Cutter(rows, park_in)
    nout = len(outs)
    in_types, out_types = [type_of(i) for i in ins], [type_of(o) for o in outs]
    P = RowsTemplate(out_types, in_types, kinds[:nout], kinds[nout:])
    P.seam_types = [TYPES[e.dtype.name] for e in (*cutter.reductions, *cutter.hoisted)]
    P.stages = []
    at, hoisted = 0, len(cutter.reductions)
    for k, each in enumerate(cutter.passes):
        stage = _stage(cutter, rows, each, k, P)
        stage.red_at, stage.hoist_at = at, hoisted
        stage.park = written[0] if written else 0
        P.stages.append(stage)
        at += len(each.reductions)
        hoisted += len(cutter.hoists[k])
    P.finals = [k for k, is_row in enumerate(rows.rows) if not is_row]
    final = cutter.cut([rows.outputs[k] for k in P.finals], False)
    P.final = body_of(final) if final else None
    bodies = [b for s in P.stages for b in (s.hoist, s.work, *s.joins) if b is not None]
    P.width = lanes_of(max([b.lanes for b in bodies] + [t.size for t in P.out_types]))
    stages = ";".join(
        f"{'' if s.hoist is None else s.hoist.key}/{s.work.key}/{s.outs}/{s.parks}/{s.unroll}/"
        f"{[j.key for j in s.joins]}"
        for s in P.stages
    )
    last = "" if P.final is None else P.final.key
    P.key = f"{P.operands_key()}|{rows.rows}|{stages}|{last}|{cutter.parked is None}"
    return P


def _stage(cutter: Cutter, rows: Any, each: Any, k: int, P: RowsTemplate) -> Stage:
    s = Stage()
    hoisted = cutter.hoists[k]
    s.hoist = body_of(cutter.cut(hoisted, False)) if hoisted else None
    last = k == len(cutter.passes) - 1
    s.parks = cutter.parked is not None and k == len(cutter.passes) - 2
    exprs = [e.args[0] for e in each.reductions] + [rows.outputs[o] for o in each.outputs]
    if s.parks:
        exprs.append(cutter.parked)
    cut = cutter.cut(exprs, True, parked=last)
    typed = [E.cast(c, e.dtype) for c, e in zip(cut, each.reductions, strict=False)] + cut[
        len(each.reductions) :
    ]
    s.work = body_of(typed)
    s.outs = list(each.outputs)
    s.types = [TYPES[e.dtype.name] for e in each.reductions]
    s.starts = [start_of(e) for e in each.reductions]
    s.joins = []
    for e in each.reductions:
        a, b = E.input_(0, e.dtype), E.input_(1, e.dtype)
        s.joins.append(body_of([E.node(JOINS[e.op], (a, b), e.dtype)]))
    used = E.inputs_used(*s.work.exprs)
    s.reads = P.reads(s.work)
    s.positions, s.unparks = cutter.position in used, cutter.park in used
    s.unroll = 4 if s.work.weight <= 4 else 2
    return s


@inline
def fold(P, S, j, acc):
    """The lanes of an accumulator joined; the result in every lane."""
    for step in static(halves(P.width)):
        order = static([k + step if k < step else -1 for k in range(P.width)])
        acc = evaluate(S.joins[j], [acc, shuffle(acc, None, order)], P.width)[0]
    return vec[S.types[j], P.width](acc[0])


@inline
def elements(P, S, outs, ins, fixed, steps, seams, at, mask):
    """The work of one pass on ``width`` elements."""
    values = load_inputs(P, S.reads, ins, fixed, of_inputs(P, steps), at, mask)
    parked = load(outs[S.park], "c", None, at, 1, P.width, mask) if S.unparks else None
    rest = [lanes(i64, P.width) + at if S.positions else None, vec[i64, P.width](steps[P.nops])]
    return evaluate(S.work, values + seams + rest + [parked], P.width)


@inline
def write(P, outs, steps, k, at, value, mask):
    """A vector of an output row."""
    result = vec[P.out_types[k], P.width](value)
    store(outs[k], P.out_kinds[k], at, steps[k], result, P.width, mask)


@inline
def run_pass(P, S, outs, ins, fixed, steps, seams, n):
    """One pass over the row; its reductions are put among the seams."""
    W = static(P.width)
    U = static(S.unroll)
    acc = [
        [vec[t, P.width](x) for t, x in static(list(zip(S.types, S.starts)))]
        for u in static(range(S.unroll))
    ]
    nred = static(len(S.types))
    whole = n // (W * U) * (W * U)
    for i in range(0, whole, W * U):
        for u in static(range(U)):
            result = elements(P, S, outs, ins, fixed, steps, seams, i + u * W, None)
            for j in static(range(nred)):
                acc[u][j] = evaluate(S.joins[j], [acc[u][j], result[j]], W)[0]
            for j in static(range(len(S.outs))):
                write(P, outs, steps, S.outs[j], i + u * W, result[nred + j], None)
            if S.parks:
                write(P, outs, steps, S.park, i + u * W, result[len(result) - 1], None)
    for i in range(whole, n, W):
        mask = first(W, n - i)
        result = elements(P, S, outs, ins, fixed, steps, seams, i, mask)
        for j in static(range(nred)):
            both = evaluate(S.joins[j], [acc[0][j], result[j]], W)[0]
            acc[0][j] = select(mask, both, acc[0][j])
        for j in static(range(len(S.outs))):
            write(P, outs, steps, S.outs[j], i, result[nred + j], mask)
        if S.parks:
            write(P, outs, steps, S.park, i, result[len(result) - 1], mask)
    for j in static(range(nred)):
        total = acc[0][j]
        for u in static(range(1, U)):
            total = evaluate(S.joins[j], [total, acc[u][j]], W)[0]
        seams[S.red_at + j] = fold(P, S, j, total)


@native
def rows_job(r0: i64, r1: i64, args: raw, *, P) -> void:
    """Rows r0..r1."""
    work = ptr[Work](args)
    bufs, desc = work.bufs, work.desc
    n, dims = desc[1], desc[2]
    steps = [*words_at(desc, 3, P.nops), n]
    outer = desc + (3 + P.nops)
    index, offset = odometer(P.nops, outer, dims, r0)
    for _r in range(r0, r1):
        outs, ins = outputs_at(P, bufs, offset), inputs_at(P, bufs, offset)
        fixed = repeated(P, ins)
        seams = [vec[t, P.width](0) for t in static(P.seam_types)]
        for S in static(P.stages):
            hoist(P, S, fixed, seams, n)
            run_pass(P, S, outs, ins, fixed, steps, seams, n)
        if P.final is not None:
            values = finals(P, fixed, seams, n)
            for k in static(range(len(P.finals))):
                outs[P.finals[k]][0] = values[k][0]
        advance(P.nops, outer, dims, index, offset)


@native
def rows_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """All rows, through the pool where there is enough of them."""
    run_job(P, rows_job, work_of(bufs, desc), desc[0], max(WORTH // max(desc[1], 1), 1))
    return 0


_kernels: dict[Any, Any] = {}


def compile_rows(what: Rows, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    operands = [*outs, *ins]
    if any(not isinstance(i, Layout) for i in ins):
        raise Unsupported("a row program over numbers")
    lead = max((tuple(o.shape[:-1]) for o in operands), key=len)
    strides = [[*o.strides[:-1]] for o in operands]
    sizes, columns = collapse(lead, strides)
    rows = math.prod(lead)
    inner = [o.strides[-1] if o.shape[-1] != 1 or what.length == 1 else 0 for o in operands]
    is_row = [*what.program.rows, *[i.is_row for i in what.program.inputs]]
    steps = [
        0 if not row else (1 if what.length <= 1 else s)
        for row, s in zip(is_row, inner, strict=True)
    ]
    kinds = kinds_of(steps)
    program = what.program
    key = (
        tuple(program.outputs), tuple([(i.dtype, i.is_row) for i in program.inputs]),
        tuple(program.rows), tuple([o.dtype for o in outs]), tuple([i.dtype for i in ins]), kinds,
    )  # fmt: skip

    shared = in_lanes(what.length, kinds, is_row, columns)
    near = beside(kinds, is_row, sizes, columns, lanes_of(max(o.dtype.itemsize for o in operands)))

    def kernel(_: Any) -> Any:
        if near is not None:
            P = build(what, outs, ins, "c" * len(outs) + kinds[len(outs) :])
            P.share(*near)
            return beside_kernel.spec(P=P)
        P = build(what, outs, ins, kinds)
        if shared is not None:
            P.share(shared)
            return lanes_kernel.spec(P=P)
        return rows_kernel.spec(P=P)

    spec = kept(_kernels, (*key, shared, near), kernel, MOST_KEPT)
    if near is not None:
        words = words_beside(what.length, steps, sizes, columns)
    else:
        words = [rows, what.length, len(sizes), *steps, *words_of(sizes, columns)]
    return launch(spec, words, outs, ins, rows * max(what.length, 1), what)
