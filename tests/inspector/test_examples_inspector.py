"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

import antorcha
from antorcha.inspector import forms, shown
from antorcha.inspector.explain import explanation, shapes
from antorcha.inspector.graph import picture, words
from antorcha.inspector.summary import multiply_adds, table


@pytest.mark.parametrize(
    "module",
    [explanation, shapes, forms, picture, words, multiply_adds, shown, table],
    ids=lambda m: m.__name__,
)
def test_examples(module: ModuleType) -> None:
    result = doctest.testmod(module, extraglobs={"torch": antorcha})
    assert result.attempted
    assert not result.failed
