"""Distributions against PyTorch's: draws at a seed, densities, moments, gradients, divergences."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.distributions.cases import CASES, CONSTRAINTS, TRANSFORMS

DTYPES = ("float32", "float64")
RTOL = {"float32": 2e-5, "float64": 1e-10}
ATOL = {"float32": 2e-6, "float64": 1e-11}


class Side:
    """One library: makes the tensors of a case and remembers those that want gradients."""

    def __init__(self, torch: Any, dtype: str) -> None:
        self.t, self.d, self.c = torch, torch.distributions, torch.distributions.constraints
        self.dtype, self.leaves = getattr(torch, dtype), []

    def f(self, values: Any, grad: bool = True) -> Any:
        made = self.t.tensor(values, dtype=self.dtype, requires_grad=grad)
        self.leaves.append(made)
        return made

    def make(self, text: str) -> Any:
        """The value of a text."""
        return eval(text, {"t": self.t, "d": self.d, "c": self.c, "f": self.f})


@contextmanager
def sides(dtype: str) -> Iterator[tuple[Side, Side]]:
    """Both libraries, with the default dtype the one under test."""
    import torch

    both = Side(antorcha, dtype), Side(torch, dtype)
    before = [side.t.get_default_dtype() for side in both]
    try:
        for side in both:
            side.t.set_default_dtype(side.dtype)
        yield both
    finally:
        for side, was in zip(both, before, strict=True):
            side.t.set_default_dtype(was)


def array(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.detach().numpy() if hasattr(x, "detach") else x)


def check_equal(what: str, mine: Any, theirs: Any, dtype: str, loosely: float = 1.0) -> None:
    """Equal values, shapes, dtypes and error classes."""
    if isinstance(theirs, Exception) or isinstance(mine, Exception):
        assert isinstance(mine, Exception), f"{what}: {mine}, but PyTorch raises {theirs!r}"
        assert isinstance(theirs, Exception), f"{what}: {mine!r}, PyTorch gives {theirs}"
        assert _class_of(mine) is _class_of(theirs), f"{what}: {mine!r} and {theirs!r}"
        return
    if hasattr(theirs, "dtype"):
        assert str(mine.dtype) == str(theirs.dtype), f"{what}: {mine.dtype} and {theirs.dtype}"
    assert array(mine).shape == array(theirs).shape, what
    np.testing.assert_allclose(
        array(mine), array(theirs), rtol=RTOL[dtype] * loosely, atol=ATOL[dtype] * loosely,
        err_msg=what,
    )  # fmt: skip


def _class_of(error: Exception) -> type:
    known = (NotImplementedError, ValueError, AssertionError, AttributeError, TypeError)
    return next((c for c in known if isinstance(error, c)), RuntimeError)


def outcome(run: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run()
        except Exception as error:
            return error


def draw(side: Side, dist: Any, method: str, shape: tuple[int, ...]) -> Any:
    side.t.manual_seed(11)
    return outcome(lambda: getattr(dist, method)(shape))


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_distribution(name: str) -> None:
    for args in CASES[name]:
        for dtype in DTYPES:
            with sides(dtype) as both:
                one_case(f"{name}({args})", dtype, both)


def one_case(args: str, dtype: str, both: tuple[Side, Side]) -> None:
    mine, theirs = [side.make(f"d.{args}") for side in both]
    what = f"{args} {dtype}"

    def compare(label: str, run: Any, loosely: float = 1.0) -> None:
        results = [outcome(lambda dist=dist, side=side: run(dist, side))
                   for dist, side in ((mine, both[0]), (theirs, both[1]))]  # fmt: skip
        check_equal(f"{what}: {label}", *results, dtype, loosely)

    assert tuple(mine.batch_shape) == tuple(theirs.batch_shape), what
    assert tuple(mine.event_shape) == tuple(theirs.event_shape), what
    assert (mine.has_rsample, mine.has_enumerate_support) == (
        theirs.has_rsample, theirs.has_enumerate_support), what  # fmt: skip
    if "requires_grad" not in repr(theirs) and "LKJ" not in what:
        assert repr(mine).split("(")[0] == repr(theirs).split("(")[0]
    assert list(mine.arg_constraints) == list(theirs.arg_constraints), what
    for label in ("mean", "mode", "variance", "stddev"):
        compare(label, lambda dist, side, label=label: getattr(dist, label), 5)
    compare("entropy", lambda dist, side: dist.entropy(), 5)
    compare("perplexity", lambda dist, side: dist.perplexity(), 10)
    compare("enumerate", lambda dist, side: dist.enumerate_support())
    compare("enumerate unexpanded", lambda dist, side: dist.enumerate_support(expand=False))
    for shape in ((), (3,), (7, 4)):
        samples = [draw(side, dist, "sample", shape) for side, dist in
                   zip(both, (mine, theirs), strict=True)]  # fmt: skip
        check_equal(f"{what}: sample{shape}", *samples, dtype, 20)
        check_equal(
            f"{what}: rsample{shape}",
            *[draw(side, dist, "rsample", shape) for side, dist in
              zip(both, (mine, theirs), strict=True)],
            dtype, 20,
        )  # fmt: skip
    values = array(samples[1])

    def value_of(side: Side) -> Any:
        return side.t.tensor(values.tolist(), dtype=getattr(side.t, values.dtype.name))

    assert mine.support.check(value_of(both[0])).all(), what
    compare("log_prob", lambda dist, side: dist.log_prob(value_of(side)), 50)
    compare("cdf", lambda dist, side: dist.cdf(value_of(side)), 20)
    chance = np.random.default_rng(1).random(values.shape)
    compare("icdf", lambda dist, side: dist.icdf(side.f(chance.tolist(), False)), 20)
    bigger = (2, *mine.batch_shape)
    grown = [dist.expand(bigger) for dist in (mine, theirs)]
    assert tuple(grown[0].batch_shape) == tuple(grown[1].batch_shape) == bigger
    samples = [draw(s, dist, "sample", (3,)) for s, dist in zip(both, grown, strict=True)]
    check_equal(f"{what}: sample of expanded", *samples, dtype, 20)
    wide = array(samples[1])
    rated = [
        dist.log_prob(side.t.tensor(wide.tolist(), dtype=getattr(side.t, wide.dtype.name)))
        for side, dist in zip(both, grown, strict=True)
    ]
    check_equal(f"{what}: log_prob of expanded", *rated, dtype, 50)
    gradients(what, both, (mine, theirs), value_of, dtype)
    again = pickle.loads(pickle.dumps(copy.deepcopy(mine))) if not leaves(both) else None
    if again is not None:
        check_equal(f"{what}: pickled", draw(both[0], again, "sample", (3,)),
                    draw(both[0], mine, "sample", (3,)), dtype)  # fmt: skip


def leaves(both: Any) -> bool:
    return any(leaf.requires_grad for leaf in both[0].leaves)


def gradients(what: str, both: Any, dists: Any, value_of: Any, dtype: str) -> None:
    """Of log_prob and of rsample, in all parameters."""
    if not leaves(both):
        return
    for label in ("log_prob", "rsample"):
        found = []
        for side, dist in zip(both, dists, strict=True):
            wanted = [leaf for leaf in side.leaves if leaf.requires_grad]
            result = (
                outcome(lambda dist=dist, side=side: dist.log_prob(value_of(side)))
                if label == "log_prob"
                else draw(side, dist, "rsample", (4,))
            )
            if isinstance(result, Exception) or not result.requires_grad:
                found.append(None)
                continue
            weights = side.t.arange(result.numel(), dtype=side.dtype).reshape(result.shape) + 1
            total = (result * weights).sum()
            found.append(outcome(lambda total=total, side=side, wanted=wanted: side.t.autograd.grad(
                total, wanted, retain_graph=True, allow_unused=True)))  # fmt: skip
        if isinstance(found[1], RuntimeError) and "inplace" in str(found[1]):
            continue  # PyTorch's Wishart writes to a mask that it has saved
        if found[1] is None:
            assert found[0] is None, f"{what}: {label} has a gradient, PyTorch's has none"
            continue
        assert found[0] is not None, f"{what}: {label} has no gradient, PyTorch's has"
        for k, (a, b) in enumerate(zip(*found, strict=True)):
            assert (a is None) == (b is None), f"{what}: gradient {k} of {label}"
            if a is not None:
                if "scale_tril" in what and a.dim() >= 2:
                    a, b = a.tril(), b.tril()  # above the diagonal a factor has nothing
                scale = max(1.0, float(abs(array(b)).max()))
                check_equal(f"{what}: gradient {k} of {label}", a / scale, b / scale, dtype, 200)


@pytest.mark.oracle
def test_divergences() -> None:
    """Every pair that PyTorch registers, for all cases with compatible shapes; any other raises."""
    with sides("float64") as both:
        compare_divergences(both)


def compare_divergences(both: tuple[Side, Side]) -> None:
    registry = both[1].d.kl._KL_REGISTRY
    names = {(p.__name__, q.__name__) for p, q in both[0].d.kl._KL_REGISTRY}
    assert names == {(p.__name__, q.__name__) for p, q in registry}
    made = {name: [[side.make(f"d.{name}({args})") for side in both] for args in CASES[name]]
            for name in CASES}  # fmt: skip
    compared = 0
    for p, q in sorted(names):
        for mine_p, theirs_p in made.get(p, ()):
            for mine_q, theirs_q in made.get(q, ()):
                shapes = {tuple(theirs_p.batch_shape), tuple(theirs_q.batch_shape)}
                if len(shapes - {()}) > 1:
                    continue  # PyTorch writes infinities into whole rows where shapes differ
                theirs = outcome(lambda a=theirs_p, b=theirs_q: both[1].d.kl_divergence(a, b))
                if isinstance(theirs, (RuntimeError, IndexError)) and not isinstance(
                    theirs, NotImplementedError
                ):
                    continue  # the batches do not broadcast
                mine = outcome(lambda a=mine_p, b=mine_q: both[0].d.kl_divergence(a, b))
                check_equal(f"KL({theirs_p!r} || {theirs_q!r})", mine, theirs, "float64", 20)
                compared += 1
    assert compared > 200
    with pytest.raises(NotImplementedError, match="No KL"):
        both[0].d.kl_divergence(made["Cauchy"][0][0], made["Normal"][0][0])


@pytest.mark.oracle
@pytest.mark.parametrize("text", TRANSFORMS)
def test_transform(text: str) -> None:
    for dtype in DTYPES:
        with sides(dtype) as both:
            one_transform(text, dtype, both)


def one_transform(text: str, dtype: str, both: tuple[Side, Side]) -> None:
    mine, theirs = [side.make(text) for side in both]
    inputs = [side.make(TRANSFORMS[text]) for side in both]
    outs = [t(x) for t, x in zip((mine, theirs), inputs, strict=True)]
    check_equal(f"{text}: forward", *outs, dtype, 5)
    for label, run in (
        ("inverse", lambda t, x, y: t.inv(y)),
        ("jacobian", lambda t, x, y: t.log_abs_det_jacobian(x, y)),
        ("cached", lambda t, x, y: t.with_cache(1).inv(t.with_cache(1)(x))),
        ("inverse's jacobian", lambda t, x, y: t.inv.log_abs_det_jacobian(y, x)),
        ("sign", lambda t, x, y: t.sign),
    ):
        results = [
            outcome(lambda t=t, x=x, y=y, run=run: run(t, x, y))
            for t, x, y in zip((mine, theirs), inputs, outs, strict=True)
        ]
        check_equal(f"{text}: {label}", *results, dtype, 50)
    assert repr(mine) == repr(theirs)
    assert mine.bijective == theirs.bijective
    for label, x in (("forward_shape", inputs), ("inverse_shape", outs)):
        shapes = [tuple(getattr(t, label)(each.shape))
                  for t, each in zip((mine, theirs), x, strict=True)]  # fmt: skip
        assert shapes[0] == shapes[1], label
    for label in ("domain", "codomain"):
        assert repr(getattr(mine, label)) == repr(getattr(theirs, label))
    assert mine == mine.inv.inv


@pytest.mark.oracle
@pytest.mark.parametrize("text", CONSTRAINTS)
def test_constraint(text: str) -> None:
    with sides("float64") as both:
        one_constraint(text, both)


def one_constraint(text: str, both: tuple[Side, Side]) -> None:
    mine, theirs = [side.make(f"c.{text}") for side in both]
    checks = [one.check(side.make(CONSTRAINTS[text])) for one, side in
              zip((mine, theirs), both, strict=True)]  # fmt: skip
    check_equal(text, *checks, "float64")
    assert (mine.is_discrete, mine.event_dim) == (theirs.is_discrete, theirs.event_dim)
    if " object at" not in repr(theirs):
        assert repr(mine) == repr(theirs)
    for registry in ("biject_to", "transform_to"):
        found = [outcome(lambda side=side, one=one, name=registry: getattr(side.d, name)(one))
                 for side, one in zip(both, (mine, theirs), strict=True)]  # fmt: skip
        if isinstance(found[1], Exception):
            assert isinstance(found[0], NotImplementedError)
            continue
        assert repr(found[0]) == repr(found[1])


@pytest.mark.oracle
def test_representation_and_refusals() -> None:
    """The same text, and for bad arguments the same errors."""
    with sides("float32") as both:
        compare_texts_and_errors(both)


def compare_texts_and_errors(both: tuple[Side, Side]) -> None:
    for text in (
        "d.Normal(t.zeros(3), 1.0)", "d.Normal(0.0, 1.0)", "d.Gamma(t.ones(2), 1.0)",
        "d.MultivariateNormal(t.zeros(2), t.eye(2))", "d.Chi2(t.ones(2))", "d.Beta(1.0, 2.0)",
        "d.Independent(d.Normal(t.zeros(3), 1.0), 1)", "d.Uniform(0.0, 1.0)",
        "d.Categorical(t.ones(2))", "d.LogNormal(0.0, 1.0)", "d.Multinomial(3, t.ones(2))",
        "d.MixtureSameFamily(d.Categorical(t.ones(2)), d.Normal(t.zeros(2), 1.0))",
        "d.Normal(0.0, 1.0).support", "d.Normal.arg_constraints", "d.Beta(1.0, 2.0).support",
        "d.Binomial(3, 0.5).support", "d.Dirichlet.arg_constraints",
        "d.Bernoulli(logits=t.zeros(3)).arg_constraints",
    ):  # fmt: skip
        assert repr(both[0].make(text)) == repr(both[1].make(text))
    for text in (
        "d.Normal(0.0, -1.0)", "d.Normal('a', 1.0)", "d.Bernoulli()", "d.Bernoulli(0.5, 0.5)",
        "d.Bernoulli(1.5)", "d.Categorical(t.tensor(0.5))", "d.Normal(0.0, 1.0).log_prob(1.0)",
        "d.Normal(t.zeros(3), 1.0).log_prob(t.zeros(2))",
        "d.Beta(1.0, 1.0).log_prob(t.tensor(2.0))",
        "d.Categorical(t.ones(2)).log_prob(t.tensor(3))", "d.Uniform(1.0, 0.0)",
        "d.Multinomial(t.tensor(3), t.ones(2))", "d.Dirichlet(t.tensor(1.0))",
        "d.MultivariateNormal(t.zeros(2))", "d.MultivariateNormal(t.zeros(2), -t.eye(2))",
        "d.MultivariateNormal(t.tensor(0.0), t.eye(2))", "d.Independent(d.Normal(0.0, 1.0), 1)",
        "d.TransformedDistribution(d.Normal(0.0, 1.0), 3)", "d.Geometric(0.0)",
        "d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform())",
        "d.Binomial(t.tensor([3., 4.]), 0.5).entropy()", "d.Wishart(t.tensor(1.0), t.eye(3))",
        "d.Poisson(-1.0)", "d.Normal(0.0, 1.0).enumerate_support()", "d.LKJCholesky(1)",
        "d.Gamma(1.0, 1.0).icdf(t.tensor(0.5))", "d.AffineTransform(0, 1, cache_size=2)",
        "d.Normal(0.0, 1.0, validate_args=False).log_prob(1.0)", "d.Poisson(1.0).rsample()",
        "d.Distribution().mean", "d.transform_to(c.dependent)", "d.register_kl(3, 4)",
        "d.biject_to.register(3, 4)", "d.ReshapeTransform((2,), (3,))",
        "d.Normal(0.0, 1.0).expand((2,)).expand((3,))", "c.dependent.check(t.ones(1))",
        "d.Distribution.set_default_validate_args(3)", "c.dependent.event_dim",
    ):  # fmt: skip
        mine, theirs = [outcome(lambda side=side, text=text: side.make(text)) for side in both]
        if isinstance(theirs, Exception):
            assert isinstance(mine, Exception), f"{text}: PyTorch raises {theirs!r}"
            assert _class_of(mine) is _class_of(theirs), f"{text}: {mine!r} and {theirs!r}"
        else:
            check_equal(text, mine, theirs, "float32")


def test_subclasses_expand_as_far_as_they_can() -> None:
    d = antorcha.distributions

    class Plain(d.Normal):
        pass

    class Own(d.Normal):
        def __init__(self, loc: Any) -> None:
            super().__init__(loc, 1.0)

    assert type(Plain(0.0, 1.0).expand((2,))) is Plain
    with pytest.raises(NotImplementedError, match="custom __init__"):
        Own(0.0).expand((2,))
    with pytest.raises(NotImplementedError):
        d.Distribution(validate_args=False).expand((2,))


def test_lazy_import_and_the_name_of_pytorch() -> None:
    code = """
import sys, antorcha
assert "antorcha.distributions" not in sys.modules
antorcha.torch_alias.install(hide=True)
import torch.distributions as dist
from torch.distributions import Normal, constraints
from torch.distributions.normal import Normal as again
from torch.distributions.kl import kl_divergence
assert dist is antorcha.distributions and Normal is again
assert dist.kl.kl_divergence is kl_divergence
"""
    subprocess.run([sys.executable, "-c", code], check=True)
