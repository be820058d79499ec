"""The device mps on MLX's CPU side: skipped where MLX is not installed."""

from __future__ import annotations

import pytest

from antorcha.devices.mps import library


@pytest.fixture(autouse=True)
def on_mlx(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlx.core")
    if not library.kind():  # (a Mac's GPU is taken where there is one)
        monkeypatch.setenv(library.SWITCH, "cpu")
