"""Making tensors: what the defaults decide, and what is copied from where."""

from __future__ import annotations

from typing import Any

import pytest

import antorcha
import antorcha as torch
from antorcha.errors import AntorchaError


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


class _Huge:
    """A sequence that says it has `n` items."""

    def __init__(self, n: int, item: Any = 1.0) -> None:
        self.n, self.item = n, item

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: int) -> Any:
        return self if self.item is None else self.item


def _nested(depth: int, twice: bool = False) -> Any:
    made: Any = 1.0
    for _ in range(depth):
        made = [made, made] if twice else [made]
    return made


def _holding_themselves() -> dict[str, Any]:
    one: list[Any] = []
    one.append(one)
    two: list[Any] = []
    two += [two, two]
    inner: list[Any] = []
    inner.append((inner,))
    mixed: list[Any] = [1.0]
    mixed.append(mixed)
    return {"one": one, "two": two, "inner": inner, "mixed": mixed}


MAKERS = {
    "tensor": antorcha.tensor,
    "as_tensor": antorcha.as_tensor,
    "asarray": antorcha.asarray,
    "new_tensor": lambda data: antorcha.ones(2).new_tensor(data),
    "Tensor": antorcha.Tensor,
    "LongTensor": antorcha.LongTensor,
    "default_collate": lambda data: antorcha.utils.data.default_collate([1.0, data]),
    "index": lambda data: antorcha.ones(4)[[data]],
    "index of a write": lambda data: antorcha.ones(4).__setitem__([data], 1),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_sequences_without_end_are_refused(make):
    """What holds itself, is nested too deep, or has more items than memory has room for."""
    without_end = {
        **_holding_themselves(), "deep": _nested(65), "deeper": _nested(5000),
        "wide": _nested(60, twice=True), "endless": _Huge(3, None), "range": range(1 << 50),
        "huge": _Huge(1 << 62), "hugest": _Huge((1 << 63) - 1), "a row": [_Huge(1 << 55)],
    }  # fmt: skip
    for data in without_end.values():
        with pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
            make(data)
        assert isinstance(caught.value, AntorchaError)
        assert len(str(caught.value)) < 1000


def test_too_many_dims_are_a_value_error():
    for data in (*_holding_themselves().values(), _nested(65), _nested(5000)):
        with pytest.raises(ValueError, match=r"too many dimensions|ragged"):
            antorcha.tensor(data)
    assert antorcha.tensor(_nested(64)).ndim == 64


def test_a_length_that_is_not_true_is_an_error():
    class Short(_Huge):
        def __getitem__(self, k: int) -> Any:
            if k == 2:
                raise IndexError
            return float(k)

    assert antorcha.tensor(Short(2)).tolist() == [0.0, 1.0]
    for wrong in (Short(1), Short(3), _Huge(3)):
        with pytest.raises(ValueError, match="says that it has"):
            antorcha.tensor(wrong)
    with pytest.raises(RuntimeError, match="cannot allocate"):  # and not a loop
        antorcha.tensor(_Huge(1 << 60))


@pytest.mark.oracle
def test_what_is_no_number_is_refused_like_pytorch():
    import torch

    wrong: list[Any] = [None, {1}, [{1}], [None], [object()], [[1], [None]], [[1], [{}]], b"ab",
                        "a", ["ab"], [1, "a"], [[1], ["a"]]]  # fmt: skip
    for data in wrong:
        for dtype in ("float32", None):
            kinds = []
            for lib in (antorcha, torch):
                with pytest.raises(Exception) as caught:
                    lib.tensor(data, dtype=dtype and getattr(lib, dtype))
                kinds.append(caught.value)
            ours, theirs = kinds
            assert isinstance(ours, AntorchaError), data
            if not isinstance(theirs, TypeError) or dtype is None:  # (with a dtype, str differ)
                assert isinstance(ours, type(theirs)), (data, dtype, ours, theirs)


def test_the_text_of_an_argument_is_no_error_of_its_own():
    class Mute:
        def __repr__(self) -> str:
            raise ValueError("no text")

    for data in (_nested(5000), Mute()):
        for call in (antorcha.stack, antorcha.zeros, antorcha.ones(2).add):
            with pytest.raises(TypeError, match=type(data).__name__):
                call(data)
    with pytest.raises(TypeError, match="pad"):
        antorcha.nn.functional.pad(antorcha.ones(2), range(1 << 60))
