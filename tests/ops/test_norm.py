"""Normalisation: values, gradients of two orders and running statistics against PyTorch; errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import NAMESPACES
from tests.ops.parity import needs_torch

F = SimpleNamespace(**NAMESPACES["nn.functional"])
TOLERANCE = {"float32": 2e-4, "float64": 1e-9, "float16": 2e-2, "bfloat16": 1e-1}

CALLS = """
F.layer_norm(x(4, 6, 5), (5,))
F.layer_norm(x(4, 6, 5), (6, 5), x(6, 5), x(6, 5))
F.layer_norm(x(4, 6, 5), (5,), x(5), None, 1e-3)
F.layer_norm(x(5), (5,), x(5), x(5))
F.layer_norm(x(4, 6, 5).transpose(0, 1), (5,), x(5))
F.layer_norm(x(0, 5), (5,), x(5))
F.rms_norm(x(4, 6, 5), (5,))
F.rms_norm(x(4, 6, 5), (6, 5), x(6, 5))
F.rms_norm(x(4, 6, 5), (5,), x(5), 1e-3)
F.rms_norm(x(5), (5,), x(5))
F.batch_norm(x(4, 6), None, None, training=True)
F.batch_norm(x(4, 6, 5), b(6), b(6), x(6), x(6), True)
F.batch_norm(x(4, 6, 5), b(6), b(6), x(6), x(6), False)
F.batch_norm(x(4, 6, 5, 3), b(6), b(6), x(6), None, True, 0.3, 1e-3)
F.batch_norm(x(4, 6, 5, 3).contiguous(memory_format=t.channels_last), b(6), b(6), x(6), x(6), True)
F.batch_norm(x(2, 3, 2, 2, 2), b(3), b(3), x(3), x(3), True)
F.group_norm(x(4, 6, 5), 2)
F.group_norm(x(4, 6, 5), 3, x(6), x(6))
F.instance_norm(x(4, 6, 5))
F.instance_norm(x(4, 6, 5), b(6), b(6), x(6), x(6))
F.local_response_norm(x(2, 5, 4), 3)
F.local_response_norm(x(2, 5, 4, 3), 2, 0.5, 0.5, 2.0)
F.normalize(x(4, 5))
""".strip().splitlines()

ERRORS = """
F.layer_norm(x(4, 6, 5), [4])
F.layer_norm(x(4, 6, 5), (5,), x(6))
F.layer_norm(x(4, 5), ())
F.layer_norm(x(4, 5).long(), (5,))
F.group_norm(x(4, 6, 5), 4)
F.group_norm(x(4, 6, 5), 2, x(5))
F.group_norm(x(5), 1)
F.batch_norm(x(4, 6), None, None)
F.batch_norm(x(4, 6), b(3), b(6), training=True)
F.batch_norm(x(4, 6), b(6), b(6), x(5), training=True)
F.batch_norm(x(1, 6, 1), b(6), b(6), training=True)
F.batch_norm(x(6), b(6), b(6))
F.batch_norm(x(4, 6), b(6), b(6), None, None, True, 0.1, -1.0)
F.instance_norm(x(4, 6, 1))
F.local_response_norm(x(2, 5), 3)
""".strip().splitlines()


def run(lib: Any, functional: Any, text: str, dtype: str, second: bool) -> Any:
    leaves: list[Any] = []
    buffers: list[Any] = []

    def values(shape: Any, seed: int) -> Any:
        return lib.tensor(np.random.default_rng(seed).standard_normal(shape))

    def x(*shape: int) -> Any:
        made = values(shape, len(leaves)).to(getattr(lib, dtype)).requires_grad_()
        leaves.append(made)
        return made

    def b(*shape: int) -> Any:
        kind = "float32" if "16" in dtype else dtype
        made = (values(shape, 50 + len(buffers)).abs() + 0.5).to(getattr(lib, kind))
        buffers.append(made)
        return made

    try:
        y = eval(text, {"t": lib, "F": functional, "x": x, "b": b})
    except Exception as error:
        return type(error)
    weights = values(tuple(y.shape), 90).to(y.dtype)
    grads = lib.autograd.grad(y, leaves, weights, create_graph=second)
    found = [y, *buffers, *grads]
    if second:
        total = sum((g * values(tuple(g.shape), 7).to(g.dtype)).sum() for g in grads)
        more = lib.autograd.grad(total, leaves, allow_unused=True)
        found += [m for m in more if m is not None]
    return [t.detach().double().numpy() for t in found], y.stride(), type(y.grad_fn).__name__


def compare(text: str, dtype: str, second: bool) -> None:
    torch = pytest.importorskip("torch")
    ours = run(antorcha, F, text, dtype, second)
    theirs = run(torch, torch.nn.functional, text, dtype, second)
    for a, b in zip(ours[0], theirs[0], strict=True):
        scale = np.abs(b).max() + 1e-2 if b.size else 1
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=TOLERANCE[dtype])
    assert ours[1] == theirs[1]
    if dtype not in ("float16", "bfloat16"):
        assert ours[2] == theirs[2]


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", CALLS)
def test_first_order(text: str, dtype: str) -> None:
    compare(text, dtype, False)


@needs_torch
@pytest.mark.parametrize("text", CALLS)
def test_second_order(text: str) -> None:
    if "None, 1e-3" in text or "x(0" in text or "None, True, 0.3" in text:
        pytest.skip("PyTorch fails here")
    compare(text, "float64", True)


@needs_torch
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("text", [c for c in CALLS if "layer" in c or "rms" in c])
def test_halves(text: str, dtype: str) -> None:
    compare(text, dtype, False)


@needs_torch
@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    torch = pytest.importorskip("torch")
    ours = run(antorcha, F, text, "float32", False)
    theirs = run(torch, torch.nn.functional, text, "float32", False)
    assert isinstance(ours, type)
    assert isinstance(theirs, type)
    assert issubclass(ours, theirs)


def test_running_statistics() -> None:
    x = antorcha.tensor([[1.0], [3.0]])
    mean, var = antorcha.zeros(1), antorcha.ones(1)
    before = mean._version
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1.0]
    assert var.tolist() == [1.5]  # the unbiased variance is 2
    assert mean._version == before  # as in PyTorch: the layer may run again before backward


def test_layer_norm_is_one_kernel() -> None:
    x = antorcha.randn(64, 1024)
    y = F.layer_norm(x, (1024,))
    np.testing.assert_allclose(y.mean(1).numpy(), 0, atol=1e-5)
    np.testing.assert_allclose(y.std(1, correction=0).numpy(), 1, atol=1e-4)
