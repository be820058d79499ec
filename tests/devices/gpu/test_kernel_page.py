"""NVIDIA's assembler takes the kernels of docs/gpu_kernels.md without spills; none has grown."""

from __future__ import annotations

import re

import pytest

from tools import gpu_kernels
from tools.gpu_kernels import PAGE, AssembledKernel

PTX_GROWTH = 1.1
ROW = re.compile(r"\| `(\w+)` \| (\w+) \| ([\d, ]+) \| ([\d, ]+) \|")


def committed() -> list[tuple[str, str, list[AssembledKernel]]]:
    return [
        (name, op, [AssembledKernel(*map(int, text.split(","))) for text in texts])
        for name, op, *texts in ROW.findall(PAGE.read_text())
    ]


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
    program = gpu_kernels.ptxas()
    if program is None:
        pytest.skip("needs ptxas: pip install nvidia-cuda-nvcc")
    now = sorted(gpu_kernels.rows(program))
    before = committed()
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
