"""What the ops compute, where NumPy alone does not say it with PyTorch's meaning.

Each function takes arrays of the dtype the op computes in and is found by its name from a record in
`functions.py`; a name that is not here is NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.lazy import np

Array = Any  # arrays of any dtype: NumPy's types cannot say what these functions promise


def lookup(name: str) -> Callable[..., Array]:
    """The function that computes an op."""
    found: Callable[..., Array] = globals().get(name) or getattr(np, name)
    return found


def _is_float(x: Array) -> bool:
    return x.dtype.kind not in "biu"


def mod(a: Array, b: Array) -> Array:
    """The remainder with the divisor's sign; a zero keeps the dividend's sign (torch.remainder)."""
    if not _is_float(a):
        return np.remainder(a, b)
    r = np.fmod(a, b)
    return np.where((r != 0) & ((b < 0) != (r < 0)), r + b, r)


def floordiv(a: Array, b: Array) -> Array:
    """Division rounded down, consistent with `mod` (as Python's float `//`)."""
    if not _is_float(a):
        return np.floor_divide(a, b)
    r = np.fmod(a, b)
    q = (a - r) / b
    q = np.where((r != 0) & ((b < 0) != (r < 0)), q - 1, q)
    floor = np.floor(q)
    floor = np.where(q - floor > 0.5, floor + 1, floor)
    return np.where(b == 0, a / b, np.where(q != 0, floor, np.copysign(0, a / b)))


def truncdiv(a: Array, b: Array) -> Array:
    """Division rounded toward zero."""
    if _is_float(a):
        return np.trunc(a / b)
    q = np.floor_divide(a, b)
    return np.where((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)), q + 1, q).astype(a.dtype)


def sign(x: Array) -> Array:
    """-1, 0 or 1; 0 for NaN, as PyTorch."""
    return (x > 0).astype(np.int8) - (x < 0).astype(np.int8)


def sgn(x: Array) -> Array:
    """`sign`, and for a complex number the unit with its direction (0 for 0)."""
    if x.dtype.kind != "c":
        return sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / size)


def power(a: Array, b: Array) -> Array:
    """a ** b; for integers a negative exponent gives 0 unless the base is 1 or -1."""
    if _is_float(a):
        return np.power(a, b)
    if a.dtype.kind == "u":
        return np.power(a, b)
    positive = np.power(a, np.maximum(b, 0))
    unit = np.where(b % 2 == 0, np.ones_like(a), a)
    return np.where(b >= 0, positive, np.where(abs(a) == 1, unit, 0)).astype(positive.dtype)


def shl(a: Array, b: Array) -> Array:
    """Left shift; 0 where the distance is negative or not below the width."""
    bits = 8 * a.dtype.itemsize
    inside = (b >= 0) & (b < bits)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0)


def shr(a: Array, b: Array) -> Array:
    """Right shift with the sign; too far or negative leaves the sign only: 0 or -1."""
    bits = 8 * a.dtype.itemsize
    inside = (b >= 0) & (b < bits)
    return np.where(inside, np.right_shift(a, np.where(inside, b, 0)), np.where(a < 0, -1, 0))


def where(condition: Array, a: Array, b: Array) -> Array:
    """a where the condition holds, else b."""
    return np.where(condition, a, b)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, in float64 for float32, so rounded nearly once; twice for the others."""
    if a.dtype == np.float32:
        return (a.astype(np.float64) * b + c).astype(np.float32)
    return a * b + c


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x)."""
    return 1 / np.sqrt(x)


def exp2(x: Array) -> Array:
    """2 ** x, which NumPy lacks for complex numbers."""
    return np.exp(x * np.log(2)) if x.dtype.kind == "c" else np.exp2(x)


def reciprocal(x: Array) -> Array:
    """1 / x."""
    return 1 / x


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def signbit(x: Array) -> Array:
    """Whether the sign is negative, -0.0 and NaN included."""
    return x < 0 if x.dtype.kind in "bui" else np.signbit(x)


def angle(x: Array) -> Array:
    """The argument of a complex number; 0 or pi for a real one."""
    if x.dtype.kind == "c":
        return np.angle(x)
    return np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0))


def make_complex(re: Array, im: Array) -> Array:
    """re + 1j * im, without arithmetic (infinite parts stay apart)."""
    re, im = np.broadcast_arrays(re, im)
    out = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
    out.real, out.imag = re, im
    return out


def nextafter(a: Array, b: Array) -> Array:
    """The next number of the dtype from a toward b."""
    if a.dtype.name == "bfloat16":
        return _nextafter_bfloat16(a, b)
    return np.where(a == b, b, np.nextafter(a, b))  # NumPy's half keeps the sign of a zero


def _nextafter_bfloat16(a: Array, b: Array) -> Array:
    """The next bfloat16 from a toward b, by its bits."""
    a, b = np.broadcast_arrays(a, b)
    bits = a.view(np.int16).astype(np.int32)
    down = (b < a) == (bits >= 0)  # toward zero lowers the magnitude
    tiny = np.where(np.signbit(b.astype(np.float32)), -0x7FFF, 1)
    moved = np.where(a == 0, tiny, np.where(down, bits - 1, bits + 1)).astype(np.int16)
    out = moved.view(a.dtype)
    return np.where(np.isnan(a) | np.isnan(b), a + b, np.where(a == b, b, out))
