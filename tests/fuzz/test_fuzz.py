"""Nothing that anybody passes to anything ends the process.

ANTORCHA_FUZZ_CALLS says how many calls to try (2500); ANTORCHA_FUZZ_SEED which ones (0).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = int(os.environ.get("ANTORCHA_FUZZ_CALLS", "2500"))
SEED = int(os.environ.get("ANTORCHA_FUZZ_SEED", "0"))
ROOT = Path(__file__).parents[2]


def child(first: int, log: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz.child", "--seed", str(SEED), "--first", str(first),
         "--end", str(CALLS), "--log", str(log)],
        capture_output=True, text=True, cwd=log.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip


def last_words(log: Path) -> tuple[int, str]:
    """The number of the call that ran last, and what it was."""
    text = log.read_text().strip("\0 \n")
    return (int(text.split(" ")[1]), text) if text else (0, "before the first call")


@pytest.mark.skipif(sys.platform == "win32", reason="limits memory with resource")
def test_random_arguments_never_end_the_process(tmp_path: Path) -> None:
    log = tmp_path / "last_call.txt"
    first = 0
    told: dict[str, list[str]] = {"dead": [], "slow": [], "confused": [], "poor": []}
    dead, slow = told["dead"], told["slow"]
    while first < CALLS and len(dead) < 5:
        done = child(first, log)
        for line in done.stdout.splitlines():
            if line.startswith(('{"confused"', '{"poor"')):  # others are what calls print
                for kind, words in json.loads(line).items():
                    told[kind].append(words)
        if done.returncode == 0:
            break
        number, words = last_words(log)
        if done.returncode < 0:
            dead.append(f"{signal.Signals(-done.returncode).name}: {words}\n{done.stderr[-1500:]}")
        elif "Timeout" in done.stderr:
            slow.append(words)  # a call that takes its time is no crash
        else:
            dead.append(f"exit code {done.returncode}: {words}\n{done.stderr[-1500:]}")
        first = number + 1
    where = os.environ.get("ANTORCHA_FUZZ_REPORT")
    if where:
        Path(where).write_text(json.dumps(told, indent=1))
    print(f"{CALLS} calls, {len(slow)} slow, {len(told['poor'])} poor errors")
    assert not dead, "\n".join(dead)
    assert not told["confused"], "\n".join(told["confused"][:20])
