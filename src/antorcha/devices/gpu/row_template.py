"""What a kernel of rows is compiled for: a row program's passes, as bodies, and the form of teams.

A reduction has a state of one value, or of more: two parts of a complex number, an extreme and
where it is. The states of a pass are joined at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.dtypes import dtype as DType
from antorcha.core.dtypes import iinfo, int64, uint8
from antorcha.core.structs import replace, struct
from antorcha.devices.complexes import dtype_in_memory, loaded_as
from antorcha.devices.emit import TYPES, Body, Unsupported, available, body_of
from antorcha.devices.gpu.frame import GridTemplate
from antorcha.devices.row_stages import JOINS, REDUCTIONS, Cutter, start_of
from antorcha.lang import expr as E
from antorcha.lang.expr import Expr
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

PLACES = ("argmax", "argmin")


@struct
class Accumulator:
    """A reduction: the state of one element, that of none, how two join (expressions over inputs
    0..s-1 and s..2s-1), and which of a state's values are its result."""

    lift: tuple[Expr, ...]
    start: tuple[Any, ...]
    join: tuple[Expr, ...]
    gives: tuple[int, ...]


def accumulator(e: Expr, arg: Expr, position: int) -> Accumulator:
    """The accumulator of a reduction, given what it goes over as an expression of a loop."""
    arg = E.cast(arg, e.args[0].dtype if e.op in PLACES else e.dtype)
    if e.op in PLACES:
        return _place_of(e, arg, position)
    if e.dtype.kind == "c":
        return _in_parts(e, arg)
    a, b = E.input_(0, e.dtype), E.input_(1, e.dtype)
    return Accumulator((arg,), (start_of(e),), (E.node(JOINS[e.op], (a, b), e.dtype),), (0,))


def _in_parts(e: Expr, arg: Expr) -> Accumulator:
    """A sum or a product of complex numbers."""
    if e.op not in ("reduce_sum", "reduce_prod"):
        raise Unsupported(f"{e.op} of complex numbers")
    part = e.dtype.to_real()
    a, b = [E.node("complex", (E.input_(k, part), E.input_(k + 1, part)), e.dtype) for k in (0, 2)]
    both = E.node(JOINS[e.op], (a, b), e.dtype)
    return Accumulator(
        (E.real(arg), E.imag(arg)), (start_of(e), 0), (E.real(both), E.imag(both)), (0, 1)
    )


def _place_of(e: Expr, arg: Expr, position: int) -> Accumulator:
    """The first position of an extreme, or of NaN."""
    if arg.dtype.kind == "c":
        raise Unsupported(f"{e.op} of complex numbers")
    arg = E.cast(arg, uint8) if arg.dtype.kind == "b" else arg
    kind, low = arg.dtype, e.op == "argmax"
    a, i, b, j = [E.input_(k, (kind, int64)[k % 2]) for k in range(4)]
    better, tied = (b > a) if low else (b < a), a == b
    if kind.kind == "f":
        start: Any = float("-inf") if low else float("inf")
        better = (E.isnan(b) & ~E.isnan(a)) | (~E.isnan(a) & better)
        tied = tied | (E.isnan(a) & E.isnan(b))
    else:
        start = iinfo(kind).min if low else iinfo(kind).max
    better = better | (tied & (j < i))
    return Accumulator(
        (arg, E.input_(position, int64)), (start, iinfo(int64).max),
        (E.where(better, b, a), E.where(better, j, i)), (1,),
    )  # fmt: skip


class RowStage:
    """One pass of a program."""

    hoist: Body | None  # what is the same along the row
    hoist_parts: list[tuple[int, ...]]  # where that stands among the seams
    work: Body  # the states of an element, then the outputs
    join: Body | None  # two states as one
    starts: list[Any]
    types: list[Ty]
    first: int  # the number of its first value among the states of all passes
    gives: list[int]  # which values of its state are the results of its reductions
    gives_at: int  # where these stand among the seams
    outs: list[int]  # the outputs it writes
    reads: list[bool]


class RowStages:
    """A row program's passes for operands of given dtypes. Seams, what reductions and hoisted
    expressions give, are values in a row, complex ones two of them."""

    def __init__(self, program: Any, outs: Sequence[Layout], ins: Sequence[Layout]) -> None:
        rows = program.opmath()
        nodes = list(E.walk(*rows.outputs))
        self.complex = "c" in [e.dtype.kind for e in nodes] + [
            dtype_in_memory(o).kind for o in (*outs, *ins)
        ]
        if not self.complex:
            rows = rows.expand({*available(), *REDUCTIONS, *PLACES, "position", "length"})
        self.program, self.outs, self.ins = rows, outs, ins
        self.is_row = [i.is_row for i in rows.inputs]
        self.cutter = Cutter(rows, known=(*REDUCTIONS, *PLACES))
        self._number_seams()
        self.states = 0
        self.stages = [self._stage(k) for k in range(len(self.cutter.passes))]
        self.finals = [k for k, is_row in enumerate(rows.rows) if not is_row]
        final = self.cutter.cut([rows.outputs[k] for k in self.finals], False)
        self.final = body_of(self._stored(self._loaded(final), self.finals)) if final else None
        bodies = [b for s in self.stages for b in (s.hoist, s.work) if b is not None]
        bodies += [] if self.final is None else [self.final]
        read = {k for b in bodies for k in E.inputs_used(*b.exprs)}
        self.used = [k in read for k in range(len(ins))]
        self.key = f"{rows.rows}{self.is_row}|" + ";".join([
            f"{s.hoist and s.hoist.key}/{s.work.key}/{s.join and s.join.key}/{s.starts}/{s.outs}"
            for s in self.stages
        ]) + f"|{self.final and self.final.key}"  # fmt: skip

    def _number_seams(self) -> None:
        """The places of each seam's values, and their types."""
        self.seam_parts: list[tuple[int, ...]] = []
        self.seam_types: list[Ty] = []
        for e in (*self.cutter.reductions, *self.cutter.hoisted):
            kind: DType = e.dtype
            count = 2 if kind.kind == "c" else 1
            at = len(self.seam_types)
            self.seam_parts.append(tuple(range(at, at + count)))
            self.seam_types += [TYPES[kind.to_real().name if count == 2 else kind.name]] * count

    def _loaded(self, exprs: Sequence[Expr]) -> Sequence[Expr]:
        return loaded_as(exprs, self.ins) if self.complex else exprs

    def _stored(self, exprs: Sequence[Expr], outs: Sequence[int]) -> list[Expr]:
        if not self.complex:
            return list(exprs)
        return [E.cast(e, self.outs[k].dtype) for e, k in zip(exprs, outs, strict=True)]

    def _stage(self, k: int) -> RowStage:
        cutter, s = self.cutter, RowStage()
        each, hoisted = cutter.passes[k], cutter.hoists[k]
        s.hoist = body_of(self._loaded(cutter.cut(hoisted, False))) if hoisted else None
        seam = len(cutter.reductions) + sum([len(h) for h in cutter.hoists[:k]])
        s.hoist_parts = self.seam_parts[seam : seam + len(hoisted)]
        args = self._loaded(cutter.cut([e.args[0] for e in each.reductions], True))
        found = [accumulator(e, a, cutter.position)
                 for e, a in zip(each.reductions, args, strict=True)]  # fmt: skip
        s.outs = list(each.outputs)
        written = self._loaded(cutter.cut([self.program.outputs[o] for o in s.outs], True))
        lift = [e for f in found for e in f.lift]
        s.work = body_of([*lift, *self._stored(written, s.outs)])
        s.types = [TYPES[e.dtype.name] for e in lift]
        s.starts = [x for f in found for x in f.start]
        s.join = body_of(joined(found)) if found else None
        s.first = self.states
        self.states += len(lift)
        s.gives, at = [], 0
        for f in found:
            s.gives += [at + g for g in f.gives]
            at += len(f.lift)
        before = sum([len(p.reductions) for p in cutter.passes[:k]])
        s.gives_at = self.seam_parts[before][0] if found else 0
        used = E.inputs_used(*s.work.exprs)
        s.reads = [j in used for j in range(len(self.ins))]
        return s


def joined(found: Sequence[Accumulator]) -> list[Expr]:
    """The joins of several accumulators as that of one state: their values in a row."""
    total = sum([len(f.lift) for f in found])
    result: list[Expr] = []
    at = 0
    for f in found:
        count = len(f.lift)
        places = {
            E.input_(k, e.dtype): E.input_(at + k % count + k // count * total, e.dtype)
            for k, e in enumerate((*f.lift, *f.lift))
        }
        result += E.substitute_all(f.join, places)
        at += count
    return result


@struct
class RowsForm:
    """``team``: threads of a row; ``threads``: of a block; ``held``: elements that each keeps in
    registers, or 0; ``columns``: rows lie side by side; ``dims``: those before the row's;
    ``apart``: which pass this kernel runs, the finals after all, or None for all in one kernel."""

    team: int
    threads: int
    held: int
    columns: bool
    dims: int
    apart: int | None

    def replaced(self, **fields: Any) -> RowsForm:
        return replace(self, **fields)


class RowsGrid(GridTemplate):
    """A kernel of rows for operands in memory, in one form."""

    def __init__(
        self, stages: RowStages, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty,
        form: RowsForm,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.form, self.is_row, self.used = form, stages.is_row, stages.used
        self.seam_parts, self.seam_types = stages.seam_parts, stages.seam_types
        self.finals, self.final = stages.finals, stages.final
        self.stages_key = stages.key
        k, last = form.apart, len(stages.stages) - 1
        self.before = [] if k is None else [s for s in stages.stages[:k] if s.starts]
        self.run = stages.stages if k is None else stages.stages[k : k + 1]
        in_last = k is None or k > last or (k == last and not stages.stages[last].starts)
        self.writes_finals = in_last and stages.final is not None
        self.own_words = self.head + (0 if k is None else stages.states)

    def __native_key__(self) -> str:
        f = self.form
        shape = f"{f.team},{f.threads},{f.held},{f.columns},{f.dims},{f.apart}"
        return f"{self.stages_key}|{self.operands_key()}|{shape}"
