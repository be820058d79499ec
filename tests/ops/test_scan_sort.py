"""Scans, sorting and selection against PyTorch and NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import DTYPES, compare, data, needs_torch

NAN, INF = math.nan, math.inf
ORDERED = [d for d in DTYPES if not d.startswith("complex")]


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
def test_scans(name: str, dtype: str) -> None:
    if name not in ("cumsum", "cumprod") and dtype.startswith("complex"):
        pytest.skip("complex numbers have no order")
    if name == "logcumsumexp" and "float" not in dtype:
        pytest.skip("not implemented, in PyTorch either")
    x = data(2, 3, 4, dtype=dtype)
    for dim in (0, 1, -1, 3):
        compare(
            lambda lib, x, d=dim: getattr(lib, name)(x, d), x, dtype=dtype, scale=4, strides=True
        )
    compare(
        lambda lib, x: getattr(lib, name)(x.permute(2, 0, 1), 1),
        x,
        dtype=dtype,
        scale=4,
        strides=True,
    )
    compare(lambda lib, x: getattr(x, name)(0), data(dtype=dtype), dtype=dtype)
    compare(lambda lib, x: getattr(x, name)(0), data(0, 3, dtype=dtype), dtype=dtype)


@needs_torch
def test_scans_of_special_values() -> None:
    x = np.array([1, NAN, 3, 0, INF, -INF, NAN], "float32")
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        compare(lambda lib, x, n=name: getattr(lib, n)(x, 0), x)
    compare(lambda lib, x: x.cumsum(0, dtype=lib.float64), data(5))
    compare(lambda lib, x: x.cumprod(0, dtype=lib.float32), data(5, dtype="int64"))


@needs_torch
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_into_tensors(name: str, dtype: str) -> None:
    """In place the dtype stays, and ``out=`` decides it."""
    x = data(3, 21, dtype=dtype)
    for dim in (0, 1, -1):
        compare(lambda lib, x, d=dim: getattr(x.clone(), name + "_")(d), x, dtype=dtype, scale=9)
        compare(lambda lib, x, d=dim: getattr(x.clone().t(), name + "_")(d), x, dtype=dtype,
                strides=True, scale=9)  # fmt: skip
    if dtype.startswith("complex"):
        return
    for result in ("int32", "float32", "float64", "uint8"):
        if result == "uint8" and dtype not in ("uint8", "int8", "int64"):
            continue  # casting what does not fit is undefined
        compare(
            lambda lib, x, r=result: getattr(lib, name)(
                x.abs(), 1, out=lib.empty(0, dtype=getattr(lib, r))
            ),
            x / 4 if "float" in dtype else x,
            dtype=dtype,
            scale=1e3 if dtype == "bfloat16" else 1e2,
        )
    with pytest.raises(RuntimeError):
        antorcha.ones(3).cumsum_(0, dtype=antorcha.float64)


@needs_torch
def test_long_and_repeated_lines() -> None:
    long = np.random.default_rng(0).integers(-9, 9, 140_000)
    for name in ("cumsum", "cummax", "cummin"):
        compare(lambda lib, x, n=name: getattr(lib, n)(x, 0), long)
        compare(lambda lib, x, n=name: getattr(lib, n)(x.expand(3, 40), 0), long[:40])
        compare(lambda lib, x, n=name: getattr(lib, n)(x.expand(3, 40), 1), long[:40])
    spread = data(200_000, dtype="float64")
    for name in ("cumsum", "logcumsumexp", "cummax"):
        compare(lambda lib, x, n=name: getattr(lib, n)(x, 0), spread, scale=1e3)
    equal = np.array([2, 2, 1, NAN, 2, NAN, 7] * 5, "float32")
    for name in ("cummax", "cummin"):
        compare(lambda lib, x, n=name: getattr(lib, n)(x, 0), equal)
        compare(lambda lib, x, n=name: getattr(lib, n)(x.view(7, 5), 0), equal)
    huge = np.array([0] + [3e38] * 40, "float32")
    for dtype in ("float32", "float64", "bfloat16"):
        compare(lambda lib, x: x.cumprod(0), huge, dtype=dtype)
    flat = np.array([[-INF, -INF, -800.0, -1e-300, 3], [INF, -INF, 1, INF, 0]])
    for dim in (0, 1):
        compare(lambda lib, x, d=dim: lib.logcumsumexp(x, d), flat)
    compare(lambda lib, x: lib.logcumsumexp(x, 0), np.array([0, -40, -41.0]))


@needs_torch
def test_gradients_of_scans() -> None:
    x = data(3, 4, dtype="float64")
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        for dim in (0, 1):
            compare(lambda lib, x, n=name, d=dim: getattr(lib, n)(x, d), x, grad=2, scale=10)
    zeros = np.array([[1.0, 0, 2, 0], [3, 4, 0, 5]])
    compare(lambda lib, x: x.cumprod(1), zeros, grad=2)
    compare(lambda lib, x: x.cumprod(0), data(3, 2, dtype="complex128"), grad=1)
    compare(lambda lib, x: x.cumsum(0), data(3, 2, dtype="complex128"), grad=1)
    for name in ("cumsum_", "cumprod_"):
        compare(lambda lib, x, n=name: getattr(x * 2, n)(1), x, grad=2, scale=10)
    compare(lambda lib, x: x.t().cumsum(0).cumprod(1), data(9, 20, dtype="float64"), grad=1,
            scale=1e4)  # fmt: skip


@needs_torch
@pytest.mark.parametrize("dtype", ORDERED)
def test_sorting(dtype: str) -> None:
    x = data(3, 5, dtype=dtype)
    for dim in (0, -1):
        for descending in (False, True):
            compare(lambda lib, x, d=dim, e=descending: lib.sort(x, dim=d, descending=e,
                stable=True), x,
                    dtype=dtype, strides=True)  # fmt: skip
            compare(
                lambda lib, x, d=dim, e=descending: lib.argsort(
                    x, dim=d, descending=e, stable=True
                ),
                x,
                dtype=dtype,
            )
    compare(lambda lib, x: lib.sort(x.t(), dim=0, stable=True), x, dtype=dtype, strides=True)
    compare(lambda lib, x: lib.msort(x), x, dtype=dtype)
    if dtype != "bool":
        for largest in (False, True):
            compare(lambda lib, x, e=largest: lib.topk(x, 3, 1, e)[0], x, dtype=dtype)
        for k in (1, 4):
            compare(lambda lib, x, k=k: lib.kthvalue(x, k)[0], x, dtype=dtype)
    compare(lambda lib, x: x.sort(), data(dtype=dtype), dtype=dtype)
    compare(lambda lib, x: x.sort(0), data(0, 3, dtype=dtype), dtype=dtype)


@needs_torch
def test_order_of_special_values() -> None:
    x = np.array([3, NAN, -INF, 1, INF, NAN, -0.0, 0.0], "float32")
    for descending in (False, True):
        compare(lambda lib, x, e=descending: lib.sort(x, descending=e, stable=True), x)
        compare(lambda lib, x, e=descending: lib.topk(x, 3, largest=e)[0], x)
    compare(lambda lib, x: lib.kthvalue(x, 7)[0], x)


@needs_torch
def test_gradients_of_selection() -> None:
    x = np.random.default_rng(0).permutation(20).reshape(4, 5).astype("float64")
    for call in (
        lambda lib, x: x.sort(1)[0], lambda lib, x: x.sort(0, descending=True)[0],
        lambda lib, x: x.topk(2)[0], lambda lib, x: x.topk(3, 0, False)[0],
        lambda lib, x: x.kthvalue(2, 0)[0], lambda lib, x: x.kthvalue(2, 1, True)[0],
        lambda lib, x: lib.msort(x), lambda lib, x: (x.sort(1)[0] ** 3),
    ):  # fmt: skip
        compare(call, x, grad=2)


@needs_torch
def test_errors() -> None:
    x = data(3, 4)
    for call in (
        lambda lib, x: x.sort(2), lambda lib, x: x.topk(5), lambda lib, x: x.kthvalue(0),
        lambda lib, x: x.kthvalue(5), lambda lib, x: x.cumsum(2), lambda lib, x: x[0, 0].diff(),
        lambda lib, x: lib.sort(x.cfloat()), lambda lib, x: x.topk(-1),
    ):  # fmt: skip
        compare(call, x)


@needs_torch
def test_differences_and_areas() -> None:
    x, t = data(3, 5, dtype="float64"), np.array([0.0, 1, 2.5, 3, 5])
    for call in (
        lambda lib, x, t: x.diff(), lambda lib, x, t: lib.diff(x, 2, 0), lambda lib, x,
        t: x.diff(7),
        lambda lib, x, t: lib.diff(x, prepend=x[:, :1], append=x), lambda lib, x,
        t: lib.trapezoid(x),
        lambda lib, x, t: lib.trapezoid(x, t), lambda lib, x, t: lib.trapz(x, dx=0.5, dim=0),
        lambda lib, x, t: lib.cumulative_trapezoid(x, t), lambda lib, x, t: x.diff(n=0),
    ):  # fmt: skip
        compare(call, x, t, grad=1)
    compare(lambda lib, x: x.diff(), data(5, dtype="bool"))
    compare(lambda lib, x: lib.trapezoid(x), data(5, dtype="int64"))


def test_with_numpy() -> None:
    x: Any = data(3, 5, dtype="float64")
    t = antorcha.tensor(x)
    np.testing.assert_allclose(t.cumsum(1).numpy(), x.cumsum(1))
    np.testing.assert_allclose(t.sort(0).values.numpy(), np.sort(x, 0))
    np.testing.assert_array_equal(t.argsort(1).numpy(), x.argsort(1))
    np.testing.assert_allclose(t.quantile(0.3, 1).numpy(), np.quantile(x, 0.3, 1))
