"""One element as a Python number: what machine code reads is what Python says."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.runtime.call import native

READERS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.item(),
    "float": float,
    "int": int,
    "bool": bool,
    "index": operator.index,
    "complex": complex,
}
DTYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "bool", "complex64", "complex128",
)  # fmt: skip
VALUES = (0, 1, -3, 200, 2.75, -0.0, math.inf, math.nan, 1 << 40, -(1 << 63))


def outcome(read: Callable[[Any], Any], x: Any) -> Any:
    try:
        value = read(x)
    except Exception as error:
        return type(error), str(error)
    return type(value), repr(value)


def tensors(dtype: str) -> list[Any]:
    """One element in many places: alone, in the middle, of several dims, of a view, of none."""
    with np.errstate(all="ignore"):
        array = np.array(VALUES, np.float64 if dtype.startswith("bf") else None)
        made = torch.from_numpy(array.astype(np.float64)).to(getattr(torch, dtype))
    ones = [made[k] for k in range(len(VALUES))]
    shaped = [made[2:3], made[4:5].view(1, 1, 1), made.flip(0)[-2], made.expand(2, -1)[1, 3]]
    return [*ones, *shaped, made[:0], made[:2], torch.nn.Parameter(made[1], requires_grad=False)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", READERS)
def test_reading(name: str, dtype: str) -> None:
    given = tensors(dtype)
    for _ in range(2):  # (the first call goes by Python)
        ours = [outcome(READERS[name], x) for x in given]
    with native.off():
        assert ours == [outcome(READERS[name], x) for x in given]


def test_who_looks_is_told() -> None:
    """A profile sees that contents are looked at. (A subclass's own is in tests/tensor.)"""
    x = torch.tensor(2.5)
    assert [x.item(), x.item()] == [2.5, 2.5]
    with torch.profiler.profile() as found:
        x.item()
    assert any("item" in row.key for row in found.key_averages())


def test_tampered_tensors_are_refused() -> None:
    x = torch.tensor(2.5)
    assert [x.item(), x.item()] == [2.5, 2.5]
    x.untyped_storage().resize_(0)
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        x.item()
    y = torch.tensor(2.5)
    y._offset = 1 << 70
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        y.item()
    z = torch.tensor(2.5)
    z._offset = -1
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        z.item()


def test_a_method_of_the_users_own_stays() -> None:
    x = torch.tensor(2.5)
    own = torch.Tensor.item
    try:
        torch.Tensor.item = lambda self: "mine"
        assert x.item() == "mine"
    finally:
        torch.Tensor.item = own
    assert x.item() == 2.5
