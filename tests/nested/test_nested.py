"""Nested tensors, a subclass of Tensor: in a process of their own (see tests/conftest.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE

CASES = Path(__file__).with_name("subclass_nested.py")


def test_nested_tensors_in_a_process_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=CASES.parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
