"""A warning of antorcha's points at the line of the program that caused it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE

SRC = Path(__file__).parents[2] / "src"

PROGRAM = """\
import warnings
import numpy as np
import antorcha as torch
from antorcha import nn
F, x = nn.functional, torch.ones(2, 3)
warnings.simplefilter("always")
def softmax(): F.softmax(x)
def layer(): nn.Sequential(nn.Sequential(nn.Softmax()))(x)
def dropout(): nn.Sequential(nn.Dropout2d())(x)
def meshgrid(): torch.meshgrid(torch.ones(2), torch.ones(3))
def mse(): nn.MSELoss()(torch.ones(2, 1), torch.ones(2))
def tensor(): torch.tensor(x)
def read_only(): torch.from_numpy(np.broadcast_to(np.ones(2), (2,)))
def grad(): (x.requires_grad_() * 2).grad
def empty(): nn.init.zeros_(torch.empty(0)); nn.Linear(0, 2)
def old(): nn.init.uniform(torch.ones(2))
def clip(): nn.utils.clip_grad_norm(nn.Linear(1, 1).parameters(), 1.0)
def scheduler():
    s = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1)], lr=1.0), 1)
    s.step()
def mask(): x.detach()[torch.ones(2, 3, dtype=torch.uint8)]
def reduce(): nn.L1Loss(size_average=True)
def storage(): x.storage()
def out(): torch.add(x.detach(), x.detach(), out=torch.ones(7))
for each in (softmax, layer, dropout, meshgrid, mse, tensor, read_only, grad, empty, old, clip,
             scheduler, mask, reduce, storage, out):
    with warnings.catch_warnings(record=True) as caught:
        each()
    assert caught, each.__name__
    for one in caught:
        if one.filename != __file__:
            print(each.__name__, one.filename, one.lineno, one.message)
"""


def test_the_line_of_the_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for call in ("native", "python"):
        done = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, timeout=PATIENCE,
            env={**os.environ, "PYTHONPATH": str(SRC), "ANTORCHA_CALL": call},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert not done.stdout, done.stdout


def test_all_warn_in_the_one_way() -> None:
    """`errors.warn` finds the program's line; a number of frames, counted by hand, goes stale."""
    found = []
    for path in sorted((SRC / "antorcha").rglob("*.py")):
        if path.name != "errors.py" and "lab" not in path.parts:
            tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            calls = [node for node in tree if isinstance(node, ast.Call)]
            lines = [n.lineno for n in calls if ast.unparse(n.func) == "warnings.warn"]
            found += [f"{path.relative_to(SRC)}:{line}" for line in lines]
    assert not found
