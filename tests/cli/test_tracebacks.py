"""An error shows the program's lines: in Python, threads, ``antorcha run``, IPython and pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

SRC = str(Path(__file__).parents[2] / "src")

HEAD = """\
import sys, threading
import {torch} as torch
from {torch} import nn
from {torch}.utils.data import DataLoader, Dataset

class Bad(nn.Module):
    def forward(self, x):
        return self.helper(x)
    def helper(self, x):
        raise ValueError("mine")

def forward_hook(module, inputs, output):
    raise ValueError("in a hook")

def gradient_hook(gradient):
    raise ValueError("of a gradient")

class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()
    @staticmethod
    def backward(ctx, g):
        raise ValueError("backwards")

class Items(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, k):
        raise ValueError("item")

def recurse(n):
    return Bad()(torch.ones(1)) if n == 0 else recurse(n - 1)

x = torch.ones(2, 4, requires_grad=True)
"""

# The program's last lines, its own functions in the traceback, the end of the error's text.
PROGRAMS: dict[str, tuple[str, str, str]] = {
    "matmul": ("torch.ones(3, 2) @ torch.ones(3, 2)", "", "(2, 2)."),
    "method": ("x.sum(3)", "", "(expected -2..1)"),
    "function": ("torch.cat([x, torch.ones(3, 3)])", "", ""),
    "argument": ("torch.ones(2).sum(axes=0)", "", "dtype=None)"),
    "setting": ("torch.set_default_dtype(3)", "", ""),
    "in_place": ("torch.ones(3).add_(torch.ones(2, 3))", "", ""),
    "index": ("x[5]", "", ""),
    "linear": ("nn.Linear(3, 2)(x)", "", "inner sizes differ."),
    "sequential": ("nn.Sequential(nn.ReLU(), nn.Linear(3, 2))(x)", "", "inner sizes differ."),
    "loss": ("nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([0, 5]))", "", ""),
    "graph": ("y = (x * x).sum(); y.backward(); y.backward()", "", ""),
    "optimizer": ("torch.optim.SGD([], lr=1)", "", ""),
    "state": ("nn.Linear(1, 1).load_state_dict({{}})", "", ""),
    "module": ("nn.Sequential(Bad())(x)", "forward helper", "mine"),
    "hook": ("m = nn.ReLU(); m.register_forward_hook(forward_hook); m(x)", "forward_hook",
             "in a hook"),
    "gradient": ("y = x * 2; y.register_hook(gradient_hook); y.sum().backward()", "gradient_hook",
                 "of a gradient"),
    "custom": ("Exp.apply(x).sum().backward()", "backward", "backwards"),
    "data": ("list(DataLoader(Items(), batch_size=2))", "__getitem__", "item"),
    "recursion": ("recurse(2)", "recurse recurse recurse forward helper", "mine"),
    "error_in_antorcha": (  # not meant: where it happened is shown
        "nn.functional.linear = None; nn.Linear(4, 2)(x)", "forward", "not callable"),
}  # fmt: skip


def _child(tmp_path: Path, code: str, *command: str, **environ: str) -> str:
    """What the program writes to standard error, with the name of its file shortened."""
    program = tmp_path / "program.py"
    program.write_text(code)
    done = subprocess.run(
        [sys.executable, *command, str(program)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SRC, "ANTORCHA_TRACEBACK": "short", **environ},
    )  # fmt: skip
    return done.stderr.replace(str(tmp_path) + os.sep, "")


def _functions(traceback: str) -> str:
    return " ".join(re.findall(r'File ".*", line \d+, in (\S+)', traceback))


# One process tries all of them, each as an uncaught exception: by what Python does with one.
TRY_ALL = """
import traceback
import sys
for name, code in {programs!r}.items():
    print("====", name, file=sys.stderr)
    try:
        exec(compile(code, __file__, "exec"), globals())
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next
        before = traceback.format_exc()
        sys.excepthook(type(error), error, error.__traceback__)
        assert traceback.format_exc() == before  # the exception is as it was
"""


@pytest.mark.parametrize("call", ["native", "python"])
@pytest.mark.parametrize("command", [[], ["-m", "antorcha", "run"]], ids=["python", "run"])
def test_only_the_programs_lines(tmp_path: Path, command: list[str], call: str) -> None:
    programs = {name: case[0].replace("{{}}", "{}") for name, case in PROGRAMS.items()}
    head = HEAD.format(torch="torch" if command else "antorcha")
    said = _child(tmp_path, head + TRY_ALL.format(programs=programs), *command, ANTORCHA_CALL=call)
    tracebacks = dict(re.findall(r"==== (\w+)\n(.*?)(?=====|\Z)", said, re.DOTALL))
    assert tracebacks.keys() == PROGRAMS.keys(), said
    for name, (_, functions, end) in PROGRAMS.items():
        shown = tracebacks[name]
        last = shown.rstrip().splitlines()[-1]
        assert shown.startswith("Traceback (most recent call last):"), name
        assert _functions(shown) == f"<module> {functions}".strip(), shown
        assert ("/antorcha/" in shown) == (name == "error_in_antorcha"), shown
        assert last.endswith(end), shown


@pytest.mark.parametrize("name", ["matmul", "sequential", "module", "hook"])
def test_an_uncaught_exception(tmp_path: Path, name: str) -> None:
    code, functions, _ = PROGRAMS[name]
    said = _child(tmp_path, HEAD.format(torch="antorcha") + code)
    assert _functions(said) == f"<module> {functions}".strip(), said
    full = _child(tmp_path, "import antorcha as torch\nx = torch.ones(2, 4)\nnn = torch.nn\n"
                  "nn.Linear(3, 2)(x)\n", ANTORCHA_TRACEBACK="full")  # fmt: skip
    assert full.count("/antorcha/") > 5


def test_in_a_thread(tmp_path: Path) -> None:
    code = (
        "import threading\nimport antorcha as torch\n"
        "def work():\n    torch.ones(3, 2) @ torch.ones(3, 2)\n"
        "t = threading.Thread(target=work)\nt.start()\nt.join()\n"
    )
    said = _child(tmp_path, code)
    assert said.startswith("Exception in thread")
    assert "/antorcha/" not in said
    assert _functions(said).endswith("work")
    assert "matmul: (3, 2) @ (3, 2)" in said


CHAINED = """\
import antorcha as torch
def fail():
    torch.ones(3, 2) @ torch.ones(3, 2)
def caused():
    try:
        fail()
    except RuntimeError as error:
        raise ValueError("of mine") from error
def grouped():
    errors = []
    for size in (2, 3):
        try:
            torch.ones(size) + torch.ones(size + 2)
        except RuntimeError as error:
            errors.append(error)
    raise ExceptionGroup("several", errors)
"""


@pytest.mark.parametrize(("call", "places"), [("caused", 4), ("grouped", 4)])
def test_chained_exceptions_and_groups(tmp_path: Path, call: str, places: int) -> None:
    said = _child(tmp_path, f"{CHAINED}{call}()\n")
    assert "/antorcha/" not in said
    assert said.count("File ") == places, said


def test_without_a_line_of_the_program_all_is_shown(tmp_path: Path) -> None:
    code = (
        "import sys, antorcha as torch\n"
        "try:\n    torch.ones(2) @ torch.ones(3)\n"
        "except RuntimeError as error:\n"
        "    error.__traceback__ = error.__traceback__.tb_next\n"
        "    sys.excepthook(type(error), error, error.__traceback__)\n"
    )
    assert _child(tmp_path, code).count("/antorcha/") > 3


def test_a_hook_of_the_program_stays(tmp_path: Path) -> None:
    code = (
        "import sys, threading\n"
        "mine = sys.excepthook = lambda *args: print('mine', file=sys.stderr)\n"
        "threading.excepthook = mine\n"
        "import antorcha\n"
        "assert sys.excepthook is mine and threading.excepthook is mine\n"
        "antorcha.ones(2) + antorcha.ones(3)\n"
    )
    assert _child(tmp_path, code) == "mine\n"


def test_run_prints_the_explanation(tmp_path: Path) -> None:
    code = "import torch\na, b = torch.ones(3, 2), torch.ones(3, 2)\nc = a @ b\n"
    said = _child(tmp_path, code, "-m", "antorcha", "run")
    _, _, advice = said.partition("(2, 2).\n")
    assert "Rule: In a @ b the last size of a must equal" in advice
    assert "Fix:  c = a @ b.T" in advice
    plain = _child(tmp_path, "import torch\nraise ValueError(1)\n", "-m", "antorcha", "run")
    assert plain.endswith("ValueError: 1\n")


def test_in_ipython(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='NoColor')\n"
        "def run(cell):\n    print('====')\n    shell.run_cell(cell)\n"
        "run('import antorcha as torch')\n"
        "run('def f(x):\\n    return torch.nn.Linear(3, 2)(x)\\nf(torch.ones(2, 4))')\n"
        "run('try:\\n    f(torch.ones(2, 4))\\nexcept Exception as e:\\n"
        "    raise ValueError(1) from e')\n"
        "run('torch.ones(2).to_padded_tensor(0)')\n"
        "run('1 / 0')\n"
        "run('%tb')\n"
        "import sys\n"
        "run('torch.ones(2) @ torch.ones(3)')\n"
        "print('FULL', sys.last_traceback.tb_next.tb_next is not None)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(code)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": SRC, "ANTORCHA_TRACEBACK": "short",
             "IPYTHONDIR": str(tmp_path)},
    )  # fmt: skip
    cells = (done.stdout + done.stderr).split("====")[1:]
    assert len(cells) == 7, done.stderr
    for cell in cells:
        assert "antorcha/" not in cell
    assert cells[1].count("---->") == 2
    assert "inner sizes differ" in cells[1]
    assert "direct cause" in cells[2]
    assert "torch.Tensor.to_padded_tensor: PyTorch 2.13 has it, antorcha not yet." in cells[3]
    assert "ZeroDivisionError" in cells[4]
    assert "FULL True" in cells[6]


PYTEST = """\
import antorcha as torch

class Bad(torch.nn.Module):
    def forward(self, x):
        raise ValueError("mine")

def helper(x):
    return torch.nn.Linear(3, 2)(x)

def test_linear():
    helper(torch.ones(2, 4))

def test_module():
    torch.nn.Sequential(Bad())(torch.ones(2))

def test_chained():
    try:
        torch.ones(3, 2) @ torch.ones(3, 2)
    except RuntimeError as error:
        raise ValueError("of mine") from error

def test_close():
    torch.testing.assert_close(torch.ones(2), torch.zeros(2))
"""


@pytest.mark.parametrize("setting", ["short", "full"])
def test_in_pytest(tmp_path: Path, setting: str) -> None:
    (tmp_path / "test_mine.py").write_text(PYTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "."],
        capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SRC, "ANTORCHA_TRACEBACK": setting},
    )  # fmt: skip
    assert "4 failed" in done.stdout, done.stdout + done.stderr
    places = re.findall(r"^\S+\.py:\d+: in (\w+)$", done.stdout, re.MULTILINE)
    ours = [line for line in done.stdout.splitlines() if re.match(r"\S*antorcha/.*: in ", line)]
    if setting == "full":
        assert len(ours) > 8
        return
    assert not ours, done.stdout
    assert places == [
        "test_linear", "helper", "test_module", "forward", "test_chained", "test_chained",
        "test_close",
    ]  # fmt: skip


def test_nothing_heavy_is_imported_for_it() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nimport antorcha.core.tracebacks\n"
        "print(sorted({'traceback', 'linecache', 'opcode', 'antorcha.config'} "
        "& (set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE,
        env={"PYTHONPATH": SRC, "PATH": ""},
    )  # fmt: skip
    assert done.stdout == "[]\n", done.stderr
