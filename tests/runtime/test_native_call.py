"""The native call path: each behaviour in a process of its own, freed memory overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BEHAVIOUR = Path(__file__).with_name("native_call_behaviour.py")
NAMES = [
    "served", "served_methods", "random_operands", "reflected", "modes", "versions_and_views",
    "views", "indices", "subclass", "broken_tensors", "patched", "references", "threads",
]  # fmt: skip


def run(name: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(BEHAVIOUR), name],
        env={**os.environ, "PYTHONMALLOC": "debug", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_native(name: str) -> None:
    run(name)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("served")])
def test_python(name: str) -> None:
    run(name, ANTORCHA_CALL="python")
