"""Graphs: interning, typing, walking, keys, printing."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import antorcha.lang.expr as E
from antorcha.core import dtypes as D
from antorcha.errors import ArgumentError, DtypeError, GraphError

F, H, B16, DBL, I, L, U8, B, C = (
    D.float32, D.float16, D.bfloat16, D.float64, D.int32, D.int64, D.uint8, D.bool_, D.complex64,
)  # fmt: skip


def test_equal_graphs_are_the_same_object():
    def fn(x, y):
        return E.exp(x) * y + 2.0

    assert E.trace(fn, [F, F]) is E.trace(lambda a, b: E.exp(a) * b + 2, [F, F])
    assert E.trace(fn, [F, F]) is not E.trace(fn, [DBL, DBL])


def test_constants_are_told_apart_exactly():
    values = [0.0, -0.0, math.nan, math.inf, 1.0, 5e-324]
    nodes = {E.const(v, DBL) for v in values}
    assert len(nodes) == len(values)
    assert E.const(True, B) is not E.const(1, U8)
    assert E.const(300, U8) is E.const(44, U8)
    assert E.const(0.1, F).payload == float(np.float32(0.1))
    assert E.const(1e39, F).payload == math.inf
    assert E.const(0.1, B16, exact=True).payload == float(np.array(0.1, B16.np))
    assert E.const(0.1, H).payload == 0.1  # as written: opmath reads it at float32


@pytest.mark.parametrize(
    ("fn", "types", "expected"),
    [
        (lambda x: x + 1, [F], F),
        (lambda x: x + 1.5, [I], F),
        (lambda x: x + 1, [U8], U8),
        (lambda x: x + 1.5, [H], H),
        (lambda x: x * 1j, [F], C),
        (lambda x: x * 1j, [DBL], D.complex128),
        (lambda x: x + 1, [B], L),
        (lambda x: x / 2, [I], F),
        (lambda x, y: x / y, [I, DBL], DBL),
        (lambda x, y: x + y, [H, B16], F),
        (lambda x, y: x < y, [I, F], B),
        (lambda x: E.exp(x), [L], F),
        (lambda x: E.floor(x), [L], L),
        (lambda x: abs(x), [C], F),
        (lambda x: E.where(x > 0, 1, 2.5), [I], F),
        (lambda x: E.where(x > 0, x, 0), [H], H),
        (lambda x: x.cast(D.int8), [F], D.int8),
        (lambda x: np.float32(2) * x, [I], F),
        (lambda x: x + np.int64(2), [F], F),
        (lambda x: E.complex(x, 0), [F], C),
    ],
)
def test_result_types(fn, types, expected):
    assert E.trace(fn, types).dtype is expected


def test_operands_have_one_dtype():
    e = E.trace(lambda x, y: x + y, [I, DBL])
    assert {a.dtype for a in e.args} == {DBL}


def test_comparison_with_a_number_out_of_range():
    e = E.trace(lambda x: x < 300, [U8])
    assert bool(E.evaluate(e, [np.uint8(7)]))


@pytest.mark.parametrize(
    ("fn", "types", "words"),
    [
        (lambda x: x - x, [B], "sub: not defined for bool"),
        (lambda x: x < 1, [C], "lt: not defined for complex"),
        (lambda x: x & 1.5, [I], "bitwise_and: defined for integers"),
        (lambda x: E.where(x, 1, 2), [F], "the condition `x0` is torch.float32"),
        (lambda x: E.nextafter(x, 1), [I], "floating point only"),
    ],
)
def test_type_errors(fn, types, words):
    with pytest.raises(DtypeError, match=words.replace("(", r"\(")):
        E.trace(fn, types)


def test_no_truth_value():
    with pytest.raises(GraphError, match="use where"):
        E.trace(lambda x: x if x > 0 else -x, [F])
    with pytest.raises(GraphError, match="not math or NumPy"):
        E.trace(lambda x: math.exp(x), [F])
    with pytest.raises(GraphError, match="cannot be iterated"):
        E.trace(lambda x: sum(x), [F])
    with pytest.raises(ArgumentError, match="returned str"):
        E.trace(lambda x: "x", [F])
    with pytest.raises(AttributeError, match="Did you mean"):
        E.trace(lambda x: x.sigmiod(), [F])
    with pytest.raises(GraphError, match="trace_rows"):
        E.trace(lambda x: x / x.sum(), [F])
    with pytest.raises(ArgumentError, match="takes 1 argument, got 2"):
        E.exp(1.0, 2.0)


def test_immutable():
    e = E.input_(0, F)
    with pytest.raises(GraphError, match="immutable"):
        e.op = "exp"
    assert (e + 1).__eq__("x") is NotImplemented


def test_scalars():
    def axpy(x, y, alpha):
        return x + alpha * y

    e = E.trace(axpy, [F, F], {"alpha": F})
    assert str(e) == "x0 + alpha * x1"
    assert E.scalars_used(e) == {"alpha": F}
    assert float(E.evaluate(e, [1.0, 2.0], {"alpha": 3.0})) == 7
    assert E.trace(axpy, [F, F], {"alpha": 1}) is E.trace(lambda x, y: x + y, [F, F])


def test_dispatch():
    class T:
        pass

    calls = []
    old = E.set_dispatch(lambda name, args: calls.append((name, args)) or "done")
    try:
        t = T()
        assert E.exp(t) == E.maximum(t, 1.0) == E.relu(t) == E.cast(t, F) == "done"
        assert E.polygamma(1, t) == E.where(True, t, 0) == "done"
        assert [c[0] for c in calls] == ["exp", "maximum", "relu", "cast", "polygamma", "where"]
        E.set_dispatch(None)  # as before the ops are loaded
        with pytest.raises(ArgumentError, match="expected expressions or numbers"):
            E.exp(T())
    finally:
        E.set_dispatch(old)


def test_numbers_compute():
    assert E.exp(1.0) == math.e
    assert E.log(0.0) == -math.inf
    assert E.where(True, 1, 2) == 1
    assert E.maximum(2, 3) == 3
    assert E.conj(1 + 2j) == 1 - 2j
    assert E.relu(-3.0) == 0
    assert E.cast(300, U8) == 44


def test_reading():
    e = E.trace(lambda x, y, z: x + E.exp(z) * E.exp(z), [F, F, F])
    assert E.inputs_used(e) == (0, 2)
    assert E.count_ops(e) == 3
    x, z = E.input_(0, F), E.input_(2, F)
    assert E.substitute(e, {x: z}) is E.trace(lambda x, y, z: z + E.exp(z) * E.exp(z), [F] * 3)
    with pytest.raises(DtypeError):
        E.substitute(e, {x: E.input_(0, DBL)})


def test_text():
    e = E.trace(lambda x, y: x + 2.0 * E.exp(y), [F, F])
    assert str(e) == "x0 + 2.0 * exp(x1)"
    e = E.trace(lambda x, y: (x + y) * (x - (y - x)) ** 1.5, [F, F])
    assert str(e) == "(x0 + x1) * (x0 - (x1 - x0)) ** 1.5"
    e = E.trace(lambda x: E.exp(x) / (1 + E.exp(x)), [F])
    assert str(e) == "t0 = exp(x0); t0 / (1.0 + t0)"
    e = E.trace(lambda x: (-x) ** 1.5 + (-(x**1.5)), [F])
    assert str(e) == "(-x0) ** 1.5 - x0 ** 1.5"


def test_deep_chains():
    def deep(x):
        for _ in range(5000):
            x = E.sin(x) + 0.25
        return x

    e = E.trace(deep, [DBL])
    assert E.count_ops(e) == 10_000
    assert len(str(e)) < 1_000_000
    assert len(E.key(e)) > 10_000
    assert np.isfinite(E.evaluate(E.derivative(e, 0), [0.3]))
    E.opmath(E.expand(e, {"sin", "add"}))


def test_nodes_die():
    import gc
    import weakref

    e = E.input_(0, F) + 12345.678
    ref = weakref.ref(e)
    del e
    gc.collect()
    assert ref() is None


_KEYED = """
import antorcha.lang.expr as E
from antorcha.core import dtypes as D
e = E.trace(lambda x, y: E.where(x > y, E.exp(x) * 0.1, y - 3), [D.float32, D.float32])
print(E.key(e))
p = E.trace_rows(lambda x: E.exp(x - x.max()) / E.exp(x - x.max()).sum(), [D.float16])
print(p.__native_key__())
"""


def fresh_process(code, hash_seed="0"):
    """What `code` prints in a process of its own, without the face, which may import anything."""
    folder = str(Path(D.__file__).parent.parent)
    bare = "import sys, types; face = types.ModuleType('antorcha'); sys.modules['antorcha'] = face"
    code = f"{bare}; face.__path__ = [{folder!r}]\n{code}"
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    return done.stdout.strip()


def test_key_is_the_same_in_every_process():
    assert fresh_process(_KEYED, "1") == fresh_process(_KEYED, "2") != ""


def test_key_differs_when_the_graph_does():
    fns = [
        lambda x, y: x + y, lambda x, y: y + x, lambda x, y: x - y, lambda x, y: x + 0.0,
        lambda x, y: x + 1.0, lambda x, y: x + math.nan, lambda x, y: x * x, lambda x, y: x,
    ]  # fmt: skip
    graphs = [E.trace(fn, [t, t]) for fn in fns for t in (F, DBL, H)]
    assert len({E.key(g) for g in graphs}) == len(set(graphs)) == len(graphs)
    a, b = E.input_(0, F), E.input_(1, F)
    assert E.key(a, b) != E.key(b, a)
    assert a.__native_key__() == E.key(a)


def test_import_is_light():
    assert fresh_process("import antorcha.lang.expr; print('numpy' in sys.modules)") == "False"
