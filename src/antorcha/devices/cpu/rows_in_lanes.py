"""The rows template for short rows: a row in each lane of the vectors.

A row that is a few vectors long costs more at its ends than along it: folding the lanes of each
reduction, and what is computed once a row with all lanes alike. Here a block of as many rows as a
vector has lanes is transposed into memory on the stack, in squares; a pass goes along the columns
of all its rows, so that a reduction's lanes are those rows' results; and what is written is
transposed back. The last block has its last row several times, and writes it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.template import (
    Work,
    advance,
    odometer,
    outputs_at,
    run_job,
    transposed,
    work_of,
)
from antorcha.devices.emit import evaluate
from antorcha.lang.native import (
    first,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    static,
    vec,
    vgather,
    vload,
    void,
    vscatter,
    vstore,
)

COLUMNS = 64  # of a row, at most: a multiple of any vector's lanes
APART = 4  # columns that each reduction adds up apart
WORTH = 16384  # elements worth waking a thread for


def in_lanes(
    length: int, kinds: str, is_row: Sequence[bool], columns: Sequence[Sequence[Any]]
) -> tuple[bool, ...] | None:
    """For which operands all rows are one, where rows are to lie in lanes; None: they are not.
    columns: each operand's strides from row to row."""
    for kind, row in zip(kinds, is_row, strict=True):
        if row and kind != "c":
            return None
    if not length <= COLUMNS:
        return None
    shared = []
    for row, steps in zip(is_row, columns, strict=True):
        shared.append(row and all([type(step) is int and step == 0 for step in steps]))
    return tuple(shared)


@inline
def read_block(P, p, offsets, n, to):
    """The rows at the offsets, a vector for each column of theirs."""
    W = static(P.width)
    for c in range(0, n, W):
        mask = first(W, n - c)
        rows = [vload(p + offsets[j] + c, W, mask) for j in static(range(P.width))]
        rows = transposed(P.width, rows)
        for j in static(range(P.width)):
            vstore(to + (c + j) * W, rows[j], None)


@inline
def write_block(P, p, offsets, n, count, block):
    """The columns of a block to the first rows of it."""
    W = static(P.width)
    for c in range(0, n, W):
        mask = first(W, n - c)
        rows = [vload(block + (c + j) * W, W, None) for j in static(range(P.width))]
        rows = transposed(P.width, rows)
        for j in static(range(P.width)):
            if j < count:
                vstore(p + offsets[j] + c, rows[j], mask)


@inline
def value_of(P, k, p, step, mask, fixed, at):
    """A column of an input, whose columns are so far apart."""
    if P.in_kinds[k] == "s":
        return fixed[k]
    if P.shared[P.nout + k]:
        return vec[P.in_types[k], P.width]((p + at * step)[0])
    return vload(p + at * step, P.width, mask)


@inline
def starts_of(P, S):
    """The accumulators of a pass's reductions before the first column."""
    return [vec[t, P.width](x) for t, x in static(list(zip(S.types, S.starts)))]


@inline
def join(P, S, acc, other):
    """The accumulators of two parts of the columns as one's."""
    return [
        evaluate(S.joins[j], [acc[j], other[j]], P.width)[0] for j in static(range(len(S.types)))
    ]


@inline
def run_column(P, S, places, steps, mask, fixed, seams, acc, n, at):
    """One column's part of a pass; the accumulators with it. `places`: of each operand's column 0;
    `steps`: from one column to the next."""
    W = static(P.width)
    nout = static(P.nout)
    values = [
        value_of(P, k, places[nout + k], steps[nout + k], mask, fixed, at) if S.reads[k] else None
        for k in static(range(P.nin))
    ]
    parked = vload(places[S.park] + at * steps[S.park], W, mask) if S.unparks else None
    rest = [vec[i64, W](at) if S.positions else None, vec[i64, W](n)]
    result = evaluate(S.work, values + seams + rest + [parked], W)
    count = static(len(S.types))
    for j in static(range(len(S.outs))):
        value = vec[P.out_types[S.outs[j]], W](result[count + j])
        vstore(places[S.outs[j]] + at * steps[S.outs[j]], value, mask)
    if S.parks:
        value = vec[P.out_types[S.park], W](result[len(result) - 1])
        vstore(places[S.park] + at * steps[S.park], value, mask)
    return join(P, S, acc, result)


@inline
def run_columns(P, S, blocks, ins, fixed, seams, n):
    """A pass over a block's columns; its reductions are put among the seams."""
    one = static([k >= P.nout and P.shared[k] for k in range(P.nops)])  # row for all
    places = [ins[k - P.nout] if one[k] else blocks[k] for k in static(range(P.nops))]
    steps = static([1 if k else P.width for k in one])
    acc = [starts_of(P, S) for u in static(range(APART))]
    whole = n // APART * APART
    for i in range(0, whole, APART):
        for u in static(range(APART)):
            acc[u] = run_column(P, S, places, steps, None, fixed, seams, acc[u], n, i + u)
    for i in range(whole, n):
        acc[0] = run_column(P, S, places, steps, None, fixed, seams, acc[0], n, i)
    total = join(P, S, join(P, S, acc[0], acc[1]), join(P, S, acc[2], acc[3]))
    for j in static(range(len(S.types))):
        seams[S.red_at + j] = total[j]


@inline
def hoist(P, S, fixed, seams, n):
    """What is the same along a row, for a pass: it is put among the seams."""
    if S.hoist is not None:
        rest = [None, vec[i64, P.width](n), None]
        result = evaluate(S.hoist, fixed + seams + rest, P.width)
        for k in static(range(len(result))):
            seams[S.hoist_at + k] = result[k]


@inline
def finals(P, fixed, seams, n):
    """The outputs that have one value a row."""
    rest = [None, vec[i64, P.width](n), None]
    result = evaluate(P.final, fixed + seams + rest, P.width)
    return [vec[P.out_types[P.finals[j]], P.width](result[j]) for j in static(range(len(P.finals)))]


@inline
def run_block(P, outs, ins, offsets, blocks, n, count):
    """A block, of which `count` rows are to be written."""
    W = static(P.width)
    for k in static([k for k in range(P.nin) if P.in_kinds[k] == "c" and P.used[k]]):
        if not P.shared[P.nout + k]:
            read_block(P, ins[k], offsets + (P.nout + k) * W, n, blocks[P.nout + k])
    fixed = [
        vgather(ins[k], vload(offsets + (P.nout + k) * W, W, None), None)
        if P.in_kinds[k] == "s" and P.used[k]
        else None
        for k in static(range(P.nin))
    ]
    seams = [vec[t, P.width](0) for t in static(P.seam_types)]
    for S in static(P.stages):
        hoist(P, S, fixed, seams, n)
        run_columns(P, S, blocks, ins, fixed, seams, n)
    for S in static(P.stages):
        for k in static(S.outs):
            write_block(P, outs[k], offsets + k * W, n, count, blocks[k])
    if P.final is not None:
        values = finals(P, fixed, seams, n)
        for j in static(range(len(P.finals))):
            k = static(P.finals[j])
            vscatter(outs[k], vload(offsets + k * W, W, None), values[j], first(W, count))


@native
def lanes_job(b0: i64, b1: i64, args: raw, *, P) -> void:
    """Blocks b0..b1."""
    work = ptr[Work](args)
    bufs, desc = work.bufs, work.desc
    W = static(P.width)
    rows, n, dims = desc[0], desc[1], desc[2]
    outer = desc + (3 + P.nops)
    index, offset = odometer(P.nops, outer, dims, b0 * W)
    none = local(i64, P.nops)
    for k in static(range(P.nops)):
        none[k] = 0
    outs = outputs_at(P, bufs, none)
    ins = [ptr[P.in_types[k]](bufs[P.nout + k]) for k in static(range(P.nin))]
    types = static([*P.out_types, *P.in_types])
    blocks = [local(t, P.width * COLUMNS) for t in static(types)]
    offsets = local(i64, P.nops * P.width)
    for b in range(b0, b1):
        count = min(rows - b * W, i64(W))
        for j in range(W):
            for k in static(range(P.nops)):
                offsets[k * W + j] = offset[k]
            if j + 1 < count:
                advance(P.nops, outer, dims, index, offset)
        advance(P.nops, outer, dims, index, offset)
        run_block(P, outs, ins, offsets, blocks, n, count)


@native
def lanes_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """All rows, through the pool where there is enough of them."""
    W = static(P.width)
    least = max(WORTH // (max(desc[1], 1) * W), 1)
    run_job(P, lanes_job, work_of(bufs, desc), (desc[0] + W - 1) // W, least)
    return 0
