"""Complex graphs written out in real arithmetic give the same values."""

from __future__ import annotations

import numpy as np
import pytest

import antorcha.lang.expr as E
from antorcha.core import dtypes as D
from antorcha.errors import MissingFeature

C, DBL = D.complex128, D.float64
GRID = np.array([-2.3, -0.7, 0.2, 1.4])
Z = (GRID[:, None] + 1j * np.array([-1.9, -0.3, 0.6, 2.2])).ravel()
WITH_RULE = [op for op in E.OPS.values() if op.complex_rule and not op.reduction]
UNARY = ["real", "imag", *[op.public for op in WITH_RULE if op.arity == 1]]
BINARY = [op.public for op in WITH_RULE if op.arity == 2]


def only_real_arithmetic(graph):
    for e in E.walk(graph):
        if e.dtype.kind == "c":
            assert e.op in ("input", "scalar") or (e.op == "complex" and e is graph)


def check(fn, types, args):
    graph = E.trace(fn, types)
    (split,) = E.split_complex([graph])
    only_real_arithmetic(split)
    assert split.dtype is graph.dtype
    found, wanted = E.evaluate(split, args), E.evaluate(graph, args)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check(getattr(E, name), [C], [Z])
    grads, _ = E.pullback(E.trace(getattr(E, name), [C]))
    if grads[0] is not None:
        (split,) = E.split_complex([grads[0]])
        only_real_arithmetic(split)
        g = Z if E.trace(getattr(E, name), [C]).dtype is C else Z.real
        np.testing.assert_allclose(
            E.evaluate(split, [g, Z]), E.evaluate(grads[0], [g, Z]), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    check(getattr(E, name), [C, C], [Z, Z[::-1] * 0.4])
    check(getattr(E, name), [C, DBL], [Z, Z.real])
    check(lambda x: getattr(E, name)(x, 2 - 1j), [C], [Z])


def test_mixed():
    check(lambda x, y: E.where(y > 0, x * y, 1j) + E.fma(x, x, y), [C, DBL], [Z, Z.real])
    check(lambda x: E.cast(x * x, D.float32), [C], [Z])
    check(lambda x: E.tanh(x * 200), [C], [Z])
    real = E.trace(lambda y: E.exp(y), [DBL])
    assert E.split_complex([real]) == (real,)
    with pytest.raises(MissingFeature, match="reduce_prod"):
        E.split_complex(E.trace_rows(lambda x: x.prod(), [C]).outputs)
