"""Row programs as ops: what a kernel of rows, and each of its gradients, is made of.

A `ProgramOp` runs one traced program along one dim. Its derivative is another program, found by
reverse accumulation and run by another ProgramOp: so gradients of every order come free. Operands
that hold one value a row have size 1 along the dim, and so have such results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.core.device import backend
from antorcha.core.shapes import broadcast_shapes
from antorcha.errors import ArgumentError, ShapeError
from antorcha.lang import expr as E
from antorcha.lang.expr import RowProgram
from antorcha.lang.kernels import Rows
from antorcha.ops.kinds.derive import Rule, bits, fit_one, saved_items, unpack
from antorcha.ops.kinds.operands import common_device
from antorcha.ops.kinds.params import no_quick_bind
from antorcha.ops.kinds.record import T, node_name
from antorcha.ops.kinds.rows import _last, _spread
from antorcha.runtime.call import path
from antorcha.runtime.call.plan import FRESH, MANY, Plan, make, table
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.runtime.call.node import Node


class ProgramOp:
    """A row program along one dim (counted from the end) as a nameless op of tensors."""

    has_out = False
    inplace = None
    random = numbers_given = any_size = False
    outlined = True
    shapes: tuple[int, ...] = ()
    static_number = False
    quick_bind = staticmethod(no_quick_bind)

    def __init__(self, name: str, program: RowProgram, dim: int) -> None:
        self.name = self.__name__ = name
        self.__module__ = "antorcha"
        self.node_name = node_name(name)
        self.program, self.dim = program, dim
        self.plans = table()
        floats = any(e.dtype.kind in "fc" for e in program.outputs)
        self.rule: Rule | None = ProgramRule(self) if floats else None

    def __call__(self, *operands: Tensor) -> Any:
        return path.call(self, operands, {})

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        flat: list[Any] = []
        for value in args:
            if not isinstance(value, Tensor):
                raise ArgumentError(
                    f"{self.name}(): a kernel of rows takes tensors, not {type(value).__name__}"
                )
            flat += (value._storage, value._offset)
        return tuple([v._layout for v in args]), list(args), flat, (), list(args)

    def pack(self, outs: tuple[Tensor, ...]) -> Any:
        return outs if len(outs) > 1 else outs[0]

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        layouts = [v._layout for v in values]
        shape = tuple(broadcast_shapes(*[layout.shape for layout in layouts], op=self.name))
        if len(shape) < -self.dim:
            raise ShapeError(
                f"{self.name}: the operands of shape {shape} have no dim {self.dim} to have rows in"
            )
        dim = len(shape) + self.dim
        ends = (*shape[:dim], 1, *shape[dim + 1 :])
        device = common_device(self.name, layouts)
        result = tuple([
            L.contiguous(shape if is_row else ends, e.dtype, device)
            for e, is_row in zip(self.program.outputs, self.program.rows, strict=True)
        ])  # fmt: skip
        ins = []
        for layout, kind in zip(layouts, self.program.inputs, strict=True):
            wide = shape if kind.is_row else ends
            ins.append(_last(_spread(layout, wide), dim))
        where = backend(device)
        what = Rows(self.program, shape[dim])
        launch = where.compile(what, [_last(o, dim) for o in result], ins)
        return make(
            self, FRESH if len(result) == 1 else MANY, result, fresh=launch.fresh, into=launch.into,
            tensors=tuple(layouts), rule=self.rule,
        )  # fmt: skip


class ProgramRule(Rule):
    """The gradients of a row program: the program of its backward pass, over what that reads.

    Its inputs are the results' gradients, then the operands, then the results.
    """

    replays = True

    def __init__(self, op: ProgramOp, given: RowProgram | None = None) -> None:
        self.op, self.given = op, given
        self.made: dict[int, tuple[ProgramOp | None, tuple[int, ...], tuple[int, ...]]] = {}

    def parts(self, mask: int) -> tuple[ProgramOp | None, tuple[int, ...], tuple[int, ...]]:
        """For operands that want gradients: the op, which inputs it reads, whose gradients."""
        found = self.made.get(mask)
        if found is None:
            found = self.made[mask] = self._make(mask)
        return found

    def _make(self, mask: int) -> tuple[ProgramOp | None, tuple[int, ...], tuple[int, ...]]:
        forward = self.op.program
        program = self.given
        wrt = tuple([k for k in bits(mask) if k < len(forward.inputs)])
        if program is None:
            try:
                program = forward.gradient(tuple(range(len(forward.outputs))), wrt)
            except ArgumentError:  # no gradient flows
                return None, (), ()
            wrt = program.wrt
        reads = E.inputs_used(*program.outputs)
        if not any(program.inputs[k].is_row for k in reads):
            reads = tuple(sorted({*reads, len(forward.outputs)}))  # an operand tells the length
        renamed = {
            E.input_(k, program.inputs[k].dtype): E.input_(place, program.inputs[k].dtype)
            for place, k in enumerate(reads)
        }
        outputs = E.substitute_all(program.outputs, renamed)
        inputs = tuple([program.inputs[k] for k in reads])
        narrow = RowProgram(inputs, tuple(outputs), program.rows)
        return ProgramOp(f"{self.op.name}_backward", narrow, self.op.dim), reads, wrt

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        count, operands = len(self.op.program.outputs), len(self.op.program.inputs)
        _, reads, _ = self.parts(mask)
        kept = [k - count for k in reads if count <= k < count + operands]
        kept += [-1 - (k - count - operands) for k in reads if k >= count + operands]
        return tuple(sorted(kept, reverse=True))

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        plan = node.plan
        assert plan is not None
        kept = dict(zip(self.saves(plan, node.mask), saved_items(node)))
        op, reads, wrt = self.parts(node.mask)
        result: list[Tensor | None] = [None] * len(node.edges)
        if op is None:
            return result
        count, operands = len(grads), len(self.op.program.inputs)
        given: list[Any] = []
        for k in reads:
            if k < count:
                g, layout = grads[k], plan.outs[k]
                given.append(T.full_layout(tuple(layout.shape), 0, layout.dtype, layout.device)
                             if g is None else g)  # fmt: skip
            else:
                place = k - count if k < count + operands else -1 - (k - count - operands)
                given.append(unpack(node, place, kept[place], create))
        made = op(*given) if create else path.run(op, tuple(given), {}, False)
        for k, gradient in zip(wrt, made if isinstance(made, tuple) else (made,)):
            want = plan.tensors[k]
            if node.mask >> k & 1 and want is not None:
                result[k] = fit_one(gradient, want)
        return result
