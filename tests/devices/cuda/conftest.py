"""A fake driver for the tests of this folder: see ``fake_driver``."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.devices.cuda import fake_driver
from tests.devices.cuda.fake_driver import FakeLibrary


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLibrary]:
    """Two GPUs, to whose functions nothing unforeseen happens."""
    found = fake_driver.install(monkeypatch, FakeLibrary(gpus=2))
    yield found
    gc.collect()
    fake_driver.forget()
    for error in found.errors:
        raise error
