"""Every example runs and ends with the line it should.

The programs that draw a picture are written for antorcha: a few steps of each are run, and the
whole of the quick ones. With PyTorch installed, `import antorcha as torch` is changed to `import
torch`: the losses printed must be the same. The others are PyTorch programs and run under
``antorcha run``, and on PyTorch.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_docs import run_program
from tests.patience import PATIENCE

EXAMPLES = ROOT / "examples"

# Of each example: its last line, and the least and the most that the number in it may be.
LAST_LINES: dict[str, tuple[str, float, float]] = {
    "custom_function": (
        r"gradcheck passes the right one: True; catches the wrong one: True",
        0,
        0,
    ),
    "double_backward": (r"largest error of the learnt distance: (\S+)", 0, 0.1),
    "linear_regression": (r"descent agrees with the closed form: True", 0, 0),
    "own_kernel": (r"kernels agree with the plain formula; compiled as interpreted: True", 0, 0),
    "resume_training": (r"test accuracy: (\S+); resumed training is the same: True", 0.85, 1),
    "views_and_strides": (r"(\d+) of 21 claims hold", 21, 21),
    "word_vectors": (r"nearest neighbour of the same kind: (\d+) of 20", 16, 20),
}
# The same of the programs that draw a picture. None where the whole takes long, or where what
# comes out hangs on the last bit of every number on the way.
PICTURES: dict[str, tuple[str, float, float] | None] = {
    "cart_pole": None,
    "char_gpt": None,
    "digits_cnn": (r"test accuracy: (\S+)", 0.95, 1),
    "fine_tuning": (r"remainders, fine-tuned: (\S+); from scratch: \S+", 0.7, 1),
    "gan_digits": None,
    "llama": None,
    "lstm_forecast": (r"error over the next 50 values: (\S+) of the standard deviation", 0, 0.5),
    "vae_digits": (r"mean loss of the last steps: (\S+)", 20, 26),
}
STEPS = 5  # all of which are printed
SOME = ("--steps", str(STEPS), "--seed", "3")
Steps = Callable[[str], tuple["subprocess.CompletedProcess[str]", Path]]
SLOW = {"double_backward", "resume_training", "word_vectors"}
ONLY_ANTORCHA = {"own_kernel"}
NEED_SKLEARN = {
    "digits_cnn", "fine_tuning", "gan_digits", "linear_regression", "resume_training", "vae_digits"
}  # fmt: skip


def _cases(names: list[str]) -> list[object]:
    missing = importlib.util.find_spec("sklearn") is None
    no_data = pytest.mark.skipif(missing, reason="needs antorcha[demo]")
    cases = []
    for name in names:
        marks = [pytest.mark.slow] * (name in SLOW) + [no_data] * (name in NEED_SKLEARN)
        cases.append(pytest.param(name, marks=marks))
    return cases


def test_every_example_is_here() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(LAST_LINES | PICTURES)


@pytest.mark.parametrize("name", _cases(sorted(LAST_LINES)))
def test_an_example_runs(name: str) -> None:
    _check(LAST_LINES[name], run_program(str(EXAMPLES / f"{name}.py")))


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("name", _cases(sorted(set(LAST_LINES) - ONLY_ANTORCHA)))
def test_an_example_runs_on_pytorch(name: str, tmp_path: Path) -> None:
    done = _run(str(EXAMPLES / f"{name}.py"), folder=tmp_path)
    _check(LAST_LINES[name], done)


@pytest.fixture(scope="module")
def some_steps(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """Runs some steps of a program on antorcha, once for the tests that look at them: what it said,
    and the folder that it wrote to."""

    @functools.cache
    def run(name: str) -> tuple[subprocess.CompletedProcess[str], Path]:
        folder = tmp_path_factory.mktemp(name)
        return _run_on_antorcha(name, folder, *SOME), folder

    return run


@pytest.mark.parametrize("name", _cases(sorted(PICTURES)))
def test_some_steps_and_a_picture(name: str, some_steps: Steps) -> None:
    done, folder = some_steps(name)
    assert done.returncode == 0, done.stderr
    assert len(_losses(done.stdout)) >= STEPS, done.stdout
    if importlib.util.find_spec("matplotlib") is None:
        assert "no picture: matplotlib is not installed" in done.stdout
    else:
        assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("name", _cases([n for n, line in sorted(PICTURES.items()) if line]))
def test_a_whole_training(name: str, tmp_path: Path) -> None:
    line = PICTURES[name]
    assert line is not None
    _check(line, _run_on_antorcha(name, tmp_path))


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("name", _cases(sorted(PICTURES)))
def test_pytorch_prints_the_same_losses(name: str, some_steps: Steps, tmp_path: Path) -> None:
    ours, _ = some_steps(name)
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    program = tmp_path / f"{name}.py"
    program.write_text(source.replace("antorcha as torch", "torch"), encoding="utf-8")
    shutil.copy(EXAMPLES / "quixote.txt", tmp_path)
    theirs = _run(str(program), *SOME, "--out", "theirs.png", folder=tmp_path)
    assert theirs.returncode == 0, theirs.stderr
    assert _losses(ours.stdout) == pytest.approx(_losses(theirs.stdout), rel=1e-4, abs=2e-4)


def _losses(text: str) -> list[float]:
    """The numbers in the lines of the steps."""
    lines = [line for line in text.splitlines() if line.lstrip().startswith("step ")]
    return [float(number) for line in lines for number in re.findall(r"-?\d+\.\d+", line)]


def _run_on_antorcha(name: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = str(EXAMPLES / f"{name}.py")
    return _run(program, *options, "--out", "picture.png", folder=folder)


def _run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def _check(last_line: tuple[str, float, float], done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    pattern, least, most = last_line
    found = re.fullmatch(pattern, done.stdout.splitlines()[-1])
    assert found, done.stdout
    if found.groups():
        assert least <= float(found[1]) <= most, done.stdout
