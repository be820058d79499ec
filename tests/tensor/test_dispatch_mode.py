"""TorchDispatchMode: told of every op, under PyTorch's names."""

from __future__ import annotations

from typing import Any

import pytest

import antorcha as torch
from antorcha.core import modes
from antorcha.utils._python_dispatch import TorchDispatchMode, _disable_current_modes


class Log(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_is_told_of_every_op() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    with Log() as log:
        y = (x * 2 + x) ** 2
        z = torch.relu(y @ y.t()).sum(dim=1)
        z.max().add_(1)
    assert log.seen == [
        "aten.mul.Tensor", "aten.add.Tensor", "aten.pow.Tensor_Scalar", "aten.t.default",
        "aten.mm.default", "aten.relu.default", "aten.sum.dim_IntList", "aten.max.default",
        "aten.add_.Tensor",
    ]  # fmt: skip
    assert not modes.subclasses
    count = len(log.seen)
    with log:
        z.sum().backward()
    assert len(log.seen) > count + 1
    torch.ones(2).exp()
    assert x.grad is not None


def test_modes_nest_and_may_answer_themselves() -> None:
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return torch.zeros(1) if func is torch.ops.aten.exp.default else func(*args)

    with Log() as outer, Zeros():
        assert torch.ones(3).exp().tolist() == [0.0]
        with _disable_current_modes():
            assert torch.ones(1).exp().item() > 2
    assert "aten.exp.default" not in outer.seen
    with Log() as outer, Log() as inner:
        torch.ones(1).neg()
    assert outer.seen == inner.seen
    with pytest.raises(NotImplementedError, match="__torch_dispatch__"), TorchDispatchMode():
        torch.ones(1).neg()
    assert not modes.subclasses
