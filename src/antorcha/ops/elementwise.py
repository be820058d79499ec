"""Arithmetic, element by element, and conversions. One record per op.

The function under each record computes one element. Where no derivative stands below it, it is
found from that function. More element by element ops: ``transcendental``, ``special``,
``rounding``, ``compare``, ``select``, ``complexes``, ``activation``, ``loss``.
"""

from __future__ import annotations

from typing import Any

from antorcha.core import dtypes
from antorcha.errors import ArgumentError, DtypeError, ShapeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.divisors import refuse_zero_divisor
from antorcha.ops.kinds.functions import function
from antorcha.ops.kinds.pointwise import UnsupportedDtype, pointwise
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes, spread
from antorcha.ops.kinds.types import Bool, Dtype, Number, Operand, Power, Str, Tensor


def is_bool(*operands: Any) -> bool:
    """Is the element function being traced on bools?"""
    return any(isinstance(x, E.Expr) and x.dtype.kind == "b" for x in operands)


def is_one(number: Any) -> bool:
    return isinstance(number, int) and number == 1


@pointwise(inplace=True)
def add(input: Operand, other: Operand, *, alpha: Number = 1):
    """Adds ``other``, scaled by ``alpha``, to ``input``, with broadcasting and type promotion.

    ``out_i = input_i + alpha * other_i``.

    >>> torch.add(torch.tensor([1., 2.]), 20)
    tensor([21., 22.])
    """
    if is_bool(input):
        return input | (other if is_one(alpha) else other & alpha)
    return input + other if is_one(alpha) else input + other * alpha


@add.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 1), make(4)
    yield make(3, 4), 2
    yield (make(3, 4), make(3, 4)), {"alpha": 2}
    yield make(0, 4), make(4)
    yield (make(3, 2), make(4, 2)), {}, RuntimeError, "do not broadcast"
    yield (make(3), "x"), {}, TypeError, "must be"
    yield (make(3).long(), 1), {"alpha": 0.5}, RuntimeError, "integral input tensors"


@pointwise(inplace=True, aliases=("subtract",))
def sub(input: Operand, other: Operand, *, alpha: Number = 1):
    """Subtracts ``other``, scaled by ``alpha``, from ``input``: ``input - alpha * other``.

    >>> torch.sub(torch.tensor([1., 2.]), torch.tensor([0., 1.]), alpha=2)
    tensor([1., 0.])
    """
    return input - other if is_one(alpha) else input - other * alpha


@sub.accepts
def _no_bools(input, other, alpha):
    for x in (input, other):
        layout = getattr(x, "_layout", None)
        if isinstance(x, bool) or (layout is not None and layout.dtype.kind == "b"):
            raise DtypeError(
                "sub: Subtraction, the `-` operator, with a bool tensor is not supported. If you "
                "are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
                reason="bool numbers", op="sub",
            )  # fmt: skip


@sub.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(3, 1)
    yield make(3, 4), 2.5
    yield (make(3, 4), make(3, 4)), {"alpha": 3}
    yield (make(3) > 0, make(3) > 0), {}, RuntimeError, "logical_not"


@pointwise(method=False, page=False, node="RsubBackward1")
def rsub(input: Tensor, other: Operand, *, alpha: Number = 1):
    """Subtracts ``input``, scaled by ``alpha``, from ``other``: ``other - alpha * input``.

    >>> torch.rsub(torch.tensor([1., 2.]), 3)
    tensor([2., 1.])
    """
    return other - (input if is_one(alpha) else input * alpha)


rsub.accepts(_no_bools)


@rsub.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 4), 2


@pointwise(inplace=True, aliases=("multiply",))
def mul(input: Operand, other: Operand):
    """Multiplies ``input`` by ``other``, element by element, with broadcasting and promotion.

    >>> torch.mul(torch.tensor([1., 2.]), 100)
    tensor([100., 200.])
    """
    return input & other if is_bool(input) else input * other


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
def div(input: Operand, other: Operand, *, rounding_mode: Str = None):
    """Divides ``input`` by ``other``, element by element.

    ``rounding_mode``: None is true division (integers give floats), ``"trunc"`` rounds towards
    zero, ``"floor"`` towards minus infinity; with a mode integers stay integers.

    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    if rounding_mode is None:
        return input / other
    if rounding_mode == "trunc":
        return E.trunc_divide(input, other)
    if rounding_mode == "floor":
        return E.floor_divide(input, other)
    raise ShapeError(
        "div: expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
        f"{rounding_mode!r}"
    )


refuse_zero_divisor(div)


@div.derivative
def _(g, input, other, rounding_mode):
    if rounding_mode is not None:
        return 0, 0
    below = E.conj(other) if isinstance(other, E.Expr) else other
    return g / below, -g * E.conj((input / other) / other)


@div.samples
def _(make):
    yield make(3, 4), make(3, 4, low=1)
    yield make(3, 4), 2.5
    yield (make(3, 4), make(4, low=1)), {"rounding_mode": "floor"}
    yield (make(3, 4), make(4, low=1)), {"rounding_mode": "trunc"}
    yield (make(3), 2), {"rounding_mode": "up"}, RuntimeError, "rounding_mode"
    yield (make(3).long(), 0), {"rounding_mode": "floor"}, RuntimeError, "ZeroDivisionError"
    yield (make(3).long(), make(3) * 0 > 1), {"rounding_mode": "floor"}, RuntimeError, "has zeros"


@pointwise(inplace=True)
def floor_divide(input: Operand, other: Operand):
    """Divides and rounds towards minus infinity; integers stay integers. No gradient.

    >>> torch.floor_divide(torch.tensor([4., -3.]), 2)
    tensor([ 2., -2.])
    """
    return E.floor_divide(input, other)


refuse_zero_divisor(floor_divide)
floor_divide.has_no_derivative()
for _op in (add, sub, mul, div, floor_divide):
    _op.numbers_alone = True  # torch.add(2, 3) is a tensor, as in PyTorch


@pointwise(inplace=True)
def remainder(input: Operand, other: Operand):
    """Python's modulus, element by element: the result has the divisor's sign.

    >>> torch.remainder(torch.tensor([-3., 2., 3.]), 2)
    tensor([1., 0., 1.])
    """
    return input % other


refuse_zero_divisor(remainder)


@pointwise(inplace=True)
def fmod(input: Tensor, other: Operand):
    """C's ``fmod``, element by element: the result has the dividend's sign.

    >>> torch.fmod(torch.tensor([-3., 2., 3.]), 2)
    tensor([-1.,  0.,  1.])
    """
    return E.fmod(input, other)


refuse_zero_divisor(fmod)


@floor_divide.samples
@remainder.samples
@fmod.samples
def _(make):
    yield make(3, 4), make(3, 4, low=1)
    yield make(3, 4), 2


@pointwise(inplace=True)
def pow(input: Operand, exponent: Power):
    """Raises each element of ``input`` to the power ``exponent``.

    Integers to a negative Python number raise RuntimeError.

    >>> torch.pow(torch.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    if isinstance(input, E.Expr) and not isinstance(exponent, E.Expr):
        if isinstance(exponent, bool) and input.dtype.kind != "b":
            exponent = int(exponent)
        if isinstance(exponent, int) and exponent < 0 and input.dtype.kind in "bui":
            raise DtypeError(
                "pow: Integers to negative integer powers are not allowed; use a float exponent, "
                f"{float(exponent)}, or cast the base."
            )
        if input.dtype.kind == "b":
            return input if exponent else E.const(True, input.dtype)
    return input**exponent


@pow.samples
def _(make):
    yield make(3, 4, low=0.5), make(3, 4)
    yield make(3, 4), 2
    yield make(3, 4), 3
    yield make(3, 4, low=0.5), 0.5
    yield 2.0, make(3)
    yield (make(3).long(), -1), {}, RuntimeError, "negative integer powers"


@composite()
def float_power(input: Operand, exponent: Operand):
    """``pow`` computed in float64 (complex128 for complex operands).

    >>> torch.float_power(torch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """
    kinds = [x._layout.dtype.kind if hasattr(x, "_layout") else type(x) for x in (input, exponent)]
    if not (hasattr(input, "_layout") or hasattr(exponent, "_layout")):
        raise ArgumentError("float_power: one of input and exponent must be a Tensor")
    wide = dtypes.complex128 if "c" in kinds or complex in kinds else dtypes.float64
    pair = []
    for x in (input, exponent):
        if hasattr(x, "_layout"):
            x = x if x._layout.dtype is wide else T.to_dtype(x, wide)
        elif isinstance(x, (bool, int)):
            x = float(x)
        pair.append(x)
    return T.pow(*pair)


@float_power.samples
def _(make):
    yield make(3, 4, low=0.5), 2
    yield make(3, 4, low=0.5), make(4)


@pointwise(inplace=True, aliases=("negative",), samples=spread())
def neg(input: Tensor):
    """The negative of each element.

    >>> torch.neg(torch.tensor([1., -2.]))
    tensor([-1.,  2.])
    """
    if is_bool(input):
        raise DtypeError(
            "neg: Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead.",
            reason="bool numbers", op="neg",
        )  # fmt: skip
    return -input


@composite(out=False)
def positive(input: Tensor):
    """The tensor itself; refuses bool tensors.

    >>> torch.positive(torch.tensor([1., -2.]))
    tensor([ 1., -2.])
    """
    if input._layout.dtype.kind == "b":
        raise DtypeError(
            "positive: The `+` operator, on a bool tensor is not supported.",
            reason="bool numbers", op="positive",
        )  # fmt: skip
    return input


@pointwise("own", inplace=True, not_into="c", aliases=("absolute",), samples=of_shapes((3, 4)))
def abs(input: Tensor):
    """The absolute value of each element; of a complex number its magnitude, a real number.

    >>> torch.abs(torch.tensor([-1, 2]))
    tensor([1, 2])
    """
    if is_bool(input):
        raise UnsupportedDtype("abs: not implemented for torch.bool")
    return E.abs(input)


function("sign", E.sign.doc, "torch.tensor([0.7, -1.2, 0.])",
         "tensor([ 1., -1.,  0.])", inplace=True, samples=spread())  # fmt: skip
function("sgn", E.sgn.doc, "torch.tensor([3 + 4j, 0j])", "tensor([0.6000+0.8000j, 0.0000+0.0000j])",
         inplace=True, samples=spread())  # fmt: skip
function("reciprocal", E.reciprocal.doc, "torch.tensor([2., 4.])",
         "tensor([0.5000, 0.2500])", types="float", inplace=True,
         samples=spread(0.5))  # fmt: skip


@pointwise("own", inplace=True, node="pow", samples=spread())
def square(input: Tensor):
    """The square of each element.

    >>> torch.square(torch.tensor([1., -3.]))
    tensor([1., 9.])
    """
    x = E.cast(input, dtypes.int64) if is_bool(input) else input
    return x * x


@pointwise(inplace=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1):
    """``input + value * tensor1 * tensor2``, element by element.

    >>> torch.addcmul(torch.ones(2), torch.tensor([1., 2.]), torch.tensor([3., 4.]), value=0.5)
    tensor([2.5000, 5.0000])
    """
    if is_bool(input):
        raise UnsupportedDtype("addcmul: not implemented for torch.bool")
    return input + (tensor1 if is_one(value) else value * tensor1) * tensor2


@addcmul.samples
def _(make):
    yield make(3, 4), make(3, 4), make(4)
    yield (make(3, 4), make(3, 1), make(4)), {"value": 0.5}


@pointwise(inplace=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1):
    """``input + value * tensor1 / tensor2``, element by element. Floats only.

    >>> torch.addcdiv(torch.ones(2), torch.tensor([1., 2.]), torch.tensor([2., 4.]), value=2)
    tensor([2., 2.])
    """
    if tensor1.dtype.kind in "bui":
        raise DtypeError(
            "addcdiv: Integer division with addcdiv is not supported; use input + value * "
            "torch.trunc(tensor1 / tensor2), or cast to float first."
        )
    return input + (tensor1 if is_one(value) else value * tensor1) / tensor2


@addcdiv.samples
def _(make):
    yield make(3, 4), make(3, 4), make(4, low=1)
    yield (make(3, 4), make(3, 1), make(4, low=1)), {"value": 0.5}


# --------------------------------------------------------------------------------- divisors
@pointwise("bits", inplace=True)
def gcd(input: Tensor, other: Tensor):
    """The greatest common divisor of integers, never negative; of zeros 0.

    >>> torch.gcd(torch.tensor([4, -6, 0]), torch.tensor([6, 9, 0]))
    tensor([2, 3, 0])
    """
    return E.gcd(input, other)


@pointwise("bits", inplace=True)
def lcm(input: Tensor, other: Tensor):
    """The least common multiple of integers, never negative; 0 where one is 0.

    >>> torch.lcm(torch.tensor([4, -6, 0]), torch.tensor([6, 9, 3]))
    tensor([12, 18,  0])
    """
    divisor = E.gcd(input, other)
    return E.abs(E.trunc_divide(input, E.where(divisor == 0, 1, divisor)) * other)


def _of_integers(make: Any) -> Any:
    yield make.ints((3, 4), 30), make.ints((4,), 30)
    yield (make(3), make(3)), {}, RuntimeError, "not implemented"


gcd.samples(_of_integers)
lcm.samples(_of_integers)


# --------------------------------------------------------------------------------- conversions
@pointwise("own", method=False, function=False, node="to_copy")
def to_dtype(input: Tensor, dtype: Dtype):
    """``input`` converted to ``dtype`` (a copy)."""
    return E.cast(input, dtype)


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


def _bind_on_one_device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``copy_`` carries what it copies to where it is written."""
    bound = copy.signature.bind(args, kwargs)
    target, source = bound[1]
    device = target._layout.device
    if source._layout.device is device:
        return bound
    # (what is read on the host next must be there)
    ready = device.type == "cpu" or not copy.signature.fill(args, kwargs)[2]
    moved = T.to_device(source, device) if ready else T.to_device(source, device, True)
    return copy.signature.bind((target, moved), {})


copy.bind = _bind_on_one_device


@copy.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), make(3, 4)
