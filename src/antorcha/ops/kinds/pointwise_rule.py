"""Gradients of pointwise ops: an expression per operand, one fused kernel each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.lang import expr as E
from antorcha.ops.kinds.derive import Rule, bits, fit_one, saved_items, unpack
from antorcha.ops.kinds.exprs import ExprOp, gradients, is_zero, place
from antorcha.ops.kinds.params import NUMBER
from antorcha.ops.kinds.record import T
from antorcha.runtime.call.node import RELEASED, Node
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.lang.expr import Expr
    from antorcha.ops.kinds.pointwise import PointwiseOp
    from antorcha.ops.kinds.record import Op
    from antorcha.runtime.memory.layout import Layout


class PointwiseRule(Rule):
    """Gradients of a pointwise op: one fused kernel for each operand that wants one.

    They are expressions over inputs numbered so: operands and numbers 0 to n-1, then the results,
    then the results' gradients.
    """

    replays = replays_numbers = True

    def __init__(self, op: PointwiseOp) -> None:
        self.op = op

    def names(self) -> list[str]:
        """The parameters that are operands, in order."""
        return [p.name for p in self.op.signature.params if p.code < NUMBER]

    def expressions(
        self, args: dict[str, Expr], rest: dict[str, Any], n: int, have: int
    ) -> list[Any]:
        """The gradient of each operand. Bit k of ``have``: there is a gradient of result k."""
        result = self.op.fn(**args, **rest)
        several = isinstance(result, (tuple, list))
        results = [r for r in (result if several else (result,)) if isinstance(r, E.Expr)]
        if not results:
            return [None] * n
        count = len(results)
        outs = [E.input_(n + k, r.dtype) for k, r in enumerate(results)]
        seeds: list[Expr | None] = [
            E.input_(n + count + k, r.dtype) if have >> k & 1 else None
            for k, r in enumerate(results)
        ]
        fn = self.op.derive_fn
        operands = self.names()
        if fn is None:
            found = gradients(results, n, seeds, outs)
            return [found[place(args[name])] if name in args else None for name in operands]
        g = [E.const(0, r.dtype) if s is None else s for s, r in zip(seeds, results)]
        given = {**args, **rest, "out": tuple(outs), "g": tuple(g)}
        if not several:
            given["out"], given["g"] = outs[0], g[0]
        wanted = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        slopes = fn(**{name: given[name] for name in wanted})
        slopes = slopes if isinstance(slopes, (tuple, list)) else (slopes,)
        common = results[0].dtype
        return [m if m is None or isinstance(m, E.Expr) else E.const(m, common) for m in slopes]

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        key = ("saves", mask)
        found: tuple[int, ...] | None = plan.vjp.get(key)
        if found is None:
            wanted: set[int] = set()
            for k in bits(mask):
                sources = self.vjp(plan, k, self.all_of(plan)).sources
                wanted.update([at for kind, at in sources if kind == SAVED])
            found = plan.vjp[key] = tuple(sorted(wanted, reverse=True))
        return found

    def all_of(self, plan: Plan) -> int:
        """The mask of the results that can have a gradient."""
        return sum([1 << k for k, out in enumerate(plan.outs) if out.dtype.kind in "fc"])

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        plan = node.plan
        assert plan is not None
        kept = node.saved
        if kept is RELEASED:
            saved_items(node)  # refuses
        result: list[Tensor | None] = [None] * len(node.edges)
        have = sum([1 << k for k, g in enumerate(grads) if g is not None]) & self.all_of(plan)
        for k in bits(node.mask) if have else ():
            result[k] = self.vjp(plan, k, have).gradient(node, grads, kept, create)
        return result

    def vjp(self, plan: Plan, k: int, have: int) -> GradientOp:
        """The op that computes the gradient of operand k of plans of this kind."""
        known: dict[Any, GradientOp] = plan.post.gradients
        found = known.get((k, have))
        if found is None:
            found = known[k, have] = self._make_vjp(plan, k, have)
        return found

    def _make_vjp(self, plan: Plan, k: int, have: int) -> GradientOp:
        where, types = plan.post.where, plan.post.types
        n = len(types)
        args = {name: E.input_(j, types[j]) for name, j in where.items()}
        params = self.names()
        gradient = self.expressions(args, plan.statics, n, have)[k]
        layout = plan.tensors[k]
        assert layout is not None
        if gradient is None or (isinstance(gradient, E.Expr) and is_zero(gradient)):
            gradient = E.const(0, layout.dtype)
        if layout.dtype.kind != "c" and gradient.dtype.kind == "c":
            gradient = E.real(gradient)
        source: dict[int, Source] = {}
        for name, j in where.items():
            source[j] = (SAVED, params.index(name) if name in params else 0)
        for number, name in enumerate(plan.post_names):
            source[where[name]] = (NUMBER_GIVEN, number)
        count = len(plan.outs)
        for j in range(count):
            source[n + j], source[n + count + j] = (SAVED, -1 - j), (GRADIENT, j)
        return GradientOp(self.op, k, gradient, source, layout.dtype)


SAVED, GRADIENT, NUMBER_GIVEN = range(3)
Source = tuple[int, int]
"""Where an input of a gradient comes from: (SAVED, operand k or result -1 - k), (GRADIENT, of
result k) or (NUMBER_GIVEN, number k of the call)."""


class GradientOp:
    """The gradient of one operand of a pointwise op: an expression over some of what was saved."""

    def __init__(
        self, op: Op, k: int, gradient: Expr, source: dict[int, Source], dtype: DType
    ) -> None:
        used = E.inputs_used(gradient)
        inputs = enumerate(_typed(gradient))
        renumbered = E.substitute(
            gradient, {E.input_(j, dt): E.input_(i, dt) for i, (j, dt) in inputs}
        )
        self.sources = [source[j] for j in used]
        self.k = k
        self.identity = renumbered.op == "input" and self.sources[0][0] == GRADIENT
        if renumbered.dtype is not dtype and dtype.kind in "fc":
            renumbered = E.cast(renumbered, dtype)
            self.identity = False
        self.op = ExprOp(f"{op.name}_backward", renumbered)
        self.constant = not used

    def gradient(self, node: Node, grads: list[Tensor | None], kept: Any, create: bool) -> Tensor:
        plan = node.plan
        assert plan is not None
        assert plan.rule is not None
        layout = plan.tensors[self.k]
        assert layout is not None
        if self.constant:
            return constant_like(self.op.expr, layout)
        if self.identity:
            g = grads[self.sources[0][1]]
            assert g is not None
            return fit_one(g, layout)
        places = plan.rule.saves(plan, node.mask)
        operands: list[Any] = []
        for kind, at in self.sources:
            if kind == SAVED:
                operands.append(unpack(node, at, kept[places.index(at)], create))
            else:
                operands.append(grads[at] if kind == GRADIENT else node.values[at])
        return fit_one(self.op(*operands), layout)


def _typed(e: Expr) -> list[tuple[int, DType]]:
    found = {int(n.payload): n.dtype for n in E.walk(e) if n.op == "input"}  # type: ignore[arg-type]
    return sorted(found.items())


def constant_like(e: Expr, layout: Layout) -> Tensor:
    result: Tensor = T.full_layout(layout.shape, e.payload, layout.dtype, layout.device)
    return result
