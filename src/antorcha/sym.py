"""``torch.SymInt`` and its like, and the checks that libraries write instead of ``assert``.

Sizes are plain ints here: no value is ever symbolic, so nothing is an instance of these classes,
and ``sym_int`` is ``int``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from antorcha.core import dtypes
from antorcha.errors import ArgumentError, MissingFeature, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import tensor

__all__ = ["SymBool", "SymFloat", "SymInt", "sym_constrain_range", "sym_constrain_range_for_size",
           "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not",
           "sym_sqrt", "sym_sum"]  # fmt: skip


def _no_symbols(self: Any, *_: Any) -> NoReturn:
    name = type(self).__name__
    raise MissingFeature(f"torch.{name}: sizes are plain ints here, none is symbolic")


class SymInt:
    """An int that is not known while a program is captured: there is none, sizes are ints.

    >>> isinstance(torch.ones(2, 3).shape[0], (int, torch.SymInt))
    True
    """

    __init__ = _no_symbols


class SymFloat:
    """A float that is not known while a program is captured: there is none."""

    __init__ = _no_symbols


class SymBool:
    """A bool that is not known while a program is captured: there is none."""

    __init__ = _no_symbols


def sym_int(a: Any) -> int:
    """``int(a)``."""
    return int(a)


def sym_float(a: Any) -> float:
    """``float(a)``."""
    return float(a)


def sym_not(a: Any) -> bool:
    """``not a``."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger number, as a float if one of both is.

    >>> torch.sym_max(2, 3), torch.sym_max(2.0, 3)
    (3, 3.0)
    """
    return _as_float(a, b, max)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, as a float if one of both is."""
    return _as_float(a, b, min)


def _as_float(a: Any, b: Any, choose: Callable[..., Any]) -> Any:
    for each in (a, b):
        if not isinstance(each, (int, float)):
            raise ArgumentError(f"a number is needed, not {type(each).__name__}")
    return choose(float(a), float(b)) if float in (type(a), type(b)) else choose(a, b)


def sym_sum(*args: Any) -> Any:
    """The sum of numbers, given one by one or in a list."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """``t if b else f``, for two of one type."""
    if type(t) is not type(f):
        raise ArgumentError(f"sym_ite: {type(t).__name__} and {type(f).__name__} differ")
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """``math.sqrt(a)``."""
    return math.sqrt(a)


def sym_fresh_size(expr: Any) -> Any:
    """The number itself."""
    return expr


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raises RuntimeError for a number outside the bounds."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise ShapeError(f"Invalid value range for {size} between [{min}, {max}].")


sym_constrain_range_for_size = sym_constrain_range


# ---- checks --------------------------------------------------------------------------------------


def _check_with(error_type: Any, cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raises `error_type` with the text that ``message()`` gives, unless `cond` is true."""
    if not isinstance(cond, bool):
        if isinstance(cond, Tensor):
            raise ArgumentError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use "
                "torch._check_tensor_all() to assert that all elements are true."
            )
        raise ArgumentError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(
            "Expected cond to be True, but got False. (Could this error message be improved? If "
            "so, please report an enhancement request to PyTorch.)"
        )
    if not callable(message):
        raise ArgumentError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Any = None) -> None:
    """Raises RuntimeError unless `cond` is true."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """Raises IndexError unless `cond` is true."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """Raises ValueError unless `cond` is true."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """Raises TypeError unless `cond` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """Raises NotImplementedError unless `cond` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raises RuntimeError for a negative number, or one above `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type: Any, cond: Any, message: Any = None) -> None:
    """Raises `error_type` unless all elements are true."""
    if not isinstance(cond, Tensor):
        raise ArgumentError(f"cond must be a tensor, but got {type(cond)}")
    if cond._layout.dtype is not dtypes.bool_:
        raise ArgumentError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(T.all(cond)), message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raises RuntimeError unless all elements are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raises RuntimeError unless the one element is true."""
    if input._layout.numel != 1:
        raise ShapeError(
            "Boolean value of Tensor with "
            + ("no values" if input._layout.numel == 0 else "more than one value")
            + " is ambiguous"
        )
    if not bool(input):
        raise ShapeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _shape_as_tensor(input: Tensor) -> Any:
    """The shape as an int64 tensor."""
    return tensor(list(input._layout.shape), dtype=dtypes.int64)
