"""What is imported late: the collector rests meanwhile, and only meanwhile; where that is said."""

from __future__ import annotations

import ast
import gc
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import antorcha
from antorcha.core.lazy import imported, without_collecting


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_rests_while_something_is_imported(collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with without_collecting():
            assert not gc.isenabled()
            with without_collecting():
                pass
            assert not gc.isenabled()
        assert gc.isenabled() is collects
        with pytest.raises(ModuleNotFoundError):
            imported("antorcha.no_such_module")
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


def test_threads_that_would_wait_for_each_other_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class _DeadlockError(RuntimeError):
        """As importlib's."""

    tried: list[str] = []

    def refuse_twice(name: str) -> ModuleType:
        tried.append(name)
        if len(tried) < 3:
            raise _DeadlockError("deadlock detected")
        return json

    monkeypatch.setattr(importlib, "import_module", refuse_twice)
    assert imported("json") is json
    assert tried == ["json"] * 3


def test_other_errors_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ModuleType:
        raise RuntimeError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(RuntimeError, match="json"):
        imported("json")


OPTIONAL = {"PIL", "matplotlib"}  # packages that need not be there
FREE = ("cli/", "lab/")  # commands, and a page of packages that need not be there
NOT_YET = ("autograd/engine.py", "devices/", "runtime/", "tensor/bind.py")
"""Whose functions still import modules of ``WITHIN``, and others. Strike out; add none."""


def within_functions(file: Path) -> Iterator[str]:
    """The modules, or packages, that a file's functions import."""
    for function in ast.walk(ast.parse(file.read_text())):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.ImportFrom):
                yield node.module or ""
            elif isinstance(node, ast.Import):
                yield from [each.name for each in node.names]


def test_modules_are_imported_at_the_top_or_lazily() -> None:
    root = Path(antorcha.__file__).parent
    found = {
        f"{name}: {module}"
        for file in sorted(root.rglob("*.py"))
        if not (name := file.relative_to(root).as_posix()).startswith((*FREE, *NOT_YET))
        for module in within_functions(file)
        if module.split(".")[0] not in OPTIONAL
    }
    assert not found, f"import it at the top, or say `name = lazy(module)` there: {found}"
