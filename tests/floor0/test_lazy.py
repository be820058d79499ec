"""What is imported late: the collector rests meanwhile, and only meanwhile."""

from __future__ import annotations

import gc

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
