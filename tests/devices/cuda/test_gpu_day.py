"""The prepared run for a GPU: its steps work, small and on the fake driver; failures are noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.devices.cuda.fake_driver import FakeLibrary
from tools import gpu_day


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch has no part in it, and the sweep is left as it was."""
    monkeypatch.setattr(gpu_day, "libraries", lambda: {"antorcha": gpu_day.antorcha})
    monkeypatch.setattr(gpu_day.sweep, "DEVICE", "sim")


@pytest.mark.parametrize("name", [k for k, step in gpu_day.STEPS.items() if not step.own])
def test_a_step(library: FakeLibrary, name: str) -> None:
    found = gpu_day.STEPS[name].run(gpu_day.Part(0, 100, small=True))
    json.dumps(found)
    if name == "smallest":
        left = {key for key, right in found["checks"].items() if not right}
        assert not left
    if name == "compare":
        assert found["ops"] == 3
        assert found["wrong"] == []
    if name == "training":
        assert len(found) == 2
        for each in found.values():
            assert each["losses"][1] < each["losses"][0]
    if name in ("copies", "products"):
        for op, rates in found.items():
            assert isinstance(rates["antorcha"], float), (op, rates)


def test_failures_are_noted_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers: list[dict[str, Any]] = [{"failed": "exit code -11"}, {"result": {"a": 1}, "s": 1.0}]
    monkeypatch.setattr(gpu_day, "child", lambda *_, **__: answers.pop(0))
    gpu_day.run_all(["smallest", "driver"], 60.0, tmp_path / "cuda.json")
    found = json.loads((tmp_path / "cuda.json").read_text())["steps"]
    assert found["smallest"] == [{"failed": "exit code -11"}]
    assert found["driver"][0]["result"] == {"a": 1}


def test_a_child_without_a_gpu_says_so() -> None:
    found = gpu_day.child("smallest", gpu_day.Part(), 60)
    assert "not compiled with CUDA" in found["said"]
    assert found["failed"] == "exit code 1"
