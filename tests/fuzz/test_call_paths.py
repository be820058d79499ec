"""The two call paths on random programs; ``python -m tests.fuzz.call_paths`` for more of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.patience import PATIENCE

CORPUS = [58, *range(24)]
"""Seeds of programs that have shown something, and some more."""
_RUN = """
import sys
from antorcha.runtime.call import native
from tests.fuzz.call_paths import compare
assert native.ACTIVE, native.why_not()
for seed in map(int, sys.argv[1:]):
    print(compare(seed), end="")
"""


def run(seeds: list[int], **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", _RUN, *map(str, seeds)],
        env={**os.environ, "ANTORCHA_CALL": "native", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-3000:]


def test_corpus() -> None:
    run(CORPUS, PYTHONMALLOC="debug")


@pytest.mark.slow
def test_more() -> None:
    run(list(range(1000, 1300)))
