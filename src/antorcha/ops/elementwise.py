"""Arithmetic and elementary functions, element by element. One record per op.

The function under each record computes one element. Where no derivative stands below it, it is
found from that function.
"""

from __future__ import annotations

from antorcha import dtypes
from antorcha.errors import ArgumentError, DtypeError
from antorcha.lang import expr as E
from antorcha.ops.pointwise import pointwise
from antorcha.ops.types import Bool, Dtype, Number, Operand, Power, Str, Tensor


# ---------------------------------------------------------------------------------- arithmetic
@pointwise(inplace=True)
def add(input: Tensor, other: Operand, *, alpha: Number = 1):
    """Adds ``other``, scaled by ``alpha``, to ``input``, with broadcasting and type promotion.

    ``out_i = input_i + alpha * other_i``.
    See https://docs.pytorch.org/docs/stable/generated/torch.add.html.

    >>> torch.add(torch.tensor([1., 2.]), 20)
    tensor([21., 22.])
    """
    if isinstance(input, E.Expr) and input.dtype.kind == "b":
        return input | other
    return input + other if isinstance(alpha, int) and alpha == 1 else input + other * alpha


@add.derivative
def _(g, other, alpha):
    return g, g if isinstance(alpha, int) and alpha == 1 else g * alpha


@add.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 1), make(4)
    yield make(3, 4), 2
    yield (make(3, 4), make(3, 4)), {"alpha": 2}
    yield make(0, 4), make(4)


@add.errors
def _(make):
    yield (make(3, 2), make(4, 2)), {}, RuntimeError, "do not broadcast"
    yield (make(3), "x"), {}, TypeError, "must be"


@pointwise(inplace=True, aliases=("subtract",))
def sub(input: Tensor, other: Operand, *, alpha: Number = 1):
    """Subtracts ``other``, scaled by ``alpha``, from ``input``: ``input - alpha * other``.

    See https://docs.pytorch.org/docs/stable/generated/torch.sub.html.

    >>> torch.sub(torch.tensor([1., 2.]), torch.tensor([0., 1.]), alpha=2)
    tensor([1., 0.])
    """
    if isinstance(input, E.Expr) and input.dtype.kind == "b":
        raise DtypeError(
            "sub: Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return input - other if isinstance(alpha, int) and alpha == 1 else input - other * alpha


@sub.derivative
def _(g, other, alpha):
    return g, -g if isinstance(alpha, int) and alpha == 1 else -(g * alpha)


@sub.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(3, 1)
    yield make(3, 4), 2.5
    yield (make(3, 4), make(3, 4)), {"alpha": 3}


@pointwise(function=True, method=False)
def rsub(input: Tensor, other: Operand, *, alpha: Number = 1):
    """Subtracts ``input``, scaled by ``alpha``, from ``other``: ``other - alpha * input``.

    >>> torch.rsub(torch.tensor([1., 2.]), 3)
    tensor([2., 1.])
    """
    return other - (input if isinstance(alpha, int) and alpha == 1 else input * alpha)


@rsub.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 4), 2


@pointwise(inplace=True, aliases=("multiply",))
def mul(input: Tensor, other: Operand):
    """Multiplies ``input`` by ``other``, element by element, with broadcasting and promotion.

    See https://docs.pytorch.org/docs/stable/generated/torch.mul.html.

    >>> torch.mul(torch.tensor([1., 2.]), 100)
    tensor([100., 200.])
    """
    if isinstance(input, E.Expr) and input.dtype.kind == "b":
        return input & other
    return input * other


@mul.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 1), make(1, 4)
    yield make(3, 4), 2
    yield make(), make(3)


@pointwise(
    lambda statics: "float" if statics["rounding_mode"] is None else "promote",
    inplace=True, aliases=("divide", "true_divide"),
)  # fmt: skip
def div(input: Tensor, other: Operand, *, rounding_mode: Str = None):
    """Divides ``input`` by ``other``, element by element.

    ``rounding_mode``: None is true division (integers give floats), ``"trunc"`` rounds towards
    zero, ``"floor"`` towards minus infinity; with a mode integers stay integers.
    See https://docs.pytorch.org/docs/stable/generated/torch.div.html.

    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    if rounding_mode is None:
        return input / other
    if rounding_mode == "trunc":
        return E.trunc_divide(input, other)
    if rounding_mode == "floor":
        return E.floor_divide(input, other)
    raise ArgumentError(f"div: rounding_mode is None, 'trunc' or 'floor', not {rounding_mode!r}")


@div.derivative
def _(g, input, other, rounding_mode):
    if rounding_mode is not None:
        return 0, 0
    return g / other, -g * ((input / other) / other)


@div.samples
def _(make):
    yield make(3, 4), make(3, 4, low=1)
    yield make(3, 4), 2.5
    yield (make(3, 4), make(4, low=1)), {"rounding_mode": "floor"}
    yield (make(3, 4), make(4, low=1)), {"rounding_mode": "trunc"}


@pointwise(inplace=True)
def remainder(input: Tensor, other: Operand):
    """Python's modulus, element by element: the result has the divisor's sign.

    See https://docs.pytorch.org/docs/stable/generated/torch.remainder.html.

    >>> torch.remainder(torch.tensor([-3., 2., 3.]), 2)
    tensor([1., 0., 1.])
    """
    return input % other


@remainder.samples
def _(make):
    yield make(3, 4), make(3, 4, low=1)
    yield make(3, 4), 2


@pointwise(inplace=True)
def pow(input: Operand, exponent: Power):
    """Raises each element of ``input`` to the power ``exponent``.

    See https://docs.pytorch.org/docs/stable/generated/torch.pow.html.

    >>> torch.pow(torch.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    return input**exponent


@pow.samples
def _(make):
    yield make(3, 4, low=0.5), make(3, 4)
    yield make(3, 4), 2
    yield make(3, 4), 3
    yield make(3, 4, low=0.5), 0.5
    yield 2.0, make(3)


@pointwise(inplace=True)
def neg(input: Tensor):
    """The negative of each element.

    See https://docs.pytorch.org/docs/stable/generated/torch.neg.html.

    >>> torch.neg(torch.tensor([1., -2.]))
    tensor([-1.,  2.])
    """
    if isinstance(input, E.Expr) and input.dtype.kind == "b":
        raise DtypeError(
            "neg: Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return -input


@neg.samples
def _(make):
    yield (make(3, 4),)
    yield (make(),)


@pointwise("float", inplace=True)
def exp(input: Tensor):
    """``e`` to the power of each element.

    See https://docs.pytorch.org/docs/stable/generated/torch.exp.html.

    >>> torch.exp(torch.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """
    return E.exp(input)


@exp.samples
def _(make):
    yield (make(3, 4),)


@pointwise("float", inplace=True)
def log(input: Tensor):
    """The natural logarithm of each element: nan below 0, -inf at 0.

    See https://docs.pytorch.org/docs/stable/generated/torch.log.html.

    >>> torch.log(torch.tensor([1., 2.]))
    tensor([0.0000, 0.6931])
    """
    return E.log(input)


@log.samples
def _(make):
    yield (make(3, 4, low=0.1),)


@pointwise("float", inplace=True)
def tanh(input: Tensor):
    """The hyperbolic tangent of each element.

    See https://docs.pytorch.org/docs/stable/generated/torch.tanh.html.

    >>> torch.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return E.tanh(input)


@tanh.samples
def _(make):
    yield (make(3, 4),)


@pointwise(inplace=True)
def relu(input: Tensor):
    """``max(0, input)``, element by element; nan stays nan.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.relu.html.

    >>> torch.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return E.relu(input)


@relu.derivative
def _(g, out):
    return E.where(out <= 0, 0, g)


@relu.samples
def _(make):
    yield (make(3, 4),)


# --------------------------------------------------------------------------------- conversions
@pointwise("own", method=False, function=False, node="to_copy")
def to_dtype(input: Tensor, dtype: Dtype):
    """``input`` converted to ``dtype`` (a copy)."""
    return E.cast(input, dtype)


@to_dtype.derivative
def _(g):
    return g


@to_dtype.samples
def _(make):
    yield make(3, 4), dtypes.float64
    yield make(3, 4), dtypes.int32


@pointwise("copy", inplace=True, function=False, method=False, node="copy")
def copy(input: Tensor, src: Tensor, non_blocking: Bool = False):
    """``src`` broadcast to the shape of ``input`` and converted to its dtype.

    In place (``copy_``) it writes ``src`` over ``input``.
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.copy_.html.
    """
    return src


@copy.derivative
def _(g):
    return 0, g


@copy.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), make(3, 4)


@pointwise("where", function=False, method=False, node="where")
def where_self(condition: Tensor, input: Operand, other: Operand):
    """``input`` where ``condition`` holds, else ``other``: the kernel of ``torch.where``."""
    return E.where(condition, input, other)

