"""Every example runs under ``antorcha run`` and ends with the line it should.

With PyTorch installed, the examples written for PyTorch run on it too: they are PyTorch programs.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_docs import run_program
from tests.patience import PATIENCE

EXAMPLES = ROOT / "examples"

# Of each example: its last line, and the least and the most that the number in it may be.
LAST_LINES: dict[str, tuple[str, float, float]] = {
    "char_model": (r"words from the poem: (\S+); sampled twice alike: True", 0.8, 1),
    "custom_function": (
        r"gradcheck passes the right one: True; catches the wrong one: True",
        0,
        0,
    ),
    "digits_conv": (r"test accuracy: (\S+); resumed training is the same: True", 0.85, 1),
    "digits_mlp": (r"final test accuracy: (\S+)", 0.9, 1),
    "double_backward": (r"largest error of the learnt distance: (\S+)", 0, 0.1),
    "linear_regression": (r"descent agrees with the closed form: True", 0, 0),
    "own_kernel": (r"kernels agree with the plain formula; compiled as interpreted: True", 0, 0),
    "views_and_strides": (r"(\d+) of 21 claims hold", 21, 21),
    "word_vectors": (r"nearest neighbour of the same kind: (\d+) of 20", 16, 20),
}
SLOW = {"digits_conv", "double_backward", "word_vectors"}
ONLY_ANTORCHA = {"own_kernel"}
NEED_SKLEARN = {"digits_conv", "digits_mlp", "linear_regression"}


def _cases(names: list[str]) -> list[object]:
    missing = importlib.util.find_spec("sklearn") is None
    no_data = pytest.mark.skipif(missing, reason="needs antorcha[demo]")
    cases = []
    for name in names:
        marks = [pytest.mark.slow] * (name in SLOW) + [no_data] * (name in NEED_SKLEARN)
        cases.append(pytest.param(name, marks=marks))
    return cases


def test_every_example_is_here() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(LAST_LINES)


@pytest.mark.parametrize("name", _cases(sorted(LAST_LINES)))
def test_an_example_runs(name: str) -> None:
    _check(name, run_program(str(EXAMPLES / f"{name}.py")))


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("name", _cases(sorted(set(LAST_LINES) - ONLY_ANTORCHA)))
def test_an_example_runs_on_pytorch(name: str, tmp_path: Path) -> None:
    program = str(EXAMPLES / f"{name}.py")
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    _check(name, done)


def _check(name: str, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    pattern, least, most = LAST_LINES[name]
    found = re.fullmatch(pattern, done.stdout.splitlines()[-1])
    assert found, done.stdout
    if found.groups():
        assert least <= float(found[1]) <= most, done.stdout
