"""Autograd's tests: both libraries under short names."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

import antorcha


@pytest.fixture(params=["antorcha", "torch"])
def lib(request: pytest.FixtureRequest) -> Any:
    """The same test on antorcha and, where it is installed, on PyTorch: it says what is right."""
    if request.param == "antorcha":
        return antorcha
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    return importlib.import_module("torch")


@pytest.fixture
def torch() -> Any:
    """antorcha, under the name that programs use."""
    return antorcha
