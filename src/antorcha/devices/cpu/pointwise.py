"""The pointwise template: an expression over every element, any strides, vectors and threads.

Dims are collapsed and ordered by the output's strides, so the inner loop runs along the output. How
an operand moves along it is fixed when the kernel is compiled: ``c`` (its elements follow each
other), ``s`` (one element, repeated), ``g`` (any other stride). The rest of the shape is data (the
description words), so one kernel serves every shape of the same kind.

Work is cut into units, a piece of a row each, which the pool hands out. Where an operand strides
through memory (a transpose) the pieces are narrow and run down the rows first: each cache line it
touches is used up before it is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.emit import MOST_KEPT, Body, Unsupported, body_of, evaluate, type_of
from antorcha.devices.cpu.memory import asks_ahead, streams_from
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, Pointwise
from antorcha.lang.native import (
    address,
    first,
    i64,
    inline,
    lanes,
    local,
    native,
    prefetch,
    ptr,
    raw,
    static,
    struct,
    u8,
    vec,
    vgather,
    vload,
    void,
    vscatter,
    vstore,
)
from antorcha.lang.native.machine import target
from antorcha.lang.native.types import Ty
from antorcha.loops import collapse
from antorcha.memo import kept
from antorcha.runtime.launch import make_launch
from antorcha.runtime.layout import Layout
from antorcha.runtime.pool import pool_run

MAX_DIMS = 12
UNIT = 8192  # elements of a unit of work
WORTH = 32768, 2048  # elements that are worth another thread: of a sum, and of any body
NARROW = 256  # the same, along the row, where an operand strides
HEAD = 6  # description words before the strides
FEW = 8  # elements of a row that are not worth a vector, where operands stride
LINE = 64  # bytes of a cache line
AHEAD = 2048  # bytes before they are needed, lines of large operands are asked for
FAR = 4 << 20  # bytes of all operands from which on they are asked for ahead
STREAMED = 32  # bytes of a vector that is worth writing past the caches


class Program:
    """What a pointwise kernel is compiled for; everything else is data."""

    __slots__ = (
        "asks", "body", "bytes", "flat", "in_kinds", "in_types", "nin", "nops", "nout",
        "out_kinds", "out_types", "step", "stream", "strided", "unroll", "used", "width", "worth",
    )  # fmt: skip

    def __init__(
        self, body: Body, out_types: list[Ty], out_kinds: str, in_types: list[Ty], in_kinds: str,
        flat: bool, stream: bool,
    ) -> None:  # fmt: skip
        self.body = body
        self.out_types, self.out_kinds = out_types, out_kinds
        self.in_types, self.in_kinds = in_types, in_kinds
        self.nout, self.nin = len(out_types), len(in_types)
        self.nops = self.nout + self.nin
        self.flat, self.stream, self.asks = flat, stream, asks_ahead()
        self.strided = "g" in in_kinds + out_kinds
        widest = max([body.lanes, *[t.size for t in out_types]])
        self.width = max(target().vector_bits // 8 // widest, 4)
        self.unroll = self.vectors_at_once()
        if self.unroll == 2 and target().vector_bits == 512:
            self.width, self.unroll = 2 * self.width, 1  # (two registers: their steps in turns)
        self.step = self.width * max(self.unroll, 1)  # elements of a pass
        used = E.inputs_used(*body.exprs)
        self.used = [k in used for k in range(self.nin)]
        self.bytes = sum(t.size for t in (*out_types, *in_types))
        weight = max(body.cost + self.bytes, 13)  # (a sum: one operation, twelve bytes)
        self.worth = max(WORTH[0] * 13 // weight, WORTH[1])

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
        types = ",".join(t.name for t in (*self.out_types, *self.in_types))
        return (
            f"{self.body.key}|{types}|{self.out_kinds}|{self.in_kinds}|{self.flat}|{self.stream}|"
            f"{self.asks}|{self.width}|{self.unroll}|{self.worth}"
        )


@struct
class Work:
    bufs: ptr[raw]
    desc: ptr[i64]


@inline
def load(p, kind, fixed, at, step, width, mask):
    """One vector of an operand at position ``at`` of the row."""
    if kind == "s":
        return fixed
    if kind == "c":
        return vload(p + at, width, mask)
    return vgather(p + at * step, lanes(i64, width) * step, mask)


@inline
def store(p, kind, at, step, value, width, mask):
    """One vector to position ``at`` of an output's row."""
    if kind == "c":
        vstore(p + at, value, mask)
    else:
        vscatter(p + at * step, lanes(i64, width) * step, value, mask)


@inline
def repeated(P, ins):
    """The inputs that stay the same along the row, as vectors."""
    return [
        vec[P.in_types[k], P.width](ins[k][0]) if P.in_kinds[k] == "s" and P.used[k] else None
        for k in static(range(P.nin))
    ]


@inline
def outputs_at(P, bufs, offset):
    """Where each output's row begins."""
    return [ptr[P.out_types[k]](bufs[k]) + offset[k] for k in static(range(P.nout))]


@inline
def inputs_at(P, bufs, offset):
    """Where each input's row begins; the operands' offsets have the outputs' first."""
    return [ptr[P.in_types[k]](bufs[P.nout + k]) + offset[P.nout + k] for k in static(range(P.nin))]


@inline
def block(P, outs, ins, fixed, steps, at, mask, stream):
    """``width`` elements of the row from ``at`` on."""
    values = [
        load(ins[k], P.in_kinds[k], fixed[k], at, steps[P.nout + k], P.width, mask)
        if P.used[k] else None
        for k in static(range(P.nin))
    ]  # fmt: skip
    results = evaluate(P.body, values, P.width)
    for k in static(range(P.nout)):
        made = vec[P.out_types[k], P.width](results[k])
        if stream and P.out_kinds[k] == "c":
            vstore(outs[k] + at, made, None, stream=True)
        else:
            store(outs[k], P.out_kinds[k], at, steps[k], made, P.width, mask)


@inline
def single(P, outs, ins, steps, at):
    """One element of the row."""
    values = [
        vec[P.in_types[k], 1]((ins[k] + at * steps[P.nout + k])[0]) if P.used[k] else None
        for k in static(range(P.nin))
    ]
    results = evaluate(P.body, values, 1)
    for k in static(range(P.nout)):
        made = vec[P.out_types[k], 1](results[k])
        (outs[k] + at * steps[k])[0] = made[0]


@inline
def fresh(P, outs, ins):
    """Are the output's lines read by nobody? (Those that are read are in the caches anyway.)"""
    apart = True
    for k in static(range(P.nin)):
        if P.in_kinds[k] == "c" and P.used[k]:
            apart = apart and i64(ins[k]) != i64(outs[0])
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
    steps = [desc[6 + k] for k in static(range(P.nops))]
    row(P, outs, ins, steps, lo, hi, desc[0] * P.bytes >= FAR)


@native
def job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1: see the module's docstring. desc is n, dims, rows, chunk, pieces, down, then
    the inner strides, then a size and strides for each outer dim, innermost first."""
    work = ptr[Work](args)
    bufs, desc = work.bufs, work.desc
    n, dims, rows = desc[0], desc[1], desc[2]
    chunk, pieces, down = desc[3], desc[4], desc[5]
    steps = [desc[6 + k] for k in static(range(P.nops))]
    outer = desc + (6 + P.nops)
    index = local(i64, 12)
    offset = local(i64, P.nops)
    r, piece = i64(0), i64(0)
    if u0 != 0:  # (divisions take as long as a short row)
        r = u0 % rows if down != 0 else u0 // pieces
        piece = u0 // rows if down != 0 else u0 % pieces
    seek(P.nops, outer, dims, r, index, offset)
    far = n * rows * P.bytes >= FAR
    for _u in range(u0, u1):
        outs, ins = outputs_at(P, bufs, offset), inputs_at(P, bufs, offset)
        row(P, outs, ins, steps, piece * chunk, min(n, piece * chunk + chunk), far)
        if down != 0:
            r += 1
            if r == rows:
                r = i64(0)
                piece += 1
                seek(P.nops, outer, dims, r, index, offset)
            else:
                advance(P.nops, outer, dims, index, offset)
        else:
            piece += 1
            if piece == pieces:
                piece = i64(0)
                advance(P.nops, outer, dims, index, offset)


@inline
def seek(per, outer, dims, r, index, offset):
    """Sets the odometer to row r: an index a dim, and the offsets of as many operands as `per`."""
    for k in static(range(per)):
        offset[k] = 0
    left = r
    for d in range(dims):
        words = outer + d * (1 + per)
        i = i64(0)
        if left != 0:
            i = left % words[0]
            left = left // words[0]
        index[d] = i
        for k in static(range(per)):
            offset[k] += i * words[1 + k]


@inline
def advance(per, outer, dims, index, offset):
    """The odometer's next row."""
    d = i64(0)
    while d < dims:
        words = outer + d * (1 + per)
        i = index[d] + 1
        if i < words[0]:
            index[d] = i
            for k in static(range(per)):
                offset[k] += words[1 + k]
            break
        index[d] = 0
        for k in static(range(per)):
            offset[k] -= (i - 1) * words[1 + k]
        d += 1


@native
def pointwise_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """The whole: through the pool where there is enough of it."""
    work = local(Work)
    work.bufs = bufs
    work.desc = desc
    if P.flat:
        pool_run(address(flat_job, P=P), desc[0], min(desc[3], i64(P.worth)), raw(work))
    else:
        pool_run(address(job, P=P), desc[2] * desc[4], grain(desc, P), raw(work))
    return 0


@inline
def grain(desc, P):
    """How many units make it worth waking another thread."""
    units, chunk = desc[2] * desc[4], desc[3]
    return units if units * chunk <= P.worth else max(P.worth // max(chunk, 1), 1)


def order_dims(out: Layout) -> list[int]:
    """The dims from the output's largest stride to its smallest."""
    return sorted(range(out.ndim), key=lambda d: (-out.strides[d], d))


def words_of(sizes: Sequence[int], columns: Sequence[Any]) -> list[int]:
    """Nested dims as description words, innermost first, for ``seek``."""
    words: list[int] = []
    for d in reversed(range(len(sizes))):
        words += [sizes[d], *[c[d] for c in columns]]
    return words


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
    kinds = "".join(["c" if s == 1 else "s" if s == 0 else "g" for s in inner])
    dims = len(sizes) - 1
    if dims > MAX_DIMS:
        raise Unsupported("more dims than the odometer has")
    if dims == 0:
        return [n, 0, 1, 32768, 1, 0, *inner], kinds, True
    rows = math.prod(sizes[:-1])
    down = int("g" in kinds and rows > 1)
    chunk = NARROW if down else UNIT
    pieces = -(-n // chunk)
    words = [n, dims, rows, min(chunk, n) if pieces == 1 else chunk, pieces, down, *inner]
    return words + words_of(sizes[:-1], columns), kinds, False


def slot(what: Any) -> Any:
    """How the launcher sees an operand."""
    if isinstance(what, Layout):
        size = what.itemsize
        return (size, what.low * size, what.high * size)
    return {float: "f64", complex: "c128"}.get(what, "i64")


_kernels: dict[Any, Any] = {}


def _kernel_for(key: Any) -> Any:
    """The kernel of a body and its operands' types and kinds; the shape is data to it."""
    body, out_types, in_types, kinds, flat, stream = key
    nout = len(out_types)
    program = Program(
        body, list(out_types), kinds[:nout], list(in_types), kinds[nout:], flat, stream
    )
    return pointwise_kernel.spec(P=program)


def _streams(body: Body, out: Layout, ins: Sequence[Any]) -> bool:
    """Is the result written past the caches?"""
    lanes = target().vector_bits // 8 // max(body.lanes, out.itemsize)
    if lanes * out.itemsize < STREAMED:
        return False
    read = [(i.high - i.low) * i.itemsize for i in ins if isinstance(i, Layout)]
    return bool(out.numel * out.itemsize + sum(read) >= streams_from())


def compile_pointwise(what: Pointwise, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    body = body_of(what.exprs)
    words, kinds, flat = describe(outs, ins)
    nout = len(outs)
    in_types = [type_of(i) for i in ins]
    out_types = [type_of(o) for o in outs]
    stream = kinds[0] == "c" and nout == 1 and _streams(body, outs[0], ins)
    key = (body, tuple(out_types), tuple(in_types), kinds, flat, stream)
    kernel = kept(_kernels, key, _kernel_for, MOST_KEPT)
    made = make_launch(
        kernel.addr, words, [slot(o) for o in outs], [slot(i) for i in ins], outs[0].numel,
        what=what, sizes=(0,) if flat and not stream else (),
    )  # fmt: skip
    return Launch(made.fresh, made.into, (made, kernel))
