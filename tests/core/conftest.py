"""What the tests of floor 0 share: PyTorch as an oracle, where it is installed."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def torch() -> Any:
    """PyTorch itself; a test that asks for it counts as an `oracle` test."""
    return pytest.importorskip("torch")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/core" in item.nodeid and "torch" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.oracle)
