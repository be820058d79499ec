"""A finalizer that runs inside of a call may free the operands' memory, and nothing reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

KINDS = [
    "pointwise", "folds", "views", "writes", "factories", "random", "products", "lists", "recorded",
    "backward",
]  # fmt: skip


@pytest.mark.parametrize("path", ["native", "python"])
@pytest.mark.parametrize("kind", KINDS)
def test_collections_inside_of_calls(kind: str, path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.runtime.finalizer_behaviour", kind],
        cwd=Path(__file__).parents[2], env={**os.environ, "ANTORCHA_CALL": path},
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-3000:]
