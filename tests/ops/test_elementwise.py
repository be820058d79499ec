"""Element by element ops against PyTorch: every dtype, special values, kinks, in-place, errors."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import DTYPES, compare, data, needs_torch, pair, same

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 20.5, -20.5, 100.0, -100.0,
     1e-30, 1e30, -1e30, math.inf, -math.inf, math.nan]
)  # fmt: skip
UNARY = """neg abs sign sgn square reciprocal positive exp exp2 expm1 log log2 log10 log1p sqrt
rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma
sigmoid deg2rad rad2deg floor ceil trunc round frac sinc logit nan_to_num angle isnan isinf isfinite
isposinf isneginf signbit isreal logical_not bitwise_not relu conj real""".split()
BINARY = """add sub mul div true_divide floor_divide remainder fmod pow atan2 hypot logaddexp
logaddexp2 xlogy ldexp maximum minimum fmax fmin copysign nextafter eq ne lt le gt ge logical_and
logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
rsub""".split()
FLAT = """isnan isinf isfinite isposinf isneginf signbit isreal logical_not bitwise_not sgn eq ne
lt le gt ge logical_and logical_or logical_xor floor_divide nextafter""".split()
DIVIDES = ("floor_divide", "remainder", "fmod", "bitwise_left_shift", "bitwise_right_shift")
LOOSE = {"digamma": 20.0, "lgamma": 20.0, "erfinv": 5.0, "pow": 5.0, "tan": 5.0, "rsqrt": 2.0}


def op(lib: Any, name: str) -> Any:
    """A function by its dotted name; ours that only nn.functional shows come from the records."""
    if lib is antorcha and "." in name:
        from antorcha.ops.kinds.record import NAMESPACES

        space, last = name.rsplit(".", 1)
        return NAMESPACES[space][last]
    found = lib
    for part in name.split("."):
        found = getattr(found, part)
    return found


@needs_torch
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_unary(name: str, dtype: str) -> None:
    x = data(3, 4, dtype=dtype)
    order = 2 if dtype == "float64" else 1 if dtype == "complex128" else 0
    if name in FLAT or (name in ("real", "conj", "nan_to_num") and "complex" in dtype):
        order = 0
    if name == "abs":
        order = min(order, 1)
    if name == "conj":
        compare(lambda lib, t: lib.conj(t).resolve_conj(), x, dtype=dtype)
        return
    compare(lambda lib, t: op(lib, name)(t), x, dtype=dtype, grad=order, scale=LOOSE.get(name, 1.0))
    compare(lambda lib, t: op(lib, name)(t.t()), x, dtype=dtype, strides=True,
            scale=LOOSE.get(name, 1.0))  # fmt: skip
    compare(lambda lib, t: op(lib, name)(t[0, 0]), x, dtype=dtype, scale=LOOSE.get(name, 1.0))
    compare(lambda lib, t: op(lib, name)(t[:0]), x, dtype=dtype)


@needs_torch
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_special_values(name: str, dtype: str) -> None:
    values = SPECIAL
    if dtype in ("float16", "bfloat16"):
        values = values[np.isnan(values) | np.isinf(values) | (abs(values) < 1000)]
    if name in ("sin", "cos", "tan", "digamma", "sinc", "lgamma"):
        values = values[~(abs(values) > 1000) | np.isinf(values)]
    order = 1 if dtype == "float64" and name not in (*FLAT, "digamma") else 0
    scale = LOOSE.get(name, 1.0)
    compare(lambda lib, t: op(lib, name)(t), values, dtype=dtype, grad=order, scale=scale)


@needs_torch
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_binary(name: str, dtype: str) -> None:
    if name == "logaddexp" and "complex" in dtype:
        return
    a, b = data(3, 4, dtype=dtype), data(4, dtype=dtype, seed=5)
    if name in DIVIDES and dtype in ("uint8", "int8", "int64", "bool"):
        b = np.maximum(b, 1)
    order = 2 if dtype == "float64" else 1 if dtype == "complex128" else 0
    order = 0 if name in FLAT else order
    scale = LOOSE.get(name, 1.0)
    compare(lambda lib, s, t: op(lib, name)(s, t), a, b, dtype=dtype, grad=order, scale=scale)
    compare(lambda lib, s, t: op(lib, name)(s.t()[:3], t[:3]), a, b, dtype=dtype, strides=True,
            scale=scale)  # fmt: skip
    compare(lambda lib, s, t: op(lib, name)(s, t[:1]), a, b, dtype=dtype, scale=scale)


@needs_torch
@pytest.mark.parametrize("name", BINARY)
def test_binary_special_values(name: str) -> None:
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    if name == "ldexp":  # of 0 PyTorch makes nan where the power is no float
        b = np.where(np.isfinite(b), b.clip(-1000, 1000), b)
    with np.errstate(all="ignore"):
        compare(lambda lib, s, t: op(lib, name)(s, t), a, b, dtype="float64", scale=10)


@needs_torch
@pytest.mark.parametrize("name", ["add", "mul", "sub", "div", "eq", "lt", "pow", "maximum", "fmod"])
@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_promotion(name: str, first: str, second: str) -> None:
    a, b = data(3, dtype=first), data(3, dtype=second, seed=2)
    b = np.where(b == 0, b + 1, b).astype(b.dtype) if second != "bool" else np.ones(3, bool)

    def call(lib: Any, x: Any, y: Any) -> Any:
        f = op(lib, name)
        if {"float16", "bfloat16"} & {first, second} and "complex" in first + second:
            return x  # complex32
        x, y = x.to(getattr(lib, first)), y.to(getattr(lib, second))
        return f(x, y), f(x[0], y), f(x, y[1]), f(x[0], y[1])

    scale = 1000.0 if "float16" in first + second else 5.0
    compare(call, a, b, scale=scale)


@needs_torch
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "floor_divide", "remainder", "fmod",
                                  "pow", "eq", "lt", "ge", "xlogy", "copysign", "ldexp",
                                  "bitwise_and", "bitwise_left_shift", "rsub"])  # fmt: skip
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [2, 2.5, True, 1.5 + 1j, -1])
def test_numbers(name: str, dtype: str, number: Any) -> None:
    x = data(3, 4, dtype=dtype, low=0.5)
    order = 1 if dtype == "float64" and not isinstance(number, complex) else 0
    if name in FLAT:
        order = 0
    if (number == -1 and dtype == "uint8" and name in ("lt", "ge")) or (
        isinstance(number, complex) and "float16" in dtype
    ):
        return  # PyTorch wraps -1 to 255 and answers wrongly; and it has complex32
    compare(lambda lib, t: op(lib, name)(t, number), x, dtype=dtype, grad=order, scale=5)


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [2, 2.5, True, 0, -1])
def test_number_first(dtype: str, number: Any) -> None:
    x = data(3, 4, dtype=dtype, low=0.5)
    x = np.where(x == 0, x + 1, x).astype(x.dtype) if dtype != "bool" else np.ones((3, 4), bool)
    for call in (lambda t: number + t, lambda t: number - t, lambda t: number * t,
                 lambda t: number / t, lambda t: number**t, lambda t: number // t,
                 lambda t: number % t, lambda t: number == t):  # fmt: skip
        compare(lambda lib, t, call=call: call(t), x, dtype=dtype, scale=5)


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "float16", "bfloat16"])
def test_clamp(dtype: str) -> None:
    x = data(3, 4, dtype=dtype)
    order = 2 if dtype == "float64" else 0
    own = x[0][0].item()
    for limits in ((1, None), (None, 1), (1, 2), (2, 1), (0.5, 1.5), (math.nan, 1), (own, None)):
        compare(lambda lib, t, m=limits: lib.clamp(t, *m), x, dtype=dtype, grad=order)
    low, high = data(4, dtype=dtype, seed=3), data(3, 1, dtype=dtype, seed=4)
    compare(lambda lib, t, a, b: t.clamp(a, b), x, low, high, dtype=dtype, grad=order)
    compare(lambda lib, t, a: t.clamp(min=a), x, low, dtype=dtype, grad=order)
    compare(lambda lib, t, a: t.clamp(max=a), x, low, dtype=dtype, grad=order)
    compare(lambda lib, t, a: lib.clamp_min(t, a), x, low, dtype=dtype, grad=order)
    compare(lambda lib, t: lib.clip(t), x, dtype=dtype)
    compare(lambda lib, t: t.clamp_max(1), x, dtype=dtype, grad=order)


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "float16"])
def test_lerp_and_fused(dtype: str) -> None:
    a, b, c = data(3, 4, dtype=dtype), data(4, dtype=dtype, seed=2), data(3, 1, dtype=dtype, seed=3)
    order = 2 if dtype == "float64" else 1 if dtype == "complex128" else 0
    for w in (0.3, 0.7, 2.0):
        compare(lambda lib, x, y, w=w: lib.lerp(x, y, w), a, b, dtype=dtype, grad=order)
    compare(lambda lib, x, y, z: lib.lerp(x, y, z), a, b, c, dtype=dtype, grad=order)
    compare(lambda lib, x, y, z: lib.addcmul(x, y, z), a, b, c, dtype=dtype, grad=order)
    compare(lambda lib, x, y, z: lib.addcmul(x, y, z, value=2), a, b, c, dtype=dtype, grad=order)
    c = np.where(abs(c) < 0.5, 1, c).astype(c.dtype)
    compare(lambda lib, x, y, z: lib.addcdiv(x, y, z, value=2), a, b, c, dtype=dtype, grad=order,
            scale=4)  # fmt: skip
    compare(lambda lib, x, y: lib.add(x, y, alpha=3), a, b, dtype=dtype, grad=order)
    compare(lambda lib, x, y: lib.sub(x, y, alpha=3), a, b, dtype=dtype, grad=order)


@needs_torch
def test_decimals_float_power_polygamma_heaviside() -> None:
    x = data(3, 4, dtype="float64", low=0.5)
    for n in (1, 2, -1):
        compare(lambda lib, t, n=n: lib.round(t * 7, decimals=n), x)
    compare(lambda lib, t: lib.float_power(t, 2), x.astype("float32"))
    compare(lambda lib, t: lib.float_power(t, t), x, grad=2, scale=10)
    compare(lambda lib, t: lib.float_power(2, t), x)
    for n in (0, 1, 2):
        compare(lambda lib, t, n=n: lib.polygamma(n, t), x, grad=1, scale=100)
        compare(lambda lib, t, n=n: t.polygamma(n), x, scale=100)
    y = np.array([-1.0, 0.0, 2.0, math.nan])
    compare(lambda lib, t, v: lib.heaviside(t, v), y, np.full(4, 0.5))
    compare(lambda lib, t: lib.nan_to_num(t, nan=7.0, posinf=1.0), SPECIAL, grad=1)
    compare(lambda lib, t: lib.logit(t, eps=0.2), np.linspace(0, 1, 11), grad=2, scale=5)
    for name in ("special.xlog1py", "special.xlogy"):
        compare(lambda lib, s, t, f=name: op(lib, f)(s, t), data(3, 4), data(3, 4, low=0, seed=2))
    compare(lambda lib, t: op(lib, "special.entr")(t), data(3, 4, dtype="float64", low=0), grad=2)


@needs_torch
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32"])
@pytest.mark.parametrize("other", ["bool", "int64", "float32", "float64", "complex64"])
def test_in_place(dtype: str, other: str) -> None:
    """The result must fit the first operand; it is written there, strides and all."""
    a, b = data(3, 4, dtype=dtype), data(4, dtype=other, seed=3)
    for name in ("add_", "mul_", "div_", "eq_", "pow_", "logical_and_", "copysign_", "lt_"):

        def call(lib: Any, x: Any, y: Any, name: str = name) -> Any:
            result = getattr(x, name)(y)
            assert result is x
            return x

        compare(call, a, b, scale=1000 if dtype == "float16" else 1)
    for name in ("exp_", "floor_", "neg_", "sqrt_", "sigmoid_", "relu_", "square_", "abs_"):
        compare(lambda lib, x, name=name: getattr(x, name)(), a, scale=10)


@needs_torch
def test_in_place_gradients() -> None:
    a, b = data(3, 4, dtype="float64", low=0.5), data(4, dtype="float64", seed=3, low=0.5)
    for name in ("add_", "mul_", "div_", "sub_", "pow_", "atan2_", "fmod_"):
        compare(lambda lib, x, y, n=name: getattr(x.clone(), n)(y), a, b, grad=2)
    for name in ("exp_", "tanh_", "sigmoid_", "sqrt_", "abs_", "relu_", "neg_", "sin_"):
        order = 1 if name in ("abs_", "relu_", "neg_") else 2
        compare(lambda lib, x, n=name: getattr(x * 2, n)(), a, grad=order)


@needs_torch
def test_where() -> None:
    c = data(3, 4, dtype="bool")
    a, b = data(3, 4, dtype="float64"), data(4, dtype="float64", seed=2)
    compare(lambda lib, x, y: lib.where(lib.tensor(c), x, y), a, b, grad=2)
    compare(lambda lib, x: lib.where(lib.tensor(c), x, 2.0), a, grad=1)
    compare(lambda lib, x: lib.where(lib.tensor(c), 1, x), a, grad=1)
    compare(lambda lib, x: x.where(lib.tensor(c), 0), a, grad=1)
    compare(lambda lib, m: lib.where(m, 1, 2), c)
    compare(lambda lib, m: lib.where(m, 1.0, 2), c)
    compare(lambda lib, m: lib.where(m, True, False), c)
    compare(lambda lib, x: lib.where(x, x, x), a)
    compare(lambda lib, x, y: lib.where(x > 0, x, y), a, b.astype("float32"))
    compare(lambda lib, x, y: lib.where(x > 0, x, y[0]), a.astype("float32"), b)
    compare(lambda lib, x, y: lib.where(y > 0, x, y), data(4, dtype="int64"), b)
    compare(lambda lib, m: lib.where(m), c)


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_fill(dtype: str) -> None:
    m = data(3, 4, dtype="bool")
    x = data(3, 4, dtype=dtype)
    order = 1 if dtype == "float64" else 0
    for value in (2, 2.5, True):
        compare(lambda lib, t, v=value: t.masked_fill(lib.tensor(m), v), x, dtype=dtype, grad=order)
        compare(lambda lib, t, v=value: t.masked_fill_(lib.tensor(m[0]), v), x, dtype=dtype)
    compare(lambda lib, t: t.masked_fill(lib.tensor(m), lib.tensor(3.25)), x, dtype=dtype)
    compare(lambda lib, t: t.masked_fill(lib.tensor(m), lib.tensor([3.25])), x, dtype=dtype)
    compare(lambda lib, t: t.masked_fill(lib.tensor(m).long(), 1), x, dtype=dtype)


@needs_torch
def test_closeness() -> None:
    a = np.array([1.0, 1.0 + 1e-6, math.nan, math.inf, -math.inf, 0.0, 1e-9])
    b = np.array([1.0, 1.0, math.nan, math.inf, math.inf, 1e-9, 0.0])
    compare(lambda lib, x, y: lib.isclose(x, y), a, b)
    compare(lambda lib, x, y: lib.isclose(x, y, equal_nan=True), a, b)
    compare(lambda lib, x, y: lib.isclose(x, y, rtol=0, atol=0), a, b)
    compare(lambda lib, x, y: lib.allclose(x, y), a, b)
    compare(lambda lib, x, y: lib.allclose(x, x.clone(), equal_nan=True), a, b)
    compare(lambda lib, x, y: lib.equal(x, y), a, b)
    compare(lambda lib, x, y: lib.equal(y, y.clone()), a, b)
    compare(lambda lib, x, y: lib.isclose(x, y.float()), a, b)
    compare(lambda lib, x: lib.isclose(x, x + 1), data(4, dtype="int64"))
    compare(lambda lib, x: lib.isclose(x, x, rtol=-1.0), a)


@needs_torch
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_parts(dtype: str) -> None:
    z = data(3, 4, dtype=dtype)
    order = 1 if dtype == "complex128" else 0
    compare(lambda lib, t: lib.view_as_real(t), z, strides=True, grad=order)
    compare(lambda lib, t: lib.real(t), z, strides=True, grad=order)
    compare(lambda lib, t: lib.imag(t), z, strides=True, grad=order)
    compare(lambda lib, t: lib.imag(t.t()[1:]), z, strides=True)
    compare(lambda lib, t: lib.conj(t) * t, z, grad=order)
    compare(lambda lib, t: lib.angle(t), z, grad=order)
    compare(lambda lib, t: abs(t), z, grad=order)
    real = data(3, 2, dtype="float64")
    compare(lambda lib, t: lib.view_as_complex(t), real, grad=1)
    other = data(3, 2, dtype="float64", seed=4)
    compare(lambda lib, a, b: lib.complex(a, b), real, other, grad=1)
    compare(lambda lib, a, b: lib.polar(a, b), abs(real), other, grad=1)
    compare(lambda lib, a: lib.complex(a, a.float()), real)
    compare(lambda lib, a: lib.imag(a), real)


@needs_torch
def test_parts_share_memory() -> None:
    ours, theirs = pair(data(3, dtype="complex64"))
    for lib, z in ((antorcha, ours), (__import__("torch"), theirs)):
        lib.real(z)[1] = 5.0
        lib.view_as_real(z)[2, 1] = 7.0
    same(ours, theirs)


def test_errors() -> None:
    i, b = antorcha.tensor([1, 2]), antorcha.tensor([True, False])
    for call, kind in (
        (lambda: i // 0, RuntimeError), (lambda: i % 0, RuntimeError),
        (lambda: antorcha.fmod(i, 0), RuntimeError), (lambda: i**-1, RuntimeError),
        (lambda: i.add_(1.5), RuntimeError), (lambda: b - b, RuntimeError),
        (lambda: -b, RuntimeError), (lambda: b.floor(), NotImplementedError),
        (lambda: antorcha.maximum(i, 2), TypeError), (lambda: antorcha.exp(2), TypeError),
        (lambda: i & 1.5, NotImplementedError), (lambda: i.clamp(), RuntimeError),
        (lambda: antorcha.div(i, 2, rounding_mode="up"), RuntimeError),
    ):  # fmt: skip
        with pytest.raises(kind):
            call()


@pytest.mark.parametrize("name", ["exp", "log1p", "sin", "tanh", "sqrt", "floor", "abs", "sign"])
def test_numpy_agrees(name: str) -> None:
    x = data(3, 4, low=0.1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            getattr(antorcha, name)(antorcha.tensor(x)).numpy(), getattr(np, name)(x), rtol=1e-5
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_copysign_of_every_layout(dtype: str) -> None:
    """A sign that is a float64, or a number, beside a narrower magnitude."""
    x = antorcha.ones(40, dtype=getattr(antorcha, dtype))
    for size in (x, x[::2], x[1:5], x[0]):
        assert antorcha.copysign(size, -2.0).eq(-1).all()
        assert antorcha.copysign(size, 2).eq(1).all()
        assert antorcha.copysign(size, antorcha.tensor(-0.0, dtype=antorcha.float64)).eq(-1).all()


@needs_torch
@pytest.mark.parametrize("seed", range(4))
def test_strides_of_results_of_operands_that_broadcast(seed: int) -> None:
    """Operands of which none has the whole shape, and sizes of 1 with any strides."""
    import torch

    pick = random.Random(seed)
    calls = {
        1: lambda lib, a: a.exp(),
        2: lambda lib, a, b: a + b,
        3: lambda lib, a, b, c: lib.where(a > 0, b, c),
    }
    for _ in range(300):
        shape = [pick.choice([1, 2, 3]) for _ in range(pick.randint(1, 4))]
        pairs = []
        for _ in range(pick.choice([1, 2, 2, 3])):
            own = [n if pick.random() < 0.6 else 1 for n in shape]
            own = own[pick.randint(0, len(own) - 1) :] if pick.random() < 0.3 else own
            order = pick.sample(range(len(own)), len(own))
            laid = [own[d] for d in order]
            back = [order.index(d) for d in range(len(own))]
            pairs.append([lib.ones(laid).permute(back) for lib in (antorcha, torch)])
        ours, theirs = [
            calls[len(pairs)](lib, *each)
            for lib, each in zip((antorcha, torch), zip(*pairs, strict=True), strict=True)
        ]
        where = [t.stride() for _, t in pairs]
        for mine, other, n in zip(ours.stride(), theirs.stride(), shape, strict=False):
            assert mine == other or n == 1, (where, ours.stride(), theirs.stride())


def test_complex_numbers_have_no_abs_in_place() -> None:
    z = antorcha.tensor([3 + 4j])
    for call in (z.abs_, z.absolute_, lambda: antorcha.abs_(z)):
        with pytest.raises(RuntimeError, match="In-place abs is not supported"):
            call()
    assert z.tolist() == [3 + 4j]
    assert z.abs().tolist() == [5.0]
    assert antorcha.tensor([-2.0]).abs_().tolist() == [2.0]


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64"])
def test_rows_that_are_no_whole_vectors(dtype: str) -> None:
    """Rows with gaps in memory: what is between them stays, and each element is computed once."""
    for n in [*range(1, 20), 31, 32, 33, 47, 63, 64, 65, 100, 127, 128, 130, 200, 257]:
        wide = np.arange(5 * (n + 3)).reshape(5, n + 3).astype(dtype) % 50
        one, two = wide[:, 2 : n + 2], wide[::-1, :n] + np.ones((), dtype)
        x, y = antorcha.tensor(wide)[:, 2 : n + 2], antorcha.tensor(np.ascontiguousarray(two))
        written = antorcha.full((5, n + 3), 7, dtype=x.dtype)
        rows = written[:, 1 : n + 1]
        np.testing.assert_array_equal(rows.copy_(x).numpy(), one)
        np.testing.assert_array_equal(rows.add_(y).numpy(), one + two)
        np.testing.assert_array_equal(rows.add_(rows).numpy(), 2 * (one + two))
        np.testing.assert_array_equal(antorcha.sub(x, y, out=rows).numpy(), one - two)
        np.testing.assert_array_equal((x + y).numpy(), one + two)
        left = np.concatenate([written.numpy()[:, :1], written.numpy()[:, n + 1 :]], 1)
        assert (left == 7).all()


def test_every_second_element() -> None:
    """Of memory that ends with the last one of them; longer and shorter than vectors."""
    wrong = []
    draw = np.random.default_rng(0)
    for dtype in ("uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64"):
        for n in (1, 2, 3, 8, 15, 16, 17, 63, 64, 65, 129, 300):
            array = (draw.random((3, 2 * n - 1)) * 100).astype(dtype)
            x, wanted = antorcha.from_numpy(array)[:, ::2], array[:, ::2]
            checks = {
                "add": np.array_equal((x + x).numpy(), wanted + wanted),
                "clone": np.array_equal(x.contiguous().numpy(), wanted),
                "sum": np.allclose(x.sum(1).numpy(), wanted.sum(1), 2e-3),
                "cumsum": np.allclose(x.cumsum(0).numpy(), wanted.cumsum(0), 2e-3),
            }
            wrong += [(name, dtype, n) for name, ok in checks.items() if not ok]
    assert not wrong
