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

from antorcha.core import dtypes
from antorcha.devices.emit import Body, function_key
from antorcha.devices.math import FUNCTIONS
from antorcha.devices.math.pair_coefficients import LGAMMA_ROOTS, PSI_ROOTS
from antorcha.lang import expr as E
from antorcha.lang.expr import OPS
from antorcha.lang.native import interpreted
from tests.devices.cpu import math_kernels as K

UNARY, BINARY = K.measured(K.UNARY), K.measured(K.BINARY)
HALF = ("erf", "tanh", "sin", "cos", "tan", "atan", "asin", "sinh", "cosh", "asinh", "erfinv")


@pytest.mark.parametrize("name", UNARY)
def test_float32(name: str) -> None:
    x = K.stratified(1 << 20, np.float32)
    if name in ("lgamma", "digamma"):  # SciPy's own errors show beside the poles
        x = np.concatenate([np.abs(x), K.special_floats(np.float32)[:30]])
    if name == "airy_ai":  # SciPy loses the angle of others
        x = x[np.abs(x) < 100]
    errors = K.float32_errors(K.run(name, x), K.reference(name, x))
    worst = int(np.argmax(errors))
    assert errors[worst] <= K.accuracy(name).float32, (name, x[worst])


@pytest.mark.parametrize("name", BINARY)
def test_float32_of_two(name: str) -> None:
    x, y = K.pairs(name, 1 << 19, np.float32)
    errors = K.float32_errors(K.run(name, x, y), K.reference(name, x, y))
    worst = int(np.argmax(errors))
    assert errors[worst] <= K.accuracy(name).float32, (name, x[worst], y[worst])


def worst_float64(name: str, *inputs: K.Array) -> tuple[float, Any]:
    mp = pytest.importorskip("mpmath")
    arguments = ("x", "y")[: len(inputs)]
    formula = K.accuracy(name).exact or f"{name}({', '.join(arguments)})"
    worst, place = 0.0, None
    with mp.workprec(140 if len(inputs) == 1 else 220):  # (those of two cancel more)
        for result, *point in zip(K.run(name, *inputs), *inputs):
            values = dict(zip(arguments, [mp.mpf(float(v)) for v in point]))
            exact = eval(formula, vars(mp), values)
            if not mp.isfinite(exact) or abs(exact) >= mp.mpf(2) ** 1024:
                assert not np.isfinite(result), (name, point)
                continue
            size = eval(K.accuracy(name).size, vars(mp), values) if K.accuracy(name).size else exact
            exponent = mp.frexp(size)[1] - 53 if size else -1074
            error = float(abs(mp.mpf(float(result)) - exact) / mp.mpf(2) ** max(exponent, -1074))
            if error > worst:
                worst, place = error, point
    return worst, place


@pytest.mark.parametrize("name", UNARY)
def test_float64(name: str) -> None:
    ends = K.accuracy(name).within or OPS[name].domain
    low, high = (end if math.isfinite(end) else math.copysign(30, end) for end in ends)
    random = np.random.default_rng(7)
    scale = np.exp(random.uniform(-40, np.log(abs(high)), 500))
    near = random.uniform(max(low, -1.6), min(high, 1.6), 500)
    x = np.concatenate([random.uniform(low, high, 700), near, scale, -scale, 1 + near * scale])
    x = x[(x > ends[0]) & (x < ends[1])]
    worst, place = worst_float64(name, x)
    assert worst <= K.accuracy(name).float64, (name, worst, place)


@pytest.mark.parametrize("name", BINARY)
def test_float64_of_two(name: str) -> None:
    x, y = K.pairs(name, 700, np.float64)
    finite = np.isfinite(x) & np.isfinite(y) & (x != 0)  # mpmath has no -0.0
    x, y = x[finite], y[finite]
    if name == "pow":
        x = np.abs(x)
    worst, place = worst_float64(name, x, y)
    assert worst <= K.accuracy(name).float64, (name, worst, place)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles(name: str) -> None:
    """Through all exponents, and the float64 nearest to a multiple of pi/2 (J.-M. Muller)."""
    random = np.random.default_rng(5)
    x = np.exp2(random.uniform(0, 1023, 1500)) * random.choice([-1, 1], 1500)
    x[0] = math.ldexp(6381956970095103, 797)
    assert worst_float64(name, x)[0] <= K.accuracy(name).float64
    # Floats beside multiples of pi/2 that the fast reduction handles: r_low weighs most there.
    n = random.integers(1, 80000, 1 << 16)
    near = (n * (math.pi / 2)).astype(np.float32)
    errors = K.float32_errors(K.run(name, near), K.reference(name, near))
    assert errors.max() <= K.accuracy(name).float32
    x = random.integers(1, 1 << 29, 3000) * (math.pi / 2)
    assert worst_float64(name, x)[0] <= K.accuracy(name).float64


def beside(places: Any, reach: float, count: int = 12) -> K.Array:
    """The floats around each place, and others as near as a power of two times reach."""
    random = np.random.default_rng(11)
    places = np.asarray(places, np.float64)[:, None]
    steps = np.arange(-4, 5) * np.spacing(np.abs(places))
    away = reach * np.exp2(random.uniform(-45, 0, (len(places), count)))
    return (places + np.concatenate([steps, away, -away], 1)).ravel()


def psi_roots(n: Any) -> K.Array:
    """a between n and n + 1, n > 0, with digamma(-a) = 0, to an ulp or so."""
    a = n + 1 - np.arctan(np.pi / np.log(n + 1)) / np.pi
    for _ in range(6):
        psi = np.log(a) + 1 / (2 * a) - 1 / (12 * a**2) + 1 / (120 * a**4) - 1 / (252 * a**6)
        psi += np.pi / np.tan(np.pi * (a - np.floor(a)))
        a = a + psi / (np.pi**2 + np.log(a) ** 2)
    return a  # type: ignore[no-any-return]


def test_roots_of_lgamma() -> None:
    """Beside each root, and beside the poles below -16, where roots are nearer than any float."""
    roots = [-row[0] for row in LGAMMA_ROOTS]
    reach = [abs(x - round(x)) for x in roots]
    x = np.concatenate([beside([r], d, 6) for r, d in zip(roots, reach)])
    edges = [r + s * d * 2.0**-8 * f for r, d in zip(roots, reach) for s in (-1, 1)
             for f in (0.99, 1.01)]  # fmt: skip
    poles = beside(np.arange(-30.0, -1.0), 0.5, 2)
    x = np.concatenate([x, edges, poles, beside([1.0, 2.0], 0.5)])
    worst, place = worst_float64("lgamma", x[x != np.round(x)])
    assert worst <= K.accuracy("lgamma").float64, (worst, place)


def test_roots_of_digamma() -> None:
    """Beside the positive root, those with Taylor series, and those further out up to 2**40."""
    random = np.random.default_rng(12)
    far = np.concatenate([np.arange(32, 200), np.floor(np.exp2(random.uniform(8, 40, 300)))])
    x = np.concatenate([
        beside([1.4616321449683622], 0.4, 60), beside([-row[0] for row in PSI_ROOTS], 0.2, 5),
        beside(-psi_roots(far[::8]), 0.2, 4),
    ])  # fmt: skip
    roots = -psi_roots(far)
    x = np.concatenate([x, roots, np.nextafter(roots, 0), np.nextafter(roots, -np.inf)])
    worst, place = worst_float64("digamma", x[x != np.round(x)])
    assert worst <= K.accuracy("digamma").float64, (worst, place)


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("lgamma", [-17.5, -16.5, -1.5, -0.5, 0.5, 1.5, 2.5, 7.5, 8.0]),
        ("digamma", [-32.5, -31.75, -8.5, -1.25, -0.25, 1e-18, 1.0, 2.0, 7.0, 8.0]),
        ("erfc", [-1.0, -0.5, 0.5, 1.0, 4.0, 26.54, 27.2]),
        ("erfinv", [-0.5, 0.5, 0.91, 0.999999887, 1 - 2.0**-48, -1 + 2.0**-45, 1e-308]),
        ("erf", [-1.0, 1.0, 5.9]),
    ],
)
def test_borders(name: str, places: list[float]) -> None:
    """Beside the places where another formula takes over."""
    x = np.concatenate([beside(places, min(abs(p) for p in places) / 2), places])
    x = x[x != np.round(x)] if name in ("lgamma", "digamma") else x
    worst, place = worst_float64(name, x)
    assert worst <= K.accuracy(name).float64, (name, worst, place)


def test_ends_of_erfinv() -> None:
    """All numbers of float64 near 1, by exponent of the distance."""
    random = np.random.default_rng(13)
    x = np.concatenate([1 - np.arange(1, 200) * 2.0**-53, 1 - np.exp2(-random.uniform(1, 53, 400))])
    assert worst_float64("erfinv", x)[0] <= K.accuracy("erfinv").float64


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_far_ends_of_gamma(name: str) -> None:
    """By exponent, up to overflow, and down to the smallest denormal number."""
    random = np.random.default_rng(14)
    top = 1014 if name == "lgamma" else 1023
    x = np.exp2(random.uniform(-1074, top, 500))
    tiny = np.array([5e-324, 5.5e-309, 5.6e-309, 2.3e-308])
    x = np.concatenate([x, tiny, -tiny, -np.exp2(random.uniform(-1074, 3, 300))])
    assert worst_float64(name, x)[0] <= K.accuracy(name).float64
    far = K.run(name, np.array([2.6e305, 1e308, -1e308, -(2.0**52) - 1, -7.0, -300.0]))
    if name == "lgamma":
        assert np.isposinf(far).all()
    else:
        assert np.isfinite(far[:2]).all()
        assert np.isnan(far[2:]).all()


@pytest.mark.parametrize(
    "name", ["exp", "exp2", "sigmoid", "expm1", "sin", "atan", "tanh", "pow", "erfc", "erfinv"]
)
def test_denormal_results(name: str) -> None:
    random = np.random.default_rng(3)
    low, high = {
        "exp": (-745, -708),
        "exp2": (-1074, -1022),
        "sigmoid": (-745, -708),
        "erfc": (26.5, 27.3),
    }.get(name, (-5e-308, 5e-308))
    x = random.uniform(low, high, 400)
    if name == "pow":
        assert worst_float64("pow", np.full(400, 2.0), random.uniform(-1074, -1022, 400))[0] <= 1
        return
    assert worst_float64(name, x)[0] <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", K.UNARY)
def test_special_values(name: str, dtype: type) -> None:
    """Exact at zeros, infinities and NaN; signs of zero included."""
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], dtype)
    got, exact = K.run(name, x), K.reference(name, x).astype(dtype)
    exactly = np.isnan(exact) | np.isinf(exact) | (exact == 0) | (np.abs(exact) == 1)
    for at, a, b in zip(x[exactly], got[exactly], exact[exactly]):
        assert (np.isnan(a) and np.isnan(b)) or (a == b and np.signbit(a) == np.signbit(b)), (at, a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if K.accuracy(n).float64 == 0.5])
def test_nearest(name: str, dtype: type) -> None:
    """What is never off by more than half an ulp is NumPy's bit for bit."""
    inputs = (K.stratified(20000, dtype),)
    if name in K.BINARY:
        inputs = K.pairs("fmod", 20000, dtype)  # type: ignore[assignment]
    with np.errstate(all="ignore"):
        expected = OPS[name].on_arrays(*inputs)
    np.testing.assert_array_equal(K.run(name, *inputs), expected, strict=True)


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
@pytest.mark.parametrize("name", K.UNARY)
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


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_roots_in_plain_python(name: str) -> None:
    x = np.array(
        [-2.4570247382208006, -0.5040830082644554, -34.76998353, -3.95529, 1.46, -17.6, 30]
    )
    with interpreted():
        got = FUNCTIONS[name](x)
        each = [FUNCTIONS[name](v) for v in x[:3]]
    np.testing.assert_array_equal(got, K.run(name, x))
    np.testing.assert_array_equal(each, got[:3])
    np.testing.assert_array_equal(K.run_scalar(name, x), got)


@pytest.mark.parametrize("target", ["sse2", "avx2", "native"])
def test_targets_agree(target: str) -> None:
    """Not one bit differs between vector widths."""
    root = Path(__file__).parents[3]
    paths = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "ANTORCHA_TARGET": target, "PYTHONPATH": paths}
    command = [sys.executable, str(Path(K.__file__))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == K.digest()


def test_kernels_are_named_by_the_math_that_they_inline(monkeypatch: Any) -> None:
    """Else one on disk would outlive a change of the function."""

    def key() -> str:
        function_key.cache_clear()
        return Body([E.exp(E.input_(0, dtypes.float32))]).key

    before = key()
    monkeypatch.setitem(FUNCTIONS, "exp", FUNCTIONS["exp2"])
    changed = key()
    monkeypatch.undo()
    assert key() == before != changed


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("lgamma", "digamma", "erfinv")])
def test_every_float32(name: str) -> None:
    worst, place = K.worst_of_all(name, half=name in HALF)
    assert worst <= K.accuracy(name).float32, (worst, place)
