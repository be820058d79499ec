"""Compiled against interpreted: every operator and conversion, on every type, over edge values."""

# ruff: noqa: F821 (annotations name compile-time parameters)

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from antorcha.lang.native import (
    bf16,
    bool_,
    bswap,
    clz,
    copysign,
    ctpop,
    ctz,
    f16,
    f32,
    f64,
    fabs,
    first,
    floor,
    fma,
    i8,
    i16,
    i32,
    i64,
    inline,
    interpreted,
    maximum,
    minimum,
    mulhi,
    native,
    ptr,
    roundeven,
    select,
    sqrt,
    static,
    trunc_div,
    trunc_mod,
    u8,
    u16,
    u32,
    u64,
    vec,
    vload,
    void,
    vstore,
)

INTS = [i8, i16, i32, i64, u8, u16, u32, u64]
FLOATS = [f16, bf16, f32, f64]
W = 8


@native
def map2(a: ptr[T], b: ptr[T], out: ptr[R], n: i64, *, T, R, f) -> void:
    for i in range(n):
        out[i] = f(a[i], b[i])


@native
def map2_vector(a: ptr[T], b: ptr[T], out: ptr[R], n: i64, *, T, R, f) -> void:
    for i in range(0, n, W):
        few = first(W, n - i)
        vstore(out + i, f(vload(a + i, W, few), vload(b + i, W, few)), few)


def values(ty: Any) -> np.ndarray:
    """Edge values of a type, its extremes and neighbours of powers of two among them."""
    if ty is bool_:
        return np.array([False, True])
    if ty in FLOATS:
        special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 1e-3, 65504.0, 7.0, -100.25,
                   np.inf, -np.inf, np.nan, 1e-7, 6e-8, -3e-5]  # fmt: skip
        return np.array(special, np.float32).astype(ty.np)
    low, high = ty.bounds()
    found = {0, 1, 2, 3, 7, 8, low, low + 1, high, high - 1, high // 2, 5, 100}
    if low < 0:
        found |= {-1, -2, -3, -7, -8, -100, low // 2}
    return np.array(sorted(found), ty.np)


def pairs(ty: Any) -> tuple[np.ndarray, np.ndarray]:
    edge = values(ty)
    grid = list(itertools.product(edge, edge))
    return np.array([a for a, _ in grid], ty.np), np.array([b for _, b in grid], ty.np)


def check(kernel: Any, a: np.ndarray, b: np.ndarray, R: Any, **fixed: Any) -> None:
    """Runs it both ways and compares the bits (any NaN equals any NaN)."""
    compiled, plain = np.zeros(len(a), R.np), np.zeros(len(a), R.np)
    kernel(a, b, compiled, len(a), R=R, **fixed)
    with interpreted():
        kernel(a, b, plain, len(a), R=R, **fixed)
    same = compiled.view(np.uint8).reshape(len(a), -1) == plain.view(np.uint8).reshape(len(a), -1)
    ok = same.all(axis=1)
    if R in FLOATS:
        x, y = compiled.astype(np.float64), plain.astype(np.float64)
        ok |= np.isnan(x) & np.isnan(y)
        if fixed["f"] in (least, greatest):
            ok |= (x == 0) & (y == 0)  # which zero wins is not said
    bad = np.flatnonzero(~ok)[:5]
    shown = [(a[k], b[k], "compiled", compiled[k], "plain", plain[k]) for k in bad]
    assert not len(bad), shown


@inline
def add(a, b):
    return a + b


@inline
def sub(a, b):
    return a - b


@inline
def mul(a, b):
    return a * b


@inline
def div(a, b):
    return a / b


@inline
def floordiv(a, b):
    return a // b


@inline
def mod(a, b):
    return a % b


@inline
def shl(a, b):
    return a << b


@inline
def shr(a, b):
    return a >> b


@inline
def bits(a, b):
    return ((a & b) | (a ^ b)) ^ ~a


@inline
def by_constants(a, b):
    return (a // 3) + (a % 3) + (a // 4) * 5 + a % 8 + (b << 3) + (b >> 2) + a // 1


@inline
def least(a, b):
    return min(a, b)


@inline
def greatest(a, b):
    return max(a, b)


@inline
def nan_least(a, b):
    return minimum(a, b)


@inline
def nan_greatest(a, b):
    return maximum(a, b)


@inline
def signs(a, b):
    return copysign(a, b) + fabs(b)


@inline
def negated(a, b):
    return -a


@inline
def absolute(a, b):
    return abs(a)


@inline
def c_quotient(a, b):
    return trunc_div(a, b)


@inline
def c_rest(a, b):
    return trunc_mod(a, b)


@inline
def high_half(a, b):
    return mulhi(a, b)


@inline
def counts(a, b):
    return ctpop(a) + clz(b) + ctz(a)


@inline
def swapped(a, b):
    return bswap(a)


@inline
def rounded(a, b):
    return floor(a) + roundeven(b)


@inline
def root(a, b):
    return sqrt(a)


@inline
def fused(a, b):
    return fma(a, b, a)


@inline
def chosen(a, b):
    return select(a < b, a, b)


@inline
def lt(a, b):
    return a < b


@inline
def le(a, b):
    return a <= b


@inline
def gt(a, b):
    return a > b


@inline
def ge(a, b):
    return a >= b


@inline
def eq(a, b):
    return a == b


@inline
def ne(a, b):
    return a != b


ANY = [add, sub, mul, least, greatest, negated, absolute, chosen, fused]
INTEGER = [floordiv, mod, shl, shr, bits, by_constants, c_quotient, c_rest, counts]
FLOATING = [div, nan_least, nan_greatest, signs, rounded, root]
COMPARE = [lt, le, gt, ge, eq, ne]


def names(x: Any) -> str:
    return getattr(x, "__name__", None) or str(x)


@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
@pytest.mark.parametrize("ty", INTS + FLOATS, ids=names)
def test_every_operator(ty, vector):
    kernel = map2_vector if vector else map2
    a, b = pairs(ty)
    for f in ANY + (FLOATING if ty in FLOATS else INTEGER):
        check(kernel, a, b, ty, T=ty, f=f)
    for f in COMPARE:
        check(kernel, a, b, bool_, T=ty, f=f)
    if ty in INTS:
        check(kernel, a, b, ty, T=ty, f=high_half)
        if ty.size > 1:
            check(kernel, a, b, ty, T=ty, f=swapped)


@inline
def logic(a, b):
    return ((a & b) | ~a) ^ (a == b)


@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
def test_bools(vector):
    a, b = pairs(bool_)
    check(map2_vector if vector else map2, a, b, bool_, T=bool_, f=logic)


@native
def convert(x: ptr[A], out: ptr[B], n: i64, *, A, B) -> void:
    for i in range(n):
        out[i] = B(x[i])


@native
def convert_vector(x: ptr[A], out: ptr[B], n: i64, *, A, B) -> void:
    for i in range(0, n, W):
        few = first(W, n - i)
        vstore(out + i, vec[B, W](vload(x + i, W, few)), few)


@pytest.mark.parametrize("kernel", [convert, convert_vector], ids=["scalar", "vector"])
@pytest.mark.parametrize("source", [*INTS, *FLOATS, bool_], ids=names)
def test_every_conversion(source, kernel):
    for to in [*INTS, *FLOATS, bool_]:
        x = values(source)
        if source in FLOATS and to in INTS:
            wide = x.astype(np.float64)
            low, high = (0, 2**64) if to is u64 else (-(2**31), 2**31)
            x = x[np.isfinite(wide) & (wide >= low) & (wide < high)]
        compiled, plain = np.zeros(len(x), to.np), np.zeros(len(x), to.np)
        kernel(x, compiled, len(x), A=source, B=to)
        with interpreted():
            kernel(x, plain, len(x), A=source, B=to)
        same = (compiled == plain) | ((compiled != compiled) & (plain != plain))
        assert same.all(), (source, to, x[~same], compiled[~same], plain[~same])


@pytest.mark.parametrize("kernel", [convert, convert_vector], ids=["scalar", "vector"])
def test_every_half_value(kernel):
    """All 65536 values of both half types to f32 and back, and f32 values around each."""
    patterns = np.arange(65536, dtype=np.uint16)
    for ty, kind in ((f16, np.float16), (bf16, ml_dtypes.bfloat16)):
        x = patterns.view(kind)
        wide = np.zeros(65536, np.float32)
        kernel(x, wide, 65536, A=ty, B=f32)
        np.testing.assert_array_equal(wide, x.astype(np.float32))
        with np.errstate(all="ignore"):
            near = np.concatenate([
                np.nextafter(wide, np.float32(np.inf)), np.nextafter(wide, np.float32(-np.inf)),
                (wide + np.concatenate([wide[1:], wide[-1:]])) / 2, wide,
            ])  # fmt: skip
            expected = near.astype(kind)
        back = np.zeros(len(near), kind)
        kernel(near, back, len(near), A=f32, B=ty)
        ours, theirs = back.view(np.uint16), expected.view(np.uint16)
        nan = np.isnan(near)
        np.testing.assert_array_equal(ours[~nan], theirs[~nan])
        assert np.isnan(back[nan].astype(np.float32)).all()


@native
def shift_by(x: ptr[T], out: ptr[T], n: i64, *, T, by) -> void:
    for i in range(n):
        out[i] = (x[i] << by) ^ (x[i] >> by)


@pytest.mark.parametrize("ty", INTS, ids=names)
def test_shifts_by_constants_up_to_and_past_the_width(ty):
    x = values(ty)
    for by in (0, 1, ty.size * 8 - 1, ty.size * 8, 200):
        compiled, plain = np.zeros_like(x), np.zeros_like(x)
        shift_by(x, compiled, len(x), T=ty, by=by if by < 128 or ty.size > 1 else 100)
        with interpreted():
            shift_by(x, plain, len(x), T=ty, by=by if by < 128 or ty.size > 1 else 100)
        np.testing.assert_array_equal(compiled, plain)


@native
def divide_by(x: ptr[T], out: ptr[T], n: i64, *, T, by) -> void:
    for i in range(n):
        out[i] = (x[i] // by) * 3 + x[i] % by


@pytest.mark.parametrize("ty", INTS, ids=names)
def test_division_by_constants(ty):
    x = values(ty)
    for by in [0, 1, 2, 3, 8, 10, *([-1, -2, -3] if ty.name[0] == "i" else [])]:
        compiled, plain = np.zeros_like(x), np.zeros_like(x)
        divide_by(x, compiled, len(x), T=ty, by=by)
        with interpreted():
            divide_by(x, plain, len(x), T=ty, by=by)
        np.testing.assert_array_equal(compiled, plain)


def test_types_called_from_python_wrap_as_the_machine_does():
    assert u8(300) == 44
    assert i8(200) == -56
    assert i32(2.9) == 2
    assert float(f16(1e6)) == np.inf
    assert vec[i32, 4](7).tolist() == [7] * 4
    assert static(3) == 3
