"""What the tests of the math functions share: a kernel around each, references, errors in ulp.

Run as a program it prints one hash of every function's results, for the target that the
environment asks for.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from antorcha.devices.math import FUNCTIONS
from antorcha.lang.expr import OPS
from antorcha.lang.expr.op import EXACT, Accuracy
from antorcha.lang.native import f32, f64, i64, native, ptr, vload, vstore

Array = np.ndarray[Any, Any]
UNARY = [name for name in FUNCTIONS if OPS[name].arity == 1]
BINARY = [name for name in FUNCTIONS if OPS[name].arity == 2]


@native
def unary(n: i64, out: ptr[T], x: ptr[T], *, T, fn, L) -> None:  # noqa: F821
    for i in range(0, n, L):
        vstore(out + i, fn(vload(x + i, L)))


@native
def binary(n: i64, out: ptr[T], x: ptr[T], y: ptr[T], *, T, fn, L) -> None:  # noqa: F821
    for i in range(0, n, L):
        vstore(out + i, fn(vload(x + i, L), vload(y + i, L)))


@native
def one_by_one(n: i64, out: ptr[T], x: ptr[T], *, T, fn) -> None:  # noqa: F821
    for i in range(n):
        out[i] = fn(x[i])


def run(name: str, *inputs: Array) -> Array:
    """The function on vectors of 64 bytes."""
    single = inputs[0].dtype == np.float32
    lanes, n = 16 if single else 8, len(inputs[0])
    padded = [np.concatenate([x, np.ones(-n % lanes, x.dtype)]) for x in inputs]
    out = np.empty_like(padded[0])
    kernel = unary if len(inputs) == 1 else binary
    addresses = [a.ctypes.data for a in (out, *padded)]
    kernel(len(out), *addresses, T=f32 if single else f64, fn=FUNCTIONS[name], L=lanes)
    return out[:n]


def run_scalar(name: str, x: Array) -> Array:
    out = np.empty_like(x)
    T = f32 if x.dtype == np.float32 else f64
    one_by_one(len(x), out.ctypes.data, x.ctypes.data, T=T, fn=FUNCTIONS[name])
    return out


def accuracy(name: str) -> Accuracy:
    """What the function's record asks for."""
    found = OPS[name].accuracy
    assert found is not None
    return found


def measured(names: list[str]) -> list[str]:
    """Those that are near to the exact value, rather than NumPy's bit for bit."""
    return [name for name in names if accuracy(name) is not EXACT]


def reference(name: str, *inputs: Array) -> Array:
    """The same in float64."""
    with np.errstate(all="ignore"):
        return OPS[name].on_arrays(*(x.astype(np.float64) for x in inputs))  # type: ignore[no-any-return]


def float32_errors(got: Array, exact: Array) -> Array:
    """Distances in float32 ulp of the float64 reference; inf where NaN, infinity or sign differ."""
    with np.errstate(all="ignore"):
        size = np.minimum(np.abs(exact), 2.0**128)
        ulp = np.ldexp(1.0, np.clip(np.frexp(size)[1] - 1, -126, 127) - 23)
        # An overflowed result counts as 2**128, so that rounding at the border is no error.
        value = np.clip(got.astype(np.float64), -(2.0**128), 2.0**128)
        errors = np.abs(value - np.clip(exact, -(2.0**128), 2.0**128)) / ulp
        sign = np.signbit(got) != np.signbit(exact)
        wrong = (np.isnan(got) != np.isnan(exact)) | (sign & ~np.isnan(exact))
    return np.where(wrong, np.inf, np.where(np.isnan(exact), 0.0, errors))


def special_floats(dtype: type) -> Array:
    """Both signs of the numbers where formats and functions have their borders."""
    info = np.finfo(dtype)
    tiny, least = float(info.tiny), float(info.smallest_subnormal)
    numbers = [
        0.0, least, 3 * least, tiny - least, tiny, tiny + least, float(info.eps), 1e-5, 0.25, 0.5,
        1 - float(info.epsneg), 1.0, 1 + float(info.eps), 1.5, 2.0, 2.5, 3.0, 7.0, 88.5, 100.0,
        104.0, 127.5, 150.0, 709.5, 745.5, 1025.0, 1e5, 2.0**24 + 2, 2.0**53, 1e30,
        float(info.max), np.inf, np.nan,
    ]  # fmt: skip
    values = np.array(numbers, dtype)
    return np.concatenate([values, -values])


def stratified(count: int, dtype: type, seed: int = 0) -> Array:
    """Every exponent alike, and more where the functions bend."""
    random = np.random.default_rng(seed)
    bits = np.uint32 if dtype == np.float32 else np.uint64
    anything = random.integers(0, np.iinfo(bits).max, count, dtype=bits).view(dtype)
    parts = [random.uniform(-a, a, count // 2).astype(dtype) for a in (2, 12, 110)]
    return np.concatenate([special_floats(dtype), anything, *parts])


def pairs(name: str, count: int, dtype: type, seed: int = 0) -> tuple[Array, Array]:
    """Arguments for a function of two."""
    random = np.random.default_rng(seed)
    if "polynomial" in name:
        x, degree = random.standard_normal(count) * 2, random.integers(0, 13, count)
        return x.astype(dtype), degree.astype(dtype)
    if name == "zeta":
        x, q = 1 + np.exp(random.uniform(-5, 5, (2, count)))
        q[::4], x[1::4] = q[::4] / 8, np.ceil(x[1::4])
        q[1::4] = (2 * np.ceil(q[1::4]) + 1) / 8 - 4  # below 0, too, where x is an integer
        return x.astype(dtype), q.astype(dtype)
    if name == "polygamma_by_order":
        n, x = random.integers(1, 12, count), np.exp(random.uniform(-2, 3, count))
        x[::5] = (2 * np.ceil(x[::5]) + 1) / 8 - 4
        return n.astype(dtype), x.astype(dtype)
    if "gamma" in name:
        a = np.exp(random.uniform(-6, 7, count))
        x = np.abs(a + random.uniform(-6, 6, count) * np.sqrt(a))
        return a.astype(dtype), x.astype(dtype)
    grid = np.meshgrid(special_floats(dtype), special_floats(dtype))
    top = 80.0 if dtype == np.float32 else 650.0
    wide = np.exp(random.uniform(-top, top, (2, count)))
    near = random.standard_normal((2, count)) * 3
    if name == "pow":
        near = np.stack([np.exp(random.uniform(-5, 5, count)), random.uniform(-18, 18, count)])
        wide[1] = random.integers(-4, 5, count)
        if dtype == np.float32:
            wide[0] = wide[0] ** 0.5
    wide = wide * random.choice([-1.0, 1.0], (2, count))
    columns = [
        np.concatenate([grid[k].ravel(), wide[k].astype(dtype), near[k].astype(dtype)])
        for k in range(2)
    ]
    return columns[0], columns[1]


def worst_of_all(name: str, half: bool = False) -> tuple[float, float]:
    """The largest error over all float32 (half: without the negative ones), and where it is.

    Only results that differ from the rounded reference are looked at: the others are within 0.5.
    """
    block = 1 << 17  # what the cache holds
    base = np.arange(block, dtype=np.uint32)
    worst, place = 0.5, 0.0
    for start in range(0, 1 << (31 if half else 32), block):
        x = (base + np.uint32(start)).view(np.float32)
        got, exact = run(name, x), reference(name, x)
        with np.errstate(all="ignore"):
            rounded = exact.astype(np.float32)
        at = np.flatnonzero(got.view(np.uint32) != rounded.view(np.uint32))
        if len(at):
            errors = float32_errors(got[at], exact[at])
            k = int(np.argmax(errors))
            if errors[k] > worst:
                worst, place = float(errors[k]), float(x[at[k]])
    return worst, place


def digest() -> str:
    """A hash of all results; NaNs count as one."""
    total = hashlib.blake2b(digest_size=16)
    for dtype in (np.float32, np.float64):
        for name in FUNCTIONS:
            inputs = (stratified(4000, dtype),)
            if name in ("lgamma", "digamma"):  # with the roots, which have branches of their own
                roots = [-2.4570247382208006, -3.9552942848585979, -0.5040830082644554, -34.7699835]
                inputs = (np.concatenate([inputs[0], np.array(roots * 4, dtype)]),)
            if name in BINARY:
                inputs = pairs(name, 4000, dtype)  # type: ignore[assignment]
            result = run(name, *inputs)
            total.update(np.where(np.isnan(result), dtype(np.nan), result).tobytes())
    return total.hexdigest()


if __name__ == "__main__":
    print(digest())
