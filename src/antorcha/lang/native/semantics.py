"""What native code computes, said with numpy scalars and arrays: the meaning of every operator.

A typed value is a numpy scalar, a one-dimensional array (a vector), or a pointer (``memory.Ptr``).
Python's own numbers are compile-time values that adapt to the other operand. Everything here gives
bit for bit what the compiled code gives; the interpreter and plain-Python conversions are built on
it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.errors import NativeError
from antorcha.lang.native.types import (
    SCALARS,
    Ty,
    bool_,
    f32,
    f64,
    half_bits,
    i32,
    i64,
    raw,
    u32,
    vec,
)

native_types = lazy("antorcha.lang.native.types")
native_memory = lazy("antorcha.lang.native.memory")

PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "shl": operator.lshift,
    "shr": operator.rshift, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "pow": operator.pow,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
SIGN = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "shl": "<<",
    "shr": ">>", "and": "&", "or": "|", "xor": "^", "pow": "**",
}  # fmt: skip
_NUMPY: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "shl": np.left_shift,
    "shr": np.right_shift, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
_BY_DTYPE: dict[Any, Ty] = {np.dtype(t.np): t for t in SCALARS if t.name != "bf16"}


def scalar_type(dtype: Any) -> Ty | None:
    """The native type of a numpy dtype, or None."""
    found = _BY_DTYPE.get(dtype)
    if found is None and dtype.name == "bfloat16":
        found = _BY_DTYPE[dtype] = native_types.bf16
    return found


def type_of(x: Any) -> Ty | None:
    """The type of a typed value; None for a compile-time value."""
    if isinstance(x, np.generic):
        return scalar_type(x.dtype)
    if isinstance(x, np.ndarray):
        scalar = scalar_type(x.dtype)
        return None if scalar is None or x.ndim != 1 else vec[scalar, len(x)]
    return getattr(type(x), "native_type", lambda _: None)(x)


# ---- conversions
def convert(ty: Ty, x: Any) -> Any:
    """``ty(x)`` as the program asks for it; see lower.convert for the rules."""
    if ty.kind == "p":
        return native_memory.to_pointer(ty, x)
    if isinstance(x, native_memory.Ptr):
        x = np.int64(i64.wrap(x.address))
        return convert(ty, x)
    if ty.kind not in "iufbv":
        raise NativeError(f"{x!r} does not become a {ty}")
    if ty.kind == "v":
        have = type_of(x)
        if have is not None and have.kind == "v":
            if have.n != ty.n:
                raise NativeError(f"a {have} does not become a {ty}: the lanes differ")
            return _numbers(ty.elem, x)
        return np.full(ty.n, convert(ty.elem, x))
    if isinstance(x, np.ndarray) and x.ndim:
        raise NativeError(f"an array does not become the scalar {ty}; take an element")
    if not isinstance(x, np.generic):
        return _constant(ty, x)
    return _numbers(ty, x)[()]


def _constant(ty: Ty, x: Any) -> Any:
    if not isinstance(x, (int, float)):
        try:
            x = x.__index__() if hasattr(x, "__index__") else float(x)
        except (TypeError, ValueError):
            raise NativeError(f"{x!r} does not become a {ty}") from None
    if ty.kind in "iu":
        return ty.np(ty.wrap(int(x)))
    if ty.half:
        return np.uint16(half_bits(x, ty)).view(ty.np)
    with np.errstate(over="ignore"):
        return ty.np(x)


def _numbers(ty: Ty, x: Any) -> Any:
    """A numpy value as another scalar type."""
    x = np.asarray(x)
    have = scalar_type(x.dtype)
    if have is None:
        raise NativeError(f"a value of {x.dtype} is not part of the native language")
    if have is ty:
        return x
    with np.errstate(all="ignore"):
        if have.half:
            x = x.astype(np.float32)
        if ty.kind == "b":
            return x != 0
        if ty.half:
            return narrow(ty, x)
        if have.kind == "f" and ty.kind in "iu":
            return _truncate(ty, x)
        return x.astype(ty.np)


def narrow(ty: Ty, x: Any) -> Any:
    """To a half type by way of f32."""
    single = np.asarray(x).astype(np.float32)
    with np.errstate(all="ignore"):
        if ty.name == "f16":
            return single.astype(np.float16)
    bits = np.array([half_bits(v, ty) for v in single.reshape(-1)], np.uint16)
    return bits.view(ty.np).reshape(single.shape)


def _truncate(ty: Ty, x: Any) -> Any:
    if ty.name == "u64":
        return np.where(np.isfinite(x) & (x > -1), x, 0).astype(np.uint64)
    middle = i64 if ty.size == 8 or ty is u32 else i32
    low, high = middle.bounds()
    wide = np.trunc(x.astype(np.float64))
    fits = (wide >= float(low)) & (wide < float(high + 1))
    found = np.where(fits, np.where(fits, wide, 0), 0).astype(middle.np)
    return np.where(fits, found, middle.np(low)).astype(ty.np)


def literal(x: Any, ty: Ty) -> Any:
    """A Python number as a value of this type; it must fit, as in compiled code."""
    if ty.kind == "v":
        return np.full(ty.n, literal(x, ty.elem))
    if ty.kind == "p":
        if x is None or (isinstance(x, int) and x == 0):
            return convert(ty, x)
        raise NativeError(f"{x!r} is not a {ty}")
    if ty.kind == "b":
        if not isinstance(x, bool):
            raise NativeError(f"{x!r} is not a bool")
        return np.bool_(x)
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise NativeError(f"{x!r} is not a number; a {ty} is needed")
    if ty.kind in "iu":
        if isinstance(x, float):
            raise NativeError(f"the float {x} is used as {ty}; write {ty}({x})")
        low, high = ty.bounds()
        if not (low <= x <= high or (ty.kind == "u" and -(high + 1) // 2 <= x < 0)):
            raise NativeError(f"{x} does not fit in {ty} ({low}..{high})")
    return convert(ty, x)


def own(x: Any, ty: Ty | None = None) -> Any:
    """Any value as a typed one, of this type if one is given; nothing converts but literals."""
    have = type_of(x)
    if have is None and not isinstance(x, (int, float, type(None))):
        x = native_memory.symbol(x)
        have = type_of(x)
    if have is None:
        if ty is None:
            ty = {bool: bool_, int: i64, float: f64, type(None): raw}.get(type(x))
        if ty is None:
            raise NativeError(f"{x!r} is a compile-time value and cannot be used at run time")
        return literal(x, ty)
    if ty is None or have is ty:
        return x
    if ty.kind == "v" and have is ty.elem:
        return np.full(ty.n, x)
    if ty.kind == "p" and have.kind == "p" and (ty is raw or (have is raw and ty.is_function)):
        return convert(ty, x)
    raise NativeError(f"a {have} where a {ty} is needed; write {ty}(...) to convert")


def same(a: Any, b: Any) -> tuple[Any, Any, Ty]:
    """Both operands as typed values of one type, and that type."""
    x, y = type_of(a), type_of(b)
    if x is None and y is None:
        a = own(a)
        x = type_of(a)
    if x is None:
        assert y is not None
        return own(a, y), b, y
    if y is None:
        return a, own(b, x), x
    if x is y or (x.kind == "p" and y.kind == "p"):
        return a, b, x
    if x.kind == "v" and y is x.elem:
        return a, own(b, x), x
    if y.kind == "v" and x is y.elem:
        return own(a, y), b, y
    raise NativeError(f"{x} and {y} do not mix; convert one: {x}(...) or {y}(...)")


# ---- operators
def binary(op: str, a: Any, b: Any) -> Any:
    if isinstance(a, native_memory.Ptr) or (op == "add" and isinstance(b, native_memory.Ptr)):
        return a.math(op, b) if isinstance(a, native_memory.Ptr) else b.math(op, a)
    if type_of(a) is None and type_of(b) is None:
        return PYTHON[op](a, b)
    a, b, ty = same(a, b)
    kind = ty.scalar.kind
    allowed = {"f": ("add", "sub", "mul", "div"), "b": ("and", "or", "xor")}.get(kind)
    if (allowed is not None and op not in allowed) or (kind in "iu" and op in ("div", "pow")):
        raise NativeError(f"{SIGN[op]} does not take {ty}")
    with np.errstate(all="ignore"):
        if ty.half:
            wide = _NUMPY[op](np.asarray(a, np.float32), np.asarray(b, np.float32))
            return narrow(ty.scalar, wide)[()]
        return _NUMPY[op](a, b)


def compare(op: str, a: Any, b: Any) -> Any:
    if isinstance(a, native_memory.Ptr) or isinstance(b, native_memory.Ptr):
        a, b, _ = same(a, b)
        return np.bool_(PYTHON[op](a.address, b.address))
    if type_of(a) is None and type_of(b) is None:
        return PYTHON[op](a, b)
    a, b, ty = same(a, b)
    if ty.half:
        a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    found = _NUMPY[op](a, b)
    return found[()] if isinstance(found, np.ndarray) and not found.ndim else found


_UNARY: dict[str, Any] = {
    "neg": operator.neg,
    "invert": operator.invert,
    "not": operator.not_,
    "pos": operator.pos,
}


def unary(op: str, x: Any) -> Any:
    """neg, invert, not or pos."""
    ty = type_of(x)
    if ty is None:
        return _UNARY[op](x)
    kind = ty.scalar.kind
    if op == "pos":
        return x
    if op == "not" and ty is not bool_:
        raise NativeError(f"not takes a bool, not {ty}")
    if (op == "neg" and kind not in "iuf") or (op == "invert" and kind not in "iub"):
        raise NativeError(f"{'-' if op == 'neg' else '~'} does not take {ty}")
    with np.errstate(all="ignore"):
        if op == "neg":
            if ty.half:
                return (np.asarray(x).view(np.uint16) ^ np.uint16(0x8000)).view(ty.scalar.np)[()]
            return np.negative(x)
        return np.logical_not(x) if kind == "b" else np.invert(x)


def minmax(low: bool, a: Any, b: Any) -> Any:
    if type_of(a) is None and type_of(b) is None:
        return min(a, b) if low else max(a, b)
    a, b, ty = same(a, b)
    if ty.half:
        a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    if ty.scalar.kind not in "iuf":
        raise NativeError(f"min and max do not take {ty}")
    if ty.scalar.kind == "f":
        found = np.fmin(a, b) if low else np.fmax(a, b)
    else:
        found = np.minimum(a, b) if low else np.maximum(a, b)
    return narrow(ty.scalar, found)[()] if ty.half else found


def absolute(x: Any) -> Any:
    ty = type_of(x)
    if ty is None:
        return abs(x)
    if ty.half:
        return (np.asarray(x).view(np.uint16) & np.uint16(0x7FFF)).view(ty.scalar.np)[()]
    if ty.scalar.kind not in "iuf":
        raise NativeError(f"abs does not take {ty}")
    with np.errstate(all="ignore"):
        return np.abs(x)


def widen(x: Any) -> Any:
    """A half-type value as f32; anything else as it is."""
    ty = type_of(x)
    return np.asarray(x, np.float32)[()] if ty is not None and ty.half else x


__all__ = ["PYTHON", "SIGN", "absolute", "binary", "compare", "convert", "f32", "literal", "minmax",
           "narrow", "own", "same", "scalar_type", "type_of", "unary", "widen"]  # fmt: skip
