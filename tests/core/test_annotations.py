"""Functions without types are records' functions or in the kernel language: mypy asks all others
where pyproject.toml does not excuse a file, this asks the rest."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
STANDARD = ("cache", "functools", "contextmanager", "property", "staticmethod", "classmethod")
RECORDED = {
    "nll_of_logits", "nll_of_logs", "poisson_nll_each", "gaussian_nll_each", "_bce_positive",
    "_to_device",
}  # fmt: skip
"""Records' functions that are given to a class, below them, instead of decorated with one."""


def excused() -> list[str]:
    """The modules in which mypy lets functions be without types."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        overrides = tomllib.load(file)["tool"]["mypy"]["overrides"]
    return [
        name
        for each in overrides
        if each.get("disallow_untyped_defs") is False
        for name in each["module"]
    ]


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """Functions of the module and methods of its classes; what they hold is their own affair."""
    for node in ast.parse(path.read_text()).body:
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(each, ast.FunctionDef):
                yield each


def is_annotated(function: ast.FunctionDef) -> bool:
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    wanted = [a for a in named if a is not None and a.arg not in ("self", "cls")]
    return function.returns is not None and all(a.annotation is not None for a in wanted)


def decorated_by_ours(function: ast.FunctionDef) -> bool:
    """Is it under a record's decorator, or the kernel language's?"""
    return any(not ast.unparse(each).startswith(STANDARD) for each in function.decorator_list)


def test_functions_have_types() -> None:
    modules = excused()
    bare = []
    for path in sorted(SRC.rglob("*.py")):
        name = ".".join(path.relative_to(SRC).with_suffix("").parts)
        if any(fnmatch(name, each) for each in modules):
            bare += [
                f"{path.relative_to(ROOT)}:{f.lineno} {f.name}"
                for f in functions(path)
                if not (is_annotated(f) or decorated_by_ours(f) or f.name in RECORDED)
            ]
    assert not bare
