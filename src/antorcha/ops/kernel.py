"""Views, and ops that are neither pointwise nor folds: their functions work on layouts.

A *view*'s function gets the operand's Layout and gives the (shape, strides, offset delta) of the
result, which shares the operand's storage.

A *kernel* op's function gets layouts for its tensors and values for the rest, checks them, and
gives ``Planned(description, outs)``: what a device must run and the results' (shape, dtype) or
Layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.device import backend
from antorcha.lang import expr as E
from antorcha.lang.kernels import Description, Launch, Placed, Pointwise, is_dynamic
from antorcha.ops.operands import check_outs, common_device
from antorcha.ops.params import NUMBER, OPERAND, TENSORS, is_default
from antorcha.ops.record import Op, T
from antorcha.ops.steps import Steps, in_steps
from antorcha.runtime import layout as L
from antorcha.runtime.call.plan import FRESH, HOST, MANY, VIEW, VIEWS, Plan, make
from antorcha.runtime.tensor import Tensor
from antorcha.structs import struct

if TYPE_CHECKING:
    from antorcha.runtime.layout import Layout


class ViewOp(Op):
    """An op whose result is another look at its operand's storage."""

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        super().__init__(fn, out=False, **options)

    def make_plan(self, values: list[Any], outs: Any) -> Plan:
        lay: Layout = values[0]._layout
        shape, strides, delta = self.apply_fn([lay, *values[1:]])
        out = L.layout(tuple(shape), tuple(strides), lay.dtype, lay.device)
        statics = dict(zip(self.signature.names[1:], values[1:], strict=True))
        plan = make(
            self, VIEW, (out,), delta=delta, tensors=(lay,), statics=statics, rule=self.rule
        )
        if lay.dtype.kind not in "fc":
            plan.rule = None
        return plan

    def view_plan(self, tensor: Tensor, args: tuple[Any, ...]) -> Plan | None:
        """The plan of a call that was just made: the short cut keeps it."""
        return self.plans.get(self.bind((tensor, *args), {})[0])


def view(**options: Any) -> Callable[[Any], ViewOp]:
    """Decorates a function of a layout as a view op."""
    return lambda fn: ViewOp(fn, **options)


class ViewsOp(Op):
    """An op that splits its operand: its function gives a list of (shape, strides, delta)."""

    why_not_written = (
        "This view is the output of a function that returns multiple views. Such functions do not "
        "allow the output views to be modified inplace. You should replace the inplace operation "
        "by an out-of-place one, or index the tensor: x[i]."
    )

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        super().__init__(fn, out=False, **options)

    def make_plan(self, values: list[Any], outs: Any) -> Plan:
        lay: Layout = values[0]._layout
        parts = self.apply_fn([lay, *values[1:]])
        made = tuple(
            [L.layout(tuple(shape), tuple(strides), lay.dtype, lay.device)
             for shape, strides, _ in parts]
        )  # fmt: skip
        return make(
            self, VIEWS, made, tensors=(lay,), post=[delta for _, _, delta in parts],
            statics=dict(zip(self.signature.names[1:], values[1:], strict=True)),
            rule=self.rule if lay.dtype.kind in "fc" else None,
        )  # fmt: skip

    def pack(self, outs: tuple[Tensor, ...]) -> Any:
        return outs


def views(**options: Any) -> Callable[[Any], ViewsOp]:
    """Decorates a function of a layout that gives several views of it."""
    return lambda fn: ViewsOp(fn, **options)


@struct
class Planned:
    """What a kernel op's function answers: the work, and the results' layouts."""

    what: Description
    outs: Sequence[Any]  # Layout, or (shape, dtype)
    shown: Sequence[Layout] | None = None  # the results' layouts where not those that it writes
    ins: Sequence[Any] | None = None  # the inputs' layouts where not those of the operands


class KernelOp(Op):
    """An op with a kernel of its own; ``dense`` names the operands that it wants contiguous."""

    def __init__(
        self, fn: Callable[..., Any], dense: Sequence[str] | bool = (), **options: Any
    ) -> None:
        super().__init__(fn, **options)
        names = self.signature.names
        self.dense = [
            k for k, p in enumerate(self.signature.params)
            if (p.code < NUMBER or p.code == TENSORS) and (dense is True or p.name in (dense or ()))
        ]  # fmt: skip
        if not isinstance(dense, bool):
            missing = [d for d in dense if d not in names]
            assert not missing, f"{self.name}: no parameter {missing}"
        if self.dense:
            self.use_bind(self.bind_dense)

    def bind_dense(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = self.signature.bind(args, kwargs)
        values = bound[4]
        loose = [
            k for k in self.dense
            if (isinstance(values[k], Tensor) and not values[k]._layout.contiguous)
            or (isinstance(values[k], tuple) and any([not v._layout.contiguous for v in values[k]]))
        ]  # fmt: skip
        if not loose:
            return bound
        for k in loose:
            v = values[k]
            values[k] = (
                tuple([T.contiguous(t) for t in v]) if isinstance(v, tuple) else (T.contiguous(v))
            )
        n = self.signature.positional
        return self.signature.bind(
            tuple(values[:n]), dict(zip(self.signature.names[n:], values[n:], strict=True))
        )

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        ins: list[Any] = []  # layouts, and the types of the numbers
        tensors: list[Layout | None] = []
        seen: list[Any] = []
        numbers: list[str] = []
        statics: dict[str, Any] = {}
        for param, value in zip(self.signature.params, values, strict=True):
            if isinstance(value, Tensor):
                ins.append(value._layout)
                tensors.append(value._layout)
                seen.append(value._layout)
            elif param.code == TENSORS:
                lays = tuple([v._layout for v in value])
                ins += lays
                tensors += lays
                seen.append(lays)
            elif param.code == OPERAND or (
                param.code == NUMBER and value is not None and not is_default(param, value)
            ):
                ins.append(type(value))
                numbers.append(param.name)
                if param.code == OPERAND:
                    tensors.append(None)
                seen.append(value)
            else:
                if param.code < NUMBER:
                    tensors.append(None)
                seen.append(value)
                statics[param.name] = value
        device = common_device(self.name, tensors)
        planned: Planned = self.apply_fn(seen)
        ins = ins if planned.ins is None else [*planned.ins]
        made = tuple(
            [o if isinstance(o, L.Layout) else L.contiguous(tuple(o[0]), o[1], device)
             for o in planned.outs]
        )  # fmt: skip
        # what makes a tensor of nothing says itself where it is
        where = backend(device if tensors or not made else made[0].device)
        if outs is None and planned.shown is not None:
            outs = tuple(planned.shown)
        if outs is not None:
            check_outs(self.name, made, outs)
        if (
            outs is not None
            and isinstance(planned.what, Placed)
            and not all([L.same(want, have) for want, have in zip(made, outs, strict=True)])
        ):
            launch = into_other_layouts(where, planned.what, made, outs, ins)
            made = outs
        else:
            made = outs or made
            launch = where.compile(planned.what, made, ins)
        kind = HOST if is_dynamic(planned.what) else FRESH if len(made) == 1 else MANY
        plan = make(
            self, kind, made, fresh=launch.fresh, into=launch.into,
            tensors=tuple(tensors), statics=statics, post_names=tuple(numbers),
        )  # fmt: skip
        if self.rule is not None and any([o.dtype.kind in "fc" for o in made]):
            plan.rule = self.rule
        return plan


def into_other_layouts(
    where: Any, what: Description, made: Sequence[Layout], outs: Sequence[Layout], ins: Any
) -> Launch:
    """A kernel that knows the layouts it was planned for: results are copied into others."""
    launch = where.compile(what, made, ins)
    copies = [
        where.compile(Pointwise((E.input_(0, lay.dtype),)), (to,), (lay,))
        for lay, to in zip(made, outs, strict=True)
    ]

    def write(steps: Steps, places: list[int], given: list[int]) -> None:
        rooms = [steps.room(lay.nbytes) for lay in made]
        steps.into(launch, *[each for room in rooms for each in room], *given)
        for k, room in enumerate(rooms):
            steps.into(copies[k], *places[2 * k : 2 * k + 2], *room)

    given = sum([1 if isinstance(each, type) else 2 for each in ins])
    return in_steps(where, len(made), outs[0].nbytes, given, write)


def kernel(**options: Any) -> Callable[[Any], KernelOp]:
    """Decorates a function of layouts that plans a kernel as an op."""
    return lambda fn: KernelOp(fn, **options)
