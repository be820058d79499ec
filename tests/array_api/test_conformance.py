"""The public suite of the array API standard (data-apis/array-api-tests), where it is on this
machine: ``ANTORCHA_ARRAY_API_TESTS`` names its folder, with the standard in ``array-api`` there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import antorcha

SUITE = os.environ.get("ANTORCHA_ARRAY_API_TESTS", "")


@pytest.mark.slow
@pytest.mark.skipif(not SUITE, reason="ANTORCHA_ARRAY_API_TESTS names no folder")
def test_the_standards_own_tests() -> None:
    source = str(Path(antorcha.__file__).parents[1])
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore",
         "--max-examples", "200", "--disable-deadline",
         "array_api_tests"],
        cwd=SUITE, env={**os.environ, "ARRAY_API_TESTS_MODULE": "antorcha.array_api",
                        "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout[-4000:]
