"""``./run test`` works where nothing optional is installed, PyTorch first of all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = ("torch", "torchvision", "tensorboard", "transformers", "safetensors", "gguf")
COLLECT = f"""
import sys
sys.modules.update(dict.fromkeys({HIDDEN!r}))  # their import raises ModuleNotFoundError
import pytest
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "tests"]))
"""


def test_all_tests_are_found_without_pytorch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "error" not in done.stdout.splitlines()[-1]
