"""Special functions are within 4 ulp of their exact values in float32, and 16 in float64."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mpmath")

import antorcha
from tests.ops.accuracy import BAR, FUNCTIONS, error, search, values
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
