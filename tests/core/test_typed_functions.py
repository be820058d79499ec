"""mypy's plugins (tools/native_types.py, tools/record_types.py): functions of the kernel language
and of records are checked, whatever is written of their parameters."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
CHECKED = """
from __future__ import annotations

from antorcha.lang.native import f32, i64, inline, native, ptr
from antorcha.ops.kinds.kernel import kernel
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import composite
from antorcha.ops.kinds.types import Int, OptTensor, Tensor


def text_of(value: str) -> str:
    return value


@inline
def element(P, x, count, *, T):
    text_of(x)  # wrong
    text_of(P.name)
    x.count -= 1
    return T(x[count].field) if x is not None else [count]


@native
def first_of(x: ptr[f32], n: i64, *, T) -> i64:
    text_of(n)  # wrong
    if x is None:
        return 0
    return element(T.P, x, n, T=T)


@native
def nothing(n: i64):
    return n  # wrong


text_of(first_of(0, 1))  # wrong


@kernel()
def planned(input: Tensor, other: OptTensor, n: Int = None):
    text_of(input.strides)  # wrong
    other.strides  # wrong
    text_of(n)  # wrong
    return n  # wrong


@planned.batches
def _(batch, run, input, other, n, more):  # wrong
    return batch.whole(input).no_such_method()  # wrong


@composite()
def composed(input: Tensor):
    return input.t().no_such_method()  # wrong


@composed.samples
def _(make):
    yield (make(3, 4).no_such_method(),)  # wrong


@pointwise()
def traced(input: Tensor, other: Tensor):
    return (input * other).exp().no_such_attribute.args  # wrong


@traced.derivative
def _(g, out, input_layout):
    text_of(input_layout.shape)  # wrong
    return text_of(g * out)  # wrong


@traced.derivative
def _(g, what):  # wrong
    return g
"""


@pytest.mark.slow
def test_functions_without_types_are_checked(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "checked.py"
    script.write_text(CHECKED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(script)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT,
    )  # fmt: skip
    found = {int(line) for line in re.findall(r"checked\.py:(\d+): error", done.stdout)}
    wrong = {k for k, line in enumerate(CHECKED.split("\n"), 1) if line.endswith("# wrong")}
    assert found == wrong, done.stdout + done.stderr[-2000:]
