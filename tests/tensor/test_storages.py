"""Storages as users see them, and the older constructors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha as torch

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def test_untyped_storage() -> None:
    x = torch.arange(4.0)
    storage = x.untyped_storage()
    assert (storage.nbytes(), storage.size(), len(storage)) == (16, 16, 16)
    assert storage.data_ptr() == x.data_ptr() == x[1:].untyped_storage().data_ptr()
    assert storage == x[2:].untyped_storage() != x.clone().untyped_storage()
    assert storage[4:8].tolist() == [0, 0, 128, 63]
    assert storage[-1] == 64
    assert bytes(storage.tolist()) == x.numpy().tobytes()
    assert repr(torch.UntypedStorage([1, 2])) == (
        " 1\n 2\n[torch.storage.UntypedStorage(device=cpu) of size 2]"
    )
    assert torch.is_storage(storage)
    assert not torch.is_storage(x)
    for wrong in (16, -17, 1 << 70):
        with pytest.raises((IndexError, TypeError)):
            storage[wrong]


def test_writing_to_a_storage_counts() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = y * y
    y.untyped_storage().fill_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    part = torch.zeros(2)
    part.untyped_storage()[0:4][3] = 64
    assert part.tolist() == [2.0, 0.0]
    part.untyped_storage().copy_(torch.ones(2).untyped_storage())
    assert part.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="size does not match"):
        part.untyped_storage().copy_(torch.ones(3).untyped_storage())


def test_a_storage_that_shrinks() -> None:
    x = torch.arange(4.0)
    x.untyped_storage().resize_(8)
    uses = (lambda: x + 1, lambda: x.add_(1), lambda: x.tolist(), x.sum, lambda: repr(x))
    for use in uses:
        with pytest.raises((RuntimeError, ValueError, IndexError)):
            use()
    x.untyped_storage().resize_(16)
    assert x[:2].tolist() == [0.0, 1.0]


def test_typed_storage() -> None:
    x = torch.tensor([1.0, 2.0])
    storage = x.storage()
    assert storage.tolist() == list(storage) == [1.0, 2.0]
    assert (storage.size(), storage.nbytes(), storage.element_size()) == (2, 8, 4)
    storage[1] = 5
    assert x.tolist() == [1.0, 5.0]
    assert torch.FloatStorage([1, 2]).tolist() == [1.0, 2.0]
    assert isinstance(storage, torch.FloatStorage)
    assert x.storage_type() is torch.FloatStorage
    assert repr(storage) == (
        " 1.0\n 5.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 2]"
    )
    made = torch.tensor([]).set_(storage, 1, (1,), (1,))
    assert made.tolist() == [5.0]
    assert made.data_ptr() == x.data_ptr() + 4


def test_sharing_and_pinning() -> None:
    x = torch.ones(2)
    assert x.is_shared() is x.is_pinned() is False
    assert x.pin_memory() is x
    assert x.share_memory_() is x
    assert x.is_shared()


@pytest.mark.parametrize("wrong", ["cuda", {}, 3, np.zeros(2)])
def test_set_wants_a_storage(wrong: Any) -> None:
    with pytest.raises(TypeError):
        torch.ones(2).set_(wrong)


# ------------------------------------------------------------------------------ the older makers
def test_tensor_constructor() -> None:
    assert torch.Tensor(2, 3).shape == torch.Tensor(torch.Size([2, 3])).shape == (2, 3)
    assert torch.Tensor().tolist() == []
    assert torch.Tensor([[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert torch.Tensor((2, 3)).tolist() == [2.0, 3.0]
    assert torch.Tensor(np.arange(3)).dtype is torch.float32
    x = torch.ones(3)
    assert torch.Tensor(x).data_ptr() == x.data_ptr()
    assert torch.Tensor(x.untyped_storage()).tolist() == [1.0, 1.0, 1.0]
    for wrong, error in ((2.5, TypeError), ("a", TypeError), (None, TypeError), (-1, RuntimeError),
                         ([[1, 2], [3]], ValueError), ([1 + 2j], TypeError)):  # fmt: skip
        with pytest.raises(error):
            torch.Tensor(wrong)
    with pytest.raises(RuntimeError, match="legacy constructor"):
        torch.Tensor([1], device="meta")


def test_tensor_types() -> None:
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert torch.DoubleTensor(2, 2).dtype is torch.float64
    assert torch.BoolTensor([1, 0]).tolist() == [True, False]
    assert torch.ByteTensor([-1]).tolist() == [255]
    x = torch.ones(2)
    assert isinstance(x, torch.FloatTensor)
    assert not isinstance(x, torch.LongTensor)
    assert isinstance(x.long(), torch.LongTensor)
    assert str(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    assert x.type(torch.DoubleTensor).dtype is torch.float64
    assert torch.HalfTensor.dtype is torch.float16
    with pytest.raises(TypeError):
        torch.LongTensor(x)


def test_new() -> None:
    x = torch.ones(2, dtype=torch.float64)
    assert x.new(2, 3).dtype is x.new([1]).dtype is torch.float64
    assert x.new_tensor([1, 2]).tolist() == [1.0, 2.0]
    assert x.new_zeros(2, 3).shape == x.new_zeros((2, 3)).shape == x.new_ones(size=(2, 3)).shape
    assert x.new_ones((), dtype=torch.int32).dtype is torch.int32
    assert x.new_full((2,), 3).tolist() == [3.0, 3.0]
    assert x.new_empty(2, 0).shape == (2, 0)
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    assert x.new_zeros(2, requires_grad=True).requires_grad
    assert x.new_zeros(2, device="meta").device.type == "meta"
    with pytest.raises(TypeError):
        x.new_full(2, 1)
    with pytest.raises(TypeError, match="unexpected"):
        x.new_zeros(2, sise=3)


def test_huge_sizes_are_refused() -> None:
    for make in (
        lambda: torch.Tensor(1 << 40, 1 << 40), lambda: torch.LongTensor(1 << 62),
        lambda: torch.UntypedStorage(1 << 62), lambda: torch.UntypedStorage(-1),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, MemoryError)):
            make()


@pytest.mark.parametrize("nbytes", [0, 8])
def test_what_lies_outside_is_not_read(nbytes: int) -> None:
    """Of a tensor whose storage has become too small nothing is shown: the memory is not its own.
    (To NumPy a buffer of 0 bytes has any size.)"""
    x = torch.arange(5.0)
    x.untyped_storage().resize_(nbytes)
    readings: list[Any] = [
        repr, lambda t: t.tolist(), lambda t: t.numpy(), lambda t: t[4].item(), np.from_dlpack,
        lambda t: t.numpy(force=True), np.asarray, lambda t: bytes(t.numpy()),
    ]  # fmt: skip
    for read in readings:
        with pytest.raises((IndexError, RuntimeError)):
            read(x)
