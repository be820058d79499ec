"""Whole numbers that ``random_`` draws: which a dtype allows, and how many there are.

Beside the bounds' own checks, a float type allows those that it holds exactly, and draws up to 2 to
the bits of its mantissa. The rules are PyTorch's (ATen/native/DistributionTemplates.h), on every
device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.errors import RandomError

ml_dtypes = lazy("ml_dtypes")
HALVES = ("float16", "bfloat16")
"""Types without native samplers, filled as float32 and rounded."""
MANTISSA = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def half_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a half type."""
    if name == "float16":
        return np.dtype(np.float16)
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def _largest(name: str) -> int:
    """The largest whole number that random_ draws for a type."""
    if name in MANTISSA:
        return 1 << MANTISSA[name]
    return 1 if name == "bool" else int(np.iinfo(name).max)


def _limits(name: str) -> tuple[int, int]:
    """The bounds that a type allows; the wide floats allow all of int64."""
    if name in MANTISSA:
        return (-65504, 65504) if name == "float16" else (INT64_MIN, INT64_MAX)
    return (0, 1) if name == "bool" else (int(np.iinfo(name).min), int(np.iinfo(name).max))


def _to_float(name: str, x: int) -> int:
    """A whole number rounded to a float type; past int64 it is int64's smallest, as in PyTorch."""
    dtype = half_dtype(name) if name in HALVES else np.dtype(name)
    value = float(np.float32(x).astype(dtype)) if name in HALVES else float(dtype.type(x))
    return int(value) if -(2.0**63) <= value < 2.0**63 else INT64_MIN


def _step(name: str, x: int) -> int:
    """The distance between neighbours of a float type near a whole number it cannot hold."""
    shift = abs(x).bit_length() - MANTISSA[name]
    return 1 << shift if shift >= 0 else 0


def _representable(name: str, low: int, high: int) -> tuple[int, int]:
    """Bounds moved inwards so that rounding to a float type does not leave [low, high)."""
    rounded = _to_float(name, low + 1)
    if rounded < low:
        low = rounded + _step(name, low + 1)
    rounded = _to_float(name, high - 1)
    if rounded >= high:
        high = rounded - _step(name, high - 1)
    return low, high


def bounds_of(name: str, low: int | None, high: int | None) -> tuple[int, int, bool]:
    """(first number, how many, from 64-bit draws?); as many as 2**64 or 2**32 is 0."""
    if low is None and high is None:  # random_()
        return 0, _largest(name) + 1, name in ("float64", "int64", "uint64")
    if low == INT64_MIN and high is None:
        return 0, 0, True
    low = 0 if low is None else low
    if high is None:
        high = _largest(name) + 1
        if name in MANTISSA:
            low = _representable(name, low, high)[0]
    elif name in MANTISSA:
        _check_bounds(name, low, high)
        low, high = _representable(name, low, high)
    _check_bounds(name, low, high)
    if low >= high:
        raise RandomError(f"random_: there is nothing from {low} up to {high}")
    return low, high - low, high - low >= 1 << 28


def _check_bounds(name: str, low: int, high: int) -> None:
    least, most = _limits(name)
    for what, bound in (("low", low), ("high - 1", high - 1)):
        if not least <= bound <= most:
            raise RandomError(f"random_: {what} = {bound} is out of range for {name}")
