"""What all tests share: the markers' meaning, two threads, and hypothesis without a stopwatch.

Which tests run is settled in ``choosing``: its ``plugin`` has the options, ``quick`` the rules of
the quick suite that ``./run test`` runs, ``changes`` those of ``--changed``.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Read when the libraries are imported, so set before any test module is.
os.environ.setdefault("ANTORCHA_NUM_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")
# Which path a call takes is not to depend on what is compiled by then.
os.environ.setdefault("ANTORCHA_CALL", "native")
# PyTorch's threads look for work without a pause, which would take the time of other processes.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Who mends a test needs antorcha's own lines, too.
os.environ.setdefault("ANTORCHA_TRACEBACK", "full")

# A first call compiles its kernel: a deadline would measure the compiler. Derandomised, so that a
# failure is the same on every machine; the fuzz tests draw their own seeds. A machine that is slow
# in drawing examples is no failure either.
settings.register_profile(
    "antorcha", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("antorcha")

pytest_plugins = ["tests.choosing.plugin"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this machine, or this run, has no use for."""
    reasons = {
        "exhaustive": None if config.getoption("--exhaustive") else "runs with --exhaustive",
        "slow": None if config.getoption("--all") else "slow: runs with --all",
        "oracle": None if importlib.util.find_spec("torch") else "PyTorch is not installed",
        "gpu": None if _has_gpu() else "no GPU that antorcha can use",
    }
    for item in items:
        for marker, reason in reasons.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True, scope="module")
def _collector_looks_at_what_is_new() -> None:
    """Thousands of tests and all kernels live to the end: a test that collects has no use for
    looking at them, which would take half a second each time."""
    gc.collect()
    gc.freeze()


def _slot_of_add() -> int:
    """What serves ``a + b``; 0 while nothing is known of it."""
    native = sys.modules.get("antorcha.runtime.call.native")
    if native is None or not native.ACTIVE:
        return 0
    slots, tensor = (sys.modules[f"antorcha.runtime.{n}"] for n in ("call.native.slots", "tensor"))
    served: int = slots.word(slots.number_slot(tensor.Tensor, "add")).value
    return served


@pytest.fixture(autouse=True)
def _native_path_stays_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """A class that is asked of calls is so for good, and calls by Python from then on look at their
    arguments: every test after it would test something else. Whoever makes one does it in a process
    of its own, as the files do that are called ``subclass_..``."""
    if request.path.name.startswith("subclass_"):
        yield
        return
    modes = sys.modules.get("antorcha.core.modes")
    before = modes is not None and modes.subclasses
    assert not before, "a test file makes a subclass of Tensor: run that in a process of its own"
    slot = _slot_of_add()
    yield
    replaced = slot and _slot_of_add() != slot
    assert not replaced, "the test has Tensor's operators run by Python: give it its own process"
    modes = sys.modules.get("antorcha.core.modes")
    made = modes is not None and modes.subclasses
    if made:
        assert modes is not None
        modes.look_at_arguments(-modes._lookers)  # so that the test that did it is the one to fail
    assert not made, "the test makes a subclass of Tensor: run that in a process of its own"


@pytest.fixture
def no_collection() -> Iterator[None]:
    """What earlier tests have left in cycles is not freed while this one counts bytes."""
    gc.disable()
    yield
    gc.enable()


def _has_gpu() -> bool:
    if not any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/dxg")):
        return False
    import antorcha

    return bool(antorcha.cuda.is_available())
