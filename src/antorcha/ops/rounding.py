"""Rounding, limits, extremes of two operands, interpolation, bits of floats. A record per op."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

from antorcha.core import dtypes
from antorcha.core.dtypes import finfo
from antorcha.errors import DtypeError, ShapeError
from antorcha.lang import expr as E
from antorcha.ops.elementwise import is_bool
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.functions import function
from antorcha.ops.kinds.pointwise import UnsupportedDtype, pointwise
from antorcha.ops.kinds.samples import of_shapes, spread, tensor_or_number
from antorcha.ops.kinds.types import Int, Number, Operand, Tensor

# ------------------------------------------------------------------------------------- rounding
for _name, _given, _gives, _aliases in (
    ("floor", "[-0.5, 1.5]", "[-1.,  1.]", ()),
    ("ceil", "[0.5, 1.5]", "[1., 2.]", ()),
    ("trunc", "[-1.5, 1.5]", "[-1.,  1.]", ("fix",)),
):
    function(_name, E.OPS[_name].doc, f"torch.tensor({_given})", f"tensor({_gives})", inplace=True,
             aliases=_aliases, samples=spread())  # fmt: skip


@pointwise(inplace=True, aliases=("special.round",))
def round(input: Tensor, *, decimals: Int = 0):
    """The nearest integer, ties to even; ``decimals`` rounds at that decimal place.

    >>> torch.round(torch.tensor([0.5, 1.5, 2.6]))
    tensor([0., 2., 3.])
    """
    if decimals == 0:
        return E.round(input)
    if input.dtype.kind != "f":
        raise UnsupportedDtype(
            "round: decimals={decimals} is not implemented for {dtype}", reason="needs float",
            op="round", decimals=decimals, dtype=input.dtype,
        )  # fmt: skip
    ten = 10.0 ** builtins.abs(decimals)
    if decimals > 0:
        return E.round(input * ten) / ten
    return E.round(input / ten) * ten


@round.samples
def _(make):
    yield (make(3, 4),)
    yield (make(3, 4),), {"decimals": 1}


@pointwise("floating", inplace=True, samples=spread())
def frac(input: Tensor):
    """The fraction of each element, with its sign. Floats only.

    >>> torch.frac(torch.tensor([1., 2.5, -3.2]))
    tensor([ 0.0000,  0.5000, -0.2000])
    """
    return input - E.trunc(input)


# --------------------------------------------------------------------------------------- limits
@pointwise(inplace=True, aliases=("clip",), node="ClampBackward1")
def clamp(input: Tensor, min: Operand = None, max: Operand = None):
    """Each element limited to ``min``..``max`` (numbers or tensors; either may be None).

    Where ``min`` is above ``max`` the result is ``max``. A nan limit gives nan.

    >>> torch.clamp(torch.tensor([-1.5, 0.2, 3.]), min=-1, max=1)
    tensor([-1.0000,  0.2000,  1.0000])
    """
    if min is None and max is None:
        raise ShapeError("clamp: At least one of 'min' or 'max' must not be None")
    if is_bool(input):
        raise UnsupportedDtype("clamp: not implemented for torch.bool")
    y = input if min is None else E.maximum(input, min)
    return y if max is None else E.minimum(y, max)


@clamp.derivative
def _(g, input, min, max):
    above = True if min is None else input >= min
    below = True if max is None else input <= max
    inside = (
        above & below if min is not None and max is not None else (above if max is None else below)
    )
    if min is None:
        return E.where(inside, g, 0), None, E.where(input > max, g, 0)
    if max is None:
        return E.where(inside, g, 0), E.where(input < min, g, 0), None
    to_min = E.where((min < max) & (input < min), g, 0)
    return E.where(inside, g, 0), to_min, E.where((input > max) | (max < min), g, 0)


@clamp.samples
def _(make):
    yield make(3, 4), -0.5, 0.5
    yield make(3, 4), make(4, low=-1, high=0), make(3, 1, low=0, high=1)
    yield (make(3, 4),), {"min": 0}
    yield (make(3, 4),), {"max": 0.3}
    yield (make(3),), {}, RuntimeError, "At least one of"


@pointwise(inplace=True, page=False)
def clamp_min(input: Tensor, min: Operand):
    """Each element, or ``min`` where that is greater.

    >>> torch.clamp_min(torch.tensor([-1., 2.]), 0)
    tensor([0., 2.])
    """
    return E.maximum(input, min)


@clamp_min.derivative
def _(g, input, min):
    return E.where(input >= min, g, 0), E.where(input < min, g, 0)


@pointwise(inplace=True, page=False)
def clamp_max(input: Tensor, max: Operand):
    """Each element, or ``max`` where that is less.

    >>> torch.clamp_max(torch.tensor([-1., 2.]), 0)
    tensor([-1.,  0.])
    """
    return E.minimum(input, max)


@clamp_max.derivative
def _(g, input, max):
    return E.where(input <= max, g, 0), E.where(input > max, g, 0)


@clamp_min.samples
@clamp_max.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), make(4)


def _or_of_bools(name: str, of_bools: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    element = getattr(E, name)
    return lambda a, b: of_bools(a, b) if is_bool(a) else element(a, b)


for _name, _meaning, _given, _gives, _of_bools in (
    ("maximum", "The greater of two elements; nan if either is. Ties share the gradient.",
     "torch.tensor([1, 2]), torch.tensor([3, 0])", "tensor([3, 2])", operator.or_),
    ("minimum", "The lesser of two elements; nan if either is. Ties share the gradient.",
     "torch.tensor([1, 2]), torch.tensor([3, 0])", "tensor([1, 0])", operator.and_),
    ("fmax", "The greater of two elements; the other one where one is nan.",
     'torch.tensor([1., float("nan")]), torch.tensor([3., 0.])', "tensor([3., 0.])", operator.or_),
    ("fmin", "The lesser of two elements; the other one where one is nan.",
     'torch.tensor([1., float("nan")]), torch.tensor([3., 0.])', "tensor([1., 0.])", operator.and_),
):  # fmt: skip
    function(_name, _meaning, _given, _gives, element=_or_of_bools(_name, _of_bools),
             takes=("Tensor", "Tensor"), samples=of_shapes((3, 4), (4,)))  # fmt: skip


@pointwise(inplace=True)
def nan_to_num(input: Tensor, nan: Number = None, posinf: Number = None, neginf: Number = None):
    """Replaces nan (by 0), inf and -inf (by the dtype's greatest and least), or as given.

    >>> torch.nan_to_num(torch.tensor([float("nan"), 1.]), nan=2.0)
    tensor([2., 1.])
    """
    if input.dtype.kind in "bui":
        return input
    if input.dtype.kind == "c":
        replace = nan_to_num.fn
        numbers = [E.real(n) if isinstance(n, E.Expr) else n for n in (nan, posinf, neginf)]
        return E.complex(*[replace(part(input), *numbers) for part in (E.real, E.imag)])
    limits = finfo(input.dtype)
    top = limits.max if posinf is None else posinf
    bottom = limits.min if neginf is None else neginf
    x = E.where(E.isnan(input), 0.0 if nan is None else nan, input)
    return E.where(input == math.inf, top, E.where(input == -math.inf, bottom, x))


nan_to_num.derivative(lambda g, input: E.where(E.isinf(input) | E.isnan(input), 0, g))


@nan_to_num.samples
def _(make):
    yield (make(3, 4),)
    yield (make(3, 4),), {"nan": 1.0, "posinf": 5.0}


# -------------------------------------------------------------------------------- interpolation
@pointwise("inexact", inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Operand):
    """Linear interpolation: ``input + weight * (end - input)``. One dtype for all tensors.

    >>> torch.lerp(torch.tensor([1., 2.]), torch.tensor([10., 10.]), 0.5)
    tensor([5.5000, 6.0000])
    """
    real = E.real(weight) if isinstance(weight, E.Expr) and weight.dtype.kind == "c" else weight
    difference = end - input
    near = input + weight * difference
    return E.where(E.abs(real) < 0.5, near, end - difference * (1 - weight))


@lerp.accepts
def _(input, end, weight):
    dtype = input._layout.dtype
    for name, other in (("end", end), ("weight", weight)):
        layout = getattr(other, "_layout", None)
        if layout is not None and layout.dtype is not dtype and (name == "end" or layout.ndim):
            raise DtypeError(
                f"lerp: expected dtype {dtype} for `{name}` but got dtype {layout.dtype}; "
                "cast one of them."
            )


@lerp.derivative
def _(g, input, end, weight):
    w = E.conj(weight)
    return g * (1 - w), g * w, g * E.conj(end - input)


@lerp.samples
def _(make):
    yield make(3, 4), make(4), 0.3
    yield make(3, 4), make(3, 4), make(4)
    yield (make(3).float(), make(3).double(), 0.5), {}, RuntimeError, "expected dtype"


# --------------------------------------------------------------------------------- bits of floats
@pointwise("float", inplace=True, samples=tensor_or_number(-1.0))
def copysign(input: Tensor, other: Operand):
    """The magnitude of ``input`` with the sign of ``other`` (of -0.0 too).

    >>> torch.copysign(torch.tensor([1., -2.]), -1.0)
    tensor([-1., -2.])
    """
    return E.copysign(input, other)


@pointwise(inplace=True, samples=of_shapes((3, 4), (4,)))
def nextafter(input: Tensor, other: Tensor):
    """The next number after ``input`` towards ``other``. Floats only.

    >>> torch.nextafter(torch.tensor([1.]), torch.tensor([2.])) == 1 + torch.finfo().eps
    tensor([True])
    """
    return E.nextafter(input, other)


nextafter.derivative(lambda g, input, other: (E.where(input != other, g, 0), 0))


@pointwise("own", returns=return_types.frexp)
def frexp(input: Tensor):
    """``(mantissa, exponent)`` with ``input = mantissa * 2**exponent``, the mantissa's magnitude
    between 0.5 and 1; the exponent of 0, infinities and nan is 0. Floats only.

    >>> torch.frexp(torch.tensor([1., -6.]))
    torch.return_types.frexp(
    mantissa=tensor([ 0.5000, -0.7500]),
    exponent=tensor([1, 3], dtype=torch.int32))
    """
    if input.dtype.kind != "f":
        raise UnsupportedDtype(
            "{op}: not implemented for {dtype}", reason="needs float", op="frexp", dtype=input.dtype
        )
    odd = (input == 0) | ~E.isfinite(input)
    exponent = E.where(odd, 0, E.logb(input) + 1)
    half = E.floor(exponent * 0.5)  # 2**-exponent may overflow
    mantissa = input * E.exp2(-half) * E.exp2(half - exponent)
    return mantissa, E.cast(exponent, dtypes.int32)


@frexp.samples
def _(make):
    yield (make(3, 4),)
    yield (make(3).long(),), {}, RuntimeError, "not implemented"


@pointwise(inplace=True, samples=of_shapes((3, 4), (4,)))
def heaviside(input: Tensor, values: Tensor):
    """0 below zero, 1 above, and ``values`` at zero. No gradient.

    >>> torch.heaviside(torch.tensor([-1.5, 0, 2.]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return E.where(input == 0, values, E.cast(input > 0, input.dtype))


@heaviside.accepts
def _(input, values):
    a, b = input._layout.dtype, values._layout.dtype
    if a is not b:
        raise DtypeError(
            f"heaviside: not implemented for tensors with different dtypes, {a} and {b}; cast one "
            "of them."
        )


heaviside.has_no_derivative()
