"""Derivatives: every rule against central differences, conventions against PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import antorcha.lang.expr as E
from antorcha.core import dtypes as D
from antorcha.errors import GraphError

F, DBL, C = D.float32, D.float64, D.complex128

POINTS = np.array([0.37, 0.81, -0.43, 1.7, -2.3, 3.1, 0.05])
INSIDE = np.array([0.37, 0.81, -0.43, 0.05, -0.9])  # of the unit interval
POSITIVE = np.array([0.37, 0.81, 1.7, 3.1, 0.05])
SKIP = {
    "cast",
    "detach",
    "nextafter",
    "polygamma",
    "real",
    "imag",
    "conj",
    "complex",
    "sgn",
    "angle",
    "zeta",
    "polygamma_by_order",
    "gammainc",
    "gammaincc",
}
NAMES = sorted(
    n for n, r in E.OPS.items()
    if r.grads and any(r.grads) and not r.reduction and not r.compares and n not in SKIP
)  # fmt: skip


def points(name):
    """Numbers in the domain that the op's record states."""
    low, high = E.OPS[name].domain
    if math.isinf(low):
        return POINTS
    return low + POSITIVE if math.isinf(high) else (low + high) / 2 + (high - low) / 2 * INSIDE


def central(fn, args, k, h=1e-6):
    up, down = list(args), list(args)
    up[k], down[k] = args[k] + h, args[k] - h
    return (fn(*up) - fn(*down)) / (2 * h)


@pytest.mark.parametrize("name", NAMES)
def test_central_differences(name):
    record = E.OPS[name]
    x = points(name)
    rng = np.random.default_rng(0)
    args = [x, *(rng.permutation(points(name)) * 1.1 for _ in range(record.arity - 1))]
    if record.head:
        graph = E.trace(lambda a, b, c: record(a > 0, b, c), [DBL] * 3)
    else:
        graph = E.trace(lambda *xs: record(*xs), [DBL] * record.arity)

    def value(*xs):
        return E.evaluate(graph, xs)

    for k in range(record.head, record.arity):
        found = E.evaluate(E.derivative(graph, k), args)
        expected = central(value, args, k)
        np.testing.assert_allclose(np.broadcast_to(found, x.shape), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", [n for n in NAMES if E.OPS[n].arity == 1])
def test_second_order(name):
    x = points(name)
    graph = E.trace(lambda v: E.OPS[name](v), [DBL])
    first = E.derivative(graph, 0)
    second = np.broadcast_to(E.evaluate(E.derivative(first, 0), [x]), x.shape)
    expected = np.broadcast_to(central(lambda v: E.evaluate(first, [v]), [x], 0), x.shape)
    np.testing.assert_allclose(second, expected, rtol=1e-4, atol=1e-6)


def test_polygamma():
    graph = E.trace(lambda x: E.polygamma(2, x), [DBL])
    found = E.evaluate(E.derivative(graph, 0), [POSITIVE])
    expected = central(lambda v: E.evaluate(graph, [v]), [POSITIVE], 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(("name", "first", "named"), [
    ("zeta", 2.5, "zeta"), ("polygamma_by_order", 2.0, "polygamma"), ("gammainc", 1.5, "igamma"),
    ("gammaincc", 1.5, "igammac"),
])  # fmt: skip
def test_second_operands(name, first, named):
    """The first operand has no derivative, as in PyTorch."""
    op = E.OPS[name]
    graph = E.trace(lambda q: op(first, q), [DBL])
    found = E.evaluate(E.derivative(graph, 0), [POSITIVE])
    expected = central(lambda v: E.evaluate(graph, [v]), [POSITIVE], 0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(NotImplementedError, match=named):
        E.derivative(E.trace(lambda x: op(x, 1.5), [DBL]), 0)


def test_shared_subexpressions_stay_shared():
    def tower(x):
        for _ in range(60):
            x = x * x  # as a tree: 2**60 leaves
        return x

    d = E.derivative(E.trace(tower, [DBL]), 0)
    assert E.count_ops(d) < 300
    assert float(E.evaluate(d, [1.0])) == 2.0**60


def test_gradient_of_all_inputs():
    e = E.trace(lambda x, y, z: x * z + E.sin(z), [F, F, F])
    gx, gy, gz = E.gradient(e)
    assert (str(gx), str(gy), str(gz)) == ("x2", "0.0", "cos(x2) + x0")
    assert E.gradient(E.const(1.0, F)) == ()


def test_no_gradient_paths():
    e = E.trace(lambda x, i: x * i + E.floor(x), [F, D.int64])
    assert str(E.derivative(e, 0)) == "cast(x1, float32)"
    with pytest.raises(GraphError, match=r"torch\.int64; only floats"):
        E.derivative(e, 1)
    assert str(E.derivative(E.trace(lambda x: x * x.detach(), [F]), 0)) == "detach(x0)"
    with pytest.raises(GraphError, match="'nextafter' has no derivative"):
        E.derivative(E.trace(lambda x: E.nextafter(x, 1.0), [F]), 0)


def test_derivative_with_respect_to_a_node():
    x = E.input_(0, DBL)
    y = E.exp(x)
    assert str(E.derivative(y * y, y)) == "t0 = exp(x0); t0 + t0"


def test_pullback():
    e = E.trace(E.sigmoid, [F])
    (g,), inputs = E.pullback(e)
    assert str(g) == "t0 = sigmoid(x1); x0 * ((1.0 - t0) * t0)"
    assert len(inputs) == 2
    (g,), inputs = E.pullback(e, keep=(0,))
    assert str(g) == "x0 * ((1.0 - x2) * x2)"
    assert [i.payload for i in inputs] == [0, 1, 2]
    grads, _ = E.pullback(E.trace(lambda x, i, y: (x * y, x > 0), [F, D.int64, F]))
    assert [str(g) for g in grads] == ["x0 * x4", "None", "x0 * x2"]


torch = pytest.importorskip("torch")
oracle = pytest.mark.oracle
IN_TORCH = [n for n in NAMES if hasattr(torch, E.OPS[n].public)]


def by_torch(fn, args):
    xs = [torch.tensor(a, requires_grad=True) for a in args]
    grads = torch.autograd.grad(fn(*xs).sum(), xs, allow_unused=True)
    return [np.zeros_like(a) if g is None else g.numpy() for g, a in zip(grads, args, strict=True)]


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 2.0, math.inf, -math.inf, math.nan, 0.5])


@oracle
@pytest.mark.parametrize(
    "name",
    ["maximum", "minimum", "fmax", "fmin", "copysign", "pow", "hypot", "atan2", "remainder", "fmod",
     "mul", "div", "sub"],
)  # fmt: skip
def test_binary_conventions(name):
    args = [g.ravel().copy() for g in np.meshgrid(EDGES, EDGES)]
    graph = E.trace(getattr(E, name), [DBL, DBL])
    expected = by_torch(getattr(torch, name), args)
    for k in range(2):
        found = np.broadcast_to(E.evaluate(E.derivative(graph, k), args), args[0].shape)
        np.testing.assert_allclose(found, expected[k], rtol=1e-12)


@oracle
@pytest.mark.parametrize("name", [n for n in IN_TORCH if E.OPS[n].arity == 1])
def test_unary_conventions(name):
    public = E.OPS[name].public
    graph = E.trace(E.OPS[name], [DBL])
    # Off their domain these differ: we factor acosh's square root, SciPy has digamma's poles.
    x = EDGES[EDGES >= 1] if name in ("acosh", "digamma") else EDGES
    (expected,) = by_torch(getattr(torch, public), [x])
    found = np.broadcast_to(E.evaluate(E.derivative(graph, 0), [x]), x.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-8 if name == "digamma" else 1e-12)


@oracle
def test_relu_and_clamp():
    for ours, theirs in [
        (E.relu, torch.relu),
        (lambda x: E.clamp(x, -1, 1), lambda x: torch.clamp(x, -1, 1)),
    ]:
        x = EDGES[~np.isnan(EDGES)]
        (expected,) = by_torch(theirs, [x])
        graph = E.trace(ours, [DBL])
        np.testing.assert_array_equal(E.evaluate(E.derivative(graph, 0), [x]), expected)


Z = np.array([0.3 + 0.7j, -1.2 + 0.4j, 0.9 - 1.1j, 2.0 + 0.1j])
W = Z[::-1] * (0.7 - 0.3j)
COMPLEX_UNARY = ["real", "imag", *[
    n for n, r in E.OPS.items()
    if r.complex_rule and r.grads and any(r.grads) and r.arity == 1 and not r.reduction
]]  # fmt: skip


def complex_check(ours, theirs, args):
    xs = [torch.tensor(a, requires_grad=True) for a in args]
    y = theirs(*xs)
    cotangent = (torch.arange(len(args[0])) + 1.0).to(y.dtype)
    if y.is_complex():
        cotangent = cotangent * (0.6 - 0.8j)
    expected = torch.autograd.grad(y, xs, cotangent)
    types = [C if np.iscomplexobj(a) else DBL for a in args]
    graph = E.trace(ours, types)
    np.testing.assert_allclose(
        E.evaluate(graph, args), y.detach().resolve_conj().numpy(), rtol=1e-9
    )
    grads, _ = E.pullback(graph)
    values = {0: cotangent.numpy()} | {1 + k: a for k, a in enumerate(args)}
    for g, e in zip(grads, expected, strict=True):
        assert g is not None
        found = E.evaluate(g, [values[k] for k in range(1 + len(args))])
        np.testing.assert_allclose(found, e.resolve_conj().numpy(), rtol=1e-9, atol=1e-12)


@oracle
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_complex_unary(name):
    complex_check(getattr(E, name), getattr(torch, name), [Z])


@oracle
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_complex_binary(name):
    complex_check(getattr(E, name), getattr(torch, name), [Z, W])
    complex_check(getattr(E, name), getattr(torch, name), [Z, POSITIVE[:4].copy()])


@oracle
def test_complex_parts():
    complex_check(E.complex, torch.complex, [POINTS[:4].copy(), POINTS[1:5].copy()])
    complex_check(lambda x: abs(x * 1j + 2), lambda x: (x * 1j + 2).abs(), [POINTS[:4].copy()])


def run_on_torch(name, args):
    """The hook that the ops layer installs, here with PyTorch's tensors."""
    if name == "cast":
        return args[0].to(args[1])
    if name == "trunc_divide":
        return torch.div(*args, rounding_mode="trunc")
    args = [torch.tensor(a) if name in ("copysign",) and isinstance(a, float) else a for a in args]
    return getattr(torch if hasattr(torch, name) else torch.special, name)(*args)


@oracle
@pytest.mark.parametrize("name", [n for n in IN_TORCH if not E.OPS[n].head])
def test_rules_run_on_tensors(name):
    record = E.OPS[name]
    x = points(name)
    args = [torch.tensor(x * (1 + 0.1 * k), requires_grad=True) for k in range(record.arity)]
    if name == "truncdiv":
        pytest.skip("no gradient")
    y = getattr(torch, record.public)(*args)
    g = torch.linspace(0.5, 2, len(x), dtype=torch.float64)
    wanted = torch.autograd.grad(y, args, g, allow_unused=True)
    old = E.set_dispatch(run_on_torch)
    try:
        plain = [a.detach() for a in args]
        for rule, w in zip(record.grads, wanted, strict=True):
            if rule is not None:
                np.testing.assert_allclose(rule(g, *plain, y.detach()), w, rtol=1e-8)
    finally:
        E.set_dispatch(old)


def test_threads_share_nodes():
    from concurrent.futures import ThreadPoolExecutor

    def build(_):
        return [E.trace(lambda x, k=k: E.exp(x * (0.001 * k)) + k, [DBL]) for k in range(100)]

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(build, range(4))
    for other in others:
        assert all(a is b for a, b in zip(first, other, strict=True))
