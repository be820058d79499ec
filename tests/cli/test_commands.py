"""``antorcha info`` and ``antorcha demo``."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from antorcha import config
from antorcha.cli import main
from tests.patience import PATIENCE

SRC = Path(__file__).parents[2] / "src"
PATHS = os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])


def test_info_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cpu"]["vector bits"] in (128, 256, 512)
    assert found["antorcha"]["threads"] >= 1
    assert found["packages"]["numpy"]
    assert found["cache"]["bound"] == (config.cache_size or None)


@pytest.mark.parametrize(
    ("asked", "runs"), [("python", "python (ANTORCHA_CALL=python)"), ("native", "native")]
)
def test_info_says_which_call_path_runs(asked: str, runs: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "antorcha", "info", "--json"],
        env={**os.environ, "ANTORCHA_CALL": asked},
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert json.loads(done.stdout)["antorcha"]["call path"] == runs, done.stderr


def test_info_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    shown = capsys.readouterr().out
    assert "threads" in shown
    assert "bound" in shown


@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), (["rum"], 2), (["run"], 2), ([], 2)])
def test_exit_codes(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == code


def test_help_is_quick_to_load() -> None:
    """What makes a command slow to start is what it imports; time itself is not asserted."""
    program = (
        "import sys; from antorcha.cli import main; main(['--help']);"
        "print([m for m in ('scipy', 'sklearn', 'matplotlib', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


def test_import_is_quick_to_load() -> None:
    """The same of the package: what computes is loaded when something is to be computed."""
    heavy = ("numpy", "scipy", "llvmlite", "rich", "sklearn", "antorcha.lang.native", "inspect",
             "antorcha.runtime.memory.alloc", "antorcha.devices.cpu", "importlib.abc",
             "importlib.resources", "tempfile", "pathlib", "random", "urllib.parse")  # fmt: skip
    program = f"import sys, antorcha; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stdout + done.stderr


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("sklearn", "matplotlib")),
    reason="needs antorcha[demo]",
)
def test_the_demo_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import antorcha as torch
    from antorcha.cli import demo

    assert main(["demo", "--epochs", "3", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
    model = demo.build_model(torch)
    model.load_state_dict(torch.load(tmp_path / "digits.pt"))
    digits = demo.load_digits(seed=0)
    right = demo.predict(torch, model, digits.test_images) == digits.test_labels
    assert right.mean() > 0.9


def test_info_says_who_served_the_calls(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, torch\n"
        "x = torch.ones(3)\n"
        "for _ in range(20):\n"
        "    y = x.exp() + x\n"
        "    with torch.inference_mode(): x * x\n"
        "assert sys.argv[1:] == ['one']\n"
        "sys.exit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "antorcha", "info", "--json", "--calls", str(script), "one"],
        env={**os.environ, "ANTORCHA_CALL": "native"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["exp"]["native"] > 10
    assert rows["add"]["native"] > 10
    assert rows["mul"] == {
        "name": "mul", "native": 0, "python": 20, "why": "a mode that is Python's"
    }  # fmt: skip


@pytest.mark.slow
def test_precompiling_leaves_nothing_to_compile_for_a_usual_program(tmp_path: Path) -> None:
    program = """
import torch
from torch import nn
from antorcha.cli.info import cached
before = cached()["files"]
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y = torch.randn(64, 10), torch.randint(0, 3, (64,))
for epoch in range(5):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}", model(x).argmax(1)[:3])
print(before, cached()["files"])
"""
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "ANTORCHA_CACHE": str(tmp_path / "cache")}
    for words in (["precompile"], ["run", str(tmp_path / "program.py")]):
        done = subprocess.run(
            [sys.executable, "-m", "antorcha", *words], env=environment, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
    before, after = map(int, done.stdout.splitlines()[-1].split())
    assert before > 100
    assert after == before
