"""Gradients of pointwise ops: an expression per operand, one fused kernel each."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from antorcha import modes
from antorcha.lang import expr as E
from antorcha.ops.derive import Rule, bits, check_version, fit_one, saved_items, unpack
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
        if not create and not modes.busy and (type(kept) is list or not kept):
            key = (node.mask, g._layout)
            replay = plan.vjp.get(key)
            if replay is None:
                ops = [self.vjp(plan, k) for k in bits(node.mask)]
                replay = plan.vjp[key] = Replay(node, g._layout, ops)
            found = replay.gradients(node, g, kept)
            if found is not None:
                return found
        result: list[Tensor | None] = [None] * len(node.edges)
        for k in bits(node.mask):
            result[k] = self.vjp(plan, k).gradient(node, g, kept, create)
        return result

    def vjp(self, plan: Plan, k: int) -> GradientOp:
        """The op that computes the gradient of operand k of this plan."""
        found: GradientOp | None = plan.vjp.get(k)
        if found is None:
            found = plan.vjp[k] = self._make_vjp(plan, k)
        return found

    def _make_vjp(self, plan: Plan, k: int) -> GradientOp:
        where, types, _made = plan.post
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
        return GradientOp(self.op, k, gradient, source, lay)


class GradientOp:
    """The gradient of one operand of a pointwise op: an expression over some of what was saved."""

    def __init__(self, op: Op, k: int, gradient: Expr, source: dict[int, int], lay: Layout) -> None:
        used = E.inputs_used(gradient)
        inputs = enumerate(_typed(gradient))
        renumbered = E.substitute(
            gradient, {E.input_(j, dt): E.input_(i, dt) for i, (j, dt) in inputs}
        )
        self.sources = [source[j] for j in used]
        self.lay = lay
        self.identity = renumbered.op == "input" and self.sources == [-2]
        if renumbered.dtype is not lay.dtype and lay.dtype.kind in "fc":
            renumbered = E.cast(renumbered, lay.dtype)
            self.identity = False
        self.op = ExprOp(f"{op.name}_backward", renumbered)
        self.constant = not used

    def gradient(self, node: Node, g: Tensor, kept: Any, create: bool) -> Tensor:
        if self.identity:
            return fit_one(g, self.lay)
        if self.constant:
            return constant_like(self.op.expr, self.lay)
        plan = node.plan
        assert plan is not None
        assert plan.rule is not None
        places = plan.rule.saves(plan, node.mask)
        operands: list[Any] = []
        key: list[Any] = []
        flat: list[Any] = []
        for s in self.sources:
            if s <= -10:
                number = node.values[-10 - s]
                operands.append(number)
                key.append(type(number))
                flat.append(number)
                continue
            tensor = g if s == -2 else unpack(node, s, kept[places.index(s)], create)
            operands.append(tensor)
            key.append(tensor._layout)
            flat += (tensor._storage, tensor._offset)
        if create:
            return fit_one(self.op(*operands), self.lay)
        return fit_one(self.op.planned(tuple(key)).run(*flat), self.lay)

    def step(self, node: Node, g: Layout) -> Step:
        """What ``gradient`` does for nodes of this plan and mask, and gradients that lie so."""
        if self.identity:
            return None, None, self.lay
        plan = node.plan
        assert plan is not None
        assert plan.rule is not None
        if self.constant:
            expr, lay = self.op.expr, self.lay
            return (lambda values: ()), (lambda: constant_like(expr, lay)), lay
        saves = plan.rule.saves(plan, node.mask)
        key: list[Any] = []
        at: list[int] = []  # where each launch argument is among what Replay gathers
        for s in self.sources:
            if s <= -10:
                key.append(type(node.values[-10 - s]))
                at.append(2 + 2 * len(saves) - 10 - s)
                continue
            k = 0 if s == -2 else 1 + saves.index(s)
            key.append(g if s == -2 else plan.out if s < 0 else plan.tensors[s])
            at += (2 * k, 2 * k + 1)
        found = self.op.planned(tuple(key))
        pick = itemgetter(*at) if len(at) > 1 else lambda values: (values[at[0]],)
        return pick, found.run, None if found.out is self.lay else self.lay


Step = tuple[Callable[[list[Any]], Any] | None, Callable[..., Tensor] | None, "Layout | None"]


class Replay:
    """The gradients of a pointwise call, again: for nodes of one plan and mask and gradients that
    lie alike, in the default mode. It gathers storages, offsets and numbers, and launches."""

    __slots__ = ("count", "layouts", "sources", "steps")

    def __init__(self, node: Node, g: Layout, ops: list[GradientOp]) -> None:
        plan = node.plan
        assert plan is not None
        self.count = len(node.edges)
        self.sources = plan.rule.saves(plan, node.mask)
        self.layouts = [plan.out if s < 0 else plan.tensors[s] for s in self.sources]
        steps = [op.step(node, g) for op in ops]
        self.steps = list(zip(bits(node.mask), steps, strict=True))

    def gradients(self, node: Node, g: Tensor, kept: Any) -> list[Tensor | None] | None:
        """The gradients; None where something was saved that lies otherwise than the call's own
        operand: a write in place keeps copies of what it is going to change."""
        values = [g._storage, g._offset]
        for item, expected in zip(kept, self.layouts):
            lay, storage, offset, version = item
            if lay is not expected:
                return None
            if storage.version != version:
                check_version(node, item, self.sources[kept.index(item)])
            values += (storage, offset)
        values += node.values
        result: list[Tensor | None] = [None] * self.count
        for k, (pick, run, lay) in self.steps:
            made = g if run is None else run(*pick(values))  # type: ignore[misc]
            result[k] = made if lay is None else fit_one(made, lay)
        return result


def _typed(e: Expr) -> list[tuple[int, DType]]:
    found = {int(n.payload): n.dtype for n in E.walk(e) if n.op == "input"}  # type: ignore[arg-type]
    return sorted(found.items())


def constant_like(e: Expr, lay: Layout) -> Tensor:
    from antorcha.ops.record import T

    made: Tensor = T.full_layout(lay.shape, e.payload, lay.dtype, lay.device)
    return made
