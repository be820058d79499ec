"""Ops made of an expression while running: what gradients are computed with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from antorcha.lang import expr as E
from antorcha.ops.kinds.derive import Rule, bits, fit_one, saved_items, unpack
from antorcha.ops.kinds.operands import plan_exprs
from antorcha.ops.kinds.params import no_quick_bind
from antorcha.runtime.call import path
from antorcha.runtime.call.node import Node
from antorcha.runtime.call.plan import Plan, table
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.lang.expr import Expr


def place(leaf: Expr) -> int:
    """Which input a leaf stands for: its payload."""
    assert isinstance(leaf.payload, int)
    return leaf.payload


def gradients(
    results: Sequence[Expr],
    count: int,
    seeds: Sequence[Expr | None],
    outs: Sequence[Expr] = (),
) -> list[Expr | None]:
    """The gradient of each of ``count`` inputs, for the results' gradients ``seeds`` (None where
    there is none). Where a result itself is part of one (``exp``, ``tanh``), its place in ``outs``
    stands for it: the saved result saves computing it again."""
    leaves = {place(e): e for e in E.walk(*results) if e.op == "input" and e.dtype.kind in "fc"}
    found: list[Expr | None] = [None] * count
    slopes = E.vjp(results, seeds, tuple(leaves.values()))
    for k, slope in zip(leaves, slopes, strict=True):
        if k < count and slope is not None:
            found[k] = E.simplify(slope)
    known = {r: o for r, o in zip(results, outs) if r.op not in E.LEAVES and r.op != "cast"}
    if known:
        found = [None if e is None else E.simplify(E.substitute(e, known)) for e in found]
    return found


def is_zero(e: Expr) -> bool:
    return e.op == "const" and e.payload == 0


class ExprOp:
    """A nameless pointwise op made of an expression; its derivative is found symbolically."""

    has_out = False
    inplace = None
    random = False
    numbers_given = True
    outlined = True
    any_size = static_number = False
    shapes: tuple[int, ...] = ()
    default_numbers = ()
    quick_bind = staticmethod(no_quick_bind)

    def __init__(self, name: str, expr: Expr) -> None:
        self.name = self.__name__ = name
        self.node_name = "".join([p.capitalize() for p in name.split("_")]) + "Backward0"
        self.expr = expr
        self.plans = table()
        self.rule = ExprRule(self)
        used = E.inputs_used(expr)
        self.arity = max(used) + 1 if used else 0

    def __call__(self, *operands: Any) -> Any:
        return path.call(self, operands, {})

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        key: list[Any] = []
        operands: list[Tensor | None] = []
        flat: list[Any] = []
        numbers: list[Any] = []
        for value in args:
            if isinstance(value, Tensor):
                key.append(value._layout)
                operands.append(value)
                flat += (value._storage, value._offset)
            else:
                key.append(type(value))
                operands.append(None)
                numbers.append(value)
                flat.append(value)
        return tuple(key), operands, flat, tuple(numbers), list(args)

    def pack(self, outs: tuple[Tensor, ...]) -> Any:
        return outs[0]

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        ins = [v._layout if isinstance(v, Tensor) else type(v) for v in values]
        return self.plan_for(tuple(ins), outs)

    def plan_for(self, ins: tuple[Any, ...], outs: Any = None) -> Plan:
        plan = plan_exprs(
            self, (self.expr,), ins, outs,
            tensors=tuple([i if isinstance(i, L.Layout) else None for i in ins]),
        )  # fmt: skip
        plan.post_names = ()
        if plan.out.dtype.kind in "fc":
            plan.rule = self.rule
        return plan


class ExprRule(Rule):
    """Gradients of an ExprOp, each an ExprOp of (operands.., result's gradient)."""

    replays = replays_numbers = True

    def __init__(self, op: ExprOp) -> None:
        self.op = op
        self.ops: list[ExprOp | None] | None = None

    def _ops(self) -> list[ExprOp | None]:
        if self.ops is None:
            op = self.op
            n = op.arity
            seed = E.input_(n, op.expr.dtype)
            result: list[ExprOp | None] = []
            for k, e in enumerate(gradients((op.expr,), n, (seed,))):
                if e is None or is_zero(e):
                    result.append(None)
                else:
                    result.append(ExprOp(f"{op.name}_vjp{k}", e))
            self.ops = result
        return self.ops

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        return tuple(range(self.op.arity))

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        kept = saved_items(node)
        plan = node.plan
        assert plan is not None
        numbers = iter(node.values or ())
        operands: list[Any] = []
        for k, layout in enumerate(plan.tensors):
            operands.append(next(numbers) if layout is None else unpack(node, k, kept[k], create))
        operands.append(grads[0])
        result: list[Tensor | None] = [None] * len(node.edges)
        ops = self._ops()
        for k in bits(node.mask):
            op = ops[k]
            layout = plan.tensors[k]
            if op is not None and layout is not None:
                result[k] = fit_one(op(*operands[: op.arity]), layout)
        return result
