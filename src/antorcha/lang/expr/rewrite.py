"""Whole-graph rewrites that devices apply before rendering: `opmath` and `expand`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from antorcha.core import dtypes
from antorcha.core.dtypes import dtype
from antorcha.errors import MissingFeature
from antorcha.lang.expr.graph import HALVES, LEAVES, OPS, Expr, const, node, walk, with_args
from antorcha.lang.expr.op import as_expr, cast_node


def opmath(expr: Expr) -> Expr:
    """The graph with float16 and bfloat16 arithmetic done in float32, as PyTorch does.

    Inputs are widened, the result is rounded once; casts that the function asked for keep their
    rounding. Scalars of half type become float32 scalars. `detach` is dropped: derive first.
    """
    return opmath_all((expr,))[0]


def opmath_all(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """`opmath` for several graphs, sharing what they share."""
    wide: dict[Expr, Expr] = {}
    for expr in walk(*roots):
        wide[expr] = _widen(expr, [wide[a] for a in expr.args])
    return tuple(cast_node(wide[r], r.dtype) for r in roots)


def _wider(t: dtype) -> dtype:
    return dtypes.float32 if t.name in HALVES else t


def _widen(expr: Expr, args: list[Expr]) -> Expr:
    target = _wider(expr.dtype)
    if expr.op == "input":
        return cast_node(expr, target)
    if expr.op == "const" and target is not expr.dtype:
        return const(expr.payload, target)  # type: ignore[arg-type]  # a number
    if expr.op == "detach":
        return args[0]
    if expr.op == "cast":
        return cast_node(cast_node(args[0], expr.dtype), target)
    if expr.op == "nextafter":  # its result is about the dtype itself
        own = tuple(cast_node(a, expr.dtype) for a in args)
        return cast_node(node(expr.op, own, expr.dtype), target)
    return node(expr.op, tuple(args), target, expr.payload)


def expand(expr: Expr, have: Collection[str]) -> Expr:
    """The graph with every op outside `have` replaced by its expansion, until none is left."""
    return expand_all((expr,), have)[0]


def expand_all(roots: Sequence[Expr], have: Collection[str]) -> tuple[Expr, ...]:
    """`expand` for several graphs, sharing what they share."""
    roots = tuple(roots)
    while True:
        done: dict[Expr, Expr] = {}
        changed = False
        for expr in walk(*roots):
            new = with_args(expr, tuple(done[a] for a in expr.args))
            if new.op not in have and new.op not in LEAVES:
                new, changed = _expansion(new), True
            done[expr] = new
        roots = tuple(done[r] for r in roots)
        if not changed:
            return roots


def _expansion(expr: Expr) -> Expr:
    rule = OPS[expr.op].expand
    head = () if expr.payload is None else (expr.payload,)
    found = rule(*head, *expr.args) if rule is not None else None
    if found is None:
        raise MissingFeature(f"expand: this device has no '{expr.op}' for {expr.dtype}")
    return cast_node(as_expr(found, expr.dtype), expr.dtype)
