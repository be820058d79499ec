"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

import antorcha
from antorcha.inspector import multiply_adds, summary, words


def module_of(thing: object) -> ModuleType:
    """A module, or that of a function that hides it by its name."""
    import sys

    return sys.modules[thing.__module__] if hasattr(thing, "__module__") else thing  # type: ignore[attr-defined,return-value]


@pytest.mark.parametrize(
    "module", [multiply_adds, module_of(summary), words], ids=lambda m: m.__name__
)
def test_examples(module: ModuleType) -> None:
    result = doctest.testmod(module, extraglobs={"torch": antorcha})
    assert result.attempted
    assert not result.failed
