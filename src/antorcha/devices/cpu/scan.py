"""The scan template: a running state along each line, written out at every element.

*Rows*: the elements of a line follow each other. A vector of their states is scanned in registers
(each lane merges the one 1, 2, 4, .. lanes before it), then merged with the state carried so far.
When there are few long lines, each is cut into pieces that threads fold to one state apart, then
scan with what came before as a start; their number depends on the shape alone, so the result does
not depend on the number of threads.

*Strips*: the closest elements belong to different lines, or lines are short. A strip of states is
carried side by side while rows go by, each lane in order.

*Single*: a scan that must go in order (``Scan.run``) along memory: four lines at a time, an element
each in turn, so that their chains of merges overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.structs import replace
from antorcha.devices.complexes import fold_in_parts, part_of, type_or_pair
from antorcha.devices.cpu.reduce import fresh_state, halves, keep, merged, slots_of
from antorcha.devices.cpu.reduce import part_of as partial_state
from antorcha.devices.cpu.template import (
    PARTS,
    THREAD,
    Template,
    Work,
    inputs_at,
    kind_of,
    lanes_of,
    launch,
    load_input,
    load_inputs,
    odometer,
    of_inputs,
    outputs_at,
    repeated,
    run_job,
    store_output,
    words_at,
    words_of,
    work_of,
)
from antorcha.devices.emit import TYPES, Unsupported, body_of, evaluate
from antorcha.lang import expr as E
from antorcha.lang.expr import Expr
from antorcha.lang.kernels import Launch, Scan
from antorcha.lang.native import (
    first,
    i64,
    inline,
    lanes,
    local,
    native,
    ptr,
    raw,
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

STRIP = 1024  # lines side by side: narrower strips would touch a new page too often
WORTH = 16384  # elements worth waking a thread for
SHORT = 12  # elements, for each output, of a line that is too short for vectors
PIECE = 256  # a piece's length is a multiple of it: of four vectors of any width


class ScanTemplate(Template):
    """What a scan is compiled for."""

    def __init__(
        self, what: Scan, outs: Sequence[Ty], ins: Sequence[Ty], kinds: str, form: str
    ) -> None:
        super().__init__(outs, ins, kinds[: len(outs)], kinds[len(outs) :])
        self.form, self.reverse = form, what.reverse
        self.start, self.nstate = tuple(what.start), len(what.lift)
        self.lift, self.merge = body_of(what.lift), body_of(what.merge)
        self.finish = body_of(what.finish)
        step, live = in_order(what, self.nin)
        self.live = list(range(self.nstate)) if form == "rows" else live
        self.step = body_of([step[k] for k in self.live])
        self.state_types = [TYPES[e.dtype.name] for e in self.lift.exprs]
        bodies = (self.step, self.lift) if form == "rows" else (self.step,)
        self.used = self.reads(*bodies)
        self.needs_position = self.nin in E.inputs_used(*[e for b in bodies for e in b.exprs])
        if form != "single":
            self.width = lanes_of(max(self.lift.lanes, self.merge.lanes, self.finish.lanes))

    def __native_key__(self) -> str:
        states = ",".join(t.name for t in self.state_types)
        start = ",".join([s.hex() if isinstance(s, float) else str(int(s)) for s in self.start])
        return (
            f"{self.form}|{self.reverse}|{self.live}|{self.lift.key}|{self.merge.key}|"
            f"{self.step.key}|{self.finish.key}|{start}|{states}|{self.operands_key()}"
        )


def in_order(what: Scan, nin: int) -> tuple[list[Expr], list[int]]:
    """One step of a line, and the states that it carries: the new states as expressions of the
    inputs (0..nin-1), the position (nin) and the states so far (from nin + 1 on)."""
    count = len(what.lift)
    mapping: dict[Expr, Expr] = {}
    for e in E.walk(*what.merge):
        if e.op == "input":
            k = e.payload
            assert isinstance(k, int)
            so_far = k < count
            mapping[e] = (
                E.input_(nin + 1 + k, e.dtype) if so_far else E.cast(what.lift[k - count], e.dtype)
            )
    step = list(E.simplify_all(E.substitute_all(what.merge, mapping)))
    live = set(E.inputs_used(*what.finish))
    while True:
        reached = {k - nin - 1 for s in live for k in E.inputs_used(step[s]) if k > nin}
        if reached <= live:
            return step, sorted(live)
        live |= reached


# Description words; then each operand's step along the line, its first element's offset, its step
# from line to line (strips, single), and the outer dims (size, strides of all).
@struct
class ScanShape:
    outer: i64  # lines, or groups of neighbouring lines
    dims: i64  # outer dims
    n: i64  # elements of a line
    across: i64  # lines of a group
    strip: i64  # of them, lines in a unit
    strips: i64
    parts: i64  # pieces that a line is cut into
    piece: i64  # elements of a piece


SHAPE = 8  # words of a Shape


@inline
def place(P, shape, at):
    """The position within its line of element ``at`` of the scan's order."""
    if P.reverse:
        return vec[i64, P.width](shape.n - 1) - at
    return at


# ---------------------------------------------------------------------------------------- rows
@inline
def backwards(P, v):
    return shuffle(v, None, static([P.width - 1 - k for k in range(P.width)]))


@inline
def last_of(P, count):
    """A mask of the last ``count`` lanes."""
    return lanes(i64, P.width) >= P.width - count


@inline
def fetch(P, k, p, fixed, step, at, count):
    """The next ``width`` elements of input k; ``count`` is None, or how many there are."""
    if P.in_kinds[k] == "r":
        mask = None if count is None else last_of(P, count)
        return backwards(P, vload(p + (1 - P.width - at), P.width, mask))
    mask = None if count is None else first(P.width, count)
    return load_input(P, k, p, fixed, step, at, mask)


@inline
def states(P, ins, fixed, steps, shape, at, count):
    """The states of the next ``width`` elements."""
    values = [
        fetch(P, k, ins[k], fixed[k], steps[P.nout + k], at, count) if P.used[k] else None
        for k in static(range(P.nin))
    ]
    if P.needs_position:
        return evaluate(P.lift, [*values, place(P, shape, lanes(i64, P.width) + at)], P.width)
    return evaluate(P.lift, values, P.width)


@inline
def write(P, outs, steps, state, at, count):
    results = evaluate(P.finish, state, P.width)
    for k in static(range(P.nout)):
        if P.out_kinds[k] == "r":
            result = vec[P.out_types[k], P.width](results[k])
            mask = None if count is None else last_of(P, count)
            vstore(outs[k] + (1 - P.width - at), backwards(P, result), mask)
        else:
            mask = None if count is None else first(P.width, count)
            store_output(P, k, outs[k], at, steps[k], results[k], mask, False)


@inline
def shifted(P, state, by):
    """Each lane's state ``by`` lanes before; the state of no elements where there is none."""
    order = static([k - by if k >= by else P.width for k in range(P.width)])
    none = fresh_state(P)
    return [shuffle(state[k], none[k], order) for k in static(range(P.nstate))]


@inline
def scanned(P, carry, state):
    """The running states of a vector of elements, after ``carry``."""
    for by in static(list(reversed(halves(P.width)))):
        state = merged(P, shifted(P, state, by), state)
    return merged(P, carry, state)


@inline
def scan_line(P, outs, ins, fixed, steps, shape, carry, lo, hi):
    """Elements lo..hi of a line after the state ``carry``."""
    W = static(P.width)
    whole = lo + (hi - lo) // W * W
    for i in range(lo, whole, W):
        state = scanned(P, carry, states(P, ins, fixed, steps, shape, i, None))
        write(P, outs, steps, state, i, None)
        keep(P, carry, [shuffle(s, None, static([P.width - 1] * P.width)) for s in static(state)])
    if whole < hi:
        state = scanned(P, carry, states(P, ins, fixed, steps, shape, whole, hi - whole))
        write(P, outs, steps, state, whole, hi - whole)


@inline
def paired(P, a, b):
    """Neighbours merged: lanes 0 and 1 of a, 2 and 3, .., then those of b. With b None, the lanes
    of the upper half are any."""
    W = static(P.width)
    even = static([2 * k if 2 * k < W or b is not None else -1 for k in range(W)])
    odd = static([2 * k + 1 if 2 * k < W or b is not None else -1 for k in range(W)])
    left = [shuffle(a[k], None if b is None else b[k], even) for k in static(range(P.nstate))]
    right = [shuffle(a[k], None if b is None else b[k], odd) for k in static(range(P.nstate))]
    return merged(P, left, right)


@inline
def fold_piece(P, ins, fixed, steps, shape, lo, hi):
    """A piece, four vectors at a time, folded to one state in lane 0, in order."""
    W = static(P.width)
    total = fresh_state(P)
    for i in range(lo, hi, 4 * W):
        four = [states(P, ins, fixed, steps, shape, i + u * W, None) for u in static(range(4))]
        one = paired(P, paired(P, four[0], four[1]), paired(P, four[2], four[3]))
        for _step in static(halves(P.width)):
            one = paired(P, one, None)
        keep(P, total, merged(P, total, one))
    return total


@inline
def pointers(P, work, shape, group):
    """Where each operand's line begins, in the scan's order."""
    skip = static(SHAPE + (2 if P.form == "rows" else 3) * P.nops)
    _index, offset = odometer(P.nops, work.desc + skip, shape.dims, group)
    starts = work.desc + (SHAPE + P.nops)
    for k in static(range(P.nops)):
        offset[k] += starts[k]
    return outputs_at(P, work.bufs, offset), inputs_at(P, work.bufs, offset)


@native
def totals_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Pieces u0..u1 of all lines: each leaves its folded state in ``partial``."""
    work = ptr[Work](args)
    shape = ptr[ScanShape](work.desc)
    steps = words_at(work.desc, SHAPE, P.nops)
    for u in range(u0, u1):
        line = u // shape.parts
        part = u - line * shape.parts
        if part < shape.parts - 1:  # what comes after the last one is nothing
            _outs, ins = pointers(P, work, shape, line)
            lo = part * shape.piece
            one = fold_piece(P, ins, repeated(P, ins), steps, shape, lo, lo + shape.piece)
            slots = slots_of(P, work.partial)
            for k in static(range(P.nstate)):
                slots[k][u] = one[k][0]


@native
def rows_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Pieces u0..u1 of all lines, each after the state in ``partial`` where lines are cut."""
    work = ptr[Work](args)
    shape = ptr[ScanShape](work.desc)
    steps = words_at(work.desc, SHAPE, P.nops)
    for u in range(u0, u1):
        line = u // shape.parts
        outs, ins = pointers(P, work, shape, line)
        lo = (u - line * shape.parts) * shape.piece
        carry = fresh_state(P)
        if shape.parts > 1:
            keep(P, carry, partial_state(P, slots_of(P, work.partial), u))
        hi = min(lo + shape.piece, shape.n)
        scan_line(P, outs, ins, repeated(P, ins), steps, shape, carry, lo, hi)


@native
def scan_rows(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """The rows form: see the module's docstring."""
    work = work_of(bufs, desc)
    shape = ptr[ScanShape](desc)
    if shape.parts <= 1:
        run_job(P, rows_job, work, shape.outer, max(WORTH // max(shape.n, 1), 1))
        return 0
    partial = local(i64, PARTS * P.nstate)
    work.partial = raw(partial)
    units = shape.outer * shape.parts
    run_job(P, totals_job, work, units, i64(1))
    slots = slots_of(P, raw(partial))
    for line in range(shape.outer):
        carry = fresh_state(P)
        for u in range(line * shape.parts, (line + 1) * shape.parts):
            one = partial_state(P, slots, u)
            for k in static(range(P.nstate)):
                slots[k][u] = carry[k][0]
            keep(P, carry, merged(P, carry, one))
    run_job(P, rows_job, work, units, i64(1))
    return 0


# ------------------------------------------------------------------------------ strips and single
@inline
def advanced(P, outs, ins, fixed, across, shape, q, state, at, mask):
    """``width`` neighbouring lines one element further: gives the new states, writes the results.
    ``state`` has those that are carried."""
    values = load_inputs(P, P.used, ins, fixed, of_inputs(P, across), at, mask)
    here = place(P, shape, vec[i64, P.width](q)) if P.needs_position else None
    so_far = [None for k in static(range(P.nstate))]
    for k in static(range(len(P.live))):
        so_far[P.live[k]] = state[k]
    found = evaluate(P.step, [*values, here, *so_far], P.width)
    result = [vec[P.state_types[P.live[k]], P.width](found[k]) for k in static(range(len(P.live)))]
    for k in static(range(len(P.live))):
        so_far[P.live[k]] = result[k]
    results = evaluate(P.finish, so_far, P.width)
    for k in static(range(P.nout)):
        store_output(P, k, outs[k], at, across[k], results[k], mask, False)
    return result


@inline
def at_row(P, outs, ins, steps, q):
    """The operands' pointers at element q of the lines."""
    return (
        [outs[k] + q * steps[k] for k in static(range(P.nout))],
        [ins[k] + q * steps[P.nout + k] for k in static(range(P.nin))],
    )


@native
def strips_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1: a strip of neighbouring lines each, row by row."""
    work = ptr[Work](args)
    shape = ptr[ScanShape](work.desc)
    steps = words_at(work.desc, SHAPE, P.nops)
    across = words_at(work.desc, SHAPE + 2 * P.nops, P.nops)
    W = static(P.width)
    carried = [local(P.state_types[k], STRIP + 64) for k in static(P.live)]
    for u in range(u0, u1):
        group = u // shape.strips
        lo = (u - group * shape.strips) * shape.strip
        m = min(shape.across - lo, shape.strip)
        outs, ins = pointers(P, work, shape, group)
        for i in range(0, m, W):
            for k in static(range(len(P.live))):
                at = static(P.live[k])
                vstore(carried[k] + i, vec[P.state_types[at], W](P.start[at]))
        whole = m // W * W
        for q in range(shape.n):
            to, at = at_row(P, outs, ins, steps, q)
            fixed = repeated(P, at)
            for i in range(0, whole, W):
                state = [vload(carried[k] + i, W) for k in static(range(len(P.live)))]
                result = advanced(P, to, at, fixed, across, shape, q, state, lo + i, None)
                for k in static(range(len(P.live))):
                    vstore(carried[k] + i, result[k])
            if whole < m:
                state = [vload(carried[k] + whole, W) for k in static(range(len(P.live)))]
                mask = first(W, m - whole)
                result = advanced(P, to, at, fixed, across, shape, q, state, lo + whole, mask)
                for k in static(range(len(P.live))):
                    vstore(carried[k] + whole, result[k])


@inline
def scan_some(P, work, shape, group, lo, count):
    """``count`` neighbouring lines from ``lo`` on, whose states stay in registers."""
    steps = words_at(work.desc, SHAPE, P.nops)
    across = words_at(work.desc, SHAPE + 2 * P.nops, P.nops)
    outs, ins = pointers(P, work, shape, group)
    carried = [
        [vec[P.state_types[k], 1](P.start[k]) for k in static(P.live)] for j in static(range(count))
    ]
    for q in range(shape.n):
        to, at = at_row(P, outs, ins, steps, q)
        fixed = repeated(P, at)
        for j in static(range(count)):
            result = advanced(P, to, at, fixed, across, shape, q, carried[j], lo + j, None)
            for k in static(range(len(P.live))):
                carried[j][k] = result[k]


@native
def single_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1: four lines each."""
    work = ptr[Work](args)
    shape = ptr[ScanShape](work.desc)
    for u in range(u0, u1):
        group = u // shape.strips
        lo = (u - group * shape.strips) * 4
        if lo + 4 <= shape.across:
            scan_some(P, work, shape, group, lo, 4)
        else:
            for line in range(lo, shape.across):
                scan_some(P, work, shape, group, line, 1)


@native
def scan_strips(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """The strips and single forms: see the module's docstring."""
    work = work_of(bufs, desc)
    shape = ptr[ScanShape](desc)
    few = max(WORTH // max(shape.n * shape.strip, 1), 1)
    units = shape.outer * shape.strips
    if P.form == "strips":
        run_job(P, strips_job, work, units, few)
    else:
        run_job(P, single_job, work, units, few)
    return 0


# ------------------------------------------------------------------------------------ planning
def compile_scan(what: Scan, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    if any(not isinstance(i, Layout) for i in ins):
        raise Unsupported("a scan of numbers")
    ops = [*outs, *ins]
    layout: Layout = outs[0]
    shape = layout.shape or (1,)
    strides = [list(o.strides) or [1] for o in ops]
    n = shape[what.dim]
    steps = [s[what.dim] if n > 1 else 1 for s in strides]
    starts = [0] * len(ops)
    if what.reverse:
        starts = [(n - 1) * s for s in steps]
        steps = [-s for s in steps]
    kept = [d for d in range(len(shape)) if d != what.dim and shape[d] != 1]
    kept.sort(key=lambda d: (-abs(strides[0][d]), d))
    sizes, columns = collapse([shape[d] for d in kept], [[s[d] for d in kept] for s in strides])
    across_steps = [c[-1] if sizes else 1 for c in columns] or [1] * len(ops)
    across = sizes[-1] if sizes else 1
    types = [type_or_pair(o) for o in outs], [type_or_pair(i) for i in ins]
    fold = fold_in_parts(what.start, what.lift, what.merge, what.finish, outs, ins)
    parted = replace(what, **dict(zip(("start", "lift", "merge", "finish"), fold, strict=True)))
    form = "rows"
    short = n * len(outs) <= SHORT and across >= 4 * SHORT
    if layout.numel and ((abs(across_steps[0]) < abs(steps[0]) and across >= 4) or short):
        form = "strips"
    along = across_steps if form == "strips" else steps
    pairs = [part_of(t) is not None for t in (*types[0], *types[1])]
    kinds = "".join([_kind(s, form, p) for s, p in zip(along, pairs, strict=True)])
    program = ScanTemplate(parted, *types, kinds, form)
    if form == "rows" and 0 < what.run < program.width:
        form = "single"
        kinds = "".join([_kind(s, form, p) for s, p in zip(across_steps, pairs, strict=True)])
        program = ScanTemplate(parted, *types, kinds, form)
    if form != "rows":
        sizes, columns = sizes[:-1], [c[:-1] for c in columns]
    outer = math.prod(sizes)
    if not layout.numel:
        outer = 0
    words = [outer, len(sizes), n]
    if form == "rows":
        parts, piece = (1, n) if what.run else pieces(outer, n)
        words += [1, 1, 1, parts, piece, *steps, *starts]
    else:
        strip = 4
        if form == "strips":
            strip = STRIP if outer * across >= 4 * STRIP else STRIP // 2
        words += [across, strip, -(-across // strip), 1, n, *steps, *starts, *across_steps]
    words += words_of(list(sizes), [list(c) for c in columns])
    spec = (scan_rows if form == "rows" else scan_strips).spec(P=program)
    return launch(spec, words, outs, ins, layout.numel, what)


def _kind(step: int, form: str, pair: bool) -> str:
    return "r" if step == -1 and form == "rows" and not pair else kind_of(step)


def pieces(lines: int, n: int) -> tuple[int, int]:
    """How many pieces a line is cut into, and their length."""
    if not 0 < lines <= 8 or n < 4 * THREAD:
        return 1, n
    parts = min(n // THREAD, PARTS // lines)
    piece = -(-n // (parts * PIECE)) * PIECE
    return -(-n // piece), piece
