"""Functions of one element, or of two, of the array API standard.

See https://data-apis.org/array-api/latest/API_specification/elementwise_functions.html.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.array_api.arrays import Array, bind_operators, like, number, operands, plain
from antorcha.errors import ArgumentError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

UNARY = {
    **{name: name for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "conj", "cos", "cosh",
        "exp", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2",
        "logical_not", "reciprocal", "signbit", "sin", "sinh", "sqrt", "square", "tan",
        "trunc", "real", "imag")},
    "bitwise_invert": "bitwise_not", "negative": "neg", "positive": "clone",
}  # fmt: skip
"""Functions of one array, and the ops that they are."""
BINARY = {
    **{name: name for name in (
        "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
        "bitwise_xor", "copysign", "hypot", "logaddexp", "logical_and",
        "logical_or", "logical_xor", "maximum", "minimum", "nextafter", "pow")},
    "divide": "div", "equal": "eq", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "multiply": "mul", "not_equal": "ne", "subtract": "sub",
}  # fmt: skip
"""Functions of two arrays, or of an array and a number."""


def _unary(name: str, op: str) -> Callable[..., Any]:
    def function(x: Any, /) -> Any:
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{name}: an array is wanted, not {type(x).__name__}")
        return like(getattr(T, op)(plain(x)), x)

    return _shown(function, name, op)


def _binary(name: str, op: str) -> Callable[..., Any]:
    def function(x1: Any, x2: Any, /) -> Any:
        a, b = operands(name, x1, x2)
        if not isinstance(a, Tensor):
            a = number(a, b)
        elif not isinstance(b, Tensor) and op in _OF_ARRAYS:
            b = number(b, a)
        return like(getattr(T, op)(a, b), x1, x2)

    return _shown(function, name, op)


_OF_ARRAYS = {"atan2", "copysign", "hypot", "logaddexp", "logical_and", "logical_or", "logical_xor",
              "maximum", "minimum", "nextafter"}  # fmt: skip


def _shown(function: Callable[..., Any], name: str, op: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "antorcha.array_api"
    function.__doc__ = getattr(T, op).__doc__
    return function


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """The elements, none below ``min`` nor above ``max``, in the dtype of ``x``.

    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 8)
    Array([2, 5, 8])
    """
    result, dtype = plain(x), x._layout.dtype
    for bound, op in ((min, T.maximum), (max, T.minimum)):
        if bound is not None:
            limit = plain(bound) if isinstance(bound, Tensor) else number(bound, x)
            result = op(result, T.to_dtype(limit, dtype))
    return like(T.clone(result) if result is x else result, x)


def sign(x: Any, /) -> Any:
    """-1, 0 or 1, and NaN for NaN; of a complex number, the number over its absolute value.

    >>> xp.sign(xp.asarray([-2., 0., 3.]))
    Array([-1.,  0.,  1.])
    """
    given = plain(x)
    result = T.sgn(given)
    if x._layout.dtype.kind in "fc":
        result = T.where(T.isnan(given), given, result)
    return like(result, x)


def expm1(x: Any, /) -> Any:
    """``exp(x) - 1``, accurate near 0; of infinite complex numbers as C's ``cexp`` has it.

    >>> xp.expm1(xp.asarray([0., 1.]))
    Array([0.0000, 1.7183])
    """
    given = plain(x)
    result = T.expm1(given)
    if x._layout.dtype.kind == "c":
        usual = T.logical_and(T.isfinite(given), T.ne(given, 0))
        result = T.where(usual, result, T.sub(T.exp(given), 1))
    return like(result, x)


def round(x: Any, /) -> Any:
    """The nearest integers, of two the even one; of complex numbers each part.

    >>> xp.round(xp.asarray([0.5, 1.5, 2.6]))
    Array([0., 2., 3.])
    """
    given = plain(x)
    if x._layout.dtype.kind == "c":
        return like(T.complex(T.round(T.real(given)), T.round(T.imag(given))), x)
    return like(T.round(given), x)


def tanh(x: Any, /) -> Any:
    """The hyperbolic tangent; of an infinite complex number 1 or -1, and a zero with the sign of
    its imaginary part.

    >>> xp.tanh(xp.asarray([0., 1.]))
    Array([0.0000, 0.7616])
    """
    given = plain(x)
    result = T.tanh(given)
    if x._layout.dtype.kind == "c":
        real, imag = T.real(given), T.imag(given)
        limit = T.complex(T.sign(real), T.copysign(T.zeros_like(imag), imag))
        ends = T.logical_and(T.isinf(real), T.isfinite(imag))
        result = T.where(ends, limit, result)
    return like(result, x)


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """The quotient, rounded down.

    >>> xp.floor_divide(xp.asarray([7, -7]), 2)
    Array([ 3, -4])
    """
    a, b = _pair("floor_divide", x1, x2)
    result = T.floor_divide(a, b)
    if result._layout.dtype.kind == "f":  # an infinite operand's is what dividing gives
        infinite = T.logical_or(T.isinf(a), T.isinf(b))
        result = T.where(infinite, T.floor(T.div(a, b)), result)
    return like(result, x1, x2)


def remainder(x1: Any, x2: Any, /) -> Any:
    """What is left of dividing, with the sign of ``x2``.

    >>> xp.remainder(xp.asarray([7, -7]), 3)
    Array([1, 2])
    """
    a, b = _pair("remainder", x1, x2)
    result = T.remainder(a, b)
    if result._layout.dtype.kind == "f":
        result = T.where(T.eq(result, 0), T.copysign(T.zeros_like(result), b), result)
    return like(result, x1, x2)


def _pair(name: str, x1: Any, x2: Any) -> list[Tensor]:
    """Two arrays, Python numbers among them as arrays of no dims."""
    a, b = operands(name, x1, x2)
    a = a if isinstance(a, Tensor) else number(a, b)
    return [a, b if isinstance(b, Tensor) else number(b, a)]


_made = {name: _unary(name, op) for name, op in UNARY.items()}
_made |= {name: _binary(name, op) for name, op in BINARY.items()}
_made |= {each.__name__: each for each in (expm1, floor_divide, remainder, round, sign, tanh)}
globals().update(_made)
__all__ = [*_made, "clip"]


def matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product of two arrays.

    >>> xp.matmul(xp.ones((2, 3)), xp.ones((3, 4))).shape
    torch.Size([2, 4])
    """
    for each in (x1, x2):
        if not isinstance(each, Tensor):
            raise ArgumentError(f"matmul: an array is wanted, not {type(each).__name__}")
    return like(T.matmul(*operands("matmul", x1, x2)), x1, x2)


_COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
            "ge": "greater_equal"}  # fmt: skip
_OPERATORS = _COMPARE | {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
bind_operators(
    {method: _made[name] for method, name in _OPERATORS.items()} | {"matmul": matmul},
    {"abs": _made["abs"], "neg": _made["negative"], "pos": _made["positive"],
     "invert": _made["bitwise_invert"]},
    list(_COMPARE),
)  # fmt: skip
assert Array.__add__ is not Tensor.__add__
