"""Choosing between elements, and closeness: where, masked_fill, isclose, allclose, equal."""

from __future__ import annotations

from antorcha.errors import ArgumentError, DtypeError, ShapeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Float, Operand, Tensor


@pointwise("where", function=False, method=False, node="where")
def where_self(condition: Tensor, input: Operand, other: Operand):
    """``input`` where ``condition`` holds, else ``other``: the kernel of ``torch.where``."""
    return E.where(condition, input, other)


@where_self.samples
def _(make):
    yield make.bools((3, 4)), make(3, 4), make(4)
    yield make.bools((3, 4)), make(4), 2.0


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    return T.where_self(condition, self, other)


@composite(method=_where_method)
def where(condition: Tensor, input: Operand = None, other: Operand = None):
    """``input`` where ``condition`` holds, else ``other``; tensors or numbers, broadcast together.

    With the condition alone: the tuple of the indices where it holds, one tensor a dim.

    >>> torch.where(torch.tensor([True, False]), torch.tensor([1., 2.]), 0.)
    tensor([1., 0.])
    """
    if input is None and other is None:
        return T.unbind(T.nonzero(condition), 1)
    if input is None or other is None:
        raise ArgumentError("where(): takes condition alone, or condition, input and other")
    return T.where_self(condition, input, other)


@where.samples
def _(make):
    yield make.bools((3, 4)), make(3, 4), make(4)
    yield make.bools((3, 4)), make(4), 2.0
    yield make.bools((3, 4)), 0.0, make(3, 1)
    yield (make(3), make(3), make(3)), {}, RuntimeError, "boolean tensor"


@pointwise("masked", row_major="bufic", inplace=True, function=True)
def masked_fill(input: Tensor, mask: Tensor, value: Operand):
    """``value`` (a number or a 0-dim tensor) where ``mask`` holds, else the element of ``input``.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill.html.

    >>> torch.masked_fill(torch.tensor([1., 2.]), torch.tensor([True, False]), 0)
    tensor([0., 2.])
    """
    return E.where(mask, E.cast(value, input.dtype), input)


@masked_fill.accepts
def _(input, mask, value):
    layout = getattr(value, "_layout", None)
    dtype = input._layout.dtype
    if layout is not None and layout.ndim:
        raise ShapeError(
            "masked_fill: masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {layout.ndim} dimension(s)."
        )
    if dtype.kind != "c" and (isinstance(value, complex) or (layout and layout.dtype.kind == "c")):
        raise DtypeError(f"masked_fill: a complex value cannot be converted to {dtype}")


@masked_fill.batches
def _(batch, run, input, mask, value):
    if not batch.has(value):
        ndim = max(input._layout.ndim, mask._layout.ndim)
        return run(batch.beside(input, ndim), batch.beside(mask, ndim), value)
    result = T.where(mask, T.to_dtype(value, input._layout.dtype), input)
    return T.copy_(input, result) if run.is_inplace else result


@masked_fill.samples
def _(make):
    yield make(3, 4), make.bools((3, 4)), 2.0
    yield make(3, 4), make.bools((4,)), make()
    yield (make(3), make(3), 0), {}, RuntimeError, "boolean masks"
    yield (make(3), make.bools((3,)), make(3)), {}, RuntimeError, "0-dimensional"


@pointwise("compare")
def isclose(input: Tensor, other: Tensor, rtol: Float = 1e-5, atol: Float = 1e-8,
            equal_nan: Bool = False):  # fmt: skip
    """Whether ``abs(input - other) <= atol + rtol * abs(other)``, or the elements are equal.

    >>> torch.isclose(torch.tensor([1., 2.]), torch.tensor([1.000001, 2.1]))
    tensor([ True, False])
    """
    if not (rtol >= 0 and atol >= 0):
        name, value = ("rtol", rtol) if not rtol >= 0 else ("atol", atol)
        raise ShapeError(f"isclose: {name} must be greater than or equal to zero, but got {value}")
    same = input == other
    if equal_nan and input.dtype.kind in "fc":
        same = same | (E.isnan(input) & E.isnan(other))
    if (rtol == 0 and atol == 0) or input.dtype.kind == "b":
        return same
    if input.dtype.kind == "u":
        distance = E.maximum(input, other) - E.minimum(input, other)
    else:
        distance = E.abs(input - other)
    return same | (E.isfinite(distance) & (distance <= atol + E.abs(rtol * other)))


@isclose.accepts
def _(input, other, rtol, atol, equal_nan):
    a, b = input._layout.dtype, other._layout.dtype
    if a is not b:
        raise DtypeError(f"isclose: {a} did not match {b}; cast one of them.")


@isclose.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), make(3, 4), 0.1, 0.5


@composite(out=False)
def allclose(input: Tensor, other: Tensor, rtol: Float = 1e-5, atol: Float = 1e-8,
             equal_nan: Bool = False):  # fmt: skip
    """Are all elements close? See ``isclose``.

    >>> torch.allclose(torch.tensor([1., 2.]), torch.tensor([1., 2. + 1e-7]))
    True
    """
    return bool(T.all(T.isclose(input, other, rtol, atol, equal_nan)).item())


@composite(out=False)
def equal(input: Tensor, other: Tensor):
    """Have both tensors the same shape and elements?

    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    if input._layout.shape != other._layout.shape:
        return False
    return bool(T.all(T.eq(input, other)).item())
