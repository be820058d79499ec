"""Row programs cut into stages, for every device: what a pass evaluates, as ordinary expressions.

The program's graphs are cut at the seams: reductions, values hoisted out of the loop, the position
and the row's length become inputs after the program's own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from antorcha.core.dtypes import iinfo, int64
from antorcha.devices.emit import Unsupported
from antorcha.lang import expr as E
from antorcha.lang.expr import Expr
from antorcha.lang.expr.rows import is_reduction

REDUCTIONS = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all")
JOINS = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "maximum",
         "reduce_min": "minimum", "reduce_any": "or", "reduce_all": "and"}  # fmt: skip
_HEAVY = ("exp", "log", "tanh", "sigmoid", "erf", "pow", "sin", "cos", "log1p", "expm1", "sqrt")


def start_of(e: Expr) -> Any:
    """The value that a reduction of nothing has."""
    if e.op in ("reduce_sum", "reduce_any"):
        return 0
    if e.op in ("reduce_prod", "reduce_all"):
        return 1
    low = e.op == "reduce_max"
    if e.dtype.kind == "f":
        return float("-inf") if low else float("inf")
    return iinfo(e.dtype).min if low else iinfo(e.dtype).max


class Cutter:
    """Cuts a row program into stages; see the module's docstring."""

    def __init__(
        self, program: Any, park_in: Any = None, known: Collection[str] = REDUCTIONS
    ) -> None:
        self.program = program
        self.passes = program.schedule()
        self.nin = len(program.inputs)
        self.reductions = [e for p in self.passes for e in p.reductions]
        self.hoisted: list[Expr] = []
        self.hoists: list[list[Expr]] = []  # by pass: what no earlier one has hoisted
        for p in self.passes:
            new = [e for e in p.hoisted if e not in set(self.hoisted)]
            self.hoists.append(new)
            self.hoisted += new
        for e in self.reductions:
            if e.op not in known:
                raise Unsupported(e.op)
        count = self.nin + len(self.reductions)
        self.seams: dict[Expr, Expr] = {}
        for k, e in enumerate(self.reductions):
            self.seams[e] = E.input_(self.nin + k, e.dtype)
        self.hoist_seams = {e: E.input_(count + k, e.dtype) for k, e in enumerate(self.hoisted)}
        count += len(self.hoisted)
        self.leaf_seams: dict[Expr, Expr] = {}
        self.position, self.length, self.park = count, count + 1, count + 2
        for e in E.walk(*program.outputs):
            if e.op == "position":
                self.leaf_seams[e] = E.input_(self.position, e.dtype)
            elif e.op == "length":
                self.leaf_seams[e] = E.cast(E.input_(self.length, int64), e.dtype)
        self.parked = self.choose_parked(park_in)

    def choose_parked(self, out_dtype: Any) -> Expr | None:
        """The dearest value along the row that the last pass shares with an earlier one."""
        if out_dtype is None or len(self.passes) < 2:
            return None
        varies = self.program.varies()
        last = [self.program.outputs[k] for k in self.passes[-1].outputs]
        wanted = [e for e in below(last) if varies(e) and e.dtype is out_dtype]
        earlier = set(below([e.args[0] for e in self.passes[-2].reductions]))
        shared = [e for e in wanted if e in earlier and any(n.op in _HEAVY for n in E.walk(e))]
        return max(shared, key=lambda e: E.count_ops(e)) if shared else None

    def cut(self, exprs: Sequence[Expr], hoists: bool, parked: bool = False) -> list[Expr]:
        mapping = {**self.leaf_seams, **self.seams}
        if hoists:
            mapping.update(self.hoist_seams)
        if parked and self.parked is not None:
            mapping[self.parked] = E.input_(self.park, self.parked.dtype)
        return list(E.substitute_all(exprs, mapping))


def below(roots: Sequence[Expr]) -> list[Expr]:
    """The nodes of a loop body: reductions are leaves of it."""
    seen: dict[Expr, None] = {}
    stack = list(roots)
    while stack:
        e = stack.pop()
        if e not in seen:
            seen[e] = None
            if not is_reduction(e):
                stack.extend(e.args)
    return list(seen)
