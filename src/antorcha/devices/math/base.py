"""What every function of this package is built from: type queries, polynomials, exact sums.

The functions are written once for float32 and float64, scalars and vectors: the type comes from the
argument, and `pick(x, single, double)` chooses constants while compiling. A number known to more
than working precision is a pair (high, low) with |low| <= ulp(high) / 2.

Comparisons with NaN are false, and `select` then takes its last value: the order of operands in
`lesser` and `greater` matters, the last one passes NaN on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from antorcha.lang.native import (
    bitcast,
    f32,
    f64,
    fma,
    i32,
    i64,
    inline,
    intrinsic,
    reduce_any,
    select,
    shuffle,
    static,
    u32,
    u64,
    vec,
)

INF = float("inf")
NAN = float("nan")


# The plain-Python side: a value is a numpy scalar, or an array for a vector.
_OF_NUMPY = {np.dtype(t.np): t for t in (f32, f64, i32, i64, u32, u64)}


def _np_shaped(x: Any, scalar: Any) -> Any:
    return vec[scalar, len(x)] if np.ndim(x) else scalar


def _np_kind(x: Any) -> Any:
    return _np_shaped(x, _OF_NUMPY[np.asarray(x).dtype])


def _np_ints(x: Any) -> Any:
    return _np_shaped(x, i32 if np.asarray(x).itemsize == 4 else i64)


def _np_words(x: Any) -> Any:
    return _np_shaped(x, u32 if np.asarray(x).itemsize == 4 else u64)


@intrinsic(_np_kind)
def kind(g: Any, node: Any, x: Any) -> Any:
    """The type of a run-time value."""
    return x.ty


@intrinsic(lambda x, single, double: single if np.asarray(x).dtype == np.float32 else double)
def pick(g: Any, node: Any, x: Any, single: Any, double: Any) -> Any:
    """The compile-time value for x's precision."""
    return single if x.ty.scalar is f32 else double


@intrinsic(_np_ints)
def ints(g: Any, node: Any, x: Any) -> Any:
    """The signed integer type of x's shape and width."""
    return x.ty.with_scalar(i32 if x.ty.scalar.size == 4 else i64)


@intrinsic(_np_words)
def words(g: Any, node: Any, x: Any) -> Any:
    """The unsigned integer type of x's shape and width."""
    return x.ty.with_scalar(u32 if x.ty.scalar.size == 4 else u64)


@intrinsic(_np_shaped)
def shaped(g: Any, node: Any, x: Any, scalar: Any) -> Any:
    """The type with this scalar and x's shape."""
    return x.ty.with_scalar(scalar)


@intrinsic(np.any)
def any_lane(g: Any, node: Any, mask: Any) -> Any:
    """Whether the condition holds in any lane; of a scalar, the condition itself."""
    return g.call(reduce_any, [mask], {}, node) if mask.ty.kind == "v" else mask


@intrinsic(lambda x: False)
def scales(g: Any, node: Any, x: Any) -> Any:
    """Compile-time: whether `scaled` is there for x's type."""
    whole = x.ty.kind == "v" and x.ty.size in (32, 64, 128, 256)
    return whole and g.target.arch == "x86_64" and g.target.has("avx512vl")


@intrinsic(None)
def scaled(g: Any, node: Any, x: Any, n: Any) -> Any:
    """x * 2**n for integral n, rounded once, whatever n is: one instruction where `scales(x)`."""
    ty = x.ty
    if ty.size > 64:
        half = ty.n // 2
        parts = [
            scaled.emit(g, node, *[shuffle.emit(g, node, v, None, part) for v in (x, n)])
            for part in (range(half), range(half, ty.n))
        ]
        return shuffle.emit(g, node, *parts, range(ty.n))
    form = f"{'ps' if ty.elem is f32 else 'pd'}.{8 * ty.size}"
    rounding = ["i32 4"] if ty.size == 64 else []  # as the CPU is set, to the nearest
    whole = [x, n, x, f"i{max(ty.n, 8)} -1", *rounding]
    return g.intr(f"llvm.x86.avx512.mask.scalef.{form}", ty, whole)


class Format(NamedTuple):
    """A binary floating-point format, as integers of its width see it."""

    bits: int
    fraction: int  # bits of the stored significand
    bias: int
    magic: float  # 1.5 * 2**fraction: adding it rounds to an integer, held in the low bits
    scale: int  # exponents are moved by this much where a result may be outside the range
    up: float  # 2**scale
    down: float  # 2**-scale
    tiny: float  # the smallest normal number
    widen: float  # 2**(fraction + 1): brings denormal numbers into the normal range
    two_thirds: int  # the bits of 2/3
    one: int  # the bits of 1.0


SINGLE = Format(
    32, 23, 127, 12582912.0, 64, 2.0**64, 2.0**-64, 2.0**-126, 2.0**24, 0x3F2AAAAB, 0x3F800000
)
DOUBLE = Format(
    64, 52, 1023, 6755399441055744.0, 512, 2.0**512, 2.0**-512, 2.0**-1022, 2.0**53,
    0x3FE5555555555555, 0x3FF0000000000000,
)  # fmt: skip


@inline
def horner(x, c):
    """The polynomial with coefficients c (lowest first), one multiplication after the other."""
    r = fma(x, kind(x)(c[-1]), c[-2])
    for k in static(range(len(c) - 3, -1, -1)):
        r = fma(x, r, c[k])
    return r


@inline
def polynomial(x, c):
    """The same; of long ones, all but the first terms as interleaved halves: half the latency.

    The first terms are the large ones, and there the halves would round twice.
    """
    if len(c) < 10:
        return horner(x, c)
    square = x * x
    head = static(2 if len(c) < 14 else 4)
    r = fma(x, horner(square, c[head + 1 :: 2]), horner(square, c[head::2]))
    for k in static(range(head - 1, -1, -1)):
        r = fma(x, r, c[k])
    return r


@inline
def lesser(a, b):
    """The lesser; b where either is NaN."""
    return select(a < b, a, b)


@inline
def greater(a, b):
    """The greater; b where either is NaN."""
    return select(a > b, a, b)


@inline
def quick_sum(a, b):
    """a + b as a pair, exact when |a| >= |b| or a is a multiple of ulp(b) (T. Dekker)."""
    high = a + b
    return high, b - (high - a)


@inline
def exact_sum(a, b):
    """a + b as a pair, exact (D. Knuth)."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


@inline
def exact_product(a, b):
    """a * b as a pair, exact."""
    high = a * b
    return high, fma(a, b, -high)


@inline
def pair_over_pair(a, a_low, b, b_low):
    """(a + a_low) / (b + b_low) as a pair."""
    inverse = 1.0 / b
    q = a * inverse
    rest = fma(-q, b, a)
    return quick_sum(q, (rest + fma(-q, b_low, a_low)) * inverse)


@inline
def power_of_two(n, x):
    """2**n for an integer vector n inside the range of normal numbers of x's type."""
    f = pick(x, SINGLE, DOUBLE)
    return bitcast(kind(x), (n + f.bias) << f.fraction)
