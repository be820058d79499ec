"""Symbolic derivatives by reverse accumulation over the graph.

The rules stand in the op records. A node's cotangent is complete before its rule runs, so shared
subexpressions are derived once and the result shares the nodes of the original. Cotangents of
complex values are conjugate gradients, as PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from antorcha.errors import GraphError
from antorcha.lang.expr.graph import (
    OPS,
    Expr,
    const,
    input_,
    inputs_used,
    node,
    substitute_all,
    walk,
)
from antorcha.lang.expr.op import as_expr, cast_node
from antorcha.lang.expr.simplify import simplify, simplify_all

Settle = Callable[[Expr, Expr, Expr], Expr]
"""(contribution, node, argument) -> the contribution as the argument can take it (rows sum it)."""


def derivative(expr: Expr, wrt: int | Expr) -> Expr:
    """d expr / d wrt for one input (its position) or any node of the graph; zero if independent."""
    target = _find(expr, wrt) if isinstance(wrt, int) else wrt
    if target is None:
        return const(0, expr.dtype)
    (result,) = vjp((expr,), (const(1, expr.dtype),), (target,))
    return const(0, target.dtype) if result is None else simplify(result)


def gradient(expr: Expr, cotangent: Expr | None = None) -> tuple[Expr, ...]:
    """The derivatives with respect to inputs 0..n-1, n - 1 being the last input that is read."""
    used = inputs_used(expr)
    seed = const(1, expr.dtype) if cotangent is None else cotangent
    leaves = {k: _find(expr, k) for k in used}
    floats = {k: e for k, e in leaves.items() if e is not None and e.dtype.kind in "fc"}
    found = dict(zip(floats, vjp((expr,), (seed,), tuple(floats.values())), strict=True))
    results = []
    for k in range(max(used, default=-1) + 1):
        leaf, value = leaves.get(k), found.get(k)
        results.append(
            const(0, expr.dtype if leaf is None else leaf.dtype) if value is None else value
        )
    return simplify_all(results)


def _find(expr: Expr, position: int) -> Expr | None:
    for e in walk(expr):
        if e.op == "input" and e.payload == position:
            return e
    return None


def vjp(
    outputs: Sequence[Expr],
    cotangents: Sequence[Expr | None],
    wrt: Sequence[Expr],
    settle: Settle | None = None,
) -> tuple[Expr | None, ...]:
    """The cotangents of `wrt` given those of the outputs; None where no gradient flows."""
    total: dict[Expr, Expr] = {}
    for output, g in zip(outputs, cotangents, strict=True):
        if g is not None:
            _accumulate(total, output, g)
    order = list(walk(*outputs))
    for target in wrt:
        if target.dtype.kind not in "fc":
            raise GraphError(f"derivative: `{target}` is {target.dtype}; only floats have one")
    needed = _depends(order, wrt)
    for expr in reversed(order):
        if expr in total and expr in needed and expr.args:
            _through(expr, total[expr], total, needed, settle)
    return tuple(total.get(t) for t in wrt)


def _depends(order: Sequence[Expr], wrt: Sequence[Expr]) -> set[Expr]:
    """The nodes whose value changes with one of `wrt`."""
    needed = set(wrt)
    for expr in order:
        if any(a in needed for a in expr.args):
            needed.add(expr)
    return needed


def _through(
    expr: Expr, g: Expr, total: dict[Expr, Expr], needed: set[Expr], settle: Settle | None
) -> None:
    """Carry a node's cotangent to its arguments."""
    rules = OPS[expr.op].grads
    if rules is None:
        raise GraphError(f"derivative: '{expr.op}' has no derivative (in `{expr}`)")
    head = () if expr.payload is None else (expr.payload,)
    for arg, rule in zip(expr.args, rules, strict=True):
        if rule is None or arg not in needed or arg.dtype.kind not in "fc":
            continue
        value = rule(g, *head, *expr.args, expr)
        if value is None:
            continue
        part = as_expr(value, arg.dtype)
        if settle is not None:
            part = settle(part, expr, arg)
        _accumulate(total, arg, part)


def _accumulate(total: dict[Expr, Expr], expr: Expr, part: Expr) -> None:
    """Add a contribution; a real value takes the real part of a complex one."""
    part = cast_node(part, expr.dtype)
    total[expr] = node("add", (total[expr], part), expr.dtype) if expr in total else part


def pullback(
    outputs: Expr | Sequence[Expr], *, keep: Sequence[int] = ()
) -> tuple[tuple[Expr | None, ...], tuple[Expr, ...]]:
    """The kernel of the backward pass: (gradients by input position, its inputs in order).

    Its inputs are the cotangents of the outputs, then the inputs of the forward graph, then the
    outputs whose numbers are in `keep`: where the gradient uses such an output, it reads it instead
    of computing it again. The gradient of an input that needs none is None.
    """
    roots = (outputs,) if isinstance(outputs, Expr) else tuple(outputs)
    leaves = {int(str(e.payload)): e for e in walk(*roots) if e.op == "input"}
    count = max(leaves, default=-1) + 1
    shift = len(roots)
    # Cotangents take numbers past all others while deriving, so that no two inputs are confused.
    seeds = tuple(input_(count + k, r.dtype) for k, r in enumerate(roots))
    wanted = [k for k in range(count) if k in leaves and leaves[k].dtype.kind in "fc"]
    cotangents = [s if s.dtype.kind in "fc" else None for s in seeds]
    grads = vjp(roots, cotangents, [leaves[k] for k in wanted])
    flowing = [(k, g) for k, g in zip(wanted, grads, strict=True) if g is not None]
    simple = simplify_all([g for _, g in flowing])
    mapping = {leaf: input_(shift + k, leaf.dtype) for k, leaf in leaves.items()}
    mapping.update({s: input_(k, s.dtype) for k, s in enumerate(seeds)})
    saved = {roots[k]: input_(shift + count + i, roots[k].dtype) for i, k in enumerate(keep)}
    mapping.update({e: x for e, x in saved.items() if e.op not in ("input", "const")})
    final = simplify_all(substitute_all(simple, mapping))
    by_input = dict(zip([k for k, _ in flowing], final, strict=True))
    inputs = [*(mapping[s] for s in seeds), *(mapping[leaves[k]] for k in sorted(leaves))]
    return tuple(by_input.get(k) for k in range(count)), (*inputs, *saved.values())
