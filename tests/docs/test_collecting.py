"""The tests work where nothing optional is installed, PyTorch first of all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = ("torch", "torchvision", "tensorboard", "transformers", "safetensors", "gguf")
COLLECT = f"""
import sys
sys.modules.update(dict.fromkeys({HIDDEN!r}))  # their import raises ModuleNotFoundError
import pytest
sys.exit(pytest.main(["--collect-only", "-q", "--quick", "-p", "no:cacheprovider"]))
"""


@pytest.mark.slow
def test_all_tests_are_found_without_pytorch() -> None:
    """And the quick suite, which this lists, has some of each folder."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout[-4000:]
    *tests, last = done.stdout.splitlines()
    assert "error" not in last
    folders = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/test_*.py")}
    assert folders == {line.partition("::")[0].rpartition("/")[0] for line in tests if "::" in line}
