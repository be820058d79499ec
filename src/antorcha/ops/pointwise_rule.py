"""Gradients of pointwise ops: an expression per operand, one fused kernel each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.lang import expr as E
from antorcha.ops.derive import Rule, bits, fit_one, saved_items, unpack
from antorcha.ops.exprs import ExprOp, gradients, is_zero, place
from antorcha.ops.params import NUMBER
from antorcha.runtime.call.node import RELEASED, Node
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.dtypes import dtype as DType
    from antorcha.lang.expr import Expr
    from antorcha.ops.pointwise import PointwiseOp
    from antorcha.ops.record import Op
    from antorcha.runtime.layout import Layout


class PointwiseRule(Rule):
    """Gradients of a pointwise op: one fused kernel for each operand that wants one."""

    replays = replays_numbers = True

    def __init__(self, op: PointwiseOp) -> None:
        self.op = op

    def names(self) -> list[str]:
        """The parameters that are operands, in order."""
        return [p.name for p in self.op.signature.params if p.code < NUMBER]

    def expressions(self, args: dict[str, Expr], rest: dict[str, Any], n: int) -> list[Any]:
        """The gradient of each operand over Inputs: operands and numbers 0..n-1, the result n,
        the result's gradient n + 1."""
        result = self.op.fn(**args, **rest)
        if not isinstance(result, E.Expr):
            return [None] * n
        common = result.dtype
        out, g = E.input_(n, common), E.input_(n + 1, common)
        fn = self.op.derive_fn
        operands = self.names()
        if fn is None:
            found = gradients(result, n, g, out)
            return [found[place(args[name])] if name in args else None for name in operands]
        given = {**args, **rest, "out": out, "g": g}
        wanted = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        made = fn(**{name: given[name] for name in wanted})
        made = made if isinstance(made, (tuple, list)) else (made,)
        return [m if m is None or isinstance(m, E.Expr) else E.const(m, common) for m in made]

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        key = ("saves", mask)
        found: tuple[int, ...] | None = plan.vjp.get(key)
        if found is None:
            wanted: set[int] = set()
            for k in bits(mask):
                wanted.update(self.vjp(plan, k).sources)
            found = plan.vjp[key] = tuple([k for k in sorted(wanted, reverse=True) if k >= -1])
        return found

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        (g,) = grads
        plan = node.plan
        assert plan is not None
        assert g is not None
        kept = node.saved
        if kept is RELEASED:
            saved_items(node)  # refuses
        result: list[Tensor | None] = [None] * len(node.edges)
        for k in bits(node.mask):
            result[k] = self.vjp(plan, k).gradient(node, g, kept, create)
        return result

    def vjp(self, plan: Plan, k: int) -> GradientOp:
        """The op that computes the gradient of operand k of plans of this kind."""
        known: dict[int, GradientOp] = plan.post.gradients
        found = known.get(k)
        if found is None:
            found = known[k] = self._make_vjp(plan, k)
        return found

    def _make_vjp(self, plan: Plan, k: int) -> GradientOp:
        where, types = plan.post.where, plan.post.types
        n = len(types)
        args = {name: E.input_(j, types[j]) for name, j in where.items()}
        params = self.names()
        gradient = self.expressions(args, plan.statics, n)[k]
        lay = plan.tensors[k]
        assert lay is not None
        if gradient is None or (isinstance(gradient, E.Expr) and is_zero(gradient)):
            gradient = E.const(0, lay.dtype)
        if lay.dtype.kind != "c" and gradient.dtype.kind == "c":
            gradient = E.real(gradient)
        # kernel input -> operand position (-1 result, -2 g, -10-j number)
        source: dict[int, int] = {}
        for name, j in where.items():
            source[j] = params.index(name) if name in params else 0
        for number, name in enumerate(plan.post_names):
            source[where[name]] = -10 - number
        source[n], source[n + 1] = -1, -2
        return GradientOp(self.op, k, gradient, source, lay.dtype)


class GradientOp:
    """The gradient of one operand of a pointwise op: an expression over some of what was saved."""

    def __init__(
        self, op: Op, k: int, gradient: Expr, source: dict[int, int], dtype: DType
    ) -> None:
        used = E.inputs_used(gradient)
        inputs = enumerate(_typed(gradient))
        renumbered = E.substitute(
            gradient, {E.input_(j, dt): E.input_(i, dt) for i, (j, dt) in inputs}
        )
        self.sources = [source[j] for j in used]
        self.k = k
        self.identity = renumbered.op == "input" and self.sources == [-2]
        if renumbered.dtype is not dtype and dtype.kind in "fc":
            renumbered = E.cast(renumbered, dtype)
            self.identity = False
        self.op = ExprOp(f"{op.name}_backward", renumbered)
        self.constant = not used

    def gradient(self, node: Node, g: Tensor, kept: Any, create: bool) -> Tensor:
        plan = node.plan
        assert plan is not None
        assert plan.rule is not None
        lay = plan.tensors[self.k]
        assert lay is not None
        if self.identity:
            return fit_one(g, lay)
        if self.constant:
            return constant_like(self.op.expr, lay)
        places = plan.rule.saves(plan, node.mask)
        operands: list[Any] = []
        for s in self.sources:
            if s <= -10:
                operands.append(node.values[-10 - s])
            else:
                operands.append(g if s == -2 else unpack(node, s, kept[places.index(s)], create))
        return fit_one(self.op(*operands), lay)


def _typed(e: Expr) -> list[tuple[int, DType]]:
    found = {int(n.payload): n.dtype for n in E.walk(e) if n.op == "input"}  # type: ignore[arg-type]
    return sorted(found.items())


def constant_like(e: Expr, lay: Layout) -> Tensor:
    from antorcha.ops.record import T

    made: Tensor = T.full_layout(lay.shape, e.payload, lay.dtype, lay.device)
    return made
