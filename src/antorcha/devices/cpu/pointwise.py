"""The pointwise template: an expression over every element, any strides, vectors and threads.

Dims are collapsed and ordered by the output's strides, so the inner loop runs along the output; the
odometer (``template``) counts through the others.

Work is cut into units, a piece of a row each, which the pool hands out. Where an operand strides
through memory (a transpose) the pieces are narrow and run down the rows first: each cache line it
touches is used up before it is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.complexes import in_memory, part_of, type_or_pair
from antorcha.devices.cpu.memory import asks_ahead, streams_from
from antorcha.devices.cpu.template import (
    THREAD,
    Template,
    Work,
    advance,
    fill,
    inputs_at,
    kinds_of,
    lanes_of,
    launch,
    load_inputs,
    odometer,
    of_inputs,
    outputs_at,
    pass_by,
    repeated,
    run_job,
    run_of,
    seek,
    store_output,
    words_at,
    words_of,
    work_of,
)
from antorcha.devices.emit import MOST_KEPT, Body, body_of, evaluate
from antorcha.lang.kernels import Launch, Pointwise
from antorcha.lang.native import (
    first,
    i64,
    inline,
    native,
    prefetch,
    ptr,
    raw,
    static,
    u8,
    vec,
    void,
)
from antorcha.lang.native.machine import target
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

UNIT = 8192  # elements of a unit of work
WORTH = 2048  # elements that are worth another thread, whatever the body
NARROW = 256  # the same, along the row, where an operand strides
HEAD = 6  # description words before the strides
FEW = 8  # elements of a row that are not worth a vector, where operands stride
LINE = 64  # bytes of a cache line
AHEAD = 2048  # bytes before they are needed, lines of large operands are asked for
FAR = 4 << 20  # bytes of all operands from which on they are asked for ahead
STREAMED = 32  # bytes of a vector that is worth writing past the caches


class PointwiseTemplate(Template):
    """What a pointwise kernel is compiled for; everything else is data."""

    def __init__(
        self, body: Body, out_types: Sequence[Ty], in_types: Sequence[Ty], kinds: str, flat: bool,
        stream: bool,
    ) -> None:  # fmt: skip
        nout = len(out_types)
        super().__init__(out_types, in_types, kinds[:nout], kinds[nout:])
        self.body = body
        self.flat, self.stream, self.asks = flat, stream, asks_ahead()
        self.strided = "g" in kinds
        self.width = lanes_of(max([body.lanes, *[(part_of(t) or t).size for t in out_types]]))
        self.unroll = self.vectors_at_once()
        if self.unroll == 2 and target().vector_bits == 512:
            self.width, self.unroll = 2 * self.width, 1  # (two registers: their steps in turns)
        # a masked store to a line that is not in the caches takes twice as long, and short rows
        # have many of them
        self.overlaps = self.unroll == 4 and not flat and {*kinds[:nout]} == {"c"}
        self.step = self.width * max(self.unroll, 1)  # elements of a pass
        self.used = self.reads(body)
        self.bytes = sum(t.size for t in (*out_types, *in_types))
        weight = max(body.cost + self.bytes, 13)  # (a sum: one operation, twelve bytes)
        self.worth = max(THREAD * 13 // weight, WORTH)

    def vectors_at_once(self) -> int:
        """Vectors in a pass of the loop; 0: one, always masked, so that the body is there once.

        A long body gains nothing from a second copy (the CPU runs the next pass meanwhile) and
        takes as long again to compile. Masks cost a store too much before AVX-512.
        """
        if self.body.cost <= 8:
            return 4
        if self.body.cost <= 40:
            return 2
        return 0 if target().vector_bits == 512 and not self.stream else 1

    def __native_key__(self) -> str:
        return (
            f"{self.body.key}|{self.operands_key()}|{self.flat}|{self.stream}|{self.asks}|"
            f"{self.unroll}|{self.worth}"
        )


@inline
def block(P, outs, ins, fixed, steps, at, mask, stream):
    """``width`` elements of the row from ``at`` on."""
    values = load_inputs(P, P.used, ins, fixed, of_inputs(P, steps), at, mask)
    results = evaluate(P.body, values, P.width)
    for k in static(range(P.nout)):
        store_output(P, k, outs[k], at, steps[k], results[k], mask, stream)


@inline
def single(P, outs, ins, steps, at):
    """One element of the row."""
    values = [
        fill(P, k, ins[k] + at * steps[P.nout + k], 1) if P.used[k] else None
        for k in static(range(P.nin))
    ]
    results = evaluate(P.body, values, 1)
    for k in static(range(P.nout)):
        put_single(P, k, outs[k] + at * steps[k], results[k])


@inline
def put_single(P, k, p, result):
    if P.out_parts[k] is None:
        one = vec[P.out_types[k], 1](result)
        p[0] = one[0]
    else:
        parts = ptr[P.out_parts[k]](p)
        parts[0], parts[1] = result[0][0], result[1][0]


@inline
def fresh(P, outs, ins):
    """Are the outputs' lines read by nobody? (Those that are read are in the caches anyway.)"""
    apart = True
    for n in static(range(P.nout)):
        for k in static(range(P.nin)):
            if P.in_kinds[k] == "c" and P.used[k]:
                apart = apart and i64(ins[k]) != i64(outs[n])
    return apart


@inline
def ask(P, outs, ins, at):
    """Asks for the lines that will be needed soon, those to be written with the right to write."""
    for k in static(range(P.nout)):
        if P.out_kinds[k] == "c" and not P.stream:
            lines(outs[k] + at, P.step * P.out_types[k].size, 1)
    for k in static(range(P.nin)):
        if P.in_kinds[k] == "c" and P.used[k]:
            lines(ins[k] + at, P.step * P.in_types[k].size, 0)


@inline
def lines(p, size, write):
    """Asks for the lines of ``size`` bytes, `AHEAD` of p."""
    start = ptr[u8](p) + AHEAD
    for offset in static(range(0, size, LINE)):
        prefetch(start + offset, write)


@inline
def row(P, outs, ins, steps, lo, hi, far):
    """Elements lo..hi of one row: whole vectors, several at a time, then a masked tail."""
    fixed = repeated(P, ins)
    if P.unroll == 0:
        whole = first(P.width, P.width)
        for i in range(lo, hi, P.width):
            if P.asks and far:
                ask(P, outs, ins, i)
            mask = whole if hi - i >= P.width else first(P.width, hi - i)
            block(P, outs, ins, fixed, steps, i, mask, False)
    else:
        size = P.width * P.unroll
        end = lo + (hi - lo) // size * size
        if P.stream and i64(outs[0] + lo) & 63 == 0 and fresh(P, outs, ins):
            for i in range(lo, end, size):
                if P.asks:
                    ask(P, outs, ins, i)
                for u in static(range(P.unroll)):
                    block(P, outs, ins, fixed, steps, i + u * P.width, None, True)
        else:
            for i in range(lo, end, size):
                if P.asks and far:
                    ask(P, outs, ins, i)
                for u in static(range(P.unroll)):
                    block(P, outs, ins, fixed, steps, i + u * P.width, None, False)
        if P.strided and hi - end <= FEW:  # a gather takes as long as its elements one by one
            for i in range(end, hi):
                single(P, outs, ins, steps, i)
        elif P.overlaps and hi - lo >= P.width and fresh(P, outs, ins):
            for i in range(end, hi - P.width, P.width):
                block(P, outs, ins, fixed, steps, i, None, False)
            if hi > end:  # (some elements of the last vector are written twice)
                block(P, outs, ins, fixed, steps, hi - P.width, None, False)
        else:
            for i in range(end, hi, P.width):
                block(P, outs, ins, fixed, steps, i, first(P.width, hi - i), False)


@native
def flat_job(lo: i64, hi: i64, args: raw, *, P) -> void:
    """Elements lo..hi where every operand is one row."""
    work = ptr[Work](args)
    bufs, desc = work.bufs, work.desc
    outs = [ptr[P.out_types[k]](bufs[k]) for k in static(range(P.nout))]
    ins = [ptr[P.in_types[k]](bufs[P.nout + k]) for k in static(range(P.nin))]
    steps = words_at(desc, HEAD, P.nops)
    row(P, outs, ins, steps, lo, hi, desc[0] * P.bytes >= FAR)


@native
def job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1: see the module's docstring. desc is n, dims, rows, chunk, pieces, down, then
    the inner strides, then a size and strides for each outer dim, innermost first."""
    work = ptr[Work](args)
    bufs, desc = work.bufs, work.desc
    n, dims, rows = desc[0], desc[1], desc[2]
    chunk, pieces, down = desc[3], desc[4], desc[5]
    steps = words_at(desc, HEAD, P.nops)
    outer = desc + (HEAD + P.nops)
    r, piece = i64(0), i64(0)
    if u0 != 0:  # (divisions take as long as a short row)
        r = u0 % rows if down != 0 else u0 // pieces
        piece = u0 // rows if down != 0 else u0 % pieces
    index, offset = odometer(P.nops, outer, dims, r)
    far = n * rows * P.bytes >= FAR
    between = words_at(outer, 1, P.nops)
    u = u0 + 0
    while u < u1:
        outs, ins = outputs_at(P, bufs, offset), inputs_at(P, bufs, offset)
        lo = piece * chunk
        hi = min(n, lo + chunk)
        run = i64(1)
        if down != 0 or pieces == 1:
            run = run_of(outer, dims, index, u1 - u)
        for _row in range(run):
            row(P, outs, ins, steps, lo, hi, far)
            for k in static(range(P.nout)):
                outs[k] = outs[k] + between[k]
            for k in static(range(P.nin)):
                ins[k] = ins[k] + between[P.nout + k]
        u += run
        if down != 0:
            r += run
            if r == rows:
                r = i64(0)
                piece += 1
                seek(P.nops, outer, dims, r, index, offset)
            else:
                pass_by(P.nops, outer, dims, index, offset, run)
        elif pieces == 1:
            pass_by(P.nops, outer, dims, index, offset, run)
        else:
            piece += 1
            if piece == pieces:
                piece = i64(0)
                advance(P.nops, outer, dims, index, offset)


@native
def pointwise_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """The whole: through the pool where there is enough of it."""
    work = work_of(bufs, desc)
    if P.flat:
        run_job(P, flat_job, work, desc[0], min(desc[3], i64(P.worth)))
    else:
        run_job(P, job, work, desc[2] * desc[4], grain(desc, P))
    return 0


@inline
def grain(desc, P):
    """How many units make it worth waking another thread."""
    units, chunk = desc[2] * desc[4], desc[3]
    return units if units * chunk <= P.worth else max(P.worth // max(chunk, 1), 1)


def order_dims(out: Layout) -> list[int]:
    """The dims from the output's largest stride to its smallest."""
    return sorted(range(out.ndim), key=lambda d: (-out.strides[d], d))


def describe(outs: Sequence[Layout], ins: Sequence[Any]) -> tuple[list[int], str, bool]:
    """The description words, the operands' kinds along the inner dim, and whether it is one row."""
    out = outs[0]
    operands = [*outs, *ins]
    order = order_dims(out)
    shape = [out.shape[d] for d in order]
    strides = [
        [o.strides[d] for d in order] if isinstance(o, Layout) else [0] * len(order)
        for o in operands
    ]
    sizes, columns = collapse(shape, strides)
    if not sizes:
        sizes, columns = (1,), [(0 if not isinstance(o, Layout) else 1,) for o in operands]
    n = sizes[-1]
    inner = [c[-1] for c in columns]
    if out.numel == 0:
        n, sizes, columns = 0, (0,), [(c[-1],) for c in columns]
    kinds = kinds_of(inner)
    dims = len(sizes) - 1
    if dims == 0:
        return [n, 0, 1, THREAD, 1, 0, *inner], kinds, True
    rows = math.prod(sizes[:-1])
    down = int("g" in kinds and rows > 1)
    chunk = NARROW if down else UNIT
    pieces = -(-n // chunk)
    words = [n, dims, rows, min(chunk, n) if pieces == 1 else chunk, pieces, down, *inner]
    return words + words_of(sizes[:-1], columns), kinds, False


_kernels: dict[Any, Any] = {}


def _kernel_for(key: Any) -> Any:
    """The kernel of a body and its operands' types and kinds; the shape is data to it."""
    return pointwise_kernel.spec(P=PointwiseTemplate(*key))


def _streams(body: Body, out: Layout, ins: Sequence[Any]) -> bool:
    """Is the result written past the caches?"""
    lanes = target().vector_bits // 8 // max(body.lanes, out.itemsize)
    if lanes * out.itemsize < STREAMED:
        return False
    read = [(i.high - i.low) * i.itemsize for i in ins if isinstance(i, Layout)]
    return bool(out.numel * out.itemsize + sum(read) >= streams_from())


def compile_pointwise(what: Pointwise, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    in_types = [type_or_pair(i) for i in ins]
    out_types = [type_or_pair(o) for o in outs]
    body = body_of(in_memory(what.exprs, outs, ins))
    words, kinds, flat = describe(outs, ins)
    nout = len(outs)
    stream = kinds[0] == "c" and nout == 1 and _streams(body, outs[0], ins)
    key = (body, tuple(out_types), tuple(in_types), kinds, flat, stream)
    kernel = kept(_kernels, key, _kernel_for, MOST_KEPT)
    sizes = (0,) if flat and not stream else ()
    return launch(kernel, words, outs, ins, outs[0].numel, what, sizes=sizes)
