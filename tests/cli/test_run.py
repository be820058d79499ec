"""``antorcha run`` behaves as ``python`` does: output, arguments, tracebacks, exit codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

SCRIPT = """\
import sys
print(sys.argv, __file__, __name__, __package__, __spec__, sys.path[0], sorted(globals()))
print(sys.modules["__main__"].__file__ == __file__)
def fail():
    raise ValueError("from the script")
what = sys.argv[1] if len(sys.argv) > 1 else ""
if what == "exit":
    sys.exit(eval(sys.argv[2]))
if what == "interrupt":
    raise KeyboardInterrupt
if what == "hook":
    sys.excepthook = lambda kind, error, trace: print("hook", kind.__name__, trace.tb_lineno)
if what == "chain":
    try:
        fail()
    except ValueError as error:
        raise KeyError("later") from error
if what == "read":
    print(sys.stdin.read())
if what in ("raise", "hook"):
    fail()
"""

CASES = [
    ["script.py"],
    ["script.py", "--help", "-m", "x", "--", "--json", "run"],
    ["script.py", "raise"],
    ["script.py", "chain"],
    ["script.py", "hook"],
    ["script.py", "read"],
    ["script.py", "interrupt"],
    ["script.py", "exit", "None"],
    ["script.py", "exit", "7"],
    ["script.py", "exit", "True"],
    ["script.py", "exit", "'a message'"],
    ["./folder/linked.py", "x"],
    ["wrong_syntax.py"],
    ["-m", "package", "-x"],
    ["-m", "package.module"],
    ["-m", "script", "raise"],
    ["-", "x"],
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with programs to run."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "wrong_syntax.py").write_text("x = = 1\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys\nprint(sys.argv, __package__, __spec__.name, __file__, sys.path[0])\n"
    )
    (tmp_path / "package" / "module.py").write_text("print(__name__, __package__)\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "linked.py").symlink_to(tmp_path / "script.py")
    return tmp_path


def _python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "NO_COLOR": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "ANTORCHA_TRACEBACK": "short",
        },
        input="print('read from standard input')",
        capture_output=True,
        text=True,
    )


def _without_notes(text: str) -> str:
    """Without our note about a hidden PyTorch, and without the frames of Python's own ``-m``."""
    lines = text.splitlines()
    return "\n".join(
        line for line in lines if "antorcha run: torch is" not in line and "<frozen " not in line
    )


@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_as_python_does(folder: Path, words: list[str]) -> None:
    expected = _python(folder, *words)
    got = _python(folder, "-m", "antorcha", "run", *words)
    address = re.compile("0x[0-9a-f]+")
    assert address.sub("", got.stdout) == address.sub("", expected.stdout)
    assert _without_notes(got.stderr) == _without_notes(expected.stderr)
    # Python ends itself with the signal; a shell calls that 130, and so does antorcha.
    interrupted = expected.returncode == -2 or words[-1] == "interrupt"
    assert got.returncode == (130 if interrupted else expected.returncode)


@pytest.mark.parametrize(
    "words", [["nowhere.py"], ["-m", "nowhere"], ["package"], ["--option", "x"]]
)
def test_nothing_to_run(folder: Path, words: list[str]) -> None:
    got = _python(folder, "-m", "antorcha", "run", *words)
    assert got.returncode == _python(folder, *words).returncode or words == ["package"]
    assert got.returncode != 0
    assert got.stderr.startswith("antorcha run: ")
    assert got.stdout == ""
    assert "Traceback" not in got.stderr


def test_torch_is_antorcha(folder: Path) -> None:
    (folder / "program.py").write_text(
        "import torch, torch.nn.functional as F\n"
        "import antorcha\n"
        "print(torch.__version__, torch.tensor([1.0, 2.0]) + 1, F is antorcha.nn.functional)\n"
    )
    got = _python(folder, "-m", "antorcha", "run", "program.py")
    assert got.stdout == "2.13.0+antorcha tensor([2., 3.]) True\n", got.stderr


def test_a_missing_module_shows_only_the_program(folder: Path) -> None:
    (folder / "program.py").write_text("import torch.nothing\n")
    got = _python(folder, "-m", "antorcha", "run", "program.py")
    assert got.returncode == 1
    assert "No module named 'torch.nothing': antorcha does not have it." in got.stderr
    assert got.stderr.count('File "') == 1
    assert "import torch.nothing\n" in got.stderr


@pytest.mark.parametrize(("line", "said"), [
    ("torch.nn.utils.foo", "module 'torch.nn.utils' has no attribute 'foo'"),
    ("torch.cuda.ampere", "module 'torch.cuda' has no attribute 'ampere'"),
    ("torch.nn.linear.foo", "module 'torch.nn.linear' has no attribute 'foo'"),
    ("from torch.nn.utils import foo", "cannot import name 'foo' from 'torch.nn.utils'"),
    ("torch.ones(2).requires_grad(False)",
     "TypeError: 'bool' object is not callable. Did you mean '.requires_grad_('?"),
])  # fmt: skip
def test_pythons_own_messages_speak_of_torch(folder: Path, line: str, said: str) -> None:
    (folder / "program.py").write_text(f"import torch\n{line}\n")
    got = _python(folder, "-m", "antorcha", "run", "program.py")
    assert got.returncode == 1
    assert said in got.stderr


def test_other_messages_stay(folder: Path) -> None:
    (folder / "program.py").write_text("x = True\nx()\n")
    got = _python(folder, "-m", "antorcha", "run", "program.py")
    assert got.stderr.rstrip().endswith("TypeError: 'bool' object is not callable")
