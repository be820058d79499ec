"""Losses and distances against PyTorch: values, reductions, both orders of gradients, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import compare, data, needs_torch
from tests.ops.test_elementwise import op

F = "nn.functional."
REDUCTIONS = ("mean", "sum", "none")


def f(lib: Any, name: str) -> Any:
    return op(lib, F + name)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@needs_torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_losses_of_two(reduction: str, dtype: str) -> None:
    order = 2 if dtype == "float64" else 1
    x, t = data(3, 4, dtype=dtype), data(3, 4, dtype=dtype, seed=9)
    p, q = [1 / (1 + np.exp(-v.astype("float64"))).astype(dtype) for v in (x, t)]
    calls: list[tuple[str, Any, Any, dict[str, Any]]] = [
        ("mse_loss", x, t, {}), ("l1_loss", x, t, {}), ("smooth_l1_loss", x, t, {}),
        ("smooth_l1_loss", x, t, {"beta": 0.5}), ("smooth_l1_loss", x, t, {"beta": 0.0}),
        ("huber_loss", x, t, {}), ("huber_loss", x, t, {"delta": 2.0}),
        ("binary_cross_entropy_with_logits", x, q, {}), ("kl_div", x, q, {}),
        ("kl_div", x, t, {"log_target": True}), ("poisson_nll_loss", x, abs(t), {}),
        ("poisson_nll_loss", p, abs(t), {"log_input": False, "full": True}),
        ("soft_margin_loss", x, np.sign(t), {}), ("hinge_embedding_loss", x, np.sign(t), {}),
        ("multilabel_soft_margin_loss", x, (t > 0).astype(dtype), {}),
    ]  # fmt: skip
    if dtype != "float16":
        calls.append(("binary_cross_entropy", p, q, {}))
    for name, a, b, options in calls:
        if name == "soft_margin_loss":  # no gradient of the target
            compare(
                lambda lib, x: f(lib, "soft_margin_loss")(
                    x, lib.tensor(np.sign(t)), reduction=reduction
                ),
                a,
                grad=order,
                scale=20,
            )
            continue
        first = name in ("l1_loss", "hinge_embedding_loss", "huber_loss", "smooth_l1_loss")
        compare(
            lambda lib, x, y, n=name, o=options: f(lib, n)(x, y, reduction=reduction, **o), a, b,
            grad=1 if first else order, scale=20,
        )  # fmt: skip
    compare(lambda lib, x, y: f(lib, "mse_loss")(x.t(), y[0, 0], reduction=reduction), x, t, grad=1)
    compare(lambda lib, x, y: f(lib, "mse_loss")(x.t(), y.t(), reduction=reduction), x, t, grad=1)
    compare(lambda lib, x, y: f(lib, "mse_loss")(x[:0], y[:0], reduction=reduction), x, t)
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        compare(lambda lib, x, y, w, n=name: f(lib, n)(x, y, reduction=reduction, weight=w), x, t,
                abs(t), grad=1, scale=10)  # fmt: skip


@needs_torch
def test_kinks() -> None:
    x = np.array([0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0])
    zero = np.zeros(7)
    for name in ("l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss"):
        for reduction in REDUCTIONS:
            compare(lambda lib, a, b, n=name, r=reduction: f(lib, n)(a, b, reduction=r), x, zero,
                    grad=1)  # fmt: skip
    p, t = np.array([0.0, 1.0, 0.0, 1.0, 0.5]), np.array([0.0, 0.0, 1.0, 1.0, 0.3])
    compare(lambda lib, a: f(lib, "binary_cross_entropy")(a, lib.tensor(t)), p, grad=1, scale=1e3)
    compare(lambda lib, a: f(lib, "binary_cross_entropy")(a * 3, lib.tensor(t)), p)
    compare(lambda lib, a: f(lib, "kl_div")(a, lib.tensor(p), reduction="sum"), t, grad=1)
    compare(lambda lib, a: f(lib, "kl_div")(a, lib.tensor(p), reduction="batchmean"), t, grad=1)
    compare(lambda lib, a: f(lib, "mse_loss")(a, a, reduction="other"), p)


@needs_torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_of_binary_cross_entropy(reduction: str) -> None:
    x, w = data(3, 4, dtype="float64"), abs(data(4, dtype="float64", seed=4))
    t = 1 / (1 + np.exp(-data(3, 4, dtype="float64", seed=8)))
    name = "binary_cross_entropy_with_logits"
    compare(lambda lib, a, b: f(lib, name)(a, b, weight=lib.tensor(w), reduction=reduction), x, t,
            grad=1)  # fmt: skip
    compare(lambda lib, a, b: f(lib, name)(a, b, pos_weight=lib.tensor(w), reduction=reduction),
            x, t, grad=2, scale=10)  # fmt: skip
    compare(lambda lib, a, b: f(lib, "binary_cross_entropy")(a.sigmoid(), b, lib.tensor(w),
            reduction=reduction), x, t, grad=1, scale=10)  # fmt: skip
    compare(lambda lib, a, b: f(lib, name)(a, b[0]), x, t)


@needs_torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gaussian(reduction: str) -> None:
    x, t = data(3, 4, dtype="float64"), data(3, 4, dtype="float64", seed=8)
    for var in (abs(data(3, 4, dtype="float64", seed=3)), abs(data(3, 1, dtype="float64", seed=3))):
        compare(lambda lib, a, b, v: f(lib, "gaussian_nll_loss")(a, b, v, reduction=reduction,
                full=True), x, t, var, grad=1, scale=10)  # fmt: skip
    compare(lambda lib, a, b: f(lib, "gaussian_nll_loss")(a, b, -abs(b)), x, t)


@needs_torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 4, 3), (2, 4, 3, 2), (5, 1)])
def test_cross_entropy(reduction: str, smoothing: float, shape: tuple[int, ...]) -> None:
    classes = shape[1] if len(shape) > 1 else shape[0]
    rng = np.random.default_rng(3)
    target = rng.integers(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    target = np.asarray(target)
    x = data(*shape, dtype="float64")
    w = abs(data(classes, dtype="float64", seed=6)) + 0.1
    for weighted in (False, True):
        for ignored in (-100, 1):

            def call(
                lib: Any, a: Any, name: str = "cross_entropy", *, weighted: bool = weighted,
                ignored: int = ignored, **more: Any,
            ) -> Any:  # fmt: skip
                weight = lib.tensor(w) if weighted else None
                t = lib.tensor(target) if target.ndim else lib.tensor(int(target))
                return f(lib, name)(a, t, weight=weight, ignore_index=ignored,
                                    reduction=reduction, **more)  # fmt: skip

            compare(lambda lib, a, c=call: c(lib, a, label_smoothing=smoothing), x, grad=2,
                    scale=10)  # fmt: skip
            if not smoothing:
                compare(lambda lib, a, c=call: c(lib, a, "nll_loss"), x, grad=1, scale=10)
    for dtype in ("float32", "float16", "bfloat16"):
        compare(
            lambda lib, a: f(lib, "cross_entropy")(
                a, lib.tensor(target) if target.ndim else lib.tensor(int(target)),
                reduction=reduction, label_smoothing=smoothing,
            ), x, dtype=dtype, grad=1, scale=10,
        )  # fmt: skip
    probabilities = abs(data(*shape, dtype="float64", seed=4))
    for weight in (False, True):
        compare(
            lambda lib, a, p, u=weight: f(lib, "cross_entropy")(
                a, p, weight=lib.tensor(w) if u else None, label_smoothing=smoothing,
                reduction=reduction,
            ), x, probabilities, grad=2, scale=10,
        )  # fmt: skip


@needs_torch
def test_cross_entropy_errors() -> None:
    x = data(3, 4, dtype="float64")
    for target in ([0, 1, 4], [0, -1, 2], [0, 1], [[0, 1, 2]], [0.0, 1.0, 2.0]):
        for name in ("cross_entropy", "nll_loss"):
            compare(lambda lib, a, t=target, n=name: f(lib, n)(a, lib.tensor(t)), x)
    compare(lambda lib, a: f(lib, "cross_entropy")(a, lib.tensor([0, 1, 2]).int()), x)
    compare(
        lambda lib, a: f(lib, "cross_entropy")(a, lib.tensor([0, 1, 2]), label_smoothing=2.0), x
    )
    compare(lambda lib, a: f(lib, "cross_entropy")(a, lib.tensor([0, 1, 2]), lib.ones(3)), x)
    compare(lambda lib, a: f(lib, "cross_entropy")(a[:0], lib.tensor([0])[:0]), x)
    compare(lambda lib, a: f(lib, "cross_entropy")(a.t(), lib.tensor([2, 0, 1, 2])), x, grad=2)
    compare(lambda lib, a: f(lib, "nll_loss")(a, lib.tensor([-100] * 3)), x)


@needs_torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margins(reduction: str) -> None:
    a, b, c = [data(5, 4, dtype="float64", seed=s) for s in (1, 20, 30)]
    sign = np.array([1.0, -1, 1, -1, 1])
    for margin in (0.0, 0.4):
        compare(
            lambda lib, x, y, m=margin: f(lib, "margin_ranking_loss")(
                x[:, 0], y[:, 0], lib.tensor(sign), margin=m, reduction=reduction
            ),
            a,
            b,
            grad=1,
        )
        compare(
            lambda lib, x, y, m=margin: f(lib, "cosine_embedding_loss")(
                x, y, lib.tensor(sign), margin=m, reduction=reduction
            ),
            a,
            b,
            grad=2,
            scale=10,
        )
    for options in ({}, {"p": 1.0}, {"swap": True}, {"p": 3.0, "margin": 2.0}):
        compare(
            lambda lib, x, y, z, o=options: f(lib, "triplet_margin_loss")(
                x, y, z, reduction=reduction, **o
            ),
            a,
            b,
            c,
            grad=1,
            scale=10,
        )
    compare(
        lambda lib, x, y, z: f(lib, "triplet_margin_with_distance_loss")(
            x, y, z, reduction=reduction, swap=True
        ),
        a,
        b,
        c,
        grad=1,
        scale=10,
    )
    labels = np.array([0, 3, 2, 2, 1])
    for p in (1, 2):
        compare(
            lambda lib, x, p=p: f(lib, "multi_margin_loss")(
                x, lib.tensor(labels), p=p, reduction=reduction
            ),
            a,
            grad=1,
        )
    compare(
        lambda lib, x: f(lib, "multi_margin_loss")(
            x, lib.tensor(labels), weight=lib.tensor([1.0, 2, 3, 4]).double(), reduction=reduction
        ),
        a,
    )
    listed = np.array([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3], [2, -1, -1, -1], [1, 2, -1, 3]])
    compare(
        lambda lib, x: f(lib, "multilabel_margin_loss")(x, lib.tensor(listed), reduction=reduction),
        a,
        grad=1,
    )


@needs_torch
def test_similarities() -> None:
    a, b = data(5, 4, dtype="float64"), data(5, 4, dtype="float64", seed=7)
    for dim in (0, 1, -1):
        compare(lambda lib, x, y, d=dim: f(lib, "cosine_similarity")(x, y, dim=d), a, b, grad=2,
                scale=10)  # fmt: skip
        compare(lambda lib, x, d=dim: f(lib, "normalize")(x, dim=d), a, grad=2, scale=10)
    compare(lambda lib, x, y: f(lib, "cosine_similarity")(x, y[0]), a, b, grad=1)
    compare(lambda lib, x: f(lib, "normalize")(x * 0), a, grad=1)
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        order = 1 if p else 0
        compare(lambda lib, x, y, p=p: f(lib, "pairwise_distance")(x, y, p=p), a, b, grad=order)
    compare(lambda lib, x, y: f(lib, "pairwise_distance")(x, y, keepdim=True), a, b, grad=2)


def test_without_pytorch() -> None:
    x = antorcha.tensor([[1.0, 2.0, 0.5]], requires_grad=True)
    loss = f(antorcha, "cross_entropy")(x, antorcha.tensor([1]))
    e = np.exp([1.0, 2.0, 0.5])
    np.testing.assert_allclose(loss.item(), -np.log(e[1] / e.sum()), rtol=1e-6)
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy()[0], e / e.sum() - [0, 1, 0], rtol=1e-5)
