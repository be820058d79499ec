"""Subclasses of Tensor and ``__torch_function__``.

In a process of its own: the first subclass makes every later call of the process look closer.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE

BEHAVIOUR = Path(__file__).with_name("subclass_behaviour.py")


def test_subclasses_in_a_process_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(BEHAVIOUR)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=BEHAVIOUR.parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
