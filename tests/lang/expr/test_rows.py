"""Row programs: passes, and softmax, norms and their gradients against PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import antorcha.lang.expr as E
from antorcha.core import dtypes as D
from antorcha.errors import ArgumentError

F, H, DBL, L, B = D.float32, D.float16, D.float64, D.int64, D.bool_
torch = pytest.importorskip("torch")
oracle = pytest.mark.oracle


def softmax(x):
    e = E.exp(x - E.detach(x.max()))
    return e / e.sum()


def plain_softmax(x):
    e = E.exp(x - x.max())
    return e / e.sum()


def log_softmax(x):
    d = x - E.detach(x.max())
    return d - E.log(E.exp(d).sum())


def layer_norm(x, w, b):
    d = x - x.mean()
    return d * E.rsqrt((d * d).mean() + 1e-5) * w + b


def rms_norm(x, w):
    return x * E.rsqrt((x * x).mean() + 1e-5) * w


def cross_entropy(x, label):
    d = x - E.detach(x.max())
    return E.log(E.exp(d).sum()) - E.where(E.position() == label, d, 0).sum()


def standardize(x):
    return x.mean(), x.std(), (x - x.mean()) / x.std()


T = torch.nn.functional
N = 7
CASES = {
    "softmax": (softmax, lambda x: T.softmax(x, -1), ["row"]),
    "plain_softmax": (plain_softmax, lambda x: T.softmax(x, -1), ["row"]),
    "log_softmax": (log_softmax, lambda x: T.log_softmax(x, -1), ["row"]),
    "layer_norm": (layer_norm, lambda x, w, b: T.layer_norm(x, [N], w, b), ["row", "one", "one"]),
    "rms_norm": (rms_norm, lambda x, w: T.rms_norm(x, [N], w, 1e-5), ["row", "one"]),
    "logsumexp": (lambda x: x.logsumexp(), lambda x: x.logsumexp(-1), ["row"]),
    "std": (lambda x: x.std(), lambda x: x.std(-1), ["row"]),
    "var": (lambda x: x.var(0), lambda x: x.var(-1, correction=0), ["row"]),
    "amax": (lambda x: x.max(), lambda x: x.amax(-1), ["row"]),
    "amin": (lambda x: x.min(), lambda x: x.amin(-1), ["row"]),
    "prod": (lambda x: x.prod(), lambda x: x.prod(-1), ["row"]),
    "scaled": (
        lambda x, s: E.tanh(x * s).sum() + s, lambda x, s: (x * s[..., None]).tanh().sum(-1) + s,
        ["row", "per"],
    ),
    "standardize": (
        standardize,
        lambda x: (x.mean(-1), x.std(-1), (x - x.mean(-1, True)) / x.std(-1, keepdim=True)),
        ["row"],
    ),
    "weighted": (
        lambda x, s: (x * s, (x + s).sum()),
        lambda x, s: (x * s[..., None], (x + s[..., None]).sum(-1)), ["row", "per"],
    ),
}  # fmt: skip


def arguments(kinds):
    rng = np.random.default_rng(1)
    shapes = {"row": (5, N), "one": (N,), "per": (5,)}
    args = [rng.standard_normal(shapes[k]) for k in kinds]
    args[0][0, 1] = args[0][0, 2]
    types = [E.per_row(DBL) if k == "per" else DBL for k in kinds]
    return args, types


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


@oracle
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_against_torch(name, kept):
    ours, theirs, kinds = CASES[name]
    args, types = arguments(kinds)
    program = E.trace_rows(ours, types)
    xs = [torch.tensor(a, requires_grad=True) for a in args]
    wanted = as_tuple(theirs(*xs))
    found = as_tuple(program.evaluate(args))
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f, w.detach().numpy(), rtol=1e-10)

    rng = np.random.default_rng(2)
    gs = [rng.standard_normal(w.shape) for w in wanted]
    grads = torch.autograd.grad(wanted, xs, [torch.tensor(g) for g in gs])
    keep = range(len(found)) if kept else ()
    back = program.gradient(keep=tuple(keep))
    assert back.wrt == tuple(range(len(args)))
    results = as_tuple(back.evaluate([*gs, *args, *(found[k] for k in keep)]))
    for r, g, a in zip(results, grads, args, strict=True):
        if r.ndim > a.ndim:
            r = r.sum(0)  # a row shared by all rows
        np.testing.assert_allclose(r, g.numpy(), rtol=1e-8, atol=1e-12)


@oracle
def test_cross_entropy():
    rng = np.random.default_rng(3)
    x, label = rng.standard_normal((5, N)), rng.integers(0, N, 5)
    program = E.trace_rows(cross_entropy, [DBL, E.per_row(L)])
    assert program.rows == (False,)
    t = torch.tensor(x, requires_grad=True)
    wanted = T.cross_entropy(t, torch.tensor(label), reduction="none")
    np.testing.assert_allclose(program.evaluate([x, label]), wanted.detach(), rtol=1e-12)
    (g,) = torch.autograd.grad(wanted.sum(), t)
    back = program.gradient()
    assert back.wrt == (0,)
    np.testing.assert_allclose(back.evaluate([np.ones(5), x, label]), g, atol=1e-12)


@oracle
def test_second_order():
    x = torch.randn(3, N, dtype=torch.float64, requires_grad=True)
    g = torch.randn(3, N, dtype=torch.float64, requires_grad=True)
    h = torch.randn(3, N, dtype=torch.float64)
    (first,) = torch.autograd.grad(T.softmax(x, -1), x, g, create_graph=True)
    wanted = torch.autograd.grad(first, [g, x], h)
    twice = E.trace_rows(softmax, [DBL]).gradient().gradient()
    found = twice.evaluate([v.detach().numpy() for v in (h, g, x)])
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f, w.numpy(), atol=1e-12)


def test_schedule_of_softmax():
    program = E.trace_rows(softmax, [F])
    assert repr(program) == "<row program t0 = exp(x0 - detach(x0.amax())); t0 / t0.sum()>"
    first, second, last = program.schedule()
    assert [p.outputs for p in (first, second, last)] == [(), (), (0,)]
    assert [str(e) for e in first.reductions] == ["x0.amax()"]
    assert [str(e.args[0]) for e in second.reductions] == ["exp(x0 - detach(x0.amax()))"]
    assert last.reductions == ()
    assert all(p.reads == (0,) for p in (first, second, last))
    lowered = program.opmath()
    assert lowered.schedule()[1].hoisted == ()  # detach is gone


def test_schedule_shares_passes():
    program = E.trace_rows(lambda x, y: (x.sum() + y.max(), x * y.sum(), x.argmax()), [F, F])
    assert program.rows == (False, True, False)
    first, last = program.schedule()
    assert len(first.reductions) == 4
    assert first.reads == (0, 1)
    assert last.reads == (0,)
    assert last.outputs == (1,)
    pointwise = E.trace_rows(lambda x: x * 2, [F]).schedule()
    assert len(pointwise) == 1
    hoist = E.trace_rows(lambda x, s: x * E.exp(s), [F, E.per_row(F)]).schedule()
    assert [str(e) for e in hoist[0].hoisted] == ["exp(x1)"]


def schedule_evaluate(program, args):
    """What a device does: pass by pass, each seeing only what earlier passes found."""
    found = {}
    n = args[0].shape[-1]
    inputs = [a if i.is_row else a[..., None] for a, i in zip(args, program.inputs, strict=True)]

    def value(expr):
        known = {e: E.input_(1000 + k, e.dtype) for k, e in enumerate(found)}
        values = dict(enumerate(inputs)) | {1000 + k: v for k, v in enumerate(found.values())}
        return E.evaluate(
            E.substitute(expr, known), [values.get(k) for k in range(1000 + len(found))], length=n
        )

    outputs = {}
    for step in program.schedule():
        new = {e: value(e) for e in step.reductions}
        for k in step.outputs:
            outputs[k] = value(program.outputs[k])
        found |= new
    for k, is_row in enumerate(program.rows):
        if not is_row:
            outputs[k] = value(program.outputs[k])[..., 0]
    return [outputs[k] for k in range(len(outputs))]


@pytest.mark.parametrize("name", CASES)
def test_passes_give_the_same(name):
    ours, _, kinds = CASES[name]
    args, types = arguments(kinds)
    program = E.trace_rows(ours, types)
    for found, wanted in zip(
        schedule_evaluate(program, args), as_tuple(program.evaluate(args)), strict=True
    ):
        np.testing.assert_array_equal(*np.broadcast_arrays(found, wanted))


@oracle
def test_halves_accumulate_in_float32():
    x = torch.randn(4, 4096).half()
    program = E.trace_rows(lambda x: x.sum(), [H]).opmath()
    np.testing.assert_array_equal(program.evaluate([x.numpy()]), x.float().sum(-1).half().numpy())
    program = E.trace_rows(lambda x: x.mean(), [H]).opmath()
    wanted = (torch.ones(1, 70_000).half()).mean(-1)
    assert program.evaluate([np.ones((1, 70_000), np.float16)]) == wanted.numpy()


@oracle
@pytest.mark.parametrize("name", ["argmax", "argmin", "amax", "amin", "sum", "prod"])
def test_edge_values(name):
    rows = [[0.0, math.nan, 3.0], [math.inf, -math.inf, 1.0], [2.0, 2.0, -2.0], [-0.0, -0.0, -0.0]]
    x = np.array(rows, np.float32)
    program = E.trace_rows(lambda v: getattr(v, name)(), [F])
    np.testing.assert_array_equal(program.evaluate([x]), getattr(torch.tensor(x), name)(-1).numpy())
    ints = np.array([[1, 2, 3], [-1, 5, 5]], np.int32)
    program = E.trace_rows(lambda v: getattr(v, name)(), [D.int32])
    wanted = getattr(torch.tensor(ints), name)(-1).numpy()
    found = program.evaluate([ints])
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_any_all_position_length():
    program = E.trace_rows(
        lambda x: ((x > 0).any(), (x > 0).all(), E.where(E.position() < 2, x, 0), E.length()), [F]
    )
    some, every, masked, n = program.evaluate([np.array([[1.0, -1.0, 2.0], [1.0, 1.0, 1.0]])])
    assert some.tolist() == [True, True]
    assert every.tolist() == [False, True]
    assert masked.tolist() == [[1, -1, 0], [1, 1, 0]]
    assert n.tolist() == [3, 3]


def test_prod_gradient_at_zeros():
    x = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]])
    back = E.trace_rows(lambda v: v.prod(), [DBL]).gradient()
    found = back.evaluate([np.ones(3), x])
    assert found.tolist() == [[0, 6, 0], [0, 0, 0], [6, 3, 2]]


def test_keys_and_errors():
    p = E.trace_rows(softmax, [F])
    assert p.__native_key__() != E.trace_rows(softmax, [H]).__native_key__()
    a = E.trace_rows(lambda x, s: x * s, [F, F])
    b = E.trace_rows(lambda x, s: x * s, [F, E.per_row(F)])
    assert a.__native_key__() != b.__native_key__()
    with pytest.raises(ArgumentError, match="no gradient flows"):
        E.trace_rows(lambda x: x.argmax(), [F]).gradient()
    s = E.trace_rows(lambda x, eps: x / (x.sum() + eps), [F], {"eps": F})
    assert s.scalars == {"eps": F}
    assert s.evaluate([np.ones((1, 3))], {"eps": 1.0}).tolist() == [[0.25] * 3]
