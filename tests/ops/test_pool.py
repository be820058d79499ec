"""Pooling: values, indices and gradients against PyTorch; errors; NaN."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import NAMESPACES
from tests.ops.parity import needs_torch

F = SimpleNamespace(**NAMESPACES["nn.functional"])
SHAPES = [(2, 3, 8, 8), (3, 7, 9), (2, 2, 40, 50), (1, 1, 70, 3)]


def sliding_calls() -> list[str]:
    made = []
    for k, s, p, d, c in itertools.product(
        ["2", "3", "(2, 3)"], ["None", "1", "(2, 1)"], [0, 1], [1, 2], [False, True]
    ):
        made.append(f"F.max_pool2d(x, {k}, {s}, {p}, {d}, {c}, return_indices=True)")
        if d == 1:
            made += [f"F.avg_pool2d(x, {k}, {s}, {p}, {c}, {pad})" for pad in (True, False)]
    made += [f"F.adaptive_avg_pool2d(x, {o})" for o in ("1", "2", "(3, 2)", "(None, 2)", "5")]
    made += [f"F.adaptive_max_pool2d(x, {o}, return_indices=True)" for o in ("1", "(3, 2)")]
    return [*made, "F.avg_pool2d(x, 3, 2, 1, True, True, 3)", "F.max_pool2d(x, 2)"]


OTHERS = [
    ("F.max_pool1d(x, 3, 2, 1, 1, True)", (2, 3, 21)),
    ("F.max_pool1d(x, 2, return_indices=True)", (3, 21)),
    ("F.avg_pool1d(x, 3, 2, 1, True, False)", (2, 3, 21)),
    ("F.adaptive_avg_pool1d(x, 4)", (2, 3, 21)),
    ("F.adaptive_avg_pool1d(x, 1)", (2, 3, 21)),
    ("F.adaptive_max_pool1d(x, 4)", (2, 3, 21)),
    ("F.max_pool3d(x, 3, 2, 1, 1, True, True)", (2, 2, 6, 7, 8)),
    ("F.avg_pool3d(x, 2, None, 1, False, False)", (2, 2, 6, 7, 8)),
    ("F.adaptive_avg_pool3d(x, (2, 3, 4))", (2, 2, 6, 7, 8)),
    ("F.adaptive_max_pool3d(x, 2)", (2, 2, 6, 7, 8)),
    ("F.max_pool2d(x.contiguous(memory_format=t.channels_last), 2)", (2, 4, 6, 6)),
    ("F.avg_pool2d(x.contiguous(memory_format=t.channels_last), 2)", (2, 4, 6, 6)),
    ("F.max_pool2d(x.transpose(2, 3), 2)", (2, 4, 6, 6)),
    ("F.max_pool2d(x, 2)", (0, 4, 6, 6)),
    ("F.lp_pool2d(x.abs(), 2, 2)", (2, 4, 6, 6)),
]

ERRORS = """
F.max_pool2d(x, 2, padding=2)
F.max_pool2d(x, 7)
F.max_pool2d(x, 0)
F.max_pool2d(x, 2, stride=0)
F.max_pool2d(x, 2, dilation=0)
F.max_pool2d(x[0, 0], 2)
F.max_pool2d(x, (2, 2, 2))
F.max_pool2d(x, 2, padding=-1)
F.max_pool2d(x[:, :, :0], 2)
F.max_pool2d(x[:, :0], 2)
F.max_pool2d(x.bool(), 2)
F.avg_pool2d(x, 2, divisor_override=0)
F.avg_pool2d(x, 7)
F.avg_pool2d(x.int(), 2)
F.adaptive_avg_pool2d(x, (2, 2, 2))
F.adaptive_avg_pool2d(x, -1)
F.adaptive_avg_pool2d(x.long(), 2)
F.max_pool1d(x, 2)
""".strip().splitlines()


def run(lib: Any, functional: Any, text: str, array: Any) -> Any:
    x = lib.tensor(array).requires_grad_()
    try:
        found = eval(text, {"t": lib, "F": functional, "x": x})
    except Exception as error:
        return type(error)
    found = found if isinstance(found, tuple) else (found,)
    y = found[0]
    weights = np.arange(y.numel(), dtype=array.dtype).reshape(tuple(y.shape))
    y.backward(lib.tensor(weights))
    arrays = [t.detach().numpy() for t in (*found, x.grad)]
    return arrays, [t.stride() for t in found], type(y.grad_fn).__name__


def compare(text: str, array: Any) -> None:
    torch = pytest.importorskip("torch")
    ours = run(antorcha, F, text, array)
    theirs = run(torch, torch.nn.functional, text, array)
    if isinstance(theirs, type):
        assert isinstance(ours, type)
        assert issubclass(ours, theirs)
        return
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind == "i":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert ours[1:] == theirs[1:]


@needs_torch
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("text", sliding_calls())
def test_planes(text: str, shape: tuple[int, ...]) -> None:
    dtype = "float64" if len(shape) == 3 else "float32"
    compare(text, np.random.default_rng(0).standard_normal(shape).astype(dtype))


@needs_torch
@pytest.mark.parametrize(("text", "shape"), OTHERS)
def test_others(text: str, shape: tuple[int, ...]) -> None:
    compare(text, np.random.default_rng(0).standard_normal(shape).astype("f"))


@needs_torch
@pytest.mark.parametrize("text", ["F.max_pool2d(x, 3, 1, 1, 1, False, True)", "F.max_pool2d(x, 2)"])
def test_nan_wins(text: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6)).astype("f")
    x[0, 0, 1, 1] = x[0, 0, 3, 2] = x[0, 0, 3, 3] = np.nan
    x[1] = -np.inf
    compare(text, x)


@needs_torch
@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.zeros((2, 4, 6, 6), "f")
    ours, theirs = run(antorcha, F, text, x), run(torch, torch.nn.functional, text, x)
    assert isinstance(ours, type)
    assert isinstance(theirs, type)
    assert issubclass(ours, theirs)


def test_unpool_puts_back() -> None:
    x = antorcha.arange(16.0).reshape(1, 1, 4, 4)
    values, where = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(values, where, 2)
    assert back.tolist()[0][0] == [[0, 0, 0, 0], [0, 5, 0, 7], [0, 0, 0, 0], [0, 13, 0, 15]]


def test_second_derivative() -> None:
    x = antorcha.rand(1, 2, 6, 6, dtype=antorcha.float64, requires_grad=True)
    for pool in (lambda v: F.max_pool2d(v, 2), lambda v: F.avg_pool2d(v, 3, 2, 1)):
        (g,) = antorcha.autograd.grad((pool(x) ** 3).sum(), x, create_graph=True)
        (h,) = antorcha.autograd.grad(g.sum(), x)
        eps = 1e-6
        shifted = (x.detach() + eps).requires_grad_()
        (g2,) = antorcha.autograd.grad((pool(shifted) ** 3).sum(), shifted)
        slope = ((g2 - g.detach()) / eps).sum().item()
        np.testing.assert_allclose(slope, h.sum().item(), rtol=1e-4)


@needs_torch
def test_strides_of_max_pool1d_of_permuted_images() -> None:
    import torch

    for wants in (False, True):
        strides = []
        for lib in (antorcha, torch):
            image = lib.arange(72.0).reshape(2, 9, 4).permute(0, 2, 1).requires_grad_(wants)
            values = lib.nn.functional.max_pool1d(image, 2)
            both = lib.nn.functional.max_pool1d(image, 2, return_indices=True)
            strides.append([tuple(each.stride()) for each in (values, *both)])
        assert strides[0] == strides[1]
