"""The checks of what programs do on a GPU (``tools/gpu_programs.py``): on one, and small with the
fake driver."""

from __future__ import annotations

import pytest

from tests.devices.cuda.fake_driver import FakeLibrary
from tools import gpu_programs

LONG = (
    "a cnn by autocast",
    "a transformer by autocast",
    "clipped gradients",
    "moments of distributions",
)


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(gpu_programs.CHECKS))
def test_a_check(name: str) -> None:
    said = gpu_programs.ask(name)
    assert said.startswith("ok"), said


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.slow] * (each in LONG)) for each in gpu_programs.CHECKS],
)
def test_a_small_check(library: FakeLibrary, name: str) -> None:
    said = gpu_programs.ask(name, small=True)
    assert said.startswith("ok"), said
