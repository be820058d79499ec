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

from antorcha.device import backend
from antorcha.lang.expr import RowInput, RowProgram, trace_rows
from antorcha.lang.kernels import Rows
from antorcha.memo import kept
from antorcha.ops.operands import check_outs
from antorcha.ops.params import NUMBER, OPTIONAL, static_key
from antorcha.ops.record import Op
from antorcha.runtime import layout as L
from antorcha.runtime.call.plan import FRESH, MANY, Plan, make
from antorcha.runtime.tensor import Tensor
from antorcha.structs import struct

if TYPE_CHECKING:
    from antorcha.dtypes import dtype as DType
    from antorcha.runtime.layout import Layout


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


class RowsOp(Op):
    """An op that runs a row program along one dim."""

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        tensors: list[Layout | None] = []
        statics: dict[str, Any] = {}
        for param, value in zip(self.signature.params, values, strict=True):
            if isinstance(value, Tensor):
                tensors.append(value._layout)
                continue
            statics[param.name] = value
            if param.code < NUMBER or param.code == OPTIONAL:
                tensors.append(None)
        row: Row = self.apply_fn([v._layout if isinstance(v, Tensor) else v for v in values])
        device = next(lay for lay in tensors if lay is not None).device
        made = tuple([L.contiguous(tuple(shape), dtype, device) for shape, dtype in row.outs])
        if outs is not None:
            check_outs(self.name, made, outs)
            made = outs
        where = backend(device)
        launch = where.compile(*describe(row, made))
        if row.shown is not None:
            made = tuple([L.contiguous(tuple(shape), dtype, device) for shape, dtype in row.shown])
        plan = make(
            self, FRESH if len(made) == 1 else MANY, made, fresh=launch.fresh, into=launch.into,
            tensors=tuple(tensors), statics=statics,
        )  # fmt: skip
        if self.rule is not None:
            plan.rule = self.rule
        return plan


def describe(row: Row, outs: Sequence[Layout]) -> tuple[Rows, list[Layout], list[Layout]]:
    """The description, and the layouts of results and operands, with the row's dim last."""
    shape = row.shape or (1,)
    dim = row.dim % len(shape)
    ins, kinds = [], []
    for lay, dtype in row.ins:
        is_row = not lay.ndim or lay.shape[dim] != 1 or shape[dim] == 1
        kinds.append(RowInput(dtype, is_row and bool(lay.ndim or not row.shape)))
        ins.append(_last(_spread(lay, shape), dim))
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


def _padded(lay: Layout) -> Layout:
    """A 0-dim layout as one of one element."""
    return lay if lay.ndim else L.layout((1,), (1,), lay.dtype, lay.device)


def _spread(lay: Layout, shape: tuple[int, ...]) -> Layout:
    """The layout expanded to the full shape, with stride 0 where it repeats."""
    lead = len(shape) - lay.ndim
    strides = [0] * lead + [
        0 if n == 1 and shape[lead + d] != 1 else s
        for d, (n, s) in enumerate(zip(lay.shape, lay.strides, strict=True))
    ]
    return L.layout(tuple(shape), tuple(strides), lay.dtype, lay.device)


def _last(lay: Layout, dim: int) -> Layout:
    """The layout with one dim moved to the end."""
    order = [d for d in range(lay.ndim) if d != dim] + [dim]
    return L.layout(
        tuple([lay.shape[d] for d in order]), tuple([lay.strides[d] for d in order]), lay.dtype,
        lay.device,
    )  # fmt: skip


def rows(**options: Any) -> Callable[[Any], RowsOp]:
    """Decorates a function of layouts that gives a Row as an op."""
    return lambda fn: RowsOp(fn, **options)
