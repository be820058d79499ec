"""Reductions, extrema and statistics against PyTorch (and NumPy where it is not installed)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import DTYPES, compare, data, needs_torch

NAN, INF = math.nan, math.inf
PLAIN = ("sum", "mean", "prod", "max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "any",
         "all", "count_nonzero", "var", "std", "var_mean", "std_mean", "nansum", "nanmean",
         "norm", "median", "nanmedian")  # fmt: skip
ALONG = (*PLAIN, "logsumexp")
SMOOTH = ("sum", "mean", "prod", "max", "min", "amax", "amin", "var", "std", "var_mean", "std_mean",
          "nansum", "norm", "logsumexp", "nanmean")  # fmt: skip
NAMED = {"aminmax": {"dim": 1}, "norm": {"dim": 1}}


def along(name: str, dim: Any, keepdim: bool) -> Any:
    """A call along a dim, as each op spells it."""

    def call(lib: Any, x: Any) -> Any:
        if name == "count_nonzero":
            return getattr(lib, name)(x, dim)
        if name == "aminmax":
            return lib.aminmax(x, dim=dim, keepdim=keepdim)
        if name == "norm":
            return lib.norm(x, 2, dim, keepdim)
        if "var" in name or "std" in name:
            return getattr(lib, name)(x, dim, keepdim=keepdim)
        return getattr(lib, name)(x, dim, keepdim)

    return call


@needs_torch
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_elements(name: str, dtype: str) -> None:
    if name == "prod" and dtype == "complex64":
        pytest.skip("rounds differently")
    compare(lambda lib, x: getattr(lib, name)(x), data(3, 5, dtype=dtype), dtype=dtype, scale=4)
    compare(lambda lib, x: getattr(lib, name)(x.t()), data(3, 5, dtype=dtype), dtype=dtype, scale=4)
    compare(lambda lib, x: getattr(lib, name)(x), data(dtype=dtype), dtype=dtype)


def distinct(*shape: int, dtype: str) -> Any:
    """Values without ties, so that every index is determined."""
    if dtype in ("bool", "uint8", "int8", "int64"):
        return data(*shape, dtype=dtype)
    n = math.prod(shape)
    return (np.random.default_rng(0).permutation(n).reshape(shape) - n // 2).astype("float32")


@needs_torch
@pytest.mark.parametrize("name", [n for n in ALONG if n not in ("median", "nanmedian")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_along_a_dim(name: str, dtype: str) -> None:
    x = data(2, 3, 4, dtype=dtype)
    if name == "logsumexp" and dtype.startswith("complex"):
        pytest.skip("not implemented")
    for dim in (0, -1, 1):
        for keepdim in (False, True):
            compare(along(name, dim, keepdim), x, dtype=dtype, scale=4, strides=True)
    move = lambda lib, x: x.permute(2, 0, 1)  # noqa: E731
    call = along(name, 1, False)
    compare(lambda lib, x: call(lib, move(lib, x)), x, dtype=dtype, scale=4, strides=True)


@needs_torch
@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("dtype", ["int64", "float16", "bfloat16", "float32"])
def test_median_along_a_dim(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).permutation(30).reshape(5, 6).astype("float32")
    for dim in (0, 1):
        compare(along(name, dim, False), x, dtype=dtype, strides=True)
    x[2, 3] = NAN
    if "float" in dtype:
        compare(along(name, 1, True), x, dtype=dtype)
        compare(lambda lib, x: getattr(lib, name)(x), x, dtype=dtype)


@needs_torch
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "any", "all", "var", "std",
    "nansum",
                                  "logsumexp", "norm", "nanmean", "count_nonzero"])  # fmt: skip
def test_several_dims(name: str) -> None:
    for dims in ((0, 2), (1,), (-1, 0), (0, 1, 2)):
        compare(along(name, dims, False), data(2, 3, 4), scale=4)
        if name != "count_nonzero":
            compare(along(name, dims, True), data(2, 3, 4), scale=4, strides=True)
    compare(along(name, (0, 0), False), data(2, 3, 4))
    compare(along(name, 3, False), data(2, 3, 4))
    if name != "logsumexp":  # PyTorch fails there
        compare(along(name, (), False), data(2, 3))


@needs_torch
@pytest.mark.parametrize("name", ALONG)
def test_empty(name: str) -> None:
    if name != "logsumexp":
        compare(lambda lib, x: getattr(lib, name)(x), np.zeros((0,), "float32"))
    for dim in (0, 1):
        compare(along(name, dim, False), np.zeros((0, 3), "float32"))
    compare(along(name, 0, False), np.float32(2))


@needs_torch
@pytest.mark.parametrize("name", ALONG)
def test_special_values(name: str) -> None:
    x = np.array([[1, NAN, 2, NAN], [INF, -INF, 0, 1], [-0.0, 0.0, -0.0, 0.0], [-INF] * 4],
                 "float32")  # fmt: skip
    if name not in ("median", "nanmedian"):  # which of several equals is nobody's promise
        rows = (
            x[:3] if name in ("var_mean", "std_mean") else x
        )  # PyTorch's mean of -inf is NaN there
        compare(along(name, 1, False), rows)
    if name != "logsumexp":
        compare(lambda lib, x: getattr(lib, name)(x), x)


@needs_torch
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    x = data(3, 4, dtype="float64")
    if name != "logsumexp":
        compare(lambda lib, x: getattr(lib, name)(x), x, grad=2)
    for dim in (0, 1):
        compare(along(name, dim, False), x, grad=2)
        compare(along(name, dim, True), x, grad=2)
    compare(
        along(name, 0, False),
        np.float64(0.7),
        grad=1 if name not in ("var", "std", "var_mean", "std_mean") else 0,
    )


@needs_torch
def test_gradients_of_ties_and_zeros() -> None:
    ties = np.array([[1.0, 3, 3], [2, 2, 2]])
    for name in ("amax", "amin", "max", "min"):
        compare(lambda lib, x, name=name: getattr(lib, name)(x), ties, grad=1)
        if name.startswith("a"):
            compare(along(name, 1, False), ties, grad=1)
    compare(lambda lib, x: lib.aminmax(x), ties, grad=1)
    for zeros in ([[1.0, 2, 0], [0, 0, 3]], [[1.0, 2, 3], [0, 4, 5]]):
        compare(lambda lib, x: x.prod(), np.array(zeros), grad=2)
        compare(lambda lib, x: x.prod(1), np.array(zeros), grad=2)
    for ord in (0, 0.5, 1, 1.5, 2, 3, INF, -INF):
        x = data(3, 4, dtype="float64")
        x[0] = 0
        compare(lambda lib, x, ord=ord: lib.linalg.vector_norm(x, ord, 1), x, grad=1)
        compare(
            lambda lib, x, ord=ord: lib.linalg.vector_norm(x, ord), data(3, dtype="float64"), grad=2
        )
    compare(lambda lib, x: x.median(), np.array([1.0, 5, 2, 4]), grad=1)
    compare(lambda lib, x: x.median(1), data(3, 5, dtype="float64"), grad=2)
    compare(lambda lib, x: x.mode(1)[0], np.array([[1.0, 2, 2], [3, 3, 1]]), grad=1)


@needs_torch
def test_complex_gradients() -> None:
    x = data(3, 4, dtype="complex128")
    for name in ("sum", "mean", "prod", "var", "norm"):
        compare(lambda lib, x, name=name: getattr(lib, name)(x), x, grad=1)


@needs_torch
def test_forms_of_var() -> None:
    x = data(3, 4)
    for call in (
        lambda lib, x: x.var(False), lambda lib, x: x.var(1, False), lambda lib,
        x: x.std(unbiased=False),
        lambda lib, x: x.var(1, True, True), lambda lib, x: lib.var(x, (0, 1), correction=0),
        lambda lib, x: lib.std(x, 0, correction=2, keepdim=True), lambda lib, x: x.var(dim=None),
        lambda lib, x: lib.var_mean(x, 0, False), lambda lib, x: lib.std_mean(x, correction=0),
        lambda lib, x: x.half().var(0), lambda lib, x: x.bfloat16().std(1),
        lambda lib, x: (x + 10000).var(1), lambda lib, x: x.var(correction=1, unbiased=True),
    ):  # fmt: skip
        compare(call, x)


@needs_torch
def test_forms_of_max() -> None:
    x, y = data(3, 4), data(4, seed=3)
    for name in ("max", "min"):
        compare(lambda lib, x, y, name=name: getattr(lib, name)(x, y), x, y)
        compare(lambda lib, x, y, name=name: getattr(x, name)(other=y), x, y)
        compare(lambda lib, x, name=name: getattr(x, name)(dim=-1, keepdim=True), x)
        compare(lambda lib, x, name=name: getattr(x, name)(1).indices, x)
        compare(lambda lib, x, name=name: getattr(x, name)(2), x)


@needs_torch
def test_dtype_argument() -> None:
    for name in ("sum", "mean", "prod", "nansum"):
        compare(lambda lib, x, name=name: getattr(lib, name)(x, dtype=lib.float64), data(3, 4))
        compare(lambda lib, x, name=name: getattr(lib, name)(x, 1, dtype=lib.float32),
                data(3, 4, dtype="int64"))  # fmt: skip


@needs_torch
def test_quantiles() -> None:
    x = data(3, 5, dtype="float64")
    for name in ("quantile", "nanquantile"):
        for how in ("linear", "lower", "higher", "midpoint", "nearest"):
            for q in (0.0, 0.3, 0.5, 1.0):
                compare(lambda lib, x, n=name, q=q, h=how: getattr(lib, n)(x, q, 1,
                    interpolation=h), x,
                        grad=1)  # fmt: skip
            compare(
                lambda lib, x, n=name, h=how: getattr(lib, n)(
                    x, lib.tensor([0.1, 0.6], dtype=lib.float64), 0, True, interpolation=h
                ),
                x,
            )
        compare(lambda lib, x, n=name: getattr(lib, n)(x, 0.4), x)
        compare(lambda lib, x, n=name: getattr(lib, n)(x, 0.4, keepdim=True), x)
        compare(lambda lib, x, n=name: getattr(lib, n)(x, 1.4), x)
        y = x.copy()
        y[0, 1] = y[1] = NAN
        compare(lambda lib, x, n=name: getattr(lib, n)(x, 0.4, 1), y)


@needs_torch
def test_norms_and_data() -> None:
    x = data(3, 5, dtype="float64")
    for p in (0, 1, 2, 2.5, INF, -INF, "fro"):
        compare(lambda lib, x, p=p: lib.norm(x, p), x)
        compare(lambda lib, x, p=p: x.norm(p, dim=1), x)
    compare(
        lambda lib, x: lib.linalg.vector_norm(x, 2, dtype=lib.float64), data(3, dtype="float32")
    )
    compare(lambda lib, x, y: lib.dist(x, y, 3), x, data(3, 5, dtype="float64", seed=4), grad=1)
    compare(lambda lib, x: lib.histc(x, 7), x)
    compare(lambda lib, x: lib.histc(x, 4, -1, 1), x)
    compare(lambda lib, x: lib.cov(x), x, grad=2)
    compare(lambda lib, x: lib.cov(x, correction=0, fweights=lib.tensor([1, 2, 3, 1, 1])), x)
    compare(lambda lib, x: lib.cov(x, aweights=lib.tensor([1.0, 2, 3, 1, 1]).double()), x)
    compare(lambda lib, x: lib.corrcoef(x), x, grad=1)
    compare(lambda lib, x: lib.cov(x[0]), x)


@needs_torch
def test_node_names() -> None:
    import torch

    for call in (
        lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.mean(), lambda x: x.mean(0),
        lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.max(), lambda x: x.max(0)[0],
        lambda x: x.min(0)[0], lambda x: x.var(), lambda x: x.std(0), lambda x: x.amax(),
        lambda x: x.norm(), lambda x: x.median(), lambda x: x.median(0)[0],
        lambda x: x.logsumexp(0),
        lambda x: x.nansum(), lambda x: x.nanmean(0), lambda x: x.cumsum(0), lambda x: x.sort()[0],
    ):  # fmt: skip
        names = [
            str(call(lib.ones(2, 2, requires_grad=True)).grad_fn).split(" ")[0]
            for lib in (antorcha, torch)
        ]
        assert names[0] == names[1]


def test_with_numpy() -> None:
    x = data(3, 5, dtype="float64")
    t = antorcha.tensor(x)
    np.testing.assert_allclose(t.var(0).numpy(), x.var(0, ddof=1))
    np.testing.assert_allclose(t.std(correction=0).numpy(), x.std())
    np.testing.assert_allclose(t.logsumexp(1).numpy(), np.log(np.exp(x).sum(1)))
    np.testing.assert_allclose(t.max(1).values.numpy(), x.max(1))
    assert t.argmax().item() == x.argmax()
    assert repr(antorcha.max(antorcha.tensor([[1.0, 2.0]]), 1)) == (
        "torch.return_types.max(\nvalues=tensor([2.]),\nindices=tensor([1]))"
    )


def test_few_elements_and_repeated_ones() -> None:
    """Shapes on both sides of what says whether rows or columns are folded."""
    rng, wrong = np.random.default_rng(0), []
    shapes = [
        ((40, 3), 1), ((17, 24), 1), ((17, 25), 1), ((5, 64), 1), ((20, 64), 1), ((20, 65), 1),
        ((300, 4), 0), ((300, 7), 0), ((300, 8), 0), ((9, 30, 4), 1), ((5, 200, 3), 1),
        ((30, 2, 20, 2), (1, 3)), ((2, 30, 2, 20), (0, 2)), ((4, 40, 3), (0, 2)), ((1, 6, 1), 2),
    ]  # fmt: skip
    for shape, dim in shapes:
        x = rng.integers(-9, 9, shape).astype("float32")
        repeated = [np.broadcast_to(x[:1], shape), np.broadcast_to(x[..., :1], shape)]
        repeated += [np.broadcast_to(x[:1], (30, *shape[1:])), np.broadcast_to(x.flat[0], shape)]
        for a in (x, np.asfortranarray(x), x[::-1], x[..., ::2], *repeated):
            t = (
                antorcha.as_strided(antorcha.from_numpy(x), a.shape, [s // 4 for s in a.strides])
                if min(a.strides) >= 0 and np.shares_memory(a, x)
                else antorcha.from_numpy(a.copy())
            )
            pairs = [
                (t.sum(dim), a.sum(dim)),
                (t.amax(dim), a.max(dim)),
                (t.sum(), a.sum()),
                (t.double().prod(0), a.astype("float64").prod(0)),
            ]
            if isinstance(dim, int):
                pairs += [(t.argmax(dim), a.argmax(dim)), (t.argmin(dim), a.argmin(dim))]
                pairs += [(t.var(dim), a.var(dim, ddof=1))] if a.shape[dim] > 1 else []
            for k, (found, wanted) in enumerate(pairs):
                if not np.allclose(found.numpy(), wanted, 1e-5):
                    wrong.append((shape, dim, a.shape, a.strides, k))
    assert not wrong, wrong[:20]


@pytest.mark.parametrize("count", [2**25 + 3, 10**8])
def test_a_long_sum_of_ones_is_exact(count: int) -> None:
    """The parts of a long row are added in pairs: one after the other, they lost hundreds."""
    ones = antorcha.ones(1).expand(count)
    assert abs(int(ones.sum()) - count) <= 4
    assert float(ones.mean()) == pytest.approx(1, abs=2e-7)


def test_the_first_of_the_most_extreme_is_found() -> None:
    """Ties, NaN at any place, and elements that are all as extreme as their dtype goes."""
    wrong = []
    for dtype in ("float32", "float64", "float16", "int32", "int64", "uint8", "bool"):
        rng = np.random.default_rng(3)
        for shape, dim in (((5, 70), 1), ((70, 5), 0), ((3, 40000), 1), ((4, 600, 9), 1)):
            for case in ("few values", "lowest", "highest", "nan", "one"):
                x = rng.integers(0, 4, shape).astype(dtype)
                lowest = np.array(-np.inf if x.dtype.kind == "f" else 0)
                highest = np.array(np.inf if x.dtype.kind == "f" else 1)
                if x.dtype.kind in "iu":
                    lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
                if case in ("lowest", "highest"):
                    x[...] = lowest if case == "lowest" else highest
                if case == "one":
                    x[...] = lowest
                    np.moveaxis(x, dim, 0)[-3] = highest
                if case == "nan" and x.dtype.kind == "f":
                    np.moveaxis(x, dim, 0)[-3] = np.nan
                    np.moveaxis(x, dim, 0)[-1] = np.nan
                a = antorcha.from_numpy(x)
                calls = [(a.max(dim).indices, np.argmax), (a.min(dim).indices, np.argmin)]
                if dtype != "bool":
                    calls += [(a.argmax(dim), np.argmax), (a.argmin(dim), np.argmin)]
                for found, numpy in calls:
                    if not np.array_equal(found.numpy(), numpy(x, dim)):
                        wrong.append((dtype, shape, case, numpy.__name__))
    assert wrong == []
