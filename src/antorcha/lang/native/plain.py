"""The plain-Python sides of the vector and math intrinsics, on numpy scalars and arrays."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from antorcha.errors import NativeError
from antorcha.lang.native.memory import pointer
from antorcha.lang.native.semantics import (
    absolute,
    binary,
    literal,
    minmax,
    narrow,
    own,
    same,
    type_of,
    widen,
)
from antorcha.lang.native.types import Ty, bool_, vec


def _rounded(like: Any, found: Any) -> Any:
    """f32 results back to the half type of the operand they came from."""
    ty = type_of(like)
    return narrow(ty.scalar, found)[()] if ty is not None and ty.half else found


def select(c: Any, a: Any, b: Any) -> Any:
    if type_of(c) is None:
        return a if c else b
    a, b, ty = same(a, b)
    if type_of(c) is not bool_ and type_of(c).scalar is not bool_:  # type: ignore[union-attr]
        raise NativeError(f"select takes a bool or a mask, not {type_of(c)}")
    if not isinstance(c, np.ndarray):
        return a if c else b
    if ty.kind == "p":
        raise NativeError("select of pointers by a mask")
    return np.where(c, a, b).astype(ty.scalar.np)


@cache
def _c_fma(name: str) -> Any:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    call = getattr(library, name)
    kind = ctypes.c_float if name == "fmaf" else ctypes.c_double
    call.restype, call.argtypes = kind, [kind] * 3
    return call


def fma(a: Any, b: Any, c: Any) -> Any:
    values = [x for x in (a, b, c) if type_of(x) is not None]
    vectors = [x for x in values if isinstance(x, np.ndarray)]
    like = (vectors or values)[0]
    ty: Any = type_of(like)
    x, y, z = (widen(own(v, ty)) for v in (a, b, c))
    if ty.scalar.kind in "iu":
        return binary("add", binary("mul", x, y), z)
    single = np.asarray(x).dtype == np.float32
    call = _c_fma("fmaf" if single else "fma")
    found = [
        call(float(p), float(q), float(r))
        for p, q, r in zip(np.atleast_1d(x), np.atleast_1d(y), np.atleast_1d(z), strict=True)
    ]
    result = np.array(found, np.float32 if single else np.float64)
    return _rounded(like, result if ty.kind == "v" else result[0])


def unary(name: str) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        x = own(x)
        with np.errstate(all="ignore"):
            return _rounded(x, getattr(np, name)(widen(x)))

    return run


def _bitwise(f: Callable[[int, int], int]) -> Callable[[Any], Any]:
    """An integer function of (unsigned value, bits), lane by lane."""

    def run(x: Any) -> Any:
        x = own(x)
        ty: Any = type_of(x)
        bits = ty.scalar.size * 8
        found = [ty.scalar.wrap(f(int(v) % (1 << bits), bits)) for v in np.atleast_1d(x)]
        result = np.array(found, ty.scalar.np)
        return result if ty.kind == "v" else result[0]

    return run


ctpop = _bitwise(lambda v, bits: v.bit_count())
clz = _bitwise(lambda v, bits: bits - v.bit_length())
ctz = _bitwise(lambda v, bits: (v & -v).bit_length() - 1 if v else bits)
bswap = _bitwise(lambda v, bits: int.from_bytes(v.to_bytes(bits // 8, "little"), "big"))


def fabs(x: Any) -> Any:
    return absolute(own(x))


def copysign(x: Any, sign: Any) -> Any:
    x, sign, _ = same(x, sign)
    return _rounded(x, np.copysign(widen(x), widen(sign)))


def nan_minmax(name: str) -> Callable[[Any, Any], Any]:
    def run(a: Any, b: Any) -> Any:
        a, b, ty = same(a, b)
        if ty.scalar.kind != "f":
            return minmax(name == "minimum", a, b)
        x, y = widen(a), widen(b)
        found = getattr(np, name)(x, y)
        zeros = (np.asarray(x) == 0) & (np.asarray(y) == 0)
        negative = (
            np.signbit(x) | np.signbit(y) if name == "minimum" else (np.signbit(x) & np.signbit(y))
        )
        zero = np.copysign(np.zeros_like(x), np.where(negative, -1.0, 1.0).astype(x.dtype))
        return _rounded(a, np.where(zeros, zero, found)[()])

    return run


def truncating(op: str) -> Callable[[Any, Any], Any]:
    def run(a: Any, b: Any) -> Any:
        a, b, ty = same(a, b)
        found = []
        for x, y in zip(np.atleast_1d(a), np.atleast_1d(b), strict=True):
            p, q = int(x), int(y)
            whole = 0 if q == 0 else abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
            rest = 0 if q == 0 else p - whole * q
            found.append(ty.scalar.wrap(whole if op == "div" else rest))
        result = np.array(found, ty.scalar.np)
        return result if ty.kind == "v" else result[0]

    return run


def mulhi(a: Any, b: Any) -> Any:
    a, b, ty = same(a, b)
    bits = ty.scalar.size * 8
    found = [
        ty.scalar.wrap(int(x) * int(y) >> bits)
        for x, y in zip(np.atleast_1d(a), np.atleast_1d(b), strict=True)
    ]
    result = np.array(found, ty.scalar.np)
    return result if ty.kind == "v" else result[0]


def dot_pairs(total: Any, a: Any, b: Any) -> Any:
    for shift in (16, 0):  # the upper halves are added first
        x, y = ((v >> np.uint32(shift) << np.uint32(16)).view(np.float32) for v in (a, b))
        with np.errstate(all="ignore"):
            exact = x.astype(np.float64) * y + total
        total = exact.astype(np.float32)
    return total


# ---- making and taking apart
def lanes(ty: Ty, n: int) -> Any:
    return np.array([literal(k, ty) for k in range(n)], ty.np)


def first(n: int, count: Any) -> Any:
    return np.arange(n) < int(count)


def insert(v: Any, i: Any, x: Any) -> Any:
    result = np.array(v)
    result[int(i)] = own(x, type_of(v).elem)  # type: ignore[union-attr]
    return result


def shuffle(a: Any, b: Any, ix: Any) -> Any:
    both = np.concatenate([a, a if b is None else b])
    return both[[max(k, 0) for k in ix]]


# ---- memory
def _mask(mask: Any, n: int) -> Any:
    if mask is None:
        return np.ones(n, bool)
    if type_of(mask) is not vec[bool_, n]:
        raise NativeError(f"the mask is a {type_of(mask)}, not a {vec[bool_, n]}")
    return mask


def vload(p: Any, n: int, mask: Any = None) -> Any:
    p = pointer(p)
    return _gather(p, range(n), _mask(mask, n))


def _gather(p: Any, ix: Any, mask: Any) -> Any:
    found = np.zeros(len(ix), p.ty.elem.np)
    for k, i in enumerate(ix):
        if mask[k]:
            found[k] = p[int(i)]
    return found


def vstore(p: Any, v: Any, mask: Any = None, stream: bool = False) -> None:
    p = pointer(p)
    vscatter(p, range(len(v)), v, mask)


def vgather(p: Any, ix: Any, mask: Any = None) -> Any:
    return _gather(pointer(p), ix, _mask(mask, len(ix)))


def vscatter(p: Any, ix: Any, v: Any, mask: Any = None) -> None:
    p = pointer(p)
    few = _mask(mask, len(ix))
    v = own(v, vec[p.ty.elem, len(ix)])
    for k, i in enumerate(ix):
        if few[k]:
            p[int(i)] = v[k]


# ---- reductions
def reduction(name: str) -> Callable[[Any], Any]:
    def join(a: Any, b: Any) -> Any:
        return binary(name, a, b) if name in ("add", "mul") else minmax(name == "min", a, b)

    def run(v: Any) -> Any:
        work, rest = widen(v), []
        while len(work) > 1:
            half = len(work) // 2
            if len(work) % 2:
                rest.append(work[-1])
            work = join(work[:half], work[half : 2 * half])
        found = work[0]
        for each in rest:
            found = join(found, each)
        return _rounded(v, found)

    return run


def mask_reduction(name: str) -> Callable[[Any], Any]:
    return lambda mask: np.bool_(np.any(mask) if name == "any" else np.all(mask))


def mask_bits(mask: Any) -> Any:
    return np.uint64(sum(1 << k for k, on in enumerate(mask) if on))
