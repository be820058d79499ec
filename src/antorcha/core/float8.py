"""The five 8-bit floating types: conversion to them, and the ops that know them.

A float8 tensor stores, moves and converts its elements; to compute, cast it to a wider dtype, as
PyTorch asks. Conversion goes through float32 and rounds to nearest, ties to even. What is too large
becomes the largest finite number (e4m3fn), infinity (e5m2) or NaN (the "fnuz" types). e8m0fnu has
powers of two only, no sign and no zero. Source: PyTorch's ``torch/headeronly/util/Float8_*.h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from antorcha.core.dtypes import FLOAT8, promote_types
from antorcha.core.lazy import np
from antorcha.errors import MissingFeature

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.runtime.memory.layout import Layout

_E4M3FN_MAX: Final = 448.0
ZERO_E8M0: Final = 2.0**-127  # what 0 becomes in float8_e8m0fnu

MOVES: Final = frozenset({
    "abs", "alias", "cat", "clone", "copy", "copy_backward", "eq", "fill", "full_layout",
    "index_at", "index_put_at", "index_select", "isnan", "ne", "repeat", "rolled", "selected",
    "stack", "to_device", "to_dtype", "to_dtype_backward", "where", "where_self", "zero",
})  # fmt: skip
"""The ops that take float8 tensors, besides views: they move elements, or look at the bits."""


def cast(array: Any, to: Any) -> Any:
    """A NumPy array converted to a dtype, by PyTorch's rules where that is a float8 one."""
    if array.dtype == to:
        return array
    if array.dtype.isbuiltin == to.isbuiltin == 1:  # NumPy's own
        return array.astype(to, copy=False)
    if array.dtype.name.endswith(("fnuz", "fnu")):  # their only NaN has no sign
        array = array.astype(np.float32)
        array = np.where(np.isnan(array), np.float32(np.nan), array)
    if to.name not in FLOAT8:
        return array.astype(to, copy=False)
    if array.dtype.kind == "c":
        array = array.real
    with np.errstate(all="ignore"):
        single = array.astype(np.float32)
        if to.name == "float8_e8m0fnu":
            return _exponents(single).view(to)
        if to.name == "float8_e4m3fn":
            return np.clip(single, -_E4M3FN_MAX, _E4M3FN_MAX).astype(to)  # (NaN stays)
        result = single.astype(to)
        if to.name == "float8_e5m2":  # NaN has all its bits set
            bits = result.view(np.uint8)
            result = np.where(np.isnan(single), bits | np.uint8(0x7F), bits).view(to)
        return result


def _exponents(single: Any) -> Any:
    """float32 numbers as e8m0: the biased exponent, rounded by the significand; the sign is lost,
    infinity and NaN become 255."""
    bits = np.ascontiguousarray(single).view(np.uint32)
    exponent = (bits >> 23) & 0xFF
    half = (bits & 0x400000) != 0
    more = ((bits & 0x3FFFFF) != 0) | (exponent > 0)
    rounded = exponent + (half & more)
    return np.where(exponent == 0xFF, 0xFF, rounded).astype(np.uint8).reshape(np.shape(single))


def check_known(op: Any, layouts: Sequence[Layout | None]) -> None:
    """Refuses an op on (or to) float8 tensors that does more than to move elements."""
    dtypes = {layout.dtype for layout in layouts if layout is not None}
    found = next((each for each in dtypes if each.name in FLOAT8), None)
    if found is None or _takes(op):
        return
    floats = [each for each in dtypes if each.is_floating_point]
    if len(floats) > 1:
        promote_types(*floats[:2])
    raise MissingFeature(
        f'{op.name}: "{op.name}_cpu" not implemented for {scalar_type(found)!r}: a float8 tensor '
        "stores numbers; cast it first, e.g. x.float(), and back with .to()"
    )


def _takes(op: Any) -> bool:
    return op.name in MOVES or getattr(op, "only_moves", False)


def scalar_type(dtype: DType) -> str:
    """The type's name in PyTorch's C++: ``Float8_e4m3fn``."""
    return dtype.name.capitalize()
