"""A lab, a browser and a learner, for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.learner import Lab, Learner, browser


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("work"))
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def context(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    size = {"width": 1280, "height": 800}
    with browser(tmp_path_factory.mktemp("profile"), viewport=size) as context:
        yield context


@pytest.fixture(scope="module")
def learner(lab: Lab, context: Any) -> Learner:
    learner = Learner(context.pages[0])
    learner.open(lab.address)
    return learner
