"""Views, and ops that are neither pointwise nor folds: their functions work on layouts.

A *view*'s function gets the operand's Layout and gives the (shape, strides, offset delta) of the
result, which shares the operand's storage.

A *kernel* op's function gets layouts for its tensors and values for the rest, checks them, and
gives ``Planned(description, outs)``: what a device must run and the results' (shape, dtype) or
Layouts. ``dense`` names the operands that it wants contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.core.device import backend
from antorcha.core.structs import struct
from antorcha.lang import expr as E
from antorcha.lang.kernels import Description, Launch, Placed, Pointwise, is_dynamic
from antorcha.ops.kinds.operands import check_outs, common_device
from antorcha.ops.kinds.record import Op
from antorcha.ops.kinds.steps import Steps, in_steps
from antorcha.runtime.call.plan import FRESH, HOST, MANY, VIEW, VIEWS, Plan, make
from antorcha.runtime.memory import layout as L

if TYPE_CHECKING:
    from antorcha.ops.kinds.arguments import Arguments
    from antorcha.runtime.memory.layout import Layout


def plan_view(op: Op, given: Arguments, outs: Any) -> Plan:
    """Plans another look at the operand's storage."""
    layout: Layout = given.seen[0]
    shape, strides, delta = op.apply_fn(given.seen)
    return make(op, VIEW, (L.layout(tuple(shape), tuple(strides), layout.dtype, layout.device),),
                delta=delta)  # fmt: skip


def view(**options: Any) -> Callable[[Any], Op]:
    """Decorates a function of a layout as an op whose result shares the operand's storage."""

    def declare(fn: Callable[..., Any]) -> Op:
        op = Op(fn, plan_view, out=False, **options)
        op.only_moves = True
        return op

    return declare


def plan_views(op: Op, given: Arguments, outs: Any) -> Plan:
    """Plans several looks at the operand's storage."""
    layout: Layout = given.seen[0]
    parts = op.apply_fn(given.seen)
    result = tuple(
        [L.layout(tuple(shape), tuple(strides), layout.dtype, layout.device)
         for shape, strides, _ in parts]
    )  # fmt: skip
    return make(op, VIEWS, result, post=[delta for _, _, delta in parts])


def views(**options: Any) -> Callable[[Any], Op]:
    """Decorates a function of a layout that gives a list of (shape, strides, delta), as an op that
    splits its operand."""

    def declare(fn: Callable[..., Any]) -> Op:
        op = Op(fn, plan_views, out=False, returns=lambda *outs: outs, **options)
        op.only_moves = True
        op.why_not_written = (
            "This view is the output of a function that returns multiple views. Such functions do "
            "not allow the output views to be modified inplace. You should replace the inplace "
            "operation by an out-of-place one, or index the tensor: x[i]."
        )
        return op

    return declare


@struct
class Planned:
    """What a kernel op's function answers: the work, and the results' layouts."""

    what: Description
    outs: Sequence[Any]  # Layout, or (shape, dtype)
    shown: Sequence[Layout] | None = None  # the results' layouts where not those that it writes
    ins: Sequence[Any] | None = None  # the inputs' layouts where not those of the operands


def plan_kernel(op: Op, given: Arguments, outs: tuple[Layout, ...] | None) -> Plan:
    """Plans what the op's function describes."""
    device = common_device(op.name, given.tensors)
    planned: Planned = op.apply_fn(given.seen)
    ins = given.ins if planned.ins is None else [*planned.ins]
    result = tuple(
        [o if isinstance(o, L.Layout) else L.contiguous(tuple(o[0]), o[1], device)
         for o in planned.outs]
    )  # fmt: skip
    # what makes a tensor of nothing says itself where it is
    where = backend(device if given.tensors or not result else result[0].device)
    if outs is None and planned.shown is not None:
        outs = tuple(planned.shown)
    if outs is not None:
        check_outs(op.name, result, outs)
    if (
        outs is not None
        and isinstance(planned.what, Placed)
        and not all([L.same(want, have) for want, have in zip(result, outs, strict=True)])
    ):
        launch = into_other_layouts(where, planned.what, result, outs, ins)
        result = outs
    else:
        result = outs or result
        launch = where.compile(planned.what, result, ins)
    kind = HOST if is_dynamic(planned.what) else FRESH if len(result) == 1 else MANY
    return make(op, kind, result, fresh=launch.fresh, into=launch.into)


def into_other_layouts(
    where: Any, what: Description, result: Sequence[Layout], outs: Sequence[Layout], ins: Any
) -> Launch:
    """A kernel that knows the layouts it was planned for: results are copied into others."""
    launch = where.compile(what, result, ins)
    copies = [
        where.compile(Pointwise((E.input_(0, layout.dtype),)), (to,), (layout,))
        for layout, to in zip(result, outs, strict=True)
    ]

    def write(steps: Steps, places: list[int], given: list[int]) -> None:
        rooms = [steps.room(layout.nbytes) for layout in result]
        steps.into(launch, *[each for room in rooms for each in room], *given)
        for k, room in enumerate(rooms):
            steps.into(copies[k], *places[2 * k : 2 * k + 2], *room)

    given = sum([1 if isinstance(each, type) else 2 for each in ins])
    return in_steps(where, len(result), outs[0].nbytes, given, write)


def kernel(**options: Any) -> Callable[[Any], Op]:
    """Decorates a function of layouts that plans a kernel as an op."""
    return lambda fn: Op(fn, plan_kernel, **options)
