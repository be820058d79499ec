"""Every record on the simulator beside the CPU: dtypes, strides, gradients; nn and optimizers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch
from tests.choosing import quick
from tests.devices.sim.sweep import DTYPES, left_to_host, sweep
from tests.ops.records import records

PAGE = Path(__file__).parents[3] / "docs" / "gpu.md"
MOST_ON_HOST = 0.08  # of the records


def some() -> list[Any]:
    """All records, or in the quick suite one in ten."""
    return records()[::10] if quick.active else records()


def test_gradients_too() -> None:
    wrong = sweep(some(), ("float32",), grad=True)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_strided_operands() -> None:
    wrong = sweep(records(), ("float64",), strided=True)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_gradients_of_gradients() -> None:
    wrong = sweep(records(), ("float64",), second=True, most=2)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_other_dtypes() -> None:
    wrong = sweep(records(), [d for d in DTYPES if d != "float32"])
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_few_records_are_left_to_the_host() -> None:
    """Under 8 %, and the guide names them."""
    left = left_to_host(records())
    assert len(left) < MOST_ON_HOST * len(records()), left
    section = PAGE.read_text().split("## What the host computes")[1].split("\n## ")[0]
    named = set(re.findall(r"`([a-z_0-9]+)`", section)) & {op.name for op in records()}
    assert set(left) <= named, sorted(set(left) - named)
    assert named <= set(left), sorted(named - set(left))


OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam",
              "Rprop", "ASGD", "Adafactor", "Muon")  # fmt: skip


def network() -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 5, bias=False),
    )  # fmt: skip


def losses(name: str, device: str) -> list[float]:
    model = network().to(device)
    if name == "Muon":
        chosen = [p for p in model.parameters() if p.ndim == 2]
    else:
        chosen = list(model.parameters())
    optimizer = getattr(torch.optim, name)(chosen, lr=0.01)
    x, y = torch.randn(12, 1, 8, 8).to(device), torch.randint(0, 5, (12,)).to(device)
    found = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_optimizers_train_there_as_on_the_cpu() -> None:
    wrong = []
    for name in OPTIMIZERS:
        ours, theirs = losses(name, "cpu"), losses(name, "sim")
        if ours != pytest.approx(theirs, rel=1e-4):
            wrong.append(f"{name}: {theirs}, on the CPU {ours}")
    assert not wrong, "\n".join(wrong)


def test_recurrent_layers_and_attention_train_there() -> None:
    nn = torch.nn
    makers = {
        "LSTM": lambda: nn.LSTM(6, 8, batch_first=True),
        "GRU": lambda: nn.GRU(6, 8, batch_first=True),
        "encoder": lambda: nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True),
    }
    wrong = []
    for name, make in makers.items():
        results = []
        for device in ("cpu", "sim"):
            torch.manual_seed(0)
            layer, x = make().to(device), torch.randn(3, 5, 6).to(device).requires_grad_()
            out = layer(x)
            out = out[0] if isinstance(out, tuple) else out
            out.square().sum().backward()
            grads = [p.grad.cpu() for p in (*layer.parameters(), x)]
            results.append([out.detach().cpu(), *grads])
        for k, (a, b) in enumerate(zip(*results, strict=True)):
            if not torch.allclose(a, b, rtol=1e-4, atol=1e-5):
                wrong.append(f"{name} {k}: {(a - b).abs().max().item()}")
    assert not wrong, "\n".join(wrong)
