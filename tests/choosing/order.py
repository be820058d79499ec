"""The order of the files in a run of several processes: long ones first.

pytest-xdist gives a file to whichever process is done with its own. A long one that begins last
leaves the other processes without work, so those begin first of which most seconds are guessed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.choosing.quick import file_of, starts_processes

SECONDS = {"slow": 15.0, "starts": 3.0, "plain": 0.05, "skip": 0.0}
"""Of a test that is marked slow, one that starts processes, any other, and one that is skipped."""
COMPILING = {"tests/devices/sim/": 5.0, "tests/ops/test_threads.py": 20.0}
"""Of any other test of these paths: they compile many kernels."""


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The same tests, those of a file in their order."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(file_of(item), []).append(item)
    ordered = sorted(files.values(), key=lambda tests: -sum(map(_seconds, tests)))
    return [item for tests in ordered for item in tests]


def _seconds(item: pytest.Item) -> float:
    for marker in ("skip", "slow"):
        if item.get_closest_marker(marker):
            return SECONDS[marker]
    if starts_processes(item):
        return SECONDS["starts"]
    paths = [path for path in COMPILING if item.nodeid.startswith(path)]
    return COMPILING[paths[0]] if paths else SECONDS["plain"]
