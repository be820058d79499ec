"""In-place forms of ops that are made of others: ``renorm_``, ``dropout_``, ``fill_diagonal_``."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core.dtypes import can_cast
from antorcha.errors import ArgumentError, DtypeError, ShapeError
from antorcha.ops import dropout, elementwise, products, segments, statistics
from antorcha.ops.kinds.params import parameters
from antorcha.ops.kinds.record import Composite, Op, T, composite
from antorcha.ops.kinds.types import Bool, Float, Number, Tensor
from antorcha.runtime.tensor import Tensor as TensorType


def written_over(op: Op) -> Composite:
    """The method that copies the op's result over its first operand."""

    def fn(input: TensorType, *args: _Any, **options: _Any) -> _Any:
        if not isinstance(input, TensorType):
            raise ArgumentError(f"{name}: the first argument must be a Tensor, not {input!r:.60}")
        # (the copy: what the derivative reads must not be what is written to)
        result = op(T.clone(input) if input.requires_grad else input, *args, **options)
        mine, layout = input._layout, result._layout
        if layout.shape != mine.shape:
            raise ShapeError(
                f"{name}: output with shape {list(mine.shape)} doesn't match the broadcast shape "
                f"{list(layout.shape)}"
            )
        if op is elementwise.float_power and layout.dtype is not mine.dtype:
            raise DtypeError(
                f"{name}: the base given to float_power_ has dtype {mine.dtype} but the "
                f"operation's result requires dtype {layout.dtype}"
            )
        if not can_cast(layout.dtype, mine.dtype):
            raise DtypeError(
                f"{name}: result type {layout.dtype} can't be cast to the desired output type "
                f"{mine.dtype}"
            )
        return T.copy_(input, result)

    name = f"{op.name}_"
    fn.__doc__ = f"In-place form of :func:`antorcha.{op.name}`; gives the changed tensor."
    fn.parameters = parameters(op.fn)  # type: ignore[attr-defined]
    found = Composite(fn, name=name, function=False, out=False)
    found.upgradable = False  # machine code would not record the write
    return found


for _op in (products.addbmm, products.addr, elementwise.float_power, segments.index_reduce,
            statistics.renorm):  # fmt: skip
    written_over(_op)


def dropping(op: Composite) -> Composite:
    """The function that drops elements of its operand itself."""

    def fn(input: Tensor, p: Float, train: Bool) -> Tensor:
        return op(input, p, train, True)

    fn.__doc__ = f"In-place form of :func:`antorcha.{op.name}`; gives the changed tensor."
    found = Composite(fn, name=f"{op.name}_", method=False, out=False, page=False)
    found.random = True
    return found


for _op in (dropout.dropout, dropout.alpha_dropout, dropout.feature_dropout,
            dropout.feature_alpha_dropout):  # fmt: skip
    dropping(_op)


@composite(name="fill_diagonal_", function=False, out=False)
def fill_diagonal_(input: Tensor, fill_value: Number, wrap: Bool = False):
    """Writes ``fill_value`` to the main diagonal, and gives the tensor. ``wrap``: in a matrix with
    more rows than columns the diagonal begins anew, one row after it has ended.

    >>> torch.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    layout = input._layout
    if layout.ndim < 2:
        raise ShapeError(
            f"fill_diagonal_: dimensions must larger than 1, got a tensor of {layout.ndim}"
        )
    if layout.ndim > 2 and len({*layout.shape}) > 1:
        raise ShapeError(
            f"fill_diagonal_: all dimensions of input must be of equal length, got "
            f"{tuple(layout.shape)}"
        )
    count, stride = min(layout.shape), sum(layout.strides)
    T.fill_(T.as_strided(input, (count,), (stride,)), fill_value)
    height, width = layout.shape[:2]
    if wrap and layout.ndim == 2 and height > width + 1:
        more = -(-layout.numel // (width + 1)) - count
        begin = input._offset + layout.strides[0] * (width + 1)
        T.fill_(T.as_strided(input, (more,), (stride,), begin), fill_value)
    return input


@fill_diagonal_.errors
def _(make):
    yield (make(3), 1), {}, RuntimeError, "larger than 1"
    yield (make(2, 3, 2), 1), {}, RuntimeError, "equal length"
