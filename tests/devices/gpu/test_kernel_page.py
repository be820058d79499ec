"""NVIDIA's assembler takes the kernels of docs/gpu_kernels.md without spills; none has grown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import gpu_kernels
from tools.gpu_kernels import PAGE, AssembledKernel

ROOT = Path(__file__).parents[3]
PTX_GROWTH = 1.1
ROW = re.compile(r"\| `(\w+)` \| (\w+) \| ([\d, ]+) \| ([\d, ]+) \|")


def kernels_of(page: str) -> list[tuple[str, str, list[AssembledKernel]]]:
    return [
        (name, op, [AssembledKernel(*map(int, text.split(","))) for text in texts])
        for name, op, *texts in ROW.findall(page)
    ]


def made_now() -> list[tuple[str, str, list[AssembledKernel]]]:
    """In a process of its own: what was planned before in this one is not planned again."""
    words = [sys.executable, "-m", "tools.gpu_kernels", "--print"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return kernels_of(done.stdout)


def grown(now: AssembledKernel, before: AssembledKernel) -> str:
    """What has grown, in words; empty if nothing has."""
    found = [
        f"{what} {a}, was {b}"
        for what, a, b in zip(now._fields, now, before, strict=True)
        if a > (b * PTX_GROWTH if what == "ptx" else b)
    ]
    return ", ".join(found)


@pytest.mark.slow
def test_kernels_are_accepted_and_have_not_grown() -> None:
    if gpu_kernels.ptxas() is None:
        pytest.skip("needs ptxas: pip install nvidia-cuda-nvcc")
    now, before = made_now(), kernels_of(PAGE.read_text())
    assert len(before) > 50
    names = [(name, op) for name, op, _ in now]
    assert names == [(name, op) for name, op, _ in before], "run python -m tools.gpu_kernels"
    wrong = []
    for (name, op, found), (_, _, known) in zip(now, before, strict=True):
        for sm, each, old in zip(gpu_kernels.CAPABILITIES, found, known, strict=True):
            if each.spilled:
                wrong.append(f"{name} of {op}, sm_{sm}: {each.spilled} bytes spilled")
            if text := grown(each, old):
                wrong.append(f"{name} of {op}, sm_{sm}: {text}")
    assert not wrong, "\n".join(wrong)


def test_growth_is_noticed() -> None:
    small = AssembledKernel(20, 0, 0, 128, 1000)
    assert not grown(small, small)
    assert not grown(small._replace(ptx=1090), small)
    for field in AssembledKernel._fields:
        assert field in grown(small._replace(**{field: getattr(small, field) + 101}), small)
