"""Nothing that anybody passes to anything ends the process.

ANTORCHA_FUZZ_SECONDS says for how long to try (20); ANTORCHA_FUZZ_SEED where to begin (0).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SECONDS = float(os.environ.get("ANTORCHA_FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("ANTORCHA_FUZZ_SEED", "0"))
ROOT = Path(__file__).parents[2]


def child(seconds: float, seed: int, first: int, log: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz.child", "--seconds", str(seconds), "--seed", str(seed),
         "--first", str(first), "--log", str(log)],
        capture_output=True, text=True, cwd=log.parent, timeout=seconds + 120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip


def last_words(log: Path) -> tuple[int, str]:
    """The number of the call that ran last, and what it was."""
    text = log.read_text().strip("\0 \n")
    return (int(text.split(" ")[1]), text) if text else (0, "before the first call")


@pytest.mark.skipif(sys.platform == "win32", reason="limits memory with resource")
def test_random_arguments_never_end_the_process(tmp_path: Path) -> None:
    log = tmp_path / "last_call.txt"
    end = time.monotonic() + SECONDS
    first, dead, slow, calls = 0, [], [], 0
    confused: list[str] = []
    poor: dict[str, Any] = {}
    while (left := end - time.monotonic()) > 0.5:
        done = child(left, SEED, first, log)
        if done.returncode == 0:
            report = json.loads(done.stdout.splitlines()[-1])
            calls += report["calls"]
            confused += report["confused"]
            poor |= report["poor"]
            break
        number, words = last_words(log)
        calls += number - first
        if done.returncode < 0:
            dead.append(f"{signal.Signals(-done.returncode).name}: {words}\n{done.stderr[-1500:]}")
        elif "Timeout" in done.stderr:
            slow.append(words)  # a call that takes its time is no crash
        else:
            dead.append(f"exit code {done.returncode}: {words}\n{done.stderr[-1500:]}")
        first = number + 1
        if len(dead) >= 5:
            break
    where = os.environ.get("ANTORCHA_FUZZ_REPORT")
    if where:
        told = {"calls": calls, "dead": dead, "slow": slow, "confused": confused, "poor": poor}
        Path(where).write_text(json.dumps(told, indent=1))
    print(f"{calls} calls, {len(slow)} slow, {len(poor)} poor errors")
    assert not dead, "\n".join(dead)
    assert not confused, "\n".join(confused[:20])
    assert calls > 0
