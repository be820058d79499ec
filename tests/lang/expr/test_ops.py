"""Every op's value against PyTorch, on edge values and every dtype that the op takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import antorcha.lang.expr as E
from antorcha.core import dtypes as D
from antorcha.errors import DtypeError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.7, -2.5, 1.5, 1e-3, 30.0, 1e-30, 3e5, math.inf,
    -math.inf, math.nan, 0.3, 0.99, 88.0,
]  # fmt: skip
INTS = [0, 1, -1, 2, 3, -3, 7, 100, 127, -128]
COMPLEX = [0.3 + 0.7j, -1.2 + 0.4j, 0.9 - 1.1j, 2 + 0j, 0j, -1j, 5.5 + 2j]
TYPES = [D.float64, D.float32, D.float16, D.bfloat16, D.int64, D.int32, D.uint8, D.int8, D.bool_,
         D.complex128]  # fmt: skip
ALIASES = {"trunc_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc")}
NAMES = sorted(
    n for n, r in E.OPS.items()
    if not r.reduction and n not in ("cast", "detach", "polygamma", "complex", "where", "fma")
)  # fmt: skip
TOLERANCE = {
    "float64": 3e-13,
    "float32": 3e-6,
    "float16": 1e-3,
    "bfloat16": 8e-3,
    "complex128": 1e-12,
}


def samples(t):
    if t.kind == "c":
        return torch.tensor(COMPLEX, dtype=torch.complex128)
    if t.kind == "f":
        return torch.tensor(FLOATS, dtype=torch.float64).to(getattr(torch, t.name))
    if t.kind == "b":
        return torch.tensor([False, True])
    values = [v for v in INTS if t.kind == "i" or v >= 0]
    return torch.tensor(values).to(getattr(torch, t.name))


def to_numpy(x):
    if x.dtype is torch.bfloat16:
        return x.float().numpy().astype(D.bfloat16.np)
    return x.resolve_conj().numpy()


def operands(record, t):
    x = samples(t)
    if record.arity == 1:
        return [x]
    a, b = (g.reshape(-1).clone() for g in torch.meshgrid(x, x, indexing="ij"))
    if t.kind in "ui" and record.name in ("floordiv", "truncdiv", "mod", "fmod"):
        keep = b != 0
        a, b = a[keep], b[keep]
    if t.kind in "ui" and record.name == "pow":
        b = b.clamp(max=7)
    if record.name == "gcd":  # PyTorch's of the least integer is negative
        least = torch.iinfo(a.dtype).min if t.kind == "i" else -1
        keep = (a != least) & (b != least)
        a, b = a[keep], b[keep]
    if t.kind == "c" and record.name == "pow":
        a, b = a[a != 0], b[a != 0]  # PyTorch's 0j ** 0j is NaN
    return [a, b]


@pytest.mark.parametrize("t", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("name", NAMES)
def test_against_torch(name, t):
    record = E.OPS[name]
    args = operands(record, t)
    theirs = ALIASES.get(record.public) or getattr(torch, record.public, None)
    if theirs is None:
        pytest.skip("PyTorch has no such function")
    try:
        expected = theirs(*args)
    except (RuntimeError, NotImplementedError):
        pytest.skip("PyTorch does not take this dtype")
    try:
        graph = E.trace(lambda *xs: record(*xs), [t] * record.arity)
    except DtypeError:
        assert t.kind == "b" or name in ("nextafter", "hypot"), "PyTorch takes this dtype"
        return
    found = np.broadcast_to(E.evaluate(graph, [to_numpy(a) for a in args]), args[0].shape)
    wanted = to_numpy(expected)
    if name not in ("angle", "real"):  # a view of a real tensor, or its own promotion
        assert str(expected.dtype) == repr(graph.dtype)
    compare(found, wanted, TOLERANCE.get(t.name, 3e-6), name, args)


def compare(found, wanted, tolerance, name, args):
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
        return
    if found.dtype.kind != "c":
        found, wanted = (v.astype(np.float64) for v in (found, wanted))
        if name not in ("lgamma", "digamma", "minimum", "maximum", "fmin", "fmax"):
            near = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found)[near], np.signbit(wanted)[near])
    bad = ~np.isclose(
        found, wanted, rtol=tolerance, atol=1e-29 if name == "erf" else 1e-40, equal_nan=True
    )
    if name == "truncdiv" and tolerance > 1e-4:  # PyTorch rounds halves, then truncates
        with np.errstate(invalid="ignore"):
            bad &= np.abs(found - wanted) > np.abs(wanted) * tolerance + 1
    if bad.any():
        rows = [[a[bad].tolist()[:8] for a in args], found[bad][:8], wanted[bad][:8]]
        pytest.fail(f"{name}: args, found, wanted = {rows}")


def test_where_fma_complex_cast():
    x = samples(D.float64).numpy()
    a, b = (g.ravel() for g in np.meshgrid(x, x))
    e = E.trace(lambda p, q: E.where(p > q, p, q), [D.float64] * 2)
    np.testing.assert_array_equal(E.evaluate(e, [a, b]), np.where(a > b, a, b))
    e = E.trace(E.complex, [D.float64] * 2)
    wanted = torch.complex(torch.tensor(a), torch.tensor(b)).numpy()
    found = E.evaluate(e, [a, b])
    np.testing.assert_array_equal(found.real, wanted.real)
    np.testing.assert_array_equal(found.imag, wanted.imag)
    e = E.trace(E.fma, [D.float32] * 3)
    p, q, r = np.float32(1 + 2**-12), np.float32(1 - 2**-12), np.float32(-1)
    assert E.evaluate(e, [p, q, r]) == -(2.0**-24)
    small = torch.tensor([0.0, -0.0, 1.7, -1.7, 100.2, math.nan, 3.5])
    for to in TYPES:
        keep = small if to.kind in "fcb" else small[~small.isnan() & (small >= 0)]
        e = E.trace(lambda v, to=to: E.cast(v, to), [D.float32])
        wanted = to_numpy(keep.to(getattr(torch, to.name)))
        found = E.evaluate(e, [keep.numpy()])
        if to is D.bfloat16:
            found, wanted = found.astype(np.float32), wanted.astype(np.float32)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_polygamma(n):
    x = np.array([0.1, 0.5, 1.0, 2.5, 30.0])
    e = E.trace(lambda v: E.polygamma(n, v), [D.float64])
    wanted = torch.polygamma(n, torch.tensor(x)).numpy()
    np.testing.assert_allclose(E.evaluate(e, [x]), wanted, rtol=1e-9)
    assert E.polygamma(n, 0.5) == pytest.approx(float(wanted[1]))


@pytest.mark.parametrize("exponent", [-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 1.7])
def test_constant_powers_are_pytorchs(exponent):
    x = samples(D.float64)
    e = E.trace(lambda v: v**exponent, [D.float64])
    found = np.broadcast_to(E.evaluate(e, [x.numpy()]), x.shape)
    np.testing.assert_allclose(found, (x**exponent).numpy(), rtol=1e-14)
