"""The math functions against NumPy, SciPy and mpmath, in units in the last place of the result."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antorcha.devices.cpu.math import FUNCTIONS
from antorcha.lang.native import interpreted
from tests.devices.cpu import math_kernels as K

# Largest error allowed: float32, float64. At most 1 was asked of the first group.
BOUNDS = {
    "exp": (0.95, 0.95), "exp2": (0.95, 0.95), "expm1": (1.0, 0.9), "log": (0.95, 0.9),
    "log2": (0.75, 0.6), "log10": (0.75, 0.6), "log1p": (1.0, 0.9), "sin": (0.95, 0.9),
    "cos": (0.95, 0.9), "tan": (0.95, 0.9), "asin": (0.8, 0.75), "acos": (0.8, 0.75),
    "atan": (1.0, 1.0), "tanh": (0.95, 0.95), "sigmoid": (0.99, 0.9), "erf": (0.95, 0.95),
    "sqrt": (0.5, 0.5),
    "sinh": (0.9, 0.8), "cosh": (0.95, 0.85), "asinh": (0.85, 0.7), "acosh": (1.0, 0.85),
    "atanh": (0.8, 0.7), "atan2": (1.05, 1.0), "hypot": (0.8, 0.6), "pow": (0.51, 0.75),
    "erfc": (0.51, 3.0), "erfinv": (0.51, 2.0), "lgamma": (0.51, 3.0), "digamma": (0.51, 4.0),
    "rsqrt": (0.51, 0.51), "reciprocal": (0.5, 0.5),
}  # fmt: skip
UNARY = [name for name in BOUNDS if name not in K.BINARY]
REST = [*UNARY, "floor", "ceil", "trunc", "round"]
HALF = ("erf", "tanh", "sin", "cos", "tan", "atan", "asin", "sinh", "cosh", "asinh", "erfinv")


def test_table_is_whole() -> None:
    assert set(FUNCTIONS) == {*REST, *K.BINARY, "copysign"}


@pytest.mark.parametrize("name", UNARY)
def test_float32(name: str) -> None:
    x = K.stratified(1 << 20, np.float32)
    if name in ("lgamma", "digamma"):  # SciPy's own errors show beside the poles
        x = np.concatenate([np.abs(x), K.special_floats(np.float32)[:30]])
    errors = K.float32_errors(K.run(name, x), K.reference(name, x))
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[name][0], (name, x[worst])


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_float32_of_two(name: str) -> None:
    x, y = K.pairs(name, 1 << 19, np.float32)
    errors = K.float32_errors(K.run(name, x, y), K.reference(name, x, y))
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[name][0], (name, x[worst], y[worst])


# Where float64 is tested: uniform over this, and by magnitude.
DOMAIN = {
    "exp": (-745, 709), "exp2": (-1074, 1023), "expm1": (-40, 709), "sigmoid": (-745, 40),
    "tanh": (-20, 20), "sinh": (-710, 710), "cosh": (-710, 710), "asin": (-1, 1), "acos": (-1, 1),
    "atanh": (-1, 1), "erf": (-6, 6), "erfc": (-6, 26.5), "erfinv": (-1, 1), "log1p": (-0.999, 9),
    "acosh": (1, 9), "log": (0, 3), "log2": (0, 3), "log10": (0, 3), "rsqrt": (0, 3),
    "sqrt": (0, 3), "lgamma": (0, 30), "digamma": (0, 30),
}  # fmt: skip


def _mp_functions() -> dict[str, Any]:
    import mpmath as mp

    return {
        "exp2": lambda x: mp.power(2, x), "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "log2": lambda x: mp.log(x, 2), "log10": lambda x: mp.log(x, 10),
        "lgamma": lambda x: mp.re(mp.loggamma(x)), "digamma": lambda x: mp.psi(0, x),
        "rsqrt": lambda x: 1 / mp.sqrt(x), "reciprocal": lambda x: 1 / x, "pow": mp.power,
    }  # fmt: skip


def worst_float64(name: str, *inputs: K.Array) -> tuple[float, Any]:
    mp = pytest.importorskip("mpmath")
    function = _mp_functions().get(name) or getattr(mp, name)
    worst, place = 0.0, None
    with mp.workprec(220):
        for result, *point in zip(K.run(name, *inputs), *inputs):
            exact = function(*(mp.mpf(float(v)) for v in point))
            if not mp.isfinite(exact) or abs(exact) >= mp.mpf(2) ** 1024:
                assert not np.isfinite(result), (name, point)
                continue
            exponent = mp.frexp(exact)[1] - 53 if exact else -1074
            error = float(abs(mp.mpf(float(result)) - exact) / mp.mpf(2) ** max(exponent, -1074))
            if error > worst:
                worst, place = error, point
    return worst, place


@pytest.mark.parametrize("name", UNARY)
def test_float64(name: str) -> None:
    low, high = DOMAIN.get(name, (-30, 30))
    random = np.random.default_rng(7)
    scale = np.exp(random.uniform(-40, np.log(abs(high)), 500))
    near = random.uniform(max(low, -1.6), min(high, 1.6), 500)
    x = np.concatenate([random.uniform(low, high, 700), near, scale, -scale, 1 + near * scale])
    x = x[(x > low) & (x < high)] if name in DOMAIN else x
    worst, place = worst_float64(name, x)
    assert worst <= BOUNDS[name][1], (name, worst, place)


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_float64_of_two(name: str) -> None:
    x, y = K.pairs(name, 700, np.float64)
    finite = np.isfinite(x) & np.isfinite(y) & (x != 0)  # mpmath has no -0.0
    x, y = x[finite], y[finite]
    if name == "pow":
        x = np.abs(x)
    worst, place = worst_float64(name, x, y)
    assert worst <= BOUNDS[name][1], (name, worst, place)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles(name: str) -> None:
    """Through all exponents, and the float64 nearest to a multiple of pi/2 (J.-M. Muller)."""
    random = np.random.default_rng(5)
    x = np.exp2(random.uniform(0, 1023, 1500)) * random.choice([-1, 1], 1500)
    x[0] = math.ldexp(6381956970095103, 797)
    assert worst_float64(name, x)[0] <= BOUNDS[name][1]
    # Floats beside multiples of pi/2 that the fast reduction handles: r_low weighs most there.
    n = random.integers(1, 80000, 1 << 16)
    near = (n * (math.pi / 2)).astype(np.float32)
    errors = K.float32_errors(K.run(name, near), K.reference(name, near))
    assert errors.max() <= BOUNDS[name][0]
    x = random.integers(1, 1 << 29, 3000) * (math.pi / 2)
    assert worst_float64(name, x)[0] <= BOUNDS[name][1]


@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid", "expm1", "sin", "atan", "tanh", "pow"])
def test_denormal_results(name: str) -> None:
    random = np.random.default_rng(3)
    low, high = {"exp": (-745, -708), "exp2": (-1074, -1022), "sigmoid": (-745, -708)}.get(
        name, (-5e-308, 5e-308)
    )
    x = random.uniform(low, high, 400)
    if name == "pow":
        assert worst_float64("pow", np.full(400, 2.0), random.uniform(-1074, -1022, 400))[0] <= 1
        return
    assert worst_float64(name, x)[0] <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REST)
def test_special_values(name: str, dtype: type) -> None:
    """Exact at zeros, infinities and NaN; signs of zero included."""
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], dtype)
    got, exact = K.run(name, x), K.reference(name, x).astype(dtype)
    exactly = np.isnan(exact) | np.isinf(exact) | (exact == 0) | (np.abs(exact) == 1)
    for at, a, b in zip(x[exactly], got[exactly], exact[exactly]):
        assert (np.isnan(a) and np.isnan(b)) or (a == b and np.signbit(a) == np.signbit(b)), (at, a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_exact(dtype: type) -> None:
    x = K.stratified(20000, dtype)
    for name in ("floor", "ceil", "trunc", "round", "sqrt"):
        with np.errstate(invalid="ignore"):
            expected = (np.rint if name == "round" else getattr(np, name))(x)
        np.testing.assert_array_equal(K.run(name, x), expected, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_special_pairs(name: str, dtype: type) -> None:
    numbers = np.array([0, 0.5, 1, 2, 3, np.inf, np.nan], dtype)
    x, y = (g.ravel() for g in np.meshgrid([*numbers, *-numbers], [*numbers, *-numbers]))
    got, exact = K.run(name, x.astype(dtype), y.astype(dtype)), K.reference(name, x, y)
    np.testing.assert_allclose(got, exact, rtol=4e-7 if dtype == np.float32 else 1e-15)
    number = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(exact)[number])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders(dtype: type) -> None:
    x, y = K.pairs("fmod", 20000, dtype)
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
        np.testing.assert_array_equal(K.run("fmod", x, y), expected)
        moved = np.where((expected != 0) & ((y < 0) != (expected < 0)), expected + y, expected)
    np.testing.assert_array_equal(K.run("mod", x, y), moved)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REST)
def test_scalars_are_as_vectors(name: str, dtype: type) -> None:
    x = K.stratified(300, dtype)
    np.testing.assert_array_equal(K.run_scalar(name, x), K.run(name, x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_plain_python_agrees(name: str, dtype: type) -> None:
    """The same source, interpreted: every operation is what the machine's is."""
    x = np.array([0.3, -0.7, 1.5, 5.0, -20.0, 0.0, np.inf, np.nan], dtype)
    with interpreted():
        got = FUNCTIONS[name](x)
        one = FUNCTIONS[name](dtype(0.3))
    np.testing.assert_array_equal(got, K.run(name, x))
    np.testing.assert_array_equal(one, got[0])


@pytest.mark.parametrize("target", ["avx2", "native"])
def test_targets_agree(target: str) -> None:
    """Not one bit differs between vector widths."""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "ANTORCHA_TARGET": target, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, str(Path(K.__file__))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == K.digest()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("lgamma", "digamma", "erfinv")])
def test_every_float32(name: str) -> None:
    worst, place = K.worst_of_all(name, half=name in HALF)
    assert worst <= BOUNDS[name][0], (worst, place)
