"""Modules that are imported at their first use."""

from __future__ import annotations

import importlib
import json
from types import ModuleType

import pytest

from antorcha import lazy


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
    assert lazy.imported("json") is json
    assert tried == ["json"] * 3


def test_other_errors_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ModuleType:
        raise RuntimeError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(RuntimeError, match="json"):
        lazy.imported("json")
