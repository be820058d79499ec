"""Special functions are within 4 ulp of their exact values in float32, and 16 in float64."""

from __future__ import annotations

import cmath

import numpy as np
import pytest

pytest.importorskip("mpmath")

import antorcha
from tests.ops.accuracy import (
    ANGLES,
    BAR,
    COMPLEX,
    FUNCTIONS,
    complex_errors,
    complex_points,
    error,
    search,
    values,
)
from tests.ops.worst_points import WORST

# What has no numerics of its own, or is measured elsewhere under another name.
ELSEWHERE = {
    "expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma", "modified_bessel_i0": "i0",
    "modified_bessel_i1": "i1", "multigammaln": "mvlgamma(3)", "polygamma": "polygamma(1)",
    "round": "", "softmax": "", "log_softmax": "", "logsumexp": "",
}  # fmt: skip


def test_all_of_special_is_measured() -> None:
    missing = [
        name for name in dir(antorcha.special)
        if not name.startswith("_") and callable(getattr(antorcha.special, name))
        and name not in FUNCTIONS and name not in ELSEWHERE
    ]  # fmt: skip
    assert not missing
    unknown = [name for name in ELSEWHERE.values() if name and name not in FUNCTIONS]
    assert not unknown
    assert {(name, dtype) for name, dtype, _ in WORST} >= {(n, d) for n in FUNCTIONS for d in BAR}


def test_worst_points() -> None:
    wrong = []
    for name, dtype, point in WORST:
        f = FUNCTIONS[name]
        (got,) = values(f, [np.array([x], dtype) for x in point])
        ulps = error(f, float(got), point, dtype)
        if not ulps <= BAR[dtype]:
            wrong.append(f"{name}{point} in {dtype}: {ulps:.3g} ulp")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", BAR)
def test_search(dtype: str) -> None:
    """A short search finds nothing worse; `tests.ops.accuracy` as a program makes a long one."""
    wrong = []
    for name in FUNCTIONS:
        ulps, point = search(name, dtype, 40, seed=1)
        if not ulps <= BAR[dtype]:
            wrong.append(f"{name}{point}: {ulps:.3g} ulp")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("dtype", "bar"), [("complex64", 2.0), ("complex128", 5.0)])
def test_parts_of_complex_functions(dtype: str, bar: float) -> None:
    points = complex_points(8, dtype, np.random.default_rng(0))
    moderate = points[np.abs(points) < 10]
    wrong = []
    for name in COMPLEX:
        ulps, z = max(complex_errors(name, moderate if name in ANGLES else points))
        if not ulps <= bar * (8 if name in ANGLES else 1):
            wrong.append(f"{name}({z}) in {dtype}: {ulps:.3g} ulp")
    assert not wrong, "\n".join(wrong)


def test_special_values_of_complex_functions() -> None:
    """Those of C11, annex G, which ``cmath`` has, too."""
    ends = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf]
    points = [complex(x, y) for x in ends for y in ends]
    wrong = []
    for name in "exp log sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split():
        got = getattr(antorcha, name)(antorcha.tensor(points, dtype=antorcha.complex128)).tolist()
        for z, w in zip(points, got, strict=True):
            try:
                want = getattr(cmath, name)(z)
            except (ValueError, OverflowError):
                continue  # cmath raises where a result is infinite or not a number
            pairs = [(w.real, want.real), (w.imag, want.imag)]
            if np.isinf(z.real) and np.isinf(z.imag):  # any sign does
                pairs = [(abs(a), abs(b)) for a, b in pairs]
            near = [np.isclose(a, b, rtol=1e-14, atol=0, equal_nan=True) for a, b in pairs]
            signs = [np.isnan(b) or np.signbit(a) == np.signbit(b) for a, b in pairs]
            if not all(near) or not all(signs):
                wrong.append(f"{name}({z}): {w}, not {want}")
        (vague,) = getattr(antorcha, name)(antorcha.tensor([complex("nan+nanj")])).tolist()
        if not cmath.isnan(vague):
            wrong.append(f"{name}(nan+nanj): {vague}")
    assert not wrong, "\n".join(wrong)
