"""Functions that answer an error which depends on the elements: they go on answering it, however
often they were called before (what a function runs is learnt, and that is not all it does)."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch

OPS = Path(torch.__file__).parent / "ops"
BY_LAYOUTS = {"unflatten"}  # what they answer depends on sizes, which are part of the plan


@pytest.mark.parametrize("function", [torch.linalg.inv_ex, torch.linalg.cholesky_ex])
def test_info_is_told_after_many_calls(function: Any) -> None:
    for _ in range(8):
        assert function(torch.eye(2)).info == 0
    for _ in range(8):
        assert function(-torch.eye(2) if function is torch.linalg.cholesky_ex
                        else torch.zeros(2, 2)).info == 1  # fmt: skip
    with pytest.raises(RuntimeError):
        function(torch.zeros(2, 2), check_errors=True)


def test_who_answers_errors_says_so() -> None:
    """`runtime.call.tape.spoil`, before the call whose error is answered."""
    silent = []
    for file in OPS.glob("*.py"):
        for each in ast.walk(ast.parse(file.read_text())):
            if not isinstance(each, ast.FunctionDef) or each.name in BY_LAYOUTS:
                continue
            catches = any([isinstance(node, ast.ExceptHandler) for node in ast.walk(each)])
            if catches and "spoil(" not in ast.unparse(each):
                silent.append(f"{file.name}: {each.name}")
    assert not silent
