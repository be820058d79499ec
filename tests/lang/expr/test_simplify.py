"""Simplification keeps values bit for bit; expansion and opmath keep meanings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import antorcha.lang.expr as E
from antorcha.core import dtypes as D
from antorcha.errors import MissingFeature

F, H, DBL, I, L, U8, B = (
    D.float32, D.float16, D.float64, D.int32, D.int64, D.uint8, D.bool_,
)  # fmt: skip

EDGES = [
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.7, -2.5, 1e-40, -1e-300, 1e30, 1e308, math.inf, -math.inf,
    math.nan, 7.0,
]  # fmt: skip
WHOLE = [0, 1, -1, 2, 3, 100, -128, 127, 255, 2**31 - 1, -(2**31)]
NUMBERS = st.sampled_from(
    [0, 1, -1, 2, 3, 0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 4.0, 0.3, math.inf, 1e-45]
)

UNARY = [
    lambda x: -x, abs, lambda x: x.sqrt(), lambda x: x.reciprocal(), lambda x: x.isnan(),
    lambda x: ~(x > 0), lambda x: ~(x == 0), lambda x: x.cast(D.float64),
    lambda x: x.cast(D.float32),
    lambda x: x.cast(D.bool_), lambda x: E.where(x != x, x, x), lambda x: x.exp(),
    lambda x: x.signbit(), lambda x: x.floor() if x.dtype.kind != "b" else x, lambda x: x.square(),
]  # fmt: skip
BINARY = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
    E.minimum, E.maximum, E.fmin, lambda a, b: a == b, lambda a, b: a < b,
    lambda a, b: E.where(a > b, a, b), lambda a, b: E.where(~(a > b), a, b),
    lambda a, b: E.copysign(a, b), lambda a, b: a <= b,
    lambda a, b: E.where(a > b, E.where(a > b, a, 1), b),
]  # fmt: skip
LOGIC = [lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b]


@st.composite
def graphs(draw):
    """A graph of two inputs built of random ops, unsimplified."""
    types = draw(st.sampled_from([(F, F), (DBL, DBL), (F, I), (I, I), (U8, I), (B, F), (L, DBL)]))
    pool = [E.input_(k, t) for k, t in enumerate(types)]
    for _ in range(draw(st.integers(1, 9))):
        a, b = (draw(st.sampled_from(pool)) for _ in range(2))
        other = draw(st.one_of(st.just(b), NUMBERS))
        try:
            if draw(st.booleans()):
                new = draw(st.sampled_from(UNARY))(a)
            elif a.dtype.kind in "bui" and b.dtype.kind in "bui" and draw(st.booleans()):
                bits = other if isinstance(other, E.Expr) else int(min(other, 7))
                new = draw(st.sampled_from(LOGIC))(a, bits)
            else:
                pair = (a, other) if draw(st.booleans()) else (other, a)
                new = draw(st.sampled_from(BINARY))(*pair)
        except E_ERRORS:
            continue
        pool.append(new)
    return types, pool[-1]


E_ERRORS = (RuntimeError,)


def samples(t):
    values = EDGES if t.kind == "f" else WHOLE
    with np.errstate(all="ignore"):
        if t.kind in "bui":
            return np.array(values).astype(t.np)
        return np.array(values, dtype=np.float64).astype(t.np)


def same_bits(a, b):
    """Equal bit for bit; any NaN equals any NaN."""
    assert a.dtype == b.dtype
    if a.dtype.kind == "f":
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        a, b = np.where(np.isnan(a), 0, a), np.where(np.isnan(b), 0, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
    np.testing.assert_array_equal(a, b)


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_simplify_keeps_bits(case):
    types, graph = case
    xs = samples(types[0])[:, None]
    ys = samples(types[1])[None, :]
    simple = E.simplify(graph)
    assert E.simplify(simple) is simple
    shape = (xs.size, ys.size)
    same_bits(*(np.broadcast_to(E.evaluate(g, [xs, ys]), shape) for g in (graph, simple)))


@pytest.mark.parametrize(
    ("fn", "types", "text"),
    [
        (lambda x: x * 1, [F], "x0"),
        (lambda x: x + 0.0, [F], "x0 + 0.0"),
        (lambda x: x + -0.0, [F], "x0"),
        (lambda x: x - 0.0, [F], "x0"),
        (lambda x: x + 0, [I], "x0"),
        (lambda x: x * 0, [F], "x0 * 0.0"),
        (lambda x: x * 0, [I], "0"),
        (lambda x: x / 1, [F], "x0"),
        (lambda x: x / 4, [F], "x0 * 0.25"),
        (lambda x: x / 3, [F], "x0 / 3.0"),
        (lambda x: E.neg(-x), [F], "x0"),
        (lambda x: x * -1, [F], "-x0"),
        (lambda x: x + -x, [F], "x0 - x0"),
        (lambda x: E.where(True, x, 0), [F], "x0"),
        (lambda x: E.where(x > 0, x, x), [F], "x0"),
        (lambda x: E.where(~(x > 0), x, 1), [F], "where(x0 > 0.0, 1.0, x0)"),
        (lambda x: ~~x, [I], "x0"),
        (lambda x: ~(x < 1), [F], "~(x0 < 1.0)"),
        (lambda x: ~(x < 1), [I], "x0 >= 1"),
        (lambda x: ~(x == 1), [F], "x0 != 1.0"),
        (lambda x: x == x, [F], "x0 == x0"),
        (lambda x: x == x, [I], "True"),
        (lambda x: x**2, [F], "x0 * x0"),
        (lambda x: x**3, [I], "x0 * x0 * x0"),
        (lambda x: x**0.5, [F], "sqrt(x0)"),
        (lambda x: x**-0.5, [F], "rsqrt(x0)"),
        (lambda x: x**-1, [F], "reciprocal(x0)"),
        (lambda x: x**1, [F], "x0"),
        (lambda x: x**0, [F], "1.0"),
        (lambda x: x.cast(DBL).cast(F), [H], "cast(x0, float32)"),
        (lambda x: x.cast(F).cast(H), [H], "x0"),
        (lambda x: x.cast(H).cast(F), [F], "cast(cast(x0, float16), float32)"),
        (lambda x: x.cast(L).cast(U8), [I], "cast(x0, uint8)"),
        (lambda x: x.cast(F).cast(L), [I], "cast(cast(x0, float32), int64)"),
        (lambda x: x.cast(DBL).cast(L), [I], "cast(x0, int64)"),
        (lambda x: E.isnan(x), [I], "False"),
        (lambda x: E.real(E.complex(x, 1.0)), [F], "x0"),
        (lambda x: E.exp(E.const(0.0, F)) + x, [F], "1.0 + x0"),
        (lambda x: x * (E.const(2, F) ** 0.5), [F], "x0 * 1.4142135381698608"),
        (lambda x: abs(abs(-x)), [F], "abs(x0)"),
        (lambda x: (x & 0) | (x ^ 0), [I], "x0"),
    ],
)
def test_rules(fn, types, text):
    assert str(E.trace(fn, types)) == text


BASE = {
    "add", "sub", "mul", "div", "truncdiv", "fmod", "eq", "ne", "lt", "le", "gt", "ge", "and", "or",
    "xor", "where", "cast", "exp", "log", "sqrt", "sin", "cos", "atan", "floor", "real", "imag",
    "complex",
}  # fmt: skip
EXPANDED = [
    "neg", "abs", "sign", "floordiv", "mod", "minimum", "maximum", "fmin", "fmax", "exp2", "expm1",
    "log2", "log10", "log1p", "rsqrt", "reciprocal", "sigmoid", "hypot", "tan", "asin", "acos",
    "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "ceil", "trunc", "round", "isnan",
    "isinf", "isfinite", "signbit", "copysign", "fma", "angle", "detach", "sgn",
]  # fmt: skip


@pytest.mark.parametrize("name", EXPANDED)
def test_expand_keeps_meaning(name):
    record = E.OPS[name]
    values = samples(DBL)
    grid = np.meshgrid(*[values] * record.arity, indexing="ij")
    whole = E.trace(lambda *xs: record(*xs), [DBL] * record.arity)
    small = E.expand(whole, BASE)
    assert {e.op for e in E.walk(small)} <= BASE | E.LEAVES
    a, b = E.evaluate(whole, grid), E.evaluate(small, grid)
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_expand_integers():
    x = np.arange(-7, 8)[:, None]
    y = np.array([-3, -2, -1, 1, 2, 3])
    for fn in (
        lambda a, b: a // b,
        lambda a, b: a % b,
        E.fmod,
        lambda a, b: ~a,
        lambda a, b: -abs(a),
    ):
        e = E.trace(fn, [I, I])
        np.testing.assert_array_equal(
            E.evaluate(e, [x, y]), E.evaluate(E.expand(e, BASE - {"fmod"}), [x, y])
        )


def test_expand_says_what_is_missing():
    with pytest.raises(MissingFeature, match=r"'erf' for torch\.float32"):
        E.expand(E.trace(E.erf, [F]), BASE)


def test_opmath_rounds_once():
    e = E.trace(lambda x, y: (x + y) * 0.1 - x, [H, H])
    wide = E.simplify(E.opmath(e))
    text = "cast((t0 + cast(x1, float32)) * 0.10000000149011612 - t0, float16)"
    assert str(wide) == "t0 = cast(x0, float32); " + text
    x, y = np.float16(1.001), np.float16(3e-4)
    exact = (np.float32(x) + np.float32(y)) * np.float32(0.1) - np.float32(x)
    assert E.evaluate(wide, [x, y]) == np.float16(exact)
    kept = E.opmath(E.trace(lambda x: (x * 3).cast(F).cast(H) + 1, [H]))
    assert "cast(cast(" in str(kept)
    assert E.opmath(E.trace(lambda x: E.exp(x), [F])) is E.trace(lambda x: E.exp(x), [F])
