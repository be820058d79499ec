"""Nothing that anybody passes to anything ends the process.

ANTORCHA_FUZZ_CALLS says how many random calls to try (2500), ANTORCHA_FUZZ_MODULES how many modules
(600); ANTORCHA_FUZZ_SEED which ones (0).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ops.records import records, samples, to_torch, torch_form

CALLS = int(os.environ.get("ANTORCHA_FUZZ_CALLS", "2500"))
MODULES = int(os.environ.get("ANTORCHA_FUZZ_MODULES", "600"))
SEED = int(os.environ.get("ANTORCHA_FUZZ_SEED", "0"))
ROOT = Path(__file__).parents[2]
MOST_DEAD = 5
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits memory with resource")


def child(module: str, first: int, log: Path, *options: str) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", module, "--first", str(first), "--log", str(log), *options],
        capture_output=True, text=True, cwd=log.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip


def last_words(log: Path) -> tuple[int, str]:
    """The number of the call that ran last, and what it was."""
    text = log.read_text().strip("\0 \n") if log.exists() else ""
    return (int(text.split(" ")[1]), text) if text else (-1, "before the first call")


def sweep(module: str, log: Path, *options: str) -> dict[str, list[str]]:
    """Runs a module's calls in a child process, and in another one those after a call that ended
    the first: what was told of them, by kind."""
    first = 0
    told: dict[str, list[str]] = {"dead": [], "slow": [], "confused": [], "poor": [], "plain": []}
    dead, slow = told["dead"], told["slow"]
    starts = tuple([f'{{"{kind}"' for kind in told])
    while len(dead) < MOST_DEAD:
        done = child(module, first, log, *options)
        for line in done.stdout.splitlines():
            if line.startswith(starts):  # others are what calls print
                for kind, words in json.loads(line).items():
                    told[kind].append(words)
        if done.returncode == 0:
            break
        number, words = last_words(log)
        if done.returncode < 0:
            dead.append(f"{signal.Signals(-done.returncode).name}: {words}\n{done.stderr[-1500:]}")
        elif "Timeout" in done.stderr:
            slow.append(words)
        else:
            dead.append(f"exit code {done.returncode}: {words}\n{done.stderr[-1500:]}")
        if number < first:  # it did not come that far
            break
        first = number + 1
    where = os.environ.get("ANTORCHA_FUZZ_REPORT")
    if where:
        Path(where).write_text(json.dumps(told, indent=1))
    return told


def test_random_arguments_never_end_the_process(tmp_path: Path) -> None:
    log = tmp_path / "last_call.txt"
    told = sweep("tests.fuzz.child", log, "--seed", str(SEED), "--end", str(CALLS))
    # (a call that takes its time is no crash)
    print(f"{CALLS} calls, {len(told['slow'])} slow, {len(told['poor'])} poor errors")
    assert not told["dead"], "\n".join(told["dead"])
    assert not told["confused"], "\n".join(told["confused"][:20])


def test_modules_of_random_arguments_never_end_the_process(tmp_path: Path) -> None:
    log = tmp_path / "last_call.txt"
    told = sweep("tests.fuzz.modules", log, "--seed", str(SEED), "--end", str(MODULES))
    print(f"{MODULES} modules, {len(told['slow'])} slow")
    assert not told["dead"], "\n".join(told["dead"])
    assert not told["confused"], "\n".join(told["confused"][:20])


def test_none_and_wrong_types_in_every_place(tmp_path: Path) -> None:
    told = sweep("tests.fuzz.places", tmp_path / "last_call.txt")
    print(f"{len(told['plain'])} errors in Python's words")
    for kind in ("dead", "slow", "confused", "poor"):
        assert not told[kind], f"{kind}:\n" + "\n".join(told[kind][:20])


def _outcome(call: Any, args: Any, kwargs: Any) -> str:
    try:
        call(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return ""


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_none_is_taken_where_pytorch_takes_it() -> None:
    import torch

    refused = []
    for op in records():
        there = torch_form(op, torch)
        if there is None:
            continue
        args, kwargs = next(samples(op))
        for k, param in enumerate(op.signature.params):
            if param.default is None:
                continue
            given = list(args)
            if k < len(args):
                given[k] = None
            rest = kwargs if k < len(args) else {**kwargs, param.name: None}
            if _outcome(there, *to_torch((given, rest), torch)) == "":
                why = _outcome(op, given, rest)
                if why:
                    refused.append(f"{op.name}({param.name}=None): {why}")
    assert not refused, "\n".join(refused)
