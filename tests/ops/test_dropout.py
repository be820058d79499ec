"""Dropout: PyTorch's masks and values bit for bit, its nodes, its errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import NAMESPACES
from tests.ops.parity import needs_torch

F = SimpleNamespace(**NAMESPACES["nn.functional"])

CALLS = """
F.dropout(x(40))
F.dropout(x(5, 8).t(), 0.3)
F.dropout(x(40), 0.0)
F.dropout(x(40), 1.0)
F.dropout(x(40), 0.2, False)
F.dropout(x(40) * 1, 0.2, inplace=True)
F.alpha_dropout(x(40), 0.2, True)
F.alpha_dropout(x(40) * 1, 0.2, True, True)
F.dropout1d(x(4, 5), 0.3)
F.dropout1d(x(2, 4, 5), 0.3)
F.dropout2d(x(2, 4, 5, 5), 0.3)
F.dropout3d(x(2, 4, 2, 2, 5), 0.3)
F.dropout3d(x(4, 2, 2, 5), 0.3)
F.feature_alpha_dropout(x(2, 4, 5, 5), 0.3, True)
t.dropout(x(4, 5), 0.3, True)
F.dropout(x(3), 1.5)
F.dropout1d(x(3))
""".strip().splitlines()


def result(lib: Any, functional: Any, text: str, dtype: str) -> Any:
    leaves = []

    def x(*shape: int) -> Any:
        n = int(np.prod(shape))
        made = lib.arange(1, n + 1).to(getattr(lib, dtype)).reshape(shape)
        leaves.append(made.requires_grad_())
        return made

    lib.manual_seed(11)
    try:
        made = eval(text, {"t": lib, "F": functional, "x": x})
    except Exception as error:
        return type(error)
    made.sum().backward()
    name = type(made.grad_fn).__name__
    return name, made.stride(), made.tolist(), leaves[0].grad.tolist()


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("text", CALLS)
def test_as_torch(text: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    ours = result(antorcha, F, text, dtype)
    theirs = result(torch, torch.nn.functional, text, dtype)
    if isinstance(theirs, type):
        assert issubclass(ours, theirs)
    elif theirs[0] == "SqueezeBackward1":
        assert ours[1:] == theirs[1:]
    else:
        assert ours == theirs


def test_not_training_is_the_input_itself() -> None:
    x = antorcha.ones(3)
    assert F.dropout(x, 0.5, False) is x
    assert F.dropout(x, 0.0) is x
