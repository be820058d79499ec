"""Making tensors: what the defaults decide, and what is copied from where."""

from __future__ import annotations

import pytest

import antorcha
import antorcha as torch


def test_a_new_default_dtype_holds_at_once() -> None:
    """Also for what has been planned with the old one."""
    x = antorcha.arange(3)
    makers = [
        lambda: x.exp(), lambda: x / 2, lambda: x * 2.5, lambda: antorcha.zeros(3),
        lambda: antorcha.ones(3), lambda: antorcha.linspace(0, 1, 3),
        lambda: antorcha.full((2,), 1.5),
        lambda: antorcha.tensor(1.5), lambda: antorcha.rand(3),
    ]  # fmt: skip
    for _ in range(5):
        assert [make().dtype for make in makers] == [antorcha.float32] * len(makers)
    antorcha.set_default_dtype(antorcha.float64)
    try:
        for _ in range(5):
            assert [make().dtype for make in makers] == [antorcha.float64] * len(makers)
    finally:
        antorcha.set_default_dtype(antorcha.float32)
    assert [make().dtype for make in makers] == [antorcha.float32] * len(makers)


def test_a_new_default_device_holds_at_once() -> None:
    """Also for calls that have been served natively."""
    makers = [
        lambda: antorcha.zeros(3), lambda: antorcha.ones(3), lambda: antorcha.full((2,), 1.5),
        lambda: antorcha.arange(3), lambda: antorcha.tensor(1.5), lambda: antorcha.empty(2, 2),
    ]  # fmt: skip

    def devices() -> set[str]:
        return {str(make().device) for make in makers}

    for _ in range(5):
        assert devices() == {"cpu"}
    antorcha.set_default_device("meta")
    try:
        for _ in range(5):
            assert devices() == {"meta"}
    finally:
        antorcha.set_default_device(None)
    assert devices() == {"cpu"}
    with antorcha.device("reference"):
        assert devices() == {"reference"}
        with antorcha.device("cpu"):
            assert devices() == {"cpu"}
        assert devices() == {"reference"}
    assert devices() == {"cpu"}


def test_what_is_copied_is_carried_to_the_other_device() -> None:
    x, y = antorcha.zeros(3), antorcha.arange(3.0, device="reference").requires_grad_()
    for k in range(4):
        x.copy_(y.detach())
        assert (x.tolist(), x._version) == ([0, 1, 2], k + 1)
    x[1:] = y.detach()[:2]
    assert x.tolist() == [0, 0, 1]
    antorcha.zeros(3).copy_(y).sum().backward()
    assert y.grad is not None
    assert (str(y.grad.device), y.grad.tolist()) == ("reference", [1, 1, 1])
    with pytest.raises(NotImplementedError, match="no data"):
        x.copy_(antorcha.zeros(3, device="meta"))
    assert x.tolist() == [0, 0, 1]


def test_broadcast_shapes() -> None:
    assert antorcha.broadcast_shapes(2, (3, 1)) == antorcha.Size([3, 2])
    assert antorcha.broadcast_shapes() == antorcha.Size([])
    for wrong in ([(2,), (3,)], [(2,), (-1, 2)]):
        with pytest.raises(RuntimeError, match="broadcast_shapes"):
            antorcha.broadcast_shapes(*wrong)


def test_tensors_in_lists() -> None:
    """Of one element, they are numbers, whatever their dims; a whole row may be a tensor."""
    one, two = torch.ones(1), torch.ones(2)
    assert torch.tensor([one, one]).shape == (2,)
    assert torch.tensor([[one], [torch.ones(1, 1)]]).shape == (2, 1)
    assert torch.tensor([2, one]).tolist() == [2.0, 1.0]
    assert torch.tensor([[1, 2], two]).tolist() == [[1.0, 2.0], [1.0, 1.0]]
    assert torch.tensor([torch.tensor([3])], dtype=torch.float64).tolist() == [3.0]
    for wrong in ([two, two], [one, two], [[two]], [torch.ones(0)], [two, 1.0]):
        with pytest.raises(ValueError, match="only one element tensors"):
            torch.tensor(wrong)
        with pytest.raises(ValueError, match="only one element tensors"):
            torch.as_tensor(wrong)
