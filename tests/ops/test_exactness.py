"""Sums, means, spreads and norms are as near to the exact values as PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import needs_torch

Array = np.ndarray[Any, Any]
LAYOUTS = [((n,), 0) for n in (17, 300, 4097, 60001)] + [
    ((5, 300), 1), ((5, 4097), 1), ((300, 9), 0), ((4097, 9), 0), ((70001, 3), 0),
]  # fmt: skip
KINDS: dict[str, Callable[[Any, Any], Array]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "positive": lambda random, shape: random.random(shape),
    "far from 0": lambda random, shape: random.standard_normal(shape) + 1e4,
    "of many sizes": lambda random, shape: np.exp(4 * random.standard_normal(shape)),
}


def _deviation(x: Array, dim: int) -> Array:
    return np.sqrt(((x - x.mean(dim, keepdims=True)) ** 2).sum(dim) / (x.shape[dim] - 1))


EXACT: dict[str, Callable[[Array, int], Array]] = {
    "t.sum(x, dim)": lambda x, dim: x.sum(dim),
    "t.nansum(x, dim)": lambda x, dim: x.sum(dim),
    "t.mean(x, dim)": lambda x, dim: x.mean(dim),
    "t.var(x, dim)": lambda x, dim: _deviation(x, dim) ** 2,
    "t.std(x, dim)": _deviation,
    "t.linalg.vector_norm(x, 1, dim)": lambda x, dim: np.abs(x).sum(dim),
    "t.linalg.vector_norm(x, 2, dim)": lambda x, dim: np.sqrt((x * x).sum(dim)),
    "t.linalg.vector_norm(x, 3, dim)": lambda x, dim: (np.abs(x) ** 3).sum(dim) ** (1 / 3),
    "t.logsumexp(x, dim)": lambda x, dim: (
        np.log(np.exp(x - x.max(dim, keepdims=True)).sum(dim)) + x.max(dim)
    ),
    "t.cumsum(x, dim)": np.cumsum,
}


def errors(t: Any, text: str, x: Array, dim: int) -> Array:
    """Errors in units of what the operands are rounded to, against numbers of 64 bits or more."""
    found = eval(text, {"t": t, "x": t.tensor(x), "dim": dim}).numpy()
    wide = x.astype(np.longdouble)
    exact = size = EXACT[text](wide, dim)
    if "sum(" in text or "mean" in text:  # beside what cancels
        size = np.sqrt((wide**2).sum(dim, keepdims="cum" in text))
        size = np.maximum(np.abs(exact), size / x.shape[dim] if "mean" in text else size)
    errors = (found - exact) / size / np.finfo(x.dtype).eps
    return errors.astype(np.float64).ravel()  # type: ignore[no-any-return]


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_errors_are_pytorchs_or_smaller(dtype: type) -> None:
    import torch

    wrong = []
    for text in EXACT:
        for kind, draw in KINDS.items():
            random = np.random.default_rng(5)
            both: list[list[Array]] = [[], []]
            for shape, dim in LAYOUTS * 4:
                x = draw(random, shape).astype(dtype)
                for found, t in zip(both, (antorcha, torch), strict=True):
                    found.append(errors(t, text, x, dim))
            ours, theirs = [
                np.sqrt(np.mean([np.mean(e**2) for e in found])) for found in both
            ]  # fmt: skip
            if ours > max(1.25 * theirs, 0.5):  # a rounding more or less, by chance
                wrong.append(f"{text} of numbers {kind}: {ours:.3g}, PyTorch's {theirs:.3g}")
    assert not wrong, "\n".join(wrong)


def test_sums_grow_by_a_cascade() -> None:
    """Without PyTorch: the error hardly grows with the number of elements, in rows and columns."""
    wrong = []
    random = np.random.default_rng(6)
    for dtype in (np.float32, np.float64):
        for shape, dim in [*LAYOUTS, ((2, 3, 70001), 2), ((2, 70001, 3), 1)]:
            x = random.standard_normal(shape).astype(dtype)
            worst = np.sqrt(np.mean(errors(antorcha, "t.sum(x, dim)", x, dim) ** 2))
            if worst > 2.5:
                wrong.append(f"{np.dtype(dtype)} {shape} along {dim}: {worst:.3g}")
    assert not wrong, "\n".join(wrong)


def test_products_of_vectors_grow_by_a_cascade() -> None:
    wrong = []
    random = np.random.default_rng(7)
    for dtype in (np.float32, np.float64):
        for n in (1, 15, 16, 127, 129, 2047, 2048, 2049, 4100, 60001):
            found = []
            for _ in range(20):
                x, y = random.standard_normal((2, n)).astype(dtype)
                exact = x.astype(np.longdouble) * y
                got = antorcha.dot(antorcha.tensor(x), antorcha.tensor(y)).item()
                found.append((got - exact.sum()) / np.sqrt((exact**2).sum()) / np.finfo(dtype).eps)
            worst = np.sqrt(np.mean(np.square(found)))
            if worst > 2.5:
                wrong.append(f"{np.dtype(dtype)} {n}: {worst:.3g}")
    assert not wrong, "\n".join(wrong)


def test_spreads_of_the_largest_and_the_smallest_numbers() -> None:
    """Squares that leave float32's range on the way to a deviation that is in it."""
    t: Any = antorcha
    for scale, device in itertools.product((1e30, 1.0, 1e-30), ("cpu", "sim")):
        x = np.random.default_rng(7).standard_normal((500, 4)) * scale
        for dtype in (t.float32, t.bfloat16, t.complex64):
            given = t.tensor(x).to(dtype)
            exact = t.std(given.to(t.complex128 if dtype.is_complex else t.float64), 0)
            rtol = 1e-2 if dtype is t.bfloat16 else 1e-6
            given = given.to(device)
            found, means = [each.cpu() for each in t.std_mean(given, 0)]
            np.testing.assert_allclose(found.double().numpy(), exact.numpy(), rtol=rtol)
            assert t.allclose(means, given.mean(0).cpu(), rtol=1e-2, atol=0.1 * scale)
