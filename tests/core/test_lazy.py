"""What is imported late: the collector rests meanwhile, and only meanwhile; where that is said."""

from __future__ import annotations

import ast
import gc
import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

import antorcha
from antorcha.core import lazy as late_imports
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


# ------------------------------------------------------------------ where a late import is said
SOURCE = Path(antorcha.__file__).parent
MODULE_NAMES = {"pillow": "PIL", "pyyaml": "yaml", "scikit_learn": "sklearn"}  # by package
ALLOWED = {
    "fx/graph.py: tabulate": "print_tabular's, in no extra: PyTorch leaves it to programs, too",
    "serialization/__init__.py: safetensors.torch": "a program's own, for which antorcha is torch",
}


def optional_packages() -> set[str]:
    """What the extras install and antorcha itself does not need, as modules."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras, needed = (
        {re.match(r"[\w.-]+", each)[0].lower().replace("-", "_") for each in listed}
        for listed in (chain(*project["optional-dependencies"].values()), project["dependencies"])
    )
    return {MODULE_NAMES.get(name, name) for name in extras - needed}


def within_functions(tree: ast.Module) -> Iterator[str]:
    """The modules, or packages, that functions import, by statements or by constant names.

    A module's ``__getattr__`` may import by name what it is asked for: that is a late import."""
    functions = [
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, ast.ImportFrom):
                yield node.module or "."
            elif isinstance(node, ast.Import):
                yield from [each.name for each in node.names]
            elif (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in ("importlib.import_module", "__import__")
                and isinstance(node.args[0], ast.Constant)
                and not (function.name == "__getattr__" and function in tree.body)
            ):
                yield str(node.args[0].value)


def test_modules_are_imported_at_the_top_or_lazily() -> None:
    optional = optional_packages()
    assert {"matplotlib", "PIL", "yaml"} <= optional
    assert not optional & {"numpy", "scipy", "llvmlite", "rich"}
    found = {
        f"{file.relative_to(SOURCE).as_posix()}: {module}"
        for file in SOURCE.rglob("*.py")
        for module in within_functions(ast.parse(file.read_text()))
        if module.split(".")[0] not in optional
    }
    late = sorted(found - {*ALLOWED})
    assert not late, f"import it at the top, or say `name = lazy(module)` there: {late}"
    assert {*ALLOWED} <= found, "strike out what is allowed and not there"


def test_no_package_names_what_it_defers_as_its_own_module() -> None:
    """``from package import module`` would give what stands for it, not the module."""
    found = [
        f"{file.relative_to(SOURCE).as_posix()}: {name.id}"
        for file in SOURCE.rglob("__init__.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.Assign) and "lazy(" in ast.unparse(node.value)
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        if (file.parent / f"{name.id}.py").exists() or (file.parent / name.id).is_dir()
    ]
    assert not found


def test_what_only_commands_want_is_not_loaded_before_a_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(late_imports, "imported", asked.append)
    monkeypatch.setattr(late_imports, "_deferred", {})
    late_imports.lazy("json.tool", before_forks=False)
    late_imports.lazy("json.decoder")
    late_imports.load_deferred()
    assert asked == ["json.decoder"]
