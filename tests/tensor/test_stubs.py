"""The generated stubs are fresh, and a type checker sees Tensor's methods through them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_stubs_are_not_stale() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_stubs.py"), "--check"],
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_every_method_is_in_the_stub() -> None:
    import antorcha

    text = (ROOT / "src" / "antorcha" / "tensor" / "tensor.pyi").read_text()
    missing = [
        name for name, value in antorcha.Tensor.__dict__.items()
        if callable(value) and not name.startswith("_") and f"    def {name}(" not in text
    ]  # fmt: skip
    assert not missing, f"run python tools/generate_stubs.py: {missing}"


@pytest.mark.slow
def test_user_code_is_checked(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(
        "import antorcha as torch\n"
        "x = torch.ones(2, 3)\n"
        "reveal_type(x.sum())\n"
        "reveal_type(torch.add(x, 1).view(3, 2).t() + 1)\n"
        "x.no_such_method()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent",
         str(script)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path,
        env={"PATH": "", "MYPYPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.stdout.count('"antorcha.runtime.tensor.Tensor"') == 2, done.stdout
    assert 'has no attribute "no_such_method"' in done.stdout
