"""Every scalar op's record is whole: none of the parts that others read is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import antorcha.lang.expr as E
from antorcha.core import dtypes as D
from antorcha.devices.emit import available
from antorcha.devices.math import FUNCTIONS
from antorcha.errors import DtypeError
from antorcha.lang.expr.primitives import bessel, orthogonal

NAMES = sorted(n for n, op in E.OPS.items() if not op.reduction)
FURTHER = {
    "erfcx", "gamma_density", "gammainc", "gammaincc", "ndtr", "ndtri", "polygamma_by_order",
    "zeta", *bessel.__all__, *orthogonal.__all__,
}  # fmt: skip
"""The special functions that are not computed to the last place of float64."""
WITHOUT_ARITHMETIC = ("cast", "real", "imag", "complex")  # `split_complex` writes and keeps them


def takes(op, dtype):
    try:
        op.rule(op.public, dtype)
    except DtypeError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_name_and_meaning(name):
    op = E.OPS[name]
    assert op.doc.endswith((".", "..."))
    assert callable(getattr(E, op.public)), "its file's __all__ lacks it"


@pytest.mark.parametrize("name", NAMES)
def test_numpy_twin(name):
    assert callable(E.OPS[name].on_arrays)


@pytest.mark.parametrize("name", NAMES)
def test_derivative_or_none(name):
    """A rule or None per argument; test_derivative.py checks the rules by differences."""
    op = E.OPS[name]
    assert op.grads is None or len(op.grads) == op.arity
    assert op.grads is None or all(rule is None or callable(rule) for rule in op.grads)


@pytest.mark.parametrize("name", NAMES)
def test_complex_rule_or_real_only(name):
    """test_complexes.py checks the rules."""
    op = E.OPS[name]
    needed = takes(op, D.complex128) and name not in WITHOUT_ARITHMETIC
    assert (op.complex_rule is not None) == needed


@pytest.mark.parametrize("name", NAMES)
def test_domain(name):
    """The function has values there."""
    op = E.OPS[name]
    low, high = op.interior
    assert op.domain[0] < low < high < op.domain[1]
    if op.arity == 1 and takes(op, D.float64):
        payload = (1,) if name == "polygamma" else ()
        assert np.isfinite(op.on_arrays(*payload, np.linspace(low, high, 9))).all()


def test_accuracy_of_what_a_device_computes_by_a_function():
    """tests/devices/cpu/test_math.py checks the bounds."""
    asked = {name for name in NAMES if E.OPS[name].accuracy is not None}
    assert asked == set(FUNCTIONS)
    for name in asked:
        accuracy = E.OPS[name].accuracy
        assert 0.5 <= accuracy.float32 <= 1
        assert 0.5 <= accuracy.float64 <= (16 if name in FURTHER else 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_device_has_it_or_its_expansion(name):
    on_numpy = ("polygamma", "real", "imag", "conj", "complex", "sgn")
    assert name in available() or E.OPS[name].expand is not None or name in on_numpy


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_exact_formula(name):
    """NumPy's twin is near to the formula that the accuracy is measured against."""
    mp = pytest.importorskip("mpmath")
    op = E.OPS[name]
    if op.accuracy is None or (not op.accuracy.exact and not hasattr(mp, name)):
        pytest.skip("NumPy itself is the measure")
    low, high = op.interior
    point = dict(zip(("x", "y"), np.linspace(low, high, 5)[[1, 3]][: op.arity], strict=False))
    formula = op.accuracy.exact or f"{name}({', '.join(point)})"
    exact = float(eval(formula, vars(mp), {k: mp.mpf(float(v)) for k, v in point.items()}))
    found = op.on_arrays(*[np.float64(v) for v in point.values()])
    assert math.isclose(found, exact, rel_tol=1e-12)
