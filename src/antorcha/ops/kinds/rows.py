"""Row ops: each row of the results is computed from rows of the operands alone, along one dim.

    @rows(function=False, method=False)
    def softmax_rows(input: Tensor, dim: Int, dtype: Dtype = None):
        def row(x):
            e = E.exp(x - E.detach(x.amax()))
            return e / e.sum()

        return Row(row, dim, [(input, dtype or input.dtype)], [(input.shape, dtype)])

The function is traced as a row program and becomes one kernel; ``dim`` may be any dim: the kernel
gets the layouts with that dim moved last, nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.core.device import backend
from antorcha.core.memo import kept
from antorcha.core.structs import struct
from antorcha.lang.expr import RowInput, RowProgram, trace_rows
from antorcha.lang.kernels import Rows
from antorcha.ops.kinds.operands import check_outs, common_device
from antorcha.ops.kinds.params import static_key
from antorcha.ops.kinds.record import Op
from antorcha.runtime.call.plan import FRESH, MANY, Plan, make
from antorcha.runtime.memory import layout as L

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.ops.kinds.arguments import Arguments
    from antorcha.runtime.memory.layout import Layout


@struct
class Row:
    """What a row op's function answers.

    ``ins`` are (layout, dtype computed in), for every tensor operand in order. A layout has the
    dims of ``shape``: size 1 along ``dim`` makes it one value per row, size 1 elsewhere broadcasts.
    ``outs`` are (shape, dtype); size 1 along ``dim`` where the program gives one value per row.
    The caller sees them as ``shown``: the same elements in other shapes.
    """

    fn: Callable[..., Any]
    dim: int
    shape: tuple[int, ...]
    ins: Sequence[tuple[Layout, DType]]
    outs: Sequence[tuple[tuple[int, ...], DType]]
    shown: Sequence[tuple[tuple[int, ...], DType]] | None = None  # the results' shapes, if others


def plan_rows(op: Op, given: Arguments, outs: tuple[Layout, ...] | None) -> Plan:
    """Plans a row program along one dim."""
    row: Row = op.apply_fn(given.seen)
    device = common_device(op.name, given.layouts)
    result = tuple([L.contiguous(tuple(shape), dtype, device) for shape, dtype in row.outs])
    if outs is not None:
        check_outs(op.name, result, outs)
        result = outs
    launch = backend(device).compile(*describe(row, result))
    if row.shown is not None:
        result = tuple([L.contiguous(tuple(shape), dtype, device) for shape, dtype in row.shown])
    kind = FRESH if len(result) == 1 else MANY
    return make(op, kind, result, fresh=launch.fresh, into=launch.into)


def describe(row: Row, outs: Sequence[Layout]) -> tuple[Rows, list[Layout], list[Layout]]:
    """The description, and the layouts of results and operands, with the row's dim last."""
    shape = row.shape or (1,)
    dim = row.dim % len(shape)
    ins, kinds = [], []
    for layout, dtype in row.ins:
        is_row = not layout.ndim or layout.shape[dim] != 1 or shape[dim] == 1
        kinds.append(RowInput(dtype, is_row and bool(layout.ndim or not row.shape)))
        ins.append(_last(_spread(layout, shape), dim))
    program = _traced(row.fn, kinds)
    return Rows(program, shape[dim]), [_last(_padded(o), dim) for o in outs], ins


_programs: dict[Any, RowProgram] = {}
_MOST_PROGRAMS = 1000


def _traced(fn: Callable[..., Any], kinds: list[RowInput]) -> RowProgram:
    """The function's program, traced once for all shapes: two functions of the same code and
    values are one."""
    values = [*(fn.__defaults__ or ()), *[c.cell_contents for c in fn.__closure__ or ()]]
    key = (
        fn.__code__, tuple([static_key(v) for v in values]),
        tuple([(k.dtype, k.is_row) for k in kinds]),
    )  # fmt: skip
    try:
        hash(key)
    except TypeError:  # a value that cannot be in a key
        return trace_rows(fn, kinds)
    return kept(_programs, key, lambda _: trace_rows(fn, kinds), _MOST_PROGRAMS)


def _padded(layout: Layout) -> Layout:
    """A 0-dim layout as one of one element."""
    return layout if layout.ndim else L.layout((1,), (1,), layout.dtype, layout.device)


def _spread(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """The layout expanded to the full shape, with stride 0 where it repeats."""
    lead = len(shape) - layout.ndim
    strides = [0] * lead + [
        0 if n == 1 and shape[lead + d] != 1 else s
        for d, (n, s) in enumerate(zip(layout.shape, layout.strides, strict=True))
    ]
    return L.layout(tuple(shape), tuple(strides), layout.dtype, layout.device)


def _last(layout: Layout, dim: int) -> Layout:
    """The layout with one dim moved to the end."""
    order = [d for d in range(layout.ndim) if d != dim] + [dim]
    return L.layout(
        tuple([layout.shape[d] for d in order]), tuple([layout.strides[d] for d in order]),
        layout.dtype, layout.device,
    )  # fmt: skip


def rows(**options: Any) -> Callable[[Any], Op]:
    """Decorates a function of layouts that gives a Row as an op."""
    return lambda fn: Op(fn, plan_rows, **options)
