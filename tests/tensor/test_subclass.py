"""Subclasses of Tensor and ``__torch_function__``.

In processes of their own: what was looked at once looks closer from then on.
"""

from __future__ import annotations

import os
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


def test_plain_tensors_cost_the_same_whatever_classes_there_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.tensor.subclass_costs"],
        capture_output=True, text=True, timeout=PATIENCE, cwd=BEHAVIOUR.parents[2],
        env={**os.environ, "ANTORCHA_CALL": "native"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]
