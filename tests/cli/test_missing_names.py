"""A name that PyTorch has and antorcha lacks is said to be so, however a program asks for it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
NOT_YET = "PyTorch 2.13 has it, antorcha not yet."

# Of every module of the list: where antorcha has it, its first missing names, asked for as an
# attribute and by a from-import; where antorcha lacks it, its import. Prints what is not said.
ASK = """
import importlib, sys
from antorcha import errors
face = sys.argv[1]
if face == "torch":
    from antorcha import torch_alias
    torch_alias.install(hide=True)
asked = {"module": 0, "name": 0}
lacked = []

def check(kind, code, name):
    asked[kind] += 1
    try:
        exec(code, {})
    except (AttributeError, ImportError) as error:
        wanted = {"module": ModuleNotFoundError, "name": (AttributeError, ImportError)}[kind]
        said = str(error).startswith(f"{name}: PyTorch 2.13 has it, antorcha not yet.")
        if not isinstance(error, wanted) or not said:
            print(code, type(error).__name__, error)
    else:
        print(code, "works")

for module, names in sorted(errors.pytorch_names().items()):
    if module in ("torch.Tensor", "torch.nn.Module"):
        continue
    ours = face + module.removeprefix("torch")
    outer = [name for name in lacked if module.startswith(name + ".")]
    try:
        found = importlib.import_module(ours)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in ("antorcha", "torch"):
            continue  # it is there, and needs a package that is not
        check("module", f"import {ours}", outer[0] if outer else module)
        lacked.append(module)
        continue
    missing = sorted([name for name in names if not hasattr(found, name)])
    for name in missing[:2]:
        if not module.startswith("torch.nn.modules"):  # (they speak of torch.nn)
            check("name", f"import importlib; importlib.import_module('{ours}').{name}",
                  f"{module}.{name}")
            check("name", f"from {ours} import {name}", f"{module}.{name}")
print(asked)
"""


def _child(*words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": path, "ANTORCHA_TRACEBACK": "short"},
    )  # fmt: skip


@pytest.mark.parametrize("face", ["antorcha", "torch"])
def test_every_module_speaks_of_what_it_lacks(face: str) -> None:
    done = _child("-c", ASK, face)
    assert done.returncode == 0, done.stderr
    *unsaid, asked = done.stdout.splitlines()
    assert not unsaid
    assert "'module': 0" not in asked
    assert "'name': 0" not in asked


# What a program says, and the last line of what its user reads.
HOME = "torch.version"
LATER = "rocm"  # a name there that antorcha lacks
METHOD = "to_padded_tensor"
READ = {
    "torch.monitor": f"AttributeError: torch.monitor: {NOT_YET}",
    f"{HOME}.{LATER}": f"AttributeError: {HOME}.{LATER}: {NOT_YET}",
    f"from {HOME} import cuda, {LATER}": f"ImportError: {HOME}.{LATER}: {NOT_YET}",
    "from torch import monitor": f"ImportError: torch.monitor: {NOT_YET}",
    "import torch.monitor": f"ModuleNotFoundError: torch.monitor: {NOT_YET}",
    "from torch.monitor import Stat": f"ModuleNotFoundError: torch.monitor: {NOT_YET}",
    "import antorcha.monitor": f"ModuleNotFoundError: torch.monitor: {NOT_YET}",
    f"torch.eye(2).{METHOD}()": f"AttributeError: torch.Tensor.{METHOD}: {NOT_YET}",
    f"torch.Tensor.{METHOD}": f"AttributeError: torch.Tensor.{METHOD}: {NOT_YET}",
    "torch.eye(2).sofmax(0)": "Did you mean: 'softmax'?",
    "torch.nn.Linear(2, 2).get_buffer_": "Did you mean 'get_buffer'?",
    "from torch.nn import Linaer":
        "ImportError: cannot import name 'Linaer' from 'torch.nn'. Did you mean 'Linear'?",
    "import torch.nothing": "No module named 'torch.nothing': antorcha does not have it.",
}  # fmt: skip

SHOW = """
import sys
for code in {codes!r}:
    try:
        exec(compile(code, "<code>", "exec"))
    except Exception as error:
        print("====", code, file=sys.stderr)
        sys.excepthook(type(error), error, error.__traceback__)
"""


@pytest.mark.parametrize("command", [[], ["-m", "antorcha", "run"]], ids=["python", "run"])
def test_what_the_user_reads(command: list[str], tmp_path: Path) -> None:
    cases = dict(READ)
    if not command:  # plain Python has no `torch` but the real one
        del cases["import torch.nothing"]
        cases = {re.sub(r"\b(from|import) torch", r"\1 antorcha", k): v for k, v in cases.items()}
    name = "torch" if command else "antorcha as torch"
    program = tmp_path / "program.py"
    program.write_text(f"import {name}\n" + SHOW.format(codes=list(cases)))
    done = _child(*command, str(program))
    assert done.returncode == 0
    shown = dict(re.findall(r"==== ([^\n]*)\n(.*?)(?=====|\Z)", done.stderr, re.DOTALL))
    assert shown.keys() == cases.keys()
    for code, said in cases.items():
        assert said in shown[code].splitlines()[-1], shown[code]
        assert "mean" not in shown[code] or "mean" in said
        assert "/antorcha/" not in shown[code]


@pytest.mark.parametrize(
    "code", ["import torch.monitor", f"from {HOME} import {LATER}", "torch.monitor"]
)
def test_a_whole_program(code: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import torch\n{code}\n")
    done = _child("-m", "antorcha", "run", str(program))
    assert done.returncode == 1
    assert done.stderr.count('File "') == 1, done.stderr
    assert done.stderr.splitlines()[-1].endswith(f"{NOT_YET} docs/coverage.md lists what there is.")


def test_programs_may_ask() -> None:
    import antorcha as torch

    assert not hasattr(torch, "monitor")
    assert getattr(torch.version, LATER, None) is None
    assert not hasattr(torch.ones(2), METHOD)
    assert importlib.util.find_spec("antorcha.monitor") is None
    with pytest.raises(ImportError, match=LATER):
        from antorcha.version import rocm  # noqa: F401
    try:
        from antorcha.version import xpu
    except ImportError:
        xpu = None
    assert xpu is None


def test_the_list_is_read_only_where_a_name_is_missing() -> None:
    read = "import antorcha, antorcha.errors as e; antorcha.nn.Linear; hasattr(antorcha, 'fx')\n"
    done = _child("-c", read + "print(e.pytorch_names.cache_info().currsize)")
    assert done.stdout == "0\n", done.stderr


def test_backends_are_modules_too() -> None:
    code = (
        "import torch.backends.cudnn as cudnn, torch\n"
        "cudnn.benchmark = True\n"
        "print(torch.backends.cudnn.benchmark, torch.backends.cudnn is cudnn)\n"
    )
    run = "import sys; from antorcha.cli import main; sys.exit(main(['run', '-']))"
    done = subprocess.run(
        [sys.executable, "-c", run], input=code, capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.stdout == "True True\n", done.stderr


def test_the_page_is_not_stale() -> None:
    _is_fresh("page")


@pytest.mark.slow
@pytest.mark.oracle
def test_the_list_is_pytorchs() -> None:
    _is_fresh("list")


def _is_fresh(what: str) -> None:
    done = _child(str(ROOT / "tools" / "list_pytorch_names.py"), "--check", what)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
