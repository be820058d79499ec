"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

import antorcha
from antorcha.inspector import (
    explain,
    explain_shapes,
    forms,
    graph,
    graph_words,
    multiply_adds,
    shown,
    summary,
)


@pytest.mark.parametrize(
    "module",
    [explain, explain_shapes, forms, graph, graph_words, multiply_adds, shown, summary],
    ids=lambda m: m.__name__,
)
def test_examples(module: ModuleType) -> None:
    result = doctest.testmod(module, extraglobs={"torch": antorcha})
    assert result.attempted
    assert not result.failed
