"""Integers divided by 0 raise, whatever holds the 0, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.errors import ZeroDivisor

Divide = Callable[[Any, Any], torch.Tensor]
OPS: dict[str, Divide] = {
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
}
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
device = pytest.mark.parametrize("device", ["cpu", "reference"])


def integers(shape: tuple[int, ...], **how: Any) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 100 + 1).reshape(shape).to(**how)


@device
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", OPS)
def test_one_zero_among_many(op: str, dtype: torch.dtype, device: str) -> None:
    for n in (1, 17, 1000):
        a = integers((n,), dtype=dtype, device=device)
        b = a.flip(0)
        for _ in range(2):  # the second time by a plan that is there
            assert OPS[op](a, b).shape == (n,)
        for place in {0, n // 2, n - 1}:
            wrong = b.clone()
            wrong[place] = 0
            for _ in range(2):
                with pytest.raises(ZeroDivisor, match="has zeros"):
                    OPS[op](a, wrong)
        assert OPS[op](a, b).shape == (n,)


@device
def test_divisors_of_every_layout(device: str) -> None:
    a, b = integers((6, 8), device=device), integers((8, 6), device=device)
    spread = integers((6, 16), device=device)
    ways: dict[str, Callable[[], torch.Tensor]] = {
        "transposed": lambda: a // b.T,
        "every second": lambda: a // spread[:, ::2],
        "a row": lambda: a // b[:, 0],
        "a column": lambda: a // b[:6, :1],
        "an element": lambda: a // b[0, 0],
        "expanded": lambda: a // b[0, :1].expand(6, 8),
        "to a number": lambda: 7 // b,
        "a number's rest": lambda: 7 % b,
    }
    expected = {name: way().tolist() for name, way in ways.items()}
    b[0, 0] = spread[0, 0] = 0
    for way in ways.values():
        with pytest.raises(ZeroDivisor):
            way()
    b[0, 0] = spread[0, 0] = 1
    assert {name: way().tolist() for name, way in ways.items()} == expected


def test_zeros_that_nobody_divides_by() -> None:
    """A zero beside the part that is a divisor; results without elements; floats."""
    zeros = torch.zeros(4, dtype=torch.int64)
    beside = torch.tensor([0, 1, 2, 0])
    assert (torch.tensor([5, 5]) // beside[1:3]).tolist() == [5, 2]
    assert (torch.zeros(0, 4, dtype=torch.int64) // zeros).shape == (0, 4)
    assert (torch.ones(4) // zeros).isinf().all()
    assert (torch.ones(4) % zeros).isnan().all()
    assert torch.div(torch.ones(4, dtype=torch.int64), zeros).isinf().all()
    assert (zeros // 0.0).isnan().all()


@device
def test_nothing_is_written(device: str) -> None:
    b = torch.tensor([1, 2, 0], device=device)
    a = torch.tensor([7, 8, 9], device=device)
    out = torch.tensor([-1, -1, -1], device=device)
    for write in (
        lambda: a.floor_divide_(b),
        lambda: a.remainder_(b),
        lambda: a.fmod_(b),
        lambda: a.div_(b, rounding_mode="floor"),
        lambda: torch.floor_divide(a, b, out=out),
        lambda: torch.remainder(a, b, out=out),
    ):
        for _ in range(2):
            with pytest.raises(ZeroDivisor):
                write()
    assert a.tolist() == [7, 8, 9]
    assert out.tolist() == [-1, -1, -1]


def test_what_can_be_caught() -> None:
    for kind in (RuntimeError, ZeroDivisionError):
        with pytest.raises(kind, match="ZeroDivisionError"):
            torch.tensor([1]) // torch.tensor([0])
        with pytest.raises(kind, match="ZeroDivisionError"):
            torch.tensor([1]) // 0


def test_meta_tensors_have_no_zeros() -> None:
    b = torch.zeros(3, dtype=torch.int64, device="meta")
    assert (b // b).shape == (3,)


def test_quotients_of_all_sizes() -> None:
    """Vectors are divided as floats: where those round, and beside multiples."""
    random, wrong = np.random.default_rng(0), []
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.int64):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        bits = np.iinfo(dtype).bits
        some = random.integers(low, high, 4000, dtype, endpoint=True)
        some >>= random.integers(0, bits - 1, 4000).astype(dtype)
        ends = np.array([low, low + 1, high, high - 1, 1, 2, 3, 7, high // 2, high // 3], dtype)
        b = random.permutation(np.concatenate([some, np.repeat(ends, 50)]))
        b[b == 0] = 3
        with np.errstate(all="ignore"):
            a = random.permutation(b)
            multiples = (a // b) * b + random.integers(-1 if low else 0, 2, len(b)).astype(dtype)
            a = np.where(random.random(len(b)) < 0.5, a, multiples)
            for name, op in OPS.items():
                want = op(torch.tensor(a, device="reference"), torch.tensor(b, device="reference"))
                differ = (op(torch.tensor(a), torch.tensor(b)) != want.cpu()).numpy()
                wrong += [f"{name} {a[k]}, {b[k]}" for k in np.flatnonzero(differ)[:3]]
    assert not wrong, "\n".join(wrong)
