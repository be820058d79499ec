"""What is imported late: the collector rests meanwhile, and only meanwhile."""

from __future__ import annotations

import gc
import importlib
import json
from types import ModuleType

import pytest

from antorcha.lazy import imported, without_collecting


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
