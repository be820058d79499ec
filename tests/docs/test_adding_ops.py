"""The diffs of docs/adding_ops.md are all that their ops take: applied to a copy, every test of
records passes for them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.patience import PATIENCE

DIFFS = [
    block.text for block in blocks(ROOT / "docs" / "adding_ops.md") if block.language == "diff"
]
NAMES = ("snake", "shares", "halves", "pick")
CHECK = """
import doctest, antorcha as torch
for name in {names}:
    op = getattr(torch, name)
    assert getattr(torch.Tensor, name), name
    test = doctest.DocTestParser().get_doctest(op.__doc__, dict(torch=torch), name, None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0, name
"""


@pytest.mark.slow
def test_the_diffs_are_whole(tmp_path: Path) -> None:
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for diff in DIFFS:
        _apply(diff, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    for command in (
        ["-c", CHECK.format(names=NAMES)],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ops/test_records.py",
         "tests/ops/test_written_rules.py", "-k", " or ".join(NAMES)],
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True,
            text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b\d\d+ passed", done.stdout)


def _apply(diff: str, root: Path) -> None:
    """Adds the lines at the end of the file that the diff names."""
    lines = diff.splitlines()
    (name,) = [line.removeprefix("+++ ") for line in lines if line.startswith("+++ ")]
    added = [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]
    with (root / name).open("a", encoding="utf-8") as file:
        file.write("\n".join(["", "", *added, ""]))
