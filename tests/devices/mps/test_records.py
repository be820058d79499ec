"""Every record on device mps beside the CPU: dtypes, strides, gradients; nn and optimizers."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.mps import device, expressions
from antorcha.lang.kernels import Pointwise
from tests.choosing import quick
from tests.devices.sim import sweep as sweeping
from tests.ops.records import records

DTYPES = ("float16", "bfloat16", "int64", "int32", "bool", "complex64")


@pytest.fixture(autouse=True)
def sweep_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "DEVICE", "mps")


def some(every: int = 40) -> list[Any]:
    """All records, or in the quick suite one in so many."""
    return records()[::every] if quick.active else records()


def test_gradients_too() -> None:
    wrong = sweeping.sweep(some(), ("float32",), grad=True)
    assert not wrong, "\n".join(wrong)


def test_strided_operands() -> None:
    wrong = sweeping.sweep(some(80), ("float32",), strided=True, grad=True)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_dtypes(dtype: str) -> None:
    wrong = sweeping.sweep(some(250), (dtype,), grad=True)
    wrong = [w for w in wrong if "dtype('float64') to dtype('bool')" not in w]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_dtypes_strided(dtype: str) -> None:
    wrong = sweeping.sweep(records(), (dtype,), strided=True, grad=True)
    wrong = [w for w in wrong if "dtype('float64') to dtype('bool')" not in w]
    assert not wrong, "\n".join(wrong)


def network() -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, stride=2, groups=2), nn.BatchNorm2d(4), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.LayerNorm(8), nn.GELU(),
        nn.Linear(8, 3),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_training(name: str) -> None:
    losses = []
    for place in ("cpu", "mps"):
        net = network().to(place)
        optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.01)
        torch.manual_seed(1)
        x, y = torch.randn(4, 2, 12, 12).to(place), torch.tensor([0, 1, 2, 1]).to(place)
        for _ in range(4):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        losses.append([loss.item(), *net[0].weight.detach().cpu().flatten().tolist()])
    assert np.allclose(losses[0], losses[1], 1e-4, 1e-5), losses


def test_the_common_descriptions_are_computed_by_mlx() -> None:
    asked: list[str] = []
    before = device.compile_on_host

    def note(backend: Any, what: Any, *args: Any) -> Any:
        asked.append(type(what).__name__)
        return before(backend, what, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "compile_on_host", note)
        x = torch.randn(7, 11, 13, device="mps", requires_grad=True)
        w = torch.randn(13, 17, device="mps")
        y = (x @ w).softmax(-1).cumsum(1)[:, ::2]
        y = torch.nn.functional.gelu(y).sort(-1)[0].gather(2, torch.zeros(
            7, 6, 3, dtype=torch.int64, device="mps"))  # fmt: skip
        y.std(1).sum().backward()
        assert x.grad is not None
        x.detach()[x.detach() > 0] = 1
        torch.nn.functional.dropout(torch.rand(31, device="mps")).argmax()
    assert not asked


def test_fused_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU; on the CPU side MLX takes a C++ compiler for that."""
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(expressions, "fuses", lambda: True)
    fused = expressions.MLXGraph
    made = []

    class Noted(fused):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self.fused is not None)

    monkeypatch.setattr(expressions, "MLXGraph", Noted)
    compute = device.COMPUTES[Pointwise]
    assert compute is expressions.compute_pointwise
    found = []
    for place in ("cpu", "mps"):
        x = torch.linspace(-2, 2, 41).to(place)[::3]
        found.append(torch.lerp(x, x.flip(0), 0.3173).tolist())
    assert np.allclose(found[0], found[1], 1e-5, 1e-6)
    assert any(made)
