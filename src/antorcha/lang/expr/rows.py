"""Row programs: a Python function over one row, with reductions inside, as passes over the row.

    def softmax(x):
        e = exp(x - detach(x.max()))
        return e / e.sum()

`trace_rows(softmax, [float32])` is a `RowProgram`: a graph in which some inputs run along the row,
others are one value per row, and "reduce" nodes turn the one into the other. `schedule()` orders it
in passes: what a pass accumulates needs only what earlier passes found. Whether a device keeps
intermediate rows or computes them again is its own decision.

`detach` around the maximum says what the formula means: shifting does not change the result, so no
gradient flows through the shift, and the backward pass is spared two passes that sum to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from antorcha.core.dtypes import dtype
from antorcha.core.lazy import np
from antorcha.core.structs import replace, struct
from antorcha.errors import ArgumentError
from antorcha.lang import expr as E
from antorcha.lang.expr.derivative import vjp
from antorcha.lang.expr.graph import (
    LEAVES,
    OPS,
    Expr,
    Number,
    input_,
    key,
    node,
    scalars_used,
    substitute_all,
    walk,
)
from antorcha.lang.expr.interpret import evaluate
from antorcha.lang.expr.printing import show
from antorcha.lang.expr.reductions import length, sum_
from antorcha.lang.expr.rewrite import expand_all, opmath_all
from antorcha.lang.expr.simplify import simplify_all
from antorcha.lang.expr.trace import as_outputs, call


@struct
class RowInput:
    """An operand of a row program: a row (also one shared by all rows), or a value per row."""

    dtype: dtype
    is_row: bool = True


def per_row(t: dtype) -> RowInput:
    """An operand with one value per row, such as a row's label or a saved mean."""
    return RowInput(t, is_row=False)


@struct
class Pass:
    """One loop over the row. Reductions of earlier passes stand in its expressions as leaves."""

    hoisted: tuple[Expr, ...]
    """What is the same along the row, to compute before the loop."""
    reductions: tuple[Expr, ...]
    """The reduce nodes it finds; `args[0]` of each is what to accumulate."""
    outputs: tuple[int, ...]
    """The row outputs it writes (numbers in `RowProgram.outputs`)."""
    reads: tuple[int, ...]
    """The row inputs it loads."""


@struct
class RowProgram:
    """A traced row function."""

    inputs: tuple[RowInput, ...]
    outputs: tuple[Expr, ...]
    rows: tuple[bool, ...]
    """For each output whether it is a row; else it is one value per row."""
    wrt: tuple[int, ...] = ()
    """In a gradient program: the forward input that each output is the gradient of."""

    def __repr__(self) -> str:
        return f"<row program {show(*self.outputs)}>"

    def __native_key__(self) -> str:
        """Exact text for cache keys."""
        kinds = "".join("r" if i.is_row else "s" for i in self.inputs)
        outs = "".join("r" if r else "s" for r in self.rows)
        types = ",".join(i.dtype.name for i in self.inputs)
        return f"rows {kinds}->{outs} ({types}) {key(*self.outputs)}"

    @property
    def scalars(self) -> dict[str, dtype]:
        """The launch-time values, by name."""
        return scalars_used(*self.outputs)

    def varies(self) -> Callable[[Expr], bool]:
        """A test for the graph's nodes: whether the value changes along the row."""
        return Rowness(k for k, i in enumerate(self.inputs) if i.is_row)

    def schedule(self) -> tuple[Pass, ...]:
        """The passes, in order. The last writes all row outputs, so one may replace an input.

        Outputs that are one value per row are left to compute at the end, from the reductions.
        """
        varies = self.varies()
        levels: dict[int, list[Expr]] = {}
        depth: dict[Expr, int] = {}
        for expr in walk(*self.outputs):
            depth[expr] = max((depth[a] for a in expr.args), default=0)
            if is_reduction(expr):
                depth[expr] += 1
                levels.setdefault(depth[expr], []).append(expr)
        passes = [
            _pass(tuple(levels[k]), (), [e.args[0] for e in levels[k]], varies)
            for k in sorted(levels)
        ]
        written = tuple(k for k, is_row in enumerate(self.rows) if is_row)
        if written:
            passes.append(_pass((), written, [self.outputs[k] for k in written], varies))
        return tuple(passes)

    def opmath(self) -> RowProgram:
        """Half arithmetic and accumulation in float32 (see `rewrite.opmath`)."""
        return replace(self, outputs=simplify_all(opmath_all(self.outputs)))

    def expand(self, have: Collection[str]) -> RowProgram:
        """Only ops in `have` (see `rewrite.expand`); reductions are ops too."""
        return replace(self, outputs=expand_all(self.outputs, have))

    def evaluate(
        self,
        values: Sequence[Any],
        scalars: Mapping[str, Any] | None = None,
        length: int | None = None,
    ) -> Any:
        """NumPy's answer over the last axis: the oracle. A tuple when there are several outputs.

        Rows have shape (..., n) and broadcast; operands and results per row have shape (...).
        ``length`` gives n where no operand is a row.
        """
        arrays = [
            np.asarray(v) if i.is_row else np.asarray(v)[..., None]
            for v, i in zip(values, self.inputs, strict=True)
        ]
        sizes = [
            a.shape[-1] for a, i in zip(arrays, self.inputs, strict=True) if i.is_row and a.ndim
        ]
        n = max(sizes, default=length or 1) if 0 not in sizes else 0
        found = evaluate(self.outputs, arrays, scalars, length=n)
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
        results = []
        for value, is_row in zip(found, self.rows, strict=True):
            value = np.broadcast_to(value, (*lead, n if is_row else 1))
            results.append(value if is_row else value[..., 0])
        return tuple(results) if len(results) > 1 else results[0]

    def gradient(self, keep: Sequence[int] = (), wrt: Sequence[int] | None = None) -> RowProgram:
        """The backward program, by reverse accumulation through the reductions.

        Its inputs are the cotangents of all outputs, then the inputs, then the outputs numbered in
        `keep` (saved by the forward pass and read where the gradient uses them). Its outputs are
        the gradients of the inputs `wrt` (all floating ones through which a gradient flows); they
        are rows where the input is. Gradients of a row shared by many rows are still to be summed
        over those.
        """
        return _gradient(self, keep, wrt)


class Rowness:
    """Whether a node's value changes along the row; remembers, for one set of row inputs."""

    def __init__(self, rows: Iterable[int]) -> None:
        self._rows = frozenset(rows)
        self._known: dict[Expr, bool] = {}

    def __call__(self, expr: Expr) -> bool:
        known = self._known
        if expr not in known:
            for e in walk(expr):
                if e not in known:
                    known[e] = self._one(e)
        return known[expr]

    def _one(self, e: Expr) -> bool:
        if e.op == "input":
            return e.payload in self._rows
        if e.op == "position":
            return True
        return not is_reduction(e) and any(self._known[a] for a in e.args)


def is_reduction(expr: Expr) -> bool:
    """Whether the node turns a row into one value."""
    record = OPS.get(expr.op)
    return record is not None and record.reduction


def trace_rows(
    fn: Callable[..., Any],
    types: Sequence[dtype | RowInput],
    scalars: Mapping[str, dtype | Number] | None = None,
) -> RowProgram:
    """The program of a row function; a dtype stands for a row, `per_row(dtype)` for a value."""
    inputs = tuple(t if isinstance(t, RowInput) else RowInput(t) for t in types)
    result = call(fn, [input_(k, i.dtype) for k, i in enumerate(inputs)], scalars)
    outputs = simplify_all(as_outputs(fn, result))
    varies = Rowness(k for k, i in enumerate(inputs) if i.is_row)
    return RowProgram(inputs, outputs, tuple(varies(e) for e in outputs))


def _inside(roots: Sequence[Expr]) -> Iterator[Expr]:
    """The nodes of one loop body: nothing below a reduction is part of it."""
    seen: set[Expr] = set()
    stack = list(reversed(roots))
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            yield expr
            if not is_reduction(expr):
                stack.extend(reversed(expr.args))


def _pass(
    reductions: tuple[Expr, ...],
    outputs: tuple[int, ...],
    roots: Sequence[Expr],
    varies: Callable[[Expr], bool],
) -> Pass:
    hoisted: dict[Expr, None] = {}
    reads: set[int] = set()
    candidates = list(roots)
    for expr in _inside(roots):
        if varies(expr):
            candidates.extend(expr.args)
            if expr.op == "input" and isinstance(expr.payload, int):
                reads.add(expr.payload)
    for expr in candidates:
        if not varies(expr) and not is_reduction(expr) and expr.op not in LEAVES:
            hoisted[expr] = None
    return Pass(tuple(hoisted), reductions, outputs, tuple(sorted(reads)))


def _sum(expr: Expr, varies: Callable[[Expr], bool]) -> Expr:
    """The sum over the row, with the factors that are the same along it taken out of the loop."""
    if expr.op == "neg":
        return E.neg.build(_sum(expr.args[0], varies))
    if expr.op in ("mul", "div"):
        a, b = expr.args
        if not varies(b):
            return node(expr.op, (_sum(a, varies), b), expr.dtype)
        if expr.op == "mul" and not varies(a):
            return node("mul", (a, _sum(b, varies)), expr.dtype)
        if a.op == "neg":
            return E.neg.build(_sum(node(expr.op, (a.args[0], b), expr.dtype), varies))
        if expr.op == "mul" and b.op in ("mul", "div") and not varies(b.args[1]):
            inner = node("mul", (a, b.args[0]), expr.dtype)
            return node(b.op, (_sum(inner, varies), b.args[1]), expr.dtype)
    return sum_.build(expr)


def _gradient(program: RowProgram, keep: Sequence[int], wrt: Sequence[int] | None) -> RowProgram:
    count, shift = len(program.inputs), len(program.outputs)
    leaves = [input_(k, i.dtype) for k, i in enumerate(program.inputs)]
    # Cotangents take numbers past the inputs' while deriving, then all inputs are numbered anew.
    seeds = [input_(count + k, e.dtype) for k, e in enumerate(program.outputs)]
    rows = [k for k, i in enumerate(program.inputs) if i.is_row]
    varies = Rowness([*rows, *(count + k for k, is_row in enumerate(program.rows) if is_row)])

    def settle(part: Expr, expr: Expr, arg: Expr) -> Expr:
        """A value used all along the row collects what comes back from every element."""
        if varies(arg) or not (varies(expr) or is_reduction(expr)):
            return part
        return _sum(part, varies) if varies(part) else part * length(part.dtype)

    cotangents = [s if s.dtype.kind in "fc" else None for s in seeds]
    chosen = range(count) if wrt is None else wrt
    wanted = [k for k in chosen if leaves[k].dtype.kind in "fc"]
    found = vjp(program.outputs, cotangents, [leaves[k] for k in wanted], settle)
    flowing = [(k, g) for k, g in zip(wanted, found, strict=True) if g is not None]
    if not flowing:
        raise ArgumentError(f"gradient: no gradient flows from the outputs of {program!r}")

    mapping = {leaf: input_(shift + k, leaf.dtype) for k, leaf in enumerate(leaves)}
    mapping.update({s: input_(k, s.dtype) for k, s in enumerate(seeds)})
    saved = []
    for i, k in enumerate(keep):
        output = program.outputs[k]
        saved.append(RowInput(output.dtype, program.rows[k]))
        if output.args:
            mapping[output] = input_(shift + count + i, output.dtype)
    grads = simplify_all(substitute_all(simplify_all([g for _, g in flowing]), mapping))
    heads = [RowInput(e.dtype, r) for e, r in zip(program.outputs, program.rows, strict=True)]
    inputs = (*heads, *program.inputs, *saved)
    positions = tuple(k for k, _ in flowing)
    return RowProgram(inputs, grads, tuple(program.inputs[k].is_row for k in positions), positions)
