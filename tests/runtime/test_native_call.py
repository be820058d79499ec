"""The native call path: each behaviour in a process of its own, freed memory overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

NAMES = {
    "native_call_behaviour": [
        "served", "served_methods", "served_ops", "served_any_size", "served_first_in_no_grad",
        "random_operands", "served_writes",
        "reflected", "modes", "versions_and_views", "views", "indices", "subclass",
        "broken_tensors", "methods", "patched", "references", "threads",
    ],
    "native_backward_behaviour": [
        "served", "graphs", "numbers", "accumulation", "hooks", "functions", "errors", "writes",
        "deep", "memory", "flushed", "threads", "tampered", "replayed_rules",
    ],
}  # fmt: skip
ALL = [(file, name) for file, names in NAMES.items() for name in names]


def run(file: str, name: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", f"tests.runtime.{file}", name],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONMALLOC": "debug", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize(("file", "name"), ALL)
def test_native(file: str, name: str) -> None:
    run(file, name, ANTORCHA_CALL="native")


@pytest.mark.parametrize(("file", "name"), [each for each in ALL if "served" not in each[1]])
def test_python(file: str, name: str) -> None:
    run(file, name, ANTORCHA_CALL="python")


FEW = ("modes", "versions_and_views", "indices", "graphs", "accumulation", "writes", "hooks")


@pytest.mark.slow
@pytest.mark.parametrize(("file", "name"), [each for each in ALL if each[1] in FEW])
def test_checked(file: str, name: str) -> None:
    """Some of them with all invariants checked at each call, which takes its time."""
    run(file, name, ANTORCHA_CALL="checked")


def test_the_second_call_of_anything_runs_next_to_no_python() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.second_calls"], cwd=Path(__file__).parents[2],
        env={**os.environ, "ANTORCHA_CALL": "native"}, capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
