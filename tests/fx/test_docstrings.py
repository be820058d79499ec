"""The examples in the docstrings of ``func``, ``library`` and ``fx`` run."""

from __future__ import annotations

import doctest
import importlib

import pytest

import antorcha as torch

MODULES = (
    "func.gradients func.vmap func.modules library library.schema library.custom fx "
    "fx.graph fx.graph_module fx.proxy fx._symbolic_trace fx.interpreter fx.subgraph_rewriter "
    "fx.codegen fx.passes.shape_prop fx.passes.split_module fx.experimental.optimization "
    "fx.experimental.symbolic_shapes "
    "utils._python_dispatch"
).split()
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = importlib.import_module(f"antorcha.{name}")
    for test in doctest.DocTestFinder().find(module, globs={**vars(module), "torch": torch}):
        assert not doctest.DocTestRunner(optionflags=OPTIONS).run(test).failed, test.name
