"""Activations and softmax against PyTorch: values, kinks, both orders of gradients, in-place."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import compare, data, needs_torch
from tests.ops.test_elementwise import SPECIAL, op

F = "nn.functional."
CALLS: dict[str, list[Any]] = {
    "relu": [()], "relu6": [()], "leaky_relu": [(), (0.2,)], "elu": [(), (0.7,)], "selu": [()],
    "celu": [(), (0.7,)], "gelu": [()], "silu": [()], "mish": [()], "hardtanh": [(), (-2.0, 0.5)],
    "hardswish": [()], "hardsigmoid": [()], "softplus": [(), (2.0, 1.0)], "softsign": [()],
    "logsigmoid": [()], "tanhshrink": [()], "softshrink": [(), (1.0,)], "hardshrink": [(), (1.0,)],
    "threshold": [(0.1, 2.0)], "rrelu": [(), (0.1, 0.5)], "glu": [(), (0,)],
}  # fmt: skip
INPLACE = "relu relu6 leaky_relu elu selu celu silu mish hardtanh hardswish hardsigmoid".split()
FLAT = ("relu", "relu6", "hardtanh", "threshold", "leaky_relu", "softshrink", "hardshrink",
        "hardsigmoid", "rrelu")  # fmt: skip


@needs_torch
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "bool"])
def test_activation(name: str, dtype: str) -> None:
    x = data(4, 6, dtype=dtype, low=-7, high=7)
    order = (1 if name in FLAT else 2) if dtype == "float64" else 0
    for args in CALLS[name]:
        call = lambda lib, t, args=args: op(lib, F + name)(t, *args)  # noqa: E731
        # celu and hardsigmoid have float32 constants in PyTorch's float64 kernels
        scale = 1e4 if name in ("celu", "hardsigmoid") and dtype == "float64" else 1.0
        if name == "tanhshrink" and dtype == "bool":
            return
        compare(call, x, dtype=dtype, grad=order, scale=scale)
        laid = name not in ("glu", "logsigmoid", "rrelu")
        compare(lambda lib, t, call=call: call(lib, t.t()), x, dtype=dtype, strides=laid,
                scale=scale)  # fmt: skip
        compare(call, x[:0], dtype=dtype)
    if name in INPLACE:
        compare(lambda lib, t: op(lib, F + name)(t, inplace=True), x, dtype=dtype)
        args = {"hardtanh": (-1.0, 1.0), "leaky_relu": (0.1,), "elu": (1.0,), "celu": (1.0,)}
        compare(lambda lib, t: op(lib, F + name)(t, *args.get(name, ()), True), x, dtype=dtype)


@needs_torch
@pytest.mark.parametrize("name", [n for n in CALLS if n != "glu"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kinks_and_special_values(name: str, dtype: str) -> None:
    scale = 1e4 if name in ("celu", "hardsigmoid") and dtype == "float64" else 1.0
    if name == "gelu" and dtype == "float32":
        return  # PyTorch's fast erf
    for args in CALLS[name]:
        compare(lambda lib, t, args=args: op(lib, F + name)(t, *args), SPECIAL, dtype=dtype, grad=1,
                scale=scale)  # fmt: skip


@needs_torch
def test_gelu_tanh_and_prelu() -> None:
    x = data(4, 6, dtype="float64")
    compare(lambda lib, t: op(lib, F + "gelu")(t, approximate="tanh"), x, grad=2)
    compare(lambda lib, t: op(lib, F + "gelu")(t, approximate="other"), x)
    for shape in ((1,), (6,), ()):
        w = data(*shape, dtype="float64", seed=3)
        compare(lambda lib, t, w: lib.prelu(t, w), x, w, grad=2)
    compare(lambda lib, t, w: lib.prelu(t, w), data(2, 3, 4), data(3))
    compare(lambda lib, t, w: lib.prelu(t, w), x, data(5, dtype="float64"))


@needs_torch
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64"])
def test_softmax(name: str, dtype: str) -> None:
    x = data(3, 4, 5, dtype=dtype)
    order = 2 if dtype == "float64" else 0
    for dim in (0, 1, -1, *((3,) if dtype != "int64" else ())):
        compare(lambda lib, t, d=dim: op(lib, F + name)(t, dim=d), x, dtype=dtype, grad=order)
    compare(lambda lib, t: op(lib, F + name)(t.transpose(0, 2)[1:], 1), x, dtype=dtype, grad=order)
    compare(lambda lib, t: op(lib, F + name)(t, 1, dtype=lib.float32), x, dtype=dtype)
    compare(lambda lib, t: op(lib, F + name)(t[0, 0, 0], 0), x, dtype=dtype, grad=order)
    if dtype != "int64":
        compare(lambda lib, t: op(lib, F + name)(t[:0], 1), x, dtype=dtype)
        compare(lambda lib, t: op(lib, F + name)(t[:, :0], 1), x, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(lambda lib, t: op(lib, F + name)(t), x, dtype=dtype)
    if name != "softmin":
        compare(lambda lib, t: getattr(t, name)(1), x, dtype=dtype)
        compare(lambda lib, t: getattr(lib, name)(t, dim=1), x, dtype=dtype)


@needs_torch
def test_softmax_special_rows() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[-inf, 0, 1], [-inf, -inf, -inf], [inf, 0, 1], [nan, 1, 2], [1000, 1000, -1000]])
    for name in ("softmax", "log_softmax"):
        compare(lambda lib, t, n=name: op(lib, F + n)(t, 1), x, grad=1)


def test_softmax_rows_sum_to_one() -> None:
    x = antorcha.tensor(data(5, 7))
    np.testing.assert_allclose(antorcha.softmax(x, 1).sum(1).numpy(), np.ones(5), rtol=1e-6)
    np.testing.assert_allclose(antorcha.softmax(x, 0).sum(0).numpy(), np.ones(7), rtol=1e-6)
